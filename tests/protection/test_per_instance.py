"""Design per-instance always answers, and no record counts as covered because of an error of arithmetic."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

from leakscope.core.types import Points
from leakscope.noise.release_ledger import ReleaseLedger
from leakscope.protection import Protected, protect
from leakscope.releases.statistics.statistic import named
from leakscope.runtime.all_but_one import values_with_error

NORMAL = np.random.default_rng(0).normal(size=(40, 2))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def release(ledger: Path, statistic: Any, x: Any, y: Any = None, **words: Any) -> Protected:
    return protect(statistic, x, y, eta=0.05, design="per-instance", ledger=ledger, n_jobs=1, **words)


def shifts_of(ledger: Path) -> np.ndarray:
    """In the order of the records' hashes."""
    (only,) = ReleaseLedger.open(ledger, "per-instance").releases
    assert only.mu is not None
    return np.asarray(only.mu)


class TestAlwaysAnswers:
    @pytest.mark.parametrize("statistic", ["mean", "sum", "covariance", "quantiles", "ols", "ridge"])
    def test_noise_that_is_tiny_beside_the_value(self, ledger, statistic) -> None:
        """1e-12 of the value: nobody is covered, and the owner alone is told so."""
        made = release(ledger, statistic, 1e6 + NORMAL, noise_scale=1e-4 if statistic == "sum" else 2e-6)
        assert np.isfinite(made.value).all()
        assert any(note.startswith("40 of 40 records are told") for note in made.owner.about.notes)
        assert made.certificate.about.notes == ()

    @pytest.mark.parametrize("scale", [1e-9, 1e300])
    def test_any_scale_of_counts(self, ledger, scale) -> None:
        rows = np.array([0, 0, 1, 1, 1])[:, None]
        made = release(ledger, "table", rows, by="x0", levels={"x0": [0, 1]}, noise_scale=scale)
        assert made.value == pytest.approx([2, 3], abs=40 * scale)

    def test_the_grid_follows_from_the_noise_alone(self, tmp_path) -> None:
        grids = [
            release(tmp_path / f"{offset:g}", "mean", offset + NORMAL, noise_scale=0.3)
            .certificate.about.certificate.noise.grid
            for offset in (0.0, 1e9)
        ]  # fmt: skip
        assert grids[0] == grids[1]

    def test_a_grid_finer_than_doubles(self, ledger) -> None:
        """1e6 has steps of 1e-10 as a double: noise of 1e-9 would be of a few steps, and its last digits would tell."""
        line = (
            "mean of x1 is too large for a noise_scale of 1e-09: the 53 binary digits of a floating-point number hold "
            "no number above 1e+03 together with this noise; declare a larger noise_scale, or subtract a public "
            "number from the column"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
            release(ledger, "mean", NORMAL + np.array([0, 1e6]), noise_scale=(1e-9, 1e-9))
        assert not ledger.exists()


def logistic_minimum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By another minimiser, to the last digits: ``sum of log-losses + |slopes|^2/2``."""

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        predictor = theta[0] + x @ theta[1:]
        residual = expit(predictor) - y
        gradient = np.append(residual.sum(), x.T @ residual + theta[1:])
        return float(np.logaddexp(0, predictor).sum() - y @ predictor + theta[1:] @ theta[1:] / 2), gradient

    start = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    for _ in range(3):  # Newton steps
        predictor = start[0] + x @ start[1:]
        weight = expit(predictor) * expit(-predictor)
        rows = np.column_stack([np.ones(len(x)), x])
        hessian = (rows * weight[:, None]).T @ rows + np.diag([0, 1, 1])
        start = start - np.linalg.solve(hessian, loss(start)[1])
    return start


class TestOnTheSafeSide:
    def test_shifts_of_a_regression_are_not_below_those_of_fits(self, ledger) -> None:
        """A Newton step may end below the shift of a fit, by some thousandths of it."""
        rng = np.random.default_rng(3)
        x = rng.normal(size=(40, 2))
        y = (rng.random(40) < expit(2 * x[:, 0])).astype(float)
        scale = 0.05
        made = release(ledger, "logistic", x, y, set={"centre": [0, 0], "spread": [1, 1]}, noise_scale=scale)
        steps = np.array(made.certificate.about.certificate.noise.grid)
        fits = [logistic_minimum(np.delete(x, i, 0), np.delete(y, i)) for i in range(40)]
        # what is released lies on the printed grid
        moved = (np.round(fits / steps) - np.round(logistic_minimum(x, y) / steps)) * steps
        exact = np.linalg.norm(moved, axis=1) / scale
        found = shifts_of(ledger)
        # the ledger orders records by their hashes: the k-th largest bound is above the k-th largest shift
        assert (np.sort(found) * (1 + 1e-12) >= np.sort(exact)).all()
        assert (np.sort(found) <= np.sort(exact) * 1.02 + 2e-3).all()
        (worst,) = [each for each in made.owner.findings if each.quantity == "accuracy" and each.scope.kind == "worst"]
        assert worst.value is not None
        assert worst.value >= norm.cdf(exact.max() / 2)

    @pytest.mark.parametrize(
        ("name", "settings"), [("logistic", {}), ("poisson", {"penalty": 0.5}), ("huber", {"threshold": 0.8})]
    )
    def test_the_error_of_each_minimiser(self, name, settings) -> None:
        """Against the same statistic of the other records, fitted by itself."""
        rng = np.random.default_rng(4)
        x = rng.normal(size=(60, 2)) * [1, 30] + [0, 500]
        predictor = x[:, 0] + (x[:, 1] - 500) / 40
        y = {"logistic": rng.random(60) < expit(predictor), "poisson": rng.poisson(np.exp(predictor / 3)),
             "huber": predictor + rng.standard_t(2, 60)}[name].astype(float)  # fmt: skip
        statistic = named(name, **settings)
        found = values_with_error(statistic, Points(x, y))
        wrong = 0.0
        for record in range(60):
            others = Points(np.delete(x, record, 0), np.delete(y, record))
            fit = statistic.observe(others, np.ones((1, 59), dtype=bool), np.zeros(1, dtype=int))["output"][0]
            difference = np.abs(fit - found.without[record])
            assert (difference <= found.error[record]).all()
            wrong = max(wrong, float((difference / np.maximum(np.abs(found.of_all - fit), 1e-9)).max()))
        assert wrong > 1e-6  # the values are not those of fits, so that their error matters

    @pytest.mark.parametrize("offset", [0.0, 1e6])
    @pytest.mark.parametrize("name", ["mean", "sum", "second_moment", "covariance", "correlation", "ols", "ridge"])
    def test_the_error_of_formulas(self, name, offset) -> None:
        """Against what is computed from the other records alone, by the same formulas."""
        rng = np.random.default_rng(5)
        x = rng.standard_t(2, size=(80, 3)) * [1, 1e-3, 1e3] + offset * np.array([1, 1e-3, 1])
        found = values_with_error(named(name), Points(x))
        for record in range(80):
            of_others = values_with_error(named(name), Points(np.delete(x, record, 0))).of_all
            assert (np.abs(of_others - found.without[record]) <= found.error[record]).all()

    def test_the_error_with_a_constant_column_is_small(self) -> None:
        """The computed spread of six times 0.1 is 1e-17, which is a rounding error and no spread."""
        name = "ridge"  # without a penalty the coefficient of such a column is not determined
        y = np.random.default_rng(6).normal(size=6)
        for constant in (0.0, 0.1, 1e6):
            found = values_with_error(named(name), Points(np.full((6, 1), constant), y))
            for record in range(6):
                others = Points(np.full((5, 1), constant), np.delete(y, record))
                difference = np.abs(values_with_error(named(name), others).of_all - found.without[record])
                assert (difference <= found.error[record]).all()
            assert found.error.max() < 1e-8

    @pytest.mark.parametrize("name", ["quantiles", "numpy:ptp"])
    def test_values_that_are_exact_have_no_error(self, name) -> None:
        assert not values_with_error(named(name), Points(NORMAL[:, :1])).error.any()

    def test_a_bound_is_that_of_the_grid_on_which_the_value_is_released(self, ledger) -> None:
        """Each of both ends is a multiple of the printed step; by hand, for the mean of whole numbers."""
        rows = np.array([1.0, 2.0, 3.0, 10.0])[:, None]
        made = release(ledger, "mean", rows, noise_scale=0.7)
        (step,) = made.certificate.about.certificate.noise.grid
        others = (16 - rows.ravel()) / 3
        expected = np.abs(np.round(others / step) - np.round(4 / step)) * step / 0.7
        assert np.sort(shifts_of(ledger)) == pytest.approx(np.sort(expected), rel=1e-12)
