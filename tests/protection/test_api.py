"""Releases with their certificates: what is written, what is refused, what is never written."""

import json
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator

import leakbound as ls
from leakbound.core.seeds import stream, subsets
from leakbound.data import from_arrays, read
from leakbound.noise import GaussianNoise, eta_bound
from leakbound.protection.ledger.drawn import DrawnLedger as Ledger
from leakbound.protection.promises.drawn import half
from leakbound.protection.promises.drawn.half import _released
from leakbound.protection.promises.drawn.noise_search import search_noise
from leakbound.protection.promises.drawn.target import PrivacyTarget
from leakbound.protection.setting import results
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.statistic import named
from leakbound.reports import Report
from leakbound.reports.numbers import rounded_to_noise
from leakbound.runtime.observe import Execution
from tests.marks import nightly
from tests.promising import calibrate, calibrate_file, declare_file, protect, protect_file

ROWS = np.random.default_rng(0).normal(size=(120, 2))
VALID = Draft202012Validator(
    json.loads(resources.files("leakbound.reports").joinpath("schema.json").read_text(encoding="utf-8"))
)
QUICK = {"promise": ls.Drawn(games=0), "n_jobs": 1}


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "hours": rng.integers(10, 60, 120),
            "wage": rng.normal(20, 4, 120).round(2),
            "town": ["Bonn", "Köln, Nord"] * 60,
            "member": rng.integers(0, 2, 120),
        }
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    return str(tmp_path / "people.csv")


def found(report: Report, quantity: str, release: str = ""):
    return next(each for each in report.findings if (each.quantity, each.release) == (quantity, release))


class TestProtect:
    def test_value_noise_and_certificate_belong_together(self):
        made = protect("mean", ROWS, eta=0.1, **QUICK)
        about = made.certificate.about
        assert made.value.shape == (2,)
        assert [row.value for row in about.values] == made.value.tolist()
        assert about.certificate.noise.scale == made.noise.scale
        assert about.certificate.exact is True
        assert (found(made.certificate, "accuracy").value, found(made.certificate, "eta").value) == (0.6, 0.1)
        assert 0.09 < found(made.owner, "eta").value <= 0.1
        VALID.validate(json.loads(made.to_json()))
        VALID.validate(json.loads(made.owner.to_json()))

    def test_the_value_lies_on_the_grid_before_it_is_rounded(self, monkeypatch):
        """The last digit is a power of ten of at most a hundredth of the noise, the same for every value."""
        on_grid = []

        def noted(value, noise_std):
            on_grid.append(value)
            return rounded_to_noise(value, noise_std)

        monkeypatch.setattr(results, "rounded_to_noise", noted)
        made = protect("mean", ROWS, eta=0.1, **QUICK)
        noise = made.certificate.about.certificate.noise
        multiples = np.array(on_grid) / np.array(noise.grid)
        np.testing.assert_allclose(multiples, np.rint(multiples), rtol=1e-9)
        digits = 10.0 ** (np.floor(np.log10(noise.rms)) - 2)
        np.testing.assert_allclose(made.value, np.rint(np.array(on_grid) / digits) * digits, rtol=1e-12)
        assert (digits <= np.array(noise.rms) / 100).all()

    @pytest.mark.slow
    def test_two_releases_differ_and_two_of_a_seed_do_not(self):
        unseeded = [protect("mean", ROWS, eta=0.1, **QUICK) for _ in range(2)]
        assert unseeded[0].value.tolist() != unseeded[1].value.tolist()
        seeded = [protect("mean", ROWS, eta=0.1, insecure_seed=7, **QUICK) for _ in range(2)]
        assert seeded[0].to_json() == seeded[1].to_json()
        assert seeded[0].certificate.about.insecure_seed is True
        assert "Not for publication." in seeded[0].certificate.to_html()
        assert "Not for publication." not in unseeded[0].certificate.to_html()

    @pytest.mark.slow
    def test_the_noise_has_the_size_that_the_certificate_says(self):
        """2,000 releases: the variance is that of noise and draw together, to 5 standard errors."""
        mechanism = Mechanism.of(named("mean"), from_arrays(ROWS), execution=Execution(n_jobs=1))
        found = search_noise(mechanism, PrivacyTarget(0.1))
        values = np.array([_released(mechanism, found, subsets(120, 60, 1, rng)[0], rng) for rng in _streams(2000)])
        row = protect("mean", ROWS, eta=0.1, insecure_seed=0, **QUICK).owner.about.values[0]
        assert row.noise_std == found.rms[0]
        want = row.noise_std**2 + row.sampling_std**2 / 2  # k = n/2 without replacement
        assert abs(values[:, 0].var() / want - 1) < 5 * np.sqrt(2 / 2000)

    @pytest.mark.slow
    def test_a_function_of_the_records(self):
        made = protect(np.median, ROWS[:, :1], eta=0.1, fits=300, **QUICK)
        assert made.certificate.about.plan["statistic"] == "numpy:median"
        assert made.owner.about.certificate.coupling == "complement"
        assert protect(lambda x: x.max(axis=0), ROWS, eta=0.1, fits=300, **QUICK).value.shape == (2,)

    def test_a_statistic_whose_shape_changes_has_failures_and_no_crash(self):
        with pytest.raises(ValueError, match=r"of the pairs failed|failed in every pair|of the .* pairs failed"):
            protect(lambda x: x[x[:, 0] > 0], ROWS, eta=0.1, fits=300, **QUICK)

    @pytest.mark.slow
    def test_a_statistic_that_is_sometimes_not_finite_counts_these_as_failures(self):
        rows = np.random.default_rng(1).normal(size=(12, 1))
        made = calibrate(
            lambda x: x.mean(axis=0) if x.sum() > -0.45 else np.array([np.nan]), rows, eta=0.2, fits=2000, **QUICK
        )
        certificate = made.certificate.about.certificate
        assert certificate.failures > 0
        assert any("fits failed" in note for note in made.certificate.about.notes)

    @pytest.mark.slow
    def test_a_regression_with_its_response(self):
        y = ROWS @ [1.0, -1.0] + np.random.default_rng(2).normal(size=120)
        made = protect("ols", ROWS, y, eta=0.1, fits=300, **QUICK)
        assert [row.name for row in made.certificate.about.values] == ["intercept", "x0", "x1"]

    def test_no_noise_where_none_is_needed(self):
        made = protect("sum", np.arange(400)[:, None] % 2, eta=0.1, **QUICK)
        certificate = made.certificate.about.certificate
        assert (made.noise, certificate.no_noise, certificate.coupling) == (None, True, "")
        assert made.owner.about.certificate.coupling == "table"
        assert made.value[0] == int(made.value[0])
        assert found(made.certificate, "noise_rms").value == 0

    def test_a_ball_says_that_it_proves_some_memberships(self):
        made = protect("mean", ROWS, eta=0.1, noise="ball", **QUICK)
        assert any(term.id == "noise_has_an_end" for term in made.certificate.about.certificate.assumptions)
        assert found(made.owner, "pmp_epsilon").value is None

    def test_a_seed_is_called_insecure(self) -> None:
        with pytest.raises(TypeError, match=r"^protect takes no seed; use insecure_seed=$"):
            ls.protect("mean", ROWS, eta=0.1, promise="file", seed=3)  # pyright: ignore[reportCallIssue] -- the test

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({"eta": 0.7}, "eta"),
            ({"eta": 0.1, "k": 120}, "k must be from 1 to n - 1 = 119, got 120"),
            ({"eta": 0.1, "k": 0}, "k"),
            ({"eta": 0.1, "declare": True}, "protect takes no declare; use leakbound.protection.declare"),
            ({"eta": 0.1, "noise": "gausian"}, "did you mean 'gaussian'"),
            ({"eta": 0.1, "statistic": "mena"}, "did you mean 'mean'"),
            ({"eta": 0.1, "promise": "all"}, "promise"),
            ({"eta": 0.1, "promise": None}, "choose what is promised: promise = anyone .*, file .* or drawn"),
            ({"eta": 0.1, "about": "all"}, "about"),
            ({"eta": 0.1, "legder": "l"}, "unknown keyword 'legder' \\(did you mean 'ledger'"),
            ({"eta": 0.1, "x": [[1.0]]}, "at least 2 points"),
            ({"eta": 0.1, "x": [[1.0], [np.nan]]}, "missing or infinite"),
            ({"eta": 0.1, "x": [[1.0], [np.inf]]}, "missing or infinite"),
        ],
    )
    def test_bad_words_get_one_line_before_anything_is_drawn(self, words, line, monkeypatch, as_users_run_it):
        monkeypatch.setattr(half, "subsets", None)  # nothing may be drawn
        words = {"statistic": "mean", "x": ROWS} | words
        with pytest.raises((TypeError, ValueError), match=line) as refused:
            protect(**QUICK | words)
        assert "\n" not in str(refused.value)

    def test_huge_values_are_refused_or_exact(self):
        made = protect("mean", ROWS * 1e140, eta=0.1, **QUICK)
        assert np.isfinite(made.value).all()
        with pytest.raises(ValueError, match=r"^column x0 holds numbers up to 1e\+300, whose squares overflow"):
            protect("mean", np.r_[ROWS, [[1e300, 0.0]]], eta=0.1, **QUICK)

    def test_two_records(self):
        made = protect("mean", [[0.0], [1.0]], eta=0.1, coupling="swap", **QUICK)
        assert made.certificate.about.certificate.k == 1


@pytest.mark.usefixtures("without_bands")
class TestFiles:
    def test_text_in_a_column_of_a_mean_is_refused_unless_the_column_is_left_out(self, people):
        with pytest.raises(
            ValueError, match=r"not only numbers in town, as .* leave these columns out \(--drop town; in Python .*\)"
        ):
            protect_file(data=people, statistic="mean", eta=0.1, **QUICK)
        made = protect_file(data=people, statistic="mean", drop="town", eta=0.1, **QUICK)
        assert [row.name for row in made.certificate.about.values] == [
            "mean of hours",
            "mean of wage",
            "mean of member",
        ]
        assert made.certificate.about.notes == ()
        assert "/" not in json.dumps(made.certificate.about.plan)

    def test_a_table_counts_text(self, people):
        levels = {"town": ["Bonn", "Köln, Nord"]}
        made = protect_file(data=people, statistic="table", by="town", levels=levels, eta=0.1, **QUICK)
        assert made.value.sum() == 60

    def test_a_logistic_regression_of_a_label(self, people):
        made = protect_file(data=people, statistic="logistic", label="member", drop="town", eta=0.1, fits=120, **QUICK)
        assert len(made.value) == 3

    def test_a_histogram_by_bins_or_edges(self, people):
        for settings in ({"bins": 4}, {"edges": [10, 30, 60]}):
            made = calibrate_file(data=people, statistic="histogram", by="hours", set=settings, eta=0.1, **QUICK)
            assert made.certificate.about.values == ()
        with pytest.raises(ValueError, match="a histogram takes bins or edges, got bin"):
            calibrate_file(data=people, statistic="histogram", by="hours", set={"bin": 3}, eta=0.1, **QUICK)

    def test_before_is_called_once_and_can_refuse(self, people):
        def refuse():
            raise ValueError("the disk is full")

        with pytest.raises(ValueError, match="the disk is full"):
            protect_file(data=people, statistic="mean", drop="town", eta=0.1, before=refuse, **QUICK)

    @pytest.mark.slow
    def test_fits_in_the_store_are_not_made_again(self, people, tmp_path):
        words = {"data": people, "statistic": "quantiles", "drop": "town", "eta": 0.1, "fits": 200, **QUICK}
        first = calibrate_file(store=tmp_path / "store", **words)
        files = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
        again = calibrate_file(store=tmp_path / "store", **words)
        assert {path: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()} == files
        assert again.certificate.to_json() == first.certificate.to_json()


@pytest.mark.usefixtures("without_bands")
class TestLedger:
    def words(self, people, tmp_path, **more):
        return {"data": people, "drop": ("town",), "eta": 0.1, "ledger": str(tmp_path / "ledger.json")} | more

    def test_a_single_release_makes_a_ledger_and_a_second_is_refused(self, people, tmp_path):
        words = self.words(people, tmp_path, statistic="mean")
        made = protect_file(**words, **QUICK)
        assert (tmp_path / "ledger.json").stat().st_mode & 0o777 == 0o600
        assert found(made.owner, "eta", "joint_of_one").value <= 0.1 + 1e-9
        assert protect_file(**words, **QUICK).to_json() == made.to_json()  # no second release: the same bytes
        with pytest.raises(ValueError, match="chosen after an output it is outside of the joint certificate"):
            protect_file(**words | {"statistic": "sum"}, **QUICK)
        with pytest.raises(ValueError, match="a query chosen after an output"):
            declare_file(**words, promise="drawn")

    @pytest.mark.parametrize("statistics", [("mean", "sum"), nightly(("covariance", "quantiles"))])
    def test_declared_queries_are_released_from_one_draw_with_a_joint_bound(self, people, tmp_path, statistics):
        words = self.words(people, tmp_path, fits=400, drop=("member", "town"))
        for number, statistic in enumerate(statistics):
            assert declare_file(**words, statistic=statistic, promise="drawn").endswith(
                f"{number + 1} declared, 0 released"
            )
        draws, digest = [], from_arrays(read(people).points.x.drop(columns=["town", "member"])).digest
        for statistic in statistics:
            made = protect_file(**words, statistic=statistic, **QUICK)
            draws.append(Ledger.open(words["ledger"], digest).draw.member)
        assert (draws[0] == draws[1]).all()
        joint = found(made.owner, "eta", "joint").value
        assert 0.1 < joint < 0.2
        shifts = Ledger.open(words["ledger"], digest).joint_shifts()
        confidence = None if shifts.exact else 0.95
        assert joint <= eta_bound(shifts, GaussianNoise(1.0), confidence=confidence).max() + 1e-12

    def test_other_data_another_k_or_coupling_are_refused(self, people, tmp_path):
        words = self.words(people, tmp_path, statistic="mean")
        declare_file(**words, promise="drawn")
        other = tmp_path / "other.csv"
        pd.read_csv(people).iloc[:100].to_csv(other, index=False)
        with pytest.raises(ValueError, match="belongs to other data"):
            protect_file(**words | {"data": str(other)}, **QUICK)
        with pytest.raises(ValueError, match="was begun with k 60, got 30"):
            protect_file(**words, k=30, **QUICK)
        with pytest.raises(ValueError, match="was begun with coupling swap, got complement"):
            protect_file(**words, coupling="complement", **QUICK)
        with pytest.raises(ValueError, match="was begun with about every, got average"):
            protect_file(**words, about="average", **QUICK)
        with pytest.raises(ValueError, match="which ols is not"):
            declare_file(**words | {"statistic": "ols"}, promise="drawn")

    @pytest.mark.parametrize(
        ("more", "line"),
        [
            ({"noise": "laplace"}, "only Gaussian releases add up under a ledger, got noise laplace"),
            ({"coupling": "mixture_swap"}, "the mixture swap keeps no pairs that could add up"),
        ],
    )
    def test_what_does_not_add_up_is_refused(self, people, tmp_path, more, line):
        with pytest.raises(ValueError, match=line):
            protect_file(**self.words(people, tmp_path, statistic="mean", **more), **QUICK)
        assert not (tmp_path / "ledger.json").exists()

    def test_a_function_without_a_description_cannot_stand_in_a_ledger(self, tmp_path):
        with pytest.raises(ValueError, match="a statistic without a description"):
            protect(lambda x: x.max(axis=0), ROWS, eta=0.1, fits=200, ledger=str(tmp_path / "l.json"), **QUICK)

    def test_the_report_names_neither_the_draw_nor_the_path(self, people, tmp_path):
        made = protect_file(**self.words(people, tmp_path, statistic="mean"), **QUICK)
        text = made.to_json() + made.owner.to_json()
        content = json.loads((tmp_path / "ledger.json").read_text())["content"]
        assert content["member"] not in text
        assert str(tmp_path) not in text


def _streams(n):
    return (stream(seed, "test") for seed in range(n))


def _digest(people):
    points = read(people).points
    return from_arrays(points.x.drop(columns=["town"])).digest


@pytest.mark.by_day("options0-protect")
@pytest.mark.parametrize("call", [ls.calibrate, ls.protect])
@pytest.mark.parametrize("options", [{}, {"sample_rate": 0.01, "steps": 100}, {"x": [[1.0], [2.0]], "eta": 0.1}])
def test_of_dp_sgd_the_function_is_named(call, options):
    """The command line has calibrate dpsgd."""
    with pytest.raises(TypeError, match=r"takes no 'dpsgd'; use ls\.dpsgd\.dpsgd_multiplier\(sample_rate, steps, "):
        call("dpsgd", **options)
    assert 0 < ls.dpsgd.dpsgd_multiplier(0.01, 100, advantage=0.1) < 10
