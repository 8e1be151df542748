"""The trade-off curve of a left-out record: against plain loops, exact curves of mixtures, and reference values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import ndtr

from leakbound.noise import calibrate_left_out, joint_advantage, left_out_curve
from tests.noise.test_left_out import tables

FPR = [1e-4, 1e-3, 0.01, 0.05, 0.2]


def sticks_of(table: np.ndarray, record: int, epsilon: float, reserve: float = 0.0) -> float:
    """Mean hockey stick over the other records; a value that is not finite is apart from all that are."""
    others = np.delete(table, record, axis=0)
    failed = ~np.isfinite(others).all(axis=1)
    if np.isfinite(table[record]).all():
        squares = np.where(failed, np.inf, np.square(np.where(failed[:, None], 0, others) - table[record]).sum(axis=1))
    else:
        squares = np.where(failed, 0.0, np.inf)
    lengths = np.sqrt(squares + reserve**2)
    told = np.isinf(lengths).sum()
    u = lengths[(lengths > 0) & np.isfinite(lengths)]
    apart = ndtr(u / 2 - epsilon / u) - math.exp(epsilon) * ndtr(-u / 2 - epsilon / u)
    return float(told + apart.sum()) / (len(table) - 1)


def power_at(table: np.ndarray, record: int, fpr: float) -> float:
    """Power of the attacker who is told the other record, by the root of its closed form."""
    u = np.linalg.norm(np.delete(table, record, axis=0) - table[record], axis=1)
    root = optimize.brentq(lambda t: float(ndtr(-u / 2 - t / u).mean() - fpr), -30, 30, xtol=1e-13)
    return float(ndtr(u / 2 - root / u).mean())


def exact_curve(values: np.ndarray, record: int, fpr: float) -> tuple[float, float]:
    """Power of the most powerful test of size fpr of "x is left out", and of "it is one of the others".

    Noise is standard normal; ``nan`` values are a symbol of their own. Likelihood ratios are taken on a grid.
    """
    y = np.linspace(-14, 14, 14_001)
    step = y[1] - y[0]
    finite = np.isfinite(values)
    density = np.array(
        [stats.norm.pdf(y, value) * step if known else 0 * y for value, known in zip(values, finite, strict=True)]
    )
    failed = np.where(finite, 0.0, 1.0)
    others = [j for j in range(len(values)) if j != record]
    own = np.append(density[record], failed[record])
    rest = np.append(density[others].mean(axis=0), failed[others].mean())
    powers = []
    for first, second in ((own, rest), (rest, own)):
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(-np.nan_to_num(first / second, nan=-1.0, posinf=np.inf), kind="stable")
        powers.append(float(np.interp(fpr, np.cumsum(second[order]), np.cumsum(first[order]))))
    return powers[0], powers[1]


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "ties", "many equal", "sphere", "one outlier"])
@pytest.mark.parametrize(("n", "d", "reserve"), [(3, 1, 0.0), (30, 1, 0.3), (30, 3, 0.0), (70, 4, 0.1)])
def test_at_each_ratio_the_largest_mean_over_pairs_of_all_records(kind, n, d, reserve) -> None:
    table = tables(n, d)[kind]
    curve = left_out_curve(table, reserve, FPR)
    assert len(curve.at) >= 2
    for epsilon, value in zip(curve.at, curve.value, strict=True):
        loops = max(sticks_of(table, record, epsilon, reserve) for record in range(n))
        assert loops * (1 - 1e-9) <= value <= loops * 1.03 + 1e-12  # lengths are rounded up by .1 %


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "ties", "many equal"])
def test_no_line_would_make_it_tighter_at_the_rates_asked_for(kind) -> None:
    """Against a search over all ratios and all records."""
    table = tables(15, 2)[kind] * 0.3
    curve = left_out_curve(table, rates=[0.001, 0.01])
    for fpr in (0.001, 0.01):
        lowest = min(
            max(sticks_of(table, record, epsilon) for record in range(15)) + math.exp(epsilon) * fpr
            for epsilon in np.linspace(0, 8, 81)
        )
        assert float(curve.tpr_at(fpr)) == pytest.approx(lowest, rel=0.03)


def test_of_a_single_record_it_is_the_curve_of_an_attacker_who_is_told_the_other() -> None:
    """``TPR(a) = mean Phi(u/2 - t/u)`` at the root t: here both records have the same pair, and u is one number."""
    curve = left_out_curve(np.array([[0.0], [0.5]]), rates=[0.001, 0.01, 0.3])
    for fpr in (0.001, 0.01, 0.3):
        exact = stats.norm.cdf(stats.norm.ppf(fpr) + 0.5)
        assert exact <= float(curve.tpr_at(fpr)) <= exact * 1.005


def test_the_root_of_the_mean_over_pairs() -> None:
    """The closed form at the root, of the record that is told best at this rate."""
    values = np.random.default_rng(4).lognormal(3, 0.5, 60)
    table = (values / 60)[:, None]
    for fpr in (0.001, 0.02):
        largest = max(power_at(table, record, fpr) for record in range(60))
        assert largest <= float(left_out_curve(table, rates=[fpr]).tpr_at(fpr)) <= largest * 1.003


@pytest.mark.parametrize("seed", range(8))
def test_no_attacker_of_the_mixture_exceeds_it(seed) -> None:
    """Against the exact most powerful tests, in both directions, with equal values and failures among them."""
    generator = np.random.default_rng(seed)
    values = generator.normal(size=6) * generator.choice([0.3, 1.0, 3.0])
    values[: seed % 3] = 0.5
    values[6 - (seed % 4) // 2 :] = np.nan
    curve = left_out_curve(values[:, None], rates=FPR)
    n_compared = 0
    for record in range(6):
        for fpr in FPR:
            for power in exact_curve(values, record, fpr):
                n_compared += 1
                assert power <= float(curve.tpr_at(fpr)) + 1e-4
    assert n_compared == 60


@pytest.mark.parametrize(
    ("sigma", "printed"), [(0.5, (0.00238, 0.0195)), (1.0, (0.00230, 0.0192)), (None, (0.00264, 0.0205))]
)
def test_reference_values(sigma, printed) -> None:
    """1,000 values of default_rng(0), eta = .05, at the exact scale; a line of slope 1 gives .101 and .110."""
    generator = np.random.default_rng(0)
    values = generator.normal(size=1000) if sigma is None else generator.lognormal(3, sigma, 1000)
    means = (values.sum() - values[:, None]) / 999
    table = means / calibrate_left_out(means, 0.05).scale
    curve = left_out_curve(table)
    assert [float(curve.tpr_at(fpr)) for fpr in (0.001, 0.01)] == pytest.approx(printed, rel=5e-3)
    assert curve.advantage() == pytest.approx(0.1, rel=5e-3)


def test_the_record_with_the_largest_total_variation_is_not_told_best_at_every_rate() -> None:
    """Two records outside of a crowd: one a little farther from it, one opposite of a small group."""
    table = np.zeros((1000, 2))
    table[:50, 0] = 0.58
    table[-2:] = [[-0.58, 0.0], [0.0, 0.6]]
    assert joint_advantage(table).record == 999
    powers = [power_at(table, record, 0.001) for record in (998, 999)]
    assert powers[0] > 1.05 * powers[1]
    assert powers[0] <= float(left_out_curve(table, rates=[0.001]).tpr_at(0.001)) <= 1.01 * powers[0]


def test_many_records_cost_what_the_farthest_ones_do(monkeypatch) -> None:
    """Of a heavy tail a block of records is visited; where the search is cut short, the bound is larger and holds."""
    values = np.random.default_rng(1).normal(size=(400, 3))
    exact = left_out_curve(values / 20, rates=FPR)
    monkeypatch.setattr("leakbound.noise.left_out_tradeoff._MOST_ROWS", 4)
    monkeypatch.setattr("leakbound.noise.left_out_tradeoff._MOST_LENGTHS", 400 * 6)
    short = left_out_curve(values / 20, rates=FPR)
    assert (short.value >= exact.value).all()
    assert (short.value > exact.value).any()
    assert (short.tpr_at(FPR) <= 1.5 * exact.tpr_at(FPR)).all()


def test_of_three_records_a_search_that_is_cut_short_is_on_the_safe_side(monkeypatch) -> None:
    triangle = np.array([[0.0, 0.0], [0.5, 0.0], [0.25, 0.25 * math.sqrt(3)]])
    exact = left_out_curve(triangle, rates=FPR)
    monkeypatch.setattr("leakbound.noise.left_out_tradeoff._MOST_LENGTHS", 0)
    assert (left_out_curve(triangle, rates=FPR).value >= exact.value * (1 - 2e-3)).all()


def test_a_reserve_raises_it_as_the_total_variation() -> None:
    table = np.random.default_rng(2).normal(size=(50, 2)) / 8
    alone, reserved = left_out_curve(table), left_out_curve(table, 0.2)
    assert (reserved.tpr_at(FPR) > alone.tpr_at(FPR)).all()
    assert reserved.advantage() == pytest.approx(joint_advantage(table, 0.2).advantage, rel=2e-3)


def test_failures() -> None:
    """A failure hides among other failures alone."""
    values = np.array([[0.0], [0.2], [np.nan], [0.1]])
    curve = left_out_curve(values)
    assert curve.tpr_at(0.0) == 1.0
    of_two = np.vstack([np.zeros((2, 1)), np.full((2, 1), np.nan)])
    assert left_out_curve(of_two).advantage() == pytest.approx(2 / 3)  # all four records: 2 of 3 others are apart


def test_equal_values_tell_nothing() -> None:
    assert left_out_curve(np.zeros((5, 2))).tpr_at(0.01) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("reserve", "rates", "line"),
    [(-1.0, (0.01,), "reserve must be >= 0"), (0.0, (0.0,), r"rates must be > 0 and < 1, got 0$")],
)
def test_bad_values_are_one_line(reserve, rates, line) -> None:
    with pytest.raises(ValueError, match=line):
        left_out_curve(np.zeros((2, 1)), reserve, rates)
