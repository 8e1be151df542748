"""Audits of data sets that share nothing but their targets, from the call to the page."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from tests.cli.calling import caller, draw_no_pages, refused

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(600, 4)), RNG.integers(2, size=600)


def audited(game: ls.Fresh, **words) -> ls.Report:
    return ls.audit(DecisionTreeClassifier(random_state=0), X, Y, game=game, n_models=16, n_jobs=1, **words)


def text_of(report: ls.Report) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]+>", " ", report.to_html())))


def test_a_tree_that_learns_by_heart_is_found_and_the_page_says_what_was_drawn() -> None:
    report = audited(ls.Fresh(10, 100), attacks=["loss", "lira"])
    facts = report.about.releases[0]
    assert (facts.game, facts.fresh.targets, facts.fresh.size, facts.fresh.pool) == ("fresh", 10, 100, 590)
    assert facts.target_points == 10
    auc = next(finding for finding in report.findings if (finding.quantity, finding.attack) == ("auc", "loss"))
    assert auc.low > 0.6
    page = text_of(report)
    assert "A data set has 100 records: each of 10 targets is in it by a fair coin" in page
    # 1 / sqrt(1 - 100 / 590) = 1.097
    assert "from 590 others, which makes the distance between members and others 9.7 % larger" in page
    assert "nothing is said of records that were not drawn as targets" in page
    assert "of a data set are targets" not in page
    assert "knows the pool" not in page


def test_with_many_targets_the_page_says_what_the_references_know() -> None:
    report = audited(ls.Fresh(40, 100, sample=30, slices={"half": np.arange(600) % 2}), attacks="loss")
    facts = report.about.releases[0]
    assert (facts.fresh.targets, facts.target_points, facts.sampled_from, facts.fresh.pool) == (40, 30, 40, 560)
    page = text_of(report)
    assert "On average 20.0 % of a data set are targets, with which the reference models were trained, too" in page
    assert {finding.scope.name for finding in report.findings if finding.scope.kind == "slice"}


@pytest.mark.parametrize("claimed", ["mu=0.1,adjacency=replace_one", "epsilon=0.1,adjacency=add_remove", "eta=0.01"])
def test_claims_are_put_to_the_test(claimed) -> None:
    report = audited(ls.Fresh(60, 100), attacks="loss", claims=claimed, policy="research")
    (verdict,) = [curve.verdict for curve in report.curves if curve.verdict is not None]
    assert verdict.word == ("refuted" if "eta" not in claimed else "not_refuted")  # no single record in 16 models
    assert report.about.decisions


def test_the_command_line_and_a_plan_play_it(monkeypatch, capfd, tmp_path) -> None:
    draw_no_pages(monkeypatch)
    run = caller(monkeypatch, capfd)
    model = "--model sklearn.tree:DecisionTreeClassifier --attack loss --n-models 4 --n-jobs 1"
    flags = f"audit --dataset wine {model} --game fresh,targets=4,size=40 --out {tmp_path}/flags"
    assert run(flags).code == 0
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'dataset = "wine"\nattacks = ["loss"]\nn_models = 4\n[game.fresh]\ntargets = 4\nsize = 40\n'
        '[[model]]\nspec = "sklearn.tree:DecisionTreeClassifier"\n'
    )
    assert run(f"audit {plan} --n-jobs 1 --out {tmp_path}/plan").code == 0
    by_flags, by_plan = (ls.Report.from_json(tmp_path / name / "report.json") for name in ("flags", "plan"))
    assert by_flags.findings == by_plan.findings
    assert "4 target points" in run(flags.replace("--out", "--dry-run --out")).out
    refused(run(flags.replace("size=40", "size=44")), "fresh data sets of size=44 need 176 others to be drawn from")
