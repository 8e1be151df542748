"""What is published tells nothing of the file but the value and the printed noise; the owner's half is apart."""

import json
import os
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from scipy.special import ndtr
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import leakbound.protection.promises.drawn.half as releasing
from leakbound.bounds import exact_eta
from leakbound.plans.promises import Drawn
from leakbound.protection.certificate.curves import promised_curve
from leakbound.releases.statistics.features import Cells
from tests.marks import nightly, nightly_but, slow_but
from tests.noise.games import all_subsets
from tests.promising import calibrate, protect

pytestmark = pytest.mark.usefixtures("as_users_run_it")  # many releases; test_api.py executes the shapes
QUICK = {"promise": Drawn(games=0), "n_jobs": 1}
SCHEMA = json.loads(resources.files("leakbound.reports").joinpath("schema.json").read_text(encoding="utf-8"))
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
SIX_DIGITS = 5e-6  # relative


def people(seed, n=60):
    """Two columns of the same names, types and length, of other contents."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"pay": rng.lognormal(3, 1, n).round(2), "hours": rng.integers(1, 60, n)})
    return frame.assign(sector=rng.choice(["care", "trade"], n, p=[0.2, 0.8]))


@pytest.fixture
def fixed(monkeypatch):
    """The same value is released, whatever the data: draw and noise are the test's."""

    def release(mechanism, found, member, rng):
        return np.arange(1.0, mechanism.d + 1)

    monkeypatch.setattr(releasing, "_released", release)


STATISTICS = {
    "mean": {"scale": 40.0},
    "sum": {"scale": (3000.0, 900.0)},
    "second_moment": {"scale": 1e6},
    "covariance": {"scale": 1e6, "fits": 80},
    "quantiles": {"scale": 4e3, "fits": 80},
    "histogram": {"scale": 20.0, "by": "hours", "set": {"edges": [0, 20, 40, 60, 80]}},
    "table": {"scale": 20.0, "by": "sector", "levels": {"sector": ["care", "trade", "nobody's"]}},
    "ols": {"scale": 1e5, "fits": 80},
    "own": {"scale": 1e5, "fits": 80},
}


def released(statistic, data, eta=0.2, **words):
    x = data if statistic == "table" else data[["pay", "hours"]]
    y = None
    if statistic == "ols":
        x, y = data[["hours"]], data["pay"]
    if statistic == "own":
        return protect(ends, x[["pay"]], eta=eta, **words, **QUICK)
    return protect(statistic, x, y, eta=eta, **words, **QUICK)


def ends(rows):
    """A function of the user's."""
    return np.array([np.min(rows.to_numpy()), np.max(rows.to_numpy())])


@pytest.mark.usefixtures("fixed")
class TestNonInterference:
    @pytest.mark.slow
    @pytest.mark.parametrize("statistic", nightly_but(STATISTICS, "table"))
    def test_a_declared_scale_leaves_nothing_of_the_file(self, statistic):
        """Two files of the same public part: the same bytes, JSON and page."""
        words = STATISTICS[statistic]
        one, two = (released(statistic, people(seed), **words) for seed in (0, 1))
        assert one.to_json() == two.to_json()
        assert one.to_html() == two.to_html()
        assert one.owner.to_json() != two.owner.to_json()

    @pytest.mark.by_day("table")
    @pytest.mark.parametrize("statistic", nightly_but(["mean", "quantiles", "ols", "table"], "mean", "table"))
    def test_a_scale_from_the_file_is_all_that_differs(self, statistic):
        words = {name: value for name, value in STATISTICS[statistic].items() if name != "scale"}
        words["eta"] = 0.05 if statistic == "table" else 0.2
        contents = [json.loads(released(statistic, people(seed), **words).to_json()) for seed in (0, 1)]
        noises = []
        for content in contents:
            content.pop("sha256")  # of all the rest
            noises.append(content["about"]["certificate"].pop("noise"))
            for row in content["about"]["values"]:
                row.pop("noise_std")
            for finding in content["findings"]:
                if finding["quantity"] == "noise_rms":
                    finding.pop("value")
        assert contents[0] == contents[1]
        for noise in noises:
            printed = [noise["scale"], *(noise["deviations"] or [])]
            assert all(float(f"{number:.2g}") == number for number in printed)
            correlations = np.array(noise["correlations"] or [[1.0]])
            np.testing.assert_allclose(correlations, np.round(correlations, 2), atol=1e-12)
            deviations = np.array(noise["deviations"] or [1.0])
            np.testing.assert_allclose(noise["rms"], noise["scale"] * deviations * np.ones(len(noise["rms"])))
            steps = np.array(noise["grid"])
            multiple = 30 if statistic == "mean" else 1
            assert (np.log2(steps * multiple) % 1 == 0).all()
            assert (steps <= np.array(noise["rms"]) / 4096).all()
            assert (steps > np.array(noise["rms"]) / 8193).all()

    def test_no_noise_tells_that_alone(self):
        """Cells of 400 and 600, and of 300 and 700: neither needs noise."""
        made = []
        for size in (400, 300):
            frame = pd.DataFrame({"sector": ["care"] * size + ["trade"] * (1000 - size)})
            levels = {"sector": ["care", "trade"]}
            made.append(protect("table", frame, by="sector", levels=levels, eta=0.1, **QUICK))
            assert made[-1].noise is None
        assert made[0].to_json() == made[1].to_json()


def numbers_of(content):
    """Every number of a JSON value, beside the released values, the printed noise and the plan."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key not in ("values", "noise", "plan", "versions", "grid"):
                yield from numbers_of(value)
    elif isinstance(content, list):
        for value in content:
            yield from numbers_of(value)
    elif isinstance(content, str):
        yield from (float(text.replace(",", "")) for text in NUMBER.findall(content))
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield float(content)


def data_set(name):
    """Numbers of one data set, and a column of few levels."""
    if name == "wine":
        wine = load_wine(as_frame=True)
        return wine.data.iloc[:, :4], wine.target
    if name == "diabetes":
        diabetes = load_diabetes(as_frame=True)
        return diabetes.data[["bmi", "bp", "s5"]].assign(target=diabetes.target), diabetes.data.sex.gt(0).astype(int)
    adult = Path(os.environ.get("LEAKBOUND_DATA", "")) / "adult.parquet"
    if "LEAKBOUND_DATA" in os.environ and adult.exists():
        frame = pd.read_parquet(adult).iloc[:400]
        numbers = frame.select_dtypes("number").iloc[:, :3].astype(float)
        return numbers, frame.select_dtypes(exclude="number").iloc[:, 0].astype(str)
    cancer = load_breast_cancer(as_frame=True)
    return cancer.data.iloc[:, :3], cancer.target


def exact_statistics(frame, cut):
    """What an owner must not publish by accident, of all records."""
    x = frame.to_numpy(float)
    totals, squares = x.sum(axis=0), x.T @ x
    coefficients = np.linalg.lstsq(np.c_[np.ones(len(x)), x[:, 1:]], x[:, 0], rcond=None)[0]
    parts = [
        x.mean(axis=0), totals, x.min(axis=0), x.max(axis=0), x.std(axis=0), x.std(axis=0, ddof=1), squares,
        coefficients,
        squares / len(x), np.cov(x, rowvar=False), np.cov(x, rowvar=False, ddof=0), np.ptp(x, axis=0),
        np.quantile(x, [0.25, 0.5, 0.75], axis=0), np.bincount(np.digitize(x[:, 0], cut)),
        x.std(axis=0) / np.sqrt(len(x) // 2), x.std(axis=0, ddof=1) / np.sqrt(len(x) // 2),
    ]  # fmt: skip
    found = np.concatenate([np.ravel(part) for part in parts])
    return found[np.abs(found) > 1e-12]


@pytest.mark.by_day("table-wine")
@pytest.mark.parametrize("name", ["wine", nightly("adult"), pytest.param("diabetes", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("statistic", slow_but(STATISTICS, "mean", "histogram", "table"))
def test_no_published_number_is_an_exact_statistic(name, statistic):
    """To six digits, but for n, k, and small whole numbers, which any text holds."""
    frame, group = data_set(name)
    first = frame.columns[0]
    cut = [float(f"{edge:.2g}") for edge in np.quantile(frame[first], [0, 0.3, 0.6, 1])]
    cut = sorted({cut[0] * (0.9 if cut[0] > 0 else 1.1), *cut[1:-1], cut[-1] * 1.2})
    words, x, y, asked = {"fits": 100}, frame, None, statistic
    if statistic == "histogram":
        words = {"by": first, "set": {"edges": cut}}
    elif statistic == "ols":
        x, y = frame.iloc[:, 1:], frame[first]
    elif statistic == "own":
        asked, x = ends, frame[[first]]
    elif statistic == "table":
        words = {"by": "group", "levels": {"group": [*group.unique(), "9"]}}
        x = pd.DataFrame({"group": group})
    if name == "adult" and statistic in ("quantiles", "own"):  # ends and quartiles of whole numbers that never move
        words |= {"scale": 1e6}
    made = protect(asked, x, y, eta=0.1, unit="patient", **words, **QUICK)
    content = json.loads(made.to_json())
    Draft202012Validator(SCHEMA).validate(content)
    content.pop("sha256")  # hexadecimal digits, of which some read as numbers
    assert content["about"]["data"]["digest"] == ""
    page = made.to_html() if name == "wine" else ""  # its figures take longer than all the rest
    assert made.owner.about.data.digest not in made.to_json() + page
    exact = np.r_[exact_statistics(frame, np.array(cut[1:-1])), group.value_counts().to_numpy(float)]
    printed = content["about"]["certificate"]["noise"]
    computed = [*printed["rms"], printed["scale"], *(row["noise_std"] for row in content["about"]["values"])]
    seen = np.array([*numbers_of(content), *computed])
    public = {float(len(frame)), float(len(frame) // 2)}
    for number in seen:
        if number in public or (number == int(number) and abs(number) < 100):
            continue
        assert not np.isclose(number, exact, rtol=SIX_DIGITS, atol=0).any(), number


class TestTables:
    FRAME = pd.DataFrame({"sector": ["care"] * 373 + ["trade"] * 360 + ["industry"] * 256 + ["mining"] * 11})
    LEVELS = ("care", "trade", "industry", "mining", "fishing")

    @pytest.mark.slow
    def test_an_empty_cell_gets_noise_like_all_others(self):
        made = protect("table", self.FRAME, by="sector", levels={"sector": self.LEVELS}, eta=0.05, **QUICK)
        rows = made.certificate.about.values
        assert [row.name for row in rows] == [f"count of {level}" for level in self.LEVELS]
        assert len({row.noise_std for row in rows}) == 1
        assert rows[-1].noise_std > 0
        assert rows[-1].value != 0

    @pytest.mark.slow
    def test_the_counts_of_the_file_are_nowhere_in_what_is_published(self):
        """Their sampling error gave them away: n p (1 - p)."""
        made = protect("table", self.FRAME, by="sector", levels={"sector": self.LEVELS}, eta=0.05, **QUICK)
        assert all(row.sampling_std is None for row in made.certificate.about.values)
        for count in (373, 360, 256):
            assert not re.search(rf"\b{count}\b", made.to_json().replace(" ", ""))
        error = [row.sampling_std for row in made.owner.about.values]
        assert error[0] == pytest.approx(500 * np.sqrt(0.373 * 0.627 * 1000 / 999 / 500), rel=1e-9)

    def test_values_that_were_not_declared_are_refused_with_what_they_are(self):
        line = "column sector holds values that are not among its declared levels: 'mining' (11); declare them too, or"
        with pytest.raises(ValueError, match=re.escape(line)):
            protect("table", self.FRAME, by="sector", levels={"sector": self.LEVELS[:3]}, eta=0.05, **QUICK)

    @pytest.mark.parametrize("levels", [["care", "trade"], ["care", "trade", "nan"]])
    def test_missing_values_are_named_as_such(self, levels):
        """No level can be declared for them, also not as the text that pandas shows."""
        frame = pd.DataFrame({"sector": ["care", "trade", None, None, "care", "mining"]})
        missing = (
            "2 records have no sector (empty cells): fill it in the file, for example with 'unknown', and declare that"
        )
        words = {"by": "sector", "eta": 0.05, **QUICK}
        with pytest.raises(ValueError, match=f"'mining' \\(1\\); declare them too.*; {re.escape(missing)} level$"):
            protect("table", frame, levels={"sector": levels}, **words)
        with pytest.raises(ValueError, match=f"^{re.escape(missing)} level$"):
            protect("table", frame, levels={"sector": [*levels, "mining"]}, **words)

    @pytest.mark.parametrize("missing", [None, np.nan, pd.NaT])
    @pytest.mark.parametrize("is_frame", [True, False])
    def test_every_kind_of_missing_value(self, missing, is_frame):
        rows = pd.DataFrame({"x0": ["care", missing, "trade", "care"]}, dtype=object)
        table = rows if is_frame else rows.to_numpy()
        with pytest.raises(ValueError, match=r"^1 record has no x0 \(an empty cell\): fill it in the file"):
            Cells.declared(table, ["x0"], {"x0": ["care", "trade"]})

    @pytest.mark.parametrize(
        ("values", "levels", "labels"),
        [
            ([1, 2, 2, 1], ["1", "2", "3"], ["1", "2", "3"]),
            ([0.5, 2.0, 2.0, 0.5], ["0.5", "2"], ["0.5", "2"]),
            nightly([True, False, True, False], ["false", "true"], ["False", "True"]),
            nightly(["a", "b", "b", "a"], ["b", "a", " c"], ["b", "a", "c"]),
        ],
    )
    def test_levels_are_read_in_the_type_of_the_column(self, values, levels, labels):
        frame = pd.DataFrame({"x": values})
        found = calibrate("table", frame, by="x", levels={"x": levels}, eta=0.1, coupling="swap", **QUICK)
        assert found.noise is not None
        made = protect("table", frame, by="x", levels={"x": levels}, eta=0.1, scale=50.0, **QUICK)
        assert [row.name.removeprefix("count of ") for row in made.certificate.about.values] == labels

    @pytest.mark.parametrize(
        ("levels", "line"),
        [
            (["care", "care"], "the level 'care' of column sector is declared twice"),
            (
                ["x"],
                "column sector holds values that are not among its declared levels: 'care' (373), 'industry' (256), ",
            ),
        ],
    )
    def test_one_line_for_what_cannot_be(self, levels, line):
        with pytest.raises(ValueError, match=re.escape(line)):
            protect("table", self.FRAME, by="sector", levels={"sector": levels}, eta=0.05, **QUICK)

    def test_without_levels_nothing_is_published(self):
        with pytest.raises(ValueError, match="a table is published with the levels that you declare"):
            protect("table", self.FRAME, by="sector", eta=0.05, **QUICK)


class TestScale:
    @pytest.mark.slow
    def test_the_largest_value_is_not_in_the_scale(self):
        """One wage of 1,234,567 among many of 20: the scale that was printed gave its first six digits."""
        wages = np.r_[1_234_567.0, np.random.default_rng(0).normal(20, 2, 999)][:, None]
        printed = [
            protect("mean", wages + np.r_[move, np.zeros(999)][:, None], eta=0.05, **QUICK).noise.scale
            for move in (0.0, -2000.0)
        ]
        assert printed[0] == printed[1] == float(f"{printed[0]:.2g}")

    def test_a_declared_scale_is_taken_as_it_is_or_refused(self):
        rows = np.random.default_rng(0).normal(size=(120, 2))
        made = protect("mean", rows, eta=0.1, scale=0.173, **QUICK)
        assert made.noise.scale == 0.173
        assert made.certificate.about.certificate.noise.declared is True
        assert "was declared beforehand" in made.certificate.table(full=True)
        with pytest.raises(ValueError, match=r"this noise is proved to keep eta = 0.\d+ only, asked for 0.1"):
            protect("mean", rows, eta=0.1, scale=0.01, **QUICK)
        with pytest.raises(ValueError, match="scale has 3 numbers, the statistic 2: give one, or one for each"):
            protect("mean", rows, eta=0.1, scale=(1, 2, 3), **QUICK)
        with pytest.raises(ValueError, match="noise norm has one scale, got 2"):
            protect("mean", rows, eta=0.1, scale=(1, 2), noise="norm", **QUICK)
        each = protect("mean", rows, eta=0.1, scale=(0.2, 0.4), **QUICK)
        assert [row.noise_std for row in each.certificate.about.values] == [0.2, 0.4]

    def test_a_column_of_equal_values_is_not_published_exactly(self):
        rows = np.c_[np.random.default_rng(0).normal(size=60), np.full(60, 41.5)]
        line = "in every draw, so that it would be published exactly: mean of x1; leave it out, or declare a scale"
        with pytest.raises(ValueError, match=line):
            protect("mean", rows, eta=0.1, **QUICK)
        made = protect("mean", rows, eta=0.1, scale=0.5, **QUICK)
        assert made.value[1] != 41.5
        assert calibrate("mean", rows, eta=0.1, **QUICK).noise is not None

    @pytest.mark.slow
    def test_a_fitted_number_that_never_moves_is_not_published_exactly(self):
        rng = np.random.default_rng(0)
        rows = np.c_[rng.normal(size=60), np.where(np.arange(60) < 57, 40.0, rng.normal(size=60))]
        with pytest.raises(ValueError, match=r"it would be published exactly: .*x1.*; leave it out, or declare a"):
            protect("quantiles", rows, eta=0.2, set={"probabilities": [0.5]}, fits=200, **QUICK)
        made = protect("quantiles", rows, eta=0.2, set={"probabilities": [0.5]}, fits=200, scale=3.0, **QUICK)
        assert 40.0 not in made.value


def test_a_reader_with_all_records_can_check_the_certificate():
    """From the published JSON and the table alone: exact eta by all 924 draws, and by hand for every swap."""
    rows = np.random.default_rng(0).lognormal(size=(12, 1))
    made = protect("mean", rows, eta=0.1, coupling="swap", **QUICK)
    certificate = json.loads(made.to_json())["about"]["certificate"]
    noise = certificate["noise"]
    assert (noise["family"], noise["deviations"], certificate["k"]) == ("gaussian", None, 6)
    step = noise["grid"][0] * 6  # of the sum
    on_grid = np.rint(rows[:, 0] / step) * step
    moves = np.abs(on_grid[:, None] - on_grid) / 6
    eta = (ndtr(moves / (2 * noise["scale"])) - 0.5).sum(axis=1) / 11
    assert eta.max() <= certificate["eta"]
    member = all_subsets(12, 6)
    outputs = (member @ on_grid / 6)[:, None]
    assert len(member) == 924
    assert exact_eta(outputs, member, made.noise).max() <= certificate["eta"]


@pytest.mark.parametrize(("eta", "prior"), [(0.05, 0.5), (0.1, 0.2), (0.1, 0.8), (0.001, 0.5)])
def test_the_ceiling_is_what_the_promise_allows(eta, prior):
    """The line on which the guess of an attacker is right with the promised probability, cut at 1."""
    fpr = np.linspace(0, 1, 21)[:-1]
    line = (max(prior, 1 - prior) + eta - (1 - prior) * (1 - fpr)) / prior
    np.testing.assert_allclose(promised_curve(eta, prior).tpr_at(fpr), np.minimum(line, 1), atol=1e-12)


def test_a_calibration_is_the_owners():
    report = calibrate("mean", np.random.default_rng(0).normal(size=(60, 1)), eta=0.1, **QUICK).certificate
    assert report.about.audience == "owner"
    assert "for the owner of the data alone" in " ".join(report.table(full=True).split())
    assert "Not for publication" in report.to_html()
