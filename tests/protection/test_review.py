"""Ways in which a certificate could be false, each tried once: what is measured is what is released."""

import numpy as np
import pytest

from leakbound.core.seeds import stream, subsets
from leakbound.data import from_arrays
from leakbound.noise import Lp, MixtureSwap
from leakbound.plans.promises import Drawn
from leakbound.protection.ledger.drawn import DrawnLedger as Ledger
from leakbound.protection.promises.drawn.half import _released
from leakbound.protection.promises.drawn.in_ledger import randomness
from leakbound.protection.promises.drawn.noise_search import search_noise
from leakbound.protection.promises.drawn.pairs import Fitted, measured
from leakbound.protection.promises.drawn.target import PrivacyTarget
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.algorithms import Function
from leakbound.releases.statistics.statistic import Fit, named
from leakbound.runtime.observe import DataSets, Execution
from tests.marks import nightly
from tests.noise.games import all_subsets
from tests.promising import protect

QUICK = {"promise": Drawn(games=0), "n_jobs": 1}
ROWS = stream(0, "rows").normal(size=(60, 2))


def mechanism(name, x, k=None):
    return Mechanism.of(named(name), from_arrays(x), k, 0, Execution(n_jobs=1))


@pytest.mark.usefixtures("without_bands")
class TestWhatIsMeasuredIsReleased:
    @pytest.mark.slow
    def test_a_total_is_reviewed_as_it_is_rounded(self):
        """The grid of the released total holds every value, so that what is reviewed is what is released."""
        x = np.repeat([0.0, 4160.0], 120) + stream(0, "total").integers(-1, 2, size=240)
        x[0] = 2.0
        made = mechanism("sum", x[:, None])
        found = search_noise(made, PrivacyTarget(0.1))
        member = subsets(240, 120, 200, stream(0, "draws"))
        bare = made.on_grid(DataSets(member, np.zeros(200, dtype=int)), found.grid)
        assert found.grid.steps.item() == 0.5
        np.testing.assert_array_equal(bare[:, 0], member @ x)
        assert found.noise is not None

    @pytest.mark.parametrize("name", ["mean", "sum"])
    def test_pairs_of_a_sum_are_measured_on_rounded_features(self, name):
        """Released without noise the outputs of both sets of each pair lie apart by exactly what was measured."""
        made = mechanism(name, ROWS)
        found = search_noise(made, PrivacyTarget(0.1, coupling="complement", fits=200))
        pairs = measured(made, "complement", 0, 20)
        shifts, failed = pairs.shifts(found.grid, Lp(2.0), found.noisy_coords)
        still = np.zeros(2)
        bare = [made.release(row, still, found.grid, stream(0, "fit")) for row in pairs.pairs.member]
        apart = np.linalg.norm(np.array(bare[::2]) - bare[1::2], axis=1)
        np.testing.assert_allclose(shifts.values[0], apart, rtol=1e-13)
        assert failed == 0

    def test_a_statistic_off_the_grid_is_a_failure_and_no_error(self):
        made = Mechanism.of(Fit("far", Function(lambda x: 1e30 * x.mean(axis=0))), from_arrays(ROWS), 30, 0)
        found = search_noise(mechanism("mean", ROWS), PrivacyTarget(0.1))
        inside = subsets(60, 30, 1, stream(0, "draw"))[0]
        assert np.isnan(made.release(inside, np.zeros(2), found.grid, stream(0, "fit"))).all()

    def test_sums_that_no_grid_holds_are_refused_before_anything_is_drawn(self, tmp_path):
        far = 1e9 + 1e-3 * ROWS[:, :1]
        with pytest.raises(ValueError, match=r"sums of 30 values up to 1e\+09 are beyond 2\^52 steps"):
            protect("mean", far, eta=0.1, ledger=str(tmp_path / "l.json"), **QUICK)
        assert not (tmp_path / "l.json").exists()

    def test_equal_values_are_found_whatever_their_mean_rounds_to(self):
        """The mean of 60 times 0.1 is not 0.1 in floating point, so that the standard deviation is not 0."""
        x = np.c_[ROWS[:, 0], np.full(60, 0.1)]
        assert x[:, 1].std() > 0
        found = search_noise(mechanism("mean", x), PrivacyTarget(0.1))
        assert found.noisy_coords.tolist() == [True, False]
        with pytest.raises(ValueError, match=r"would be published exactly: mean of x1; "):
            protect("mean", x, eta=0.1, **QUICK)

    def test_nor_does_the_order_of_a_sum_make_them_differ(self):
        x = np.c_[ROWS[:, 0], np.full(60, 0.1)]
        found = search_noise(mechanism("mean", x), PrivacyTarget(0.1, coupling="complement", fits=200))
        assert found.noisy_coords.tolist() == [True, False]

    def test_tiny_values_that_differ_get_noise(self):
        """Squares of 1e-170 vanish, and the standard deviation with them."""
        x = np.c_[ROWS[:, 0], (np.arange(60) % 2) * 1e-170]
        assert x[:, 1].std() == 0
        assert search_noise(mechanism("mean", x), PrivacyTarget(0.1, noise="gaussian_isotropic")).noisy_coords.all()


class TestChosenOnTheSameDraws:
    @pytest.mark.slow
    def test_a_scale_that_draws_chose_is_proved_for_what_was_asked_only(self):
        found = search_noise(mechanism("mean", ROWS[:12]), PrivacyTarget(0.1, coupling="mixture_swap"))
        assert found.eta == 0.1

    @pytest.mark.slow
    def test_the_curve_of_a_mixture_has_draws_of_its_own(self, monkeypatch):
        seeds = []
        curve = MixtureSwap.tradeoff
        monkeypatch.setattr(MixtureSwap, "tradeoff", lambda self, *ask: seeds.append(self.seed) or curve(self, *ask))
        search_noise(mechanism("mean", ROWS[:12]), PrivacyTarget(0.1, coupling="mixture_swap", seed=3))
        assert len(seeds) == 1
        assert seeds[0] != 3


@pytest.mark.usefixtures("without_bands")
class TestLedger:
    @pytest.mark.parametrize("seeds", [(7, None), (None, 7)])
    def test_a_draw_from_a_seed_is_for_releases_from_a_seed(self, tmp_path, seeds):
        words = {"eta": 0.1, "ledger": str(tmp_path / "l.json"), **QUICK}
        protect("mean", ROWS, insecure_seed=seeds[0], **words)
        begun = "with" if seeds[0] is not None else "without"
        with pytest.raises(ValueError, match=f"was begun {begun} an insecure seed"):
            protect("sum", ROWS, insecure_seed=seeds[1], **words)

    @pytest.mark.parametrize(("statistic", "more"), [("mean", {"noise": "gaussian_diagonal"}), ("ols", {"fits": 90})])
    def test_another_noise_is_another_query(self, tmp_path, statistic, more):
        words = {"eta": 0.1, "ledger": str(tmp_path / "l.json"), "fits": 120, **QUICK}
        protect(statistic, ROWS, **words)
        with pytest.raises(ValueError, match="the query was not declared"):
            protect(statistic, ROWS, **words | more)

    def test_the_file_holds_digests_of_the_queries_of_both(self, tmp_path):
        protect("mean", ROWS, eta=0.1, ledger=str(tmp_path / "l.json"), **QUICK)
        ledger = Ledger.open(tmp_path / "l.json", from_arrays(ROWS).digest)
        assert [each.statistic["noise"] for each in ledger.queries] == ["gaussian"]

    def test_releases_of_a_draw_do_not_share_the_randomness_of_their_statistics(self):
        """The same random statistic on the same pairs, as its first release and as its second."""
        fit = Fit("coin", Function(lambda x, rng: np.array([rng.normal()])), (1,))
        made = Mechanism.of(fit, from_arrays(ROWS), 30, 0, Execution(n_jobs=1))
        first, second = (
            Fitted(made, measured(made, "complement", 0, 10).pairs, release).outputs() for release in (0, 1)
        )
        assert (first != second).all()


@pytest.mark.by_day("mean-2-ask1")
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("name", "k", "ask"),
    [
        ("mean", 4, PrivacyTarget(0.1)),
        ("mean", 2, PrivacyTarget(0.08, noise="laplace")),
        ("sum", 5, PrivacyTarget(0.1)),
        nightly("mean", 3, PrivacyTarget(0.1, coupling="complement", fits=400)),
        ("mean", 4, PrivacyTarget(0.1, coupling="mixture_swap")),
    ],
)
def test_nobody_guesses_better_than_the_certificate_says(name, k, ask):
    """The whole release 4,000 times against Bayes over all data sets: beyond 4 standard errors in 3 of 100,000."""
    x = stream(0, "heavy").standard_cauchy(size=(8, 1))
    made, n_runs = mechanism(name, x, k), 4000
    found = search_noise(made, ask)
    member = all_subsets(8, k)
    bare = made.on_grid(DataSets(member, np.zeros(len(member), dtype=int)), found.grid)
    draw, noise = randomness(5, "draw"), randomness(5, "noise")
    inside = subsets(8, k, n_runs, draw)
    value = np.array([_released(made, found, row, noise) for row in inside])
    level = found.noise.log_density(value[:, None] - bare)
    posterior = np.exp(level - level.max(axis=1, keepdims=True))
    chance = posterior @ member / posterior.sum(axis=1, keepdims=True)
    right = ((chance > 0.5) == inside).mean(axis=0)
    assert right.max() <= made.prior_accuracy + found.eta + 4 * 0.5 / np.sqrt(n_runs)
    steps = value * made.divisor / found.grid.steps
    np.testing.assert_allclose(steps, np.rint(steps), rtol=0, atol=1e-6)


@pytest.mark.parametrize("k", [3, 4])
def test_neighbouring_data_sets_have_the_same_support(k):
    """A coarse noise tried out whole: the released numbers of all data sets lie on one lattice, to the last bit."""
    made = mechanism("mean", stream(0, "heavy").standard_cauchy(size=(8, 1)), k)
    found = search_noise(made, PrivacyTarget(0.1))
    step, member = found.grid.steps.item(), all_subsets(8, k)
    bare = found.grid.round(made.features)
    whole = np.array([bare[row].sum() for row in member])
    low, high = whole.min(), whole.max()
    for row, total in zip(member[:6], whole, strict=False):
        reach = np.r_[low - total, 0, high - total] * step / k  # the noise that leads to the same three numbers
        made_of = [made.release(row, np.array([z]), found.grid, stream(0, "fit"))[0] for z in reach]
        assert made_of == [low * step / k, total * step / k, high * step / k]
