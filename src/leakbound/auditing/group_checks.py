"""Limits on groups of records and on single records: whether they are kept, not kept, or open.

``worst_group_accuracy``: kept if the upper end of every judged group and every attack is at most the limit, each at the
level of one model (intersection-union: no correction for choosing the worst). Not kept if a lower end is above it, of
any measured group, at the level shared over models, attacks, limits and groups (Bonferroni). Otherwise open.

``exposed``: not kept if more records are exposed at that shared level; kept if there are enough models to show a record
that is always guessed right, and no more are exposed; otherwise open.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from leakbound.auditing.groups import AttackedGroups, OnGroups
from leakbound.core.findings import Term
from leakbound.data.groups import FEWEST, least_size, models_for
from leakbound.plans.limits import Limit
from leakbound.reports.about import CheckFacts, term_facts


def group_checks(limit: Limit, attacked: AttackedGroups) -> list[CheckFacts]:
    """Compare a limit on groups or records with what all attacks reach: a check for each reason why it is open."""
    if not attacked.attacks:
        return [_open(limit, Term("no_attack"))]
    if limit.quantity == "exposed":
        return [_exposed_check(limit, attacked)]
    grouped = attacked.grouped
    if grouped.reason is not None:
        return [_open(limit, grouped.reason)]
    # a single lower end above the limit decides: of a judged group, or of a small one that a joined one contains
    measured = [(on, idx) for on in attacked.attacks for idx in grouped.measured.tolist()]
    if measured:
        on, idx = max(measured, key=lambda pair: pair[0].refusal[pair[1]].low)
        if on.refusal[idx].low > limit.limit:
            return [_shown(limit, attacked, on, idx, "not_kept")]
    # otherwise every judged group must keep it, by its upper ends or, where it is too small for these, by its records
    checks = [*_of_measured(limit, attacked), *_of_small(limit, attacked)]
    undecided = [check for check in checks if check.outcome == "open"]
    return undecided or checks[:1]


def _of_measured(limit: Limit, attacked: AttackedGroups) -> Iterator[CheckFacts]:
    """Yield the judged group with the largest upper end."""
    groups = attacked.grouped.groups
    judged = [idx for idx in attacked.grouped.measured.tolist() if groups[idx].is_judged]
    if not judged:
        return
    on, idx = max(
        ((on, idx) for on in attacked.attacks for idx in judged), key=lambda pair: pair[0].release[pair[1]].high
    )
    if on.release[idx].high <= limit.limit:
        yield _shown(limit, attacked, on, idx, "kept")
    else:
        yield _shown(limit, attacked, on, idx, "open", _what_decides(limit, attacked, on, idx))


def _what_decides(limit: Limit, attacked: AttackedGroups, on: OnGroups, idx: int) -> Term:
    """Say how many models decide about a group: those for its size, or as many as make its interval narrow enough."""
    n_records, n_models = len(attacked.grouped.groups[idx]), attacked.grouped.n_models
    if n_models == 1:  # the interval is over the records
        return Term("interval_of_one_model_includes_limit")
    # a group that is too small for its number of models stays open without a leak, too
    if n_records < least_size(n_models):
        needed = models_for(n_records)
        return Term("group_too_small") if needed is None else Term("group_includes_limit", needed=needed)
    # half-widths fall with the square root of the number of models
    number = on.release[idx]
    width = max(number.high - number.value, number.value - number.low)
    distance = abs(number.value - limit.limit)
    if distance < 0.01:
        return Term("interval_includes_limit")
    needed = max(math.ceil(n_models * (width / distance) ** 2), models_for(max(n_records, FEWEST)) or 0, n_models + 1)
    return Term("group_includes_limit", needed=needed)


def _of_small(limit: Limit, attacked: AttackedGroups) -> Iterator[CheckFacts]:
    """Yield the groups that are too small to be measured, which are judged by their single records alone."""
    grouped, base = attacked.grouped, _base(limit)
    small = [group for group, known in zip(grouped.groups, grouped.is_measured, strict=True) if not known]
    for group in small:
        if not group.is_judged:
            continue
        reason = _untested(attacked)
        if reason is None and any(_exposed(on)[group.units].any() for on in attacked.attacks):
            reason = Term("small_group_exposed")
        if reason is None:
            yield CheckFacts(**base, outcome="kept", group=group.name)
        else:
            yield CheckFacts(**base, outcome="open", group=group.name, reason=term_facts([reason])[0])


def _exposed_check(limit: Limit, attacked: AttackedGroups) -> CheckFacts:
    """Compare the number of exposed records with its limit."""
    reason = _untested(attacked)
    if attacked.grouped.n_models == 1:
        return _open(limit, _of_one_model(attacked))
    most = max(attacked.attacks, key=lambda on: int(_exposed(on).sum()))
    n_exposed = int(_exposed(most).sum())
    base = _base(limit) | {"value": n_exposed, "attack": most.attack}
    if n_exposed > limit.limit:
        return CheckFacts(**base, outcome="not_kept")
    if reason is not None:
        return CheckFacts(**base, outcome="open", reason=term_facts([reason])[0])
    return CheckFacts(**base, outcome="kept")


def _of_one_model(attacked: AttackedGroups) -> Term:
    """Say that one game against each record tests none, and how many would."""
    return Term("records_of_one_model", needed=max(2, attacked.grouped.models_needed(attacked.levels.refusal)))


def _untested(attacked: AttackedGroups) -> Term | None:
    """Return why single records cannot be tested, if they cannot."""
    n_models = attacked.grouped.n_models
    if n_models == 1:
        return _of_one_model(attacked)
    needed = attacked.grouped.models_needed(attacked.levels.refusal)
    if n_models >= needed:
        return None
    return Term("records_untested", models=n_models, needed=needed)


def _exposed(on: OnGroups) -> np.ndarray:
    """Return which units an attack exposes."""
    assert on.exposed is not None  # there are several models
    return on.exposed


def _shown(
    limit: Limit, attacked: AttackedGroups, on: OnGroups, idx: int, outcome: str, reason: Term | None = None
) -> CheckFacts:
    """Show an attack on a group, with the two ends that decide."""
    ends: dict[str, Any] = {"low": on.refusal[idx].low, "high": on.release[idx].high}
    return CheckFacts.model_validate(
        _base(limit)
        | ends
        | {
            "outcome": outcome,
            "value": on.release[idx].value,
            "attack": on.attack,
            "group": attacked.grouped.groups[idx].name,
            "reason": None if reason is None else term_facts([reason])[0],
        }
    )


def _open(limit: Limit, reason: Term) -> CheckFacts:
    return CheckFacts(**_base(limit), outcome="open", reason=term_facts([reason])[0])


def _base(limit: Limit) -> dict[str, Any]:
    return {"check": limit.quantity, "limit": limit.limit}
