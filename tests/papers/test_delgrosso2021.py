"""Del Grosso et al. 2021: Figure 3 against naive formulas."""

from __future__ import annotations

from math import log

import numpy as np
import pandas as pd
import pytest
from scipy.special import rel_entr

from leakbound import seeds
from leakbound.papers.delgrosso2021 import figure3
from leakbound.papers.lab import Lab


@pytest.fixture(scope="module")
def thirty() -> dict[str, float]:
    return figure3.regression(30, 20, 20_000, seed=0)


@pytest.fixture(scope="module")
def leverage() -> np.ndarray:
    X = seeds.stream(0, "design", 30).normal(size=(30, 20))
    return np.diag(X @ np.linalg.inv(X.T @ X) @ X.T)


def kl(p: float, q: float) -> float:
    return float(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def test_games_agree_with_the_exact_success(thirty):
    """Games are won with the exact chance: five standard errors, false alarm 6e-7."""
    assert abs(thirty["played"] - thirty["success"]) < 5 * 0.5 / np.sqrt(20_000)
    assert thirty["low"] < thirty["played"] < thirty["high"]


def test_gap_and_information(thirty, leverage):
    assert thirty["gap"] == pytest.approx(2 * 20 / 30)
    assert thirty["information"] == pytest.approx(-np.log(1 - leverage).mean() / 4)


def test_bounds_of_theorem_5(thirty, leverage):
    information = -np.log(1 - leverage).mean() / 4
    assert kl(thirty["upper"], 0.5) == pytest.approx(information, rel=1e-9)
    assert kl(thirty["upper_in_bits"], 0.5) / log(2) == pytest.approx(information, rel=1e-9)


def test_bound_of_theorem_4_is_its_equation_33_with_the_right_tail(thirty, leverage):
    variance = 1 + leverage.max()
    r = np.linspace(2 * variance * log(2), 200, 2_000_000)  # from where the bound of the tail is 1
    C = np.exp(-r / (2 * variance)) * (1 + 2 * variance / r)
    assert thirty["lower"] == pytest.approx((0.5 + 20 / (2 * 30 * r) - C).max(), abs=1e-8)
    assert 0.5 < thirty["lower"] < thirty["lower_ours"] < thirty["success"] < thirty["upper"]


def test_falling_is_told_from_rising():
    n = np.arange(40.0)
    down = pd.DataFrame(dict.fromkeys(("success", "lower", "gap", "information"), 1 / (1 + n)))
    assert figure3.falls(down)
    assert not figure3.falls(down.assign(gap=n))


def test_the_quick_run_says_what_is_printed():
    outcome = figure3.measure(Lab(quick=True, n_jobs=1))
    assert all(outcome.ours[key].value is True for key in ("above_lower", "below_upper", "falls"))
    assert outcome.ours["below_upper_in_bits"].value == 1.0
    assert outcome.ours["approaches_half"].value == pytest.approx(0.532, abs=0.005)
    assert list(outcome.numbers["n"]) == list(figure3.FEW)
    axes = figure3.draw(outcome.numbers).axes
    assert all("n:" in ax.get_xlabel() and ax.get_ylabel() for ax in axes)
    assert "nats" in axes[2].get_ylabel()
    assert "variances" in axes[1].get_ylabel()
