"""What ``promises/*.md.jinja`` is handed: every number of a release as finished text, every sentence by its id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leakbound.core.findings import Finding, Term
from leakbound.reports import Report, phrases
from leakbound.reports.about import CertificateFacts, OtherReleaseFacts, ReleasedValue
from leakbound.reports.numbers import (
    count,
    digits,
    near,
    parameter,
    percent,
    percent_at_most,
    powers,
    settled,
)
from leakbound.reports.phrases import RELEASES, WITHOUT
from leakbound.reports.results.curves import SMALL_ADVANTAGE
from leakbound.reports.results.dots import Dot, dot
from leakbound.reports.results.findings import FindingRow, Text, finding_row, interval_head
from leakbound.reports.results.made import made
from leakbound.reports.results.parts import Part, attack_words
from leakbound.reports.results.quantities import shown
from leakbound.reports.results.release.designs import PROMISES, designs_of, rules_checked
from leakbound.reports.results.release.parameters import statistic_notes
from leakbound.reports.results.release.result import ReleaseResult, release_result
from leakbound.reports.results.release.table import (
    MOST_FOLDED,
    MOST_ROWS,
    Table,
    cost_rows,
    first_rows,
    is_crossed,
    planned_rows,
    released,
    sample_worth,
    shortened,
    size,
    span,
    table,
)
from leakbound.reports.results.words import capital, sentence, several, unit_words
from leakbound.reports.sentences import Sentence, Texts, sentences

MOST_ATTACKS = 4  # in the chart
MOST_NAMES = 6  # of numbers without noise, and of other releases
MOST_SIZES = 6  # of the noise
DIGEST = 12  # digits of the digest of an entry
# fractions of the way from guessing to certainty: 52.5, 60 and 75 of 100 at even odds
NOT, HARDLY, BADLY = 0.05, 0.2, 0.5
BY_NOISE = ("told_by_noise", "dominance_by_noise")  # rules that the printed noise may break


def release_page(report: Report) -> Texts:
    """Write a release down; neither the values without noise nor who is most exposed is in it."""
    result = release_result(report)
    about, certificate = result.about, result.certificate
    alpha = settled(1 - certificate.confidence)
    findings = _findings(result)
    n_findings = sum(len(found.rows) for found in findings)
    each = result.by_statistic or (("", result),)
    values = _values(result, each)
    designs = None if about.designs is None else designs_of(about.designs)
    return Texts(
        title=about.title or about.question,
        kind=Sentence(f"release_kind.{_kind(result)}"),
        date=about.date,
        n=several(certificate.n, result.unit),
        n_count=count(certificate.n),
        k=count(certificate.k),
        **unit_words(result.unit),
        whose=Sentence("whom.chosen" if result.on_average else "whom.given", {"unit": result.unit}),
        them=_them(result),
        prior="½" if certificate.prior == 0.5 else f"{count(certificate.k)}/{count(certificate.n)}",
        baseline=near(100 * result.prior_accuracy, 1).removesuffix(".0"),
        n_statistics=several(len(about.statistics), "statistic") if about.statistics else "",
        statistics=_weighted(result),
        eta=f"{certificate.eta:g}",
        eta_of_all=f"{result.eta_of_all:g}",
        right=of_100(result.promised_of_all),
        right_alone=of_100(result.promised),
        probability=_at_most(result.promised_of_all),
        probability_alone=_at_most(result.promised),
        seen=_seen(result),
        failure=percent(alpha) if alpha > 0 else "",
        confidence=percent(certificate.confidence),
        verdict=_verdict(result),
        strength=_strength(result),
        price=_price(result.values, certificate),
        largest=_largest(result),
        is_public=result.public,
        is_owners=not result.public and not about.insecure_seed,
        is_released=bool(result.values),
        is_from_seed=about.insecure_seed,
        is_average=result.on_average,
        is_promise_first=values is None or values.is_wide,
        is_unattacked=_is_unattacked(result),
        is_curve_of_data=not certificate.noise.declared and not result.declares_limits and not certificate.no_noise,
        is_one_promise_said=_is_one_promise_said(result),
        has_ledger=certificate.ledger,
        has_levels=bool(about.plan.get("levels")),
        has_ranges=bool(result.field_of_promise("ranges")),
        has_classes=any(facts and facts.modelled_class for facts in (own.about.parameters for _, own in each)),
        shares_a_budget=result.shares_a_budget,
        contradictions=result.contradictions,
        revealed_by_noise=_revealed_by_noise(result),
        in_short=_in_short(result),
        planned=_planned(each),
        values=values,
        statistic_notes=statistic_notes(result),
        naming=_naming(result),
        best=_best(result),
        exposed="" if result.most_exposed is None or result.public else shown(result.most_exposed).value,
        without_noise=_without_noise(result),
        dots=_dots(result),
        exact=_exact(result.without_any_noise) if certificate.promise != "drawn" else None,
        noise=_noise(result),
        coupling=_coupling(result),
        rates=_rates(result.rates),
        rates_of_all=_rates_of_all(result),
        epsilons=[_privacy(finding) for finding in result.epsilons],
        epsilons_of_all=[_privacy(epsilon, shown(mu).value) for mu, epsilon in result.privacy_of_all],
        practical=None if result.pmp is None else _privacy(result.pmp),
        entry=_entry(result),
        others=_others(certificate),
        assumptions=[capital(sentence(phrases.words(term))) for term in certificate.assumptions],
        ceiling=_ceiling(result) if result.curves else None,
        cost=_cost(result, each),
        designs=designs,
        rules=rules_checked([(capital(name), own.about.rules) for name, own in each]),
        findings=findings,
        interval=interval_head(about.confidence),
        n_findings=several(n_findings, "number"),
        short=_short(each, designs),
        data=_data(result),
        made=_made(report, result),
    )


def of_100(accuracy: float) -> str:
    """Write an accuracy that no attacker exceeds in cases of 100, rounded up."""
    return digits(settled(accuracy), scale=2, most=1, bound_type="upper").value


def _at_most(probability: float) -> str:
    """Write an upper bound on a probability, rounded up."""
    return powers(digits(settled(probability), bound_type="upper").value)


def _kind(result: ReleaseResult) -> str:
    if not result.values:
        return "calibrated"
    return "public" if result.public else "owner"


def _them(result: ReleaseResult) -> Text:
    """Name those whom the promise is about."""
    if any(term.id == "versions_differ" for term in result.certificate.assumptions):
        return Sentence("whom.of_first_version")
    return Sentence("whom.of_all", {"n": several(result.certificate.n, result.unit)})


def _weighted(result: ReleaseResult) -> list[Text]:
    """Name the statistics that were released together, with their weights where these differ."""
    statistics = result.about.statistics
    if len({each.weight for each in statistics}) <= 1:
        return [each.name for each in statistics]
    return [Sentence("size.weighted", {"name": each.name, "weight": f"{each.weight:g}"}) for each in statistics]


def _seen(result: ReleaseResult) -> Sentence:
    """Say what an attacker sees."""
    if result.shares_a_budget:
        return Sentence("seen.all_releases")
    if result.about.statistics:
        return Sentence("seen.statistics", {"n": count(len(result.about.statistics))})
    return Sentence("seen.release")


def _verdict(result: ReleaseResult) -> Text:
    confidence = result.certificate.confidence
    if not result.proved:
        return ""
    return Sentence("proved.at", {"level": percent(confidence)}) if confidence < 1 else Sentence("proved.certain")


def _strength(result: ReleaseResult) -> Texts:
    gained = min(1.0, settled(result.eta_of_all / (1 - result.prior_accuracy)))
    return Texts(
        is_hidden=gained <= NOT,
        is_hard=NOT < gained <= HARDLY,
        is_better=HARDLY < gained <= BADLY,
        is_weak=gained > BADLY,
    )


def _price(values: Sequence[ReleasedValue], certificate: CertificateFacts) -> Text:
    """Compare the noise with the sampling error; empty where that is not known."""
    ratios = [row.noise_std / row.sampling_std for row in values if row.noise_std and row.sampling_std]
    return span(ratios) if ratios and not certificate.no_noise else ""


def _largest(result: ReleaseResult) -> Text:
    """Name the sums and means, of which the printed noise reveals the largest value."""
    asked = result.about.plan.get("statistic")
    parts = asked if isinstance(asked, list) else [result.about.plan]
    names = [part.get("statistic") for part in parts if isinstance(part, dict)]
    known = [name for name in ("sum", "mean") if name in names]
    return Sentence(f"largest.{'_or_'.join(known)}") if known else ""


def _revealed_by_noise(result: ReleaseResult) -> list[Sentence]:
    """Say, for the owner, of which numbers the noise reveals the largest contribution, or that it dominates."""
    rules = [*result.about.rules, *(rule for each in result.about.statistics for rule in each.rules)]
    warnings = []
    for rule_id in BY_NOISE:
        failing = [(rule, name) for rule in rules if rule.rule == rule_id for name in rule.failing]
        if failing:
            rule, name = failing[0]
            gaps: dict[str, Text] = {key: percent(value) for key, value in rule.thresholds.items()}
            gaps |= {"n": count(int(rule.thresholds.get("n", 1))), "name": name}
            if len(failing) > 1:
                gaps["name"] = Sentence("size.name_and_more", {"name": name, "n": count(len(failing) - 1)})
            warnings.append(Sentence(f"by_noise.{rule_id}", gaps))
    return warnings


def _in_short(result: ReleaseResult) -> Texts | None:
    """Say what would be released, under which promise, with how much noise; nothing once it is released."""
    about, certificate = result.about, result.certificate
    if result.values or result.public:
        return None
    statistic = ", ".join(each.name for each in about.statistics)
    if not statistic:
        by = about.plan.get("by") or ()
        statistic = f"{about.plan['statistic']}{' by ' if by else ''}{', '.join(by)}"
    rows = "row" if about.data.records > certificate.n else result.unit
    return Texts(
        numbers=several(len(certificate.noise.rms), "number"),
        statistic=statistic,
        data=about.data.name,
        size=several(about.data.records, rows),
        promise=certificate.promise,
        noise=_noise_in_short(result),
        command=about.release_command,
    )


def _noise_in_short(result: ReleaseResult) -> Sentence:
    """State the noise, and its ratio to the standard error of each number, margins of a table left out."""
    if result.certificate.no_noise:
        return Sentence("noise_needed.none")
    planned = result.about.planned
    sizes = [row.noise_std for row in planned if row.noise_std] or [rms for rms in result.certificate.noise.rms if rms]
    gaps = {"noise": span(sizes)}
    ratios = [row.noise_std / row.sampling_std for row in planned if row.noise_std and row.sampling_std]
    if not ratios:
        return Sentence("noise_needed.size", gaps)
    return Sentence("noise_needed.size_and_ratio", gaps | {"ratio": span(ratios)})


def _planned(each: Sequence[tuple[str, ReleaseResult]]) -> Texts | None:
    """Show the noise of each number that would be published."""
    named = [(name, planned_rows(own)) for name, own in each]
    if not any(rows for _, rows in named):
        return None
    numbers = [number for _, own in each for number in own.about.planned]
    is_cut = any(len(rows) > MOST_ROWS + MOST_FOLDED for _, rows in named)
    return Texts(
        tables=[table(rows, capital(name)) for name, rows in named if rows],
        has_gaps=any(number.noise_std is None for number in numbers),
        most=count(MOST_ROWS + MOST_FOLDED) if is_cut else "",
    )


def _values(result: ReleaseResult, each: Sequence[tuple[str, ReleaseResult]]) -> Texts | None:
    if not result.values:
        return None
    published = [own.about.table for _, own in each]
    is_wide = any(facts is not None and is_crossed(facts) for facts in published)
    tables = [released(own, capital(name)) for name, own in each]
    return Texts(tables=tables, is_wide=is_wide, is_written_nowhere=result.certificate.promise == "drawn")


def _naming(result: ReleaseResult) -> Texts | None:
    """Say how well the record left out can be named; nothing for other promises."""
    of_all, of_this = result.named_right_of_all, result.named_right
    if of_this is None:
        return None
    is_of_all = result.shares_a_budget and of_all is not None
    return Texts(
        right=_at_most(of_this.value or 0.0),
        right_of_all="" if of_all is None else _at_most(of_all.value or 0.0),
        by_chance=size(1 / result.certificate.n),
        is_only=not result.shares_a_budget,
        is_alone=result.shares_a_budget and not is_of_all,
        is_of_all=is_of_all,
    )


def _best(result: ReleaseResult) -> Texts | None:
    """Describe the best attack that was run."""
    finding = result.best
    if finding is None:
        return None
    kind = finding.scope.kind
    is_random = kind == "average" or (result.on_average and kind == "every")
    gaps = {"unit": result.unit, "row": result.unit}
    interval: Text = shown(finding).interval
    if interval:
        level = result.about.confidence if finding.confidence is None else finding.confidence
        interval = Sentence("interval.at", {"level": percent(level), "interval": interval})
    return Texts(
        right=shown(finding).value,
        target=Sentence("whom.chosen" if is_random else "whom.worst", gaps),
        interval=interval,
    )


def _is_unattacked(result: ReleaseResult) -> bool:
    """Whether the owner should know that no attack was run; against differential privacy none is needed."""
    is_owners_release = bool(result.values) and not result.public
    return is_owners_release and result.best is None and result.certificate.promise != "anyone"


def _without_noise(result: ReleaseResult) -> Text:
    """Say what an attacker would reach without noise; empty where there is none."""
    finding = result.without_noise
    if finding is None or result.certificate.no_noise:
        return ""
    right = shown(finding).value
    return right if finding.status == "certified" else Sentence("value.about", {"value": right})


def dots_of(result: ReleaseResult) -> list[Dot]:
    """List the promise, the attacks and the best attack without noise; nothing at another prior than one half.

    Where several releases share a budget, the promise is that of all of them.
    """
    if result.prior_accuracy != 0.5:
        return []
    of_all, alone = result.promised_of_all, result.promised
    rows = [Dot(str(Sentence("dot.promise")), 100 * of_all, f"≤ {of_100(of_all)}", "bound")]
    if result.shares_a_budget:
        rows.append(Dot(str(Sentence("dot.alone")), 100 * alone, f"≤ {of_100(alone)}", "ceiling"))
    for rank, finding in enumerate(result.attacks[:MOST_ATTACKS]):
        name, role = attack_words(finding.attack), "attack" if rank else "best"
        if finding.low is None:
            rows.append(dot(name, finding, role))
        else:  # at its lower limit: near the promise its estimate may exceed it by chance
            at_least = digits(settled(finding.low), scale=2, most=1, bound_type="lower").value
            rows.append(Dot(name, 100 * finding.low, f"≥ {at_least}", role))
    if result.without_noise is not None and not result.certificate.no_noise:
        rows.append(dot(RELEASES[WITHOUT], result.without_noise))
    return rows


def _dots(result: ReleaseResult) -> Texts | None:
    rows = dots_of(result)
    games = max((curve.n_nonmember for curve in result.curves), default=0)
    is_measured = any(finding.low is not None and finding.status == "measured" for finding in result.attacks)
    is_of_worst = bool(result.attacks) and not result.on_average
    if not rows:
        return None
    return Texts(
        rows=rows,
        n_games=count(games) if games and is_measured else "",
        is_at_lower_end=is_measured,
        is_of_worst=is_of_worst,
    )


def _exact(names: Sequence[str]) -> Texts | None:
    """Name the numbers that got no noise."""
    if not names:
        return None
    return Texts(names=", ".join(names[:MOST_NAMES]), n_more=_more(names))


def _noise(result: ReleaseResult) -> Texts:
    """Describe the noise; of several statistics that one's origin whose noise reveals most of the data."""
    certificate, is_drawn = result.certificate, bool(result.values)
    each = result.by_statistic or (("", result),)
    origins = {_origin(own) for _, own in each}
    origin = next(name for name in ("shape", "scale", "declared", "none") if name in origins)
    is_seed = result.about.insecure_seed
    parameters = [own.about.parameters for _, own in each]
    return Texts(
        sizes=[_noise_size(name, own) for name, own in each],
        is_none=certificate.no_noise,
        is_declared=origin == "declared",
        is_scale=origin == "scale",
        is_shape=origin == "shape",
        is_of_data=origin in ("scale", "shape"),
        is_planned=not is_drawn,
        is_keyed=is_drawn and certificate.ledger and not is_seed,
        is_from_seed=is_drawn and is_seed,
        is_random=is_drawn and not certificate.ledger and not is_seed,
        is_of_counts=any(facts is not None and facts.least_count is not None for facts in parameters),
    )


def _origin(result: ReleaseResult) -> str:
    """Tell where a noise comes from."""
    noise = result.certificate.noise
    if result.certificate.no_noise or noise.family == "none":
        return "none"
    if noise.declared:
        return "declared"
    return "scale" if noise.deviations is None else "shape"


def _noise_size(name: str, result: ReleaseResult) -> Sentence:
    """State the family of a noise, its standard deviations and its grid."""
    noise = result.certificate.noise
    if result.certificate.no_noise:
        return Sentence("noise.none", {"name": capital(name)})
    gaps: dict[str, Text] = {
        "family": (capital(noise.family) if not name else noise.family).replace("_", " "),
        "name": capital(name),
        "sizes": _sizes(noise.rms, result.values),
    }
    steps = [step for step in noise.grid or () if step is not None]
    if steps:
        low, high = parameter(min(steps)), parameter(max(steps))
        gaps["step"] = low if low == high else Sentence("size.span", {"low": low, "high": high})
    kind = f"{'named_' if name else ''}{'size_on_grid' if steps else 'size'}"
    return Sentence(f"noise.{kind}", gaps)


def _sizes(rms: Sequence[float], values: Sequence[ReleasedValue]) -> Text:
    """State the standard deviations with their units, or their range where there are many."""
    texts = [size(deviation) for deviation in rms]
    n = several(len(rms), "coordinate")
    units = [row.unit for row in values]
    if len(set(texts)) == 1:
        unit = f" {units[0]}" if len(set(units)) == 1 and units[0] else ""
        return Sentence("size.in_each", {"size": f"{texts[0]}{unit}", "n": n}) if len(rms) > 1 else f"{texts[0]}{unit}"
    if len(rms) > MOST_SIZES:
        return Sentence("size.over", {"span": span(rms), "n": n})
    if len(units) != len(rms):
        units = [""] * len(rms)
    return ", ".join(f"{text} {unit}".rstrip() for text, unit in zip(texts, units, strict=True))


def _coupling(result: ReleaseResult) -> Texts | None:
    """Say how data sets were paired, and how many pairs were drawn."""
    certificate = result.certificate
    name = certificate.coupling
    if not name:
        return None
    says: Text = sentence(capital(name.replace("_", " ")))
    if f"coupling.{name}" in sentences():
        says = Sentence(f"coupling.{name}", {"unit": result.unit, "units": result.units})
    fits, is_sampled = several(certificate.fits or 0, "fit"), not certificate.exact
    return Texts(
        says=says,
        is_exact=certificate.exact,
        most_fits=fits if is_sampled and certificate.pairs is None else "",
        pairs=several(certificate.pairs, "pair") if is_sampled and certificate.pairs is not None else "",
        fits=fits,
        failures=count(certificate.failures) if is_sampled and certificate.failures else "",
    )


def _rates(findings: Sequence[Finding]) -> list[Texts]:
    """List true positive rates with the false positive rates at which they are allowed."""
    return [Texts(fpr=percent(each.operating_point["fpr"]), found=f"{shown(each).value}\u202f%") for each in findings]


def _rates_of_all(result: ReleaseResult) -> list[Texts]:
    """List what all releases of the ledger together allow, where that is more than this one alone."""
    of_all = _rates(result.rates_of_all)
    return of_all if result.rates and of_all != _rates(result.rates) else []


def _privacy(finding: Finding, mu: str = "") -> Texts:
    """Write an epsilon at its delta."""
    delta = parameter(finding.operating_point.get("delta", 0.0))
    epsilon = powers(shown(finding).value)
    return Texts(epsilon=epsilon, delta=delta, mu=mu, is_add_or_remove=Term("add_or_remove") in finding.method)


def _entry(result: ReleaseResult) -> Texts | None:
    """State the place in the ledger, and for the owner what is spent."""
    entry = result.certificate.entry
    if entry is None:
        return None
    spent = "" if result.spent is None or result.public else _at_most(result.spent.value or 0.0)
    return Texts(number=count(entry.number), digest=entry.digest[:DIGEST], declared=count(entry.declared), spent=spent)


def _others(certificate: CertificateFacts) -> Texts | None:
    """Name what was released of the same data under other promises, and in other ledgers."""
    if not certificate.others:
        return None
    same = [other for other in certificate.others if other.design == certificate.design]
    different = [other for other in certificate.others if other.design != certificate.design]
    return Texts(
        other_promises=_first_named(different),
        n_more_promises=_more(different),
        other_ledgers=_first_named(same),
        n_more_ledgers=_more(same),
    )


def _is_one_promise_said(result: ReleaseResult) -> bool:
    """Whether the certificate tells the owner what another promise would cost, as no other part of the page does."""
    is_said = bool(result.certificate.others) or result.about.designs is not None
    return bool(result.values) and not result.public and not is_said


def _first_named(others: Sequence[OtherReleaseFacts]) -> list[Sentence]:
    """Name the first of other releases."""
    named = []
    for other in others[:MOST_NAMES]:
        gaps = {
            "promise": PROMISES.get(other.design, other.design.replace("-", " ")),
            "number": count(other.number),
            "date": other.date,
            "digest": other.digest[:DIGEST],
        }
        named.append(Sentence("other_release.of_date" if other.date else "other_release.undated", gaps))
    return named


def _more(names: Sequence[Any]) -> str:
    """Count the names after those that are listed."""
    return count(len(names) - MOST_NAMES) if len(names) > MOST_NAMES else ""


def _ceiling(result: ReleaseResult) -> Texts:
    """Say how to read the lines of the chart."""
    bands = [curve for curve in result.curves if curve.role == "measured" and len(curve.band_fpr) and curve.n_nonmember]
    is_of_two = any(curve.release for curve in result.ceilings)
    return Texts(
        found=Sentence(f"axis.found_{result.certificate.promise}"),
        points=_points(result),
        is_certified=bool(result.ceilings),
        is_of_one=result.shares_a_budget and not is_of_two,
        is_of_two=is_of_two,
        is_attacked=any(curve.role == "measured" for curve in result.curves),
        is_unprotected=any(curve.role == "asymptotic" for curve in result.curves),
        is_small=result.advantage < SMALL_ADVANTAGE,
        level=percent(bands[0].confidence or result.about.confidence) if bands else "",
        n_games=count(bands[0].n_nonmember) if bands else "",
    )


def _points(result: ReleaseResult) -> list[Texts]:
    """List what each curve says at the rates asked for; a ceiling is rounded up."""
    points = []
    for fpr in result.about.fpr:
        for curve in result.curves:
            write = percent_at_most if curve.role == "certified" else percent
            found = write(float(np.asarray(curve.tradeoff.tpr_at(fpr))))
            points.append(Texts(fpr=percent(fpr), found=found, name=attack_words(curve.name)))
    return points


def _cost(result: ReleaseResult, each: Sequence[tuple[str, ReleaseResult]]) -> Texts:
    """Say what the noise costs, in tables and as a sample that would be as precise."""
    certificate = result.certificate
    rows = [row for row in result.values if row.noise_std and row.sampling_std]
    has_sampling = bool(rows) and not certificate.no_noise
    sample: Text = ""
    if has_sampling:
        worth = sorted(sample_worth(row.noise_std or 0.0, row.sampling_std or 0.0, certificate.k) for row in rows)
        low, high = count(worth[0]), count(worth[-1])
        sample = low if low == high else Sentence("size.span", {"low": low, "high": high})
    named = [(name, cost_rows(own)) for name, own in each] if result.values else []
    price = _price(result.values, certificate)
    return Texts(
        summary=Sentence("cost.ratio", {"ratio": price}) if price else "",
        sample=sample,
        tables=[table(of_statistic, capital(name)) for name, of_statistic in named if of_statistic],
        has_sampling=has_sampling,
        longer=near((certificate.n / certificate.k) ** 0.5, 1),
    )


def _short(each: Sequence[tuple[str, ReleaseResult]], designs: Texts | None) -> Table | None:
    """Choose the one table of a terminal: what was released, else the costs of the promises, else the noise."""
    if designs and designs.tables and not any(own.values for _, own in each):
        return first_rows(designs.tables[0])
    return shortened(each)


def _findings(result: ReleaseResult) -> list[Texts]:
    """Write the findings down by what they are of."""
    by_title: dict[str, list[FindingRow]] = {}
    titles: dict[str, Text] = {}
    for part in result.parts:
        title = _title(result, part)
        titles[str(title)] = title
        by_title.setdefault(str(title), []).extend(finding_row(result.about, finding) for finding in part.findings)
    return [Texts(title=titles[key], rows=rows) for key, rows in by_title.items()]


def _title(result: ReleaseResult, part: Part) -> Text:
    """Title the findings of a part: the promise of the release itself needs no name."""
    if not part.release and part.scope.kind in ("every", "any_data"):
        return Sentence("findings.release" if result.values else "findings.calibration")
    of_ledger = f"findings.{part.release}"
    return Sentence(of_ledger) if result.certificate.promise != "drawn" and of_ledger in sentences() else part.title


def _data(result: ReleaseResult) -> Sentence:
    """Name, size and digest of the table of all candidates, who may have several rows each."""
    used, n = result.about.data, result.certificate.n
    size_of_data: Text = several(used.records, result.unit)
    if used.records > n:
        size_of_data = Sentence("size.of", {"size": several(used.records, "row"), "of": several(n, result.unit)})
    gaps: dict[str, Text] = {"name": used.name, "size": size_of_data, "digest": used.digest}
    if not used.name:
        return Sentence("data.unnamed", gaps)
    return Sentence("data.with_digest" if used.digest else "data.named", gaps)


def _made(report: Report, result: ReleaseResult) -> Texts:
    """Say how the release was made, without the assumptions that its certificate has."""
    certified = {capital(sentence(phrases.words(term))) for term in result.certificate.assumptions}
    seed = Sentence("seed.calibration", {"seed": str(result.about.seed)})
    return made(report, result.parts, certified, seed)
