"""What ``audit.md.jinja`` is handed: every number as finished text, every sentence by its id."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from leakbound.reports import Curve, Report, phrases
from leakbound.reports.about import AuditAbout, FreshFacts, SyntheticFacts
from leakbound.reports.numbers import THIN, count, near, percent
from leakbound.reports.publication import is_for_owner
from leakbound.reports.results.audit.advice import advice, decides
from leakbound.reports.results.audit.answer import (
    answer,
    baseline,
    epsilon,
    has_verdict,
    least_of_100,
    summary,
    theorems,
    warnings,
)
from leakbound.reports.results.audit.claims import claims, contradictions, counted, leading
from leakbound.reports.results.audit.control import control, of_matches
from leakbound.reports.results.audit.findings import audit_tables
from leakbound.reports.results.audit.groups import (
    groups_of,
    n_groups,
    slices_of,
)
from leakbound.reports.results.audit.models import models_table
from leakbound.reports.results.audit.policy import policy_part
from leakbound.reports.results.audit.records import records_part
from leakbound.reports.results.audit.result import Result, level, most_exposed, ordered, record_name, results, written
from leakbound.reports.results.curves import LEAST_ALARMS, SMALL_ADVANTAGE, formula_of
from leakbound.reports.results.dots import Dot, dot
from leakbound.reports.results.findings import Text, interval_head, not_run, with_interval
from leakbound.reports.results.made import ChartName, Named, attack_method, made, stored
from leakbound.reports.results.quantities import shown
from leakbound.reports.results.words import capital, cut, listed, note, several, unit_words
from leakbound.reports.results.words import sentence as with_full_stop
from leakbound.reports.sentences import Sentence, Texts

MOST_CURVES = 4
MOST_LIMITS = 5  # in a terminal
MOST_CLAIMS, MOST_NOTES, LONGEST_NAME = 3, 2, 28  # in a terminal


def audit_page(report: Report) -> Texts:
    """Write an audit down."""
    as_planned = results(report)
    found = ordered(as_planned)  # one order everywhere: that of the table of models
    first, about = found[0], found[0].about
    models, policy, said = models_table(found), policy_part(found), claims(found)
    tables = audit_tables(found)
    notes = [*about.notes, *about.owner_notes]
    priors = sorted({result.prior for result in found})
    return Texts(
        title=_title(as_planned),
        records=_records(found),
        trained=_trained(found),
        n_attacks=several(len({name for result in found for name in result.attacks_that_ran}), "attack"),
        author=_author(about),
        date=about.date,
        **unit_words(about.unit),
        unit_title=capital(about.unit),
        is_for_owner=is_for_owner(report),
        contradictions=contradictions(found),
        warnings=warnings(found),
        answer=list(_answer(found, models)),
        models=models,
        releases=[_release(result, place, is_alone=len(found) == 1) for place, result in enumerate(found)],
        short=_short(first, policy) if len(found) == 1 else None,
        fraction=Sentence("fraction.half") if priors == [0.5] else listed(map(percent, priors)),
        over_accuracy=list(_over(found, ("accuracy",))),
        knows_the_pool=any(result.knows_the_pool for result in found),
        policy=policy,
        claims=said,
        are_several_claims=len(said) > 1,
        first_claims=said[:MOST_CLAIMS],
        n_more_claims=_more(len(said), MOST_CLAIMS),
        advice=advice(found),
        decides=decides(found) if len(found) == 1 else [],
        curves=_curves(found),
        control=control(found),
        recorded=records_part(found),
        groups=groups_of(found),
        n_groups=n_groups(found),
        slices=slices_of(found),
        tables=tables,
        n_findings=several(sum(len(table.rows) + len(table.folded) for table in tables), "number"),
        interval=interval_head(about.confidence),
        over=list(_over(found)),
        played=[Texts(title=result.title, sentences=list(_game(result))) for result in found],
        attacks=[attack_method(name, attack) for name, attack in about.attacks.items()],
        limits=list(_limits(found)),
        confidence=level(first),
        notes=[note(text) for text in about.notes],
        owner_notes=[note(text) for text in about.owner_notes],
        first_notes=[note(text) for text in notes[:MOST_NOTES]],
        n_more_notes=_more(len(notes), MOST_NOTES),
        run=stored(about),
        first_of_run=stored(about)[:1],
        made=made(report, found),
    )


def _more(n: int, most: int) -> str:
    """Count what a terminal does not show."""
    return count(n - most) if n > most else ""


def _title(found: Sequence[Result]) -> Text:
    """Return the title of the plan, or the question that every audit asks."""
    first = found[0]
    if first.about.title:
        return first.about.title
    if first.facts.game == "scores":
        return Sentence("asked.scores")
    if len(found) == 1 and first.facts.kept is not None:
        return Sentence("asked.removed", {"title": first.title})
    if len(found) == 1:
        return Sentence("asked.one", {"title": first.title})
    if len(found) == 2:
        return Sentence("asked.two", {"first": first.title, "second": found[1].title})
    return Sentence("asked.several", {"n": count(len(found))})


def _records(found: Sequence[Result]) -> Text:
    """Count the records that were attacked."""
    sizes = {result.facts.target_points for result in found}
    unit, sampled_from = found[0].about.unit, found[0].facts.sampled_from
    most: Text = several(max(sizes), unit)
    if sampled_from is not None:  # one sample is drawn for all models
        most = Sentence("fact.sample", {"n": count(max(sizes)), "records": several(sampled_from, unit)})
    return most if len(sizes) == 1 else Sentence("fact.up_to", {"records": most})


def _trained(found: Sequence[Result]) -> Text:
    """Say how many models were trained, and on what."""
    first, n = found[0].facts, len(found)
    if len({(result.facts.game, result.facts.models) for result in found}) > 1:
        return Sentence("fact.releases", {"n": count(n)})
    models: Text = several(n, "model") if n == 1 else Sentence("fact.models", {"n": count(n)})
    if first.game == "one_model":
        models = several(n, "trained model")
    elif first.game in ("scores", "signals"):
        models = several(first.targets if first.game == "scores" else first.models, "model")
    gaps: dict[str, Text] = {"models": models, "times": several(first.models, "time")}
    return written(found[0], f"fact.{first.game}", **gaps, references=several(first.references, "reference"))


def _author(about: AuditAbout) -> Text:
    """Name who made the audit, if the plan does."""
    author = str(about.plan.get("author") or "")
    return Sentence("fact.author", {"author": author}) if author else ""


def _answer(found: Sequence[Result], models: Texts | None) -> Iterator[Sentence]:
    """Say first what is claimed, then what was found, then how many claims are refuted.

    Of several models the table says what was found of each, and the first sentences what is between them.
    """
    first = leading(found)
    if first is not None:
        yield first
    if models is not None:
        yield from models.lede
    elif has_verdict(found[0]):
        yield from answer(found[0])
        yield from of_matches(found[0])
    yield from counted(found)


def _release(result: Result, place: int, *, is_alone: bool) -> Texts:
    """Write a release down."""
    accuracy = result.accuracy
    right, of = "—", ""
    if accuracy is not None and result.too_few:
        right, of = str(round((accuracy.value or 0) * result.n_games)), str(result.n_games)
    elif accuracy is not None:
        right, of = shown(accuracy).value, "100"
    dots = accuracy_rows(result)
    return Texts(
        heading="" if is_alone else result.title,
        right=right,
        of=of,
        baseline=baseline(result),
        answer=[] if is_alone or not has_verdict(result) else answer(result),
        summary=[*summary(result), *_prepared(result)],
        dots=Texts(name=ChartName(f"dots{place}"), rows=dots) if dots else None,
        heads=[percent(fpr) for fpr in result.about.fpr],
        attacks=[_attack(result, name) for name in result.attacks_that_ran],
        not_run=_not_run(result),
    )


def accuracy_rows(result: Result) -> list[Dot]:
    """Lay out the attacks that reveal something new, the best last, the worst group, and the most exposed record."""
    if result.too_few:
        return []
    rows = []
    for name in reversed(result.telling):
        role = "best" if name == result.best else "attack"
        rows.append(dot(result.attack_title(name), result.find("accuracy", name), role))
    if result.worst_group is not None and result.prior == 0.5:  # at which groups are measured
        rows.append(dot(result.worst_group.scope.name, result.worst_group))
    worst = result.most_exposed
    if worst is not None and result.n_exposed:
        name = str(written(result, "scope.worst", row=result.about.unit))
        low, high = 100 * (worst.low or 0.0), 100 * (worst.value or 0.0)
        rows.append(Dot(name, high, f"≥ {least_of_100(worst.low)}", "exposed", low))
    return rows


def _attack(result: Result, name: str) -> Texts:
    """Write what an attack reaches, with intervals; a fraction of too few guesses says less than their number."""
    rates: list[Text] = [Sentence("value.none")] * len(result.about.fpr)
    if not result.too_few:
        rates = [with_interval(result.find("tpr", name, fpr=fpr)) for fpr in result.about.fpr]
    return Texts(
        name=result.attack_title(name),
        accuracy=with_interval(result.find("accuracy", name)),
        auc=with_interval(result.find("auc", name)),
        rates=rates,
        first_rate=rates[0] if rates else Sentence("value.none"),
    )


def _not_run(result: Result) -> list[Sentence]:
    """List the attacks without a result."""
    return list(not_run([each for each in result.findings if each.quantity == "accuracy"], result.attack_title))


def _not_run_in_short(result: Result) -> list[Sentence]:
    """Name the attacks without a result in one line, with the reason if it is one."""
    said = _not_run(result)
    if len(said) < 2:
        return said
    missing = [finding for finding in result.findings if finding.quantity == "accuracy" and finding.reason is not None]
    titles = dict.fromkeys(result.attack_title(finding.attack) for finding in missing if finding.attack)
    return [Sentence("not_run.several", {"attacks": listed(titles)})]


def _prepared(result: Result) -> list[Text]:
    """Say what leakbound did to the data of its own accord."""
    return [with_full_stop(result.facts.prepared)] if result.facts.prepared else []


def _short(result: Result, policy: Texts | None) -> Texts:
    """Choose what a terminal shows of the only release.

    Under a policy these are the limits that are not kept or open, else the attacks that reveal something new, and who
    is worst off.
    """
    limits = policy.decisions[0].reasons if policy is not None else ()
    worst, exposed = result.worst_group, result.most_exposed
    at_least: Text = ""
    if exposed is not None and result.n_exposed:
        at_least = Sentence("value.at_least", {"value": least_of_100(exposed.low)})
    group = "" if worst is None else worst.scope.name
    first = most_exposed(result.records)[:1] if "name" in result.records else []
    return Texts(
        prepared=_prepared(result),
        baseline=baseline(result),
        fpr=percent(result.about.fpr[0]),
        rows=[_attack(result, name) for name in result.telling],
        n_others=_more(len(result.attacks_that_ran), len(result.telling)),
        worst_group=cut(group, LONGEST_NAME),
        worst_group_accuracy=with_interval(worst),
        most_exposed=at_least,
        most_exposed_name=cut(record_name(result.records, first[0]), LONGEST_NAME) if first else "",
        not_run=[] if limits else _not_run_in_short(result),
        limits=limits[:MOST_LIMITS],
        n_more_limits=_more(len(limits), MOST_LIMITS),
        theorems=[*(theorems(result) if result.accuracy is None else []), *epsilon(result)],
    )


def _over(found: Sequence[Result], quantities: Sequence[str] = ()) -> Iterator[Sentence]:
    """Say what the intervals of these quantities average over; of all of the page if none are named."""
    findings = [
        finding
        for finding in chain.from_iterable(result.findings for result in found)
        if finding.value is not None and (not quantities or finding.quantity in quantities)
    ]
    kinds = {finding.interval_over for finding in findings if finding.quantity != "tpr_these_models"}
    for kind in ("models", "points"):
        if kind in kinds:
            yield written(found[0], f"over.{kind}")
    if any(finding.quantity == "tpr_these_models" for finding in findings):
        yield written(found[0], "over.these_models")
    if any(finding.refused == "too_few_models" for finding in findings):
        yield Sentence("over.too_few_models")


def drawn_releases(found: Sequence[Result]) -> list[tuple[int, Result]]:
    """Select the four releases that reveal most, in the order of the page, with their places."""
    worst = sorted(found, key=lambda result: result.strength, reverse=True)[:MOST_CURVES]
    return [(place, result) for place, result in enumerate(found) if result in worst and not result.too_few]


def shows_gain(found: Sequence[Result]) -> bool:
    """Whether advantages are so small that a ROC hides them."""
    drawn = drawn_releases(found)
    return bool(drawn) and max(result.advantage for _, result in drawn) < SMALL_ADVANTAGE


def _curves(found: Sequence[Result]) -> Texts | None:
    """Explain the curves; None of too few games."""
    drawn = drawn_releases(found)
    if not drawn:
        return None
    gain = "gain" if shows_gain(found) else ""
    panels = [
        Texts(
            title="" if len(found) == 1 else result.title,
            roc=ChartName(f"roc{place}"),
            gain=ChartName(f"{gain}{place}" if gain else ""),
            points=_points(result),
            caption=list(_caption(result)),
        )
        for place, result in drawn
    ]
    has_ceilings = any(result.ceilings for result in found)
    notes = list(_doubled(found))
    if any(len(result.attacks_that_ran) > len(result.telling) for result in found):
        notes.append(Sentence("curve.not_drawn"))
    return Texts(
        heading=Sentence("curve.heading_ceiling" if has_ceilings else "curve.heading"),
        are_shown=has_ceilings and len(found) == 1,
        found=_found(found),
        intro=list(_intro(found)),
        panels=panels,
        notes=notes,
    )


def _found(found: Sequence[Result]) -> Text:
    """Say in a few words what the curves show."""
    if len(found) > 1:
        return several(len(found), "model")
    result = found[0]
    for fpr in result.about.fpr:
        finding = result.find("tpr", result.best, fpr=fpr) if result.best else None
        if finding is not None:
            return Sentence("curve.found", {"found": f"{shown(finding).value}{THIN}%", "fpr": percent(fpr)})
    return several(len(result.attacks_that_ran), "attack")


def _points(result: Result) -> list[Named]:
    """List members found by each attack and allowed by each ceiling, as one would read them off."""
    points = []
    for fpr in result.about.fpr:
        found = [(name, result.find("tpr", name, fpr=fpr)) for name in result.telling]
        rates = [
            f"{result.attack_title(name)} {percent(at.value)}" for name, at in found if at and at.value is not None
        ]
        rates += [f"{curve.name} {percent(float(curve.tradeoff.tpr_at(fpr)))}" for curve in result.ceilings]
        points.append(Named(percent(fpr), ", ".join(rates) or "—"))
    return points


def _intro(found: Sequence[Result]) -> Iterator[Sentence]:
    """Say how to read attack against ceiling."""
    roles = {curve.role for result in found for curve in result.ceilings}
    is_tested = any(verdict.word != "cannot_be_tested" for result in found for verdict in result.verdicts)
    if is_tested:
        yield Sentence("curve.claimed")
    elif "certified" in roles:
        yield Sentence("curve.certified")
    if "asymptotic" in roles:
        yield written(found[0], "curve.asymptotic")
    if not is_tested and not roles.intersection(("certified", "asymptotic")):
        yield Sentence("curve.no_ceiling")
    for result in found:
        yield from _inside(result)
        yield from _entered(result)


def _inside(result: Result) -> Iterator[Sentence]:
    """Say where an attack is inside the forbidden region, its whole interval included."""
    for verdict in result.verdicts:
        at = verdict.operating_point
        if verdict.word == "refuted" and at.get("low", 0.0) > at.get("ceiling", 1.0):
            attack = result.attack_title(verdict.attack)
            yield written(result, "curve.inside", title=result.title, attack=attack, fpr=percent(at["fpr"]))
            return


def _entered(result: Result) -> Iterator[Sentence]:
    """Say what it means that a curve is above a ceiling which no test refutes."""
    if not result.verdicts or any(verdict.word == "refuted" for verdict in result.verdicts):
        return
    ceilings = [curve for curve in result.ceilings if curve.role in ("claimed", "certified")]
    for curve in result.curves:
        if curve.role == "measured" and curve.name == result.best and any(_exceeds(curve, top) for top in ceilings):
            attack = result.attack_title(curve.name)
            yield written(result, "curve.entered", title=result.title, attack=attack)
            return


def _exceeds(curve: Curve, ceiling: Curve) -> bool:
    """Whether a curve is above a ceiling at a rate that enough false alarms support."""
    if curve.n_nonmember <= LEAST_ALARMS:
        return False
    rates = np.geomspace(LEAST_ALARMS / curve.n_nonmember, 1.0, 200)
    return bool((np.asarray(curve.tradeoff.tpr_at(rates)) > np.asarray(ceiling.tradeoff.tpr_at(rates)) + 1e-9).any())


def _caption(result: Result) -> Iterator[Sentence]:
    """Count the games behind the curves, and explain the band and the ceilings."""
    measured = [curve for curve in result.curves if curve.role == "measured"]
    n_outside = max((curve.n_nonmember for curve in measured), default=0)
    if n_outside:
        gaps = {
            "inside": count(result.n_games - n_outside),
            "outside": count(n_outside),
            "models": several(result.facts.targets, "model"),
            "records": several(result.facts.target_points, result.about.unit),
        }
        yield Sentence("curve.games", gaps)
    # the strongest attack is the only one whose band is drawn; its method is that of the members found
    bands = [curve.confidence for curve in measured if curve.name == result.best and len(curve.band_fpr)]
    if bands and bands[0] is not None:
        methods = [phrases.method(at.method) for at in result.findings if at.quantity == "tpr" and at.method]
        name = "curve.band_by" if methods else "curve.band"
        yield Sentence(name, {"level": percent(bands[0]), "methods": ", ".join(dict.fromkeys(methods))})
    for curve in result.ceilings:
        formula = formula_of(curve.tradeoff)
        if formula is not None:
            yield Sentence(f"curve.ceiling_{curve.role}", {"formula": formula})


def _doubled(found: Sequence[Result]) -> Iterator[Sentence]:
    """Say why the parameters of the ceiling differ from those of an add/remove claim."""
    for result in found:
        adjacencies = {curve.verdict.claim.adjacency for curve in result.ceilings if curve.verdict is not None}
        if result.facts.sampling == "fixed" and "add_remove" in adjacencies:
            yield written(result, "curve.doubled")
            return


def _game(result: Result) -> Iterator[Text]:
    """Say what was played, what was released, and on which data."""
    facts, unit = result.facts, result.about.unit
    gaps = {
        "models": several(facts.models, "model"),
        "points": several(facts.target_points, unit),
        "fraction": percent(facts.prior),
    }
    yield written(result, f"played.{facts.game}", **gaps)
    if facts.kept is not None:
        yield written(result, f"played.kept_{facts.kept}")
    if facts.fresh is not None:
        yield from _data_sets(facts.fresh, unit)
    if facts.knowledge:
        yield written(result, f"played.knows_{facts.knowledge}")
    if facts.population:
        yield Sentence("played.population", {"records": several(facts.population, unit)})
    if facts.synthetic is None:
        yield _references(result)
    else:
        yield from _tables(result, facts.synthetic)
    if facts.description:
        yield with_full_stop(facts.description)
    if facts.steps_by is not None:
        yield Sentence(f"played.{facts.steps_by}")
    if facts.data.name or facts.data.digest:
        yield _data(result)


def _data_sets(facts: FreshFacts, unit: str) -> Iterator[Sentence]:
    """Say how data sets were drawn from a file, and what they differ in from draws from its distribution."""
    larger = 1 / math.sqrt(1 - facts.size / facts.pool) - 1
    gaps = {
        "size": several(facts.size, unit),
        "targets": several(facts.targets, "target"),
        "pool": several(facts.pool, "other"),
        "larger": near(100 * larger, 1),
    }
    yield Sentence("played.fresh_sets", gaps)
    if 10 * facts.targets > facts.size:
        yield Sentence("played.fresh_known", {"known": near(50 * facts.targets / facts.size, 1)})


def _tables(result: Result, facts: SyntheticFacts) -> Iterator[Sentence]:
    """Say how many rows were published, and in which columns records are compared with them."""
    gaps = {"files": several(facts.files, "file"), "rows": several(facts.rows, "row")}
    yield written(result, "played.synthetic_tables", **gaps, columns=listed(facts.columns))
    if facts.reference:
        yield written(result, "played.synthetic_reference", rows=several(facts.reference, "row"))


def _references(result: Result) -> Sentence:
    """Say who is compared with whom."""
    facts = result.facts
    if not facts.references:
        return Sentence("played.no_references")
    if facts.targets == facts.models:
        return Sentence("played.each_other", {"n": count(facts.references)})
    gaps = {
        "targets": several(facts.targets, "attacked model"),
        "references": several(facts.references, "reference model"),
    }
    return Sentence("played.references", gaps)


def _data(result: Result) -> Sentence:
    """Name the data, and count the records and the units that they belong to."""
    facts, unit = result.facts, result.about.unit
    size: Text = several(facts.data.records, unit)
    if facts.units is not None:
        gaps = {"rows": several(facts.data.records, "row"), "units": several(facts.units, unit)}
        size = Sentence("played.size_of_units", gaps)
    name: Text = facts.data.name or Sentence("played.no_name")
    kind = "played.data_digest" if facts.data.digest else "played.data"
    return Sentence(kind, {"name": name, "size": size, "digest": facts.data.digest})


def _limits(found: Sequence[Result]) -> Iterator[Sentence]:
    """Say what the numbers do not tell."""
    n_attacks = len(found[0].about.attacks)
    yield from _over(found)
    if any(result.games for result in found):
        yield written(found[0], "limits.shared")
    if any(result.facts.targets == result.facts.models > 1 for result in found):
        yield Sentence("limits.not_independent")
    if n_attacks > 1:
        yield Sentence("limits.best_of", {"n": count(n_attacks)})
    yield Sentence("limits.better")
