"""What the rows of a synthetic file tell about members, minus what they tell about controls that were not used.

Exact matches, singling out, linkability and inference of a column, as anonymeter measures them (Giomi et al. 2023,
arXiv:2211.10459), each as a difference of two fractions with an interval over units. A fraction of members alone shows
nothing: rows of a population are like its people, whether these were used or not. In what follows a unit counts once,
as soon as one of its rows does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.auditing.observed import FindingSpec
from leakbound.auditing.synthetic.tables import Compared
from leakbound.core.findings import AVERAGE, Term
from leakbound.core.intervals import Interval
from leakbound.core.seeds import stream
from leakbound.core.types import NotApplicable
from leakbound.metrics.holdout import Counted, disclosed_fraction, excess
from leakbound.releases.generators.distances import Encoded, nearest_rows

Array = np.ndarray
Measured = tuple[FindingSpec, Interval | NotApplicable]
ANONYMETER = "giomi2023"
MOST_PREDICATES = 1000  # of each kind
ATTEMPTS = 5  # random draws for each predicate that is wanted
SEVERAL_COLUMNS = 3  # of a predicate of several columns
LINKED_NEAREST = 5  # synthetic rows in which the two parts of a record are looked for
TOLERANCE = 0.05  # standard deviations within which the guess of a number is right


@dataclass(frozen=True, eq=False)
class Sides:
    """The units on both sides, and what is counted of them."""

    is_member: Bool[Array, " N"]  # of each record
    unit: Int[Array, " N"]

    def counted(self, hit: Bool[Array, " N"]) -> Counted:
        """Count the units of each side with a record that is hit."""
        members, others = self.is_member, ~self.is_member
        records = (members & hit, others & hit, members, others)
        return Counted(*(len(np.unique(self.unit[part])) for part in records))


def controls(
    compared: Compared,
    distinct: Encoded,  # the different synthetic rows
    is_match: Bool[Array, " N"],
    infer: Sequence[str],
    confidence: float,
    seed: int,
) -> Iterator[Measured]:
    """Yield what is measured of members beyond controls."""
    sides = Sides(compared.is_member, compared.unit)
    yield from _matches(sides.counted(is_match), confidence)
    yield from _singled_out(sides, compared.records, distinct, confidence, seed)
    yield _linked(sides, compared, confidence, seed)
    for name in infer:
        yield _inferred(sides, compared, name, confidence)


def _difference(
    quantity: str, counted: Counted, confidence: float, source: str, at: Mapping[str, float] | None = None, *terms: Term
) -> tuple[FindingSpec, Interval]:
    """Report the difference of two fractions, with their counts."""
    number = excess(counted, confidence)
    spec = FindingSpec(quantity, "point", source=source, operating_point=at or {}, scope=AVERAGE)
    return spec, replace(number, method=(*terms, *number.method), detail=_detail(counted))


def _detail(counted: Counted) -> dict[str, float]:
    return {
        "members": counted.members,
        "others": counted.controls,
        "of_members": counted.of_members,
        "of_others": counted.of_controls,
    }


def _matches(counted: Counted, confidence: float) -> Iterator[Measured]:
    """Yield how many more members than controls equal a synthetic row, and the fraction that this discloses."""
    yield _difference("excess_matches", counted, confidence, "newcombe1998, method 10")
    spec = FindingSpec("disclosed_fraction", "point", source="koopman1984", scope=AVERAGE)
    try:
        yield spec, replace(disclosed_fraction(counted, confidence), detail=_detail(counted))
    except NotApplicable as reason:
        yield spec, reason


# Predicates are of a table of numbers: a missing number is NaN, a level its code.
Condition = tuple[int, str, float]  # column, one of = < > ?, value; ? is a missing value


def _singled_out(sides: Sides, records: Encoded, distinct: Encoded, confidence: float, seed: int) -> Iterator[Measured]:
    """Yield how many more members than controls are singled out by predicates that single out a synthetic row.

    Whether a predicate holds for exactly one unit depends on how many there are: of the larger side as many units are
    drawn as the smaller one has.
    """
    table, rows = _matrix(records), _matrix(distinct)
    rng = stream(seed, "singling out", "units")
    of_sides = [np.unique(sides.unit[side]) for side in (sides.is_member, ~sides.is_member)]
    smaller = min(len(units) for units in of_sides)
    drawn = np.isin(sides.unit, np.concatenate([rng.permutation(units)[:smaller] for units in of_sides]))
    for n_columns in (1, SEVERAL_COLUMNS):
        at = {"columns": n_columns}
        predicates = _predicates(rows, records.numbers.shape[1], n_columns, seed)
        if not predicates:
            spec = FindingSpec("excess_singled_out", "point", source=ANONYMETER, operating_point=at, scope=AVERAGE)
            yield spec, NotApplicable("no_predicate")
            continue
        hit = np.zeros(len(table), dtype=bool)
        for side in (sides.is_member & drawn, ~sides.is_member & drawn):
            hit[side] = _is_singled_out(table[side], sides.unit[side], predicates)
        counted = Sides(sides.is_member[drawn], sides.unit[drawn]).counted(hit[drawn])
        spec, number = _difference("excess_singled_out", counted, confidence, ANONYMETER, at)
        yield spec, replace(number, detail={**number.detail, "predicates": len(predicates)})


def _matrix(rows: Encoded) -> Float[Array, "n p"]:
    return np.hstack([rows.numbers, rows.codes.astype(float)])


def _predicates(rows: Float[Array, "S p"], n_numbers: int, n_columns: int, seed: int) -> list[tuple[Condition, ...]]:
    """Draw predicates that hold for one synthetic row, each from a random row and random columns.

    A category is equal; so is a number that stands alone. One of several is at most that of the row where this is
    below the median of the column, else at least.
    """
    medians = [np.median(known) if len(known := values[~np.isnan(values)]) else 0.0 for values in rows.T]
    rng = stream(seed, "singling out", "predicates", n_columns)
    predicates: dict[tuple[Condition, ...], None] = {}
    for _ in range(ATTEMPTS * MOST_PREDICATES):
        row, conditions = rows[rng.integers(len(rows))], []
        for column in np.sort(rng.permutation(rows.shape[1])[:n_columns]).tolist():
            sign = "="
            if np.isnan(row[column]):
                sign = "?"
            elif column < n_numbers and n_columns > 1:
                sign = "<" if row[column] < medians[column] else ">"
            conditions.append((column, sign, float(np.nan_to_num(row[column]))))
        if np.count_nonzero(_holds(rows, conditions)) == 1:
            predicates[tuple(conditions)] = None
        if len(predicates) == MOST_PREDICATES:
            break
    return list(predicates)


def _holds(table: Float[Array, "n p"], conditions: Sequence[Condition]) -> Bool[Array, " n"]:
    """Tell for which rows all conditions hold; a missing number fulfils none but that it is missing."""
    holds = np.ones(len(table), dtype=bool)
    for column, sign, value in conditions:
        values = table[:, column]
        if sign == "=":
            holds &= values == value
        elif sign == "<":
            holds &= values <= value
        elif sign == ">":
            holds &= values >= value
        else:
            holds &= np.isnan(values)
    return holds


def _is_singled_out(
    table: Float[Array, "n p"], unit: Int[Array, " n"], predicates: Sequence[Sequence[Condition]]
) -> Bool[Array, " n"]:
    """Tell which records belong to a unit that is the only one for which some predicate holds."""
    singled_out: set[int] = set()
    for conditions in predicates:
        units = unit[_holds(table, conditions)]
        if len(units) and (units == units[0]).all():
            singled_out.add(int(units[0]))
    return np.isin(unit, list(singled_out))


def _linked(sides: Sides, compared: Compared, confidence: float, seed: int) -> Measured:
    """Measure how many more members than controls have a synthetic row that links the two halves of their columns.

    The columns are split at random. A record is linked if one row is among the five nearest in both halves.
    """
    frame = compared.points.x[compared.encoding.names]
    at = {"neighbours": LINKED_NEAREST}
    order = stream(seed, "linkability").permutation(frame.shape[1])
    half = frame.shape[1] // 2
    rows, nearest = compared.synthetic_rows, []
    for columns in (order[:half], order[half:]):
        encoding = compared.encoding.only([frame.columns[column] for column in np.sort(columns)])
        nearest.append(nearest_rows(encoding.encode(frame), encoding.encode(rows), LINKED_NEAREST)[1])
    hit = (nearest[0][:, :, None] == nearest[1][:, None, :]).any(axis=(1, 2))
    return _difference("excess_linked", sides.counted(hit), confidence, ANONYMETER, at)


def _inferred(sides: Sides, compared: Compared, name: str, confidence: float) -> Measured:
    """Measure how much more often the nearest synthetic row, by all other columns, has the value of a member.

    A number is right within .05 standard deviations of all candidates, a category if it is equal.
    """
    encoding = compared.encoding
    others = [column for column in encoding.names if column != name]
    term = Term("nearest_row_has", column=name)
    rows = compared.synthetic_rows
    by, of = encoding.only(others), encoding.only([name])
    frame = compared.points.x
    row = nearest_rows(by.encode(frame), by.encode(rows), 1)[1][:, 0]
    truth, guess = _matrix(of.encode(frame))[:, 0], _matrix(of.encode(rows))[row, 0]
    tolerance = TOLERANCE * float(np.nanstd(truth)) if name in encoding.numbers else 0.0
    both_missing = np.isnan(truth) & np.isnan(guess)
    is_right = (np.abs(truth - guess) <= tolerance) | both_missing
    return _difference("excess_inferred", sides.counted(is_right), confidence, ANONYMETER, None, term)
