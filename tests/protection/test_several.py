"""Several statistics that are released together: one promise, which is computed here in other ways."""

from __future__ import annotations

import html
import io
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp

import leakbound as ls
from leakbound.noise import GaussianNoise, LeftOut
from leakbound.protection import Protected
from leakbound.protection.ledger.budget import BudgetLedger as ReleaseLedger
from leakbound.protection.promises.file.noise import LeftOutNoise, search_joint_noise, search_left_out_noise
from leakbound.reports import Report
from leakbound.reports.toml import toml
from tests.promising import calibrate_file, declare, design_table_of_file, protect, protect_file

pytestmark = pytest.mark.usefixtures("as_users_run_it")
N = 40
RNG = np.random.default_rng(7)
PEOPLE = pd.DataFrame(
    {
        "town": np.array(["Bonn", "Ulm"])[(np.arange(N) < 12).astype(int)],
        "wage": RNG.lognormal(3, 0.5, N).round(2),
        "age": RNG.integers(18, 80, N),
    }
)
MEAN: dict[str, Any] = {"statistic": "mean", "drop": ["town", "age"], "weight": 2}
TABLE: dict[str, Any] = {"statistic": "table", "by": ["town"], "levels": {"town": ["Bonn", "Ulm"]}}
OLS: dict[str, Any] = {"statistic": "covariance", "drop": ["town"], "name": "spread"}
ETA = 0.05


def release(ledger: Path, *statistics: Any, x: Any = PEOPLE, **more: Any) -> Protected:
    words: dict[str, Any] = {"eta": ETA, "promise": ls.File(games=0), "n_jobs": 1, **more}
    return protect(list(statistics), x, ledger=ledger, **words)


def both(made: Protected) -> tuple[str, str]:
    return made.to_json(), made.owner.to_json()


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def mu_of(eta: float) -> float:
    return 2 * float(stats.norm.ppf(0.5 + eta))


def epsilons(made: Protected) -> list[float]:
    found = [finding for finding in made.certificate.findings if finding.quantity == "epsilon"]
    return [finding.value for finding in found if not finding.release]  # of this release alone


def scales(report: Report) -> list[float]:
    return [each.noise.scale for each in report.about.statistics]


# ---------------------------------------------------------------------------------------------------------------------
# Differential privacy: squares of mu


class TestDifferentialPrivacy:
    def test_the_squares_of_mu_are_in_proportion_to_the_weights_and_add_up_to_that_of_eta(self, ledger) -> None:
        mean = {**MEAN, "ranges": ["wage=0:100"]}
        made = release(ledger, mean, TABLE, promise="anyone")
        # replacing a record moves the sum of the mean by at most 100, and two counts by 1
        shifts = [100, np.sqrt(2)]
        deviations = [each.noise.rms[-1] for each in made.certificate.about.statistics]
        mu = [shift / deviation for shift, deviation in zip(shifts, deviations, strict=True)]
        np.testing.assert_allclose(np.square(mu), mu_of(ETA) ** 2 * np.array([2 / 3, 1 / 3]), rtol=1e-4)
        assert np.linalg.norm(mu) <= mu_of(ETA) * (1 + 1e-9)
        (entry,) = ReleaseLedger.open(ledger, "dp").releases
        assert entry.mu == pytest.approx(mu_of(ETA), rel=1e-12)

    @pytest.mark.usefixtures("ledgers_apart")
    def test_epsilon_is_that_of_all_together(self, ledger, tmp_path) -> None:
        two = [TABLE, {**TABLE, "name": "again"}]
        made = release(ledger, *two, promise="anyone")
        words: dict[str, Any] = {"eta": ETA, "promise": "anyone", "ledger": tmp_path / "alone"}
        alone = protect("table", PEOPLE, by="town", levels=TABLE["levels"], **words)
        assert len(epsilons(made)) == 2  # replaced; added or removed
        np.testing.assert_allclose(epsilons(made), epsilons(alone), rtol=1e-9)

    def test_a_statistic_without_a_bound_is_refused_before_anything(self, ledger) -> None:
        ols = {"statistic": "ols", "drop": ["town"], "ranges": ["wage=0:100"]}
        with pytest.raises(ValueError, match=r"^ols: differential privacy has no noise here for ols: "):
            release(ledger, TABLE, ols, promise="anyone")
        assert not ledger.exists()


# ---------------------------------------------------------------------------------------------------------------------
# Leave one out: all values side by side


def without_each(values: np.ndarray) -> np.ndarray:
    """Means without each record."""
    return (values.sum(axis=0) - values) / (len(values) - 1)


def whitened(made: Protected) -> np.ndarray:
    """Means of the wage and counts of the towns without each record, in units of the noise that was released."""
    mean, table = (each.noise for each in made.statistics.values())
    wage = without_each(PEOPLE[["wage"]].to_numpy())
    counts = -np.stack([PEOPLE.town == "Bonn", PEOPLE.town == "Ulm"], axis=1).astype(float)
    return np.hstack([wage / mean.scale, counts / table.scale])


def accuracy_of_the_best_attacker(table: np.ndarray, record: int, n_games: int = 400_000) -> float:
    """The likelihood ratio of "x is left out" to "another one is", at even odds, on simulated releases."""
    rng = np.random.default_rng(11)
    others = np.delete(np.arange(len(table)), record)
    right = 0.0
    for is_out in (True, False):
        missing = np.full(n_games // 2, record) if is_out else rng.choice(others, n_games // 2)
        output = table[missing] + rng.standard_normal((n_games // 2, table.shape[1]))
        log_density = -np.square(output[:, None] - table).sum(axis=2) / 2
        says_out = log_density[:, record] > logsumexp(log_density[:, others], axis=1) - np.log(len(others))
        right += (says_out == is_out).mean() / 2
    return right


class TestLeaveOneOut:
    @pytest.mark.slow
    def test_nobody_is_right_more_often_than_promised_and_the_promise_is_no_larger_than_needed(self, ledger) -> None:
        made = release(ledger, MEAN, TABLE)
        table = whitened(made)
        squares = np.square(table[:, None] - table).sum(axis=2)
        told = (2 * stats.norm.cdf(np.sqrt(squares) / 2) - 1).sum(axis=1) / (N - 1)  # mean over pairs, A.12
        worst = int(told.argmax())
        right = accuracy_of_the_best_attacker(table, worst)
        sigma = 0.5 / np.sqrt(400_000)
        # a false alarm has a probability below 1e-4
        assert 0.5 + 0.5 * ETA < right < 0.5 + ETA + 4 * sigma

    def test_statistics_that_tell_different_records_need_less_noise_together_than_parts_of_eta(self) -> None:
        """Each has a record of its own that is far from all others."""
        rng = np.random.default_rng(1)
        columns = rng.normal(size=(200, 4))
        columns[np.arange(4), np.arange(4)] = 30.0
        tables = [without_each(columns[:, [place]]) for place in range(4)]
        eta_of_each = float(stats.norm.cdf(mu_of(ETA) / 2 / 2)) - 0.5  # a fourth of the square of mu
        alone = [search_left_out_noise(table, eta_of_each, ["a"]) for table in tables]
        together = search_joint_noise(tables, [["a"]] * len(tables), alone, ETA)
        ratios = [one.noise.scale / other.noise.scale for one, other in zip(together, alone, strict=True)]
        assert max(ratios) < 0.7
        stacked = np.hstack([table / one.noise.scale for table, one in zip(tables, together, strict=True)])
        assert LeftOut(stacked).worst(GaussianNoise(1.0)).advantage <= 2 * ETA * (1 + 1e-3)
        assert LeftOut(stacked).worst(GaussianNoise(0.8)).advantage > 2 * ETA

    def test_copies_of_a_statistic_cost_what_a_smaller_scale_would(self, ledger, tmp_path) -> None:
        """Four copies have the noise of one, times the root of 4."""
        column = {"statistic": "mean", "drop": ["town", "age"]}
        four = release(ledger, *({**column, "name": name} for name in "abcd"))
        one = protect("mean", PEOPLE[["wage"]], eta=ETA, promise=ls.File(games=0), ledger=tmp_path / "one")
        (scale,) = {each.noise.scale for each in four.statistics.values()}
        assert 0.85 < scale / (2 * one.noise.scale) < 1.15  # two digits each; for one number the bound is exact
        # noise of their own: on a grid of 1,024 steps to the scale two of them are equal in 2 of 1,000 runs, and two
        # pairs, or three, in fewer than 1 of 100,000
        assert len({float(each.value[0]) for each in four.statistics.values()}) >= 3

    @pytest.mark.usefixtures("ledgers_apart")
    def test_weights(self, ledger, tmp_path) -> None:
        mean = {**MEAN, "weight": 1}
        equal = release(ledger, mean, TABLE).statistics
        heavy = release(tmp_path / "heavy", {**mean, "weight": 9}, TABLE).statistics
        ratio = {name: heavy[name].noise.scale / equal[name].noise.scale for name in equal}
        assert ratio["mean"] < 1 < ratio["table by town"]
        proportion = ratio["table by town"] / ratio["mean"]
        assert 3 * 0.8 < proportion < 3 * 1.2  # the root of 9, but for two digits, and for F, which is no line

    def test_declared_noise_stays_and_the_others_take_what_is_left(self, ledger) -> None:
        wide = {"statistic": "mean", "drop": ["town", "age"], "scale": 3.0, "name": "mean"}
        made = release(ledger, wide, TABLE).statistics
        assert made["mean"].noise.scale == 3.0
        assert made["table by town"].noise.scale > 3.0

    def test_declared_noises_that_are_too_small(self, ledger) -> None:
        small = {"statistic": "mean", "drop": ["town", "age"], "scale": 0.1}
        with pytest.raises(
            ValueError, match=r"^mean: this noise is proved to keep eta = 0\.\d+ only, asked for 0\.05: "
        ):
            release(ledger, small, TABLE)
        made = protect("mean", PEOPLE[["wage"]], eta=ETA, promise=ls.File(games=0), ledger=ledger)
        tight = {**small, "scale": made.noise.scale}
        again = ledger.with_name("again")
        with pytest.raises(ValueError, match=r"^the declared noises together are proved to keep eta = 0\.0\d+ only, "):
            release(again, tight, {**tight, "name": "more"})
        assert not again.exists()

    def test_a_later_release_takes_what_the_budget_leaves(self, ledger) -> None:
        release(ledger, MEAN, TABLE, budget=0.2)
        later = protect("mean", PEOPLE[["age"]], eta=0.02, promise=ls.File(games=0), ledger=ledger)
        assert later.certificate.about.certificate.entry.number == 2
        kept = ReleaseLedger.open(ledger, "leave-one-out")
        assert (len(kept.releases), len(kept.queries), kept.spent() <= 0.2) == (2, 1, True)

    def test_after_a_first_output_they_must_fit_in_what_is_left(self, ledger) -> None:
        protect("mean", PEOPLE[["age"]], eta=ETA, promise=ls.File(games=0), ledger=ledger)
        before = ledger.read_bytes()
        with pytest.raises(ValueError, match=r"^the whole budget was given to the first query: "):
            release(ledger, MEAN, TABLE)
        assert ledger.read_bytes() == before

    def test_declared_beforehand_it_counts_once_with_all_its_numbers(self, ledger) -> None:
        words: dict[str, Any] = {"eta": ETA, "promise": ls.File(games=0), "ledger": ledger}
        assert declare([MEAN, TABLE], PEOPLE, **words) == f"{ledger}: 1 declared, 0 released"
        made = release(ledger, MEAN, TABLE)
        (entry,) = ReleaseLedger.open(ledger, "leave-one-out").releases
        assert entry.declared
        assert entry.table.shape == (N, 3)
        assert made.certificate.about.certificate.entry.declared == 1


# ---------------------------------------------------------------------------------------------------------------------
# All or nothing, and once more


@pytest.fixture
def people(tmp_path, monkeypatch) -> dict[str, Any]:
    """A plan of a file."""
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("people.csv", index=False)
    tables = [MEAN, TABLE, {"statistic": "ols", "label": "wage", "drop": ["town"]}]
    return {"data": "people.csv", "promise": ls.File(games=0), "eta": ETA, "n_jobs": 1, "statistic": tables}


class TestFile:
    def test_it_is_one_release_with_all_statistics(self, people) -> None:
        made = protect_file(**people)
        assert list(made.statistics) == ["mean", "table by town", "ols of wage"]
        about = made.certificate.about
        assert [each.name for each in about.statistics] == list(made.statistics)
        of_each = {name: [row.value for row in about.values if row.statistic == name] for name in made.statistics}
        for name, each in made.statistics.items():
            assert of_each[name] == each.value.tolist()
        np.testing.assert_array_equal(made.value, np.concatenate([each.value for each in made.statistics.values()]))
        assert about.certificate.eta == about.certificate.entry.budget == ETA
        assert [table["statistic"] for table in about.plan["statistic"]] == ["mean", "table", "ols"]

    def test_an_interruption_gives_the_same_bytes_again(self, people) -> None:
        def killed(public: Report, owner: Report) -> None:
            seen.extend([public.to_json(), owner.to_json()])
            raise KeyboardInterrupt

        seen: list[str] = []
        with pytest.raises(KeyboardInterrupt):
            protect_file(**people, publish=killed)
        made = protect_file(**people)
        assert both(made) == tuple(seen)
        (entry,) = ReleaseLedger.open("people.csv.ledger", "leave-one-out").releases
        assert entry.published

    @pytest.mark.parametrize("place", range(3))
    def test_what_is_wrong_with_any_of_them_is_said_before_anything_is_written(self, people, place) -> None:
        people["statistic"].insert(place, {"statistic": "mean", "drop": ["county"]})
        with pytest.raises(ValueError, match="county"):
            protect_file(**people)
        assert [path.name for path in Path().iterdir() if path.suffix == ".ledger"] == []

    def test_the_same_query_with_other_weights_is_another_one(self, people) -> None:
        protect_file(**people, budget=0.3)
        people["statistic"][0] = {**people["statistic"][0], "weight": 3}
        made = protect_file(**people)
        assert made.certificate.about.certificate.entry.number == 2

    def test_another_order_of_the_records_gives_the_same_release(self, people) -> None:
        made = protect_file(**people)
        PEOPLE.iloc[::-1].to_csv("people.csv", index=False)
        again = protect_file(**people)
        np.testing.assert_array_equal(again.value, made.value)

    def test_the_report_is_read_back_and_shown(self, people, tmp_path) -> None:
        made = protect_file(**people)
        made.to_json(tmp_path / "release.json")
        report = Report.from_json(tmp_path / "release.json")
        assert report.to_json() == made.to_json()
        text = " ".join(report.table(full=True).split())
        assert "on seeing all 3 statistics of this release, is right in at most 55.0 of 100 cases" in text
        assert "Statistics mean (weight 2); table by town (weight 1); ols of wage (weight 1); released" in text
        for name in ("Mean ", "Table by town ", "Ols of wage "):
            assert re.search(f"{name} ?Statistic +Released +Noise, 95 %", text)
        page = report.to_html()
        assert all(
            f"<strong>{name}</strong>" in html.unescape(page) for name in ("Mean", "Table by town", "Ols of wage")
        )
        assert "[[statistic]]" in page

    def test_the_plan_of_the_page_can_be_run_again(self, people) -> None:
        made = protect_file(**people)
        words = tomllib.loads(toml(made.certificate.about.plan))
        assert both(protect_file(**words, n_jobs=1)) == both(made)

    def test_costs_of_designs_are_of_one_statistic(self, people) -> None:
        words = {name: people[name] for name in ("data", "eta", "statistic")}
        with pytest.raises(ValueError, match=r"^costs of promises are those of one statistic; "):
            design_table_of_file(**words)

    def test_calibrate_finds_the_same_noise_and_releases_nothing(self, people) -> None:
        found = calibrate_file(**people)
        made = protect_file(**people)
        assert scales(found.certificate) == scales(made.certificate)
        assert found.certificate.about.values == ()


def test_noises_as_they_are_belong_to_a_single_statistic(ledger) -> None:
    with pytest.raises(ValueError, match=r"^file: noise: Input should be 'gaussian', "):
        protect([MEAN, TABLE], PEOPLE, eta=ETA, promise=ls.File(noise=GaussianNoise(3.0)), ledger=ledger)


def test_a_function_may_be_one_of_them(ledger) -> None:
    made = release(ledger, {"statistic": span, "drop": ["town", "age"], "name": "span"}, TABLE)
    assert list(made.statistics) == ["span", "table by town"]


def span(x: Any) -> np.ndarray:
    return np.array([np.median(np.asarray(x, dtype=float)) * 2])


def test_columns_that_are_not_there(ledger) -> None:
    with pytest.raises(ValueError, match=r"^mean: drop names a column of a frame; 'county' is none$"):
        release(ledger, {"statistic": "mean", "drop": ["county"]}, TABLE)


def test_all_of_it_without_noise() -> None:
    same = [np.ones((5, 1)), np.full((5, 1), 3.0)]
    alone = [search_left_out_noise(table, ETA, ["a"], allow_exact=True) for table in same]
    found = search_joint_noise(same, [["a"]] * 2, alone, ETA)
    assert all(isinstance(each, LeftOutNoise) and each.noise is None for each in found)


# ---------------------------------------------------------------------------------------------------------------------
# Sampling errors that are functions of released numbers

MANY = 2000
NUMBERS = pd.DataFrame({"wage": np.minimum(RNG.lognormal(3, 0.5, MANY), 100), "age": RNG.uniform(18, 80, MANY)})
MOMENTS: dict[str, Any] = {"statistic": "second_moment", "name": "moments"}
RANGES = ["wage=0:100", "age=18:80"]


class TestSamplingErrorOfReleasedNumbers:
    @pytest.mark.by_day("covariance-anyone")
    @pytest.mark.parametrize("promise", ["file", "anyone"])
    @pytest.mark.parametrize("spread", ["second_moment", "covariance"])
    def test_a_mean_has_one_where_its_variance_was_released_too(self, ledger, promise, spread) -> None:
        more = {"ranges": RANGES} if promise == "anyone" else {}
        parts = [{"statistic": "mean", **more}, {"statistic": spread, "name": "spread", **more}]
        made = release(ledger, *parts, x=NUMBERS, promise=promise, eta=0.2)
        values = {row.name: row for row in made.certificate.about.values}
        mean = [values["mean of wage"].value, values["mean of age"].value]
        names = {
            "second_moment": ("second_moment of wage wage", "second_moment of age age"),
            "covariance": ("covariance of wage wage", "covariance of age age"),
        }[spread]
        variance = np.array([values[name].value for name in names])
        if spread == "second_moment":
            variance = variance - np.square(mean)
        found = np.array([values["mean of wage"].sampling_std, values["mean of age"].sampling_std])
        if promise == "file":
            np.testing.assert_allclose(found, np.sqrt(variance / (MANY - 1)), rtol=1e-9)
        else:  # of noisy counts and sums: all that is printed is a quotient of them, rounded once more
            off = {name: row.noise_std / 200 for name, row in values.items()}  # half of a hundredth of the noise
            n = np.array([values["records with wage"].value, values["records with age"].value])
            off_n = np.array([off["records with wage"], off["records with age"]])
            off_variance = np.array([off[name] for name in names])
            if spread == "second_moment":
                off_mean = np.array([off["mean of wage"], off["mean of age"]])
                off_variance += 2 * np.abs(mean) * off_mean + np.square(off_mean)
            assert (found >= np.sqrt((variance - off_variance) / (n + off_n))).all()
            assert (found <= np.sqrt((variance + off_variance) / (n - off_n))).all()
            assert (off_variance < 0.03 * variance).all()
        assert all(values[name].sampling_std is None for name in names)

    @pytest.mark.slow
    def test_no_other_number_has_one(self, ledger, tmp_path) -> None:
        made = release(ledger, {"statistic": "mean"}, {"statistic": "quantiles", "name": "q"}, x=NUMBERS, eta=0.2)
        assert all(row.sampling_std is None for row in made.certificate.about.values)
        people = pd.DataFrame({"person": np.arange(MANY) // 2, **NUMBERS})
        words = {"x": people, "group": "person", "eta": 0.2}
        made = release(tmp_path / "of persons", {"statistic": "mean"}, MOMENTS, **words)
        assert all(row.sampling_std is None for row in made.certificate.about.values)

    def test_around_a_public_centre(self, ledger) -> None:
        moments = {**MOMENTS, "set": {"centre": [20.0, 45.0]}}
        made = release(ledger, {"statistic": "mean"}, moments, x=NUMBERS, eta=0.2)
        values = {row.name: row.value for row in made.certificate.about.values}
        errors = {row.name: row.sampling_std for row in made.certificate.about.values}
        variance = values["second_moment of age age"] - (values["mean of age"] - 45.0) ** 2
        assert errors["mean of age"] == pytest.approx(np.sqrt(variance / (MANY - 1)))

    def test_a_regression_has_the_standard_errors_that_were_released_with_it(self, ledger) -> None:
        made = release(ledger, {"statistic": "ols"}, {"statistic": "standard_errors"}, x=NUMBERS, eta=0.2)
        values = {row.name: row for row in made.certificate.about.values}
        for name in ("intercept", "wage"):
            error = values[f"standard error of {name}"]
            assert values[name].sampling_std == error.value
            assert error.sampling_std is None
        rows = np.column_stack([np.ones(MANY), NUMBERS.wage])
        solution, (squares,), _, _ = np.linalg.lstsq(rows, NUMBERS.age, rcond=None)
        exact = np.sqrt(squares / (MANY - 2) * np.diag(np.linalg.inv(rows.T @ rows)))
        for name, coefficient, error in zip(("intercept", "wage"), solution, exact, strict=True):
            assert abs(values[name].value - coefficient) < 5 * values[name].noise_std + 0.01 * error
            noise = values[f"standard error of {name}"].noise_std
            assert abs(values[name].sampling_std - error) < 5 * noise + 0.01 * error

    def test_those_of_another_regression_are_not_its_own(self, ledger) -> None:
        other = {"statistic": "standard_errors", "label": "wage"}
        made = release(ledger, {"statistic": "ols", "label": "age"}, other, x=NUMBERS, eta=0.2)
        assert all(row.sampling_std is None for row in made.certificate.about.values)

    @pytest.mark.slow
    def test_an_error_that_noise_made_negative_is_no_error(self, ledger) -> None:
        few = NUMBERS[:40]
        errors = {"statistic": "standard_errors", "scale": 1e6}
        for seed in range(4):
            made = release(
                ledger.with_name(f"{seed}"), {"statistic": "ols"}, errors, x=few, eta=0.4, insecure_seed=seed
            )
            values = {row.name: row for row in made.certificate.about.values}
            for name in ("intercept", "wage"):
                error = values[f"standard error of {name}"].value
                assert values[name].sampling_std == (error if error > 0 else None)


@pytest.mark.usefixtures("ledgers_apart")
def test_a_list_of_one_is_released_as_that_one(ledger: Path) -> None:
    made = release(ledger, MEAN)
    alone = protect("mean", PEOPLE[["wage"]], eta=ETA, promise=ls.File(games=0), ledger=ledger.with_name("other"))
    assert made.statistics == {}
    assert made.noise is not None
    assert alone.noise is not None
    assert made.noise.scale == alone.noise.scale


@pytest.mark.parametrize("promise", ["file", "anyone"])
def test_groups_that_two_statistics_count_are_named_with_the_count_to_quote(ledger: Path, promise: str) -> None:
    """Means of groups have their counts, which the margins of a table have, too; a total of all is no such group."""
    people = PEOPLE.assign(old=np.where(PEOPLE.age > 50, "yes", "no"))
    levels = {"town": ["Bonn", "Ulm"], "old": ["yes", "no"]}
    means = {
        "statistic": "mean",
        "by": ["town"],
        "drop": ["age", "old"],
        "levels": {"town": levels["town"]},
        "name": "wages",
    }
    crossed = {"statistic": "table", "by": ["town", "old"], "levels": levels, "name": "crossed"}
    if promise == "anyone":
        means["ranges"] = ["wage=0:80"]
    made = release(ledger, means, crossed, x=people, eta=0.2, promise=promise)
    (note,) = [note for note in made.certificate.about.notes if "counted twice" in note]
    assert note.startswith("2 groups are counted twice, each time with noise of its own, by ")
    table = pd.read_csv(io.StringIO(made.to_csv())).set_index(["statistic", "name"])
    pairs = [(table.loc["wages", f"count, {town}"], table.loc["crossed", f"{town} / Total"]) for town in levels["town"]]
    has_less_noise = [first.noise_std <= second.noise_std for first, second in pairs]
    better = "wages" if sum(has_less_noise) >= 1 else "crossed"
    assert f"which is that of {better}" in note
    of_bonn = {f"{pair.value:.0f} ± " for pair in pairs[0]}
    assert all(shown.replace("-", "\N{MINUS SIGN}") in note for shown in of_bonn)
    assert "twice" not in release(ledger.with_name("other"), MEAN, TABLE).to_json()
