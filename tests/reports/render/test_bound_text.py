import re

import pytest

from leakbound.core.findings import Finding
from leakbound.reports.render.text import WIDTH
from tests.reports import made_bounds
from tests.reports.made_bounds import bound

SAMPLES = ("dp", "leakage", "odd_cells", "many_cells", "one_record", "gap", "regression", "subsampled", "empty")


@pytest.mark.parametrize("name", SAMPLES)
def test_lines_fit_a_terminal(name):
    text = getattr(made_bounds, name)().table()
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.endswith("\n")
    assert all(char.isprintable() for line in text.splitlines() for char in line)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_terminal_of_80_columns_shows_at_most_25_lines(name):
    lines = getattr(made_bounds, name)().table(80).splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80


def test_question_answer_and_the_most_important_findings():
    lines = made_bounds.dp().table().splitlines()
    assert lines[:5] == [
        "What does (epsilon, delta)-DP allow any attacker?",
        "Bound · epsilon = 1, delta = 1e-05, replace one · leakbound 0.1.0",
        "",
        "An attacker who guesses whether a given record is in the data is right in at most 73.2 of 100 cases.",
        "That holds whoever the record is and whatever the attacker computes. Guessing from the prior alone",
    ]
    rows = [" ".join(line.split()) for line in lines]
    assert "Accuracy of any attacker, prior ½ 73.2 of 100 upper bound certified" in rows
    assert "ε at δ = 10⁻⁵ 1.00 upper bound certified" in rows
    assert "TPR of any attacker at FPR 0.1 % 0.28 % upper bound certified" in rows
    assert not [row for row in rows if row.startswith("Advantage")]  # it follows from the accuracy
    assert lines[-1] == "The page and --full have 8 numbers in all, with sources and assumptions."


def test_the_full_text_has_each_source_and_every_finding():
    text = made_bounds.regression().table(200, full=True)
    for source in ("Delgrosso 2021, Sec. 5", "Delgrosso 2021, Theorem 3", "Cover 2006", "Delgrosso 2021, eq. 80"):
        assert source in text
    assert "Information about membership, nats" in text


def test_the_first_rows_of_the_ranking_and_the_notes():
    lines = made_bounds.leakage().table().splitlines()
    first, *_ = [line for line in lines if line.startswith("The most exposed records")]
    assert re.findall(r"(\d+) \([\d.]+\)", first + " ".join(lines[lines.index(first) + 1 :])) == [
        str(each) for each in made_bounds.leakage().record_table["record"][:3]
    ]
    assert "Two columns are constant and were left out." in lines


def test_control_characters_and_long_names_do_not_reach_the_terminal():
    report = made_bounds.table(["a\x1b[31m\n", "x" * 500], [1, 1], [0.5, 0.5], subject="s\x07", notes=["n\x00"])
    for text in (report.table(), report.table(full=True)):
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)
        assert "s⟨U+0007⟩" in text
        assert "n⟨U+0000⟩" in text
        assert "x" * 200 not in "".join(text.split())


def test_small_numbers_are_powers_of_ten():
    found = Finding("information", 1.3055e-5, bound_type="upper", status="certified")
    assert "1.31 \u00d7 10⁻⁵" in bound([found]).table()
