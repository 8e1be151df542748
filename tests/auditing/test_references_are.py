"""Scores of other programs: whether the attack compared the attacked models with each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound.attacks import ATTACKS, UNKNOWN_INFLATION
from leakbound.attacks.given import Given
from tests.cli.calling import caller, draw_no_pages, refused

GAME = ls.games.half_split(120, 16)


def lira_on_noise(seed: int, n_points: int = 120, n_models: int = 16) -> ls.Scores:
    """Scores of LiRA, each model with the others as references, on signals that tell nothing."""
    game = ls.games.half_split(n_points, n_models, seed=seed)
    noise = np.random.default_rng(5000 + seed).normal(size=game.member.shape)
    return ATTACKS["lira"](ls.Signals(game, None, {"log_odds": noise}))


def finding(report: ls.Report, quantity: str) -> ls.Finding:
    return next(each for each in report.findings if each.quantity == quantity and each.attack == "scores")


def width_of_auc(report: ls.Report) -> float:
    auc = finding(report, "auc")
    assert auc.low is not None
    assert auc.high is not None
    return auc.high - auc.low


def test_intervals_of_scores_of_targets_that_are_references_cover_chance() -> None:
    """At a coverage of exactly 95 % more than 12 of 100 misses have a probability of .0015."""
    missed = {1.0: 0, UNKNOWN_INFLATION: 0}
    for seed in range(100):
        scores = lira_on_noise(seed)
        signals = ls.Signals(ls.Game("scores", scores.member, np.ones(120, dtype=bool), 16), None, {})
        for inflation in missed:
            auc = ls.metrics.auc(Given("scores", scores.value, variance_inflation=inflation)(signals))
            missed[inflation] += not auc.low <= 0.5 <= auc.high
    assert missed[UNKNOWN_INFLATION] <= 12
    assert missed[1.0] > 12  # as wide as those of models that are no references of each other


def test_the_wide_interval_is_the_default_and_the_report_says_why() -> None:
    scores = lira_on_noise(0)
    by_word = {
        word: ls.audit_scores(scores.value, scores.member, references_are=word, n_jobs=1)
        for word in ("targets", "separate", "none")
    }
    width = {word: width_of_auc(report) for word, report in by_word.items()}
    assert width["targets"] > 1.5 * width["separate"]
    assert width["separate"] == width["none"]
    default = ls.audit_scores(scores.value, scores.member, n_jobs=1)
    assert finding(default, "auc") == finding(by_word["targets"], "auc")
    assert any("multiplied by 4.5" in note for note in default.about.notes)
    assert not any("multiplied" in note for note in by_word["none"].about.notes)


def test_epsilon_of_scores_that_compare_the_models_is_that_of_one_model() -> None:
    rng = np.random.default_rng(0)
    value = rng.normal(2.0 * GAME.member)
    wide, narrow = (
        next(each for each in ls.audit_scores(value, GAME.member, references_are=word, n_jobs=1).findings
             if each.quantity == "epsilon")
        for word in ("targets", "none")
    )  # fmt: skip
    only = ls.audit_scores(value[0], GAME.member[0], n_jobs=1)
    assert wide.value == next(each.value for each in only.findings if each.quantity == "epsilon")
    assert "scores_of_one_model" in [term.id for term in narrow.assumptions]
    assert "scores_of_one_model" not in [term.id for term in wide.assumptions]


def test_one_model_makes_no_difference() -> None:
    value, member = lira_on_noise(0).value[0], GAME.member[0]
    reports = [ls.audit_scores(value, member, references_are=word, n_jobs=1) for word in ("targets", "none")]
    assert finding(reports[0], "auc") == finding(reports[1], "auc")
    assert reports[0].about.notes == reports[1].about.notes


@pytest.mark.usefixtures("as_users_run_it")
def test_one_record_a_model_needs_the_word() -> None:
    value, member = np.arange(40.0)[:, None], np.arange(40)[:, None] % 2 == 0
    with pytest.raises(ValueError, match=r"^scores of one record by 40 models .* say references_are='separate'"):
        ls.audit_scores(value, member)
    report = ls.audit_scores(value, member, references_are="separate", n_jobs=1)
    assert finding(report, "auc").value is not None
    with pytest.raises(ValueError, match="unknown references_are"):
        ls.audit_scores(value, member, references_are="other")  # type: ignore[arg-type]


def test_the_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    draw_no_pages(monkeypatch)
    run = caller(monkeypatch, capfd)
    scores = lira_on_noise(0, 40, 8)
    frame = pd.DataFrame(
        {"model": np.repeat(np.arange(8), 40), "member": scores.member.ravel(), "score": scores.value.ravel()}
    )
    frame.to_csv("scores.csv", index=False)
    width = {}
    for word in ("", "targets", "none"):
        flag = f"--references-are {word}" if word else ""
        assert run(f"audit scores scores.csv {flag} --n-jobs 1 --out out").code == 0
        width[word] = width_of_auc(ls.Report.from_json("out/report.json"))
    assert width[""] == width["targets"] > 1.5 * width["none"]
    left = run("audit --dataset wine --references-are none")
    refused(left, "audit has no --references-are; use leakbound audit scores FILE --references-are")
