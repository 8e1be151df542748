from dataclasses import replace

import pytest

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Verdict
from leakbound.reports.render.text import WIDTH, table
from tests.reports import samples
from tests.reports.made import made, spread
from tests.reports.page_reading import said

SAMPLES = ("two_models", "one_model_no_claim", "no_leak", "few_models", "tiny")


@pytest.mark.parametrize("name", SAMPLES)
def test_lines_fit_a_terminal(name):
    text = table(getattr(samples, name)())
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.endswith("\n")
    assert all(char.isprintable() for line in text.splitlines() for char in line)


@pytest.mark.by_day("tiny")
@pytest.mark.parametrize("name", SAMPLES)
def test_a_person_reads_it_standing(name):
    """At most 25 lines of one result, 40 of several, at 80 columns; all that the page says on demand."""
    report = getattr(samples, name)()
    text = table(report, 80)
    assert len(text.splitlines()) <= (40 if name == "two_models" else 25)
    assert max(map(len, text.splitlines())) <= 80
    full = table(report, 80, full=True)
    for words in ("What can be done about it", "The words on this page", "All findings"):
        assert words in full
        assert words not in text


def test_attacks_stand_strongest_first_with_their_numbers():
    tpr = Finding("tpr", 0.654, 0.643, 0.668, operating_point={"fpr": 0.01}, release="forest", attack="lira")
    gap = Finding("accuracy", 0.516, 0.515, 0.518, operating_point={"prior": 0.5}, release="forest", attack="gap")
    best = Finding("tpr", 0.7, 0.6, 0.8, operating_point={"fpr": 0.01}, release="forest", attack="gap")
    lines = said(table(made(findings=(gap, tpr, best)))).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(" Attack"))
    assert [" ".join(line.split()) for line in (lines[start], *lines[start + 2 : start + 4])] == [
        "Attack Right of 100 TPR at FPR 1 %",
        "LiRA 91.3 (91.1 to 91.5) 65 % (64 to 67)",
        "gap 51.6 (51.5 to 51.8) 70 % (60 to 80)",
    ]


def test_the_worst_group_and_the_most_exposed_record_stand_in_the_table():
    of_class = {"release": "forest", "attack": "lira", "scope": Scope("group", name="class 7"), "confidence": 0.95}
    other = of_class | {"scope": Scope("group", name="class 1")}
    found = [
        Finding("accuracy", 0.97, 0.95, 0.99, detail={"records": 20}, **of_class),
        Finding("accuracy", 0.8, 0.7, 0.9, detail={"records": 80}, **other),
    ]
    text = said(table(made((0.55, 0.54, 0.56), won=spread(64, w32=90, w64=10), findings=tuple(found))))
    assert "In the most exposed group, class 7, the attacker is right in" in " ".join(text.split())
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "worst group: class 7 97 (95 to 99)" in rows
    assert "most exposed record ≥ 88" in rows


def test_a_rate_over_too_few_models_says_so():
    tpr = Finding("tpr", 0.12, operating_point={"fpr": 0.01}, release="forest", attack="lira", refused="too_few_models")
    assert "12 % (too few models for an interval)" in said(table(made(findings=(tpr,))))


def test_verdicts_are_there():
    text = table(samples.two_models())
    assert "Refuted: Random forest, epsilon = 4, delta = 1e-05, replace one." in text
    assert "Not refuted: Logistic regression" in text


def test_control_characters_do_not_reach_the_terminal():
    report = made(
        facts={"title": "x\x1b[31m\n"},
        verdict=Verdict(Claim("eta", 0.1), "cannot_be_tested", reason=Term("own_words", words="no a\x07b")),
    )
    text = table(report)
    assert "\x1b" not in text
    assert "a\x07b" not in text
    assert "a⟨U+0007⟩b" in table(report, full=True)


def test_the_text_is_that_of_the_json(tmp_path):
    report = samples.few_models()
    report.to_json(tmp_path / "report.json")
    assert table(type(report).from_json(tmp_path / "report.json")) == table(report)
    assert report.table() == table(replace(report))
