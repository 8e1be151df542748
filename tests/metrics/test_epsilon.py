import math

import numpy as np
import pytest
from scipy import stats

from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.epsilon import METHODS, bound, claim_p_value, epsilon_lower, evidence
from tests.levels import allowed, sizes
from tests.marks import nightly_but


def flipped(rng, member, epsilon):
    """Randomised response: each bit is told right with probability e^epsilon/(1 + e^epsilon)."""
    truthful = rng.random(member.shape) < 1 / (1 + math.exp(-epsilon))
    return Scores("randomised response", np.where(truthful, member, ~member).astype(float), member)


def coins(rng, epsilon, shape=(1, 400)):
    """Each record's own bit by randomised response: epsilon-DP for add/remove."""
    return flipped(rng, rng.random(shape) < 0.5, epsilon)


def fixed_half(rng, epsilon, shape=(1, 400)):
    """Half of each record's budget: replacing one record by another changes two bits."""
    member = rng.permuted(np.tile(np.arange(shape[1]) % 2 == 0, (shape[0], 1)), axis=1)
    return flipped(rng, member, epsilon / 2)


def one_point(rng, epsilon, shape=(300, 1)):
    return coins(rng, epsilon, shape)


MECHANISMS = {"coins": coins, "pairs": fixed_half, "many_runs": one_point, "independent_canaries": coins}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_bound_is_where_the_claim_is_just_refuted(method, delta):
    scores = MECHANISMS[method](np.random.default_rng(0), 3.0)
    value = epsilon_lower(scores, delta, 0.95, method, independent=True).value
    below, above = (claim_p_value(scores, value + step, delta, method, independent=True) for step in (-1e-4, 1e-4))
    assert value > 0.5
    assert below < 0.05 <= above


@pytest.mark.parametrize("method", METHODS)
def test_p_values_do_not_fall_with_epsilon_or_delta(method):
    scores = MECHANISMS[method](np.random.default_rng(1), 2.0)
    p = np.array(
        [
            [claim_p_value(scores, e, d, method, independent=True) for e in np.linspace(0, 4, 41)]
            for d in (0.0, 1e-6, 1e-4, 1e-2)
        ]
    )
    assert (np.diff(p, axis=0) >= 0).all()
    assert (np.diff(p, axis=1) >= -1e-9).all()


@pytest.mark.parametrize("method", nightly_but(METHODS, "coins", "pairs"))
def test_the_bound_falls_with_delta_confidence_and_the_number_of_tests(method):
    scores = MECHANISMS[method](np.random.default_rng(2), 3.0)

    def limit(**given):
        return epsilon_lower(scores, method=method, independent=True, **given).value

    deltas = [limit(delta=delta) for delta in (0.0, 1e-6, 1e-5, 1e-4, 1e-2)]
    levels = [limit(confidence=confidence) for confidence in (0.8, 0.95, 0.999)]
    tests = [limit(n_tests=n) for n in (1, 5, 50)]
    for bounds in (deltas, levels, tests):
        assert bounds == sorted(bounds, reverse=True)
        assert bounds[0] > bounds[-1]
    assert limit(n_tests=5) == pytest.approx(limit(confidence=0.99), abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_several_tests_multiply_the_p_value(method):
    """The Bonferroni correction; no p-value is above 1."""
    scores = MECHANISMS[method](np.random.default_rng(0), 3.0)
    p = [claim_p_value(scores, 1.0, 1e-5, method, independent=True, n_tests=n) for n in (1, 7, 10**30)]
    assert 0 < p[1] < 1
    assert p[1] == pytest.approx(7 * p[0], rel=1e-12)
    assert p[2] == 1
    bound_of_seven = epsilon_lower(scores, 1e-5, 0.95, method, independent=True, n_tests=7).value
    below, above = (
        claim_p_value(scores, bound_of_seven + step, 1e-5, method, independent=True, n_tests=7)
        for step in (-1e-4, 1e-4)
    )
    assert below < 0.05 <= above


def test_evidence_is_enough_for_the_bound():
    scores = MECHANISMS["coins"](np.random.default_rng(3), 3.0)
    from_scores = epsilon_lower(scores, 1e-5, 0.9, "coins", n_tests=3)
    assert bound(evidence(scores, "coins"), 1e-5, 0.9, 3) == from_scores


def test_only_a_one_sided_bound_is_given():
    interval = epsilon_lower(fixed_half(np.random.default_rng(0), 3.0))
    assert interval.low == interval.value
    assert interval.high == math.inf
    assert interval.interval_over == "none"
    assert METHODS["pairs"].source.startswith("steinke2023")
    assert interval.detail["unit"] == "pairs of records"
    assert interval.detail["units"] == 200
    assert interval.detail["correct"] <= interval.detail["guesses"] <= 200


def test_a_constant_score_refutes_nothing():
    member = np.tile(np.arange(400) % 2 == 0, (1, 1))
    scores = Scores("constant", np.zeros(member.shape), member)
    assert claim_p_value(scores, 0.0, method="pairs") == 1
    assert epsilon_lower(scores, method="coins").value == 0


def test_order_of_the_points_does_not_decide_ties():
    # members first, and all scores equal: guesses by position would all be right
    member = np.arange(2000) < 1000
    for method in ("pairs", "coins"):
        assert claim_p_value(Scores("constant", np.zeros((1, 2000)), member[None, :]), 0.0, method=method) > 0.01


def test_many_runs_refuse_points_of_one_model():
    with pytest.raises(NotApplicable, match="points of one model are not independent"):
        epsilon_lower(coins(np.random.default_rng(0), 1.0), method="many_runs")


@pytest.mark.parametrize("method", METHODS)
def test_several_targets_need_independence(method):
    scores = MECHANISMS[method](np.random.default_rng(0), 1.0, (30, 1) if method == "many_runs" else (2, 40))
    with pytest.raises(NotApplicable, match="the targets are not independent"):
        epsilon_lower(scores, method=method)


@pytest.mark.parametrize(
    ("method", "shape"),
    [("pairs", (1, 18)), ("coins", (1, 9)), ("many_runs", (1, 1)), ("independent_canaries", (1, 1))],
)
def test_too_few_units_are_refused(method, shape):
    with pytest.raises(NotApplicable, match="needs at least"):
        epsilon_lower(MECHANISMS[method](np.random.default_rng(0), 1.0, shape), method=method)


def test_coins_of_models_with_few_points_are_ranked_together():
    scores = coins(np.random.default_rng(0), 3.0, (400, 1))
    detail = epsilon_lower(scores, method="coins", independent=True).detail
    assert detail["units"] == 400
    assert epsilon_lower(scores, method="coins", independent=True).value > 1.5


@pytest.mark.usefixtures("as_users_run_it")
def test_words_and_numbers_are_checked():
    scores = coins(np.random.default_rng(0), 1.0)
    with pytest.raises(ValueError, match=r"unknown method 'pair' \(did you mean 'pairs'\?\)"):
        epsilon_lower(scores, method="pair")
    with pytest.raises(ValueError, match="epsilon must be >= 0"):
        claim_p_value(scores, -1.0)
    with pytest.raises(ValueError, match="n_tests must be >= 1"):
        epsilon_lower(scores, n_tests=0)


@pytest.mark.parametrize(("sign", "called"), [(1, "members"), (-1, "non-members")])
def test_many_runs_look_in_both_directions(sign, called):
    # half of one class is beyond every score of the other class
    rng = np.random.default_rng(0)
    member = rng.random((400, 1)) < 0.5
    leaking = (member == (sign == 1)) & (rng.random(member.shape) < 0.5)
    scores = Scores("one tail", rng.normal(size=member.shape) + sign * 20.0 * leaking, member)
    interval = epsilon_lower(scores, method="many_runs", independent=True)
    assert interval.detail["called"] == called
    assert interval.detail["false_alarms"] <= 3
    assert interval.value > 1.5


@pytest.mark.parametrize(
    ("method", "shape"),
    [("pairs", (1, 4000)), ("coins", (1, 4000)), ("many_runs", (1000, 1)), ("independent_canaries", (1, 1000))],
)
def test_strong_leaks_are_seen(method, shape):
    for epsilon in (1.0, 3.0):
        scores = MECHANISMS[method](np.random.default_rng(0), epsilon, shape)
        assert epsilon / 2 < epsilon_lower(scores, method=method, independent=True).value <= epsilon


@pytest.mark.by_day("pairs-0.0-150", "many_runs-0.0-150")
@pytest.mark.statistics
@pytest.mark.parametrize("n_runs", sizes(150))
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("method", METHODS)
def test_the_bound_exceeds_a_pure_epsilon_rarely(method, epsilon, n_runs):
    # the true levels are below .04 and 1e-3; false alarm below 1e-4; 150 runs find levels of .147 and .044
    rng = np.random.default_rng(17)
    runs = (MECHANISMS[method](rng, epsilon) for _ in range(n_runs))
    p = np.array([claim_p_value(scores, epsilon, method=method, independent=True) for scores in runs])
    assert np.count_nonzero(p < 0.05) <= allowed(n_runs)
    assert np.count_nonzero(p < 1e-3) <= {150: 3, 4000: 14}[n_runs]


@pytest.mark.by_day("pairs-150")
@pytest.mark.statistics
@pytest.mark.parametrize("n_runs", sizes(150))
@pytest.mark.parametrize("method", METHODS)
def test_the_bound_exceeds_that_of_a_gaussian_mechanism_rarely(method, n_runs):
    # bits plus noise are (epsilon, delta)-DP with this delta (Balle & Wang 2018, theorem 8); a replacement
    # moves two bits, so its distance is sqrt(2) times as large;
    # 150 runs find a level of .147
    distance, epsilon = 1.5, 2.0
    mu = distance * math.sqrt(2) if method == "pairs" else distance
    delta = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
    rng = np.random.default_rng(23)
    shape = (300, 1) if method == "many_runs" else (1, 400)
    refuted = 0
    for _ in range(n_runs):
        member = MECHANISMS[method](rng, 0.0, shape).member
        scores = Scores("gaussian", rng.normal(size=shape) + distance * member, member)
        refuted += claim_p_value(scores, epsilon, delta, method, independent=True) < 0.05
    assert refuted <= allowed(n_runs)
