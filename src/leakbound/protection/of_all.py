"""A release of all records (promise anyone) or of all but one (promise file), within the budget of one ledger.

Everything that can be refused is refused before the ledger is written; the ledger is written before the value is
published, and marked after that, so that the same request gives the same bytes once more after an interruption.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from leakbound.core.findings import Finding, Term
from leakbound.core.grid import Grid
from leakbound.core.repeated_rows import taken
from leakbound.core.tradeoff import TradeOff
from leakbound.noise import GaussianNoise
from leakbound.noise.families import describe
from leakbound.plans.promises import Anyone, File
from leakbound.plans.protects import WeightedPlan
from leakbound.protection.certificate.curves import ceiling_of, curve_of_left_out, gaussian_curve
from leakbound.protection.ledger.budget import BudgetLedger, Release, content_digest
from leakbound.protection.ledger.hashes import order_of
from leakbound.protection.ledger.keyed import SCHEME, canonical_digest
from leakbound.protection.ledger.ledger import Query, insecure_key
from leakbound.protection.promises.anyone import prepare as anyone
from leakbound.protection.promises.drawn.in_ledger import describe_statistic
from leakbound.protection.promises.file import prepare as file
from leakbound.protection.setting.elsewhere import (
    NOWHERE,
    Elsewhere,
    beside_the_data,
    note_begun,
    of_the_same_people,
    own_ledger,
)
from leakbound.protection.setting.prepared import Counted, Joint, Prepared, Ready
from leakbound.protection.setting.request import Request
from leakbound.protection.setting.results import rounded_to_rms
from leakbound.protection.setting.units import people_of
from leakbound.reports.about import LedgerEntryFacts

Array = np.ndarray


def prepare(request: Request) -> Prepared:
    """Find the least noise, what it proves, and what the ledger must know."""
    if request.plan.chosen == "leave-one-out":
        return file.prepare(request)
    prepared = anyone.prepare(request)
    # the owner is told what the statistic does not count as it is; promise file refuses it
    for note in prepared.owner_notes:
        request.tell_owner(note)
    return prepared


def declared(request: Request) -> str:
    """Count a query in its ledger before the first output; what was done, in a line."""
    place = _Place.of(request)
    place.elsewhere.refuse()
    prepared = prepare(request)
    ledger = place.ledger or place.begun(prepared)
    ledger, _ = place.asked_elsewhere(ledger, prepared)
    release = _entry(ledger, prepared)
    if place.ledger is None:
        ledger.check(release)  # that it fits
    note_begun(request, place.path)
    ledger = ledger.declare(_query(prepared), request.date, release.table, release.hashes)
    return f"{place.path}: {len(ledger.queries)} declared, {len(ledger.releases)} released"


def ready(request: Request) -> Ready:
    """Prepare a release, and check that it fits into the ledger."""
    place = _Place.of(request)
    prepared = prepare(request)
    ledger = place.ledger or place.begun(prepared)
    entry, elsewhere = _entry(ledger, prepared), NOWHERE
    is_new = ledger.place_of(entry.query, entry.subject) == len(ledger.releases)
    if is_new:
        ledger, elsewhere = place.asked_elsewhere(ledger, prepared)
        entry = replace(entry, others=elsewhere.releases, knows_people=elsewhere.knows_people)
    # Only the digest of the released value is not known yet, and it decides nothing here.
    checked = ledger.check(entry) if is_new else ledger
    return Ready(prepared, partial(_counted, ledger, checked, entry, prepared, elsewhere.notes))


def _counted(
    ledger: BudgetLedger,
    checked: BudgetLedger,  # with the release
    entry: Release,
    prepared: Prepared,
    owner_notes: Sequence[str],
) -> Counted:
    """Count the release in its ledger, and add its noise; one that is there already stays as it is."""
    note_begun(prepared.request, ledger.path)
    number = ledger.place_of(entry.query, entry.subject)
    # Who is left out is looked up only now: nothing before depends on it.
    left_out = ledger.left_out(prepared.units.names) if prepared.design == "leave-one-out" else 0
    exact = prepared.value_of(left_out)
    digest = _digest(entry.subject, exact)
    if number == len(ledger.releases):
        ledger = checked.completed(digest)
    elif ledger.releases[number].release != digest:
        ledger.check(replace(entry, release=digest))  # says why a second release of this query is refused
    value = rounded_to_rms(_with_noise(ledger, prepared, exact, digest), prepared.rms)
    prepared = replace(prepared, assumptions=(*prepared.assumptions, *_of_versions(ledger, number)))
    budget = _promised_together(ledger, prepared, number)
    facts = LedgerEntryFacts(
        number=number + 1,
        digest=ledger.entry_digest(number),
        budget=budget,
        declared=max(1, len(ledger.queries)),
    )
    own = ledger.releases[number]
    return Counted(
        prepared,
        value,
        ledger,
        number,
        facts,
        _joint(ledger, prepared, budget, number),
        owner_findings=[_spent(ledger, prepared)],
        owner_notes=owner_notes,
        others=own.others,
        knows_people=own.knows_people,
    )


@dataclass(frozen=True, eq=False)
class _Place:
    """The ledger of a request: its path, what is there, and what ledgers of other designs beside it hold."""

    path: Path
    ledger: BudgetLedger | None
    request: Request
    # the same data under other designs: they refuse a new release; one that the ledger holds is made once more
    elsewhere: Elsewhere

    @classmethod
    def of(cls, request: Request) -> _Place:
        """Open the ledger of a request, if there is one."""
        design = request.plan.chosen
        if request.ledger_path is None:
            raise ValueError(
                f"promise {request.plan.promise_name} needs a ledger = FILE, which is kept for the life of "
                "the data: it remembers who is left out and what was released"
            )
        path = own_ledger(request)
        elsewhere = beside_the_data(request, path)
        if not path.exists():
            elsewhere.refuse()
            return cls(path, None, request, elsewhere)
        ledger = BudgetLedger.open(path, design or "")
        if not ledger.releases:
            elsewhere.refuse()
        budget, seed = request.plan.budget, request.insecure_seed
        if budget is not None and budget != ledger.budget:
            raise ValueError(f"{path} has a budget of {ledger.budget:g}, fixed by its first release; got {budget:g}")
        if (seed is not None) != ledger.is_insecure or (seed is not None and ledger.key != insecure_key(seed)):
            raise ValueError(f"{path} was begun with another seed, or with none: start another ledger")
        return cls(path, ledger, request, elsewhere)

    def begun(self, prepared: Prepared) -> BudgetLedger:
        """Begin a ledger, without a file: its budget is fixed here."""
        plan, seed = self.request.plan, self.request.insecure_seed
        budget = plan.eta if plan.budget is None else plan.budget
        key = None if seed is None else insecure_key(seed)
        return BudgetLedger.begun(self.path, prepared.design, budget, key, is_insecure=seed is not None)

    def asked_elsewhere(self, ledger: BudgetLedger, prepared: Prepared) -> tuple[BudgetLedger, Elsewhere]:
        """Look for the people of a new release in other ledgers, and enter them in its own."""
        self.elsewhere.refuse()
        if ledger.is_insecure:  # nothing of it is published
            return ledger, self.elsewhere
        names = people_of(self.request, prepared.units)
        found = of_the_same_people(
            self.request, self.path, lambda: names, self.ledger, prepared.units, self.elsewhere.paths
        )
        found.refuse()
        for note in found.notes:
            self.request.tell_owner(note)
        return ledger.with_people(names), self.elsewhere.with_(found)


def _query(prepared: Prepared) -> Query:
    """Collect everything that decides what is released, and with which noise."""
    design: dict[str, Any] = {"design": prepared.design}
    promise = prepared.request.plan.promise
    if isinstance(promise, File) and promise.at_most:
        design["at_most"] = sorted(promise.at_most)
    if not prepared.parts:
        return Query(_asked(prepared.request) | design, prepared.eta)
    return Query({"several": [_of_several(part.request) for part in prepared.parts]} | design, prepared.eta)


def _asked(request: Request) -> dict[str, Any]:
    """Describe a statistic with the fields of its plan."""
    plan, promise = request.plan, request.plan.promise
    # the digest of a query is made of these words: with others a kept ledger would not know it again
    asked: dict[str, Any] = {
        "statistic": plan.statistic,
        "by": plan.by,
        "levels": plan.levels,
        "set": plan.set,
        "label": plan.label,
        "drop": plan.drop,
        "group": plan.group,
        "noise": promise.noise if isinstance(promise, File) else "gaussian",
        "noise_scale": promise.scale if isinstance(promise, File) else None,
        "ranges": tuple(f"{name}={low}:{high}" for name, (low, high) in plan.under(Anyone).ranges.items()),
    }
    content: dict[str, Any] = {"of": describe_statistic(request.statistic)}
    for name, value in asked.items():
        content[name] = repr(value) if isinstance(value, dict | tuple) else value
    return content | _rows_of(request)


def _rows_of(request: Request) -> dict[str, Any]:
    """Say what was done with missing and other values, where that is not what older ledgers did."""
    plan = request.plan
    read: dict[str, Any] = {"drop_missing": True} if plan.drop_missing else {}
    if isinstance(plan.promise, Anyone) and plan.promise.others:
        read["others"] = list(plan.promise.others)
    if plan.chosen == "dp" and plan.statistic == "sum":  # of those who have a value: it was the lower end of the range
        read["missing"] = "nothing"
    return read


def _of_several(part: Request) -> dict[str, Any]:
    """Describe one of several statistics, with its weight."""
    return _asked(part) | {"weight": part.plan.weight if isinstance(part.plan, WeightedPlan) else 1.0}


def _digest(subject: str, exact: Float[Array, " d"] | None) -> str:
    """Compute the digest of a release: of what its noise is drawn for, and of the value."""
    return canonical_digest({"subject": subject, "exact": exact})


def _entry(ledger: BudgetLedger, prepared: Prepared) -> Release:
    """Make the entry of a release whose value is not known yet."""
    noise = _described(prepared)
    is_table = prepared.design == "leave-one-out"
    names = prepared.units.names
    values: Any = prepared.per_unit
    hashes, first = None, 0
    if is_table:  # in the order of their hashes, whatever the order of the records
        hashes = ledger.unit_hashes(names)
        order = order_of(hashes)
        hashes, values, first = hashes[order], taken(values, order), int(order[0])
        content = content_digest(hashes, values)
    else:
        content = hashlib.sha256(names[order_of(names)].data).hexdigest()
        values = float(values)
    subject = canonical_digest(
        {
            "scheme": SCHEME,
            "design": prepared.design,
            "query": _query(prepared).digest,
            "content": content,
            "mu": None if is_table else values,
            "value": prepared.value_of(first),  # a table holds differences alone
            "noise": noise,
            "noisy": prepared.noisy_coords,
            "grid": np.broadcast_to(prepared.grid.steps, prepared.noisy_coords.shape),
        }
    )
    return Release(
        query=_query(prepared).digest,
        eta=prepared.eta,
        date=prepared.request.date,
        subject=subject,
        release=_digest(subject, None),
        noise_digest=canonical_digest(noise),
        scale=prepared.noise.scale if isinstance(prepared.noise, GaussianNoise) else 1.0,
        hashes=hashes,
        table=values if is_table else None,
        mu=None if is_table else values,
        content=content if is_table else "",
        # limits on its curve are kept by the ledger as well if nothing follows it
        leaves_reserve=not (prepared.request.plan.limits and _is_the_only_one(ledger, prepared)),
    )


def _described(prepared: Prepared) -> Any:
    """Describe the noise as a digest needs it."""
    noises = [None if part.noise is None else describe(part.noise) for part in prepared.statistics]
    return {"several": noises} if prepared.parts else noises[0]


def _with_noise(ledger: BudgetLedger, prepared: Prepared, exact: Float[Array, " d"], digest: str) -> Float[Array, " d"]:
    """Add the noise of a release, as whole steps of the grid; coordinates without noise stay as they are."""
    if prepared.parts:
        values = [
            _with_noise(ledger, part, of_part, f"{digest} part {place}")
            for place, (part, of_part) in enumerate(zip(prepared.parts, prepared.split(exact), strict=True))
        ]
        return np.concatenate(values)
    value = np.array(exact, dtype=float)
    noisy, noise = prepared.noisy_coords, prepared.noise
    if noise is not None:
        grid = Grid(tuple(np.broadcast_to(prepared.grid.steps, noisy.shape)[noisy].tolist()))
        draw = noise.sample(np.zeros(int(noisy.sum())), ledger.generator(f"noise {digest}"))
        value[noisy] = grid.value(grid.round(value[noisy]) + grid.round(prepared.divisor * draw))
    return value / prepared.divisor


def _of_versions(ledger: BudgetLedger, number: int) -> list[Term]:
    """Say that the promise rests on versions of the data that differ, where they do."""
    # of the versions up to this release: the same request gives the same certificate after later ones, too
    difference = _until(ledger, number).difference()
    return [Term("versions_differ", difference=difference)] if difference > 0 else []


def _until(ledger: BudgetLedger, number: int) -> BudgetLedger:
    """Return the ledger as it was when a release was made."""
    return replace(ledger, releases=ledger.releases[: number + 1])


def _promised_together(ledger: BudgetLedger, prepared: Prepared, number: int) -> float:
    """Return what all releases of the ledger promise to those who are in the data of this one.

    It is the budget, times what `_of_later_version` says.
    """
    return min(0.5, ledger.promised * _of_later_version(ledger, prepared, number))


def _of_later_version(ledger: BudgetLedger, prepared: Prepared, number: int) -> float:
    """Compute how many times as well those are told who are in a later version of the data than the first.

    The budget is promised to those of the first version, of n units. One of a later version of m units, which was
    chosen from no output, is told by at most ``max(1, (1 - 1/n)/(1 - 1/m))`` times as much, at every ratio.
    """
    versions = _until(ledger, number).versions
    if prepared.design != "leave-one-out":
        return 1.0
    n_first, n_here = len(versions[0]), prepared.n
    return max(1.0, (1 - 1 / n_first) / (1 - 1 / n_here))


def _joint(ledger: BudgetLedger, prepared: Prepared, budget: float, number: int) -> Joint:
    """Collect what all releases of the ledger promise together: it was fixed before the first one."""
    release = "joint" if number > 0 else "joint_of_one"
    if prepared.design == "leave-one-out":
        named = file.named_right(prepared, budget, release)
        limits = prepared.request.plan.limits if number == 0 and _is_the_only_one(ledger, prepared) else {}
        curve = _joint_curve(ledger, prepared, budget, number)
        return Joint(release, budget, curve, file.published_curve(prepared, curve, budget, limits), (named,))
    common: dict[str, Any] = prepared.common | {"release": release}
    curve, delta = gaussian_curve(budget), prepared.request.plan.under(Anyone).delta
    findings = (
        Finding("mu", curve.mu, **common),
        Finding("epsilon", curve.epsilon(delta), operating_point={"delta": delta}, **common),
    )
    return Joint(release, budget, curve, curve, findings)


def _is_the_only_one(ledger: BudgetLedger, prepared: Prepared) -> bool:
    """Tell whether the first release takes the whole budget, so that no other one is to follow."""
    return len(ledger.queries) <= 1 and prepared.eta == ledger.budget


def _joint_curve(ledger: BudgetLedger, prepared: Prepared, budget: float, number: int) -> TradeOff:
    """Compute the curve of all releases of the ledger together: of the declared ones, and of the reserve for others."""
    table = ledger.declared_table
    if table is None:
        return ceiling_of(budget, {})
    factor = _of_later_version(ledger, prepared, number)
    return curve_of_left_out(table, budget, prepared.request.plan, reserve=ledger.reserve or 0.0, factor=factor)


def _spent(ledger: BudgetLedger, prepared: Prepared) -> Finding:
    """Report, for the owner, what the releases so far tell: a function of the data, and no promise."""
    common: dict[str, Any] = prepared.common | {"operating_point": {"prior": 0.5}}
    return Finding("eta", ledger.spent(), release="spent", **common)
