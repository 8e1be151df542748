"""Texts of every kind of report at several widths: no longer line, and nothing is lost without a mark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import pytest

import leakbound as ls
from leakbound.reports import Report, claims_table
from tests.reports import made_bounds, made_designs, made_guesses, made_protected, samples

WIDTHS = (60, 80, 100, 120)
WIDE = 4000  # where nothing wraps
REPORTS: Mapping[str, Callable[[], Report]] = dict(made_designs.ALL) | {
    f"{module.__name__.rpartition('.')[2]}.{name}": getattr(module, name)
    for module, names in {
        samples: ("two_models", "one_model_no_claim", "no_leak", "few_models", "tiny"),
        made_bounds: (
            "dp", "leakage", "odd_cells", "many_cells", "one_record", "gap", "regression", "subsampled", "empty",
        ),
        made_guesses: ("leak", "no_leak", "two", "nothing"),
        made_protected: (
            "means", "published", "calibrated", "average", "insecure", "no_noise", "uneven", "nothing",
        ),
    }.items()
    for name in names
}  # fmt: skip


def letters(text: str) -> Counter[str]:
    """How often each letter occurs."""
    return Counter("".join(text.split()).replace("─", ""))  # the line below a heading is as long as there is room


@pytest.mark.by_day("leave-one-out, all exact", "samples.tiny", "made_bounds.empty", "made_guesses.nothing")
@pytest.mark.parametrize("name", REPORTS)
def test_no_line_is_longer_and_no_letter_is_lost(name):
    report = REPORTS[name]()
    whole = letters(report.table(WIDE))
    for width in WIDTHS:
        text = report.table(width)
        assert max(map(len, text.splitlines())) <= width
        # a table that continues below repeats its first column, so that letters are added, and none is lost
        assert not whole - letters(text)


@pytest.mark.by_day("made_bounds.empty", "made_protected.nothing", "samples.one_model_no_claim", "made_bounds.gap")
@pytest.mark.parametrize("name", REPORTS)
def test_the_width_is_100_unless_given(name):
    report = REPORTS[name]()
    assert report.table() == report.table(width=100)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    "name", ["samples.two_models", "made_bounds.leakage", "made_guesses.two", "made_protected.means"]
)
def test_words_stay_whole(name, full):
    """A table whose words do not fit next to each other is a list of its rows."""
    report = REPORTS[name]()
    words = set(report.table(WIDE, full).replace("─", " ").split())
    for width in WIDTHS:
        told = {word for word in report.table(width, full).replace("─", " ").split() if len(word) <= width // 2}
        broken = told - words - {word for word in told if word.endswith(":")}  # of a list, which names each cell
        assert not broken, width


@pytest.mark.by_day("False")
@pytest.mark.parametrize("full", [False, True])
def test_compared_reports(full):
    comparison = ls.compare(samples.two_models(), samples.no_leak())
    whole = letters(comparison.table(WIDE, full))
    for width in WIDTHS[1:]:
        text = comparison.table(width, full)
        assert max(map(len, text.splitlines())) <= width
        assert not whole - letters(text)


def test_claims_of_papers():
    claim = {
        "says": "The accuracy of the attack on the mean of a column", "kind": "about", "printed": 7.75,
        "ours": 7.8, "error": 0.001, "difference": 0.05, "verdict": "differs", "erratum": None, "note": "",
        "explained_by": "the public code", "tried": [],
    }  # fmt: skip
    document = {
        "name": "paper2024/figure1", "title": "A title that is long " * 8, "scale": "full",
        "run": "1,000 games. " * 20, "reason": "",
        "setting": "", "settings": [{"name": "code", "says": "a step of 0.1 " * 9, "why": "the code has it"}],
        "claims": [claim] * 3,
    }  # fmt: skip
    whole = letters(claims_table([document], WIDE, full=True))
    for width in WIDTHS:
        text = claims_table([document], width, full=True)
        assert max(map(len, text.splitlines())) <= width
        assert not whole - letters(text)


@pytest.mark.parametrize("width", [39, 0, -1])
def test_a_width_that_no_table_fits_is_refused(width):
    with pytest.raises(ValueError, match=r"^width must be ") as refused:
        ls.bound("dp", epsilon=1.0).table(width)
    assert "\n" not in str(refused.value)
