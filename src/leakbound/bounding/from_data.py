"""Bounds on a data set: per-datum leakage, tables, totals, practical membership privacy, regression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import logit

from leakbound import data as data_room
from leakbound.bounding.ceilings import Stated, allowed, epsilon_at
from leakbound.bounds import Bound
from leakbound.bounds.exponential import (
    Draws,
    clipped_mean_sensitivity,
    geometric_median_loss,
    geometric_median_sensitivity,
    pmp_exponential,
    subset_epsilon,
    subset_sensitivity,
)
from leakbound.bounds.halves import MOST, MOST_BY_LOGARITHMS, countable
from leakbound.bounds.leakage import leakage_advantage, leakage_scores, leakage_tradeoff
from leakbound.bounds.membership import LARGEST_EPSILON, epsilon_for_accuracy, epsilons_gaussian
from leakbound.bounds.regression import linear_regression_bayes
from leakbound.bounds.tables import Merged, exact_eta_table, related_cells_to_merge, smallest_cell
from leakbound.bounds.totals import exact_eta_total, on_grid
from leakbound.core.findings import Finding, Kind, Scope, Term
from leakbound.core.lengths import clipped, p_norm
from leakbound.core.seeds import stream
from leakbound.core.tradeoff import EpsilonDelta
from leakbound.data import Data
from leakbound.data.columns import identifier_notes, repeated_names
from leakbound.data.missing import rows_left_out
from leakbound.noise import GaussianNoise, swap_linear
from leakbound.plans.bounds import LeakagePlan, PmpPlan, RegressionPlan, TablePlan, TotalPlan
from leakbound.plans.limits import Limit
from leakbound.reports import Curve, phrases
from leakbound.reports.phrases import plural

Array = np.ndarray
LARGEST_HALF = 10  # with larger ones there are too many halves to take one by one
MOST_EXPOSED_CELLS, MOST_CELLS = 200, 2_000  # of tables for which merges are suggested
EXACTLY = (Term("exact"),)
EXACT = (
    Term("register"),
    Term("knows_the_register"),
    Term("only_this_release"),
    Term("cells_fixed_beforehand"),
)


def leakage(plan: LeakagePlan, row: Bound) -> Stated:
    """Score every record of a table, and bound the most exposed and the median one."""
    data = data_room.read(plan.data, plan.drop, plan.id, drop_missing=plan.drop_missing, **plan.csv)
    released = plan.released or len(data.points)
    rows = data_room.numbers(data)
    # the most exposed record first
    score = leakage_scores(rows, plan.covariance, released)
    order = np.argsort(-score, kind="stable")
    common = {
        "status": row.status,
        "source": row.source,
        "game": Term("fixed_record"),
        "assumptions": [
            Term("large_table"),
            Term("moments_of_the_table", covariance=plan.covariance.replace("_", "-")),
            Term("knows_the_distribution"),
        ],
    }
    # what the page says of two records: the most exposed one and the median
    findings, curves = [], []
    for kind, record in worst_and_median(order):
        scope = record_scope(kind, record, data)
        facts: dict[str, Any] = {**common, "scope": scope}
        curve = leakage_tradeoff(float(score[record]), plan.rate)
        findings += [
            Finding("leakage_score", float(score[record]), per_record=True, **facts),
            *allowed(curve, 0.5, plan.fpr, **facts),
            epsilon_at(curve, plan.delta, **facts),
        ]
        curves.append(Curve(kind, "", "asymptotic", curve, scope=scope))
    # the list is of every record
    accuracy = (1 + leakage_advantage(score, plan.rate)) / 2
    drawn = f", of a random fraction {plan.rate:g} of them" if plan.rate < 1 else ""
    return Stated(
        f"the mean of {released:,} {plural(plan.unit)} with {rows.shape[1]:,} numbers each{drawn}",
        findings,
        curves,
        ranked(order, **with_names(data), score=score, accuracy=accuracy, eta=accuracy - 0.5),
        data,
        [*rows_left_out(data.kept), *identifier_notes(data.points), *repeated_names(data.points)],
    )


def table(plan: TablePlan, row: Bound) -> Stated:
    """Exact eta of every cell of a table of counts; for a wanted eta the smallest cell and the cells to merge."""
    data = data_room.read(plan.data, drop_missing=plan.by if plan.drop_missing else False, **plan.csv)
    _, names, sizes = data_room.cells(data, plan.by)
    game = _drawing(plan, len(data.points))
    # the most exposed cell first, of equal ones the smallest
    eta = exact_eta_table(sizes, len(data.points), **game.words)
    order = np.lexsort((sizes, -eta))
    common = {"status": row.status, "source": row.source, "game": game.term, "assumptions": EXACT}
    findings = _exposed(eta, order, Scope("worst", name=names[order[0]]), game.prior, common)
    columns = {"cell": np.array(names), "records": sizes, "eta": eta, "accuracy": game.baseline_accuracy + eta}
    everything = f"everything that is computed from these {len(sizes):,} counts has the same ceiling"
    notes = [*rows_left_out(data.kept), everything]
    # for a wanted eta: which cells are too small, and with which neighbours they are large enough
    if plan.eta is not None:
        least = smallest_cell(plan.eta, len(data.points), **game.words)
        findings.append(Finding("smallest_cell", least, operating_point={"eta": plan.eta}, **common))
        n_exposed = int((sizes < least).sum())
        if n_exposed > MOST_EXPOSED_CELLS or len(sizes) > MOST_CELLS:
            notes.append(
                f"{n_exposed:,} of {len(sizes):,} cells are too small for eta = {plan.eta:g}: count by fewer columns, "
                "or by fewer levels of a column (wider bins), before cells are merged one by one"
            )
        else:
            levels, ordered = data_room.levels(data, plan.by)
            groups = related_cells_to_merge(levels, ordered, sizes, plan.eta, len(data.points), **game.words)
            notes.append(_to_merge(plan.eta, groups))
            columns["merge_group"] = _merging(groups, len(sizes))
    return Stated(
        f"the counts of {len(data.points):,} {plural(plan.unit)} by {', '.join(plan.by)} in {len(sizes):,} cells; "
        + phrases.game(game.term),
        findings,
        records=ranked(order, **columns),
        data=data,
        notes=notes,
    )


def total(plan: TotalPlan, row: Bound) -> Stated:
    """Exact eta of every record of a column that is published as a total."""
    used = (plan.column,) if plan.drop_missing else False
    data = data_room.read(plan.data, id=plan.id, drop_missing=used, **plan.csv)
    values = on_grid(data_room.column(data, plan.column), plan.round)
    game = _drawing(plan, len(values))
    eta = exact_eta_total(values, **game.words)
    order = np.argsort(-eta, kind="stable")
    common = {"status": row.status, "source": row.source, "game": game.term, "assumptions": EXACT}
    return Stated(
        f"the total of {plan.column} over {len(values):,} {plural(plan.unit)} in multiples of {plan.round:g}; "
        + phrases.game(game.term),
        _exposed(eta, order, record_scope("worst", int(order[0]), data), game.prior, common),
        records=ranked(
            order, **with_names(data), value=values * plan.round, eta=eta, accuracy=game.baseline_accuracy + eta
        ),
        data=data,
        notes=[*rows_left_out(data.kept), *repeated_names(data.points)],
    )


def pmp(plan: PmpPlan, row: Bound) -> Stated:
    """Practical membership privacy of a noisy mean, or of the exponential mechanism, on these records."""
    data = data_room.read(plan.data, plan.drop, drop_missing=plan.drop_missing, **plan.csv)
    rows = data_room.numbers(data)
    n_clipped = int((p_norm(rows) > plan.clip).sum())
    stated = (_noisy_mean if plan.mechanism == "mean" else _geometric_median)(plan, row, clipped(rows, plan.clip))
    cut = [f"{n_clipped:,} of the {len(rows):,} {plural(plan.unit)} are longer than {plan.clip:g} and scaled down"]
    return replace(stated, data=data, notes=[*rows_left_out(data.kept), *stated.notes, *cut])


def _noisy_mean(plan: PmpPlan, row: Bound, rows: Float[Array, "N d"]) -> Stated:
    """Bound the mean of a half with Gaussian noise: epsilons at one delta, and the certified curve of the swap."""
    scale, n = plan.scale or 0.0, len(rows) // 2
    epsilons = epsilons_gaussian(rows, scale, plan.delta, clipped_mean_sensitivity(plan.clip, n))
    curve = swap_linear(rows, n, "mean").tradeoff(GaussianNoise(scale))
    common = _practical(row, plan)
    at = {"delta": plan.delta}
    return Stated(
        f"the mean of a half of {len(rows):,} {plural(plan.unit)}, clipped at {plan.clip:g}, "
        f"with Gaussian noise {scale:g}",
        [
            Finding("pmp_epsilon", epsilons.eps_pmp, operating_point=at, bound_type="upper", **common),
            *_promises(
                epsilons.eps_global,
                epsilons.eps_subset_exact,
                epsilons.eps_subset_nominal,
                common | {"operating_point": at},
            ),
            *allowed(curve, 0.5, plan.fpr, **common),
        ],
        [Curve("swap of one record", "", "certified", curve)],
    )


def _geometric_median(plan: PmpPlan, row: Bound, rows: Float[Array, "N d"]) -> Stated:
    """Bound the exponential mechanism among random unit vectors, for the median of a half."""
    # the candidates are random unit vectors, and their losses are the distances to the records
    outputs = stream(plan.seed, "candidates").normal(size=(plan.candidates, rows.shape[1]))
    loss = geometric_median_loss(outputs / np.linalg.norm(outputs, axis=1, keepdims=True), rows)
    sensitivity = geometric_median_sensitivity(plan.clip, len(rows) // 2)
    common = _practical(row, plan)
    draws = Draws(n_subsets=plan.n_subsets, confidence=plan.confidence, seed=plan.seed)
    # epsilon is given, or found for the limit that it is to keep
    if plan.epsilon is None:
        epsilon, promises = _epsilon_that_keeps(plan, loss, sensitivity, draws, common)
    else:
        epsilon, promises = plan.epsilon, [_membership(plan, loss, sensitivity, draws, common)]
    # what is proved of membership; then, to compare, epsilons of differential privacy
    ceiling = EpsilonDelta(promises[-1].value or 0.0)
    exact = subset_epsilon(loss, epsilon, sensitivity) if len(rows) <= 2 * LARGEST_HALF else None
    nominal = epsilon * subset_sensitivity(loss) / sensitivity
    return Stated(
        f"the geometric median of a half of {len(rows):,} {plural(plan.unit)}, clipped at {plan.clip:g}, among "
        f"{plan.candidates} random unit vectors, by the exponential mechanism with epsilon = {epsilon:.4g}",
        [
            *promises,
            *_promises(epsilon, exact, nominal, common),
            *allowed(ceiling, 0.5, plan.fpr, confidence=promises[-1].confidence, **common),
        ],
        [Curve("practical membership privacy", "", "certified", ceiling)],
    )


def _epsilon_that_keeps(
    plan: PmpPlan, loss: Float[Array, "W N"], sensitivity: float, draws: Draws, common: dict[str, Any]
) -> tuple[float, list[Finding]]:
    """Report the epsilon found for a limit, with what it is proved to keep: the limit itself."""
    limit = Limit.parse(plan.at_most or "", "at_most", ("accuracy", "eta"))
    accuracy = limit.limit + (0.5 if limit.quantity == "eta" else 0.0)
    if accuracy <= 0.5:
        raise ValueError(f"at_most {plan.at_most} asks for an accuracy of {accuracy:g}; it must be > 0.5 and < 1")
    epsilon = epsilon_for_accuracy(loss, sensitivity, accuracy, **draws)
    exact = countable(loss.shape[1] // 2, len(loss), MOST_BY_LOGARITHMS)
    facts: dict[str, Any] = common | {"confidence": None if exact else plan.confidence}
    keeps = [Term("keeps_limit", limit=plan.at_most or "")]
    if epsilon >= LARGEST_EPSILON:
        keeps.append(Term("search_ended"))
    of_limit = [Term("the_limit", limit=plan.at_most or "")]
    return epsilon, [
        Finding("largest_epsilon", epsilon, bound_type="lower", method=keeps, **facts),
        Finding("pmp_epsilon", float(logit(accuracy)), bound_type="upper", method=of_limit, **facts),
    ]


def _membership(
    plan: PmpPlan, loss: Float[Array, "W N"], sensitivity: float, draws: Draws, common: dict[str, Any]
) -> Finding:
    """Report the epsilon of practical membership privacy: exact if all halves can be counted, else an upper limit."""
    sampled = plan.method == "sampled" or not countable(loss.shape[1] // 2, len(loss), MOST)
    if plan.method == "exact" or not sampled:
        value = pmp_exponential(loss, plan.epsilon or 0.0, sensitivity)
        return Finding("pmp_epsilon", value, bound_type="upper", method=EXACTLY, **common)
    interval = pmp_exponential(loss, plan.epsilon or 0.0, sensitivity, "sampled", **draws)
    return Finding(
        "pmp_epsilon",
        interval.high,
        low=interval.low,
        high=interval.high,
        bound_type="upper",
        confidence=plan.confidence,
        method=interval.method,
        detail=interval.detail,
        **common,
    )


def _practical(row: Bound, plan: PmpPlan) -> dict[str, Any]:
    return {
        "status": row.status,
        "source": row.source,
        "game": Term("random_half", units=plural(plan.unit)),
        "assumptions": (
            Term("uniform_half"),
            Term("public_parameters"),
            Term("others_unprotected", units=plural(plan.unit)),
        ),
    }


def _promises(everywhere: float, exact: float | None, nominal: float, common: dict[str, Any]) -> Iterator[Finding]:
    """Yield the epsilons of differential privacy, with which that of membership is compared."""
    for scope, value in ((Scope("any_data"), everywhere), (Scope("halves"), exact), (Scope("nominal"), nominal)):
        if value is not None:
            yield Finding("epsilon", value, bound_type="upper", scope=scope, **common)


def regression(plan: RegressionPlan, row: Bound) -> Stated:
    """Compute the Bayes attacker on least squares, exactly, for every row of the design."""
    data = data_room.read(plan.data, plan.drop, plan.id, drop_missing=plan.drop_missing, **plan.csv)
    # the row with the largest leverage first
    leak = linear_regression_bayes(data_room.numbers(data), plan.noise_std)
    order = np.argsort(-leak.leverage, kind="stable")
    common: dict[str, Any] = {
        "operating_point": {"prior": 0.5},
        "status": row.status,
        "game": Term("own_or_fresh_response"),
        "assumptions": [
            Term("linear_responses"),
            Term("knows_all_else"),
        ],
    }
    # the mean over all rows, exactly, and the bounds of the paper above and below it
    average: dict[str, Any] = common | {"scope": Scope("average")}
    accuracy = (1 + leak.tv) / 2
    return Stated(
        f"least squares on {len(accuracy):,} rows and {round(float(leak.leverage.sum())):,} columns",
        [
            Finding("accuracy", leak.accuracy, bound_type="upper", source=row.source, method=EXACTLY, **average),
            Finding("accuracy", leak.upper, bound_type="upper", source="delgrosso2021, Theorem 5", **average),
            Finding("accuracy", leak.lower, bound_type="lower", source="delgrosso2021, Theorem 4", **average),
            Finding(
                "information", leak.information, bound_type="upper", source="delgrosso2021, section 4.1", **average
            ),
            Finding(
                "accuracy",
                float(accuracy.max()),
                bound_type="upper",
                scope=record_scope("worst", int(order[0]), data),
                source=row.source,
                **common,
            ),
        ],
        records=ranked(order, **with_names(data), leverage=leak.leverage, accuracy=accuracy),
        data=data,
        notes=[*rows_left_out(data.kept), *repeated_names(data.points)],
    )


@dataclass(frozen=True)
class _Drawing:
    """How the records of a table or a total are drawn, as keywords of the theorem and as a term."""

    words: Mapping[str, Any]
    prior: float
    term: Term

    @property
    def baseline_accuracy(self) -> float:
        """Accuracy of guessing from the prior alone."""
        return max(self.prior, 1 - self.prior)


def _drawing(plan: TablePlan | TotalPlan, n: int) -> _Drawing:
    if plan.sampling == "poisson":
        term = Term("each_by_a_coin", unit=plan.unit, prior=plan.prior)
        return _Drawing({"sampling": "poisson", "prior": plan.prior}, plan.prior, term)
    k = round(plan.prior * n) if plan.k is None else plan.k
    if plan.k is None and not 0 < k < n:
        raise ValueError(
            f"a fraction {plan.prior:g} of {n:,} {plural(plan.unit)} is {k:,}; at least one must be in and one out"
        )
    return _Drawing({"sampling": "fixed", "k": k}, k / n, Term("fixed_number", k=k))


def _exposed(
    eta: Float[Array, " C"], order: Array, worst: Scope, prior: float, common: dict[str, Any]
) -> list[Finding]:
    """Exact eta and accuracy against the most exposed and the median entry."""
    findings = []
    for kind, entry in worst_and_median(order):
        scope, value = worst if kind == "worst" else Scope("median"), eta[entry]
        facts: dict[str, Any] = {
            "operating_point": {"prior": prior},
            "bound_type": "upper",
            "method": EXACTLY,
            "scope": scope,
            **common,
        }
        findings += [
            Finding("accuracy", max(prior, 1 - prior) + float(value), **facts),
            Finding("eta", float(value), **facts),
        ]
    return findings


def _to_merge(eta: float, groups: Sequence[Merged]) -> str:
    """Which cells become one, in words."""
    if not groups:
        return f"every cell keeps eta = {eta:g}"
    merged = sum(len(group.parts) for group in groups)
    return (
        f"for eta = {eta:g} merge {merged:,} cells into {len(groups):,}, as the column merge_group says: cells of one "
        "group are neighbours, with the same value in every column but one where that is enough, and with consecutive "
        "values where a column holds numbers or dates"
    )


def _merging(groups: Sequence[Merged], n_cells: int) -> Array:
    """Assign to each cell the number, from 1 on, of the group that it is merged into; None for cells that stay."""
    number = np.full(n_cells, None, dtype=object)
    for group, merged in enumerate(groups, start=1):
        number[list(merged.parts)] = group
    return number


def worst_and_median(order: Array) -> list[tuple[Kind, int]]:
    """Return the most exposed entry, which is the first in the order, and the median one."""
    return [("worst", int(order[0])), ("median", int(order[(len(order) - 1) // 2]))]


def record_scope(kind: Kind, record: int, data: Data) -> Scope:
    """Return the scope of one record, with its name if it has one."""
    names = data.points.names
    return Scope(kind, record, "" if names is None else str(names[record]))


def with_names(data: Data) -> dict[str, Array]:
    """Return the columns that say which record a row is: its index, and its name if the records have names."""
    columns = {"record": np.arange(len(data.points))}
    if data.points.names is not None:
        columns["name"] = data.points.names
    return columns


def ranked(order: Array, **columns: Array) -> dict[str, list[Any]]:
    """Put the rows of a table into an order."""
    return {name: values[order].tolist() for name, values in columns.items()}
