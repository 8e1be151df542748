"""The answer of an audit: what comes before every verdict, the verdict, and what is shown next to the number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from leakbound.core.findings import Finding
from leakbound.core.reasons import words as reason_words
from leakbound.reports.numbers import count, digits, down, near, parameter, settled
from leakbound.reports.results.audit.result import Result, level, most_exposed, record_name, written
from leakbound.reports.results.audit.statements import Numbers, Statements, statements
from leakbound.reports.results.findings import Text
from leakbound.reports.results.quantities import shown
from leakbound.reports.results.words import cited, listed, several
from leakbound.reports.sentences import Sentence, sentences

WITHOUT_GROUPS = ("nothing_played", "too_few", "planted")  # headlines that nothing is said of a group after
MOST_PARTS = 4  # of a joined group that are named with it
INFERRED = ("almost_perfect", "high", "high_perhaps", "clear", "clear_perhaps")  # of models that should change
OF_ALL_ATTACKS = {"delgrosso2021, Theorem 2": "theorem.by_gap"}


def warnings(results: Sequence[Result]) -> list[Sentence]:
    """Say which releases could not be audited, and where no number is about the model."""
    said = []
    for name, why in results[0].about.failed.items():
        said.append(Sentence("warning.failed_why" if why else "warning.failed", {"name": name, "why": why}))
    for result in results:
        if result.n_rows:
            said.append(written(result, "warning.rows", n=count(result.n_rows)))
        finding = result.without_model
        if finding is not None and result.members_differ:
            said.append(written(result, "warning.differ", **_area(result, finding)))
            said.append(written(result, "warning.withheld" if result.is_withheld else "warning.accepted"))
        if result.below_chance is not None:
            said.append(written(result, "warning.below", why=reason_words(result.below_chance)))
    return said


def chosen(result: Result) -> Statements:
    """Choose which sentences apply to a release, from all of its numbers."""
    accuracies = _accuracies(result)
    worst = result.worst_group
    areas = [finding for finding in result.findings if finding.quantity == "auc" and finding.attack]
    return statements(
        Numbers(
            accuracy_low=None if result.accuracy is None else result.strength,
            accuracy_high=max((finding.high for finding in accuracies if finding.high is not None), default=None),
            accuracy=None if result.accuracy is None else result.accuracy.value,
            baseline=result.prior_accuracy,
            n_records=result.facts.target_points,
            n_models=result.facts.targets,
            n_played=result.n_played,
            first_exposed=result.first_exposed,
            n_exposed=result.n_exposed,
            refuted=any(verdict.word == "refuted" for verdict in result.verdicts),
            ranks_members_higher=any((finding.low or 0.0) > 0.5 for finding in areas),
            planted=is_planted(result),
            group_low=None if worst is None else worst.low,
        )
    )


def is_planted(result: Result) -> bool:
    """Whether canaries were planted, which say little of other records."""
    return result.facts.game == "canaries"


def has_verdict(result: Result) -> bool:
    """Whether the numbers of a release are about its model."""
    return not result.is_withheld and result.below_chance is None


def answer(result: Result) -> list[Sentence]:
    """Say what was found, and what an average hides."""
    choice = chosen(result)
    said = [*removal(result), headline(result, choice)]
    if choice.excluded:
        said.append(_excluded(result))
    if choice.headline not in WITHOUT_GROUPS:
        said += of_worst_group(result)
    return said


def removal(result: Result) -> Iterator[Sentence]:
    """Say whether records that were removed can be told from records that never were in."""
    if result.facts.kept is None:
        return
    finding = result.find("told_apart")
    if finding is not None:
        name = "shown" if (finding.low or 0.0) > 0.5 else "not_shown"
        gaps = {**_area(result, finding), "attack": result.attack_title(finding.attack)}
        yield written(result, f"removal.{name}", **gaps)
    played = {name.partition("(")[0] for name in result.attacks_that_ran}
    if played and not played & {"mast", "rmia"}:
        yield Sentence("removal.too_few_attacks")
    yield written(result, "removal.members")


def headline(result: Result, choice: Statements) -> Sentence:
    """Say in one sentence how much a release reveals."""
    worst = result.worst_group
    gaps: dict[str, Text] = {
        "exposed": count(result.n_exposed),
        "all": count(result.games.records) if result.games else "",
        "records": several(result.facts.target_points, result.about.unit),
        "models": several(result.facts.targets, "model"),
        "right": "" if result.accuracy is None else shown(result.accuracy).value,
        "group": "" if worst is None else group_name(result, worst),
    }
    between: dict[str, str | Sentence] = {} if choice.perhaps is None else _open_between(result, choice)
    return written(result, f"headline.{choice.headline}", **gaps, **between)


def _open_between(result: Result, choice: Statements) -> dict[str, str | Sentence]:
    """Write both ends of an accuracy that is not known well enough for one word, and what there is too little of."""
    kind = "leaks" if choice.headline == "little_perhaps" else "inferred"
    name = f"perhaps.{kind}_{choice.perhaps}"
    models = result.facts.targets
    return {
        "perhaps": Sentence(name) if name in sentences() else "",
        "low": "" if result.accuracy is None else shown(result.accuracy).low,
        "high": _largest_end(result) or "100",
        "few": several(models, "model") if models > 1 else several(result.facts.target_points, result.about.unit),
    }


def _accuracies(result: Result) -> list[Finding]:
    return [finding for finding in result.findings if finding.quantity == "accuracy" and finding.attack]


def _excluded(result: Result) -> Sentence:
    """Say how large a leak by these attacks may still be, on average where there are groups."""
    kind = "alone" if result.worst_group is None else "average"
    return written(result, f"excluded.{kind}", most=_largest_end(result), level=level(result, result.accuracy))


def _largest_end(result: Result) -> str:
    """Write the largest upper end of the accuracy over the attacks."""
    known = [finding for finding in _accuracies(result) if finding.high is not None]
    return shown(max(known, key=lambda finding: finding.high or 0.0)).high if known else ""


def of_worst_group(result: Result) -> Iterator[Sentence]:
    """Name the group of which most is revealed, whatever the average is, or say that none can be told apart."""
    finding, groups = result.worst_group, result.facts.groups
    if result.is_joined_of_all and groups is not None:
        yield written(result, "group.too_small", least=count(groups.least))
    if finding is not None:
        text = shown(finding)
        interval = Sentence("right.ends", {"interval": text.interval}) if text.low and text.high else ""
        yield written(result, "group.worst", group=group_name(result, finding), value=text.value, interval=interval)


def group_name(result: Result, finding: Finding) -> Text:
    """Name a group; one of several small groups together with what it is made of."""
    name, facts = finding.scope.name, result.facts.groups
    for group in facts.groups if facts else ():
        if group.name == name and 0 < len(group.joined) <= MOST_PARTS:
            return Sentence("group.with_parts", {"name": name, "parts": listed(group.joined)})
    return name


def exposed_of_groups(result: Result) -> Iterator[Sentence]:
    """Say which group has most of the exposed records; nothing where that is not known, or not published."""
    facts = result.facts.groups
    judged = [group for group in facts.groups if group.judged] if facts else []
    groups = [group for group in judged if group.exposed]
    if not groups or len(judged) < 2:  # a joined group of all records has all that are exposed
        return
    most = max(groups, key=lambda group: (group.exposed or 0, -group.records))
    gaps = {"group": most.name, "records": count(most.records), "n": count(most.exposed or 0)}
    name = "group.one_exposed" if result.n_exposed == 1 else "group.exposed"
    yield written(result, name, **gaps, all=count(result.n_exposed))


def summary(result: Result) -> list[Sentence]:
    """Write what is shown next to the large number of a release."""
    accuracy = result.accuracy
    if accuracy is None:
        return [Sentence("right.nothing"), *theorems(result)]
    text = shown(accuracy)
    who = Sentence("right.planted") if is_planted(result) else result.about.unit
    if result.too_few:
        right = str(round((accuracy.value or 0) * result.n_games))
        interval = _interval(result, accuracy, "interval_of_100")
        said = written(result, "right.counted", who=who, right=right, games=str(result.n_games), interval=interval)
        return [said, *epsilon(result)]
    gaps = {"right": text.value, "interval": _interval(result, accuracy, "interval"), "baseline": baseline(result)}
    average = written(result, "right.average", who=who, **gaps)
    return [average, *single_records(result), *theorems(result), *epsilon(result), *one_source(result)]


def baseline(result: Result) -> str:
    """Write the accuracy of a guess from the prior alone."""
    return near(100 * result.prior_accuracy, 1).removesuffix(".0")


def _interval(result: Result, finding: Finding, name: str) -> Sentence | str:
    """Write an interval with its level, or nothing."""
    text = shown(finding)
    if not (text.low and text.high):
        return ""
    return Sentence(f"right.{name}", {"level": level(result, finding), "interval": text.interval})


def single_records(result: Result) -> list[Sentence]:
    """Describe the most exposed record, and say how many are exposed."""
    games, choice = result.games, chosen(result)
    if games is None or choice.records == "none":
        return []
    played = count(result.n_played)
    if choice.records == "untestable":
        return [written(result, "single.untestable", models=played, needed=count(games.models_needed))]
    if choice.records != "exposed":
        every = "_all" if result.first_exposed == result.n_played else ""
        first = count(result.first_exposed or 0)
        return [written(result, f"single.{choice.records}{every}", games=played, first=first)]
    many = written(
        result, "single.exposed", exposed=count(games.exposed), all=several(games.records, result.about.unit)
    )
    return [*_most_exposed(result), many]


def _most_exposed(result: Result) -> Iterator[Sentence]:
    """State the correct guesses about the most exposed record, and what they prove."""
    worst, first = result.most_exposed, most_exposed(result.records)[:1]
    if worst is None:
        return
    gaps = {
        "won": count(int(worst.detail["won"])),
        "games": count(int(worst.detail["games"])),
        "least": least_of_100(worst.low),
        "level": level(result, worst),
    }
    if first and "name" in result.records:
        yield written(result, "single.most_exposed_named", name=record_name(result.records, first[0]), **gaps)
    else:
        yield written(result, "single.most_exposed", **gaps)


def least_of_100(low: float | None) -> str:
    """Write a lower limit in whole cases of 100."""
    return down(settled(100 * (low or 0.0)))


def theorems(result: Result) -> Iterator[Sentence]:
    """State the theorems on the accuracy of any attack; one that says nothing is left out.

    So is each where members and others differ by themselves: the theorems are about draws from one source.
    """
    if result.is_withheld:
        return
    for finding in result.bounds:
        value = sure(finding).value or 0.0
        if value > result.prior_accuracy if finding.bound_type == "lower" else value < 1:
            yield _theorem(result, finding)


def _theorem(result: Result, finding: Finding) -> Sentence:
    """Say that some attacker is right at least so often, or none more often."""
    by = Sentence("theorem.by_nothing")
    if finding.source:
        name = OF_ALL_ATTACKS.get(finding.source, "theorem.by_source")
        by = Sentence(name, {"source": cited(finding.source)})
    is_sampled = finding.confidence is not None and finding.confidence < 1
    at = Sentence("theorem.level", {"level": level(result, finding)}) if is_sampled else ""
    large = "_asymptotic" if finding.status == "asymptotic" else ""
    right = shown(sure(finding)).value
    return Sentence(f"theorem.{finding.bound_type}{large}", {"right": right, "level": at, "by": by})


def sure(finding: Finding) -> Finding:
    """Replace a lower bound from a sample by what it proves at its confidence: the lower end."""
    if finding.bound_type != "lower" or finding.low is None:
        return finding
    return replace(finding, value=finding.low, low=None, high=None)


def epsilon(result: Result) -> Iterator[Sentence]:
    """State the lower bound of epsilon in the games that are played for it: about one record, or planted canaries."""
    finding = result.find("epsilon")
    if result.facts.game not in ("per_datum", "canaries") or finding is None or not finding.low or not finding.attack:
        return
    claims = "_of_claims" if any(verdict.claim.adjacency for verdict in result.verdicts) else ""
    gaps = {
        "least": down(finding.low, 2),
        "delta": parameter(finding.operating_point["delta"]),
        "level": level(result, finding),
        "attack": result.attack_title(finding.attack),
    }
    yield Sentence(f"theorem.epsilon{claims}", gaps)


def one_source(result: Result) -> Iterator[Sentence]:
    """Say that no difference of members and others was found, and how large one would have to be; or why not tested."""
    finding = result.without_model
    if finding is None or result.members_differ:
        return
    if finding.reason is not None:
        yield written(result, "source.untested", reason=reason_words(finding.reason))
        return
    shift = finding.detail.get("smallest_shift")
    smallest = digits(finding.detail["smallest_auc"], most=2).value
    gaps = {**_area(result, finding), "smallest": smallest}
    if shift is None:
        yield written(result, "source.not_found", **gaps)
    else:
        yield written(result, "source.not_found_column", shift=digits(shift, most=2).value, **gaps)


def _area(result: Result, finding: Finding) -> dict[str, str]:
    """Write the area under the curve of the classifier that does not see the model."""
    text = shown(finding)
    return {"area": text.value, "interval": text.interval, "level": level(result, finding)}
