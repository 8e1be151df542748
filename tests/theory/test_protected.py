"""Certificates against the best attacker, on games that are small enough to enumerate; and what is refused.

1,000 games of 4 to 8 records (10,400 every night), any k, seven statistics, heavy tails, ties, failures, Gaussian and
Laplace noise, in half of the games of the scale that a coupling asks for: nobody guesses better than the certificate
says, and in a tenth of the games the best attacker comes within 10 % of it. A certificate that is wrong in one of 430
games is found by the 1,000 in 9 of 10 cases, in one of 4,500 by the 10,400. The attacker decides by the sign of the
mixture of all densities; where he errs he guesses worse, and he is compared with ``bounds.exact`` in every fiftieth
game.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

import leakbound as ls
from leakbound.bounds.exact import exact_eta, subsets
from leakbound.core.types import NotApplicable
from leakbound.data import from_arrays
from leakbound.noise import (
    GaussianNoise,
    LaplaceNoise,
    MixtureSwap,
    Shifts,
    calibrate,
    central_moment,
    complement,
    disjoint,
    moment,
    swap,
    worst_eta,
)
from leakbound.protection.attack.games import AttackConfig
from leakbound.protection.promises.drawn.noise_search import NoiseSearchResult, search_noise
from leakbound.protection.promises.drawn.target import PrivacyTarget
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.algorithms import Function
from leakbound.releases.statistics.statistic import Fit, named
from leakbound.runtime.observe import DataSets, Execution
from tests.promising import protect
from tests.theory.games import Game

pytestmark = pytest.mark.usefixtures("as_users_run_it")  # thousands of games
ROUNDING = 1e-9
STEP = 0.15  # of the mesh, in scales of the noise
HERE = Execution(n_jobs=1)
FAMILIES = {"gaussian": GaussianNoise, "laplace": LaplaceNoise}


def only_some(data: np.ndarray) -> np.ndarray:
    """A mean that fails on data sets with two low values."""
    failed = (data < -1.5).sum(axis=-1) >= 2
    return np.where(failed, np.nan, data.mean(axis=-1))


STATISTICS: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # of the rows of an array
    "mean": lambda rows: rows.mean(axis=-1),
    "max": lambda rows: rows.max(axis=-1),
    "median": lambda rows: np.median(rows, axis=-1),
    "range": lambda rows: np.ptp(rows, axis=-1),
    "variance": lambda rows: rows.var(axis=-1),
    "count": lambda rows: (rows > 0).sum(axis=-1).astype(float),
    "some": only_some,
}


@cache
def all_of(n: int, k: int) -> np.ndarray:
    return subsets(n, k)


def data_of(rng: np.random.Generator, n: int) -> np.ndarray:
    """Normal or Cauchy, with an outlier, with ties, or all of these."""
    data = rng.standard_cauchy(n) if rng.random() < 0.3 else rng.normal(size=n)
    if rng.random() < 0.4:
        data[rng.integers(n)] *= 50
    if rng.random() < 0.3:
        data[rng.integers(n)] = data[0]
    return data.round(1) if rng.random() < 0.2 else data


def games(n_games: int, seed: int) -> Iterator[tuple[Game, np.random.Generator]]:
    rng = np.random.default_rng([seed, 41])
    sizes = [(n, k) for n in range(4, 9) for k in range(1, n)]
    for run in range(n_games):
        n = int(rng.choice([4, 4, 4, 6, 6, 8]))
        n, k = (n, n // 2) if run % 2 else sizes[rng.integers(len(sizes))]
        member = all_of(n, k)
        data = data_of(rng, n)
        rows = np.broadcast_to(data, member.shape)[member].reshape(len(member), -1)
        yield Game(STATISTICS[str(rng.choice(list(STATISTICS)))](rows).round(9)[:, None], member), rng


def best_attack(game: Game, noise: GaussianNoise | LaplaceNoise | None) -> np.ndarray:
    """Accuracy above the better prior guess of who calls a member where the mixture of densities says so.

    The regions are between points of a mesh, and their masses exact, so that this is an attack, and hence below the
    truth. A failure is an output of its own, which noise does not hide.
    """
    failed = ~np.isfinite(game.outputs[:, 0])
    sign = np.where(game.member, 1.0, -1.0) / len(game.member)
    told = np.abs(sign[failed].sum(axis=0))
    values, weight = game.outputs[~failed, 0], sign[~failed]
    if noise is None:
        _, which = np.unique(values.round(9), return_inverse=True)
        apart = np.zeros((which.max() + 1, weight.shape[1]))
        np.add.at(apart, which, weight)
    else:
        values, which = np.unique(values, return_inverse=True)
        merged = np.zeros((len(values), weight.shape[1]))
        np.add.at(merged, which, weight)
        apart = np.diff(_below(_mesh(values / noise.scale) - values[:, None] / noise.scale, noise), axis=1).T @ merged
    total = told + np.abs(apart).sum(axis=0)
    return (1 + total) / 2 - max(game.prior, 1 - game.prior)


def _mesh(centres: np.ndarray) -> np.ndarray:
    """Fine near the centres, in units of the noise, and without the empty space between them."""
    near = np.unique(np.rint(centres / STEP)[:, None] + np.arange(-round(7 / STEP), round(7 / STEP) + 1))
    return np.r_[-np.inf, near * STEP, np.inf]


def _below(t: np.ndarray, noise: GaussianNoise | LaplaceNoise) -> np.ndarray:
    """Distribution function of the noise of scale 1."""
    if isinstance(noise, GaussianNoise):
        return ndtr(t)
    tail = np.exp(-np.abs(t)) / 2
    return np.where(t < 0, tail, 1 - tail)


def pairs_of(game: Game, name: str) -> Shifts:
    """The shifts that a coupling shows, all pairs of it."""
    if name == "swap":
        return swap(game.outputs, game.member)
    if name == "moment":
        return moment(central_moment(game.outputs), 1, game.prior)
    return (complement if game.prior == 0.5 else disjoint)(game.outputs, game.member)


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("seed", "n_games"), [(0, 300), *(pytest.param(seed, 2600, marks=pytest.mark.nightly) for seed in range(4))]
)
def test_no_attacker_beats_the_certificate(seed: int, n_games: int, as_users_run_it) -> None:
    """At the calibrated scale, or, in every other game, any; where no noise is said to be needed, without any.

    Nothing is estimated. A certificate that fails in .8 % of the games is found by 300 in 9 of 10 cases; in .02 %, by
    the 10,400 of a night.
    """
    released, near, failing, bare = 0, 0, 0, 0
    telling = dict.fromkeys(("swap", "others", "moment"), 0)
    for run, (game, rng) in enumerate(games(n_games, seed)):
        fails = bool(np.isnan(game.outputs).any())
        name = str(rng.choice(["swap", "swap", "others", "moment"][: 3 if fails else 4]))
        family, shifts = FAMILIES[str(rng.choice(list(FAMILIES)))], pairs_of(game, name)
        try:
            if rng.random() < 0.5:
                spread = float(np.nanmax(game.outputs, initial=0.0) - np.nanmin(game.outputs, initial=0.0)) or 1.0
                noise = family(float(np.exp(rng.uniform(-2, 2)) * spread))
                eta = worst_eta(shifts, noise)
            else:
                eta = float(game.room * rng.uniform(0.02, 0.9))
                noise = calibrate(shifts, eta, family)
        except NotApplicable:  # none is needed
            noise = None
        except ValueError:
            assert fails  # so often that no noise is enough
            continue
        exact = best_attack(game, noise)
        assert (exact <= eta + ROUNDING).all(), (name, game, noise)
        if run % 50 == 0 and not fails and noise is not None:
            truth = exact_eta(game.outputs, game.member, noise)
            assert (exact <= truth + ROUNDING).all()
            assert exact == pytest.approx(truth, abs=2e-3)
        released, failing, bare = released + 1, failing + fails, bare + (noise is None)
        says_something = noise is not None and 1e-6 < eta < 0.95 * game.room
        close = says_something and bool(exact.max() >= 0.9 * eta)
        near, telling[name] = near + close, telling[name] + close
    assert released >= 0.96 * n_games
    assert near >= released / 10, near
    assert min(telling.values()) >= released / 100, telling
    assert failing >= n_games / 260
    assert bare >= n_games / 52


@pytest.fixture
def without_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The certified curve takes half of the time of a calibration, and other tests look at it."""
    for coupling in (Shifts, MixtureSwap):
        monkeypatch.setattr(coupling, "tradeoff", lambda self, noise, confidence=None: None)


def found_of(statistic: str, data: np.ndarray, k: int, ask: PrivacyTarget) -> tuple[NoiseSearchResult, np.ndarray]:
    """What is calibrated, and the exact eta of what is released: the statistic on its grid, and its noise."""
    rule = named(statistic) if statistic in ("mean", "sum") else Fit(statistic, Function(STATISTICS[statistic]))
    made = Mechanism.of(rule, from_arrays(data[:, None] if statistic in ("mean", "sum") else data), k, 0, HERE)
    found, member = search_noise(made, ask), all_of(made.n, k)
    outputs = AttackConfig(0, grid=found.grid).outputs(made, DataSets(member, np.zeros(len(member), dtype=int)))
    return found, exact_eta(outputs, member, found.noise)


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize("n_games", [60, pytest.param(160, marks=pytest.mark.nightly)])
def test_means_and_sums_from_the_promise_to_the_release(n_games: int, as_users_run_it, without_bands) -> None:
    """The whole way of a game: whether noise is needed, the grid, the scale; to every record, or on average.

    A promise that is broken in one of 27 games is found by 60 of them in 9 of 10 cases, in one of 70 by 160.
    """
    rng, near = np.random.default_rng(5), 0
    for run in range(n_games):
        n = int(rng.integers(4, 9))
        k = n // 2 if run % 2 else int(rng.integers(1, n))
        eta = float(min(k, n - k) / n * rng.uniform(0.05, 0.8))
        noise = str(rng.choice(["gaussian", "laplace", "norm"]))
        average = bool(rng.random() < 0.3)
        ask = PrivacyTarget(eta, "average" if average else "every", noise)
        found, exact = found_of(str(rng.choice(["mean", "sum"])), data_of(rng, n), k, ask)
        reached = exact.mean() if average else exact.max()
        assert reached <= found.eta + ROUNDING <= eta + 2 * ROUNDING, (found, exact)
        near += reached >= 0.9 * eta
    assert near >= n_games / 10, near


@pytest.mark.slow
@pytest.mark.statistics
def test_the_mixture_swap_from_the_promise_to_the_release(as_users_run_it, without_bands) -> None:
    """At 95 %: 20 games, of which 5 would break the promise with a probability of .3 % if each did with 5 %."""
    rng, broken = np.random.default_rng(6), 0
    for _ in range(20):
        ask = PrivacyTarget(0.1, coupling="mixture_swap", seed=int(rng.integers(1000)))
        broken += found_of("mean", data_of(rng, 6), 3, ask)[1].max() > 0.1 + ROUNDING
    assert broken <= 4


@pytest.mark.by_day(
    "6-others-laplace-0.02",
    "6-others-laplace-0.3",
    "4-swap-laplace-0.3",
    "4-others-laplace-0.02",
    "8-swap-laplace-0.3",
    "8-others-laplace-0.02",
    "8-others-laplace-0.3",
)
@pytest.mark.parametrize("eta", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize("name", ["swap", "others", "moment"])
@pytest.mark.parametrize("n", [4, 6, 8])
def test_the_extremal_example_attains_what_it_was_calibrated_to(n: int, name: str, family: str, eta: float) -> None:
    """A(D) = a if x is in D, else a': at the least scale of each coupling the best attacker reaches eta, to 1e-9.

    Between the two laws, a' - a apart, the total variation is 2 eta: that gives the scale in closed form.
    """
    member = all_of(n, n // 2)
    game = Game(np.where(member[:, :1], 3.0, 1.0), member)
    noise = calibrate(pairs_of(game, name), eta, FAMILIES[family])
    closed = 1 / norm.ppf((1 + 2 * eta) / 2) if family == "gaussian" else -1 / np.log1p(-2 * eta)
    assert noise.scale == pytest.approx(closed, rel=2e-9)
    assert exact_eta(game.outputs, member, noise)[0] == pytest.approx(eta, abs=1e-9)


@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 2), (8, 4), (8, 1)])
def test_the_extremal_example_from_the_promise_to_the_release(n: int, k: int, family: str, as_users_run_it) -> None:
    """The sum of one 1 and of zeros; where k is not n/2 the certificate says more than is true, and never less."""
    eta = 0.4 * min(k, n - k) / n
    found, exact = found_of("sum", np.eye(n)[0], k, PrivacyTarget(eta, noise=family, coupling="swap"))
    assert exact[0] <= found.eta + ROUNDING <= eta + 2 * ROUNDING
    if 2 * k == n:
        assert exact[0] > 0.9 * eta  # the scale is rounded up to two digits


class TestWrongUse:
    """Each with its line, before anything is drawn."""

    ROWS = np.random.default_rng(0).normal(size=(40, 2))

    def refused(self, line: str, statistic: str | Callable[..., object] = "mean", rows=ROWS, **words: object) -> str:
        asked = {"promise": ls.Drawn(games=0), "eta": 0.1, "n_jobs": 1} | words
        with pytest.raises(ValueError, match=line) as reason:
            protect(statistic, rows, **asked)
        assert "\n" not in str(reason.value)
        return str(reason.value)

    def test_a_draw_of_other_data(self, tmp_path: Path) -> None:
        ledger = tmp_path / "ledger.json"
        ls.protect("mean", self.ROWS, promise=ls.Drawn(games=0), eta=0.1, ledger=str(ledger))
        before = ledger.read_bytes()
        self.refused(
            r"ledger.json belongs to other data: digest \w{12}, not \w{12}$", rows=self.ROWS[::-1], ledger=str(ledger)
        )
        drawn = self.ROWS[:20]  # who would calibrate on D has other data as well
        self.refused("belongs to other data", rows=drawn, ledger=str(ledger))
        assert ledger.read_bytes() == before

    def test_a_query_that_is_used_again(self, tmp_path: Path) -> None:
        ledger = str(tmp_path / "ledger.json")
        first = ls.protect("mean", self.ROWS, promise=ls.Drawn(games=0), eta=0.1, n_jobs=1, ledger=ledger)
        again = ls.protect("mean", self.ROWS, promise=ls.Drawn(games=0), eta=0.1, n_jobs=1, ledger=ledger)
        assert again.to_json() == first.to_json()  # no second release
        self.refused("^the query was not declared in .* before the first release", "sum", ledger=ledger)

    def test_fewer_fits_than_needed(self) -> None:
        """The number that is printed is enough, and one less is not."""
        line = self.refused("^eta = 0.1 at confidence 0.95 needs at least", "covariance", fits=10)
        needed = int(re.findall(r"needs at least ([\d,]+) fits", line)[0].replace(",", ""))
        self.refused("needs at least", "covariance", fits=needed - 1)
        assert (
            ls.calibrate("covariance", self.ROWS, promise=ls.Drawn(games=0, fits=needed), eta=0.1, n_jobs=1).noise
            is not None
        )

    def test_a_shape_that_changes(self) -> None:
        def changes(x: np.ndarray) -> np.ndarray:
            return x.mean(axis=0)[: 1 + (x[:, 0].sum() > 0)]

        self.refused(
            r"\d% of the pairs failed: eta must be > 0\.\d+, got 0\.1|failed in every pair of the pilot",
            changes,
            fits=400,
        )

    def test_values_that_are_not_finite(self) -> None:
        rows = self.ROWS.copy()
        rows[3, 1] = np.nan
        self.refused("NaN|finite", rows=rows)
        self.refused(
            "cannot be computed on any of 8 data sets: its output is no array of finite numbers", lambda x: np.inf
        )

    @pytest.mark.parametrize("k", [0, 40, 41, -1])
    def test_a_size_of_the_draw(self, k: int) -> None:
        self.refused(rf"k.* got {k}$", k=k)

    @pytest.mark.parametrize(("eta", "k"), [(0.0, None), (-0.1, None), (0.5, None), (0.25, 10), (0.25, 30), (0.9, 10)])
    def test_an_eta(self, eta: float, k: int | None) -> None:
        self.refused(rf"eta.*got {eta:g}(\.0)?$", eta=eta, k=k)

    @pytest.mark.slow
    def test_a_seed_is_told(self) -> None:
        words = {"promise": ls.Drawn(games=0), "eta": 0.1}
        secure, seeded, again = (protect("mean", self.ROWS, insecure_seed=seed, **words) for seed in (None, 3, 3))
        assert (seeded.value == again.value).all()
        assert (secure.value != seeded.value).any()  # one of them may be equal: they lie on a grid
        assert [each.certificate.about.insecure_seed for each in (secure, seeded)] == [False, True]
        told = [
            "not for publication" in " ".join(each.certificate.table().lower().split()) for each in (secure, seeded)
        ]
        assert told == [False, True]
