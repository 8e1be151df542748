"""Groups by default: what is measured of each, what a policy makes of it, and what the average hides."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import leakbound as ls
from leakbound import metrics
from leakbound.attacks import find
from leakbound.auditing.evaluate import judge
from leakbound.auditing.group_checks import _of_one_model
from leakbound.auditing.groups import AttackedGroups, Grouped, GroupLevels
from leakbound.auditing.observed import ObservedRelease
from leakbound.auditing.policy import Levels, decision
from leakbound.auditing.report import AuditRun, reported
from leakbound.core import games
from leakbound.core.types import Points, Scores, Signals
from leakbound.plans import AuditPlan
from leakbound.plans.policies import policy_of
from leakbound.reports.results.audit.page import audit_page

ATTACKS = find(["loss", "mast"])
BOTH = policy_of({"limits": ["worst_group_accuracy=0.6"], "exposed": {"most": 0, "then": "ask"}})


def observed(sizes, n_models=64, leak=(), seed=0) -> ObservedRelease:
    """Log-odds of noise and of each record's difficulty; of class k larger by ``leak[k]`` for members."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(len(sizes)), sizes)
    game = games.half_split(len(label), n_models, seed=seed)
    by_class = np.zeros(len(sizes))
    by_class[: len(leak)] = leak
    noise = rng.normal(size=(n_models, len(label)))
    log_odds = rng.normal(size=len(label)) + by_class[label] * game.member + noise
    arrays = {"log_odds": log_odds, "loss": np.logaddexp(0, -log_odds), "correct": (log_odds > 0).astype(float)}
    points = Points(np.zeros((len(label), 1)), label)
    return ObservedRelease("model", Signals(game, points, arrays))


def judged(release, policy=BOTH, attacks=ATTACKS):
    limits = policy.parsed_limits
    levels = Levels.shared(policy.confidence, 1, len(attacks), len(limits))
    found = judge(release, attacks, (0.01,), 0.95, 0.5, limits, levels)
    return found, decision(policy, release, found.ends, None, found.groups)


def check(decided, name):
    return [each for each in decided.checks if each.check == name]


def test_numbers_are_those_of_the_scores_of_the_group() -> None:
    """By the metrics on scores that are cut here, at the level that is computed here."""
    release = observed((400, 60), leak=(0, 2.0))
    findings = [each for each in judge(release, ATTACKS, (0.01,), 0.95).findings if each.scope.kind == "group"]
    assert [each.scope.name for each in findings] == ["class 0", "class 1"]
    level = 1 - 0.05 / 4  # two groups, two attacks
    for finding, units in zip(findings, (slice(0, 400), slice(400, 460)), strict=True):
        numbers = []
        for attack in ATTACKS:
            scores = attack(release.signals)
            part = Scores("", scores.value[:, units], scores.member[:, units], "", scores.variance_inflation)
            numbers.append((metrics.accuracy(part, 0.5, level), attack.name))
        best, name = max(numbers, key=lambda pair: pair[0].low)
        assert (finding.value, finding.low, finding.high, finding.attack) == (best.value, best.low, best.high, name)
        assert (finding.confidence, finding.method[-1].values["intervals"]) == (0.95, 4)
        assert finding.detail["largest"] == max(number.value for number, _ in numbers)


def test_a_policy_refuses_a_group_above_its_limit_whatever_the_average_is() -> None:
    release = observed((2000, 60), leak=(0, 2.5))
    found, decided = judged(release)
    average = max(
        each.high for each in found.findings if each.quantity == "accuracy" and each.attack and not each.scope.is_part
    )
    assert average < 0.55
    (worst,) = check(decided, "worst_group_accuracy")
    assert (worst.outcome, worst.group, decided.verdict) == ("not_kept", "class 1", "do_not_release")
    assert worst.low > 0.6


@pytest.mark.slow
def test_without_a_leak_all_groups_keep_their_limit() -> None:
    found, decided = judged(observed((2000, 60, 45, 30, 20)))
    assert [each.outcome for each in decided.checks] == ["kept", "kept"]
    assert decided.verdict == "release"
    assert [each.scope.name for each in found.findings if each.scope.kind == "group"] == [
        "class 0", "class 1", "class 2", "joined group 1", "class 4", "class 3",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_small_class_inside_a_joined_group_is_measured_by_itself() -> None:
    """Of 100 records in a joined group 30 leak: the joined one may look harmless, the class does not."""
    _, decided = judged(observed((2000, 30, 32), leak=(0, 3.0)))
    (worst,) = check(decided, "worst_group_accuracy")
    assert (worst.outcome, worst.group) == ("not_kept", "class 1")


def test_a_group_that_few_models_cannot_judge_is_open_with_the_number_that_can() -> None:
    """With 8 models a group needs 313 records; 30 of them need 84 models."""
    _, decided = judged(observed((2000, 30), n_models=8))
    (worst,) = check(decided, "worst_group_accuracy")
    assert (worst.outcome, worst.group, worst.reason.id) == ("open", "class 1", "group_includes_limit")
    assert worst.reason.values["needed"] == 84
    (exposed,) = check(decided, "exposed")
    level = 1 - 0.05 / (2 * 2 * 2)  # of two attacks, two limits, two groups
    assert (exposed.outcome, exposed.reason.values["needed"]) == ("open", metrics.models_needed(2030, level))
    assert decided.verdict == "ask"


@pytest.mark.slow
def test_a_group_of_fewer_than_20_is_judged_by_its_single_records() -> None:
    _, decided = judged(observed((2000, 8)))
    assert [(each.outcome, each.group) for each in check(decided, "worst_group_accuracy")] == [("kept", "class 0")]
    few = observed((2000, 8), n_models=16)
    names = {each.group: each.outcome for each in check(judged(few)[1], "worst_group_accuracy")}
    assert names["class 1"] == "open"


@pytest.mark.slow
def test_exposed_records_make_the_policy_ask_or_refuse_as_it_says() -> None:
    release = observed((2000, 60))
    log_odds = release.signals.arrays["log_odds"].copy()
    log_odds[:, :3] += 20 * (release.signals.game.member[:, :3] - 0.5)
    arrays = dict(release.signals.arrays) | {"log_odds": log_odds, "loss": np.logaddexp(0, -log_odds)}
    arrays["correct"] = (log_odds > 0).astype(float)
    release = replace(release, signals=Signals(release.signals.game, release.signals.points, arrays))
    for then, verdict in (("ask", "ask"), ("do_not_release", "do_not_release")):
        policy = policy_of({"limits": ["worst_group_accuracy=0.6"], "exposed": {"most": 0, "then": then}})
        _, decided = judged(release, policy)
        (exposed,) = check(decided, "exposed")
        assert (exposed.outcome, exposed.value, decided.verdict) == ("not_kept", 3, verdict)
    allowed = policy_of({"limits": ["exposed=3"]})
    assert judged(release, allowed)[1].verdict == "release"


@pytest.mark.slow
def test_without_classes_the_limit_is_open() -> None:
    member = games.half_split(400, 64).member
    value = np.random.default_rng(0).normal(size=member.shape)
    policy = {"limits": ["worst_group_accuracy=0.6"]}
    report = ls.audit_scores(value, member, references_are="none", policy=policy, n_jobs=1)
    (only,) = report.about.decisions[0].checks
    assert (only.outcome, only.reason.id) == ("open", "no_classes_known")
    towns = {"town": np.repeat(["Bern", "Chur"], 200)}
    report = ls.audit_scores(value, member, references_are="none", policy=policy, slices=towns, n_jobs=1)
    (only,) = report.about.decisions[0].checks
    assert (only.outcome, only.group[:6]) == ("kept", "town =")


@cache
def rare():
    """A logistic regression without a penalty on 40 positives among 1,000 records."""
    rng = np.random.default_rng(0)
    y = (np.arange(1000) < 40).astype(int)
    X = rng.normal(size=(1000, 20)) + 0.4 * y[:, None]
    model = LogisticRegression(C=1000, max_iter=2000)
    return ls.audit(model, X, y, n_models=48, attacks=["lira", "mast", "rmia"], policy="research", n_jobs=1)


def test_an_average_does_not_hide_the_rare_class() -> None:
    report = rare()
    (decided,) = report.about.decisions
    assert decided.verdict == "do_not_release"
    by_name = {each.check: each for each in decided.checks}
    assert by_name["accuracy"].outcome == "kept"
    assert (by_name["worst_group_accuracy"].outcome, by_name["worst_group_accuracy"].group) == ("not_kept", "class 1")


@pytest.mark.by_day("game0")
@pytest.mark.parametrize("game", [ls.PerDatum(0), ls.Canaries(targets=[0, 1, 2])])
def test_no_groups_in_games_of_single_records(game) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    report = ls.audit(LogisticRegression(), X, y, game=game, n_models=8, n_jobs=1)
    assert report.about.releases[0].groups is None
    assert not [each for each in report.findings if each.scope.kind == "group"]


def test_the_headline_names_the_rare_class_and_who_is_exposed() -> None:
    report = rare()
    finding = max((each for each in report.findings if each.scope.kind == "group" and each.low), key=lambda f: f.low)
    facts = report.about.releases[0]
    sizes = {group.name: group.records for group in facts.groups.groups}
    assert finding.scope.name == "class 1"
    text = " ".join(report.table(width=1000, full=True).split())
    assert "In the most exposed group, class 1, the attacker is right in" in text
    assert f"belong to class 1, which has {sizes['class 1']}." in text
    page = report.to_html()
    for words in ("Group by group", "In the most exposed group, class 1", "All 6 intervals hold at once"):
        assert words in page
    assert "In the most exposed group, class 1" in report._repr_html_()


def test_a_joined_group_of_all_records_is_not_said_to_have_the_exposed_ones() -> None:
    report = reported(AuditPlan(), ATTACKS, AuditRun([observed((30, 30), n_models=16, leak=(8, 8))]))
    facts = report.about.releases[0]
    assert [group.name for group in facts.groups.groups if group.judged] == ["joined group 1"]
    assert facts.games.exposed > 1
    assert "belong to joined group 1, which has" not in " ".join(report.table(width=1000, full=True).split())
    short = " ".join(report.table().split())
    assert "joined group 1" not in short
    assert f"too small to be told apart: each has fewer than {facts.groups.least} records" in short


def test_what_is_published_has_no_counts_of_exposed_records_of_a_group() -> None:
    report = rare()
    free = report.without_records()
    assert {group.exposed for group in free.about.releases[0].groups.groups} == {None}
    page = report.to_html(publish=True)
    assert "In the most exposed group, class 1" in page
    assert "belong to class" not in page


@pytest.mark.slow
def test_small_classes_are_not_named_where_published() -> None:
    found = judge(observed((2000, 100, 12, 9, 7)), ATTACKS, (0.01,), 0.95)
    facts = {group.name: group.joined for group in found.facts.groups.groups}
    assert facts["joined group 1"] == ("class 4", "class 3", "class 2")
    report = reported(
        AuditPlan(policy={"limits": ["worst_group_accuracy=0.6"]}), ATTACKS, AuditRun([observed((2000, 100, 12, 9, 7))])
    )
    free = report.without_records().about.releases[0].groups
    assert {group.name: group.joined for group in free.groups}["joined group 1"] == ("class 2",)
    assert free.left_out == 2
    for text in (report.to_html(publish=True), report.without_records().to_json()):
        assert "class 4" not in text
        assert "class 3" not in text
    assert "class 4" in report.to_html()


@pytest.mark.slow
def test_a_policy_without_a_group_limit_says_so() -> None:
    words = "No limit of this policy looks at groups of records"
    for limit, is_said in (("accuracy=0.6", True), ("worst_group_accuracy=0.6", False)):
        plan = AuditPlan(policy={"limits": [limit]})
        report = reported(plan, ATTACKS, AuditRun([observed((200, 60))]))
        assert (words in " ".join(report.table(width=1000, full=True).split())) == is_said


@pytest.mark.slow
def test_several_models_have_a_column_of_their_worst_groups() -> None:
    releases = [observed((400, 60), leak=(0, 2.5)), replace(observed((400, 60)), name="other")]
    report = reported(AuditPlan(), ATTACKS, AuditRun(releases))
    page = report.to_html()
    assert "Worst group" in page
    assert ": class 1</td>" in page


@pytest.mark.slow
def test_the_20_worst_of_many_groups_are_shown() -> None:
    release = observed([40] * 25, leak=[0] * 24 + [3.0])
    report = reported(AuditPlan(), ATTACKS, AuditRun([release]))
    page = report.to_html()
    assert "These are the 20 of 25 groups of which most is revealed." in page
    assert len([each for each in report.findings if each.scope.kind == "group"]) == 25
    (part,) = audit_page(report).groups
    assert (len(part.rows), part.rows[0].title) == (20, "class 24")
    assert "worst group: class 24" in report.table()


@pytest.mark.parametrize("n_records", [1, 2, 400])
def test_one_game_against_each_record_tests_none_and_the_reason_says_so(n_records) -> None:
    """Of a single record, too, where one game would be enough for the level alone."""
    reason = _of_one_model(AttackedGroups(Grouped([], n_records, 1, 0.5, np.zeros(0, bool)), [], GroupLevels(0.5, 0.4)))
    assert reason.id == "records_of_one_model"
    assert reason.values["needed"] >= 2


def test_of_one_model_single_records_are_open() -> None:
    member = np.arange(400) % 2 == 0
    report = ls.audit_scores(1.0 * member, member, policy={"limits": ["exposed=0"]}, n_jobs=1)
    (only,) = report.about.decisions[0].checks
    assert (only.outcome, only.reason.id) == ("open", "records_of_one_model")
