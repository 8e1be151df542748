"""The designs of all records through `protect`: what is refused, what stays the same, and what is published."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from leakbound.core.grid import Grid
from leakbound.plans.plan import read
from leakbound.plans.promises import NAME_OF, Anyone, Drawn, File
from leakbound.plans.protects import NO_CHOICE, NO_GROUP, CalibrationPlan, ProtectionPlan
from leakbound.protection import Protected, of_all
from leakbound.protection.ledger.budget import BudgetLedger as ReleaseLedger
from leakbound.protection.setting.prepared import Prepared
from leakbound.protection.setting.request import arrays_request, file_request
from leakbound.protection.setting.units import Units
from leakbound.reports import Report
from leakbound.runtime.observe import Execution
from tests.promising import (
    calibrate,
    calibrate_file,
    declare,
    declare_file,
    design_table,
    promising,
    protect,
    protect_file,
)

pytestmark = pytest.mark.usefixtures("as_users_run_it")  # many releases; tests/theory executes the shapes
HERE = Execution(n_jobs=1)
ROWS = np.random.default_rng(0).normal(size=(24, 2))
WORDS: Mapping[str, dict[str, Any]] = {
    "leave-one-out": {"promise": File(games=0)},
    "dp": {"promise": Anyone(ranges={"x0": (-2, 2), "x1": (-2, 2)})},
}
DECLARED = [Anyone(ranges={"x0": (-2, 2), "x1": (-2, 2)})]
every_design = pytest.mark.parametrize("design", WORDS)
WHOLE = (
    "the whole budget was given to the first query: this one is refused; a next time, budget = 0.1 with eta = 0.05 "
    "leaves room for more"
)


def release(design: str, ledger: Path, statistic: Any = "mean", x: Any = ROWS, **more: Any) -> Protected:
    words = promising({"eta": 0.05, **WORDS[design], **more})
    return protect(statistic, x, words.pop("y", None), ledger=ledger, n_jobs=1, **words)


def both(made: Protected) -> tuple[str, str]:
    return made.to_json(), made.owner.to_json()


def refused(line: str) -> Any:
    """The whole line."""
    return pytest.raises(ValueError, match=f"^{re.escape(line)}$")


def to_twelve_digits(facts: Any) -> Any:
    """The sums of the same numbers in another order: the columns of a declared table lie otherwise in memory."""
    return json.loads(facts.model_dump_json(), parse_float=lambda text: float(f"{float(text):.12g}"))


def fails_without_the_largest(x: Any) -> np.ndarray:
    if np.max(x) < 9:
        raise ValueError("no")
    return np.mean(x, axis=0)


def fails_without_a_positive_one(x: Any) -> np.ndarray:
    """Without each of four of eight."""
    return np.mean(x, axis=0) if (np.asarray(x) > 0).sum() == 4 else np.full(1, np.nan)


def ends(x: Any) -> np.ndarray:
    return np.array([np.min(x), np.max(x)])


def never(x: Any) -> np.ndarray:
    raise ValueError("no")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def without_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is released is the exact value, and not rounded."""

    def exact(ledger: Any, prepared: Prepared, value: np.ndarray, digest: str) -> np.ndarray:
        return np.array(value, dtype=float) / prepared.divisor

    def unrounded(value: np.ndarray, rms: np.ndarray) -> np.ndarray:
        return value

    monkeypatch.setattr(of_all, "_with_noise", exact)
    monkeypatch.setattr(of_all, "rounded_to_rms", unrounded)


# ---------------------------------------------------------------------------------------------------------------------
# The choice

# Fields that belong to some promises alone, and keywords that do.
FOREIGN = [
    ("anyone", "k=3", "anyone has no k; it has: ranges, others, delta"),
    ("anyone", "noise=gaussian", "anyone has no noise; it has: ranges, others, delta"),
    ("file", "about=average", "file has no about; it has: noise, scale, allow_exact, at_most, games, confidence, seed"),
    ("file", "others=town", "file has no others; it has: noise, scale, allow_exact, at_most, games, confidence, seed"),
    ("drawn", "allow_exact=true", "drawn has no allow_exact; it has: k, about, noise, scale, coupling, fits, games, "),
    ("drawn", "at_most=tpr@0.1=0.2", "drawn has no at_most; it has: k, about, noise, scale, coupling, fits, games, "),
]
NO_WORDS = [
    ("anyone", {"group": "person"}, f"group belongs to promise file, got promise anyone; {NO_GROUP['dp']}"),
    ("drawn", {"group": "person"}, f"group belongs to promise file, got promise drawn; {NO_GROUP['half']}"),
    ("drawn", {"budget": 0.2}, "budget belongs to promise anyone or file, got promise drawn"),
]


class TestChoice:
    @pytest.mark.parametrize("words", [{"promise": "file"}, {"promise": Anyone(ranges={"a": (0, 1)})}])
    def test_no_column_is_left(self, tmp_path, words) -> None:
        """An empty release would be certified, and say nothing."""
        file = tmp_path / "people.csv"
        pd.DataFrame(ROWS, columns=["a", "b"]).to_csv(file, index=False)
        with pytest.raises(ValueError, match="no column is left for the statistic: drop fewer"):
            protect_file(data=file, eta=0.05, drop=["a", "b"], **words)
        with pytest.raises(ValueError, match="no column is left for the statistic: drop fewer"):
            protect("mean", pd.DataFrame(index=range(5)), eta=0.05, ledger=tmp_path / "l", **words)
        assert [each.name for each in tmp_path.iterdir()] == ["people.csv"]

    def test_without_one_nothing_is_done(self, tmp_path) -> None:
        path, file = tmp_path / "ledger", tmp_path / "people.csv"
        pd.DataFrame(ROWS, columns=["a", "b"]).to_csv(file, index=False)
        words = {"data": file, "eta": 0.05}
        for call in (
            lambda: protect("mean", ROWS, eta=0.05, ledger=path),
            lambda: calibrate("mean", ROWS, eta=0.05),
            lambda: declare("mean", ROWS, eta=0.05, ledger=path),
            lambda: protect_file(**words),
            lambda: calibrate_file(**words),
            lambda: declare_file(**words, ledger=path),
        ):
            with refused(NO_CHOICE):
                call()
        assert [each.name for each in tmp_path.iterdir()] == ["people.csv"]
        assert "\n" not in NO_CHOICE

    @pytest.mark.parametrize(("promise", "field", "line"), FOREIGN)
    def test_a_promise_has_its_own_fields_alone(self, promise, field, line) -> None:
        with pytest.raises(ValueError, match=f"^protect: promise: {re.escape(line)}"):
            read(ProtectionPlan, {"data": "people.csv", "eta": 0.05, "promise": f"{promise},{field}"}, "protect")

    @pytest.mark.parametrize(("promise", "words", "line"), NO_WORDS)
    def test_what_makes_no_sense_under_a_promise_is_refused(self, promise, words, line) -> None:
        with pytest.raises(ValueError, match=f"^protect: {re.escape(line)}$"):
            read(ProtectionPlan, {"data": "people.csv", "eta": 0.05, "promise": promise, **words}, "protect")

    def test_a_keyword_of_before_says_the_new_one(self, ledger) -> None:
        with pytest.raises(TypeError, match=r"^protect takes no k; use promise=Drawn\(k=...\)$"):
            protect("mean", ROWS, eta=0.05, promise="file", ledger=ledger, k=3)  # pyright: ignore[reportCallIssue]
        with pytest.raises(TypeError, match=r"^file has no k; it has: noise, scale, "):
            File(k=3)  # pyright: ignore[reportCallIssue]
        assert not ledger.exists()

    @every_design
    def test_arrays_need_a_ledger(self, design) -> None:
        with refused(
            f"promise {NAME_OF[design]} needs a ledger = FILE, which is kept for the life of the data: it remembers "
            "who is left out and what was released"
        ):
            protect("mean", ROWS, eta=0.05, **WORDS[design])

    @every_design
    def test_what_the_owner_signs_for_is_assumed(self, ledger, design) -> None:
        made = release(design, ledger)
        assumed = {term.id: term for term in made.certificate.about.certificate.assumptions}
        signed = {"nothing_outside_the_ledger", "row_is_a_unit", "limits_beforehand", "ledger_not_rolled_back"}
        assert signed <= assumed.keys()
        text = " ".join(made.certificate.table(full=True).split())
        assert "No statistic of the same records is published without noise, or from another ledger" in text
        assert "Each row of the file is one record" in text

    @pytest.mark.slow
    def test_the_table_of_designs_draws_nothing(self, tmp_path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        table = design_table("mean", ROWS, eta=0.05, compare=[*DECLARED, Drawn(fits=100)])
        assert (table.facts.recommended, table.facts.why) == ("dp", "ranges")
        chosen = [row.name for row in table.facts.designs if not row.method]
        assert chosen == ["dp", "leave-one-out", "half"]
        others = [(row.name, row.method) for row in table.facts.designs if row.method]
        assert others == [("half", "pac_least_noise"), ("half", "izzo_gamma")]
        assert "Estimated" not in repr(table)
        median = design_table("quantiles", ROWS, eta=0.05, compare=[*DECLARED, Drawn(fits=100)])
        assert [row.is_estimated for row in median.facts.designs if row.errors and row.name == "half"] == [True] * 3
        assert "draws of half of the records, and not certified: drawn, Izzo et al." in " ".join(repr(median).split())
        assert list(tmp_path.iterdir()) == []
        shown = repr(table)
        assert "in standard errors of the statistic of all records" in " ".join(shown.split())
        (line,) = [line for line in shown.splitlines() if line.startswith(" file ")]
        errors = [float(cell) for cell in line.split()[1:]]
        assert errors == pytest.approx(np.divide(table.facts.designs[1].errors, table.facts.standard_errors), rel=0.05)

    def test_the_noise_of_other_methods_by_hand(self) -> None:
        """A mean of half: its sampling variance, and what each method adds to it."""
        x, eta = np.random.default_rng(2).normal(size=(200, 1)), 0.05
        table = design_table("mean", x, eta=eta, compare=Drawn(fits=100))
        errors = {row.method: row.errors[0] for row in table.facts.designs if row.name == "half"}
        sampling = x.var(ddof=1) * (1 / 100 - 1 / 200)
        # a guess that is right in 55 of 100 cases tells so many nats of a fair coin; log(1 + v/e)/2 of a Gaussian
        nats = 0.55 * np.log(1.1) + 0.45 * np.log(0.9)
        assert errors["pac_least_noise"] == pytest.approx(np.sqrt(sampling + sampling / np.expm1(2 * nats)))
        # in one dimension their noise is Laplace noise of scale (6.16/eta)^2 deviations
        assert errors["izzo_gamma"] == pytest.approx(np.sqrt(sampling * (1 + 2 * (6.16 / eta) ** 4)))

    def test_discrete_noise_on_counts_by_hand(self) -> None:
        """A replaced record goes from one cell to another: P(X - X' in {0, 1}) = 2 eta."""
        towns = np.random.default_rng(0).choice(["a", "b", "c"], size=300)
        levels = {"town": ["a", "b", "c", "d"]}
        table = design_table(
            "table", pd.DataFrame({"town": towns}), by="town", levels=levels, eta=0.05, compare=Drawn(fits=50)
        )
        (errors,) = [row.errors for row in table.facts.designs if row.method == "discrete_gaussian"]
        scale = errors[0]  # at this size the deviation is the parameter
        x = np.arange(-200, 201)
        chance = np.exp(-np.square(x / scale) / 2)
        chance /= chance.sum()
        moved = chance @ chance + chance[1:] @ chance[:-1]
        assert moved == pytest.approx(0.1, rel=1e-6)
        assert list(errors) == pytest.approx([scale] * 4)
        assert [row.method for row in table.facts.designs[:2]] == ["", "discrete_gaussian"]
        assert "anyone, discrete noise" in repr(table)

    @pytest.mark.by_day("dp")
    @pytest.mark.parametrize("design", WORDS)
    def test_with_compare_the_owner_sees_what_every_design_costs(self, ledger, design) -> None:
        made = release(design, ledger, compare=Drawn(fits=100))
        declared = DECLARED if design == "dp" else []
        table = design_table("mean", ROWS, eta=0.05, compare=[*declared, Drawn(fits=100)])
        assert to_twelve_digits(made.owner.about.designs) == to_twelve_digits(table.facts)
        assert made.certificate.about.designs is None
        assert "What each promise would have cost" in made.owner.to_html()
        assert "What each promise would have cost" not in made.to_html()
        without = release(design, ledger)
        # Under this promise the noise of a count may leave a group without a mean: nan, in both
        np.testing.assert_array_equal(without.value, made.value)
        assert without.owner.about.designs is None


# ---------------------------------------------------------------------------------------------------------------------
# The same bytes, and independent noise


@every_design
class TestTheSameRequest:
    def test_gives_the_same_bytes(self, ledger, design) -> None:
        first = release(design, ledger)
        kept = ledger.read_bytes()
        again = release(design, ledger)
        assert both(first) == both(again)
        assert ledger.read_bytes() == kept
        assert first.value.tobytes() == again.value.tobytes()

    @pytest.mark.by_day("dp")
    def test_gives_the_same_certificate_after_others(self, ledger, design) -> None:
        """Another query, and another version of the data: what was published stays as it was."""
        first = release(design, ledger, budget=0.4)
        release(design, ledger, eta=0.06)
        release(design, ledger, x=ROWS[2:], eta=0.06)
        assert release(design, ledger, budget=0.4).to_json() == first.to_json()

    def test_is_the_same_for_another_order_of_the_records(self, ledger, design) -> None:
        """The bytes for publication are; the owner's have a digest of the data as they are."""
        order = np.random.default_rng(1).permutation(len(ROWS))
        first = release(design, ledger)
        again = release(design, ledger, x=ROWS[order])
        assert again.to_json() == first.to_json()
        assert len(ReleaseLedger.open(ledger, design).releases) == 1

    @pytest.mark.usefixtures("ledgers_apart")
    def test_has_other_noise_in_another_ledger(self, tmp_path, design) -> None:
        one, other = (release(design, tmp_path / name) for name in "ab")
        assert one.noise.scale == other.noise.scale
        assert (one.value != other.value).any()  # one of two is equal in a run of some 2,000: both lie on a grid


@pytest.mark.parametrize(
    ("more", "exact"),
    [
        ({"statistic": "sum"}, ROWS.clip(-2, 2).sum(axis=0)),
        ({"x": ROWS[:20]}, ROWS[:20].clip(-2, 2).mean(axis=0)),
        ({"ranges": ("x0=-1:1", "x1=-1:1")}, ROWS.clip(-1, 1).mean(axis=0)),
    ],
    ids=["statistic", "data", "ranges"],
)
def test_an_older_release_is_not_taken_for_a_new_one(ledger, without_draw, more, exact) -> None:
    """What is released and printed is the new one's, also where both have the same names."""
    older = release("dp", ledger, budget=0.4)
    made = release("dp", ledger, budget=0.4, **more)
    about = made.certificate.about
    assert made.value[:2] == pytest.approx(exact, rel=1e-4)
    assert [row.value for row in about.values][:2] == pytest.approx(exact, rel=0.03)  # as many digits as the noise has
    assert about.certificate.entry.number == 2
    assert about.certificate.entry.digest != older.certificate.about.certificate.entry.digest


WIDE = np.random.default_rng(1).uniform(-1, 1, size=(12, 100))
OTHER_REQUESTS: Mapping[str, dict[str, Any]] = {
    "eta": {"eta": 0.051},
    "statistic": {"statistic": "sum"},
    "data": {"x": np.vstack([WIDE[:-1], WIDE[-1:] / 2])},
    "family": {"noise": "gaussian_isotropic"},
    "drop": {"title": "the same request under another title"},
}


@pytest.mark.by_day("dp-drop")
@pytest.mark.parametrize(
    ("design", "name"),
    [(design, name) for design in WORDS for name in OTHER_REQUESTS
     if name != "family" or design == "leave-one-out"],
)  # fmt: skip
def test_another_request_has_independent_noise(ledger, design, name) -> None:
    """Correlation of 100 coordinates: independent ones are beyond 1/2 once in two million keys."""
    ranges = tuple(f"x{column}=-1:1" for column in range(100))
    common = {"budget": 0.45, "statistic": "mean"}
    other = OTHER_REQUESTS[name]
    if design == "dp":  # whose means are made of sums, which are left out for twelve records
        common |= {"statistic": "sum", "ranges": ranges}
        other = {"ranges": ("x0=-2:1", *ranges[1:])} if name == "statistic" else other
    drawn = []
    for more in ({}, other):
        asked = {"x": WIDE, **common, **more}
        made = release(design, ledger, **asked)
        rows = asked["x"]
        if design == "leave-one-out":
            rows = np.delete(rows, left_out_of(ledger, rows), axis=0)
        exact = rows.sum(axis=0) if asked["statistic"] == "sum" else rows.mean(axis=0)
        drawn.append((made.value - exact) / np.array(made.certificate.about.certificate.noise.rms))
    same = name == "drop"
    correlation = np.corrcoef(drawn)[0, 1]
    assert correlation == pytest.approx(1, abs=1e-6) if same else abs(correlation) < 0.5
    assert all(0.7 < each.std() < 1.3 for each in drawn)  # 100 normal numbers: beyond 4 standard errors


def left_out_of(path: Path, x: np.ndarray) -> int:
    """The row that is left out, by its content."""
    words = {"eta": 0.05, "promise": "file"}
    names = Units.of(arrays_request(ProtectionPlan, "mean", x, None, words, HERE)).names
    return ReleaseLedger.open(path, "leave-one-out").left_out(names)


# ---------------------------------------------------------------------------------------------------------------------
# Who is left out


N = 40


def people(seed: int = 2) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "person": [f"p{number:02}" for number in range(N)],
            "wage": rng.lognormal(3, 1, N).round(2),
            "hours": rng.integers(1, 9, N),
            "partner": rng.random(N) < 0.5,
            "town": rng.choice(["Bonn", "Köln, Nord"], N),
        }
    )


class TestTheSameUnit:
    @pytest.mark.by_day("None")
    @pytest.mark.parametrize("id", [None, "person"])
    def test_is_left_out_of_every_form_of_the_data(self, tmp_path, id, without_draw) -> None:
        """Another order, format and choice of columns; with an id also corrected values and missing columns."""
        frame = people()
        shuffled = frame.sample(frac=1, random_state=3)
        forms: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
            "people.csv": (frame, {}),
            "order.csv": (shuffled, {}),
            "people.parquet": (frame, {}),
            "columns.csv": (frame[["town", "partner", "wage", "hours", "person"]], {"drop": ["hours"]}),
            "semicolon.csv": (frame, {"separator": ";", "decimal": ","}),
        }
        if id is not None:
            corrected = frame.assign(wage=frame.wage + 1, hours=3)
            forms |= {"few.csv": (shuffled[["wage", "person"]], {}), "corrected.csv": (corrected, {})}
        left_out, path = set(), tmp_path / "ledger"
        for name, (table, words) in forms.items():
            if name.endswith("parquet"):
                table.to_parquet(tmp_path / name)
            else:
                table.to_csv(tmp_path / name, index=False, sep=words.get("separator", ","),
                             decimal=words.get("decimal", "."))  # fmt: skip
            fields = {
                "data": tmp_path / name,
                "eta": 0.05,
                "promise": "file,games=0,scale=100",
                "ledger": path,
                "id": id,
            }
            unused = ["hours", "partner", "town", *([] if id else ["person"])]
            drop = [column for column in unused if column in table]
            asked = {**fields, **words, "drop": sorted(set(drop)), "budget": 0.45}
            made = protect_file(**asked)
            request = file_request(read(ProtectionPlan, asked, "protect"), HERE)
            names = Units.of(request).names
            place = ReleaseLedger.open(path, "leave-one-out").left_out(names)
            left_out.add(table.person.iloc[place])
            assert made.value[0] == pytest.approx(table.wage.drop(table.index[place]).mean(), abs=100 / 4096)
            assert not id or ReleaseLedger.open(path, "leave-one-out").left_out(table.person.tolist()) == place
        assert len(left_out) == 1

    def test_a_row_that_goes_changes_it_if_it_was_that_one(self, tmp_path) -> None:
        frame, path = people().set_index("person", drop=False), tmp_path / "ledger"
        words = {"eta": 0.05, "promise": File(games=0), "id": "person", "budget": 0.3, "ledger": path}
        numbers = frame[["person", "wage"]]
        protect("mean", numbers, **words)
        opened = ReleaseLedger.open(path, "leave-one-out")
        out = frame.person.iloc[opened.left_out(frame.person.tolist())]
        without, other = numbers.drop(index=out), numbers.drop(index=next(name for name in frame.index if name != out))
        assert opened.left_out(without.person.tolist()) is not None
        assert other.person.iloc[opened.left_out(other.person.tolist())] == out
        made = protect("mean", other, **promising({**words, "scale": 1000.0})).certificate.about.certificate
        (term,) = [each for each in made.assumptions if each.id == "versions_differ"]
        assert term.values["difference"] == pytest.approx(1 / N)

    def test_persons_are_left_out_with_all_rows(self, ledger, without_draw) -> None:
        frame = pd.DataFrame({"person": list("aabbbcdd"), "wage": [1.0, 2, 3, 4, 5, 60, 7, 8]})
        made = protect("mean", frame, eta=0.1, promise=File(games=0), group="person", ledger=ledger)
        opened = ReleaseLedger.open(ledger, "leave-one-out")
        out = "abcd"[opened.left_out(list("abcd"))]
        scale = made.noise.scale
        assert made.value[0] == pytest.approx(frame.wage[frame.person != out].mean(), abs=scale / 4096)
        about = made.certificate.about
        # how many rows each has is theirs
        assert (about.certificate.k, about.certificate.n, about.data.records) == (3, 4, 4)
        assert made.owner.about.data.records == 8
        assert opened.releases[0].hashes.shape == (4, 16)

    def test_an_id_of_several_rows_is_no_id(self, ledger) -> None:
        frame = pd.DataFrame({"person": list("aab"), "wage": [1.0, 2, 3]})
        words = {"eta": 0.1, "promise": "file", "ledger": ledger}
        alike = "person names several records alike: 'a' names 2 records; "
        with refused(f"{alike}give it as group (--group person) instead of id if they belong to one person"):
            protect("mean", frame, id="person", **words)
        with refused("id and group name a column of a frame; 'name' is none"):
            protect("mean", frame, id="name", **words)
        assert not ledger.exists()

    def test_differential_privacy_needs_one_row_for_each_person(self, ledger) -> None:
        """Neither id nor group is advised, because that design takes no group."""
        frame = pd.DataFrame({"person": list("abbbcc"), "wage": [1.0, 2, 3, 4, 5, 6]})
        words = {"eta": 0.1, "promise": Anyone(ranges={"wage": (0, 80)}), "ledger": ledger}
        advice = (
            "under promise anyone a person is one row: aggregate the rows of each person to one first, and remove "
            "duplicates"
        )
        with refused(f"person names several records alike: 'b' names 3 records, and 1 more repeat; {advice}"):
            protect("mean", frame, id="person", **words)
        with refused(f"protect: group belongs to promise file, got promise anyone; {advice}"):
            protect("mean", frame, group="person", **words)
        assert not ledger.exists()

    @pytest.mark.parametrize("naming", ["id", "group"])
    def test_a_number_is_the_same_name_in_every_type(self, tmp_path, naming) -> None:
        """A column of whole numbers becomes floats where one was missing in a version of the file; text stays text."""
        numbers = [101, 102, 7]
        forms: list[Any] = [
            numbers,
            [float(number) for number in numbers],
            np.array(numbers, dtype=np.float32),
            pd.array(numbers, dtype="Int64"),
            np.array(numbers, dtype=object),
            np.array([101.0, 102, 7], dtype=object),
            ["101", "102", "7"],
        ]
        words = {"eta": 0.3, "promise": "file", naming: "person"}
        for form in forms:
            frame = pd.DataFrame({"person": form, "wage": [1.0, 2.0, 4.0]})
            request = arrays_request(ProtectionPlan, "mean", frame, None, words, HERE)
            assert sorted(Units.of(request).ids) == ["101", "102", "7"]
            frame.to_csv(tmp_path / "people.csv", index=False)
            of_file = file_request(read(ProtectionPlan, {"data": tmp_path / "people.csv", **words}, "protect"), HERE)
            assert sorted(Units.of(of_file).ids) == ["101", "102", "7"]
        frame = pd.DataFrame({"person": ["101.0", "0101", "7"], "wage": [1.0, 2.0, 4.0]})
        request = arrays_request(ProtectionPlan, "mean", frame, None, words, HERE)
        assert sorted(Units.of(request).ids) == ["0101", "101.0", "7"]
        fractions = pd.DataFrame({"person": [0.5, 1e300, -3.0], "wage": [1.0, 2.0, 4.0]})
        request = arrays_request(ProtectionPlan, "mean", fractions, None, words, HERE)
        assert sorted(Units.of(request).ids) == sorted(["0.5", str(int(1e300)), "-3"])

    @pytest.mark.parametrize("naming", ["id", "group"])
    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA, "", "  "])
    def test_a_missing_identifier_is_refused(self, tmp_path, ledger, naming, missing) -> None:
        frame = pd.DataFrame({"person": pd.Series(["a", missing, "c"], dtype=object), "wage": [1.0, 2.0, 4.0]})
        frame.to_csv(tmp_path / "people.csv", index=False)
        words = {"eta": 0.3, "promise": "file", naming: "person", "ledger": ledger}
        for call in (
            lambda: protect("mean", frame, **words),
            lambda: protect_file(data=tmp_path / "people.csv", **words),
        ):
            with pytest.raises(ValueError, match=r"^(id|person) is missing at 1 points, first at point 1$"):
                call()
        assert not ledger.exists()

    @pytest.mark.slow
    def test_every_unit_is_left_out_now_and_then(self, tmp_path, without_draw) -> None:
        """Of 3 records, 24 ledgers: for one choice of seeds in 5,000 one of them would never be."""
        rows = np.array([[0.0], [1.0], [5.0]])
        words = {"eta": 0.2, "promise": File(games=0)}
        values = [
            protect("sum", rows, ledger=tmp_path / str(seed), insecure_seed=seed, **words).value[0].round(1)
            for seed in range(24)
        ]
        assert {round(value) for value in values} == {1, 5, 6}


# ---------------------------------------------------------------------------------------------------------------------
# The budget


class TestBudget:
    def test_it_is_that_of_the_first_query_unless_given(self, ledger) -> None:
        first = release("leave-one-out", ledger)
        assert first.certificate.about.certificate.entry.budget == 0.05
        with refused(WHOLE):
            release("leave-one-out", ledger, "sum")
        with refused(WHOLE):
            release("leave-one-out", ledger, eta=0.01)
        assert len(ReleaseLedger.open(ledger, "leave-one-out").releases) == 1

    def test_so_it_is_under_differential_privacy(self, ledger) -> None:
        release("dp", ledger)
        with refused("nothing is left of the budget of 0.05"):
            release("dp", ledger, "sum")

    @pytest.mark.parametrize(("design", "first", "second"), [("leave-one-out", 0.05, 0.03), ("dp", 0.05, 0.05)])
    def test_a_larger_one_has_room(self, ledger, design, first, second) -> None:
        release(design, ledger, eta=first, budget=0.1)
        made = release(design, ledger, "sum", eta=second)
        entry = made.certificate.about.certificate.entry
        assert (entry.number, entry.budget) == (2, 0.1)
        joint = {each.release: each.value for each in made.owner.findings if each.quantity == "eta"}
        assert joint["joint"] == 0.1
        assert 0.05 < joint["spent"] <= 0.1
        if design == "dp":  # squares of mu add up
            assert joint["spent"] == pytest.approx(norm.cdf(norm.ppf(0.55) * np.sqrt(2)) - 0.5)

    def test_a_query_that_does_not_fit_is_told_how_much_noise_would(self, ledger) -> None:
        release("leave-one-out", ledger, budget=0.1, eta=0.09)
        with pytest.raises(ValueError, match=r"was not declared .* and needs [\d.]+ times its noise to fit") as error:
            release("leave-one-out", ledger, "sum", eta=0.05, noise="gaussian_isotropic")
        factor = float(re.findall(r"needs ([\d.]+) times", str(error.value))[0])
        scale = calibrate("sum", ROWS, eta=0.05, promise=File(noise="gaussian_isotropic", games=0)).noise.scale
        with pytest.raises(ValueError, match=r"needs 1\.0[0-9]* times its noise"):
            release("leave-one-out", ledger, "sum", scale=scale * factor / 1.01)
        made = release("leave-one-out", ledger, "sum", scale=scale * factor * 1.0001)
        assert made.certificate.about.certificate.entry.number == 2

    def test_a_declared_query_may_come_in_another_order_of_the_records(self, ledger) -> None:
        words = {"eta": 0.05, "ledger": ledger, **WORDS["leave-one-out"]}
        declare("mean", ROWS, **words)
        assert protect("mean", ROWS[::-1], **words).certificate.about.certificate.entry.declared == 1
        assert ReleaseLedger.open(ledger, "leave-one-out").releases[0].declared

    def test_data_that_are_shifted_are_other_data(self, ledger) -> None:
        """Whoever is left out, the values differ by as much as before; a release of both is not one of the same."""
        frame = people()[["person", "wage"]]
        words = {"eta": 0.05, "ledger": ledger, "id": "person", "budget": 0.4, **WORDS["leave-one-out"]}
        first = protect("mean", frame, **words)
        second = protect("mean", frame.assign(wage=frame.wage + 64), **words)
        assert first.noise.scale == second.noise.scale
        assert second.certificate.about.certificate.entry.number == 2

    @pytest.mark.by_day("order0")
    @pytest.mark.parametrize("order", [("mean", "sum"), ("sum", "mean")])
    def test_declared_queries_are_released_in_any_order(self, ledger, order) -> None:
        words = {"eta": 0.05, "budget": 0.1, "ledger": ledger, **WORDS["leave-one-out"]}
        for number, statistic in enumerate(("mean", "sum"), 1):
            assert declare(statistic, ROWS, **words) == f"{ledger}: {number} declared, 0 released"
        with refused(f"the query was declared in {ledger} already"):
            declare("mean", ROWS, **words)
        made = [protect(statistic, ROWS, **words) for statistic in order]
        entries = [each.certificate.about.certificate.entry for each in made]
        assert [(entry.number, entry.declared) for entry in entries] == [(1, 2), (2, 2)]
        kept = ReleaseLedger.open(ledger, "leave-one-out")
        assert [each.declared for each in kept.releases] == [True, True]
        assert kept.spent() <= 0.1
        with refused(f"2 releases of {ledger} came before: a query is declared before the first output"):
            declare("quantiles", ROWS, **words)
        assert protect(order[0], ROWS, **words).to_json() == made[0].to_json()

    @pytest.mark.usefixtures("ledgers_apart")
    def test_the_same_declared_query_costs_less_than_another(self, tmp_path) -> None:
        """Declared pair by pair, mean and sum are one number twice: more of the budget is left for others."""
        reserves = []
        for name in ("declared", "not"):
            path = tmp_path / name
            words = {"eta": 0.03, "budget": 0.1, "ledger": path, **WORDS["leave-one-out"]}
            if name == "declared":
                for statistic in ("mean", "sum"):
                    declare(statistic, ROWS, **words)
            protect("mean", ROWS, **words)
            reserves.append(ReleaseLedger.open(path, "leave-one-out").reserve)
        assert 0 < reserves[0] < reserves[1]

    def test_other_noise_than_declared_is_refused(self, ledger) -> None:
        words = {"eta": 0.05, "ledger": ledger, **WORDS["leave-one-out"]}
        scale = calibrate("mean", ROWS, eta=0.05, promise=File(noise="gaussian_isotropic", games=0)).noise.scale
        declare("mean", ROWS, **promising({**words, "scale": scale}))
        with refused(WHOLE):
            protect("mean", ROWS, **promising({**words, "scale": scale * 1.1}))
        with refused(WHOLE):
            protect(
                "mean", ROWS, **promising({**words, "noise": "gaussian_isotropic"})
            )  # that it is the same scale was not declared
        assert protect("mean", ROWS, **promising({**words, "scale": scale})).noise.scale == scale

    def test_other_data_than_declared_are_refused(self, ledger) -> None:
        frame = people()[["person", "wage"]]
        words = {"eta": 0.05, "ledger": ledger, "id": "person", "promise": File(scale=50.0, games=0)}
        declare("mean", frame, **words)
        with refused(
            f"the values of this declared query are not those that {ledger} counted before the first output: data or "
            "noise have changed; ask it with another eta, as a query that was not declared"
        ):
            protect("mean", frame.assign(wage=frame.wage * 1.01), **words)
        with refused(
            f"the data have other units than when the queries of {ledger} were declared: start another ledger"
        ):
            protect("mean", frame.iloc[1:], **words)
        assert ReleaseLedger.open(ledger, "leave-one-out").releases == ()

    def test_what_is_declared_must_fit_together(self, ledger) -> None:
        words = {"eta": 0.05, "ledger": ledger, **WORDS["leave-one-out"]}
        for statistic in ("mean", "covariance"):
            declare(statistic, ROWS, **words)
        with pytest.raises(
            ValueError, match=r"^the declared queries together take 0\.0\d+ of a budget of 0\.05: start "
        ):
            protect("mean", ROWS, **words)

    @every_design
    def test_ledgers_of_another_promise_budget_or_seed(self, tmp_path, ledger, design) -> None:
        release(design, ledger, budget=0.2)
        with refused(f"{ledger} has a budget of 0.2, fixed by its first release; got 0.3"):
            release(design, ledger, budget=0.3)
        for other in WORDS:
            if other != design:
                with pytest.raises(
                    ValueError, match=rf"^these data were released under promise {NAME_OF[design]} \(release 1 "
                ):
                    release(other, ledger)
        with refused(f"{ledger} was begun with another seed, or with none: start another ledger"):
            release(design, ledger, insecure_seed=3)
        with pytest.raises(
            ValueError, match=rf"^these data were released under promise {NAME_OF[design]} \(release 1 "
        ):
            protect("mean", ROWS, eta=0.05, promise=Drawn(games=0), ledger=ledger)


# ---------------------------------------------------------------------------------------------------------------------
# Seeds


@every_design
class TestInsecureSeed:
    @pytest.mark.by_day("dp")
    def test_the_same_seed_gives_the_same_bytes(self, tmp_path, design) -> None:
        one, again, other = (
            release(design, tmp_path / name, insecure_seed=seed) for name, seed in (("a", 7), ("b", 7), ("c", 8))
        )
        assert both(one) == both(again)
        assert one.value.tolist() != other.value.tolist()
        assert one.certificate.about.insecure_seed is True
        assert "Not for publication." in one.certificate.table(full=True)
        assert release(design, tmp_path / "d").certificate.about.insecure_seed is False

    def test_its_ledger_is_for_nothing_else(self, ledger, design) -> None:
        release(design, ledger, insecure_seed=7, budget=0.2)
        line = f"{ledger} was begun with another seed, or with none: start another ledger"
        for words in ({}, {"insecure_seed": 8}):
            with refused(line):
                release(design, ledger, **words)
        assert ReleaseLedger.open(ledger, design).is_insecure
        release(design, ledger, eta=0.06, insecure_seed=7)
        assert len(ReleaseLedger.open(ledger, design).releases) == 2


# ---------------------------------------------------------------------------------------------------------------------
# What is refused before anything is written


class TestRefusals:
    @pytest.mark.parametrize(
        ("design", "words", "line"),
        [
            ("leave-one-out", {"scale": 0.001}, r"this noise is proved to keep eta = 0\.\d+ only, asked for 0"),
            ("leave-one-out", {"scale": (1, 2, 3)}, "scale has 3 numbers, the statistic 2: give one, or"),
            ("leave-one-out", {"noise": "laplace"}, "file: noise: Input should be 'gaussian', "),
            ("dp", {"ranges": ()}, "differential privacy needs the range of each column that is used, declared and n"),
            ("dp", {"ranges": "y=-2:2"}, "unknown column of ranges 'y'"),
            ("dp", {"ranges": "x0=2:-2"}, r"anyone: ranges: a range is a column with its least and its largest v"),
            ("dp", {"statistic": "ols"}, "differential privacy has no noise here for ols: nothing bounds what one re"),
            ("dp", {"statistic": "correlation"}, "differential privacy has no noise here for correlation: nothing bo"),
            ("dp", {"statistic": ends}, "differential privacy has no noise here for "),
            ("leave-one-out", {"statistic": lambda x: np.mean(x, axis=0)}, "a statistic without a description cannot"),
            ("leave-one-out", {"statistic": never}, r"[\w.:]*never cannot be computed on these data: no$"),
            ("leave-one-out", {"x": ROWS[:1]}, "a game needs at least 2 points, got 1"),
            ("leave-one-out", {"budget": 0.01}, "protect: budget is that of all releases together, and must be >= eta"),
        ],
    )  # fmt: skip
    def test_in_one_line(self, ledger, design, words, line) -> None:
        with pytest.raises(ValueError, match=f"^{line}") as error:
            release(design, ledger, **words)
        assert "\n" not in str(error.value)
        assert not ledger.exists()

    @pytest.mark.parametrize("design", ["leave-one-out"])
    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    @pytest.mark.parametrize("statistic", ["mean", "covariance", "quantiles"])
    def test_columns_that_are_no_finite_numbers(self, ledger, design, bad, statistic) -> None:
        rows = ROWS.copy()
        rows[3, 1] = bad
        with pytest.raises(
            ValueError, match=r"^(quantiles .*: )?column x1 has missing or infinite values; drop or fil"
        ):
            release(design, ledger, statistic, rows)
        assert not ledger.exists()

    def test_the_last_moment_to_refuse(self, tmp_path) -> None:
        """What is called before a release may raise: nothing is drawn or written then."""
        people().to_csv(tmp_path / "people.csv", index=False)

        def refuses() -> None:
            raise OSError("the disk is full")

        words = {"data": tmp_path / "people.csv", "eta": 0.05, "promise": File(games=0)}
        words["drop"] = ["person", "partner", "town"]
        with pytest.raises(OSError, match="the disk is full"):
            protect_file(before=refuses, **words)
        assert [each.name for each in tmp_path.iterdir()] == ["people.csv"]

    @pytest.mark.parametrize(
        ("statistic", "rows", "eta", "line"),
        [
            (
                fails_without_the_largest, [1.0, 2.0, 3.0, 9.0], 0.05,
                "tests.protection.test_designs:fails_without_the_largest cannot be computed without record 3, and a "
                "failure tells who is left out, which no noise hides: leave these out of the data, or change what "
                "fails (fewer columns, a penalty, larger groups)",
            ),
            (
                fails_without_a_positive_one, [-1.0, -2, -3, -4, 1, 2, 3, 4], 0.3,
                "tests.protection.test_designs:fails_without_a_positive_one cannot be computed without record 4, "
                "record 5, record 6 and 1 more, and a failure tells who is left out, which no noise hides: leave these "
                "out of the data, or change what fails (fewer columns, a penalty, larger groups)",
            ),
        ],
    )  # fmt: skip
    def test_a_statistic_that_fails_without_a_record(self, ledger, statistic, rows, eta, line) -> None:
        words = {"eta": eta, "ledger": ledger, **WORDS["leave-one-out"]}
        for call in (protect, declare):
            with refused(line):
                call(statistic, np.array(rows)[:, None], **words)
            assert not ledger.exists()

    @pytest.mark.usefixtures("ledgers_apart")
    def test_two_records(self, tmp_path) -> None:
        for design in WORDS:
            made = release(design, tmp_path / design, x=ROWS[:2])
            assert made.certificate.about.certificate.n == 2


class TestExactNumbers:
    """Numbers that are the same whoever is left out."""

    CONSTANT = np.column_stack([np.full(9, 0.1), ROWS[:9, 0]])
    LINE = (
        "the same whoever is left out, so that it would be released exactly, outside of the promise: mean of x0; leave "
        "it out, allow it (allow_exact), or declare a scale"
    )

    def test_they_are_refused(self, ledger) -> None:
        with refused(self.LINE):
            release("leave-one-out", ledger, x=self.CONSTANT)
        with refused(self.LINE):
            declare("mean", self.CONSTANT, eta=0.05, ledger=ledger, **WORDS["leave-one-out"])
        with refused(self.LINE):
            calibrate("mean", self.CONSTANT, eta=0.05, **WORDS["leave-one-out"])
        assert not ledger.exists()

    def test_unless_that_is_allowed(self, ledger) -> None:
        made = release("leave-one-out", ledger, x=self.CONSTANT, allow_exact=True)
        assert made.value[0] == 0.1
        assert [row.noise_std > 0 for row in made.certificate.about.values] == [False, True]
        assert made.certificate.about.certificate.noise.grid[0] is None
        assert release("leave-one-out", ledger, x=self.CONSTANT, allow_exact=True).to_json() == made.to_json()

    def test_all_of_them(self, ledger) -> None:
        """Nothing of the budget is spent."""
        made = release("leave-one-out", ledger, x=self.CONSTANT[:, :1], allow_exact=True)
        assert (made.value.tolist(), made.noise) == ([0.1], None)
        assert made.certificate.about.certificate.noise.scale == 0
        assert made.certificate.about.certificate.no_noise is True
        assert "outside of the promise" in made.certificate.table(full=True)
        assert ReleaseLedger.open(ledger, "leave-one-out").spent() == 0
        assert release("leave-one-out", ledger, x=self.CONSTANT[:, :1], allow_exact=True).to_json() == made.to_json()

    @pytest.mark.parametrize(
        ("statistic", "words"),
        [
            ("sum", {}),
            ("table", {"by": "x0", "levels": {"x0": [0, 1]}}),
            ("quantiles", {"set": {"probabilities": [0.5]}}),
        ],
    )
    @pytest.mark.usefixtures("ledgers_apart")
    def test_values_that_are_equal_for_so_many_that_no_noise_is_needed(self, ledger, statistic, words) -> None:
        """Of ten 0s and eleven 1s: whoever it is, at most 11 of the 20 others leave another value behind."""
        rows = np.repeat([0.0, 1.0], [10, 11])[:, None]
        words = {"x": rows, "eta": 0.3, **words}
        line = (
            "so many of the values without a record are equal that eta = 0.3 is kept without noise, and they would be "
            "released exactly: allow it (allow_exact), declare a scale, or ask for a smaller eta"
        )
        with refused(line):
            release("leave-one-out", ledger, statistic, **words)
        assert not ledger.exists()
        made = release("leave-one-out", ledger, statistic, allow_exact=True, **words)
        left_out = rows[left_out_of(ledger, rows), 0]
        n_zeros, n_ones = 10 - (left_out == 0), 11 - (left_out == 1)
        exact = {"sum": [n_ones], "table": [n_zeros, n_ones], "quantiles": [0.5 if n_zeros == n_ones else 1.0]}
        assert made.value.tolist() == exact[statistic]
        assert made.noise is None
        # the ledger counts that one of the 0s is told from the 1s for certain: eta = 11/20/2
        assert ReleaseLedger.open(ledger, "leave-one-out").spent() == pytest.approx(11 / 20 / 2)
        with refused(WHOLE.replace("0.1 with eta = 0.05", "0.3 with eta = 0.15")):
            release("leave-one-out", ledger, "mean", x=rows, eta=0.2)
        declared = release("leave-one-out", ledger.with_name("b"), statistic, scale=3.0, **words)
        assert declared.noise.scale == 3.0
        less = release("leave-one-out", ledger.with_name("c"), statistic, **(words | {"eta": 0.2}))
        assert less.noise.scale > 0

    def test_noise_that_would_be_of_rounding_errors(self, ledger) -> None:
        """Of numbers near 1e9 that differ in their last digits."""
        rows = 1e9 + ROWS[:, :1]
        with pytest.raises(
            ValueError, match=r"^the noise of mean of x0 would be [\d.e-]+, no more than the rounding "
        ) as error:
            release("leave-one-out", ledger, x=rows)
        assert "declare a larger scale" in str(error.value)
        assert not ledger.exists()

    def test_a_declared_scale_gives_them_noise(self, ledger) -> None:
        made = release("leave-one-out", ledger, x=self.CONSTANT, scale=2.0)
        assert [row.noise_std for row in made.certificate.about.values] == [2.0, 2.0]
        assert made.certificate.about.certificate.noise.declared is True


# ---------------------------------------------------------------------------------------------------------------------
# Differential privacy


class TestDeclaredRanges:
    """No record decides on the noise, on the columns, or on whether there is an answer."""

    def test_values_outside_are_moved_and_counted_for_the_owner_alone(self, ledger, without_draw) -> None:
        rows = np.array([[1.0], [2.0], [50.0], [-7.0]])
        made = release("dp", ledger, x=rows, ranges={"x0": (0, 10)}, eta=0.45)
        assert made.value.tolist() == pytest.approx([(1 + 2 + 10 + 0) / 4, 4], abs=1e-6)
        assert made.owner.about.notes == (
            "2 of 4 values of x0 lie outside of 0 to 10, and were moved to the nearer end: correct them in the file, "
            "or declare another range, from a codebook and not from the file",
        )
        assert made.certificate.about.notes == ()
        assert "values lie outside" not in made.to_json()

    @pytest.mark.by_day("inf-sum", "-inf-sum")
    @pytest.mark.parametrize("statistic", ["mean", "sum", "covariance", "second_moment"])
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, "unknown"])
    def test_what_is_no_number_counts_nowhere(self, tmp_path, without_draw, statistic, bad) -> None:
        """The numbers are those of the other records, which numpy computes; n stays as it is."""
        values = np.tile([2.0, 5.0, 7.0], 12)
        frame = pd.DataFrame({"x0": [bad, *values]}, dtype=object)
        made = release("dp", tmp_path / "l", statistic, frame, ranges={"x0": (1, 10)}, eta=0.45)
        wanted = {
            "mean": values.mean(),
            "sum": values.sum(),
            "covariance": values.var(),
            "second_moment": (values**2).mean(),
        }
        assert made.value[0] == pytest.approx(wanted[statistic], rel=1e-6)
        assert made.value[1:].tolist() == ([] if statistic == "sum" else [36])
        assert made.certificate.about.certificate.n == 37
        note = "1 of 37 values of x0 are missing or no numbers, and are in no count and no sum"
        assert (made.owner.about.notes, made.certificate.about.notes) == ((note,), ())
        assert "1 of 37" not in made.to_json()

    def test_a_sum_moves_by_all_that_somebody_may_add(self) -> None:
        """From 10 to 20 a record may add nothing or 20, and not only 10 more or less."""
        x = np.full((30, 3), 15.0)
        ranges = "x0=10:20,x1=-5:20,x2=-20:-10"
        noise = calibrate("sum", x, eta=0.05, promise=Anyone(ranges=ranges)).certificate.about.certificate.noise
        assert noise.rms == pytest.approx(np.sqrt(3) * np.array([20, 25, 20]) / (2 * norm.ppf(0.55)), rel=1e-6)

    def test_means_of_incomplete_columns_are_each_of_their_own_records(self, tmp_path, without_draw) -> None:
        frame = pd.DataFrame({"x0": [1.0, 2.0, np.nan] * 10, "x1": [np.nan, 4.0, 6.0] * 10})
        made = release("dp", tmp_path / "l", "mean", frame, ranges={"x0": (0, 10), "x1": (0, 10)}, eta=0.45)
        assert made.value.tolist() == pytest.approx([1.5, 5, 20, 20], rel=1e-6)
        names = ["mean of x0", "mean of x1", "records with x0", "records with x1"]
        assert [row.name for row in made.certificate.about.values] == names

    def test_the_planned_noise_of_a_mean_is_that_of_its_exact_sum_and_count(self) -> None:
        """To first order: ``sqrt(s^2 + (mean - middle)^2 t^2)/N`` with the deviations s and t of sum and count."""
        x = pd.DataFrame({"x0": [1.0, 2.0, np.nan] * 10})
        made = calibrate("mean", x, eta=0.45, promise=Anyone(ranges={"x0": (0, 10)}))
        mu = 2 * norm.ppf(0.95)
        of_sum, of_count = 2 * 5 / mu, 2 / (np.sqrt(3) * mu)
        mean, _ = made.certificate.about.planned
        assert mean.noise_std == pytest.approx(np.hypot(of_sum, (1.5 - 5) * of_count) / 20, rel=1e-6)

    def test_columns_go_to_units_of_their_ranges(self) -> None:
        """Noise that is right for ages is nothing beside incomes: no grid fitted both."""
        x = np.random.default_rng(0).uniform(0, [100, 20_000], (500, 2))
        made = calibrate("covariance", x, eta=0.05, promise=Anyone(ranges={"x0": (0, 100), "x1": (0, 20000)}))
        *numbers, count = made.certificate.about.planned
        of_ages, of_both, of_incomes = (number.noise_std for number in numbers)
        assert 150 < of_both / of_ages < 250
        assert 30_000 < of_incomes / of_ages < 50_000
        assert count.name == "records with x0 and x1"

    @pytest.mark.parametrize("call", [protect, calibrate])
    def test_no_quantiles(self, ledger, call) -> None:
        words = {"eta": 0.05, "promise": Anyone(ranges={"x0": (0, 9), "x1": (0, 9)})}
        words |= {"ledger": ledger} if call is protect else {}
        with refused(
            "there are no quantiles under promise anyone yet: the noise would be as large as the whole range; take "
            "promise = file, or declare edges and release a histogram"
        ):
            call("quantiles", ROWS, **words)
        assert not ledger.exists()

    def test_what_is_assumed_in_order(self, ledger, tmp_path) -> None:
        """All of it, and nothing else: a record may be any other one, and what was declared was declared blindly."""
        pd.DataFrame({"x0": ROWS[:, 0], "town": ["Bern", "Biel"] * 12}).to_csv(tmp_path / "people.csv", index=False)
        mean = {"statistic": "mean", "promise": Anyone({"x0": (-2, 2)}), "drop": ["town"]}
        table = {"statistic": "table", "by": "town", "levels": {"town": ["Bern", "Biel"]}}
        data = tmp_path / "people.csv"
        made = protect_file(data=data, statistic=[mean, table], promise="anyone", eta=0.05, ledger=ledger, n_jobs=1)
        for half in (made.certificate, made.owner):
            assert [term.id for term in half.about.certificate.assumptions] == [
                "declared_form",
                "n_is_public", "replace_one_any_data",
                "levels_declared", "ranges_declared", "values_clamped", "limits_beforehand",
                "row_is_a_unit",
                "ledger_not_rolled_back", "nothing_outside_the_ledger",
                "refusals_not_published",
                "on_a_grid_counted",
                "time_not_published",
            ]  # fmt: skip

    @pytest.mark.parametrize("promise", ["file", "drawn", "anyone"])
    def test_levels_that_look_alike_are_named_where_levels_are_taken_from_the_data(self, promise) -> None:
        """Under promise anyone spaces at the ends are removed, so that they are one level."""
        towns = pd.DataFrame({"town": ["Bern", "Bern "] * 6 + ["Biel"] * 12})
        words: dict[str, Any] = {"levels": {"town": ["Bern", "Biel"]}} if promise == "anyone" else {"games": 0}
        made = calibrate("table", towns, eta=0.2, promise=promise, by="town", **words)
        note = (
            "town has 'Bern' (6 times) and 'Bern ' (6 times), which are different classes: write them alike in the "
            "file if they are one"
        )
        assert made.certificate.about.notes[:1] == (() if promise == "anyone" else (note,))

    def test_a_value_without_a_level_is_in_no_cell(self, ledger, without_draw) -> None:
        frame = pd.DataFrame({"town": ["a", "b", None, "c"]})
        made = release("dp", ledger, "table", frame, by="town", levels={"town": ["a", "b"]}, ranges={})
        assert made.value.tolist() == [1, 1]
        note = (
            "2 of 4 records have a value that no level was declared for, and are in no cell (town 2, of these 1 "
            "missing): declare these levels too, or one that takes all other and missing values (--others town; in "
            "Python others=['town']); rows "
            "that are left out would change n, which is public"
        )
        assert (made.owner.about.notes, made.certificate.about.notes) == ((note,), ())
        assert made.certificate.about.table.total is None

    @pytest.mark.usefixtures("ledgers_apart")
    def test_a_level_for_all_others(self, ledger, without_draw) -> None:
        """With one for every column everybody is in a cell, and the counts add up to n, which is public."""
        frame = pd.DataFrame({"town": ["a", "b", None, "c"], "sex": ["f", "f", "m", None]})
        levels = {"town": ["a", "b"], "sex": ["f", "m"]}
        words: dict[str, Any] = {"by": ("town", "sex"), "levels": levels, "ranges": ()}
        made = release("dp", ledger, "table", frame, others="town,sex", **words)
        assert made.value.reshape(3, 3).tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 1]]
        table = made.certificate.about.table
        assert (table.total, table.cells[2].levels, table.cells[-1].value) == (4, ("a", "others"), 4)
        assert (made.owner.about.notes, made.certificate.about.notes) == ((), ())
        of_one = release("dp", f"{ledger} 2", "table", frame, others="town", **words)
        assert of_one.value.reshape(3, 2).tolist() == [[1, 0], [1, 0], [0, 1]]
        assert of_one.certificate.about.table.total is None

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({"others": "age"}, "others takes the values of age beside its declared levels: as --levels age=a,b,c"),
            (
                {"others": "town", "levels": {"town": ["a", "others"]}},
                "the level others of town is declared already: leave it out, or leave others out",
            ),
        ],
    )
    def test_others_that_are_refused(self, words, line) -> None:
        frame = pd.DataFrame({"town": ["a", "b"], "age": [1.0, 2.0]})
        asked = {"promise": "anyone", "by": "town", "levels": {"town": ["a", "b"]}} | words
        with pytest.raises(ValueError, match=re.escape(line)):
            calibrate("table", frame, eta=0.05, **promising(asked))

    def test_what_is_missing_from_a_histogram_is_in_no_bin(self, ledger, without_draw) -> None:
        frame = pd.DataFrame({"age": [1.0, 2.0, 3.0, 99.0, None]})
        words = {"by": "age", "set": {"edges": [0, 2, 4]}, "ranges": {}}
        made = release("dp", ledger, "histogram", frame, **words)
        assert made.value.tolist() == [1, 2]
        outside, missing = made.owner.about.notes
        assert outside.startswith("1 of 5 values of age lie outside of 0 to 4, and are in no bin: ")
        assert missing == "1 of 5 values of age are missing or no numbers, and are in no bin"

    @pytest.mark.usefixtures("ledgers_apart")
    def test_the_public_half_says_how_missing_values_count(self, ledger) -> None:
        """It is a fact of the method: the same line whether any value is missing or not."""
        for number, wages in enumerate(([1.0, 2.0, 3.0], [1.0, None, 3.0])):
            frame = pd.DataFrame({"town": ["a", "b", "b"], "wage": wages})
            words = {"by": "town", "levels": {"town": ["a", "b"]}, "ranges": "wage=0:80"}
            text = " ".join(
                release("dp", f"{ledger}{number}", "mean", frame, **words).certificate.table(full=True).split()
            )
            assert "a value that is missing or no number is in no count and no sum" in text
            assert "a record whose value is missing, or is none of them, is in no cell or bin" in text
            assert "of 3 values" not in text

    def test_columns_with_a_range_alone_are_used(self, ledger, without_draw) -> None:
        frame = pd.DataFrame({"town": ["a", "b", "c"], "age": [1.0, 2.0, 3.0], "wage": [1.0, 2.0, 9.0]})
        made = release("dp", ledger, x=frame, ranges={"wage": (0, 10)}, eta=0.45)
        assert [row.name for row in made.certificate.about.values] == ["mean of wage", "records with wage"]
        assert made.value.tolist() == pytest.approx([4.0, 3.0], abs=1e-6)

    @pytest.mark.parametrize("call", [protect, calibrate])
    def test_counts_need_levels_and_edges(self, ledger, call) -> None:
        frame = pd.DataFrame({"town": ["a", "b", "b"], "age": [1.0, 2.0, 3.0]})
        words = {"eta": 0.05, "promise": "anyone", **({"ledger": ledger} if call is protect else {})}
        with pytest.raises(
            ValueError, match=r"levels .* town are missing, as --levels town=a,b,c \(in Python|those of town are m"
        ):
            call("table", frame, by="town", **words)
        with pytest.raises(ValueError, match=r"(declared|declare).* edges|edges that you declare, as --set edges="):
            call("histogram", frame[["age"]], by="age", **words)
        assert not ledger.exists()

    def test_counts_with_them(self, tmp_path, without_draw) -> None:
        frame = pd.DataFrame({"town": ["a", "b", "b"], "age": [1.0, 2.0, 3.0]})
        words = {"eta": 0.05, "promise": "anyone"}
        levels = {"town": ["a", "b", "nowhere"]}
        table = protect("table", frame, by="town", levels=levels, ledger=tmp_path / "a", **words)
        assert table.value.tolist() == [1, 2, 0]
        bins = protect("histogram", frame[["age"]], by="age", set={"edges": [0, 2, 9]}, ledger=tmp_path / "b", **words)
        assert bins.value.tolist() == [1, 2]
        for made in (table, bins):
            assert made.noise.scale == pytest.approx(np.sqrt(2) / (2 * norm.ppf(0.55)), rel=1e-6)

    @pytest.mark.parametrize("statistic", ["mean", "sum", "second_moment", "covariance"])
    def test_neither_noise_nor_refusal_depends_on_the_data(self, statistic) -> None:
        """Of 100,000 records the covariance was refused if the largest of them was large."""
        noises = []
        for largest in (1000.0, 10.0):
            x = np.random.default_rng(0).uniform(0, largest, size=(100_000, 1))
            made = calibrate(statistic, x, eta=0.05, promise=Anyone(ranges={"x0": (0, 1000)}))
            noises.append(made.certificate.about.certificate.noise)
        assert noises[0] == noises[1]


# ---------------------------------------------------------------------------------------------------------------------
# What is published


def paths_that_differ(one: Any, other: Any, path: str = "") -> set[str]:
    """The places of two JSON values that are not the same; of the items of a list without their numbers."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return {found for name in one for found in paths_that_differ(one[name], other[name], f"{path}.{name}")}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return {found for pair in zip(one, other, strict=True) for found in paths_that_differ(*pair, f"{path}[]")}
    return set() if one == other else {path}


def survey() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"person": [f"p{n:02}" for n in range(60)], "pay": rng.uniform(5, 70, 60).round(2)})
    return frame.assign(hours=rng.integers(1, 60, 60).astype(float), sector=rng.choice(["care", "trade"], 60))


PUBLISHED: Mapping[str, dict[str, Any]] = {
    "left out": {"promise": File(games=50), "id": "person"},
    "left out, declared": {"promise": File(games=50, scale=30.0), "id": "person"},
    "left out, a regression": {"promise": File(games=50, scale=(900, 300)), "id": "person", "statistic": "ols",
                               "label": "pay"},
    "left out, counts": {"promise": File(games=0, scale=8.0), "statistic": "table", "by": "sector",
                         "levels": {"sector": ["care", "trade", "none"]}},
    "left out, means of groups": {"promise": File(games=0, scale=30.0), "statistic": "mean",
                                  "by": "sector", "levels": {"sector": ["care", "trade"]}, "id": "person"},
    "private": {"promise": Anyone(ranges={"pay": (10, 60), "hours": (0, 50)})},
    "private, means of groups": {"promise": Anyone(ranges={"pay": (10, 60)}), "statistic": "mean", "by": "sector",
                                 "levels": {"sector": ["care", "trade", "none"]}},
    "private, counts": {"promise": "anyone", "statistic": "table", "by": "sector",
                        "levels": {"sector": ["care", "trade", "none"]}},
}  # fmt: skip


def files_that_differ_in_a_record(folder: Path) -> list[Path]:
    """Two folders with a file of the same name."""
    frame = survey()
    other = frame.copy()
    other.loc[7, ["pay", "hours", "sector"]] = [float(frame.pay[7]) + 0.4, 33.0, "trade"]
    other.loc[7, "sector"] = {"care": "trade", "trade": "care"}[str(frame.sector[7])]
    folders = [folder / name for name in ("one", "other")]
    for place, table in zip(folders, (frame, other), strict=True):
        place.mkdir()
        table.to_csv(place / "people.csv", index=False)
    return folders


def publish_both(folders: list[Path], monkeypatch: pytest.MonkeyPatch, words: Mapping[str, Any]) -> list[Protected]:
    drop = [] if words.get("id") or words.get("statistic") in ("table",) else ["person"]
    if "sector" not in words.get("by", ()):
        drop.append("sector")
    made = []
    for folder in folders:
        monkeypatch.chdir(folder)
        made.append(protect_file(data="people.csv", eta=0.1, drop=drop, insecure_seed=1, n_jobs=1, **words))
    return made


# What a released value changes: itself, the table that is made from it alone, and two digests.
OF_THE_VALUES = {
    ".sha256",
    *(f".about.values[].{name}" for name in ("value", "noise_std", "low", "high")),
    ".about.notes",  # that a released count is below 0
    *(f".about.table.cells[].{name}" for name in ("value", "noise_std", "low", "high", "sampling_std")),
    ".about.certificate.entry.digest",
}


@pytest.mark.parametrize("name", PUBLISHED)
class TestPublication:
    @pytest.mark.by_day("private, counts")
    def test_two_files_with_the_same_printed_noise_differ_in_the_values_alone(
        self, tmp_path, monkeypatch, name
    ) -> None:
        """And in the keyed digest of the entry, and the digest of the text itself."""
        one, other = publish_both(files_that_differ_in_a_record(tmp_path), monkeypatch, PUBLISHED[name])
        contents = [json.loads(each.to_json()) for each in (one, other)]
        assert contents[0]["about"]["certificate"]["noise"] == contents[1]["about"]["certificate"]["noise"]
        different = paths_that_differ(*contents)
        assert different <= OF_THE_VALUES
        assert ".about.values[].value" in different
        of_owner = paths_that_differ(*(json.loads(each.owner.to_json()) for each in (one, other)))
        assert ".about.data.digest" in of_owner

    @pytest.mark.by_day("private, counts")
    def test_nothing_else_is_a_function_of_the_file(self, tmp_path, monkeypatch, name) -> None:
        """With the same value and entry the bytes of both halves for publication are the same: JSON and page."""
        monkeypatch.setattr(of_all, "_with_noise", lambda ledger, prepared, exact, digest: np.ones(len(exact)))
        monkeypatch.setattr(ReleaseLedger, "entry_digest", lambda ledger, place: "a" * 64)
        one, other = publish_both(files_that_differ_in_a_record(tmp_path), monkeypatch, PUBLISHED[name])
        assert one.to_json() == other.to_json()
        assert one.certificate.table(full=True) == other.certificate.table(full=True)
        assert one.owner.to_json() != other.owner.to_json()

    @pytest.mark.slow
    def test_neither_is_the_page(self, tmp_path, monkeypatch, name) -> None:
        monkeypatch.setattr(of_all, "_with_noise", lambda ledger, prepared, exact, digest: np.ones(len(exact)))
        monkeypatch.setattr(ReleaseLedger, "entry_digest", lambda ledger, place: "a" * 64)
        one, other = publish_both(files_that_differ_in_a_record(tmp_path), monkeypatch, PUBLISHED[name])
        assert one.to_html() == other.to_html()

    @pytest.mark.by_day("private, counts")
    def test_what_is_of_the_owner_alone(self, tmp_path, monkeypatch, name) -> None:
        folder, _ = files_that_differ_in_a_record(tmp_path)
        (made,) = publish_both([folder], monkeypatch, PUBLISHED[name])
        public, owner, text = made.certificate.about, made.owner.about, made.to_json()
        kept = ReleaseLedger.open(folder / "people.csv.ledger", owner.certificate.design)
        assert (public.data.digest, len(owner.data.digest)) == ("", 16)
        assert owner.data.digest not in text
        assert all(row.sampling_std is None and row.sample_cost is None for row in public.values)
        for row in owner.values:
            if row.sample_cost is not None:  # sampling alone of so many records fewer has the variance of both
                of_noise = row.noise_std**2 / (row.noise_std**2 + row.sampling_std**2)
                assert row.sample_cost == pytest.approx(owner.certificate.k * of_noise)
        errors = [row.sampling_std for row in owner.values]
        assert any(error is not None and error > 0 for error in errors)
        assert (public.command, public.audience, owner.audience) == ("", "public", "owner")
        assert {each.scope.kind for each in made.certificate.findings} <= {"every", "any_data"}
        assert not any(each.attack or each.low for each in made.certificate.findings)
        spent = [each for each in made.owner.findings if each.release == "spent"]
        assert len(spent) == 1
        hidden = {kept.key.hex(), *(getattr(kept.releases[0], digest) for digest in ("query", "subject", "release"))}
        names = Units.of(file_request(read(ProtectionPlan, owner.plan, "protect"), HERE)).names
        if owner.certificate.design != "dp":
            hidden |= {bytes(row).hex() for row in kept.unit_hashes(names)}
        for secret in hidden:
            assert secret not in text
            assert secret not in made.owner.to_json()
        out = bytes(names[kept.left_out(names)]).hex()
        assert out not in text
        assert out not in made.owner.to_json()


@pytest.mark.by_day("pay-nan-words1")
@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("pay", "unknown", {"ranges": "pay=10:60,hours=0:50"}),
        ("pay", np.nan, {"ranges": "pay=10:60,hours=0:50", "statistic": "sum"}),
        ("hours", np.inf, {"ranges": "pay=10:60,hours=0:50", "statistic": "covariance"}),
        ("person", 7, {"ranges": "pay=10:60,hours=0:50"}),
        ("sector", "fishing", {"statistic": "table", "by": "sector", "levels": {"sector": ["care", "trade"]}}),
        ("pay", "x", {"ranges": "pay=10:60", "by": "sector", "levels": {"sector": ["care", "trade"]}}),
        ("sector", np.nan, {"ranges": "pay=10:60", "by": "sector", "levels": {"sector": ["care", "trade"]}}),
        ("hours", "x", {"statistic": "table", "by": "hours", "levels": {"hours": [str(hour) for hour in range(60)]}}),
        ("hours", "x", {"statistic": "histogram", "by": "hours", "set": {"edges": [0, 20, 40, 60]}}),
    ],
)
def test_no_value_of_a_single_record_changes_more_than_the_values(tmp_path, monkeypatch, column, value, words) -> None:
    """Differential privacy: a text among numbers, nothing, or an unknown level has no other effect, and no error."""
    frame = survey()
    other = frame.astype({column: object})
    other.loc[3, column] = value
    contents = []
    for name, table in (("one", frame), ("other", other)):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        table.to_csv("people.csv", index=False)
        made = protect_file(data="people.csv", eta=0.1, promise="anyone", insecure_seed=1, n_jobs=1, **words)
        contents.append(json.loads(made.to_json()))
    assert paths_that_differ(*contents) <= OF_THE_VALUES


@pytest.mark.by_day("correlation-words0")
@pytest.mark.parametrize("words", [WORDS["leave-one-out"]])
@pytest.mark.parametrize("statistic", ["mean", "quantiles", "correlation", "ols"])
def test_no_single_record_decides_which_columns_are_used(tmp_path, words, statistic) -> None:
    """A text among numbers took the column out of the release, and readers saw that."""
    frame, path = survey()[["pay", "hours"]].assign(age=1.0), tmp_path / "people.csv"
    frame["age"] += np.arange(len(frame))
    frame.astype({"hours": object}).assign(hours=["many" if n == 7 else n for n in range(60)]).to_csv(path, index=False)
    name = "" if statistic != "ols" else ", or name the response (--label hours; in Python y)"
    line = (
        "not only numbers in hours, as 'many' in record 7 of hours, and no single record may decide which columns are "
        f"used: leave these columns out (--drop hours; in Python .drop(columns=['hours'])){name}, or make "
        "all their values numbers"
    )
    words = {"data": path, "eta": 0.1, "statistic": statistic, **words}
    for call in (protect_file, calibrate_file, declare_file):
        with refused(line):
            call(**words)
    assert [each.name for each in tmp_path.iterdir()] == ["people.csv"]
    made = protect_file(drop=["hours"], n_jobs=1, **words)
    assert "hours" not in [word for row in made.certificate.about.values for word in row.name.split()]
    assert made.certificate.about.notes == ()


def test_a_histogram_is_of_the_columns_of_its_plan(tmp_path) -> None:
    frame, path = survey()[["pay", "sector"]], tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    words = {"data": path, "eta": 0.1, "statistic": "histogram", "promise": "file", "set": {"edges": [0, 30, 90]}}
    made = protect_file(by="pay", n_jobs=1, **words)
    assert len(made.value) == 2
    assert made.certificate.about.notes == ()
    with pytest.raises(ValueError, match=r"^not only numbers in sector, as '\w+' in record 0 of sector"):
        protect_file(by="sector", ledger=tmp_path / "other", n_jobs=1, **words)


# ---------------------------------------------------------------------------------------------------------------------
# The ledger and its file


@every_design
class TestFile:
    def test_it_lies_beside_the_data_and_is_the_owners_alone(self, tmp_path, design) -> None:
        file = tmp_path / "people.csv"
        pd.DataFrame(ROWS, columns=["x0", "x1"]).to_csv(file, index=False)
        protect_file(data=file, eta=0.05, **WORDS[design])
        kept = tmp_path / "people.csv.ledger"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert ReleaseLedger.open(kept, design).releases[0].published
        with pytest.raises(ValueError, match=r"the whole budget|nothing is left"):
            protect_file(data=file, eta=0.05, statistic="sum", **WORDS[design])
        kept.chmod(0o644)
        with pytest.raises(ValueError, match="is open to others"):
            protect_file(data=file, eta=0.05, **WORDS[design])

    @pytest.mark.by_day("error1-dp")
    @pytest.mark.parametrize("error", [OSError("the disk is full"), KeyboardInterrupt()])
    def test_a_release_that_was_interrupted_is_made_again(self, tmp_path, design, error) -> None:
        """After the entry and before the publication: the same call gives the bytes that were lost."""
        file, halves = tmp_path / "people.csv", []
        pd.DataFrame(ROWS, columns=["x0", "x1"]).to_csv(file, index=False)

        def lost(public: Report, owner: Report) -> None:
            halves.append((public.to_json(), owner.to_json()))
            raise error

        with pytest.raises(type(error)):
            protect_file(data=file, eta=0.05, publish=lost, **WORDS[design])
        kept = tmp_path / "people.csv.ledger"
        assert [each.published for each in ReleaseLedger.open(kept, design).releases] == [False]
        made = protect_file(data=file, eta=0.05, **WORDS[design])
        assert both(made) == halves[0]
        assert [each.published for each in ReleaseLedger.open(kept, design).releases] == [True]

    @pytest.mark.usefixtures("ledgers_apart")
    def test_two_copies_that_went_on_differently_are_told_by_their_entries(self, tmp_path, design) -> None:
        path, copy = tmp_path / "ledger", tmp_path / "copy"
        release(design, path, budget=0.4)
        copy.write_bytes(path.read_bytes())
        copy.chmod(0o600)
        entries = [
            release(design, place, "sum", eta=eta).certificate.about.certificate.entry
            for place, eta in ((path, 0.04), (copy, 0.05))
        ]
        assert [entry.number for entry in entries] == [2, 2]
        assert entries[0].digest != entries[1].digest


def test_the_value_is_that_of_a_row_of_the_table_with_noise_of_the_key(ledger) -> None:
    """Made again from the ledger, by hand: the grid, the noise, their sum in whole steps, and its rounding."""
    made = release("leave-one-out", ledger, noise="gaussian_diagonal")
    kept = ReleaseLedger.open(ledger, "leave-one-out")
    facts = made.certificate.about.certificate.noise
    grid = Grid(tuple(facts.grid))
    exact = np.delete(ROWS, left_out_of(ledger, ROWS), axis=0).mean(axis=0)
    normal = kept.generator(f"noise {kept.releases[0].release}").standard_normal(2)
    expected = grid.value(grid.round(exact) + grid.round(np.array(facts.rms) * normal))
    decimals = 2 - np.floor(np.log10(facts.rms)).astype(int)  # to a power of ten of at most a hundredth of the noise
    rounded = [round(value, places) for value, places in zip(expected.tolist(), decimals.tolist(), strict=True)]
    assert made.value.tolist() == rounded


def test_a_calibration_makes_no_ledger(tmp_path) -> None:
    file = tmp_path / "people.csv"
    pd.DataFrame(ROWS, columns=["x0", "x1"]).to_csv(file, index=False)
    for design, words in WORDS.items():
        made = calibrate_file(data=file, eta=0.05, **words)
        assert made.certificate.about.certificate.design == design
        assert made.certificate.about.certificate.entry is None
        assert made.certificate.about.values == ()
    assert [each.name for each in tmp_path.iterdir()] == ["people.csv"]
    assert read(CalibrationPlan, {"data": file, "eta": 0.05, "promise": "file"}, "").chosen == "leave-one-out"
