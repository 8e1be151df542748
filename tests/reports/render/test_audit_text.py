from dataclasses import replace

import pytest

from leakbound.core.findings import Finding, Term
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Verdict
from leakbound.reports.render.text import WIDTH, table
from tests.reports import samples
from tests.reports.made import ATTACKS, made

SAMPLES = ("two_models", "one_model_no_claim", "no_leak", "few_models", "tiny")


@pytest.mark.parametrize("name", SAMPLES)
def test_lines_fit_a_terminal(name):
    text = table(getattr(samples, name)())
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.endswith("\n")
    assert all(char.isprintable() for line in text.splitlines() for char in line)


def test_attacks_stand_strongest_first_with_their_numbers():
    tpr = Finding("tpr", 0.654, 0.643, 0.668, operating_point={"fpr": 0.01}, release="forest", attack="lira")
    gap = Finding("accuracy", 0.516, 0.515, 0.518, operating_point={"prior": 0.5}, release="forest", attack="gap")
    refused = Finding(
        "tpr", None, operating_point={"fpr": 0.01}, reason=Term("one point"), release="forest", attack="gap"
    )
    lines = table(made(findings=(gap, tpr, refused))).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("attack"))
    assert lines[start : start + 4] == [
        "attack    attack accuracy, %  AUC  TPR at FPR 1 %",
        "LiRA      91.3 (91.1..91.5)   -    65 % (64..67)",
        "gap       51.6 (51.5..51.8)   -    -",
        "baseline  50                  0.5  1 %",
    ]


def test_a_rate_over_too_few_models_says_so():
    tpr = Finding("tpr", 0.12, operating_point={"fpr": 0.01}, release="forest", attack="lira", refused="too_few_models")
    assert "12 % (too few models)" in table(made(findings=(tpr,)))


def test_columns_that_do_not_fit_follow_below():
    rates = [0.1, 0.01, 0.001, 0.0001]
    found = [
        Finding("tpr", 0.00943, 0.00831, 0.01069, operating_point={"fpr": fpr}, release="forest", attack="lira")
        for fpr in rates
    ]
    auc = Finding("auc", 0.97471, 0.97382, 0.97559, release="forest", attack="lira")
    long = ATTACKS | {"lira": ATTACKS["lira"] | {"title": "an attack with a name that never ends " * 2}}
    text = table(made(findings=(auc, *found), about={"fpr": rates, "attacks": long}))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.count("0.94 % (0.83..1.07)") == 4
    assert text.count("an attack with a na...") == 2


def test_verdicts_and_the_most_exposed_record_are_there():
    text = table(samples.two_models())
    assert "Refuted: Random forest, epsilon = 4, delta = 1e-05, replace one." in text
    assert "Not refuted: Logistic regression" in text
    assert text.count("For the most exposed record the attacker won") == 2


def test_control_characters_do_not_reach_the_terminal():
    report = made(
        facts={"title": "x\x1b[31m\n"},
        verdict=Verdict(Claim("eta", 0.1), "cannot_be_tested", reason=Term("own_words", words="no a\x07b")),
    )
    text = table(report)
    assert "\x1b" not in text
    assert r"a\x07b" in text


def test_the_text_is_that_of_the_json(tmp_path):
    report = samples.few_models()
    report.to_json(tmp_path / "report.json")
    assert table(type(report).from_json(tmp_path / "report.json")) == table(report)
    assert report.table() == table(replace(report))
