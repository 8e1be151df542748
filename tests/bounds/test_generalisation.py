"""Gap bounds against enumerated games, extremal losses, independent optimisers, and their own coverage."""

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from leakbound.bounds.generalisation import (
    Exponential,
    SubGaussian,
    gap_bound,
    gap_lower,
    generalisation_bound,
    generalisation_bound_tails,
)
from leakbound.core.findings import Term
from tests.marks import nightly

PRIORS = [0.03, 0.3, 0.5, 0.8, 0.97]
TAILS = [Exponential(1.3), Exponential(1.3, non_negative=True), SubGaussian(0.7), SubGaussian(0.7, non_negative=True)]


def best_success(inside, outside, prior):
    """Of the attacker who knows both laws of what it sees."""
    return np.maximum(prior * inside, (1 - prior) * outside).sum()


def laws(draw, size):
    """Two laws on ``size`` outcomes, some of them impossible."""
    weights = st.lists(st.integers(0, 6), min_size=size, max_size=size).filter(any)
    return [np.array(each) / sum(each) for each in (draw(weights), draw(weights))]


@pytest.mark.parametrize(
    ("gap", "prior", "expected"), [(0.3, 0.5, 0.65), (0.3, 0.9, 0.9), (0.3, 0.6, 0.6), (1, 0.2, 1)]
)
def test_by_hand(gap, prior, expected):
    assert generalisation_bound(gap, 0, 1, prior) == pytest.approx(expected, abs=1e-15)
    assert generalisation_bound(0.5, 0, 1, 0.6) == pytest.approx(0.7, abs=1e-15)  # 1 - .6 (1 - .5)


@given(st.data(), st.sampled_from(PRIORS), st.floats(-3, 3), st.floats(0.1, 5))
def test_no_game_is_below_it(data, prior, low, width):
    inside, outside = laws(data.draw, 5)
    losses = low + width * np.linspace(0, 1, 5)
    gap = losses @ (outside - inside)
    assert generalisation_bound(gap, low, low + width, prior) <= best_success(inside, outside, prior) + 1e-12


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("end", [0, 1])
def test_some_game_is_no_better(prior, share, end):
    """The less likely class has one loss, the likelier one the other loss with probability t."""
    rare = np.roll([1.0, 0.0], end)
    likely = (1 - share) * rare + share * rare[::-1]
    inside, outside = (likely, rare) if prior >= 0.5 else (rare, likely)
    gap = 2.0 * (outside - inside)[1]  # losses 3 and 5
    assert generalisation_bound(gap, 3, 5, prior) == pytest.approx(best_success(inside, outside, prior), abs=1e-14)


def nearest_neighbour(x, y, kept):
    """The model fitted on the kept points: its prediction at each point."""
    return y[kept][np.abs(x[:, None] - x[kept]).argmin(axis=1)]


def majority(x, y, kept):
    return np.full(len(x), y[kept].sum() * 2 > len(kept))


@pytest.mark.parametrize("fit", [nearest_neighbour, majority])
@pytest.mark.parametrize("prior", PRIORS)
def test_enumerated_training_games(fit, prior):
    """Every half of six labelled points trains a model; the attacker sees its predictions and one point."""
    rng = np.random.default_rng(3)
    near = 0
    for _ in range(40):
        x, y = rng.normal(size=6), rng.random(6) < 0.5
        inside, outside, gap = {}, {}, 0.0
        for kept in map(list, combinations(range(6), 3)):
            seen = fit(x, y, kept)
            wrong = seen != y
            for i in range(6):
                law = inside if i in kept else outside
                law[seen.tobytes(), i] = law.get((seen.tobytes(), i), 0) + 1 / 60
            gap += (np.delete(wrong, kept).mean() - wrong[kept].mean()) / 20
        keys = sorted(inside.keys() | outside.keys())
        accuracy = best_success(*(np.array([law.get(key, 0) for key in keys]) for law in (inside, outside)), prior)
        bound = generalisation_bound(gap, 0, 1, prior)
        assert bound <= accuracy + 1e-12
        near += bound >= 0.7 * accuracy
    assert near >= 4  # a vacuous bound would not come near


def test_good_generalisation_is_no_privacy():
    """Fitted labels are exact for members and off by D + U' - U for others: the gap is D, the attacker always right."""
    rng = np.random.default_rng(0)
    shift, width, n = 0.01, 0.008, 100_000
    member = rng.random(n) < 0.5
    u, fresh = rng.uniform(-width / 2, width / 2, (2, n))
    x = rng.normal(size=n)
    y = x + u
    fitted = np.where(member, y, x + shift + fresh)
    loss = np.abs(fitted - y)
    assert ((loss == 0) == member).all()
    gap = loss[~member].mean() - loss[member].mean()
    assert gap == pytest.approx(shift, abs=6 * width / math.sqrt(n))
    assert generalisation_bound(shift, 0, 1) == pytest.approx(0.505, abs=1e-15)  # what the gap alone tells


@pytest.mark.parametrize("tail", TAILS)
def test_tails_are_what_they_say(tail):
    for r in (0.1, 1.0, 4.0):
        assert tail.excess(r) == pytest.approx(integrate.quad(tail.probability, r, np.inf)[0], rel=1e-9)
        assert tail.quantile(tail.probability(r)) == pytest.approx(r)
    scale = 2 * tail.proxy
    power = 1 if isinstance(tail, Exponential) else 2
    assert tail.probability(3.0) == pytest.approx(2 * math.exp(-(3.0**power) / scale))


@cache
def excess_at(tail):
    grid = np.geomspace(1e-3, 200, 20_001)
    return grid, np.array([tail.excess(r) for r in grid])


def clipped_share(gap, tail, prior):
    """Total variation by a search over where to clip."""
    if tail.non_negative:
        width, m = 1, 1 - prior if gap > 0 else prior
    else:
        width, m = 2, min(prior, 1 - prior)
    grid, excess = excess_at(tail)
    return max(((abs(gap) - excess / m) / (width * grid)).max(), 0)


def published_share(gap, tail, prior):
    """Theorems 3 and 4 as printed, by golden section over R_max."""
    scale, m = 2 * tail.proxy, min(prior, 1 - prior)

    def share(r):
        if isinstance(tail, Exponential):
            c = math.exp(-r / scale) * (1 + scale / r)
        else:
            c = math.exp(-(r**2) / scale) * (1 + tail.proxy / r**2)
        return abs(gap) / (2 * r) - c / m

    r0 = scale * math.log(2) if isinstance(tail, Exponential) else math.sqrt(scale * math.log(2))
    starts = np.geomspace(r0, 300 * r0, 60)
    i = int(np.argmax([share(r) for r in starts]))
    bracket = starts[max(i - 1, 0)], starts[min(i + 1, 59)]
    found = optimize.minimize_scalar(lambda r: -share(r), bounds=bracket, method="bounded", options={"xatol": 1e-12})
    return max(share(found.x), share(r0), 0)


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("gap", [-0.9, -0.2, 1e-4, 0.05, 0.4, 1.1])
def test_tails_by_other_searches(tail, prior, gap):
    likelier = max(prior, 1 - prior)
    for method, share in (("clipped", clipped_share), ("published", published_share)):
        expected = max(likelier, 1 - likelier * (1 - share(gap, tail, prior)))
        assert generalisation_bound_tails(gap, tail, prior, method) == pytest.approx(expected, abs=1e-6)
    clipped, published = (generalisation_bound_tails(gap, tail, prior, name) for name in ("clipped", "published"))
    assert clipped >= published


@given(st.data(), st.sampled_from(PRIORS), st.booleans(), st.sampled_from([Exponential, SubGaussian]))
def test_no_game_is_below_the_tail_bounds(data, prior, non_negative, kind):
    """The least proxy that the mixture of the two laws of the loss allows, found at the ends of its steps."""
    inside, outside = laws(data.draw, 9)
    losses = np.linspace(0, 4, 9) if non_negative else np.linspace(-4, 4, 9)
    mixture, sizes = prior * inside + (1 - prior) * outside, np.abs(losses)
    beyond = np.array([mixture[sizes >= r - 1e-12].sum() for r in sizes])
    some = (sizes > 0) & (beyond > 0)
    power = 1 if kind is Exponential else 2
    proxy = max((sizes[some] ** power / (2 * np.log(2 / beyond[some]))).max(initial=0), 1e-3)
    gap, accuracy = losses @ (outside - inside), best_success(inside, outside, prior)
    for method in ("clipped", "published"):
        bound = generalisation_bound_tails(gap, kind(proxy * (1 + 1e-9), non_negative), prior, method)
        assert bound <= accuracy + 1e-9


@pytest.mark.parametrize("kind", [Exponential, SubGaussian])
@pytest.mark.parametrize("cut", [3.0, 4.0, 5.0])
def test_some_loss_with_the_tail_is_no_better(kind, cut):
    """At even odds all of the tail above a cut belongs to fresh points, and every other loss is 0.

    With losses of either sign one half of it belongs to fresh points, the other, below -cut, to members.
    """
    tail = kind(1.0)

    def density(r):  # of |R| in the mixture
        return tail.probability(r) * (0.5 if kind is Exponential else r)

    gap = 2 * integrate.quad(lambda r: r * density(r), cut, cut + 60)[0]
    share = 2 * tail.probability(cut)
    assert 2 * generalisation_bound_tails(gap, kind(1.0, non_negative=True)) - 1 == pytest.approx(share, rel=1e-7)
    assert 2 * generalisation_bound_tails(gap, tail) - 1 == pytest.approx(share / 2, rel=1e-7)


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("prior", [0.2, 0.5, 0.7])
def test_the_largest_gap_of_a_tail_is_certainty(tail, prior):
    if tail.non_negative:
        limit = integrate.quad(lambda r: min(1, tail.probability(r) / (1 - prior)), 0, np.inf, limit=200)[0]
    else:
        m = min(prior, 1 - prior)
        limit = optimize.minimize_scalar(lambda r: 2 * r + tail.excess(r) / m, bounds=(0, 50), method="bounded").fun
    assert generalisation_bound_tails(limit * (1 - 1e-6), tail, prior) == pytest.approx(1, abs=1e-4)
    with pytest.raises(ValueError, match=r"^gap must be from -\d.* to \d.* for this tail, got "):
        generalisation_bound_tails(limit * 1.001, tail, prior)


def test_a_tail_of_any_unit():
    for kind, power in ((Exponential, 1), (SubGaussian, 2)):
        for method in ("clipped", "published"):
            small = generalisation_bound_tails(0.3e-8, kind(1e-8**power), 0.5, method)
            assert small == pytest.approx(generalisation_bound_tails(0.3, kind(1.0), 0.5, method), rel=1e-9)
    assert generalisation_bound_tails(0.0, Exponential(1.0), 0.4) == 0.6
    assert generalisation_bound_tails(1e-300, SubGaussian(1.0)) == 0.5


def chernoff(mean, n, alpha):
    """Both Chernoff limits of a mean in [0, 1] by root finding."""

    def excess(q):
        parts = [a * math.log(a / b) for a, b in ((mean, q), (1 - mean, 1 - q)) if a > 0]
        return n * sum(parts) - math.log(1 / alpha)

    low = 0.0 if mean == 0 else optimize.brentq(excess, 1e-300, mean, xtol=1e-14)
    high = 1.0 if mean == 1 else optimize.brentq(excess, mean, 1 - 1e-16, xtol=1e-14)
    return low, high


def test_one_model_by_root_finding():
    rng = np.random.default_rng(1)
    members, others = rng.beta(2, 8, 300), rng.beta(4, 4, 200)
    inside, outside = chernoff(members.mean(), 300, 0.025 / 2), chernoff(others.mean(), 200, 0.025 / 2)
    assert gap_lower(members, others, 0, 1) == pytest.approx(outside[0] - inside[1], abs=1e-9)
    assert gap_lower(others, members, 0, 1) == gap_lower(members, others, 0, 1)  # either sign
    assert gap_lower(3 * members - 1, 3 * others - 1, -1, 2) == pytest.approx(3 * (outside[0] - inside[1]), abs=1e-8)
    assert gap_lower(members, members, 0, 1) == 0


def test_one_model_that_never_errs_on_members():
    wrong = np.repeat([1.0, 0.0], [120, 280])
    found = gap_bound(np.r_[np.zeros(400), wrong][None], np.repeat([True, False], 400)[None], 0, 1)
    exact = chernoff(0.3, 400, 0.0125)[0] - (1 - 0.0125 ** (1 / 400))
    assert found.low == pytest.approx((1 + exact) / 2, abs=1e-9)
    assert (found.value, found.high, found.interval_over) == (pytest.approx(0.65), 1, "points")
    assert found.detail["gap"] == pytest.approx(0.3)
    assert found.detail["gap_low"] == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("prior", [0.5, 0.45, 0.9])
def test_several_models_by_student(prior):
    rng = np.random.default_rng(2)
    member = rng.random((9, 80)) < 0.4
    values = 2 + 4 * rng.beta(2, np.where(member, 9, 2))
    gaps = np.array([v[~inside].mean() - v[inside].mean() for v, inside in zip(values, member, strict=True)])
    low = stats.t.interval(0.9, 8, gaps.mean(), stats.sem(gaps))[0]
    for losses in (values, 8 - values):  # and members with the larger loss
        found = gap_bound(losses, member, 2, 6, prior, confidence=0.9)
        assert found.low == pytest.approx(generalisation_bound(low, 2, 6, prior), abs=1e-9)
        assert found.value == pytest.approx(generalisation_bound(gaps.mean(), 2, 6, prior), abs=1e-9)
        assert (found.high, found.interval_over, found.method) == (
            1,
            "models",
            (Term("gap_of_models"), Term("cluster_t")),
        )
    assert found.detail["gap"] == pytest.approx(-gaps.mean())


def test_equal_models_are_not_certain():
    member = np.tile([True, False], (20, 10))
    found = gap_bound((~member).astype(np.float32), member, 0, 1)
    assert found.value == 1
    assert found.low == pytest.approx(0.025 ** (1 / 20))  # all of 20 attacks succeed
    nothing = gap_bound(np.ones((20, 20)), member, 0, 1)
    assert (nothing.value, nothing.low) == (0.5, 0.5)


def test_two_models_say_little():
    member = np.tile([True, False], (2, 50))
    wrong = ~member & (np.random.default_rng(0).random(member.shape) < 0.4)
    found = gap_bound(wrong.astype(float), member, 0, 1)
    assert 0.5 <= found.low < found.value


@pytest.mark.by_day("3-rates1")
@pytest.mark.statistics
@pytest.mark.parametrize(("n_models", "rates"), [(16, (0.0, 0.3)), (3, (0.2, 0.25)), (16, (0.3, 0.3))])
def test_several_models_cover(n_models, rates):
    """True coverage at least .96, each model with a level of its own; a false alarm has probability below 1e-9."""
    rng = np.random.default_rng(4)
    inside, outside = rates
    truth = generalisation_bound(outside - inside, 0, 1)
    covered = 0
    member = np.tile(np.arange(60) < 30, (n_models, 1))
    for _ in range(4000):
        rate = np.where(member, inside, outside) * (1 + rng.uniform(-0.5, 0.5, (n_models, 1)))
        found = gap_bound((rng.random(member.shape) < rate).astype(float), member, 0, 1)
        covered += found.low <= truth
    assert covered >= 3760


@pytest.mark.statistics
@pytest.mark.parametrize("rates", [(0.0, 0.2), nightly((0.3, 0.35)), nightly((0.5, 0.5))])
def test_one_model_covers(rates):
    """Half of a training set compared with fresh points; rigorous, so that a false alarm is below 1e-9."""
    rng = np.random.default_rng(5)
    wrong = round(400 * rates[0])
    wrong_in, wrong_out = rng.hypergeometric(wrong, 400 - wrong, 200, 4000), rng.binomial(150, rates[1], 4000)

    @cache
    def limit(k_in, k_out):
        return gap_lower((np.arange(200) < k_in).astype(float), (np.arange(150) < k_out).astype(float), 0, 1)

    limits = np.array([limit(*pair) for pair in zip(wrong_in, wrong_out, strict=True)])
    assert np.count_nonzero(limits <= rates[1] - rates[0]) >= 3760


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((0.1, 1, 1), "low must be below high, got 1 and 1"),
        ((0.1, 2, 1), "low must be below high, got 2 and 1"),
        ((0.1, 0, math.inf), "high must be finite, got inf"),
        ((0.1, -1.7e308, 1.7e308), "high - low must be finite, got inf"),
        ((1.1, 0, 1), "gap must be from -1 to 1 for losses in the range, got 1.1"),
        ((-3, 0, 2), "gap must be from -2 to 2 for losses in the range, got -3"),
        ((math.nan, 0, 1), "gap must be finite, got nan"),
        ((0.1, 0, 1, 0), "prior must be > 0 and < 1, got 0"),
        ((0.1, 0, 1, 1), "prior must be > 0 and < 1, got 1"),
    ],
)
def test_bad_gaps(arguments, line):
    with pytest.raises(ValueError) as error:
        generalisation_bound(*arguments)
    assert str(error.value) == line


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_tails():
    for kind in (SubGaussian, Exponential):
        with pytest.raises(ValueError, match=r"^proxy must be > 0, got 0$"):
            kind(0.0)
    with pytest.raises(ValueError, match=r"^unknown method 'published2' \(did you mean 'published'\?\); known: "):
        generalisation_bound_tails(0.1, SubGaussian(1.0), method="published2")
    with pytest.raises(ValueError, match=r"^prior must be > 0 and < 1, got 1$"):
        generalisation_bound_tails(0.1, SubGaussian(1.0), prior=1.0)
    with pytest.raises(ValueError, match=r"^gap must be from -6.77\d* to 6.77\d* for this tail, got 7$"):
        generalisation_bound_tails(7.0, Exponential(1.0), prior=0.5)  # 4 (1 + ln 2)


def test_the_largest_gap_of_rounded_losses_is_allowed():
    low, high = 0.1, 0.3
    gap = (1 - low) - (1 - high)
    assert gap > high - low  # by rounding
    assert generalisation_bound(gap, low, high) == 1


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_losses():
    members = np.array([0.1, 0.2])
    for bad, line in (
        ((np.array([]), members, 0, 1), "members must be >= 1, got 0"),
        ((members, np.array([]), 0, 1), "others must be >= 1, got 0"),
        ((members, np.array([0.5, math.nan]), 0, 1), "others must be >= 0 and <= 1, got nan to nan"),
        ((np.array([0.5, 2]), members, 0, 1), "members must be >= 0 and <= 1, got 0.5 to 2"),
        ((members, members, 0, 1, 1.0), "confidence must be > 0 and < 1, got 1"),
    ):
        with pytest.raises(ValueError) as error:
            gap_lower(*bad)
        assert str(error.value) == line


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_games():
    member = np.array([[True, False], [True, True]])
    for values, who, line in (
        (np.zeros((2, 2)), member, "each model needs members and others; model 1 has 2 of 2 points in"),
        (np.zeros((2, 2)), ~member, "each model needs members and others; model 1 has 0 of 2 points in"),
        (np.zeros((2, 3)), member, "values have shape (2, 3), member has (2, 2); both must be (M, N)"),
        (np.zeros(2), member[0], "values have shape (2,), member has (2,); both must be (M, N)"),
        (np.zeros((0, 2)), member[:0], "values have shape (0, 2), member has (0, 2); both must be (M, N)"),
        (np.full((1, 2), np.inf), member[:1], "values must be >= 0 and <= 1, got inf to inf"),
    ):
        with pytest.raises(ValueError) as error:
            gap_bound(values, who, 0, 1)
        assert str(error.value) == line
