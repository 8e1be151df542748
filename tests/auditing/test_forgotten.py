"""Audits of removals, from the call and the plan to the page."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from tests.cli.calling import caller, draw_no_pages, refused

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(400, 4)), RNG.integers(2, size=400)
TREE = DecisionTreeClassifier(random_state=0)


def again(model, X_removed, y_removed, X_kept, y_kept, seed):
    return DecisionTreeClassifier(random_state=0).fit(X_kept, y_kept)


def not_at_all(model, X_removed, y_removed, X_kept, y_kept, seed):
    return model


def audited(unlearn, **words) -> ls.Report:
    kept = words.pop("kept", "half")
    return ls.audit(TREE, X, Y, game=ls.Forgotten(unlearn, 60, kept=kept), n_jobs=1, **words)


@pytest.fixture(scope="module")
def incomplete() -> ls.Report:
    return audited(not_at_all, claims=["epsilon=0.5,adjacency=add_remove", "mu=1,adjacency=replace_one"])


def text_of(report: ls.Report) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]+>", " ", report.to_html())))


def told_apart(report: ls.Report) -> ls.Finding:
    return next(finding for finding in report.findings if finding.quantity == "told_apart")


def test_a_removal_that_removes_nothing_is_found(incomplete) -> None:
    report = incomplete
    facts = report.about.releases[0]
    assert (facts.game, facts.kept, facts.models, facts.target_points) == ("forgotten", "half", 16, 60)
    finding = told_apart(report)
    assert finding.low > 0.6
    assert finding.method[-1].id == "all_attacks_at_once"
    # wider than the interval of the same attack alone
    alone = next(each for each in report.findings if (each.quantity, each.attack) == ("auc", finding.attack))
    assert (finding.value, finding.low < alone.low) == (alone.value, True)
    page = text_of(report)
    assert "The removal is not complete" in page
    assert "Can it be told which records were removed from DecisionTreeClassifier?" in page
    assert "DecisionTreeClassifier(random_state=0), then not_at_all" in page
    assert "the attacker does not see the model before the removal" in page
    assert "a random half of the other records was kept; they are not judged" in page


def test_claims_are_about_the_result(incomplete) -> None:
    """With the record put in and removed, or never in: add/remove; a record is not replaced by another one."""
    verdicts = {curve.name: curve.verdict for curve in incomplete.curves if curve.verdict is not None}
    words = {name.partition(" ")[0]: verdict.word for name, verdict in verdicts.items()}
    assert words == {"epsilon": "refuted", "mu": "cannot_be_tested"}


def test_an_exact_removal_shows_nothing() -> None:
    report = audited(again, kept="all", policy="research")
    finding = told_apart(report)
    assert finding.low <= 0.5 <= finding.high
    page = text_of(report)
    assert "No attack tells records that were removed from DecisionTreeClassifier from those that never were in" in page
    assert "What is seen was rounded to 1e-9 of its size" in page
    assert report.about.decisions


def test_lira_alone_gives_no_verdict_without_a_word(incomplete) -> None:
    page = text_of(audited(again, attacks="lira"))
    assert "LiRA alone misses most removals that are not complete: ask for mast or rmia, too" in page
    assert "LiRA alone" not in text_of(incomplete)


def test_units_are_removed_together() -> None:
    group = np.arange(400) // 2
    removed = []

    def noted(model, X_removed, y_removed, X_kept, y_kept, seed):
        removed.append(X_removed)
        return model

    ls.audit(TREE, X, Y, game=ls.Forgotten(noted, 20), groups=group, n_jobs=1, n_models=4, attacks="loss")
    for rows in removed:
        place = np.flatnonzero((X[:, None, 0] == rows[:, 0]).any(axis=1))
        np.testing.assert_array_equal(place[::2] // 2, place[1::2] // 2)


def test_other_removals_are_other_models_of_a_store(tmp_path) -> None:
    words = {"store": tmp_path, "n_models": 4, "attacks": "loss"}
    first, second, third = (audited(unlearn, **words) for unlearn in (again, not_at_all, again))
    assert [report.about.execution.reused for report in (first, second, third)] == [0, 0, 4]
    assert told_apart(first) == told_apart(third) != told_apart(second)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ({"unlearn": again, "targets": 399}, "399 targets of 400 leave 1 to be kept; needs at least 2"),
        ({"unlearn": lambda model: model, "targets": 4}, "unlearn must take (model, X_removed, y_removed, X_kept, "),
    ],
)
def test_what_cannot_be_played_is_one_line(words, line) -> None:
    with pytest.raises(ValueError, match=re.escape(line)):
        ls.audit(LogisticRegression(), X, Y, game=ls.Forgotten(**words), attacks="loss", n_jobs=1)


def test_the_command_line_and_a_plan_play_it(monkeypatch, capfd, tmp_path) -> None:
    draw_no_pages(monkeypatch)
    run = caller(monkeypatch, capfd)
    (tmp_path / "ours_of_forgetting.py").write_text(
        "from sklearn.tree import DecisionTreeClassifier\n\n\n"
        "def unlearn(model, X_removed, y_removed, X_kept, y_kept, seed):\n"
        "    return DecisionTreeClassifier(random_state=seed).fit(X_kept, y_kept)\n"
    )
    monkeypatch.chdir(tmp_path)
    flags = (
        "audit --dataset wine --model sklearn.tree:DecisionTreeClassifier --attack loss --n-models 4 --n-jobs 1 "
        "--game forgotten,unlearn=ours_of_forgetting:unlearn,targets=30"
    )
    assert run(f"{flags} --out flags").code == 0
    (tmp_path / "plan.toml").write_text(
        'dataset = "wine"\nattacks = ["loss"]\nn_models = 4\n[game.forgotten]\n'
        'unlearn = "ours_of_forgetting:unlearn"\ntargets = 30\n'
        '[[model]]\nspec = "sklearn.tree:DecisionTreeClassifier"\n'
    )
    refused(run("audit plan.toml --n-jobs 1 --out plan"), "ours_of_forgetting:unlearn: a plan runs no code but")
    assert run("audit plan.toml --allow-modules ours_of_forgetting --n-jobs 1 --out plan").code == 0
    by_flags, by_plan = (ls.Report.from_json(tmp_path / name / "report.json") for name in ("flags", "plan"))
    assert by_flags.findings == by_plan.findings
    assert "30 target points" in run(f"{flags} --dry-run").out


def test_what_a_score_sees_can_be_removed() -> None:
    """The mean of the records, without labels: exact where it is computed again."""

    def mean(X, seed):
        return X.mean(axis=0)

    def closeness(centre, X):
        return -np.square(X - centre).sum(axis=1)

    def mean_again(centre, X_removed, y_removed, X_kept, y_kept, seed):
        assert y_removed is None
        return X_kept.mean(axis=0)

    def kept_as_it_was(centre, *rest):
        return centre

    exact, as_it_was = (
        ls.audit(mean, X[:100], score=closeness, game=ls.Forgotten(unlearn, 60, kept="all"), n_jobs=1)
        for unlearn in (mean_again, kept_as_it_was)
    )
    assert told_apart(as_it_was).low > 0.5
    assert told_apart(exact).reason.id == "no_attack"  # the same numbers in every model
    assert "LiRA alone" not in str(exact)
