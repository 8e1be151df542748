"""Minimisers of penalised losses: other solvers, what has no minimum, and the proved distance to a minimiser."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

from leakbound.releases.statistics.losses import LogisticLoss, Loss, PoissonLoss, PseudoHuberLoss, SquaredLoss
from leakbound.releases.statistics.newton import TOLERANCE, Regression, _Around, left_out_minimisers, minimise
from leakbound.releases.statistics.units import Units
from tests.marks import nightly

LOSSES: dict[str, Loss] = {
    "squared": SquaredLoss(),
    "logistic": LogisticLoss(),
    "poisson": PoissonLoss(),
    "huber": PseudoHuberLoss(0.8),
    "narrow huber": PseudoHuberLoss(0.05),
}
each_loss = pytest.mark.parametrize("name", list(LOSSES))


def drawn(name: str, rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of some kind, and responses that depend on them."""
    x = rng.normal(size=(n, p))
    kind = str(rng.choice(["normal", "ties", "outlier", "duplicates", "far", "small", "heavy tails"]))
    if kind == "ties":
        x = x.round()
    elif kind == "outlier":
        x[0] = 10.0 ** rng.integers(1, 6)
    elif kind == "duplicates":
        x = x[rng.integers(0, n // 2, n)]
    elif kind == "far":
        x += 1e6
    elif kind == "small":
        x *= 1e-100
    elif kind == "heavy tails":
        x = rng.standard_t(1.5, size=(n, p))
    spread = x.std(axis=0)
    predictor = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1) @ rng.normal(size=p) / 2
    if name == "logistic":
        return x, (rng.random(n) < 1 / (1 + np.exp(-predictor))).astype(float)
    if name == "poisson":
        return x, rng.poisson(np.exp(np.minimum(predictor, 5))).astype(float)
    response = predictor + rng.standard_t(2, size=n)
    response[-1] = rng.choice([response[-1], 1e6])
    return x, response


@each_loss
@pytest.mark.parametrize("penalty", [0.1, 30.0])
def test_the_minimum_is_that_of_another_solver(name, penalty) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 2))
    _, response = drawn(name, rng, 60, 2)

    def value(theta: np.ndarray) -> float:
        return float(LOSSES[name].value(theta[0] + x @ theta[1:], response).sum() + penalty / 2 * theta[1:] @ theta[1:])

    ours = minimise(x, response, LOSSES[name], penalty)
    theirs = optimize.minimize(value, np.zeros(3), method="Nelder-Mead", options={"maxiter": 5000, "fatol": 1e-12})
    assert value(ours) <= theirs.fun * (1 + 1e-12) + 1e-12
    for step in np.vstack([np.eye(3), -np.eye(3)]) * (1e-4 + 1e-4 * np.abs(ours)):
        assert value(ours) < value(ours + step)


@each_loss
def test_a_change_of_units_changes_the_slopes_alone(name) -> None:
    rng = np.random.default_rng(4)
    x, response = rng.normal(size=(50, 2)), drawn(name, rng, 50, 2)[1]
    plain = minimise(x, response, LOSSES[name], 0.0)
    for unit, place in ((1e-120, 0.0), (1e90, 0.0), (1.0, 1e7)):
        other = minimise(x * unit + place, response, LOSSES[name], 0.0)
        np.testing.assert_allclose(other[1:] * unit, plain[1:], rtol=1e-6, atol=1e-8)
        assert other[0] == pytest.approx(plain[0] - place * other[1:].sum(), rel=1e-9, abs=1e-6)


class TestNoMinimum:
    x = np.array([[0.0], [0.0], [1.0], [1.0]])

    def test_a_level_without_events(self) -> None:
        with pytest.raises(ValueError, match="no minimum, or none is found"):
            minimise(self.x, np.array([2.0, 1.0, 0.0, 0.0]), PoissonLoss(), 0.0)
        assert np.isfinite(minimise(self.x, np.array([2.0, 1.0, 0.0, 0.0]), PoissonLoss(), 0.1)).all()

    def test_separated_classes(self) -> None:
        with pytest.raises(ValueError, match=r"no minimum, or none is found|depend"):
            minimise(self.x, np.array([0.0, 0.0, 1.0, 1.0]), LogisticLoss(), 0.0)
        found = minimise(self.x, np.array([0.0, 0.0, 1.0, 1.0]), LogisticLoss(), 1e-6)
        assert found[1] > 10

    @each_loss
    def test_dependent_columns(self, name) -> None:
        rng = np.random.default_rng(5)
        x, response = rng.normal(size=(30, 1)), drawn(name, rng, 30, 1)[1]
        for double in (np.column_stack([x, 2 * x]), np.column_stack([x, np.full(30, 0.1)])):
            with pytest.raises(ValueError, match="columns depend on each other: leave one of them out, or give a pen"):
                minimise(double, response, LOSSES[name], 0.0)
            assert np.isfinite(minimise(double, response, LOSSES[name], 1.0)).all()


@pytest.mark.parametrize("n_cases", [40, nightly(1500)])
@each_loss
def test_the_proved_distance_to_the_minimiser(name, n_cases) -> None:
    """Of the first step of each unit, accurate or not: where it is finite there is a minimiser, at most so far away."""
    rng = np.random.default_rng(n_cases)
    n_proved, largest = 0, 0.0
    while n_proved < n_cases:
        n, p = int(rng.integers(6, 30)), int(rng.integers(1, 3))
        x, response = drawn(name, rng, n, p)
        penalty = float(rng.choice([0.01, 1.0, 20.0]))
        units = Units.single(n) if rng.random() < 0.5 else Units.of(rng.integers(0, n // 2, n))
        regression = Regression.of(x, response, LOSSES[name], penalty)
        try:
            around = _Around(regression, units, regression.minimiser())
        except (ValueError, np.linalg.LinAlgError):
            continue
        with np.errstate(all="ignore"):
            thetas, proved, _ = around.steps()
        for left_out in np.flatnonzero(proved < np.inf)[:5]:
            kept = units.of_row != left_out
            rest = Regression(
                regression.rows[kept], regression.response[kept], regression.loss, regression.penalty, 0.0,
                regression.centre, regression.scale,
            )  # fmt: skip
            distance = np.linalg.norm(around.factor.T @ (rest.minimiser() - thetas[left_out]))
            rounding = 1e-9 * np.linalg.norm(around.factor.T @ thetas[left_out])
            assert distance <= proved[left_out] + rounding
            if rounding < proved[left_out] / 100:
                largest = max(largest, distance / proved[left_out])
            n_proved += 1
    assert name == "squared" or largest > 0.1  # the bound is not far too large


@pytest.mark.by_day("squared-12")
@pytest.mark.parametrize("n_cases", [12, nightly(400)])
@each_loss
def test_values_without_each_unit_are_those_of_a_fit(name, n_cases) -> None:
    """Within the tolerance in the norm of the Hessian of all records, where the distance is proved."""
    rng = np.random.default_rng(n_cases + 1)
    n_played = 0
    while n_played < n_cases:
        n, p = int(rng.integers(8, 60)), int(rng.integers(1, 4))
        x, response = drawn(name, rng, n, p)
        penalty = float(rng.choice([0.01, 1.0, 20.0]))
        units = Units.single(n) if rng.random() < 0.5 else Units.of(rng.integers(0, n // 3, n))
        try:
            with np.errstate(all="ignore"):
                of_all, without, proved = left_out_minimisers(x, response, LOSSES[name], penalty, units)
        except (ValueError, np.linalg.LinAlgError):
            continue
        n_played += 1
        regression = Regression.of(x, response, LOSSES[name], penalty)
        around = _Around(regression, units, regression.minimiser())
        np.testing.assert_allclose(of_all, minimise(x, response, LOSSES[name], penalty))
        for left_out in np.flatnonzero(np.isfinite(proved).all(axis=1)):
            kept = units.of_row != left_out
            error = without[left_out] - minimise(x[kept], response[kept], LOSSES[name], penalty)
            assert (np.abs(error) <= proved[left_out] + 1e-9 * np.abs(without[left_out]).max()).all()
            inside = np.append(error[0] + error[1:] @ regression.centre, error[1:] * regression.scale)
            assert np.linalg.norm(around.factor.T @ inside) <= around.tolerance * 1.01 + 1e-9 * np.linalg.norm(
                around.factor.T @ around.theta
            )
        error = np.sqrt(np.square(around.slope).sum() / around.curvature.sum())
        assert around.tolerance == pytest.approx(TOLERANCE * error, rel=1e-3, abs=1e-9)


def rational_solution(x: np.ndarray, response: np.ndarray, penalty: float) -> np.ndarray:
    """Least squares with a penalty on the slopes, in rational arithmetic: no digit is lost."""
    rows = [[Fraction(1), *(Fraction(float(value)) for value in row)] for row in x]
    right = [Fraction(float(value)) for value in response]
    d = len(rows[0])
    system = [[sum(row[i] * row[j] for row in rows) for j in range(d)] for i in range(d)]
    for i in range(1, d):
        system[i][i] += Fraction(penalty)
    for i in range(d):
        system[i].append(sum(row[i] * value for row, value in zip(rows, right, strict=True)))
    for i in range(d):
        for j in range(d):
            if i != j:
                factor = system[j][i] / system[i][i]
                system[j] = [a - factor * b for a, b in zip(system[j], system[i], strict=True)]
    return np.array([float(system[i][d] / system[i][i]) for i in range(d)])


@pytest.mark.parametrize("n_cases", [8, nightly(120)])
def test_the_stated_error_holds_what_is_lost_without_the_farthest_records(n_cases) -> None:
    """Of the three records of the largest values, without which least of the Hessian is left."""
    rng, n_checked = np.random.default_rng(70_000 + n_cases), 0
    while n_checked < 3 * n_cases:
        n, p = int(rng.integers(8, 60)), int(rng.integers(1, 4))
        x, response = drawn("squared", rng, n, p)
        penalty = float(rng.choice([0.01, 1.0, 20.0]))
        try:
            with np.errstate(all="ignore"):
                _, without, error = left_out_minimisers(x, response, LOSSES["squared"], penalty)
        except (ValueError, np.linalg.LinAlgError):
            continue
        for record in np.argsort(-np.abs(x).sum(axis=1))[:3]:
            if not np.isfinite(error[record]).all():
                continue  # too little is left of the Hessian: a fit is made instead
            exact = rational_solution(np.delete(x, record, axis=0), np.delete(response, record), penalty)
            assert (np.abs(without[record] - exact) <= error[record]).all()
            n_checked += 1
