"""What may be said of two reports: a difference is one only where the intervals do not overlap."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from leakbound.core.findings import Finding
from leakbound.reports import Curve, Report
from leakbound.reports.about import AttributeAbout, AuditAbout, releases_of
from leakbound.reports.comparison import Comparison, apart
from leakbound.reports.numbers import MINUS, count, percent, percent_at_most, plain_number
from leakbound.reports.phrases import plural
from leakbound.reports.publication import is_for_owner
from leakbound.reports.results.attribute import attribute_results
from leakbound.reports.results.audit.result import Result, results
from leakbound.reports.results.bound import bound_result
from leakbound.reports.results.curves import RATES
from leakbound.reports.results.dots import Dot, dot
from leakbound.reports.results.findings import FRACTIONS, OF_100, Text, interval_of, place_of, quantity_of, value_of
from leakbound.reports.results.made import Named, program
from leakbound.reports.results.quantities import shown
from leakbound.reports.results.words import capital, cited
from leakbound.reports.sentences import Sentence, Texts

Kind = Literal["measured", "gain", "ceiling"]
MOST_SHORT = 8  # rows of a terminal
NONE = Sentence("value.none")


@dataclass(frozen=True)
class Standing:
    """The number by which a report is compared, or why there is none."""

    name: str
    kind: Kind
    finding: Finding | None
    prior: float | None = None
    why: Sentence | None = None
    curve: Curve | None = None
    curve_title: str = ""
    digest: str = ""
    game: str = ""

    @property
    def value(self) -> float:
        """The number."""
        return 0.0 if self.finding is None else self.finding.value or 0.0

    @property
    def text(self) -> str:
        """The number in cases of 100."""
        return "" if self.finding is None else shown(self.finding).value

    @property
    def interval(self) -> str:
        """Its interval."""
        return "" if self.finding is None else shown(self.finding).interval

    @property
    def begun(self) -> str:
        """The name at the beginning of a sentence: that of a release stays as it is."""
        return begun(self.name)


@dataclass(frozen=True)
class Judged:
    """What is said of two reports, and how that was judged."""

    first: Standing
    second: Standing
    sentence: Sentence
    notes: Sequence[Sentence] = ()


def judged(comparison: Comparison) -> Judged:
    """Judge two reports by the strongest attack on, or the largest ceiling of, each.

    >>> import leakbound as ls
    >>> same = ls.compare(ls.bound("dp", epsilon=1.0), ls.bound("dp", epsilon=1.0))
    >>> str(judged(same).sentence)
    'The first report and the second report allow the same: at most 73.2 of 100 cases.'
    """
    first, second = _named(
        _standing(comparison.first, comparison.names[0]), _standing(comparison.second, comparison.names[1]), comparison
    )
    why = _why_not(first, second)
    if why is not None:
        gaps: dict[str, Text] = {"begun": first.begun, "second": second.name, "why": why}
        return Judged(first, second, Sentence("compared.not_compared", gaps))
    if first.kind != second.kind:
        return Judged(first, second, _mixed(first, second))
    if first.kind == "ceiling":
        return Judged(first, second, _of_ceilings(first, second))
    return Judged(first, second, _of_measured(first, second), _notes(first, second))


def begun(name: str) -> str:
    """Begin a sentence with a name: that of a report by its order gets a capital.

    >>> begun("the first report"), begun("forest")
    ('The first report', 'forest')
    """
    return capital(name) if name in Comparison.names else name


def _standing(report: Report, name: str) -> Standing:
    return STANDINGS[report.about.kind](report, name)


def _of_audit(report: Report, name: str) -> Standing:
    """Take the release of an audit that reveals most, by its strongest attack."""
    found = results(report)
    result = max(found, key=lambda result: result.strength)
    below = [result.title for result in found if result.below_chance is not None]
    why = None
    if result.too_few:
        why = Sentence("not_compared.too_few", {"name": result.title, "games": count(result.n_games)})
    elif result.is_withheld:
        why = Sentence("not_compared.other_source", {"name": result.title})
    elif below:
        why = Sentence("not_compared.below_chance", {"name": below[0]})
    curves = {curve.name: curve for curve in result.curves if curve.role == "measured"}
    return Standing(
        result.title,
        "measured",
        result.accuracy,
        result.prior,
        why,
        curves.get(result.best),
        result.attack_title(result.best) if result.best else "",
        result.facts.data.digest,
        result.facts.game,
    )


def _of_attribute(report: Report, name: str) -> Standing:
    """Take the release that adds most to guesses of an attribute."""
    found = attribute_results(report)

    def least(gain: Finding | None) -> float:
        return -2.0 if gain is None or gain.low is None else gain.low

    result = max(found, key=lambda result: least(result.gain))
    return Standing(result.title, "gain", result.gain, digest=result.facts.data.digest, game=result.facts.attribute)


def _of_ceiling(report: Report, name: str) -> Standing:
    """Take the accuracy that a bound, or the promise of a protected release, allows."""
    known = [finding for finding in _ceilings(report) if finding.quantity == "accuracy" and finding.value is not None]
    accuracy = next((finding for finding in known if finding.bound_type != "lower"), None)
    curve = next((curve for curve in report.curves if curve.role != "measured"), None)
    prior = None if accuracy is None else accuracy.operating_point.get("prior")
    return Standing(name, "ceiling", accuracy, prior, curve=curve)


def _ceilings(report: Report) -> list[Finding]:
    """List findings that no attack measured, those that come first on the page first."""
    if report.about.kind != "bound":
        return [finding for finding in report.findings if not finding.attack and not finding.release]
    headline = bound_result(report).headline
    return [] if headline is None else [headline]


STANDINGS: Mapping[str, Callable[[Report, str], Standing]] = {
    "audit": _of_audit,
    "attribute": _of_attribute,
    "bound": _of_ceiling,
    "protected": _of_ceiling,
}


def _named(first: Standing, second: Standing, comparison: Comparison) -> tuple[Standing, Standing]:
    """Add the names of the reports where the releases have the same name."""
    if first.name != second.name:
        return first, second
    names = [f"{standing.name} ({name})" for standing, name in zip((first, second), comparison.names, strict=True)]
    return replace(first, name=names[0]), replace(second, name=names[1])


def _why_not(first: Standing, second: Standing) -> Sentence | None:
    """Say why two numbers cannot be compared; None where they can."""
    for standing in (first, second):
        if standing.why is not None:
            return standing.why
        if standing.finding is None or standing.finding.value is None:
            return Sentence("not_compared.none", {"name": standing.name})
        if standing.kind != "ceiling" and (standing.finding.low is None or standing.finding.high is None):
            return Sentence("not_compared.no_interval", {"name": standing.name})
    if "gain" in (first.kind, second.kind) and first.kind != second.kind:
        return Sentence("not_compared.attribute")
    if first.kind == "gain" and first.game != second.game:
        return Sentence("not_compared.attributes_differ", {"first": first.game, "second": second.game})
    if first.prior != second.prior and first.prior is not None and second.prior is not None:
        priors = {"first": plain_number(first.prior), "second": plain_number(second.prior)}
        return Sentence("not_compared.priors_differ", priors)
    return None


def _of_measured(first: Standing, second: Standing) -> Sentence:
    """Say which of two measured numbers is larger, if their intervals do not overlap."""
    if first.finding is not None and second.finding is not None and apart(first.finding, second.finding):
        more, less = (first, second) if first.value > second.value else (second, first)
        gaps = {"begun": more.begun, "less": less.name, "high": more.text, "high_interval": more.interval}
        return Sentence(f"compared.{first.kind}_apart", gaps | {"low": less.text, "low_interval": less.interval})
    gaps = {"first": first.name, "second": second.name, "one": first.text, "one_interval": first.interval}
    return Sentence(f"compared.{first.kind}_alike", gaps | {"other": second.text, "other_interval": second.interval})


def _mixed(first: Standing, second: Standing) -> Sentence:
    measured, ceiling = (first, second) if first.kind == "measured" else (second, first)
    gaps = {"measured": measured.begun, "right": measured.text, "interval": measured.interval}
    return Sentence("compared.mixed", gaps | {"ceiling": ceiling.begun, "most": ceiling.text})


def _of_ceilings(first: Standing, second: Standing) -> Sentence:
    statuses = [standing.finding.status for standing in (first, second) if standing.finding is not None]
    asymptotic = "_asymptotic" if "asymptotic" in statuses else ""  # proved only in the limit
    if first.value == second.value:
        gaps = {"begun": first.begun, "second": second.name, "right": first.text}
        return Sentence(f"compared.same_ceiling{asymptotic}", gaps)
    more, less = (first, second) if first.value > second.value else (second, first)
    gaps = {"begun": more.begun, "less": less.name, "high": more.text, "low": less.text}
    return Sentence(f"compared.ceilings{asymptotic}", gaps)


def _notes(first: Standing, second: Standing) -> list[Sentence]:
    """Say how the difference was judged, and what may be its reason."""
    found = [standing.finding for standing in (first, second) if standing.finding is not None]
    levels = sorted({finding.confidence or 0.0 for finding in found})
    gaps = {"level": percent(levels[0]), "other_level": percent(levels[-1])}
    most = percent(round(1 - levels[0], 12))
    notes = [Sentence("difference.levels" if len(levels) > 1 else "difference.level", gaps | {"most": most})]
    if first.digest and second.digest and first.digest != second.digest:
        notes.append(Sentence("difference.other_records"))
    if first.game != second.game:
        games = {"first": first.game.replace("_", " "), "second": second.game.replace("_", " ")}
        notes.append(Sentence("difference.other_games", games))
    over_points = [standing for standing in (first, second) if _interval_over(standing) == "points"]
    return [*notes, *(Sentence("difference.one_model", {"name": standing.name}) for standing in over_points)]


def _interval_over(standing: Standing) -> str:
    return "" if standing.finding is None else standing.finding.interval_over


def comparison_page(comparison: Comparison) -> Texts:
    """Write two reports down."""
    said = judged(comparison)
    rows = all_rows(comparison)
    is_apart = [row for row in rows if row.is_apart]
    others = [row for row in rows if not row.is_apart]
    strongest = _strongest(comparison)
    first, second = _compared(comparison, said)
    return Texts(
        title=comparison.title,
        first=first,
        second=second,
        is_for_owner=any(is_for_owner(report) for report in _both(comparison)),
        sentence=said.sentence,
        notes=said.notes,
        dots=dots_of(said),
        strongest=strongest,
        short=strongest or [*is_apart, *others][:MOST_SHORT],
        fpr=percent(RATES[0]),
        curves=_rates(said),
        with_release=any(row.release for row in rows),
        apart=is_apart,
        others=others,
        n_apart=count(len(is_apart)),
        n_others=count(len(others)),
        made=program(),
    )


def _compared(comparison: Comparison, said: Judged) -> list[Texts]:
    """Name both reports, and the columns of their numbers: by the releases where each report has one."""
    has_one = all(len(releases_of(report.about)) < 2 for report in _both(comparison))
    by_release = has_one and said.first.kind == said.second.kind == "measured"
    compared = []
    for report, name, standing in zip(_both(comparison), comparison.names, (said.first, said.second), strict=True):
        head = standing.name if by_release else begun(name)
        compared.append(Texts(name=name, release=standing.name, head=head, digest=report.digest()))
    return compared


def dots_of(said: Judged) -> list[Dot]:
    """List the accuracies that can be drawn on one axis: both, or none."""
    dots: list[Dot] = []
    for standing in (said.first, said.second):
        has_number = standing.finding is not None and standing.finding.value is not None
        if standing.why is not None or standing.kind == "gain" or not has_number:
            return []
        if standing.kind == "ceiling":
            dots.append(Dot(standing.name, 100 * standing.value, f"≤ {standing.text}", "ceiling"))
        else:
            dots.append(dot(standing.name, standing.finding, "attack" if dots else "best"))
    return dots if said.first.prior == said.second.prior else []


def _rates(said: Judged) -> list[Named]:
    """State the members that each curve finds or allows at the rate that a reader looks at first."""
    rates = []
    for standing in (said.first, said.second):
        if standing.curve is not None:
            written = percent_at_most if standing.kind == "ceiling" else percent
            rates.append(Named(standing.name, written(float(standing.curve.tradeoff.tpr_at(RATES[0])))))
    return rates


def _strongest(comparison: Comparison) -> list[Texts]:
    """Compare the strongest attack on each, whichever it is; empty where not both are audits of membership."""
    if comparison.first.about.kind != "audit" or comparison.second.about.kind != "audit":
        return []
    one, other = (max(results(report), key=lambda result: result.strength) for report in _both(comparison))
    rows = []
    wanted: list[tuple[str, dict[str, float]]] = [("accuracy", {})]
    wanted += [("tpr", {"fpr": fpr}) for fpr in one.about.fpr if fpr in other.about.fpr]
    wanted.append(("auc", {}))
    for quantity, at in wanted:
        before, after = (result.find(quantity, result.best, **at) for result in (one, other))
        if before is not None and after is not None and before.operating_point == after.operating_point:
            places = {"fpr": percent(at.get("fpr", 0.0)), "prior": place_of("prior", one.prior)}
            rows.append(_row("", Sentence(f"strongest.{quantity}", places), before, after))
    if one.most_exposed is not None and other.most_exposed is not None:
        name = quantity_of(one.most_exposed, one.about.unit)
        rows.append(_row("", name, one.most_exposed, other.most_exposed))
    if one.games is not None and other.games is not None and one.first_exposed and other.first_exposed:
        rows.append(_exposed(one, other))
    return rows


def _exposed(one: Result, other: Result) -> Texts:
    """Compare the numbers of records that are exposed beyond chance."""
    name = Sentence("quantity.exposed_beyond_chance", {"units": capital(plural(one.about.unit))})
    cells = []
    for result in (one, other):
        parts = {"part": count(result.n_exposed), "whole": count(result.facts.target_points)}
        cells.append(Sentence("value.part", parts))
    difference = f"{other.n_exposed - one.n_exposed:+,}".replace("-", MINUS)
    return Texts(release="", quantity=name, first=cells[0], second=cells[1], difference=difference, is_apart=False)


def all_rows(comparison: Comparison) -> list[Texts]:
    """Compare every number of the two reports that at least one of them has."""
    titles = {facts.name: facts.title for report in _both(comparison) for facts in releases_of(report.about)}
    has_several = len({pair.key.release for pair in comparison.pairs}) > 1
    rows = []
    for pair in comparison.pairs:
        for report, finding in zip(_both(comparison), (pair.before, pair.after), strict=True):
            if finding is not None and finding.value is not None:
                name = quantity_of(finding, report.about.unit, _attack_title(report, finding.attack))
                if pair.key.source:  # two theorems are about this number
                    name = Sentence("compared.by_source", {"quantity": name, "source": cited(pair.key.source)})
                release = (titles.get(pair.key.release) or pair.key.release) if has_several else ""
                rows.append(_row(release, name, pair.before, pair.after))
                break
    return rows


def _both(comparison: Comparison) -> tuple[Report, Report]:
    return comparison.first, comparison.second


def _attack_title(report: Report, name: str) -> str:
    """Return the title that a report has for an attack; empty where it has none."""
    about = report.about
    if not isinstance(about, AuditAbout | AttributeAbout) or name not in about.attacks:
        return ""
    return about.attacks[name].title or name


def _row(release: str, quantity: Sentence, before: Finding | None, after: Finding | None) -> Texts:
    is_apart = before is not None and after is not None and apart(before, after)
    return Texts(
        release=release,
        quantity=quantity,
        first=_cell(before),
        second=_cell(after),
        difference=_difference(before, after),
        is_apart=is_apart,
    )


def _cell(finding: Finding | None) -> Text:
    """Write a number with its interval; a dash where there is none."""
    if finding is None or finding.value is None:
        return NONE
    if not shown(finding).interval and not finding.refused:
        return value_of(finding)
    return Sentence("value.with_interval", {"value": value_of(finding), "interval": interval_of(finding)})


def _difference(before: Finding | None, after: Finding | None) -> Text:
    """Write the second number less the first one, in the unit of the quantity."""
    if before is None or after is None or before.value is None or after.value is None:
        return NONE
    difference = after.value - before.value
    if not math.isfinite(difference) or before.quantity == "most_exposed":  # correct guesses, of different numbers
        return NONE
    if before.quantity in OF_100:
        return Sentence("value.of_100", {"value": f"{100 * difference:+.1f}".replace("-", MINUS)})
    if before.quantity in FRACTIONS:
        return Sentence("compared.points", {"difference": f"{100 * difference:+.1f}".replace("-", MINUS)})
    return f"{difference:+.3g}".replace("-", MINUS)
