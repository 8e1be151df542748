"""What is drawn on the axes of one release, for every kind of report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from leakbound.core.checks import one_of
from leakbound.core.tradeoff import EpsilonDelta, Piecewise
from leakbound.reports import Curve, Report
from leakbound.reports.charts.canvas import DASHED, DOTTED, shorten
from leakbound.reports.charts.curves import FALSE_ALARMS, Line, Role
from leakbound.reports.phrases import RELEASES, WITHOUT, place, row_word
from leakbound.reports.results.audit.result import Result, results
from leakbound.reports.results.bound import BoundResult, bound_result, curve_name
from leakbound.reports.results.curves import RATES, SMALL_ADVANTAGE
from leakbound.reports.results.parts import attack_words
from leakbound.reports.results.release.result import release_result
from leakbound.reports.results.words import GREEK
from leakbound.reports.sentences import Sentence

_CEILING_FLOOR = 1e-4  # smallest rate of a ceiling that is drawn alone
_CEILING_OF = {"joint": "all releases", "joint_of_one": "all releases"}  # of a ledger
PARAMETER = re.compile(r"(epsilon|delta|mu|eta) = (inf|\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w.]*\w)")
LONGEST = 32  # characters of the name of a ceiling
_DASH_DOT, _DOTS = (0, (4, 1.2, 1, 1.2)), (0, (2.2, 1.4))
_CEILINGS: dict[str, tuple[Role, object]] = {
    "claimed": ("ceiling", DASHED),
    "certified": ("ceiling", DASHED),
    "asymptotic": ("asymptotic", _DOTS),
}


@dataclass(frozen=True)
class Chart:
    """The curves of one release."""

    lines: Sequence[Line]
    floor: float
    fpr: Sequence[float]
    valued: Sequence[Role]
    n_nonmember: int = 0
    remarks: Sequence[str] = ()
    found: str = "members found"
    false_alarm: str = "non-members called members"


def chart(report: Report, release: str | None = None) -> Chart:
    """Return the chart of a release, of the first one if none is named; all curves of a bound if none is."""
    return CHARTS[one_of("kind of report", report.about.kind, CHARTS)](report, release)


def audit_chart(report: Report, release: str | None) -> Chart:
    """Guessing, ceilings, and the attacks from the weakest to the best."""
    by_name = {result.name: result for result in results(report)}
    result = by_name[_known(release, list(by_name))]
    floor = floor_of(report)
    lines = lines_of(result, floor)
    games = max((curve.n_nonmember for curve in result.curves), default=0)
    claimed = any(line.role == "ceiling" for line in lines)
    attacked = any(line.role in ("best", "attack") for line in lines)
    remarks = [] if claimed else ["no claim was made"]
    remarks += _vacuous(lines) + ([] if attacked else ["too few games for a curve"])
    return Chart(lines, floor, result.about.fpr, ("best", "ceiling"), games, remarks)


def bound_chart(report: Report, release: str | None) -> Chart:
    """Guessing, the ceilings of a bound, and the attacks that were run as well."""
    result = bound_result(report)
    names = list(dict.fromkeys(place(curve) for curve in result.curves))
    places = names if release is None else [_known(release, names)]
    fpr = result.about.fpr
    floor = _floor(report, fpr)
    curves = [curve for curve in result.curves if place(curve) in places]
    lines = [_guessing(floor)]
    lines += [_bound_line(curve, result, floor) for curve in curves if curve.role != "measured"]
    lines += [measured_line(curve, curve.name, best=True) for curve in curves if curve.role == "measured"]
    games = max((curve.n_nonmember for curve in curves), default=0)
    return Chart(lines, floor, fpr, ("best", "ceiling", "asymptotic"), games, _vacuous(lines))


def protected_chart(report: Report, release: str | None) -> Chart:
    """Guessing, the certified ceiling, the best attacker without noise, and the lower limits of attacks."""
    result = release_result(report)
    names = list(dict.fromkeys(place(curve) for curve in result.curves))
    places = names if release is None else [_known(release, names)]
    curves = [curve for curve in result.curves if place(curve) in places]
    floor, fpr = _floor(report, result.about.fpr), result.about.fpr
    unprotected = [curve for curve in curves if curve.release == WITHOUT or curve.role == "asymptotic"]
    attacks = [curve for curve in curves if curve.role == "measured" and curve not in unprotected]
    attacks = [curve for curve in attacks if not curve.n_nonmember or curve.n_nonmember > FALSE_ALARMS]
    attacks.sort(key=lambda curve: curve.tradeoff.advantage())
    lines = [_guessing(floor)]
    lines += [_protected_line(curve, floor) for curve in curves if curve.role in ("certified", "claimed")]
    lines += [_unprotected_line(curve, floor) for curve in unprotected]
    lines += [_lower_line(curve, best=curve is attacks[-1]) for curve in attacks]
    games = max((curve.n_nonmember for curve in attacks), default=0)
    remarks = _vacuous(lines)
    crowded = len(attacks) > 0 and result.advantage < SMALL_ADVANTAGE  # the list of names has the values
    valued: Sequence[Role] = () if crowded else ("best", "ceiling")
    promise = result.certificate.promise
    found, false_alarm = Sentence(f"axis.found_{promise}"), Sentence(f"axis.false_alarm_{promise}")
    return Chart(lines, floor, fpr, valued, games, remarks, str(found), str(false_alarm))


def curve_chart(curve: Curve) -> Chart:
    """Return a single curve, with guessing."""
    floor = _floor_of_games(curve.n_nonmember) if curve.role == "measured" else _CEILING_FLOOR
    if curve.role == "measured":
        line = measured_line(curve, curve.name, best=True)
    else:
        role, dashes = _CEILINGS[curve.role]
        name = shorten(_first_parameter(curve.name), LONGEST)
        line = Line(name, curve.tradeoff, role, floor, dashes=dashes, at_most=True)
    return Chart([_guessing(floor), line], floor, RATES, (line.role,), curve.n_nonmember)


def _lower_line(curve: Curve, best: bool) -> Line:
    """Return an attack at the lower limit of its curve: near the ceiling an estimate may exceed it by chance."""
    if len(curve.band_fpr) and curve.n_nonmember:
        low = np.maximum.accumulate(np.asarray(curve.low, dtype=float))
        curve = replace(curve, tradeoff=Piecewise(curve.band_fpr, 1 - low), band_fpr=(), low=(), high=())
    return measured_line(curve, attack_words(curve.name), best)


def _unprotected_line(curve: Curve, floor: float) -> Line:
    label = RELEASES[WITHOUT] + (" (asymptotic)" if curve.role == "asymptotic" else "")
    return Line(label, curve.tradeoff, "unprotected", floor, dashes=_DASH_DOT)


def _protected_line(curve: Curve, floor: float) -> Line:
    """Return a ceiling; that of every record has no name of its own."""
    role, dashes = _CEILINGS[curve.role]
    label = "certified ceiling"
    if curve.release:
        label = shorten(f"ceiling, {_CEILING_OF.get(curve.release, curve.release)}", LONGEST)
    return Line(label, curve.tradeoff, role, floor, dashes=dashes, release=curve.release, at_most=True)


def _floor(report: Report, fpr: Sequence[float]) -> float:
    """Return the decade below the smallest rate asked for, and below ten false alarms if attacks were run."""
    floor = float(np.clip(10.0 ** (np.floor(np.log10(min(fpr, default=0.01))) - 1), 1e-5, 1e-2))
    measured = any(curve.role == "measured" for curve in report.curves)
    return min(floor, floor_of(report)) if measured else floor


CHARTS: Mapping[str, Callable[[Report, str | None], Chart]] = {
    "audit": audit_chart,
    "bound": bound_chart,
    "protected": protected_chart,
}


def lines_of(result: Result, floor: float) -> list[Line]:
    """Return the lines of an audited release in the order of drawing: guessing, ceilings, attacks."""
    lines = [_guessing(floor)]
    for curve in result.ceilings:
        role, dashes = _CEILINGS[curve.role]
        lines.append(Line(_ceiling_label(curve), curve.tradeoff, role, floor, dashes=dashes, at_most=role == "ceiling"))
    rank = {name: place for place, name in enumerate((result.best, *result.attacks))}
    measured = [curve for curve in result.curves if curve.role == "measured"]
    attacks = [curve for curve in measured if curve.n_nonmember > FALSE_ALARMS]
    for curve in sorted(attacks, key=lambda curve: (curve.name == result.best, -rank.get(curve.name, 0))):
        stated = {
            finding.operating_point["fpr"]: finding.value
            for finding in result.findings
            if finding.quantity == "tpr" and finding.attack == curve.name and finding.value is not None
        }
        title, best = result.attack_title(curve.name), curve.name == result.best
        lines.append(measured_line(curve, title, best, stated))
    return lines


def measured_line(curve: Curve, title: str, best: bool, stated: Mapping[float, float] | None = None) -> Line:
    """Return the line of an attack, from ten false alarms or its strictest threshold on."""
    fpr = np.asarray(curve.tradeoff.knots, dtype=float)
    tpr = np.asarray(curve.tradeoff.tpr_at(fpr))
    inner = np.unique(np.column_stack([fpr, tpr])[(fpr + tpr > 0) & (fpr + tpr < 2)], axis=0)
    begin = 0.0
    if len(inner):
        begin = float(fpr[fpr > 0].min(initial=1.0))  # the strictest threshold
        if curve.n_nonmember:
            begin = max(begin, FALSE_ALARMS / curve.n_nonmember)
    return Line(
        shorten(title),
        curve.tradeoff,
        "best" if best else "attack",
        begin,
        (float(inner[0, 0]), float(inner[0, 1])) if len(inner) == 1 else None,
        (curve.band_fpr, curve.low, curve.high),
        _DASH_DOT if curve.name == "loss" else "solid",
        stated or {},
        name=curve.name,
    )


def _first_parameter(name: str) -> str:
    """Print only the first parameter of a bound, with its Greek letter; another name as it is."""
    first = PARAMETER.match(name)
    return f"{GREEK[first[1]]} = {first[2]}" if first else name


def _bound_line(curve: Curve, result: BoundResult, floor: float) -> Line:
    """Return a ceiling of a bound under its own name."""
    role, dashes = _CEILINGS[curve.role]
    name = curve_name(curve, row_word(result.about))
    label = shorten(_first_parameter(name), LONGEST) + (" (asymptotic)" if role == "asymptotic" else "")
    rates = [rate for rate in result.findings if rate.quantity == "tpr" and place(rate) == place(curve)]
    at_most = role == "ceiling" or any(rate.bound_type == "upper" for rate in rates)
    return Line(label, curve.tradeoff, role, floor, dashes=dashes, release=place(curve), at_most=at_most)


def _guessing(floor: float) -> Line:
    return Line("guessing", EpsilonDelta(0.0), "guessing", floor, dashes=DOTTED)


def _known(name: str | None, names: Sequence[str]) -> str:
    """Look up a release of the report, the first one if none is named."""
    if names and name in (None, *names):
        return names[0] if name is None else name
    raise KeyError(f"no release {name!r}; this report has: {', '.join(names) or 'none'}")


def _vacuous(lines: Sequence[Line]) -> list[str]:
    labels = [line.label for line in lines if line.role == "ceiling" and line.vacuous]
    return [f"{label}: a ceiling this high excludes nothing" for label in labels[:1]]


def _ceiling_label(curve: Curve) -> str:
    """``ceiling if ε = 4`` of a claim, ``certified ceiling`` of a proof, or its own name."""
    if curve.role == "certified":
        return "certified ceiling"
    if curve.role == "asymptotic":
        return f"{shorten(curve.name)} (asymptotic)"
    claim = curve.verdict.claim if curve.verdict is not None else None
    name = curve.name if claim is None else f"{GREEK[claim.quantity]} = {claim.value:g}"
    return shorten(f"ceiling if {name}", LONGEST)


def floor_of(report: Report, lowest: float = 1e-5) -> float:
    """Return the decade below ten false alarms, the same for every release of a page.

    At least two decades are drawn, and nothing below 0.001 %.
    """
    return _floor_of_games(max((curve.n_nonmember for curve in report.curves), default=0), lowest)


def _floor_of_games(games: int, lowest: float = 1e-5) -> float:
    """Return the decade below ten false alarms of so many games."""
    decade = np.floor(np.log10(FALSE_ALARMS / games)) if games > FALSE_ALARMS else -2.0
    return float(np.clip(10.0**decade, lowest, 1e-2))
