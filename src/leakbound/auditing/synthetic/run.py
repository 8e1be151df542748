"""Carry out an audit of synthetic data: scores of one release, the test for one source, controls, a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from leakbound.attacks import Attack, Score, find
from leakbound.auditing.baseline import SourceTest, same_source
from leakbound.auditing.observed import ObservedRelease
from leakbound.auditing.policy import refuse_unknown_attacks
from leakbound.auditing.rehearsal import Rehearsal, refuse_idle
from leakbound.auditing.report import AuditRun, reported
from leakbound.auditing.run import claims_of
from leakbound.auditing.setup import wanted
from leakbound.auditing.synthetic.controls import Measured, controls
from leakbound.auditing.synthetic.tables import Columns, Compared, Tables
from leakbound.auditing.synthetic.tables import compared as match_tables
from leakbound.core import games
from leakbound.core.intervals import Interval
from leakbound.core.types import NotApplicable, Signals
from leakbound.data import Data
from leakbound.data.slices import Slices, refuse_without_groups
from leakbound.plans.audits import SyntheticPlan
from leakbound.releases.generators.distances import nearest_distances
from leakbound.releases.generators.scores import MOST_COLUMNS, scores
from leakbound.reports import Report
from leakbound.reports.about import SyntheticFacts

ATTACKS = ("matches", "nearest", "nearest5", "density_ratio", "gen_lra")  # the last two compare with a reference


def attacks_on_synthetic(
    attacks: str | Attack | Score | Sequence[str | Attack | Score], has_reference: bool
) -> tuple[Attack, ...]:
    """Look up the attacks; by default those that synthetic data of one generator allow, as a group."""
    if attacks not in ("default", ("default",)):
        return find(attacks)
    return tuple(replace(attack, by_name=False) for attack in find(ATTACKS if has_reference else ATTACKS[:3]))


def audit_tables(
    plan: SyntheticPlan,
    attacks: Sequence[Attack],
    tables: Tables,
    groups: Any = None,  # units and names as arrays, where they are no columns of the plan
    ids: Any = None,
    slices: Slices = (),
    n_jobs: int | None = None,
) -> Report:
    """Audit the synthetic rows by the ordinary path of one release."""
    refuse_unknown_attacks(plan.policy, attacks)
    compared = match_tables(tables, Columns(plan.id, plan.group, plan.drop), groups, ids, slices)
    name = tables.synthetic[0].role
    refuse_without_groups(compared.slices)
    encoding, points = compared.encoding, compared.points
    for column in plan.infer:
        if column not in encoding.names:
            raise ValueError(f"infer: {column!r} is no column that is compared; columns: {', '.join(encoding.names)}")
    n_members = compared.n_members
    game = replace(games.one_model(n_members, len(points) - n_members), kind="synthetic")
    own_claims = claims_of(plan.claim, name, game)
    # whether members and others can be told apart without the synthetic data: then nothing that follows is about them
    sources = same_source(
        points, game, seed=plan.seed, confidence=plan.confidence, n_jobs=n_jobs, accepted=plan.accept_shift
    )
    synthetic = encoding.encode(compared.synthetic_rows)
    reference = None if compared.reference is None else encoding.encode(compared.reference)
    arrays = scores(compared.records, synthetic, wanted(attacks), reference, points.group)
    refuse_idle(attacks, [Rehearsal(game, dict.fromkeys(arrays, ()))])
    is_match = nearest_distances(compared.records, synthetic, 1)[:, 0] == 0
    distinct = encoding.encode(compared.synthetic_rows.drop_duplicates())
    measured = list(controls(compared, distinct, is_match, plan.infer, plan.confidence, plan.seed))
    facts = SyntheticFacts(
        files=len(compared.synthetic),
        rows=len(compared.synthetic_rows),
        reference=0 if compared.reference is None else len(compared.reference),
        columns=tuple(map(str, encoding.names)),
    )
    observed = ObservedRelease(
        name,
        Signals.observed(game, points, {signal: value[None] for signal, value in arrays.items()}),
        Data(points, "members and others"),
        own_claims,
        {"family": "generator", "files": dict(compared.files), "synthetic": facts},
        sources=sources,
        slices=compared.slices,
        measured=list(_withheld(measured, sources)),
    )
    return reported(plan, attacks, AuditRun([observed], notes=list(_notes(compared, attacks))))


def _withheld(measured: Sequence[Measured], sources: SourceTest) -> Iterator[Measured]:
    """Give no number of members minus others where these do not come from one source."""
    for spec, number in measured:
        if sources.stops and isinstance(number, Interval):
            values = next((term.values for term in number.method if "column" in term.values), {})
            yield spec, NotApplicable("shift", **values)
        else:
            yield spec, number


def _notes(compared: Compared, attacks: Sequence[Attack]) -> Iterator[str]:
    """Yield what a reader has to know of the records."""
    if compared.n_shared:
        yield f"{compared.n_shared:,} of the others equal a member: they, and these members, were taken out"
    if compared.n_repeated:
        yield (
            f"{compared.n_repeated:,} further records equal another one of their side and were taken out, too, so that "
            "frequent records do not count on one side alone"
        )
    n_columns = len(compared.encoding.names)
    if n_columns > MOST_COLUMNS and any(attack.name == "gen_lra" for attack in attacks):
        yield f"Gen-LRA is computed of at most {MOST_COLUMNS} columns, and there are {n_columns:,}"
    yield from compared.notes
