"""What was released and what it cost: tables of the values, of noise and sampling error, of other methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from leakbound.core import reasons
from leakbound.core.findings import Finding
from leakbound.reports import phrases
from leakbound.reports.about import PlannedNumber, PublishedTable, ReleasedValue
from leakbound.reports.numbers import HALF_OF_95_PERCENT, THIN, count, near, percent, powers, significant
from leakbound.reports.phrases import title
from leakbound.reports.sections.protected.designs import fill, words_of
from leakbound.reports.sections.protected.result import ProtectedResult
from leakbound.reports.sections.protected.table import half_of, is_crossed, label_of, value_of
from leakbound.reports.sections.words import capital, say

SHORT = 12  # letters
OURS = "this calibration"
NOTHING = Markup("—")
HEADS = {  # of the columns
    "statistic": "Statistic",
    "released": "Released",
    "noise_95": f"Noise, {percent(0.95)}",
    "noise_std": "Noise, standard deviation",
    "unit": "Unit",
    "sampling_error": "Sampling error",
    "noise": "Noise",
    "together": "Together",
    "increase": "Increase",
    "equivalent_sample": "Worth a sample of",
    "method": "Method",
    "times_ours": "Times ours",
    "promise": "Promise",
    "certificate": "Certificate",
    "own_error": "Error, this calibration",
    "other_error": "Error, differential privacy on all",
}
TEXTS = ("unit", "promise", "certificate")  # columns of words, which are aligned to the left
Cells = Mapping[str, Markup]  # by the keys of HEADS


def headed(rows: Sequence[Cells]) -> list[dict[str, Markup]]:
    """Return the rows with the headings of their columns."""
    return [{HEADS[column]: cell for column, cell in row.items()} for row in rows]


def values(result: ProtectedResult) -> list[Cells]:
    """Tabulate what was released, each value with its noise, in as many digits as the noise leaves."""
    family = result.certificate.noise.family.lower()
    factor = HALF_OF_95_PERCENT.get(family, 1.0)
    noise = "noise_95" if family in HALF_OF_95_PERCENT else "noise_std"
    exact = _text(words_of(result).exact)
    if result.about.table is not None:
        return _published(result.about.table, noise, exact)
    rows = []
    for row in result.values:
        half = half_of_value(row, factor)
        cells = {"statistic": _text(row.name), "released": _released(row.value, half)}
        cells[noise] = say("±{thin}{half}", thin=THIN, half=powers(significant(half))) if half else exact
        if row.noise_std is None:
            cells[noise] = NOTHING
        rows.append(cells | {"unit": _unit(row.unit)})
    return _without_empty(rows, "unit")


def half_of_value(row: ReleasedValue, factor: float) -> float:
    """Return half of the interval of the noise, the longer one; 0 where there is no noise, or no value."""
    if row.value is None or row.noise_std is None:
        return 0.0
    if row.low is None or row.high is None:
        return factor * row.noise_std
    return max(row.high - row.value, row.value - row.low)


def _published(table: PublishedTable, noise: str, exact: Markup) -> list[Cells]:
    """Tabulate the numbers of a table as they are published; margins only where no rows and columns show them."""
    shown = [cell for cell in table.cells if not (is_crossed(table) and None in cell.levels)]
    rows = []
    for cell in shown:
        half = half_of(cell)
        said = say("±{thin}{half}", thin=THIN, half=powers(significant(half))) if half else exact
        cells = {"statistic": _text(label_of(cell, table)), "released": value_of(cell)}
        rows.append(cells | {noise: NOTHING if cell.value is None else said})
    return rows


def planned(result: ProtectedResult) -> list[Cells]:
    """Tabulate the noise of each number that a release would publish, beside its sampling error; none after one."""
    if result.certificate.no_noise:
        return []
    rows = [_planned(number, words_of(result).exact) for number in result.about.planned]
    for column in ("noise_95", "sampling_error", "increase"):
        rows = _without_empty(rows, column)
    return rows


def _planned(number: PlannedNumber, exact: str) -> Cells:
    cells = {"statistic": _text(number.name)}
    noise, half, sampling = number.noise_std, number.noise_95, number.sampling_std
    if noise is None:
        return cells | {"noise_std": NOTHING, "noise_95": NOTHING, "sampling_error": NOTHING, "increase": NOTHING}
    cells["noise_std"] = powers(significant(noise)) if noise else _text(exact)
    cells["noise_95"] = say("±{thin}{half}", thin=THIN, half=powers(significant(half))) if half else NOTHING
    cells["sampling_error"] = powers(significant(sampling)) if sampling else NOTHING
    cells["increase"] = _increase(noise, sampling) if sampling else NOTHING
    return cells


def _increase(noise: float, sampling: float) -> Markup:
    """Say by how much noise makes a sampling error larger; both add in squares."""
    together = math.hypot(noise, sampling)
    return say("+{percent}{thin}%", percent=significant(100 * (together / sampling - 1)), thin=THIN)


def costs(result: ProtectedResult) -> list[Cells]:
    """Tabulate standard errors without and with the noise, and the sample that would be as precise."""
    if result.certificate.no_noise:
        return []
    rows = [_cost(row, result.certificate.k) for row in result.values]
    for column in ("unit", "sampling_error", "together", "increase", "equivalent_sample"):
        rows = _without_empty(rows, column)
    return rows


def _cost(row: ReleasedValue, k: int) -> Cells:
    """Compute a row; both errors add in squares, and the sampling error falls as the root of the sample."""
    noise, sampling = row.noise_std, row.sampling_std
    cells = {"statistic": _text(row.name), "unit": _unit(row.unit)}
    if noise is None:
        columns = ("sampling_error", "noise", "together", "increase", "equivalent_sample")
        return cells | dict.fromkeys(columns, NOTHING)
    if not sampling:
        empty = dict.fromkeys(("together", "increase", "equivalent_sample"), NOTHING)
        return cells | {"sampling_error": NOTHING, "noise": powers(significant(noise))} | empty
    together = math.hypot(noise, sampling)
    return cells | {
        "sampling_error": powers(significant(sampling)),
        "noise": powers(significant(noise)),
        "together": powers(significant(together)),
        "increase": _increase(noise, sampling),
        "equivalent_sample": say("{size} of {k}", size=count(worth(noise, sampling, k)), k=count(k)),
    }


def worth(noise: float, sampling: float, k: int) -> int:
    """Compute the size of a sample without noise that has the error of this one, rounded down.

    >>> worth(noise=0.56, sampling=0.57, k=500)
    254
    """
    return math.floor(k * (sampling / math.hypot(noise, sampling)) ** 2)


def cost(result: ProtectedResult) -> Markup:
    """State the cost in a sentence: the samples that would be as precise."""
    k = result.certificate.k
    sizes = sorted(
        worth(row.noise_std, row.sampling_std, k) for row in result.values if row.noise_std and row.sampling_std
    )
    if not sizes or result.certificate.no_noise:
        return Markup("")
    among = count(sizes[0]) if sizes[0] == sizes[-1] else f"{count(sizes[0])} to {count(sizes[-1])}"
    words = "With the noise the release is as precise as that of a sample of {among} instead of {k}."
    return say(words, among=among, k=count(k))


def comparison(result: ProtectedResult) -> list[Cells]:
    """Noise, promise and certificate of this method and of each baseline; none without baselines."""
    if not result.baselines:
        return []
    return [_own(result), *(_baseline(result, finding) for finding in result.baselines)]


def totals(result: ProtectedResult) -> list[Cells]:
    """Error of this method and of differential privacy on all records, number by number; none unless compared."""
    if len(result.totals) != 2 or any(total.value is None for total in result.totals):
        return []
    ours, theirs = result.totals
    rows = []
    for name, own in ours.detail.items():
        other = theirs.detail[name]
        rows.append(
            {
                "statistic": _text(name),
                "own_error": powers(significant(own)),
                "other_error": powers(significant(other)),
                "times_ours": _text(significant(other / own)) if own else NOTHING,
            }
        )
    return rows


def total(result: ProtectedResult) -> Markup:
    """Which of the two has the smaller error, what it promises, and what that rests on; empty unless compared."""
    if len(result.totals) != 2 or not words_of(result).errs:
        return Markup("")
    ours, theirs = result.totals
    reason = theirs.reason or ours.reason
    if reason is not None:
        return say("No total error is compared: {reason}.", reason=reasons.words(reason))
    smaller = [name for name, own in ours.detail.items() if theirs.detail[name] < own]
    n_all = len(ours.detail)
    among = f"{count(len(smaller))} of {count(n_all)} numbers"
    if len(smaller) == n_all:
        among = "every number" if n_all > 1 else "this number"
    n = count(result.certificate.n)
    errs = fill(result, words_of(result).errs)
    if len(smaller) == n_all:
        verdict = f"Differential privacy on all {n} has the smaller total error for {among}: use it where you can."
    elif smaller:
        verdict = f"Differential privacy on all {n} has the smaller total error for {among}."
    else:
        verdict = f"This release has the smaller total error{'' if n_all == 1 else ' for every number'}."
    promise = "It promises more: it protects every record of any data, also people outside of the file."
    if not smaller:
        promise = "Differential privacy promises more: it protects every record of any data."
    ranges = " ".join(phrases.words(term) for term in theirs.assumptions)
    return say("{errs} {verdict} {promise} {ranges}", errs=errs, verdict=verdict, promise=promise, ranges=ranges)


def _times_ours(result: ProtectedResult, finding: Finding) -> Markup:
    """Return the ratio of the noises, number by number where they differ."""
    value, ours = finding.value, result.noise_rms
    if value is None or not ours:
        return NOTHING
    own = result.certificate.noise.rms
    if len(finding.detail) == len(own):
        ratios = [theirs / ours for theirs, ours in zip(finding.detail.values(), own, strict=True) if ours]
        low, high = significant(min(ratios)), significant(max(ratios))
        return _text(low) if low == high else _text(f"{low} to {high}")
    return _text(significant(value / ours))


def _own(result: ProtectedResult) -> Cells:
    confidence = result.certificate.confidence
    certified = "certified" if confidence >= 1 else f"certified at {percent(confidence)}"
    return {
        "method": _text(capital(OURS)),
        "noise": powers(significant(result.noise_rms)),
        "times_ours": _text("1"),
        "promise": _text(_whom(result, result.on_average)),
        "certificate": _text(certified),
    }


def _baseline(result: ProtectedResult, finding: Finding) -> Cells:
    """Describe a method that is compared; without a number, the reason in place of the certificate."""
    level = finding.confidence
    sampled = level is not None and level < 1
    status = f"{finding.status} at {percent(level)}" if sampled and level is not None else finding.status
    value = finding.value
    return {
        "method": _text(title(finding.release, finding.scope, result.unit)),
        "noise": NOTHING if value is None else powers(significant(value)),
        "times_ours": _times_ours(result, finding),
        "promise": _text(_whom(result, finding.scope.kind == "average")),
        "certificate": _text(reasons.words(finding.reason) if finding.reason else status),
    }


def _whom(result: ProtectedResult, average: bool) -> str:
    return f"a random {result.unit}" if average else f"every {result.unit}"


def _released(value: float | None, half: float) -> Markup:
    """Write a value to the second digit of its noise; all digits where there is none."""
    if value is None:
        return NOTHING
    if not half:
        return _text(f"{value:,.12g}".replace("-", "\N{MINUS SIGN}"))
    places = 1 - math.floor(math.log10(half))
    if not value or 0 <= places < 8:
        return _text(near(value, max(0, places)))
    return powers(significant(value, max(1, math.floor(math.log10(abs(value))) + places + 1)))


def _without_empty(rows: Sequence[Cells], column: str) -> list[Cells]:
    """Return the rows without a column whose cells are all empty."""
    if any(row[column] not in ("", NOTHING) for row in rows):
        return list(rows)
    return [{name: cell for name, cell in row.items() if name != column} for row in rows]


def _unit(unit: str) -> Markup:
    """Keep a short unit on one line."""
    return _text(unit.replace(" ", "\u00a0") if len(unit) <= SHORT else unit)


def _text(text: str) -> Markup:
    return Markup.escape(text)
