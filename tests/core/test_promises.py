"""Claims: the ceiling of the game that was played is never violated by a mechanism that keeps its promise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from leakbound.core import games
from leakbound.core.tradeoff import EpsilonDelta, Gaussian, TradeOff
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.types import Game, NotApplicable

N_RECORDS, N_OUTPUTS = 4, 6
SUBSETS = list(itertools.product((0, 1), repeat=N_RECORDS))  # of the records, as membership rows
FIXED, COINS = games.half_split(10, 2), games.half_split(10, 2, sampling="poisson")


def mechanism(rng: np.random.Generator, sharpness: float) -> np.ndarray:
    """P(output | data set) for every subset of the records, as rows of probabilities."""
    logits = rng.normal(size=(len(SUBSETS), N_OUTPUTS)) * sharpness
    p = np.exp(logits)
    return p / p.sum(axis=1, keepdims=True)


def neighbours(adjacency: str) -> list[tuple[int, int]]:
    """Ordered pairs of subsets that differ in one record, or by one swap."""
    apart = 1 if adjacency == "add_remove" else 2
    return [
        (i, j)
        for (i, a), (j, b) in itertools.product(enumerate(SUBSETS), repeat=2)
        if sum(x != y for x, y in zip(a, b, strict=True)) == apart and (apart == 1 or sum(a) == sum(b))
    ]


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def promised(p: np.ndarray, adjacency: str, epsilon: float | None = None) -> tuple[float, float]:
    """The (epsilon, delta) that the mechanism has: pure, or delta at a given epsilon."""
    pairs = neighbours(adjacency)
    if epsilon is None:
        return max(float(np.log(p[i] / p[j]).max()) for i, j in pairs), 0.0
    return epsilon, max(hockey_stick(p[i], p[j], epsilon) for i, j in pairs)


def in_and_out(p: np.ndarray, sizes: tuple[int, ...], record: int) -> tuple[np.ndarray, np.ndarray]:
    """The laws of the output given that a record is in and that it is out."""
    sides = []
    for inside in (1, 0):
        rows = [i for i, row in enumerate(SUBSETS) if sum(row) in sizes and row[record] == inside]
        sides.append(p[rows].mean(axis=0))
    return sides[0], sides[1]


def best_attackers(p_in: np.ndarray, p_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners (fpr, fnr) of the Neyman-Pearson attacker: outputs by falling likelihood ratio."""
    order = np.argsort(-p_in / p_out)
    fpr = np.r_[0.0, np.cumsum(p_out[order])].clip(0, 1)
    return fpr, (1 - np.r_[0.0, np.cumsum(p_in[order])]).clip(0, 1)


def slack(ceiling: TradeOff, p: np.ndarray, sizes: tuple[int, ...]) -> float:
    """How far above the ceiling the nearest corner of the best attacker on any record is (negative: violated)."""
    gaps = []
    for record in range(N_RECORDS):
        fpr, fnr = best_attackers(*in_and_out(p, sizes, record))
        gaps.append((fnr - ceiling.fnr(fpr)).min())
    return min(gaps)


@pytest.mark.parametrize(
    ("adjacency", "game", "sizes"),
    [
        ("add_remove", FIXED, (2,)),
        ("replace_one", FIXED, (2,)),
        ("add_remove", COINS, (0, 1, 2, 3, 4)),
    ],
)
@pytest.mark.parametrize("epsilon", [None, 0.1, 0.5])
def test_the_ceiling_is_never_violated(adjacency, game, sizes, epsilon):
    rng = np.random.default_rng(0)
    for sharpness in np.linspace(0.05, 2.0, 60):
        p = mechanism(rng, sharpness)
        value, delta = promised(p, adjacency, epsilon)
        claim = Claim("epsilon", value, min(delta, 1.0), adjacency)
        assert slack(claim.ceiling(game), p, sizes) >= -1e-12


@pytest.mark.parametrize("size", [1, 2, 3])
def test_eta_holds_and_is_reached(size):
    """The claim with the exact eta of a mechanism is not violated, and its ceiling touches the best attacker."""
    rng = np.random.default_rng(1)
    prior = size / N_RECORDS
    game = Game("half_split", np.ones((1, 4), dtype=bool), np.ones(4, dtype=bool), 1, prior)
    for sharpness in np.linspace(0.5, 2.5, 40):
        p = mechanism(rng, sharpness)
        accuracy = 0.0
        for record in range(N_RECORDS):
            p_in, p_out = in_and_out(p, (size,), record)
            accuracy = max(accuracy, np.maximum(prior * p_in, (1 - prior) * p_out).sum())
        eta = accuracy - max(prior, 1 - prior)
        ceiling = Claim("eta", eta).ceiling(game)
        assert ceiling.accuracy(prior) == pytest.approx(accuracy, abs=1e-12)
        assert slack(ceiling, p, (size,)) >= -1e-12
        if eta > 1e-9:
            assert slack(ceiling, p, (size,)) <= 1e-12


@pytest.mark.parametrize(("prior", "eta"), [(0.3, 0.1), (0.3, 0.0), (0.7, 0.2), (0.6, 0.4), (0.6, 0.5)])
def test_eta_at_another_prior_is_a_line(prior, eta):
    game = Game("half_split", np.ones((1, 4), dtype=bool), np.ones(4, dtype=bool), 1, prior)
    ceiling = Claim("eta", eta).ceiling(game)
    fpr = np.linspace(0, 1, 101)
    room = max(0.0, min(prior, 1 - prior) - eta)
    np.testing.assert_allclose(ceiling.fnr(fpr), np.maximum(0, (room - (1 - prior) * fpr) / prior), atol=1e-12)
    assert ceiling.accuracy(prior) == pytest.approx(1 - room, abs=1e-12)


def test_a_claim_of_eta_at_even_odds_is_total_variation():
    assert Claim("eta", 0.05).ceiling(FIXED) == EpsilonDelta(0.0, 0.1)
    assert Claim("eta", 0.05).ceiling(COINS) == EpsilonDelta(0.0, 0.1)
    assert Claim("eta", 0.5).ceiling(FIXED).advantage() == 1.0


def test_add_remove_claims_are_doubled_where_the_size_is_fixed():
    played = Claim("epsilon", 0.7, 1e-3, "add_remove").in_game(FIXED)
    assert played.value == 1.4
    assert played.delta == pytest.approx((1 + math.exp(0.7)) * 1e-3, rel=1e-12)
    assert played.adjacency == "replace_one"
    assert Claim("mu", 0.7, adjacency="add_remove").ceiling(FIXED) == Gaussian(1.4)


def test_claims_that_fit_the_game_stay_as_they_are():
    assert Claim("epsilon", 0.7, 1e-3, "add_remove").ceiling(COINS) == EpsilonDelta(0.7, 1e-3)
    assert Claim("mu", 0.7, adjacency="add_remove").ceiling(COINS) == Gaussian(0.7)
    assert Claim("epsilon", 0.7, 1e-3, "replace_one").ceiling(FIXED) == EpsilonDelta(0.7, 1e-3)
    assert Claim("mu", 0.7, adjacency="replace_one").ceiling(FIXED) == Gaussian(0.7)


def test_randomised_response_reaches_the_replace_one_ceiling():
    """Two records, one of them in; the release names the one that is in with odds e^epsilon."""
    epsilon = 1.3
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    fpr, fnr = best_attackers(np.array([truth, 1 - truth]), np.array([1 - truth, truth]))
    ceiling = Claim("epsilon", epsilon, adjacency="replace_one").ceiling(FIXED)
    np.testing.assert_allclose(ceiling.fnr(fpr), fnr, atol=1e-12)


def test_a_gaussian_sum_reaches_the_doubled_ceiling():
    """Records +mu and -mu, one of them in, noise N(0, 1): each is one step of mu away from the empty set."""
    mu, cut = 0.6, np.linspace(-3, 3, 41)
    erf = np.vectorize(math.erf)
    false_alarm, found = (0.5 - 0.5 * erf((cut - shift) / math.sqrt(2)) for shift in (-mu, mu))
    ceiling = Claim("mu", mu, adjacency="add_remove").ceiling(FIXED)
    np.testing.assert_allclose(ceiling.tpr_at(false_alarm), found, atol=1e-12)


def test_a_huge_claim_allows_everything():
    claim = Claim("epsilon", 1e5, 1e-5, "add_remove")
    assert claim.in_game(FIXED).delta == 1.0
    assert claim.ceiling(FIXED).advantage() == 1.0


@pytest.mark.parametrize("quantity", ["epsilon", "mu"])
def test_a_replace_one_claim_cannot_be_tested_with_coins(quantity):
    claim = Claim(quantity, 1.0, adjacency="replace_one")
    for look in (claim.in_game, claim.ceiling):
        with pytest.raises(NotApplicable, match='play with sampling = "fixed"'):
            look(COINS)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (Claim("epsilon", 3.0, 1e-5, "add_remove"), "epsilon = 3, delta = 1e-05, add/remove"),
        (Claim("mu", 0.5, adjacency="replace_one"), "mu = 0.5, replace one"),
        (Claim("eta", 0.05), "eta = 0.05"),
    ],
)
def test_a_claim_in_words(claim, text):
    assert claim.text == text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Claim("epsilon", -1.0, adjacency="add_remove"), "epsilon must be >= 0, got -1"),
        (lambda: Claim("epsilon", math.inf, adjacency="add_remove"), "epsilon must be finite, got inf"),
        (
            lambda: Claim("epsilon", 1.0, 2.0, "add_remove"),
            "delta is a fraction: 2 is out of range; did you mean 0.02? It must be >= 0 and <= 1",
        ),
        (
            lambda: Claim("epsilon", 1.0),
            "epsilon and mu need an adjacency (add_remove or replace_one); eta takes none",
        ),
        (
            lambda: Claim("eta", 0.1, adjacency="add_remove"),
            "epsilon and mu need an adjacency (add_remove or replace_one); eta takes none",
        ),
    ],
)
def test_the_line_that_a_bad_claim_gets(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == message
