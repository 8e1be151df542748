"""How D is drawn: which words belong to which sampling."""

from __future__ import annotations

import pytest

from leakbound.bounds.sampling import inclusion


@pytest.mark.parametrize(
    ("words", "drawn"),
    [
        ((9, None, "fixed", None), (4, 4 / 9)),
        ((2, None, "fixed", None), (1, 0.5)),
        ((9, 8, "fixed", None), (8, 8 / 9)),
        ((9, 1, "fixed", None), (1, 1 / 9)),
        ((9, None, "poisson", None), (0, 0.5)),
        ((1, None, "poisson", 0.2), (0, 0.2)),
    ],
)
def test_size_and_probability(words, drawn):
    assert inclusion(*words) == drawn


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((9, 9, "fixed", None), "k must be < the 9 records, got 9"),
        ((9, 0, "fixed", None), "k must be >= 1, got 0"),
        ((1, None, "fixed", None), "number of records must be >= 2, got 1"),
        ((9, None, "fixed", 0.5), "prior = 0.5 belongs to sampling='poisson'; sampling='fixed' takes k"),
        ((9, 3, "poisson", None), "k = 3 belongs to sampling='fixed'; sampling='poisson' takes a prior"),
        ((9, None, "poisson", 1.0), "prior must be > 0 and < 1, got 1"),
        ((9, None, "coins", None), "unknown sampling 'coins'; known: fixed, poisson"),
    ],
)
def test_bad_input_is_one_line(words, line):
    with pytest.raises(ValueError) as refused:
        inclusion(*words)
    assert str(refused.value) == line
