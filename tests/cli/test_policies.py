"""Policies, variants and PDF on the command line."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable

import pytest

from leakbound.plans.policies import ready_text
from leakbound.reports import Report
from leakbound.reports.render import pdf
from tests.cli.calling import Left, caller, draw_no_pages, refused

STUMP = (
    "--dataset wine --model sklearn.tree:DecisionTreeClassifier --set max_depth=1 --n-models 8 --attack gap --n-jobs 1"
)


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd, as_users_run_it) -> Callable[[str], Left]:
    """A command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    draw_no_pages(monkeypatch)
    return caller(monkeypatch, capfd)


@pytest.mark.parametrize(
    ("limit", "code", "verdict"),
    [("auc=0.9", 0, "release"), ("auc=0.55", 3, "ask"), ("auc=0.5001", 3, "do_not_release")],
)
def test_the_verdict_is_the_exit_code(leakbound, tmp_path, limit, code, verdict):
    (tmp_path / "policy.toml").write_text(f'limits = ["{limit}"]', encoding="utf-8")
    left = leakbound(f"audit {STUMP} --policy policy.toml --author 'A. Lovelace'")
    about = json.loads((tmp_path / "leakbound-report" / "report.json").read_text())["about"]
    assert [decision["verdict"] for decision in about["decisions"]] == [verdict]
    assert about["plan"]["author"] == "A. Lovelace"
    assert "policy.toml" not in json.dumps(about["plan"])
    assert left.code == code
    if code:
        assert f"limit: DecisionTreeClassifier: the policy says {verdict.replace('_', ' ')}" in left.err


def test_the_time_of_more_models_is_said_where_some_were_fitted(leakbound, tmp_path):
    """8 models test no single record: the verdict names how many do. A report has no times, so the terminal has."""
    (tmp_path / "policy.toml").write_text('limits = ["exposed=0"]', encoding="utf-8")
    command = f"audit {STUMP} --policy policy.toml"
    first = leakbound(command)
    report = (tmp_path / "leakbound-report" / "report.json").read_bytes()
    (check,) = json.loads(report)["about"]["decisions"][0]["checks"]
    needed = check["reason"]["values"]["needed"]
    line = rf"DecisionTreeClassifier: {needed} models: about \d+ s at [\d.]+ s a fit"
    assert len(re.findall(line, first.err)) == 1
    again = leakbound(command)  # nothing was fitted
    assert "a fit" not in again.err


def test_a_policy_is_written_to_start_from(leakbound, tmp_path):
    left = leakbound("init mine.toml --policy research")
    assert "audit model MODEL --members FILE --others FILE --policy mine.toml" in left.err
    assert (tmp_path / "mine.toml").read_text(encoding="utf-8") == ready_text("research")
    refused(
        leakbound("init other.toml --policy reserch"), "there is no ready policy 'reserch'; ready policies: research"
    )
    assert not (tmp_path / "other.toml").exists()


def test_one_model_is_varied(leakbound, tmp_path):
    leakbound(f"audit {STUMP.replace('--set max_depth=1', '')} --vary max_depth=1,none --vary criterion=gini,entropy")
    report = Report.from_json(tmp_path / "leakbound-report" / "report.json")
    assert [release.name for release in report.about.releases] == [
        "max_depth=1, criterion=gini",
        "max_depth=1, criterion=entropy",
        "max_depth=none, criterion=gini",
        "max_depth=none, criterion=entropy",
    ]
    assert "max_depth=1" in report.about.releases[0].description


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (
            "--vary max_dept=1,2",
            "sklearn.tree:DecisionTreeClassifier: unknown parameter 'max_dept' (did you mean 'max_depth'?)",
        ),
        ("--vary max_depth", "--vary: write COLUMN=a,b,c, got 'max_depth'"),
        ("--vary max_depth=1", "audit: vary needs at least 2 different values of max_depth"),
        ("--model sklearn.naive_bayes:GaussianNB --vary max_depth=1,2", "audit: vary is of one model, and there are 2"),
        ("--policy nowhere.toml", "audit: policy: nowhere.toml: no such policy file; ready policies: research"),
        (
            "--policy research --game attribute,column=alcohol",
            "audit: a policy limits what is inferred about membership",
        ),
    ],
)
def test_what_is_wrong_is_one_line(leakbound, tmp_path, flags, line):
    refused(leakbound(f"audit --dataset wine --model sklearn.tree:DecisionTreeClassifier {flags}"), line)
    assert not (tmp_path / "leakbound-report").exists()


def test_a_pdf_is_for_the_owner_alone(leakbound, tmp_path, monkeypatch):
    monkeypatch.setattr(pdf, "print_page", lambda text: b"%PDF " + text.encode()[:6])
    leakbound(f"audit {STUMP} --pdf")
    file = tmp_path / "leakbound-report" / "report.pdf"
    assert file.read_bytes() == b"%PDF a page"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_without_a_printer_the_page_is_kept(leakbound, tmp_path, monkeypatch):
    def fail(text: str) -> bytes:
        raise RuntimeError(pdf.NOTHING_PRINTS)

    monkeypatch.setattr(pdf, "print_page", fail)
    left = leakbound(f"audit {STUMP} --pdf")
    assert left.code == 1
    assert "leakbound: error: a PDF needs Chromium" in left.err
    assert (tmp_path / "leakbound-report" / "report.html").exists()
    assert (tmp_path / "leakbound-report" / "report.json").exists()
