"""Every bad value gets one line that names it, what was given and what is allowed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leakbound.core import checks


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: checks.real("mu", "much"), "mu must be a number, got 'much'"),
        (lambda: checks.real("mu", None), "mu must be a number, got None"),
        (lambda: checks.real("mu", math.nan), "mu must be finite, got nan"),
        (lambda: checks.real("mu", -math.inf), "mu must be finite, got -inf"),
        (
            lambda: checks.probability("accuracy", 60),
            "accuracy is a fraction: 60 is out of range; did you mean 0.6? It must be >= 0 and <= 1",
        ),
        (
            lambda: checks.fraction("eta", 5, most=0.5, above=True, below=True),
            "eta is a fraction: 5 is out of range; did you mean 0.05? It must be > 0 and < 0.5",
        ),
        (lambda: checks.fraction("eta", 0.5, most=0.5, below=True), "eta must be >= 0 and < 0.5, got 0.5"),
        (lambda: checks.probability("prior", 101), "prior must be >= 0 and <= 1, got 101"),
        (lambda: checks.probability("prior", -1e-9), "prior must be >= 0 and <= 1, got -1e-09"),
        (lambda: checks.probability("prior", 0, open_ends=True), "prior must be > 0 and < 1, got 0"),
        (lambda: checks.probability("prior", 1, open_ends=True), "prior must be > 0 and < 1, got 1"),
        (lambda: checks.positive("scale", 0), "scale must be > 0, got 0"),
        (lambda: checks.positive("scale", math.inf), "scale must be finite, got inf"),
        (lambda: checks.non_negative("epsilon", -1.0), "epsilon must be >= 0, got -1"),
        (lambda: checks.non_negative("epsilon", math.inf), "epsilon must be finite, got inf"),
        (lambda: checks.non_negative("epsilon", -math.inf, infinite=True), "epsilon must be finite, got -inf"),
        (lambda: checks.count("models", 0), "models must be >= 1, got 0"),
        (lambda: checks.count("models", 2.5), "models must be a whole number, got 2.5"),
        (lambda: checks.count("models", True), "models must be a whole number, got True"),
        (lambda: checks.count("models", "many"), "models must be a number, got 'many'"),
        (lambda: checks.count("points", 1, least=2), "points must be >= 2, got 1"),
        (lambda: checks.same_length(x=[1] * 1000, y=[1]), "lengths differ: x has 1,000, y has 1"),
        (
            lambda: checks.one_of("attack", "lirra", ["lira", "rmia"]),
            "unknown attack 'lirra' (did you mean 'lira'?); known: lira, rmia",
        ),
        (lambda: checks.one_of("attack", "xyz", ["lira"]), "unknown attack 'xyz'; known: lira"),
    ],
)
def test_the_line_that_a_bad_value_gets(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0, np.float32(0.5), "0.5"])
def test_a_good_value_comes_back_as_a_number(value):
    assert checks.probability("prior", value) == float(value)
    assert type(checks.probability("prior", value)) is float


def test_infinity_on_request():
    assert checks.non_negative("epsilon", math.inf, infinite=True) == math.inf


@pytest.mark.parametrize("value", [3, 3.0, np.int64(3), np.float64(3.0)])
def test_a_whole_number_is_an_int_however_it_is_written(value):
    assert checks.count("models", value) == 3
    assert type(checks.count("models", value)) is int


def test_the_common_length():
    assert checks.same_length(x=np.zeros((4, 2)), y="four") == 4


def test_a_known_word_comes_back():
    assert checks.one_of("attack", "rmia", ("lira", "rmia")) == "rmia"


def test_the_nearest_word_only_where_one_is_near():
    assert checks.nearest("confidance", ["confidence", "seed"]) == " (did you mean 'confidence'?)"
    assert checks.nearest("zzz", ["confidence", "seed"]) == ""


@pytest.mark.parametrize("values", [["a", "b"], [[1.0], [1.0, 2.0]], object()])
def test_an_array_of_numbers(values):
    with pytest.raises(ValueError, match=r"^loss must be an array of numbers, got "):
        checks.numbers("loss", values)
    assert checks.numbers("loss", [1, math.nan]).dtype == float
