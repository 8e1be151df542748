"""The errata in numbers: each printed value beside the correct one, a test for each entry of ``docs/errata.md``."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.special import ndtr, rel_entr
from scipy.stats import binom, norm

import leakbound as ls
from leakbound.attacks import find
from leakbound.attacks.statistic import likelihood_ratio
from leakbound.bounds import (
    analytic_gaussian_scale,
    dp_from_mip,
    exact_eta,
    kl_upper,
    leakage_score,
    leakage_tradeoff,
    mip_from_dp,
)
from leakbound.bounds.dp import posterior_from_dp
from leakbound.bounds.exact import deterministic, exact_eta_discrete, exact_tradeoff, pmp_discrete, subsets
from leakbound.bounds.exponential import geometric_median_loss, geometric_median_sensitivity, subset_sensitivity
from leakbound.bounds.generalisation import Exponential, generalisation_bound_tails
from leakbound.bounds.information import mutual_information_discrete
from leakbound.bounds.leakage import wrong_target
from leakbound.bounds.membership import epsilons_exponential
from leakbound.bounds.posterior import gaussian_mean_tau, membership_posterior
from leakbound.core.covariance import Full, low_rank
from leakbound.core.tradeoff import Gaussian
from leakbound.noise import LaplaceNoise, Lp, NormNoise, calibrate, complement, moment


def algorithm_1(train, eta, rng, n_splits=32):
    """The mean with noise as printed: d = 1, M = 2, the scale from halves of the training set."""
    means = [rng.permutation(train)[: len(train) // 2].mean() for _ in range(n_splits)]
    return train.mean() + rng.laplace(scale=(6.16 / eta) ** 2) * np.std(means)


def accuracy(data, rng, n_games=1000):
    """Of the attacker who calls record 0 a member where the released number is large."""
    draws = [rng.permutation(len(data))[: len(data) // 2] for _ in range(n_games)]
    member = np.array([0 in draw for draw in draws])
    size = np.abs([algorithm_1(data[draw], 0.1, rng) for draw in draws])
    return max(((size > cut) == member).mean() for cut in np.quantile(size, np.linspace(0, 1, 101)))


def test_erratum_1():
    """The noise scale itself leaks."""
    rng = np.random.default_rng(0)
    assert accuracy(np.r_[1.0, np.zeros(19)], rng) == 1.0  # promised: 0.60
    assert accuracy(np.r_[100.0, rng.normal(size=199)], rng) > 0.8
    member = subsets(8, 4)
    means = member @ np.r_[1.0, np.zeros(7)] / 4
    noise = calibrate(complement(means[:, None], member), eta=0.1, family=LaplaceNoise)
    assert exact_eta(means, member, noise).max() <= 0.1 + 1e-9


def test_erratum_2():
    """The radius of noise in several dimensions."""
    eta, d = 0.1, 10**6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "laplace-literal is for reproduction ..."
        printed = NormNoise((6.16 / eta) ** 2, Lp(2), radius="laplace-literal", d=d)
    right = NormNoise((6.16 / eta) ** 2, Lp(2))  # in any dimension
    # A(D) = a if the record is in D, -a if not, with ||a|| = 1: a shift by 2, and sigma = 1
    assert round(float(printed.shift_tv(2.0)) / 2, 5) == 0.20616  # more than twice the promised 0.1
    assert right.shift_tv(2.0) / 2 < 0.0002


def test_erratum_3():
    """A constant that is hundreds of times too large."""
    for M, printed in ((2, 3794.56), (6, 243.280677)):
        assert abs((6.16 / 0.1) ** (1 + 2 / M) / printed - 1) < 1e-6
    enough = calibrate(moment(1.0, d=1), eta=0.1, family=LaplaceNoise).scale
    assert round(enough, 6) == 4.48142  # 847 times less than with M = 2, 54 times less than with M = 6
    taxicab = Lp(1)
    in_any_norm = calibrate(moment(1.0, d=9, norm=taxicab), eta=0.1, family=lambda scale: NormNoise(scale, taxicab))
    assert round(in_any_norm.scale, 6) == 4.932607


def test_erratum_4():
    """Differential privacy when k is not n/2."""
    assert np.exp(1.0) * 0.6 > 1.6  # as printed: an accuracy above 1
    assert round(0.6 + mip_from_dp(1.0, prior=0.6), 12) == 0.73105857863


def test_erratum_5():
    """The factor at δ."""
    share = 0.8 / (1 + np.e)  # randomised response that is certain with probability 0.2
    mechanism = [[0.2, share * np.e, share, 0.0], [0.0, share, share * np.e, 0.2]]
    with_x_and_without = exact_tradeoff(mechanism, [[True, False], [False, True]], record=0)
    assert round(with_x_and_without.delta(1.0), 12) == 0.2  # (1, 0.2)-PMP and DP, not (1, 0.1)


def test_erratum_6():
    """Evidence that a record is not in."""
    member = subsets(4, 2)  # n = 2 of 2n = 4 records
    rare = np.where(member[:, 0], 0.001, 0.5)  # P(first output | D)
    distribution = np.column_stack([rare, 1 - rare])
    printed = max(np.log(0.001 / 0.5), np.log(0.999 / 0.5))
    assert round(printed, 8) == 0.69214668
    assert round(pmp_discrete(distribution, member), 8) == 6.2146081


def test_erratum_7():
    """From ε to η."""
    assert round((1 - np.exp(-1)) / 2, 4) == 0.3161  # as printed
    assert round(mip_from_dp(1.0), 4) == round(np.tanh(0.5) / 2, 4) == 0.2311


def test_erratum_8():
    """Which ε(X)?"""
    rng = np.random.default_rng(0)  # Figure 2: d = 5, n = 6, 32 outputs, two outliers times 100, clipped to norm 50
    outputs = rng.normal(size=(32, 5))
    outputs /= np.linalg.norm(outputs, axis=1, keepdims=True)
    records = rng.normal(outputs[0], 1.0, size=(12, 5))
    records[:2] *= 100
    records *= np.minimum(1, 50 / np.linalg.norm(records, axis=1, keepdims=True))
    loss, sensitivity = geometric_median_loss(outputs, records), geometric_median_sensitivity(50, 6)
    found = epsilons_exponential(loss, 10 * sensitivity / subset_sensitivity(loss), sensitivity)
    assert round(found.eps_subset_nominal, 9) == 10.0
    assert found.eps_pmp < 0.123  # as printed
    assert found.eps_subset_exact < 0.3  # not 10


def test_erratum_9():
    """Sub-sampling."""
    right, printed = leakage_tradeoff(7.75, rho=0.1), Gaussian(np.sqrt(0.1 * 7.75))
    assert (round(right.advantage(), 7), round(printed.advantage(), 7)) == (0.0999989, 0.3401863)
    assert (round(float(right.tpr_at(1e-3)), 4), round(float(printed.tpr_at(1e-3)), 5)) == (0.1009, 0.01356)
    rng, rho, m = np.random.default_rng(0), 0.1, 7.75  # the game: is the target drawn, and the ratio if it is
    drawn = rng.random(40_000) < rho
    ratio = rng.normal(np.where(drawn, m / rho / 2, -m / rho / 2), np.sqrt(m / rho))
    cut = -m / rho / 2 + np.sqrt(m / rho) * 3.0902  # a false-positive rate of 1e-3
    assert abs((ratio > cut).mean() - 0.1009) < 0.006


def test_erratum_10():
    """An attacker who tests for a different record."""
    tested, inserted, n = np.array([3.0, 0.0]), np.array([1.0, 5.0]), 9
    means = np.random.default_rng(0).normal(inserted / n, 1 / np.sqrt(n), size=(20_000, 2))  # with the record
    ratio = means @ tested - tested @ tested / (2 * n)
    assert abs(ratio.var() - tested @ tested / n) < 0.03  # m_targ = 1
    assert inserted @ inserted / n > 2.8  # m*, as printed
    assert round(wrong_target(tested, inserted, np.zeros(2), np.ones(2), n).score, 9) == round((3 / 9) ** 2 / 1, 9)


def scores(a, n=1000, d=5000):
    """Of the easy, the medium and the hard target, averaged over 20 draws of p."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(20):
        p = rng.uniform(a, 1 - a, d)
        targets = [p <= 0.5, rng.random(d) < 0.5, p > 0.5, rng.random(d) < p]
        found.append(leakage_score(np.array(targets, dtype=float), p, p * (1 - p), n))
    return np.mean(found, axis=0).round(1).tolist()


def test_erratum_11():
    """The parameters of Figure 2."""
    assert scores(0.30)[:3] == [7.8, 5.6, 3.4]
    assert scores(0.25)[0] > 8.5  # as printed: not 7.75
    assert scores(0.30)[3] == 5.0  # Bern(p), as printed: not 5.61


def auc(score, game):
    return ls.metrics.auc(ls.Scores("score", score, game.member, "")).value


def test_erratum_12():
    """One score from many steps."""
    rng, n_games, steps, q, m = np.random.default_rng(0), 2000, 100, 0.5, 0.05
    game = ls.games.per_datum(1, 0, n_games, others="fresh")
    inside = game.member & (rng.random((n_games, steps)) < q)  # in which batches a member is
    v = rng.normal(np.where(inside, m / 2, -m / 2), np.sqrt(m))[:, None, :]
    signals = ls.Signals(game, None, {"step_dot": v + m / 2, "step_norm": np.full(v.shape, m)})
    assert auc(likelihood_ratio(signals, rate=q), game) > 0.75
    assert auc(v.max(axis=2), game) < 0.62
    gradients = rng.normal(size=(8, 50))
    with pytest.raises(ValueError, match="has no inverse"):
        Full(np.cov(gradients.T))  # of rank 7 in 50 columns
    assert low_rank(gradients, floor=1.0).quad(gradients[0]) > 0


def test_erratum_13():
    """Which error is which."""
    p_in, p_out = np.array([0.75, 0.25]), np.array([0.25, 0.75])  # randomised response
    T = p_in > p_out
    assert 1 - (p_out[T].sum() + p_in[~T].sum()) / 2 == 0.75  # the Bayes attacker
    assert 1 - (p_in[T].sum() + p_out[~T].sum()) / 2 == 0.25  # eq. 30 as printed
    tv = np.abs(p_in - p_out).sum() / 2
    printed = {
        tuple(S): p_in[S].sum() + p_out[~S].sum() for S in np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=bool)
    }
    assert min(printed.values()) == printed[tuple(~T)] == 1 - tv  # eq. 13 holds, with equality at the complement
    assert printed[tuple(T)] == 1 + tv


def test_erratum_14():
    """Bits compared with nats."""
    nats = float(mutual_information_discrete(np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([[True], [False]]))[0])
    assert round(kl_upper(nats), 9) == 0.75  # attained: the attacker is right in 3 of 4 games
    assert kl_upper(nats * np.log(2)) < 0.71  # nats read as bits: below what the attacker reaches


def test_erratum_15():
    """The tail of a residual."""
    h, r = 20 / 30, 40.0  # d = 20, n = 30, sigma = 1
    tail = ndtr(-np.sqrt(r / (1 - h))) + ndtr(-np.sqrt(r / (1 + h)))  # P(R^2 >= r) at even odds
    assert tail > 100 * 2 * np.exp(-r / 2)  # as printed: not bounded
    assert tail < 2 * np.exp(-r / (2 * (1 + h)))


def test_erratum_16():
    """The theorem does not hold for every attacker."""
    q, success = 0.9, 0.1  # always say the unlikelier class, and release nothing
    divergence = rel_entr(success, q) + rel_entr(1 - success, 1 - q)
    assert divergence > 1.7  # and the information is 0
    assert kl_upper(0.0, prior=q) == q


T = 0.4
others = [((), 0.5), ((0,), 0.25), ((1,), 0.25)]  # what one other record adds to the training set, with its chance


def log_likelihood(theta, members):
    """Of the model: proportional to exp(-sum of losses/T)."""
    total = {t: -sum(z != t for z in members) / T for t in (0, 1)}
    return total[theta] - np.logaddexp(total[0], total[1])


def both(theta, z):
    """The posterior of z's membership, and the mean of sigmoids over the same sets."""
    sets = [(a + b, p * q) for (a, p), (b, q) in product(others, others)]
    inside = np.array([log_likelihood(theta, (z, *s)) for s, _ in sets])
    outside = np.array([log_likelihood(theta, s) for s, _ in sets])
    chance = np.array([p for _, p in sets])
    right = membership_posterior(inside + np.log(chance), outside + np.log(chance))
    return round(float(right), 8), round(float(chance @ (1 / (1 + np.exp(outside - inside)))), 8)


def test_erratum_17():
    """A mean of sigmoids."""
    assert both(theta=0, z=0) == (0.61152574, 0.67869712)
    assert both(theta=1, z=0) == (0.29865259, 0.19233096)


def test_erratum_18():
    """The sign of MAST's threshold."""
    member = np.array([[True], [False], [False]])  # one attacked model, two references without the record
    game = ls.Game("half_split", member, np.array([True]), 1)
    loss = np.array([[1.0], [3.0], [3.0]])  # hard elsewhere, easier here
    (mast,) = find(["mast"])
    assert float(mast(ls.Signals(game, None, {"loss": loss})).value[0, 0]) == 2.0  # tau = 3: a member
    assert -1.0 + np.log(np.exp(-3.0)) == -4.0  # tau = -3, as printed


def test_erratum_19():
    """The threshold of a Gaussian mean."""
    rng, k, d = np.random.default_rng(0), 50, 2000
    right, printed = [], []
    for _ in range(20):
        z = rng.normal(size=(2 * k, d))
        member = np.arange(2 * k) < k
        loss = ((z - z[member].mean(axis=0)) ** 2).sum(axis=1) / 2
        right.append((loss < gaussian_mean_tau(z, np.zeros(d), temperature=1.0, n=k)) == member)
        printed.append((loss < k / (2 * (k + 1)) * (z**2).sum(axis=1)) == member)
    assert np.mean(right) > 0.998
    assert 0.74 < np.mean(printed) < 0.79


def test_erratum_20():
    """Which ratio, and which exponent."""
    assert round(2.14 / 28.5, 3) == 0.075
    assert round(1 / 75, 4) == 0.0133
    assert 1 / (1 + np.exp(-123.0)) == 1.0  # as printed: 1/(1 + e^-123) = .53
    assert round(1 / (1 + np.exp(-0.123)), 2) == 0.53


def test_erratum_21():
    """The records of PenDigits."""
    assert 7494 + 3498 == 10_992


def test_erratum_22():
    """By how much MATT is ahead of MALT."""
    malt_test, matt_test = np.array([55.8, 53.2, 51.8, 51.9, 51.4]), np.array([60.1, 56.6, 54.4, 53.7, 53.0])
    malt_train, matt_train = np.array([51.9, 50.5, 50.4, 50.1, 50.2]), np.array([57.1, 54.8, 53.4, 52.6, 52.2])
    ahead = [(matt - malt).round(1) for malt, matt in ((malt_test, matt_test), (malt_train, matt_train))]
    assert [(lead.min(), lead.max()) for lead in ahead] == [(1.6, 4.3), (2.0, 5.2)]


def test_erratum_23():
    """A variance, and a baseline."""
    steps, rate, clip, k = 50, 0.1, 4.785, 250_000  # the clip is the median gradient of the experiment
    scale = clip * analytic_gaussian_scale(dp_from_mip(0.49), 1e-6, sensitivity=2 * steps**0.5)  # the largest eta
    rng, noise = np.random.default_rng(0), np.zeros((1000, 9))
    for _ in range(steps):  # the noise alone, through the same gradient steps
        noise = (1 - 2 * rate) * noise - rate * scale * rng.normal(size=noise.shape)
    size = np.linalg.norm([[2.0, 0.6, 0.2], [0.6, 1.0, 0.3], [0.2, 0.3, 0.5]])
    typical = np.linalg.norm(noise, axis=1).mean() / size
    assert typical > 5  # added to the mean of the gradients; clipping, left out here, makes it 52
    assert typical / k < 0.001  # added to their sum


def test_erratum_24():
    """Two distributions in one figure."""
    assert round(1 / np.sqrt(2 * np.pi * 7.75), 3) == 0.143  # would need the tick .14
    assert 1 / np.sqrt(2 * np.pi * 8.1) > 0.14 > 1 / np.sqrt(2 * np.pi * 8.2)

    def end_of_axis(m):
        return 1.1 * (m / 2 + 3.4 * np.sqrt(m))  # ticks at each 5: 20 is there, 25 is not

    assert end_of_axis(12) < 20 < end_of_axis(13) < end_of_axis(17) < 25 < end_of_axis(18)

    def easy(a):
        return 5 * (np.log(0.5 / a) / (0.5 - a) - 1)  # the mean over p of its score, d/n = 5

    assert 12 < easy(0.14) < easy(0.1) < easy(0.08) < 17
    assert round(easy(0.3), 2) == 7.77

    def hard(a):
        return 5 * (np.log((1 - a) / 0.5) / (0.5 - a) - 1)

    assert 2.2 < hard(0.08) < hard(0.14) < 2.6
    assert round(hard(0.3), 2) == 3.41
    assert end_of_axis(hard(0.14)) < 7.5 < end_of_axis(hard(0.3)) < 10  # panel (b) has the tick 10


def kl(p: float, q: float) -> float:
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


def test_erratum_25():
    """Whose expected risk."""
    n, eps, information = 100, 0.2, 0.0  # labels are 1 with probability .1
    rate = min(kl(0.9 - eps, 0.9), np.inf)  # .1 cannot fall by .2: its dual is infinite
    limit = (information + 1) / (n * rate)
    of_mean_risk = np.mean([binom.cdf(round(n * (0.5 - eps)), n, risk) for risk in (0.1, 0.9)])
    of_own_risk = np.mean([binom.cdf(round(n * (risk - eps)), n, risk) for risk in (0.1, 0.9)])
    assert of_mean_risk > 0.49 > 0.07 > limit > of_own_risk


def information(joint):
    """Mutual information of two discrete variables, in nats."""
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    return float((joint * np.log(joint / independent)).sum())


def test_erratum_26():
    """Information that is missing from an equation."""
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.full(3, 0.5), size=(2, 2)) / 4  # of s, t and theta; s and t are fair and independent
    of_s, of_t = information(joint.sum(axis=1)), information(joint.sum(axis=0))
    t_given_s = sum(information(2 * part) for part in joint) / 2
    s_given_t = sum(information(2 * part) for part in joint.transpose(1, 0, 2)) / 2
    assert abs(t_given_s - (s_given_t - of_s + of_t)) < 1e-12
    assert of_t > 0.1
    assert t_given_s <= information(joint.reshape(4, 3)) - of_s + 1e-12


def test_erratum_27():
    """Two misprints in the appendix."""
    prior = 0.9  # of the likelier of two values; nothing is released
    assert kl(prior, prior) == 0  # equation 72
    assert kl(prior, 1 - prior) > 1.7  # equation 66


def test_erratum_28():
    """A factor in the generator, a power in Chebyshev's inequality."""
    sigma_matrix = np.array([[2.0, 0.6], [0.6, 1.0]])
    value, vector = np.linalg.eigh(sigma_matrix + sigma_matrix.T)
    root = (vector * np.sqrt(value)) @ vector.T
    assert np.allclose(root @ root.T, 2 * sigma_matrix)
    k, t = 4, 1.2  # a variable that is -2 or 2, at the distance 2 from its mean
    assert t * (2**2) ** (1 / k) < 2
    assert t**-k < 0.5
    assert t * (2**k) ** (1 / k) > 2  # with the k-th power: the probability is 0


def test_erratum_29():
    """Sub-sampling at small rates, and a factor in an expansion."""
    whole, half = leakage_tradeoff(7.75), leakage_tradeoff(7.75, 0.5)
    assert half.advantage() < whole.advantage()
    assert half.tpr_at(0.001) > 0.40 > 0.39 > whole.tpr_at(0.001)


def peak(k: int) -> float:
    """Mean of the best accuracy on k members and k others, in hindsight, if the scores tell nothing: exact."""
    return 0.5 + float(Fraction(4**k, comb(2 * k, k)) - 1) / (4 * k)


def test_erratum_30():
    """The best threshold in hindsight."""
    assert [round(peak(n // 2), 3) for n in (400, 1000, 2000, 4000, 6000)] == [0.53, 0.519, 0.514, 0.51, 0.508]
    rng, k, zero_one, malt = np.random.default_rng(0), 200, 0.521, 0.544  # as printed at n = 400
    scores = rng.normal(size=(1000, 2 * k))
    scores[:, :k] += 2 * norm.ppf(zero_one)  # members; the best fixed threshold is the middle
    steps = np.where(np.argsort(-scores, axis=1) < k, 1, -1)
    assert 0.5 + np.cumsum(steps, axis=1).max(axis=1).mean() / (2 * k) > malt


def test_erratum_31():
    """Levels that no threshold has, a covariance around 0, and misprints."""
    inside, outside = np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.2, 0.5])  # chances of three outputs
    assert np.argmax(inside / outside) == 0
    assert outside[0] > 0.2
    assert outside[1] <= 0.2
    assert inside[1] == 0.3
    assert round(float(exact_tradeoff([inside, outside], [[True], [False]], record=0).tpr_at(0.2)), 12) == 0.4
    mu, shift = np.array([30.0, 30.0]), np.array([3.0, 0.0])  # C is the identity, shift is z - mu, and n = 10
    for covariance, strength in (
        (np.eye(2), 0.9),
        (np.eye(2) + np.outer(mu, mu), 0.45),
    ):  # m* = .9; the other one as printed
        w = np.linalg.solve(covariance, shift)
        assert round((w @ shift) ** 2 / (10 * w @ w), 2) == strength
    m, alpha = 7.75, 0.05
    printed, right = (sign * m / 2 + np.sqrt(m) * norm.isf(alpha) for sign in (1, -1))
    assert round(norm.sf(right, -m / 2, np.sqrt(m)), 12) == alpha
    assert norm.sf(printed, -m / 2, np.sqrt(m)) < 1e-5


def test_erratum_32():
    """All data sets, and none."""
    half = subsets(6, 3)  # n = 3
    assert len(half) == comb(6, 3)  # x in X: each of these
    assert half[:, 0].sum() == (~half[:, 0]).sum() == comb(6, 3) / 2


def test_erratum_33():
    """The score of a similar point."""
    n, m = 1, 7.75  # the easy target, in a plane where the covariance is the identity
    target, origin, ones = np.sqrt(m) * np.array([1.0, 0.0]), np.zeros(2), np.ones(2)
    for degrees, printed, right in ((60, m / 2, m / 4), (180, -m, m)):
        angle = np.radians(degrees)
        similar = np.sqrt(m) * np.array([np.cos(angle), np.sin(angle)])
        found = wrong_target(similar, target, origin, ones, n)
        assert round(similar @ target / n, 9) == printed
        assert round(float(found.score), 9) == right
    means = np.random.default_rng(0).normal(size=(20_000, 2))  # of one record: the rest, without the target
    similar = np.sqrt(m) * np.array([0.5, np.sqrt(0.75)])
    called = ((means + target) @ similar > m / 4, means @ similar > m / 4)  # at the best threshold, m_scal/2
    advantage = called[0].mean() - called[1].mean()
    assert abs(advantage - leakage_tradeoff(m / 4).advantage()) < 0.02
    assert advantage < leakage_tradeoff(m / 2).advantage() - 0.1


def test_statements_that_can_be_sharpened():
    """Statements that can be sharpened."""
    assert posterior_from_dp(4.0, prior=0.9) < 0.998 < 1 < 0.9 + 4 / 4
    member = subsets(12, 6)
    modular = deterministic(member @ np.arange(12) % 12)
    assert round(pmp_discrete(modular, member), 12) == round(np.log(38 / 37), 12)
    member, p = subsets(4, 2), 0.1
    published = np.array(
        [[p ** s.sum() * (1 - p) ** (2 - s.sum()) * (s <= d).all() for s in subsets(4)] for d in member]
    )
    assert np.allclose(exact_eta_discrete(published, member), p / 2)
    tail = Exponential(1.2, non_negative=True)
    assert generalisation_bound_tails(0.4, tail) > generalisation_bound_tails(0.4, tail, method="published") > 0.5
