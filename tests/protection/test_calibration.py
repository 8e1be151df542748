"""From a promise to a noise: against the exact game, against closed forms, and what is refused."""

from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leakbound.bounds import exact_eta
from leakbound.core.seeds import stream
from leakbound.data import from_arrays
from leakbound.noise import GaussianNoise, LaplaceNoise
from leakbound.noise.families import FAMILIES
from leakbound.noise.shifts import worst_eta
from leakbound.protection.promises.drawn.noise_search import search_noise
from leakbound.protection.promises.drawn.target import PrivacyTarget
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.algorithms import Function
from leakbound.releases.statistics.statistic import Fit, named
from leakbound.runtime.observe import DataSets, Execution
from tests.marks import nightly_but
from tests.noise.games import all_subsets

pytestmark = pytest.mark.usefixtures("as_users_run_it")  # hundreds of calibrations; test_api.py executes the shapes
HERE = Execution(n_jobs=1)
N, K = 8, 4
MEMBER = all_subsets(N, K)
EVERY = DataSets(MEMBER, np.zeros(len(MEMBER), dtype=int))
PLAIN = stream(0, "plain").normal(size=N)
STATISTICS = {
    "mean": (PLAIN, lambda x: x.mean(axis=0)),
    "max": (PLAIN, lambda x: x.max(axis=0)),
    "median": (PLAIN, lambda x: np.median(x, axis=0)),
    "outlier": (np.r_[12.0, PLAIN[1:]], lambda x: x.mean(axis=0)),
    "cauchy": (stream(0, "cauchy").standard_cauchy(N), lambda x: x.mean(axis=0)),
}


class Listed(Mechanism):
    """A mechanism that computes the output of each k-subset once; pairs of data sets only look them up."""

    @cached_property
    def listed(self):
        """Outputs by the number whose binary digits are the members."""
        member = all_subsets(self.n, self.k)
        found = np.full((2**self.n, self.d), np.nan)
        found[member @ 2 ** np.arange(self.n)] = super().outputs(DataSets(member, np.zeros(len(member), dtype=int)))
        return found

    def outputs(self, sets):
        return self.listed[sets.rows(slice(0, sets.n_fits)) @ 2 ** np.arange(self.n)]


def mechanism(name="mean", x=None, k=None, d=2, n=60, **parameters):
    x = np.random.default_rng(0).normal(size=(n, d)) if x is None else x
    return Mechanism.of(named(name, **parameters), from_arrays(x), k, 0, HERE)


def function(name):
    data, rule = STATISTICS[name]
    return Listed.of(Fit(name, Function(rule)), from_arrays(data[:, None]), K, 0, HERE)


def eta_of(made, found):
    """Exact eta of the mechanism with its noise, by all subsets; a sum is that of features on the grid."""
    member = all_subsets(made.n, made.k)
    sets = DataSets(member, np.zeros(len(member), dtype=int))
    outputs = made.on_grid(sets, found.grid)
    outputs = found.grid.snap(made.outputs(sets)) if outputs is None else outputs
    return exact_eta(outputs[:, found.noisy_coords], member, found.noise)


class TestExactly:
    def test_two_records_of_distance_one(self):
        """A(D) is x or x + 1: eta = Phi(1/(2 s)) - 1/2, so s = 1/(2 Phi^-1(1/2 + eta))."""
        found = search_noise(mechanism(x=np.array([[0.0], [1.0]])), PrivacyTarget(0.1, coupling="swap"))
        assert 1 / (2 * 0.2533471031357997) < 1.98 < found.noise.scale == 2.0  # two digits, rounded up on its grid
        assert (found.coupling, found.confidence, found.n_fits, found.n_pairs) == ("swap", None, 0, 1)

    @settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.integers(0, 10_000), st.integers(1, 7), st.sampled_from([0.02, 0.05, 0.1]))
    def test_no_attacker_of_a_mean_exceeds_the_certificate(self, without_bands, seed, k, eta):
        x = np.random.default_rng(seed).standard_cauchy(size=(8, 1))
        made = mechanism(x=x, k=k)
        if eta >= min(k, 8 - k) / 8:
            return
        found = search_noise(made, PrivacyTarget(eta, coupling="swap"))
        assert eta_of(made, found).max() <= found.eta + 1e-9 <= eta + 2e-9
        # two digits: at most a tenth more noise than the coupling asks for, so that with a tenth less it keeps nothing
        assert found.shifts is not None
        assert worst_eta(found.shifts, replace(found.noise, scale=found.noise.scale / 1.1001)) > eta

    @pytest.mark.parametrize(
        "noise", ["gaussian", "gaussian_diagonal", "gaussian_isotropic", "laplace", "norm", "ball"]
    )
    def test_every_family_keeps_its_promise(self, noise):
        made = mechanism(x=PLAIN[:, None], k=4)
        found = search_noise(made, PrivacyTarget(0.1, noise=noise, coupling="swap"))
        exact = eta_of(made, found).max() if noise != "ball" else 0.0
        assert exact <= found.eta + 1e-9 <= 0.1 + 2e-9
        assert set(FAMILIES) >= {noise}

    @pytest.mark.slow
    def test_worst_record_and_average_of_the_worked_example(self):
        """N(0, I), n = 1000, d = 3, k = 500, eta = .05: about .036 for the worst record, .018 on average."""
        x = np.random.default_rng(0).normal(size=(1000, 3))
        worst = search_noise(mechanism(x=x), PrivacyTarget(0.05, noise="gaussian_isotropic"))
        average = search_noise(mechanism(x=x), PrivacyTarget(0.05, "average", noise="gaussian_isotropic"))
        assert 0.030 < worst.rms[0] <= 0.037
        assert 0.0170 < average.rms[0] <= 0.0195
        assert worst.noise.scale == float(f"{worst.noise.scale:.2g}")
        assert worst.exposed == int(np.linalg.norm(x - x.mean(axis=0), axis=1).argmax())

    def test_units_do_not_matter(self):
        x = np.random.default_rng(0).normal(size=(60, 3))
        small, large = (
            search_noise(mechanism(x=x * scale), PrivacyTarget(0.1)) for scale in (1.0, np.array([1.0, 1e3, 1e-3]))
        )
        np.testing.assert_allclose(large.rms, small.rms * [1.0, 1e3, 1e-3], rtol=0.16)  # both rounded

    def test_a_constant_column_gets_no_noise(self):
        x = np.c_[np.random.default_rng(0).normal(size=60), np.full(60, 7.5)]
        found = search_noise(mechanism(x=x), PrivacyTarget(0.1))
        assert found.noisy_coords.tolist() == [True, False]
        assert found.rms[1] == 0

    def test_equal_records_need_no_noise(self):
        found = search_noise(mechanism(x=np.full((20, 2), 3.0)), PrivacyTarget(0.1))
        assert (found.noise, found.eta, found.reason) == (None, 0.0, "equal_records")

    @pytest.mark.slow
    def test_counts_of_many_records_need_none(self):
        x = (np.arange(2000) % 2)[:, None].astype(float)
        found = search_noise(mechanism("sum", x=x), PrivacyTarget(0.05))
        assert (found.noise, found.coupling) == (None, "table")
        assert 0 < found.eta < 0.02
        assert search_noise(mechanism("sum", x=x), PrivacyTarget(0.05, coupling="swap")).noise is not None

    def test_columns_of_very_different_size_share_one_grid(self):
        x = np.random.default_rng(0).normal(size=(500, 2)) * [1e6, 1.0] + [1e6, 0.0]
        found = search_noise(mechanism(x=x), PrivacyTarget(0.1))
        assert found.grid.step[1] == 2.0**-12 * 2.0 ** np.floor(np.log2(250 * found.rms[1]))
        assert found.grid.step[0] >= 2**19 * found.grid.step[1]


class TestSampled:
    @pytest.mark.by_day("swap-outlier")
    @pytest.mark.parametrize("name", list(STATISTICS))
    @pytest.mark.parametrize("coupling", nightly_but(["auto", "swap", "complement"], "auto", "swap"))
    def test_the_exact_eta_is_below_the_promise(self, without_bands, name, coupling):
        """One calibration each; how often they fail is simulated below."""
        made = function(name)
        found = search_noise(made, PrivacyTarget(0.1, coupling=coupling, fits=2000))
        assert found.confidence == 0.95
        assert eta_of(made, found).max() <= 0.1
        assert found.eta <= 0.1

    @pytest.mark.slow
    def test_the_coupling_with_the_least_noise_is_taken(self, without_bands):
        made = mechanism("covariance", n=20)
        by = {
            each: search_noise(made, PrivacyTarget(0.1, coupling=each, fits=2000))
            for each in ("auto", "swap", "complement")
        }
        assert by["auto"].coupling == "swap"
        assert by["swap"].rms.mean() < by["complement"].rms.mean()
        assert by["auto"].rms.mean() < 1.2 * by["swap"].rms.mean()  # other pilots, other shape

    def test_the_average_is_promised_with_two_fits_a_pair(self):
        found = search_noise(mechanism("quantiles"), PrivacyTarget(0.1, "average", coupling="average_swap", fits=1000))
        assert (found.coupling, found.n_fits, found.n_pairs) == ("average_swap", 800, 400)

    @pytest.mark.slow
    def test_failures_count_against_the_certificate(self):
        x = np.random.default_rng(0).normal(size=(12, 1))
        rarely = Fit("rarely", Function(lambda rows: rows.mean(axis=0) if rows.sum() > -2.2 else 1 / 0))
        made = Mechanism.of(rarely, from_arrays(x), 6, 0, HERE)
        found = search_noise(made, PrivacyTarget(0.2, coupling="complement", fits=1000))
        assert found.n_failures > 0
        plain = search_noise(mechanism(x=x, k=6), PrivacyTarget(0.2, coupling="complement", fits=1000))
        assert found.noise.scale > plain.noise.scale

    def test_a_number_that_never_moves_gets_no_noise_and_is_certified(self):
        x = np.r_[np.full(100, 40.0), np.random.default_rng(0).normal(40, 1, 10)][:, None]
        made = mechanism("quantiles", x=x, probabilities=(0.5,))
        found = search_noise(made, PrivacyTarget(0.1, coupling="complement", fits=500))
        assert found.noise is None
        assert found.n_fits == 400

    def test_fewer_fits_than_needed_are_refused_with_the_number(self):
        with pytest.raises(
            ValueError, match=r"eta = 0.05 at confidence 0.95 needs at least 73 fits \(coupling (swap|complement)"
        ):
            search_noise(mechanism("covariance"), PrivacyTarget(0.05, fits=72))
        search_noise(mechanism("covariance"), PrivacyTarget(0.05, fits=73))

    def test_a_promise_to_every_record_takes_no_average_coupling(self):
        with pytest.raises(ValueError, match="coupling average_swap does not promise every"):
            search_noise(mechanism("covariance"), PrivacyTarget(0.1, coupling="average_swap"))

    def test_a_statistic_that_always_fails_is_refused(self):
        class Once:
            calls = 0

            def __call__(self, x):
                self.calls += 1
                return 1.0 if self.calls == 1 else 1 / 0

        made = Mechanism.of(Fit("once", Function(Once())), from_arrays(PLAIN[:, None]), K, 0, HERE)
        with pytest.raises(ValueError, match="once failed in every pair of the pilot"):
            search_noise(made, PrivacyTarget(0.1, fits=400))

    @pytest.mark.slow
    def test_the_same_seed_gives_the_same_noise(self):
        one, two, other = (
            search_noise(function("median"), PrivacyTarget(0.1, fits=600, seed=seed)) for seed in (0, 0, 1)
        )
        assert one.noise.scale == two.noise.scale
        assert (one.eta, other.eta) == (two.eta, pytest.approx(0.1, abs=0.02))
        assert one.eta != other.eta


class TestNoiseThatIsGiven:
    def test_one_that_keeps_more_is_taken_as_it_is(self):
        noise = GaussianNoise(1.0)
        found = search_noise(mechanism(), PrivacyTarget(0.1, noise=noise))
        assert found.noise is noise
        assert found.eta < 0.1

    def test_one_that_keeps_less_is_refused_with_what_it_keeps(self):
        with pytest.raises(ValueError, match=r"this noise is proved to keep eta = 0.\d+ only, asked for 0.1"):
            search_noise(mechanism(), PrivacyTarget(0.1, noise=GaussianNoise(0.001)))

    def test_a_family_with_a_public_shape_gets_the_least_scale(self):
        found = search_noise(mechanism(d=1), PrivacyTarget(0.1, noise=LaplaceNoise))
        assert isinstance(found.noise, LaplaceNoise)
        assert 0.085 < found.eta <= 0.1

    def test_laplace_is_for_one_number(self):
        with pytest.raises(ValueError, match="noise laplace is for one number, the statistic has 2; take gaussian"):
            search_noise(mechanism(), PrivacyTarget(0.1, noise="laplace"))


@pytest.mark.parametrize(("eta", "k"), [(0.0, 30), (0.5, 30), (-0.1, 30), (0.2, 12)])
def test_an_eta_outside_of_its_range_is_refused(eta, k):
    with pytest.raises(ValueError, match=rf"eta must be > 0 and < {min(k, 60 - k) / 60:g}, the smaller prior"):
        search_noise(mechanism(k=k), PrivacyTarget(eta))


@pytest.mark.parametrize(("eta", "line"), [(float("nan"), "eta must be finite"), (5.0, r"did you mean 0\.05\?")])
def test_an_eta_that_is_no_fraction_is_refused(eta, line):
    with pytest.raises(ValueError, match=line):
        search_noise(mechanism(k=30), PrivacyTarget(eta))


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.usefixtures("without_bands")
@pytest.mark.parametrize(
    ("n_seeds", "most"), [pytest.param(6, 5, id="30"), pytest.param(80, 32, id="400", marks=pytest.mark.nightly)]
)
def test_certificates_hold_through_the_whole_calibration(n_seeds, most):
    """Pilot, choice of coupling, shape, grid and scale together: at most 5 % of the released noises are too small.

    If exactly 5 % failed, more than 5 of 30 would fail with a probability of .3 %, and more than 32 of 400 with .4 %.
    Failures of 29 % are found by the 30 in 9 of 10 cases, and of 10 % by the 400.
    """
    broken = 0
    for name in STATISTICS:
        made = function(name)
        for seed in range(n_seeds):
            found = search_noise(made, PrivacyTarget(0.1, fits=300, seed=seed))
            exact = exact_eta(found.grid.snap(made.outputs(EVERY)), MEMBER, found.noise).max()
            broken += exact > 0.1 * (1 + 1e-9)
    assert broken <= most
