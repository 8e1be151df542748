"""Del Grosso et al. 2021: statements that no other test holds, on games that are enumerated or have closed forms."""

from __future__ import annotations

import io
from itertools import product
from math import comb, log, log2
from typing import Any

import numpy as np
import pandas as pd
import pytest
from docs import gallery
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, rel_entr, xlogy
from scipy.stats import binom, entropy, kstest, norm, triang

import leakbound as ls
from leakbound.metrics.attribute import right
from leakbound.papers import data
from leakbound.papers.delgrosso2021 import figure3, figure5, gap, images, section33, table1

WRITERS = 44


def kl(p: float, q: float) -> float:
    """Binary divergence in nats."""
    return float(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def information_of_class(chances: np.ndarray) -> float:
    """I(T; W) in nats for T uniform on the rows, by the chain rule: is it the first, if not the second, and so on."""
    n_classes = len(chances)
    total = 0.0
    for first in range(n_classes - 1):
        rest = chances[first:]
        is_first = np.arange(len(rest))[:, None] == 0
        nats = ls.bounds.mutual_information_discrete(rest, is_first)[0]
        total += len(rest) / n_classes * float(nats)
    return total


def best_success(joint: np.ndarray) -> float:
    """Success of the attacker who guesses the class t with the largest P(t | w), where ``joint[t, w]`` = P(t, w)."""
    n_classes, n_outputs = joint.shape
    posterior = (joint / joint.sum(axis=0)).T
    each_pair = np.tile(posterior, (n_classes, 1))[None]
    truth = np.repeat(np.arange(n_classes), n_outputs)
    return float(right(each_pair, truth)[0] @ joint.ravel())


def information(joint: np.ndarray) -> float:
    """I(A; B) in nats of ``joint[a, b]``, from three entropies."""
    return float(entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1)) - entropy(joint.ravel()))


def given(joint: np.ndarray) -> float:
    """I(A; B | C) in nats of ``joint[a, b, c]``."""
    parts = np.moveaxis(joint, 2, 0)
    return sum(part.sum() * information(part / part.sum()) for part in parts)


# --- Section 3.1 ------------------------------------------------------------------------------------------------------


def test_theorem_1_against_every_strategy():
    """Theorem 1: of the 3^5 strategies for three values none is better than eq. 8, which attains eq. 7."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        joint = rng.dirichlet(np.full(15, 0.5)).reshape(3, 5)
        successes = [joint[list(strategy), range(5)].sum() for strategy in product(range(3), repeat=5)]
        assert max(successes) == pytest.approx(joint.max(axis=0).sum(), abs=1e-15)
        assert best_success(joint) == pytest.approx(max(successes), abs=1e-12)


def test_proposition_1_for_every_decision_set():
    """Proposition 1, eq. 13 and 14: the errors of each of 2^6 sets; eq. 13 as printed is not attained by T(1)."""
    member = ls.bounds.subsets(6, 3)
    chances = np.random.default_rng(1).dirichlet(np.full(6, 0.4), size=len(member))
    inside, outside = (chances[side].mean(axis=0) for side in (member[:, 0], ~member[:, 0]))
    tv = np.abs(inside - outside).sum() / 2
    sets = np.array(list(product([False, True], repeat=6)))
    false_positives, false_negatives = sets @ outside, ~sets @ inside
    errors = false_positives + false_negatives
    best = inside > outside
    assert ls.bounds.exact_tradeoff(chances, member, 0).advantage() == pytest.approx(tv, abs=1e-12)
    assert (errors >= 1 - tv - 1e-12).all()
    assert errors[(sets == best).all(axis=1)] == pytest.approx(1 - tv, abs=1e-12)
    as_printed = inside[best].sum() + outside[~best].sum()  # eps_0(T) + eps_1(T^c)
    assert as_printed == pytest.approx(1 + tv, abs=1e-12)
    least_error = 0.5 - ls.bounds.exact_eta_discrete(chances, member)[0]
    assert least_error == pytest.approx((1 - tv) / 2, abs=1e-12)


# --- Sections 3.2 and 3.3 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0.1, 1.0, 7.0])
def test_theorem_2_is_the_larger_bound_for_a_bounded_loss(most):
    """Section 3.2, remark after Theorem 4: C takes off from Theorem 2 with l_max = R_max.

    A loss of which no more is known than |R| <= l has the least proxies l^2/(2 ln 2) and l/(2 ln 2), for which r_0 = l.
    """
    tails = [ls.bounds.SubGaussian(most**2 / (2 * log(2))), ls.bounds.Exponential(most / (2 * log(2)))]
    for tail, prior, fraction in product(tails, (0.3, 0.5), (0.05, 0.4, 0.9)):
        assert tail.quantile(1.0) == pytest.approx(most)
        size = 2 * most * fraction
        bounded = ls.bounds.generalisation_bound(size, -most, most, prior)
        assert ls.bounds.generalisation_bound_tails(size, tail, prior, "published") <= bounded


def test_a_thin_tail_may_say_more_than_a_wide_range():
    """Section 3.2, the same remark: it is an expectation, and not so where R_max may be far below l_max."""
    by_tail = ls.bounds.generalisation_bound_tails(0.5, ls.bounds.SubGaussian(1.0), method="published")
    assert by_tail > ls.bounds.generalisation_bound(0.5, -100, 100)


def test_losses_of_others_are_triangular():
    """Eq. 23: mean D, from D - w to D + w. A true sample fails with probability 1e-6."""
    drawn = section33.losses(0.1, 20_000, np.random.default_rng(2))
    width = section33.WIDTH * 0.1
    expected = triang(c=0.5, loc=0.1 - width, scale=2 * width)
    assert kstest(drawn[False], expected.cdf).pvalue > 1e-6
    assert (drawn[True] == 0).all()
    assert not (drawn[False] == 0).any()


# --- Section 3.4: Theorem 5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("success", [1 / WRITERS, 0.0625, 0.24, 0.25 + 1 / WRITERS, 0.9, 1.0])
def test_theorem_5_is_attained_for_44_writers(success):
    """Theorem 5, eq. 25, for Section 4.3: a release that names the writer, and any other one else, all alike.

    The information is kl(success || 1/44), so no less can do; 25 points above 1/44 need .463 nats of at most ln 44.
    """
    channel = np.full((WRITERS, WRITERS), (1 - success) / (WRITERS - 1))
    np.fill_diagonal(channel, success)
    nats = information_of_class(channel)
    assert nats == pytest.approx(kl(success, 1 / WRITERS), abs=1e-12)
    error = 1 - success
    by_eq_49 = log(WRITERS) - error * log(WRITERS - 1) + xlogy(error, error) + xlogy(success, success)
    assert nats == pytest.approx(by_eq_49, abs=1e-12)
    assert nats <= log(WRITERS) + 1e-12
    if 0.27 < success < 0.28:
        assert nats == pytest.approx(0.4628, abs=5e-5)


def test_theorem_5_holds_for_44_writers():
    """Theorem 5, eq. 25: random releases about a writer, some of which make use of nearly half of their information."""
    rng = np.random.default_rng(3)
    nearest = 0.0
    for concentration in (0.01, 0.03, 0.1, 1.0, 10.0):
        for n_outputs in (2, 10, 44):
            chances = rng.dirichlet(np.full(n_outputs, concentration), size=WRITERS)
            nats = information_of_class(chances)
            assert nats == pytest.approx(information(chances / WRITERS), abs=1e-9)
            needed = kl(best_success(chances / WRITERS), 1 / WRITERS)
            assert needed <= nats + 1e-12
            nearest = max(nearest, needed / nats)
    assert nearest > 0.4


def test_theorem_5_needs_side_information_that_is_independent():
    """Section 2.2 and eq. 25 and 72: if S tells of T the prior is E max P(t | S), not max P(t).

    An attacker who reads the writer in S is always right without any release.
    """
    known = np.eye(WRITERS) / WRITERS  # P(t, s), and the release is constant
    assert best_success(known) == 1
    assert ls.bounds.mutual_information_discrete(np.ones((1, 1)), np.ones((1, 1), dtype=bool))[0] == 0
    assert kl(1, 1 / WRITERS) > 3.7
    rng = np.random.default_rng(4)
    n_violations = 0
    for _ in range(100):
        member = rng.random((3, 8)) < rng.choice([0.1, 0.5, 0.9], size=(3, 1))  # T in eight equal cases of each s
        member[:, :2] = [False, True]
        chances = rng.dirichlet(np.full(4, 0.5), size=(3, 8))
        nats, success, informed = 0.0, 0.0, 0.0
        for who, law in zip(member, chances, strict=True):
            nats += float(ls.bounds.mutual_information_discrete(law, who[:, None])[0]) / 3
            success += np.maximum(law[who].sum(axis=0), law[~who].sum(axis=0)).sum() / 24
            informed += max(who.mean(), 1 - who.mean()) / 3
        blind = max(member.mean(), 1 - member.mean())
        assert kl(success, informed) <= nats + 1e-12  # eq. 72
        n_violations += kl(success, blind) > nats
    assert n_violations > 10  # eq. 25 with max P(t)


def test_eq_66_is_about_the_largest_prior():
    """Eq. 66 has the least likely value where eq. 72, which is proved, has the likeliest."""
    member = np.arange(10)[:, None] > 0  # T is 1 in nine of ten cases
    nats = ls.bounds.mutual_information_discrete(np.ones((10, 1)), member)[0]
    assert nats == pytest.approx(0, abs=1e-15)
    assert kl(0.9, 0.9) == 0  # eq. 72
    assert kl(0.9, 0.1) > 1.7  # eq. 66


def test_eq_73_below_the_root():
    """Eq. 73: what information allows is below both of the simpler ceilings, in nats and in bits."""
    for prior, nats in product((0.5, 0.7, 0.95), (1e-6, 0.01, 0.2, 0.6)):
        ceiling = ls.bounds.kl_upper(nats, prior)
        assert 2 * (ceiling - prior) ** 2 <= nats + 1e-12
        assert -ceiling * log2(prior) - 1 <= nats / log(2) + 1e-12


def membership_game() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Two records from {0, 0, 1}, a random channel from them to the parameters, and Definition 4.

    Returns P(t, s, theta), P(z, theta), and the chances of (theta, s) with t of each of 108 equally likely cases.
    """
    rng = np.random.default_rng(5)
    draws = (0, 0, 1)
    channel = rng.dirichlet(np.full(4, 0.3), size=(2, 2))
    of_target, of_data = np.zeros((2, 2, 4)), np.zeros((4, 4))
    chances, member = [], []
    for first, second, fresh in product(draws, repeat=3):
        law = channel[first, second]
        of_data[2 * first + second] += law / 27
        for t, own in product((0, 1), (first, second)):
            s = own if t else fresh
            of_target[t, s] += law / 108
            chances.append(np.outer(law, np.eye(2)[s]).ravel())
            member.append([t == 1])
    return of_target, of_data, np.array(chances), np.array(member)


def test_eq_28_for_membership():
    """Eq. 28, and the remark after eq. 34: exact information of all of Definition 4, whose S does not tell of T."""
    of_target, of_data, chances, member = membership_game()
    assert information(of_target.sum(axis=2)) == pytest.approx(0, abs=1e-12)  # Section 2.2: S and T are independent
    t_given_s = float(ls.bounds.mutual_information_discrete(chances, member)[0])  # of T and (theta, S)
    assert t_given_s == pytest.approx(given(of_target.transpose(0, 2, 1)), abs=1e-12)
    s_given_t = given(of_target.transpose(1, 2, 0))
    of_s = information(of_target.sum(axis=0))
    assert t_given_s == pytest.approx(s_given_t - of_s, abs=1e-12)
    assert 0.001 < t_given_s <= s_given_t
    assert t_given_s <= information(of_data) - of_s


def test_eq_28_for_attributes():
    """Eq. 28: for an attribute in the record the inequality holds (eq. 59), the equation lacks I(T; theta)."""
    rng = np.random.default_rng(6)
    channel = rng.dirichlet(np.full(3, 0.3), size=(2, 2))  # of one record (v, t), fair and independent; S = v
    joint = channel / 4  # P(v, t, theta)
    chances = np.array([np.outer(channel[v, t], np.eye(2)[v]).ravel() for v, t in product((0, 1), repeat=2)])
    t_given_s = float(ls.bounds.mutual_information_discrete(chances, np.array([[False], [True]] * 2))[0])
    assert t_given_s == pytest.approx(given(joint.transpose(1, 2, 0)), abs=1e-12)
    of_s, of_t = information(joint.sum(axis=1)), information(joint.sum(axis=0))
    s_given_t = given(joint.transpose(0, 2, 1))
    assert t_given_s == pytest.approx(s_given_t - of_s + of_t, abs=1e-12)
    assert of_t > 0.04
    assert t_given_s <= information(joint.reshape(4, 3)) - of_s + 1e-12


def chance_of_gap(n: int, n_models: int, eps: float) -> tuple[float, float]:
    """P(gap >= eps) and I(Z; theta) of the best of some models that all are right with an independent chance 1/2."""
    errors = np.arange(n + 1)
    at, beyond = binom.pmf(errors, n, 0.5), binom.sf(errors, n, 0.5)
    reached = 1 - (1 - binom.cdf(np.floor(n * (0.5 - eps) + 1e-9), n, 0.5)) ** n_models
    of_ties = 0.0
    for n_best in range(2, n_models + 1):  # ties are broken by an even draw
        of_ties += log(n_best) * comb(n_models, n_best) * (at**n_best * beyond ** (n_models - n_best)).sum()
    return float(reached), log(n_models) - float(of_ties)


@pytest.mark.parametrize("n", [40, 100])
@pytest.mark.parametrize("n_models", [1, 2, 10, 50])
def test_eq_26_holds_for_the_risk_of_the_model_itself(n, n_models):
    """Theorem 5, eq. 26: the gap of the released model, whose expected risk is given its parameters."""
    for eps in (0.1, 0.2, 0.3):
        reached, nats = chance_of_gap(n, n_models, eps)
        assert reached <= (nats + 1) / (n * kl(0.5 - eps, 0.5))


def test_eq_26_fails_for_the_risk_of_definition_1():
    """Theorem 5, eq. 26 with eq. 2: the expected risk there is a mean over the parameters too.

    Labels are 1 with probability .1; a fair coin, tossed without the data, says which label is always predicted: no
    information, risks of .1 and .9, a mean of .5. The empirical risk is .2 below that in half of all cases.
    """
    n, eps, risks = 100, 0.2, (0.1, 0.9)
    data_sets = np.array([[True], [False]])  # whether a record is 1: the coin says nothing of it
    nats = float(ls.bounds.mutual_information_discrete(np.full((2, 2), 0.5), data_sets)[0])
    most_errors = round(n * (sum(risks) / 2 - eps))
    reached = np.mean([binom.cdf(most_errors, n, risk) for risk in risks])
    by_eq_27 = min(dual_of_error(risk, sum(risks) / 2 - eps) for risk in risks)
    by_its_sentence = min(dual_of_error(risk, risk - eps) for risk in risks)
    for rate in (by_eq_27, by_its_sentence):
        assert reached > 0.49 > 0.07 > (nats + 1) / (n * rate)
    of_own_risk = np.mean([binom.cdf(np.floor(n * (risk - eps) + 1e-9), n, risk) for risk in risks])
    assert of_own_risk < 1e-6 < (nats + 1) / (n * by_its_sentence)  # as the proof reads it


def dual_of_error(risk: float, mean: float) -> float:
    """Fenchel-Legendre dual, eq. 54, of a 0-1 loss where the mean loss falls to this; infinite below 0."""
    return kl(mean, risk) if mean >= 0 else np.inf


def dual(values: np.ndarray, chances: np.ndarray, t: float) -> float:
    """Fenchel-Legendre dual of the log-moment-generating function of a discrete law, by a search (eq. 52 and 54)."""
    found: Any = minimize_scalar(lambda lam: logsumexp(lam * values, b=chances) - lam * t)
    return -float(found.fun)


@pytest.mark.parametrize(("risk", "eps"), [(0.5, 0.2), (0.3, 0.25), (0.9, 0.05)])
def test_the_dual_of_the_log_moment_generating_function(risk, eps):
    """Eq. 52 to 58: the dual for a 0-1 loss by a search, and the tail that it bounds, which leakbound inverts."""
    rate = kl(risk - eps, risk)
    assert dual(np.array([risk, risk - 1]), np.array([1 - risk, risk]), eps) == pytest.approx(rate, abs=1e-9)
    for n in (1, 10, 200):
        errors = np.arange(n + 1)
        of_sum = dual(n * risk - errors, binom.pmf(errors, n, risk), n * eps)
        assert of_sum == pytest.approx(n * rate, abs=1e-6)  # eq. 56
        tail = np.exp(-n * rate)
        assert binom.cdf(np.floor(n * (risk - eps) + 1e-9), n, risk) <= tail
        assert ls.intervals.chernoff_kl_upper(risk - eps, n, tail) == pytest.approx(risk, abs=1e-9)


def test_the_dual_is_bounded_whatever_the_data():
    """Section 3.4, last remark: K(eps) >= 2 eps^2 for losses in [0, 1], and eps^2/(2 sigma^2) for Gaussian ones."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        losses, chances = rng.random(4), rng.dirichlet(np.full(4, 0.5))
        risk = float(losses @ chances)
        eps = 0.5 * (risk - losses.min())
        assert dual(risk - losses, chances, eps) >= 2 * eps**2 - 1e-9
    grid = np.arange(-12, 12, 0.01) + 0.005
    for spread, eps in product((0.5, 2.0), (0.1, 1.0)):
        found = dual(spread * grid, norm.pdf(grid) * 0.01, eps)
        assert found == pytest.approx(eps**2 / (2 * spread**2), rel=1e-6)


# --- Appendix D.1 -----------------------------------------------------------------------------------------------------


def test_lemmas_1_and_2_for_every_set():
    """Eq. 47, Lemmas 1 and 2: the joint law of membership and output against the product, for each of 2^6 sets."""
    rng = np.random.default_rng(8)
    largest = 0.0
    for _ in range(20):
        chances = rng.dirichlet(np.full(3, 0.2), size=2)
        member = np.array([[True], [False]])
        divergence = float(ls.bounds.mutual_information_discrete(chances, member)[0])
        joint = chances.ravel() / 2
        apart = np.tile(chances.mean(axis=0), 2) / 2
        channel = rng.dirichlet(np.ones(3), size=6)
        assert rel_entr(joint @ channel, apart @ channel).sum() <= divergence + 1e-12  # eq. 47
        for chosen in map(list, product([False, True], repeat=6)):
            p, q = (round(float(law[chosen].sum()), 12) for law in (joint, apart))
            assert kl(p, q) == pytest.approx(kl(1 - p, 1 - q), abs=1e-9)
            assert kl(p, q) <= divergence + 1e-9
            largest = max(largest, kl(p, q) / divergence)
            if q > 0:
                assert p * log2(1 / q) <= divergence / log(2) + 1 + 1e-9
    assert largest > 0.95


def test_when_a_channel_keeps_the_whole_divergence():
    """Eq. 47: equality if and only if P(X | Y) = Q(X | Y), the second of Q_X; of P_X, as is printed, it is the first.

    The channel of six values to three outputs keeps all if what it merges has one likelihood ratio, and loses some as
    soon as one of the ratios is another.
    """
    rng = np.random.default_rng(20)
    for _ in range(20):
        p, ratio = rng.dirichlet(np.ones(6)), rng.uniform(0.2, 3.0, size=3)
        merged = np.repeat(np.eye(3), 2, axis=0)  # the outputs of the six values: 0, 0, 1, 1, 2, 2
        q = p / np.repeat(ratio, 2)
        q /= q.sum()
        other = q.copy()
        other[:2] *= [1.3, 0.8]
        other /= other.sum()
        assert rel_entr(p @ merged, q @ merged).sum() == pytest.approx(rel_entr(p, q).sum(), abs=1e-12)
        assert given_output(p, merged) == pytest.approx(given_output(q, merged), abs=1e-12)
        assert rel_entr(p @ merged, other @ merged).sum() < rel_entr(p, other).sum() - 1e-4
        assert np.abs(given_output(p, merged) - given_output(other, merged)).max() > 0.01
        of_x = given_output(other, merged) @ (other @ merged)  # Q(X | Y) Q_Y, summed over Y: Q_X, not P_X
        assert of_x == pytest.approx(other, abs=1e-12)
        assert np.abs(of_x - p).max() > 0.01


def given_output(law: np.ndarray, channel: np.ndarray) -> np.ndarray:
    """Law of X given Y, a column for each output."""
    joint = law[:, None] * channel
    return joint / joint.sum(axis=0)


def test_when_an_event_keeps_the_whole_divergence():
    """Lemma 1: equality if and only if both laws agree within the event, and outside of it.

    It is sought among all 2^6 events, as the largest binary divergence.
    """
    rng = np.random.default_rng(21)
    events = np.array(list(product([False, True], repeat=6)))
    for chosen in events[[7, 21, 38, 62]]:
        within, outside = (rng.dirichlet(np.ones(each)) for each in (chosen.sum(), (~chosen).sum()))
        p, q, bent = np.empty(6), np.empty(6), np.empty(6)
        for law, chance in ((p, 0.7), (q, 0.2)):
            law[chosen], law[~chosen] = chance * within, (1 - chance) * outside
        bent[:] = q
        pair = np.flatnonzero(chosen if chosen.sum() > 1 else ~chosen)[:2]
        bent[pair] = q[pair].sum() * (p[pair][::-1] + 0.3) / (p[pair] + 0.3).sum()
        for law, whole in ((q, True), (bent, False)):
            divergence = float(rel_entr(p, law).sum())
            binary = np.array([kl(p[each].sum(), law[each].sum()) for each in events[1:-1]])
            assert (binary <= divergence + 1e-12).all()
            alike = [
                all(
                    np.allclose(p[side] / p[side].sum(), law[side] / law[side].sum(), atol=1e-9)
                    for side in (each, ~each)
                )
                for each in events[1:-1]
            ]
            np.testing.assert_array_equal(binary > divergence - 1e-9, alike)
            assert any(alike) == whole


def test_the_best_attacker_may_be_right_in_less_than_half_of_the_games():
    """Appendix D.3, "P_Suc(phi*) >= 1/2": so for two values; with 44 writers it is 1/44 if nothing is released.

    Section 4.3 prints 25 points more. Eq. 72 does not need it, but eq. 71: no less than the success of the prior guess.
    """
    assert best_success(np.full((WRITERS, 1), 1 / WRITERS)) == pytest.approx(1 / 44, abs=1e-15)
    rng = np.random.default_rng(22)
    for n_values in (2, 3, WRITERS):
        prior = rng.dirichlet(np.ones(n_values))
        success = best_success(prior[:, None] * rng.dirichlet(np.ones(5), size=n_values))
        assert success >= prior.max() - 1e-12
        assert success >= 0.5 or n_values > 2
    assert success < 0.5


def test_lemmas_1_and_2_fail_for_the_divergence_of_eq_46():
    """Eq. 46 is the divergence of Q from P: with it both lemmas are wrong."""
    p, q = 0.5, 2.0**-20
    as_printed = kl(q, p)
    assert as_printed < log(2) < 6 < kl(p, q)  # Lemma 1
    assert p * log2(1 / q) > as_printed / log(2) + 1 + 7  # Lemma 2


# --- Section 4 and the appendices -------------------------------------------------------------------------------------


def test_variances_of_the_residual():
    """Eq. 76 to 78: the means over the records, from the covariance of the responses."""
    X = np.random.default_rng(9).normal(size=(30, 20))
    H = X @ np.linalg.inv(X.T @ X) @ X.T
    own = np.diag((H - np.eye(30)) @ (H - np.eye(30)).T)
    fresh = np.diag(H @ H.T) + 1
    leverage = ls.bounds.leverages(X)
    assert own == pytest.approx(1 - leverage)
    assert fresh == pytest.approx(1 + leverage)
    assert own.mean() == pytest.approx(1 - 20 / 30)  # eq. 77
    assert fresh.mean() == pytest.approx(1 + 20 / 30)  # eq. 76
    assert (own + fresh).mean() / 2 == pytest.approx(1)  # eq. 78


def test_as_many_features_as_records_give_the_responses_away():
    """Appendix E: for d = n the estimate is a system of equations that has the responses as its solution."""
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(6, 6)), rng.normal(size=6)
    assert np.linalg.solve(X, y) @ X.T == pytest.approx(y)
    with pytest.raises(ValueError, match="more records than columns, got 6 records of 6 columns"):
        ls.bounds.linear_regression_bayes(X)
    assert ls.bounds.correlation_tv(1.0) == 1


def test_the_likelihood_attack_may_be_below_the_bound():
    """Section 4.2: a network that is as sure of others as of its members has a gap, and this attack finds nothing."""
    log_p = np.log(np.array([[0.9, 0.1]] * 4 + [[0.1, 0.9]] * 4))
    found = gap.membership_results(log_p, np.arange(8) < 4, 4)
    assert found["success"] == 0.5
    assert ls.bounds.generalisation_bound(found["gap"], -2, 2) == pytest.approx(0.5 + 1.6 / 8)


def test_a_network_that_reveals_its_members_reveals_their_writers_if_they_are_few():
    """Section 5, "other, more severe": the best strategy of Figure 5 against the guess of a forest without the network.

    By intervals that do not meet: membership is found at every n, the writer better with the network at 100 and 200.
    """
    run = gallery.read("delgrosso2021/figure5")
    assert run
    numbers = pd.read_csv(io.StringIO(run["numbers"]))
    of_text = {(row["line"], row["n"]): row for row in numbers.to_dict("records") if row["setting"] == "text"}
    better, worse = [], []
    for n in figure5.FULL:
        assert of_text["success", n]["low"] > 0.5
        ours, theirs = [of_text[name, n] for name in figure5.STRATEGIES], of_text["imputation", n]
        better += [n] * (max(row["low"] for row in ours) > theirs["high"])
        worse += [n] * (max(row["high"] for row in ours) < theirs["low"])
    assert (better, worse) == ([100, 200], [500, 1000, 2000, 4000, 8000])


def test_what_the_attacks_of_table_1_need():
    """Table 1, complexity and knowledge: soft probabilities or the loss of one query; shadow models for [10]."""
    needs = {name: ls.attacks.ATTACKS[name] for name in ("confidence", "entropy", "loss", "shadow")}
    assert needs["confidence"].signals == needs["entropy"].signals == ("log_prob",)
    assert needs["loss"].signals == ("loss",)
    references = {name for name, attack in needs.items() if attack.needs_references}
    assert references == {"shadow"}


def test_settings_of_the_appendix():
    """Sections 4.1 and 4.2, Appendices A.1 and A.2: rate, batch, epochs, stop, threshold and sizes as printed."""
    assert (figure3.D.value, figure3.N_GAMES) == (20, 10_000)
    assert {name: one.n_train for name, one in data.SETS.items()} == {
        "mnist": 60_000,
        "fashion": 60_000,
        "cifar10": 50_000,
    }
    assert images.RECIPE == {"loss": "mse", "lr": 0.005, "batch": 200, "epochs": 150, "stop": 0.001}
    printed_of_writers = {"loss": "mse", "lr": 0.005, "epochs": 2500, "stop": 0.0001}
    assert printed_of_writers.items() <= figure5.RECIPES["text"].items()
    assert (gap.THRESHOLD, gap.MOST, table1.N, table1.RECALL) == (0.8, 2, 8000, 0.99)
    assert (figure5.WRITERS, figure5.ATTACKED, set(figure5.FULL.values())) == (44, 100, {100})
