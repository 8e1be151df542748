"""Numbers of any size: another unit of the data changes no answer, and nothing overflows or vanishes on the way.

With data, clip and noise all times s, what has no unit stays as it is, and what has one is s times as large. Squares of
1e160 are above the largest floating-point number, those of 1e-170 below the smallest.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import leakbound as ls
from leakbound import noise
from leakbound.bounds import membership, pmp_gaussian, regression
from leakbound.bounds.exponential import geometric_median_loss
from leakbound.bounds.gaussian import analytic_gaussian_epsilon, analytic_gaussian_scale
from leakbound.core.lengths import clipped, p_norm

X = np.random.default_rng(0).normal(size=(12, 3))
X[3] = X[2]  # a record may be there twice
SIZES = pytest.mark.parametrize("s", [1e-170, 1e-100, 1e100, 1e160])


def certified(s: float) -> noise.Shifts:
    return noise.swap_linear(X * s, 6)


# Each a function of s whose answer must not depend on it.
ANSWERS = {
    "length": lambda s: p_norm(X * s) / s,
    "clipped": lambda s: clipped(X * s, 1.5 * s) / s,
    "pmp of a mean": lambda s: pmp_gaussian(X * s, 0.7 * s, 0.01),
    "pmp of a sum": lambda s: pmp_gaussian(X * s, 0.7 * s, 0.01, "sum"),
    "noise for an accuracy": lambda s: membership.scale_for_accuracy(X * s, 0.6) / s,
    "four epsilons": lambda s: list(vars(membership.epsilons_gaussian(X * s, 0.7 * s, 0.01, 3 * s)).values()),
    "distances": lambda s: geometric_median_loss(X[:2] * s, X * s) / s,
    "leverage": lambda s: regression.linear_regression_bayes(X * s, 1.0).leverage,
    "scale of DP": lambda s: analytic_gaussian_scale(1.0, 1e-5, s) / s,
    "epsilon of DP": lambda s: analytic_gaussian_epsilon(s, 1e-5, s),
    "noise for an eta": lambda s: noise.calibrate(certified(s), 0.1).rms(3) / s,
    "Laplace noise": lambda s: noise.calibrate(noise.swap_linear(X[:, :1] * s, 6), 0.1, noise.LaplaceNoise).rms(1) / s,
    "accuracy under noise": lambda s: certified(s).tradeoff(noise.GaussianNoise(0.5 * s)).accuracy(),
    "delta under noise": lambda s: noise.pmp_delta(certified(s), noise.GaussianNoise(s), 1.0),
    "DP noise": lambda s: [noise.dp_gaussian_scale(0.1, s) / s, noise.dp_laplace_scale(0.1, s) / s],
    "spread": lambda s: noise.central_moment(X * s) / s,
}


@pytest.mark.by_day(
    "length-1e-100",
    "pmp of a sum-1e-100",
    "four epsilons-1e-170",
    "distances-1e+160",
    "scale of DP-1e-100",
    "Laplace noise-1e-100",
    "delta under noise-1e-100",
    "spread-1e+160",
)
@SIZES
@pytest.mark.parametrize("name", ANSWERS)
def test_another_unit_changes_no_answer(name, s):
    np.testing.assert_allclose(ANSWERS[name](s), ANSWERS[name](1.0), rtol=1e-9)


@pytest.mark.parametrize("s", [1e-150, 1e-100, 1e100, 1e150])
def test_noise_by_information_has_the_unit_of_the_covariance(s):
    """A covariance is in squared units, so that fewer sizes have one."""
    covariance = np.cov(X.T)
    for structure in ("isotropic", "least_trace"):
        expected = noise.noise_of_information(covariance, 0.1, structure)
        found = noise.noise_of_information(covariance * s * s, 0.1, structure) / s / s
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.by_day("exponential-1e+100")
@SIZES
@pytest.mark.parametrize("mechanism", ["mean", "exponential"])
def test_pmp_on_the_page_is_that_of_the_clipped_records(tmp_path, s, mechanism):
    """By the records that are clipped by hand, in the unit of the clip; one is 1e160 clips long."""
    rows = X.copy()
    rows[5] *= 1e160 / s if s > 1 else 1e30
    length = np.array([math.hypot(*row) for row in rows / np.abs(rows).max(axis=1, keepdims=True)])
    short = rows * np.minimum(1, 1.5 / (length * np.abs(rows).max(axis=1)))[:, None]
    words = {"mean": {"scale": 0.3}, "exponential": {"epsilon": 4.0, "candidates": 6}}[mechanism]
    if mechanism == "exponential":
        s = 1.0  # its outputs are unit vectors: there is no other unit

    def found(table: np.ndarray, unit: float) -> dict[str, float]:
        data = tmp_path / "table.csv"
        lines = [",".join(repr(float(number)) for number in row) for row in table * unit]
        data.write_text("\n".join(["a,b,c", *lines]) + "\n")
        told = {name: value * (unit if name == "scale" else 1) for name, value in words.items()}
        report = ls.bound("pmp", data=str(data), mechanism=mechanism, clip=1.5 * unit, **told)
        return {f"{each.quantity} {each.release} {each.operating_point}": each.value for each in report.findings}

    expected, seen = found(short, 1.0), found(rows, s)
    assert seen == pytest.approx(expected, rel=1e-6)
    assert expected


def test_sizes_at_the_ends_of_floating_point():
    largest = np.finfo(float).max
    assert p_norm(np.array([largest, largest])) == math.inf  # the length itself is not a number any more
    assert p_norm(np.array([[0.0, 0.0], [5e-324, 0.0], [3e-320, 4e-320]])).tolist() == [0.0, 5e-324, 5e-320]
    ends = clipped(np.array([[largest, largest], [5e-324, 0.0], [0.0, 0.0]]), 1.0)
    np.testing.assert_allclose(ends, [[0.5**0.5, 0.5**0.5], [5e-324, 0.0], [0.0, 0.0]], rtol=1e-15)
    apart = np.array([[largest], [-largest]])
    assert pmp_gaussian(apart, 1.0, 0.01) == math.inf  # no noise of size 1 hides this
    assert pmp_gaussian(apart * 1e-300, 1e-300, 0.01) == math.inf
    assert membership.scale_for_accuracy(np.array([[5e-324], [0.0]]), query="sum") >= 0
