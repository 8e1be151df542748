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


def test_question_answer_and_findings():
    lines = made_bounds.dp().table().splitlines()
    assert lines[:5] == [
        "What does (epsilon, delta)-DP allow any attacker?",
        "Bound, epsilon = 1, delta = 1e-05, replace one, leakbound 0.1.0",
        "",
        "An attacker who guesses whether a given record is in the data is right in at most 73.2 of 100 cases,",
        "whoever the record is and whatever the attacker computes; guessing from the prior alone gives 50.",
    ]
    rows = [" ".join(line.split()) for line in lines]
    assert "Accuracy of any attacker, prior 1/2 73.2 of 100 exact upper bound certified" in rows
    assert "epsilon at delta = 1e-05 1.00 exact upper bound certified" in rows
    assert "TPR of any attacker at FPR 0.1 % 0.28 % exact upper bound certified" in rows
    assert lines[-1] == "Source: Kairouz 2015, Theorem 2.1"


def test_several_sources_are_numbered():
    lines = made_bounds.regression().table().splitlines()
    assert lines[-4:] == [
        "[1] Delgrosso 2021, Sec. 5",
        "[2] Delgrosso 2021, Theorem 3",
        "[3] Cover 2006",
        "[4] Delgrosso 2021, eq. 80",
    ]
    (upper,) = [line for line in lines if "upper bound" in line and line.startswith("Accuracy")]
    assert upper.endswith("[3]")


def test_ten_rows_of_the_ranking_and_the_notes():
    lines = made_bounds.leakage().table().splitlines()
    start = lines.index("The most exposed records:")
    assert lines[start + 1].split("  ")[0] == "Record"
    assert [line.split()[0] for line in lines[start + 2 : start + 12]] == [
        str(each) for each in made_bounds.leakage().record_table["record"][:10]
    ]
    assert lines[start + 12 :] == ["", "Two columns are constant and were left out."]


def test_control_characters_and_long_names_do_not_reach_the_terminal():
    report = made_bounds.table(["a\x1b[31m\n", "x" * 500], [1, 1], [0.5, 0.5], subject="s\x07", notes=["n\x00"])
    text = report.table()
    assert "\x1b" not in text
    assert r"s\x07" in text
    assert r"n\x00" in text
    assert "x" * 60 not in text


def test_small_numbers_are_powers_of_ten():
    found = Finding("information", 1.3055e-5, bound_type="upper", status="certified")
    assert "1.31e-05" in bound([found]).table()
