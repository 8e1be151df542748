"""``leakbound calibrate`` and ``protect`` with each design, as typed: what is printed and what lies where."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leakbound.plans.protects import NO_CHOICE
from leakbound.plans.several import read_several
from leakbound.protection.ledger.budget import BudgetLedger as ReleaseLedger
from leakbound.reports import Report
from tests.cli.calling import Left, caller, refused

pytestmark = pytest.mark.usefixtures("as_users_run_it", "without_pages")
real_page = Report.to_html  # which other tests of this file do without
FILES = {
    "release.json": 0o644, "release.html": 0o644, "release.csv": 0o644, "owner/private.json": 0o600,
    "owner/private.html": 0o600,
}  # fmt: skip
WROTE = "leakbound: wrote {}: release.json, release.html and release.csv for publication, owner/ for you alone\n"
LEDGER = Path("data/people.csv.ledger")
EVERY = {
    "leave-one-out": "--promise file,games=50",
    "dp": "--promise anyone --range wage=0:80,hours=0:60",
}
every_design = pytest.mark.parametrize("design", EVERY)


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd) -> Callable[[str], Left]:
    """A command in a folder with a file of data in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    Path("data").mkdir()
    frame = pd.DataFrame({"wage": rng.uniform(5, 70, 60).round(2), "hours": rng.integers(1, 60, 60)})
    frame.to_csv("data/people.csv", index=False)
    return caller(monkeypatch, capfd)


def command(verb: str, words: str, statistic: str = "mean") -> str:
    return f"{verb} --data data/people.csv --statistic {statistic} --eta 0.05 --n-jobs 1 {words}"


def files() -> list[str]:
    """All files but the store of finished fits, and locks."""
    found = [path for path in Path().rglob("*") if path.is_file() and not path.name.startswith(".")]
    return sorted(str(path) for path in found if "store" not in path.parts)


class TestChoice:
    def test_calibrate_without_one_shows_all_designs(self, leakbound) -> None:
        left = leakbound(command("calibrate", "--compare drawn,fits=200 --range wage=0:80,hours=0:60"))
        assert (left.code, left.err) == (0, "")
        lines = left.out.splitlines()
        text = " ".join(left.out.split())
        assert "Would be released: 2 numbers. Nothing is chosen yet; recommended: promise anyone." in text
        assert "Release it with leakbound protect --data people.csv" in text
        assert "Total error of each promise at the same accuracy of its own attacker" in text
        shown = [line.split()[0] for line in lines if line.startswith((" anyone ", " file ", " drawn "))]
        assert shown == ["anyone", "file", "drawn"]
        assert "Recommended: promise = anyone." in left.out
        assert files() == ["data/people.csv"]

    def test_a_small_group_is_named_and_changes_no_recommendation(self, leakbound) -> None:
        frame = pd.DataFrame({"town": ["a"] * 300 + ["b"] * 290 + ["c"] * 10, "wage": np.arange(600) % 80})
        frame.to_csv("data/people.csv", index=False)
        asked = "--by town --range wage=0:80 --compare drawn,fits=40"
        text = " ".join(leakbound(command("calibrate", f"{asked} --levels town=a,b,c")).out.split())
        assert (
            "anyone: 1 of 6 numbers would be left out, because the noise of their counts is too large (mean of" in text
        )
        assert "Recommended: promise = anyone. The ranges of the columns are declared" in text
        text = " ".join(leakbound(command("calibrate", asked)).out.split())
        assert "Recommended: promise = file. The levels of the groups are not declared" in text

    def test_ranges_are_not_asked_for_where_they_bound_nothing(self, leakbound) -> None:
        left = leakbound(command("calibrate", "--compare drawn,fits=100 --label wage --range hours=0:60", "ols"))
        text = " ".join(left.out.split())
        assert "Recommended: promise = file. No bound is known here on what one record changes" in text
        assert "Nothing was declared" not in text

    def test_the_range_of_a_quantile_is_no_reason_for_differential_privacy(self, leakbound) -> None:
        left = leakbound(command("calibrate", "--compare drawn,fits=100 --range wage=0:80,hours=0:60", "quantiles"))
        text = " ".join(left.out.split())
        assert (
            "Recommended: promise = file. Quantiles under differential privacy are refused here: what one record"
            in text
        )
        assert "--promise file" in text.split("Release it with leakbound protect")[1]

    def test_every_number_of_a_comparison_is_in_the_file(self, leakbound) -> None:
        """More numbers than fit beside each other are rows, each with its standard error; a terminal has the first."""
        rng = np.random.default_rng(1)
        frame = pd.DataFrame({f"c{place}": rng.normal(scale=place + 1, size=80) for place in range(8)})
        frame.to_csv("data/people.csv", index=False)
        out = leakbound(command("calibrate", "--compare drawn,fits=40 --out there")).out
        rows = {line[1:].split("  ")[0]: line.split() for line in out.splitlines() if line.startswith(" mean of ")}
        assert list(rows) == [f"mean of c{place}" for place in range(6)]
        assert "designs.csv in the folder of --out has them" in " ".join(out.split())
        errors = [float(cells[-1]) for cells in rows.values()]
        assert errors == pytest.approx(frame.sem().to_list()[:6], rel=0.05)
        costs = pd.read_csv("there/designs.csv")
        assert costs.name.to_list() == [f"mean of c{place}" for place in range(8)]
        assert costs.standard_error.to_list() == pytest.approx(frame.sem().to_list(), rel=1e-5)

    def test_the_comparison_and_its_recommendation_on_a_page(self, leakbound, monkeypatch) -> None:
        monkeypatch.setattr("leakbound.reports.report.Report.to_html", real_page)
        left = leakbound(command("calibrate", "--compare drawn,fits=40 --range wage=0:80,hours=0:60 --out there"))
        assert left.code == 0
        assert left.err.startswith("leakbound: wrote there: report.json, report.html, noise.csv, designs.csv;")
        page = Path("there/report.html").read_text()
        assert "What each promise would have cost" in page
        assert "What would be published, and its noise" in page
        noise = pd.read_csv("there/noise.csv").set_index("name")
        about = json.loads(Path("there/report.json").read_text())["about"]
        assert about["certificate"]["design"] == "dp"
        people = pd.read_csv("data/people.csv")
        *of_counts, wage, hours = about["certificate"]["noise"]["rms"]  # of the sums: each less the middle of its range
        assert noise.index.to_list() == ["mean of wage", "mean of hours", "records with wage", "records with hours"]
        # rounding to whole records adds a variance of 1/12
        counts_noise = [math.hypot(rms, math.sqrt(1 / 12)) for rms in of_counts]
        assert noise.noise_std.to_list()[2:] == pytest.approx(counts_noise, rel=1e-3)
        # the variance of a ratio: that of the sum, and that of the count times the distance of the mean from the middle
        ratios = [
            math.hypot(wage, (people.wage.mean() - 40) * of_counts[0]) / 60,
            math.hypot(hours, (people.hours.mean() - 30) * of_counts[1]) / 60,
        ]
        assert noise.noise_std.to_list()[:2] == pytest.approx(ratios, rel=1e-3)
        costs = pd.read_csv("there/designs.csv").set_index("name")
        mean_of_wage = costs.loc["mean of wage"]
        assert mean_of_wage["dp (anyone)"] == pytest.approx(noise.noise_std["mean of wage"], rel=1e-3)
        assert mean_of_wage.standard_error == pytest.approx(people.wage.sem(), rel=1e-5)

    def test_without_one_the_owner_reads_the_same_lines_as_with_one(self, leakbound) -> None:
        ranges = "--range wage=0:50,hours=0:60"
        without = leakbound(command("calibrate", f"{ranges} --compare drawn,fits=40"))
        chosen = leakbound(command("calibrate", f"{ranges} --promise anyone"))
        assert without.err == chosen.err
        assert "values of wage lie outside of 0 to 50" in without.err
        with Path("data/people.csv").open("a") as file:
            file.write("12,many\n")
        told = leakbound(command("calibrate", "--compare drawn,fits=40")).err
        assert told.startswith("leakbound: error: not only numbers in hours, as 'many' in record")

    @pytest.mark.parametrize("more", ["--json", "--signals s.npz"])
    def test_but_writes_no_report_of_them(self, leakbound, more) -> None:
        refused(leakbound(command("calibrate", more)), NO_CHOICE)
        assert files() == ["data/people.csv"]

    @pytest.mark.parametrize("more", ["", "--json", "--out there", "--declare", "--ledger l", "--insecure-seed 1"])
    def test_protect_without_one_does_nothing(self, leakbound, more) -> None:
        refused(leakbound(command("protect", more)), f"{NO_CHOICE}\n")
        assert files() == ["data/people.csv"]
        assert [path.name for path in Path().iterdir()] == ["data"]

    def test_somebody_at_a_terminal_is_shown_the_designs(self, leakbound, monkeypatch) -> None:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        left = leakbound(command("protect", "--compare drawn,fits=200"))
        assert left.code == 1
        assert "Would be released: 2 numbers." in left.out
        assert left.err == f"leakbound: error: {NO_CHOICE}\n"
        assert files() == ["data/people.csv"]


def test_columns_are_left_out_with_commas_or_one_by_one(leakbound) -> None:
    asked = "--promise file,games=0"
    frame = pd.read_csv("data/people.csv").assign(a=1.0, b=2.0)
    frame.to_csv("data/people.csv", index=False)
    first, second = (leakbound(command("calibrate", f"{drop} {asked}")) for drop in ("--drop a,b", "--drop a --drop b"))
    assert first.code == 0
    assert first.out == second.out


def test_a_ratio_for_anyone_says_what_to_do_instead(leakbound) -> None:
    asked = command("calibrate", "--promise anyone --set denominator=hours --range wage=0:80,hours=0:60", "ratio")
    left = leakbound(asked)
    assert left.code == 1
    assert "release the totals as statistic sum with the ranges of both columns, and divide them" in left.err


class TestPlanned:
    """The noise of each number before anything is released."""

    def test_each_number_in_its_own_unit(self, leakbound) -> None:
        left = leakbound(command("calibrate", "--promise file,games=0"))
        lines = [line.split() for line in left.out.splitlines() if line.startswith(" mean of ")]
        assert [cells[2] for cells in lines] == ["wage", "hours"]
        released = command("protect", "--promise file,games=0 --out there")
        assert leakbound(released).code == 0
        table = pd.read_csv("there/release.csv")
        assert [float(cells[3]) for cells in lines] == pytest.approx(table.noise_std.to_list(), rel=0.05)
        halves = (table.high - table.low) / 2
        assert [float(cells[5]) for cells in lines] == pytest.approx(halves.to_list(), rel=0.05)
        errors = pd.read_csv("data/people.csv").sem().to_list()
        assert [float(cells[6]) for cells in lines] == pytest.approx(errors, rel=0.05)

    @pytest.mark.by_day("anyone")
    @pytest.mark.parametrize("promise", ["file,games=0", "anyone", "drawn,games=0"])
    def test_counts_with_their_margins(self, leakbound, promise) -> None:
        towns = pd.DataFrame({"town": ["a"] * 30 + ["b"] * 27 + ["c"] * 3, "sex": ["f", "m"] * 30})
        towns.to_csv("data/people.csv", index=False)
        words = f"--by town,sex --levels town=a,b,c --levels sex=f,m --promise {promise}"
        assert leakbound(command("calibrate", f"{words} --out trial", "table")).code == 0
        assert leakbound(command("protect", f"{words} --out there", "table")).code == 0
        planned = pd.read_csv("trial/noise.csv").set_index("name")
        released = pd.read_csv("there/release.csv")
        named = released.town + " / " + released.sex
        assert planned.loc[named].noise_std.to_list() == pytest.approx(released.noise_std.to_list(), rel=1e-5)
        assert len(planned) == 12

    def test_many_numbers_are_named_in_a_file(self, leakbound) -> None:
        rng = np.random.default_rng(1)
        pd.DataFrame(rng.normal(size=(60, 9))).add_prefix("c").to_csv("data/people.csv", index=False)
        left = leakbound(command("calibrate", "--promise file,games=0 --out there", "covariance"))
        assert "\n and 39 more\n" in left.out
        assert "there/noise.csv" in left.err
        assert len(pd.read_csv("there/noise.csv")) == 45

    def test_a_mean_of_too_few_has_none(self, leakbound) -> None:
        frame = pd.DataFrame({"town": ["a"] * 500 + ["b"] * 8, "wage": np.arange(508) % 80})
        frame.to_csv("data/people.csv", index=False)
        words = "--by town --levels town=a,b --range wage=0:80 --promise anyone --out there"
        left = leakbound(command("calibrate", f"{words} --full"))
        # a count has noise of 2 / mu = 8.0, mu = 2 Phi^-1(1/2 + eta): 1.96 times that is more than the 8 records of b
        assert "A mean is left out where its noisy count is not above 16: " in " ".join(left.out.split())
        assert np.isnan(pd.read_csv("there/noise.csv").set_index("name").noise_std["mean of wage, b"])


class TestCountsBelow0:
    """Small counts: the noise takes some of them below 0."""

    COUNTS = "--by town,sex --levels town=a,b,c,d,e,f,g,h --levels sex=f,m --eta 0.01 --insecure-seed 3"

    @pytest.fixture
    def towns(self, leakbound) -> Callable[[str, str], Left]:
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"town": rng.choice(list("abcdefgh"), 300), "sex": ["f", "m"] * 150})
        frame.assign(wage=rng.uniform(0, 80, 300)).to_csv("data/people.csv", index=False)
        return lambda words, statistic: leakbound(command("protect", words, statistic).replace("--eta 0.05", "", 1))

    @pytest.mark.by_day("table --promise file,games=0")
    @pytest.mark.parametrize(
        "words",
        [
            "table --promise anyone",
            "table --promise file,games=0",
            "table --promise drawn,games=0 --ledger l",
            "mean --promise file,games=0",
            "mean --promise anyone --range wage=0:80",
        ],
    )
    def test_are_said_and_avoided_under_every_promise(self, towns, words) -> None:
        """Whatever the promise; the same release is published again, and the numbers that are no counts stay."""
        statistic, _, words = words.partition(" ")
        words = f"{words} {self.COUNTS}" if statistic == "table" else f"{words} {self.COUNTS} --budget 0.02"
        raw = towns(f"{words} --out raw", statistic)
        assert raw.code == 0, raw.err
        (line,) = [line for line in raw.err.splitlines() if "below 0" in line]
        assert "--non-negative publishes the nearest counts >= 0, at no cost of the promise (the same command" in line
        assert "Counts below 0 come from the noise" in " ".join(raw.out.split())
        mended = towns(f"{words} --non-negative --out mended", statistic)
        assert mended.code == 0, mended.err
        assert "below 0" not in mended.err + mended.out
        before, after = pd.read_csv("raw/release.csv"), pd.read_csv("mended/release.csv")
        counts = before.quantity == "count"
        assert (before[counts].value < 0).any()
        assert (after[counts].value >= 0).all()
        assert (after[counts].low >= 0).all()
        pd.testing.assert_frame_equal(before[~counts], after[~counts])

    def test_a_line_says_where_it_is_for(self, towns) -> None:
        refused(
            towns("--eta 0.05 --by wage --set edges=[0,40,80] --promise anyone --non-negative", "histogram"),
            "protect: non_negative is for counts: statistic table, or mean with by, under any promise; got statistic "
            "histogram; a histogram is published as it was released\n",
        )

    def test_above_the_tables_of_a_plan_it_is_for_those_with_counts(self) -> None:
        tables = [
            {"statistic": "mean", "drop": ["town"]},
            {"statistic": "table", "by": ["town"], "levels": {"town": ["a", "b"]}},
        ]
        words = {"data": "a.csv", "promise": "file", "eta": 0.05, "non_negative": True, "statistic": tables}
        assert [plan.non_negative for plan in read_several(words, "plan").statistics] == [False, True]


@every_design
class TestRelease:
    def test_its_files_and_a_ledger_beside_the_data(self, leakbound, design) -> None:
        left = leakbound(command("protect", f"{EVERY[design]} --out there"))
        assert (left.code, left.err) == (0, WROTE.format("there"))
        assert files() == sorted(["data/people.csv", str(LEDGER), *(f"there/{name}" for name in FILES)])
        assert {name: Path("there", name).stat().st_mode & 0o777 for name in FILES} == FILES
        assert Path("there/owner").stat().st_mode & 0o777 == 0o700
        assert LEDGER.stat().st_mode & 0o777 == 0o600
        public = json.loads(Path("there/release.json").read_text())["about"]
        owner = json.loads(Path("there/owner/private.json").read_text())["about"]
        assert (public["audience"], owner["audience"]) == ("public", "owner")
        assert public["certificate"]["design"] == owner["certificate"]["design"] == design
        assert public["certificate"]["noise"]["declared"] is (design != "leave-one-out")
        names = ["mean of wage", "mean of hours"]
        if design == "dp":  # how many have a value is a secret, and a noisy number of its own
            names += ["records with wage", "records with hours"]
        assert [value["name"] for value in public["values"]] == names
        assert ReleaseLedger.open(LEDGER, design).releases[0].published

    def test_json(self, leakbound, design) -> None:
        left = leakbound(command("protect", f"{EVERY[design]} --json"))
        assert (left.code, left.err) == (0, WROTE.format("leakbound-release"))
        assert left.out == Path("leakbound-release/release.json").read_text()
        calibrated = leakbound(command("calibrate", f"{EVERY[design]} --json"))
        assert json.loads(calibrated.out)["about"]["certificate"]["design"] == design

    def test_the_same_command_never_writes_over_a_release(self, leakbound, design) -> None:
        """Into another folder it writes the same bytes: the ledger knows the release."""
        again = command("protect", EVERY[design])
        assert leakbound(f"{again} --out one").code == 0
        kept = LEDGER.read_bytes()
        refused(
            leakbound(f"{again} --out one"),
            "one/release.json exists already, and a release is never written over; choose another --out\n",
        )
        assert leakbound(f"{again} --out other").code == 0
        assert Path("one/release.json").read_bytes() == Path("other/release.json").read_bytes()
        assert LEDGER.read_bytes() == kept

    @pytest.mark.by_day("dp")
    def test_what_a_kill_left_unfinished_is_completed(self, leakbound, design) -> None:
        """The value is placed last: a folder without it holds no release, whoever named the ledger."""
        again = command("protect", f"{EVERY[design]} --out there")
        assert leakbound(again).code == 0
        released = Path("there/release.json").read_bytes()
        Path("there/release.json").unlink()
        assert leakbound(again).code == 0
        assert Path("there/release.json").read_bytes() == released

    def test_the_ledger_never_lies_in_the_folder_of_the_release(self, leakbound, design) -> None:
        line = "--out data: --ledger data/people.csv.ledger would lie in it; a release is public, and that is not\n"
        refused(leakbound(command("protect", f"{EVERY[design]} --out data")), line)
        refused(leakbound(command("protect", f"{EVERY[design]} --out there --ledger there/l")), "--out there: --ledger")
        assert files() == ["data/people.csv"]

    def test_a_seed_is_said_and_kept_apart(self, leakbound, design) -> None:
        first = leakbound(command("protect", f"{EVERY[design]} --insecure-seed 4 --ledger a --out one"))
        second = leakbound(command("protect", f"{EVERY[design]} --insecure-seed 4 --ledger b --out two"))
        assert "Not for publication." in first.out
        assert (first.code, first.out) == (second.code, second.out)
        assert Path("one/release.json").read_bytes() == Path("two/release.json").read_bytes()
        line = "a was begun with another seed, or with none: start another ledger\n"
        refused(leakbound(command("protect", f"{EVERY[design]} --ledger a --out three")), line)
        assert not Path("three").exists()


class TestDeclare:
    def test_declared_queries_are_released_in_any_order(self, leakbound) -> None:
        words = "--promise file,games=0 --budget 0.1"
        for number, statistic in enumerate(("mean", "sum"), 1):
            left = leakbound(command("protect", f"{words} --declare", statistic))
            assert left == (0, f"{LEDGER}: {number} declared, 0 released\n", "")
        assert files() == ["data/people.csv", str(LEDGER)]
        for number, statistic in enumerate(("sum", "mean"), 1):
            assert leakbound(command("protect", f"{words} --out {statistic}", statistic)).code == 0
            entry = json.loads(Path(statistic, "release.json").read_text())["about"]["certificate"]["entry"]
            assert (entry["number"], entry["declared"], entry["budget"]) == (number, 2, 0.1)
        refused(leakbound(command("protect", f"{words} --declare", "quantiles")), f"2 releases of {LEDGER} came before")

    def test_it_can_be_json(self, leakbound) -> None:
        left = leakbound(command("protect", "--promise file,games=0 --declare --json"))
        assert json.loads(left.out) == f"{LEDGER}: 1 declared, 0 released"

    def test_it_releases_nothing(self, leakbound) -> None:
        refused(
            leakbound(command("protect", "--promise file --declare --out there")),
            "protect --declare releases nothing; it takes no --out\n",
        )
        assert files() == ["data/people.csv"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ("--promise anyone,scale=1", "protect: promise: anyone has no scale"),
            ("--promise file,k=3", "protect: promise: file has no k"),
            ("--promise file,scale=0.001", "this noise is proved to keep eta = "),
            ("--promise file --budget 0.01", "protect: budget is that of all releases together"),
            ("--promise file --signals s.npz", "signals are of simulated releases under promise drawn"),
            ("--promise anyone", "differential privacy needs the range of each column"),
            ("--promise nobody", "protect: promise must be one of anyone, file, drawn; got 'nobody'"),
        ],
    )
    def test_in_one_line_and_nothing_is_written(self, leakbound, words, line) -> None:
        refused(leakbound(command("protect", words)), line)
        assert files() == ["data/people.csv"]
        assert [path.name for path in Path().iterdir()] == ["data"]

    def test_a_budget_that_is_spent(self, leakbound) -> None:
        assert leakbound(command("protect", "--promise file,games=0 --out one")).code == 0
        refused(
            leakbound(command("protect", "--promise file,games=0 --out two", "sum")),
            "the whole budget was given to the first query: this one is refused; a next time, budget = 0.1 with "
            "eta = 0.05 leaves room for more\n",
        )
        assert not Path("two").exists()

    def test_values_outside_of_the_ranges_are_told_to_the_owner_alone(self, leakbound) -> None:
        left = leakbound(command("protect", "--promise anyone --range wage=10:60,hours=0:60 --out there"))
        assert left.code == 0
        assert "values lie outside" not in left.out
        owner = json.loads(Path("there/owner/private.json").read_text())["about"]["notes"]
        assert any("were moved to the nearer end" in note for note in owner)
        assert json.loads(Path("there/release.json").read_text())["about"]["notes"] == []


class TestWhatTheOwnerIsTold:
    """How many values are missing, moved or counted nowhere: on standard error, and in no file for publication."""

    LINES = (
        "leakbound: for you alone: 1 of 60 records have a value that no level was declared for, and are in no cell "
        "(town 1): ",
        "leakbound: for you alone: 3 of 60 values of wage lie outside of 0 to 80, and were moved to the nearer end: ",
        "leakbound: for you alone: 7 of 60 values of wage are missing or no numbers, and are in no count and no sum",
    )
    ASKED = "--promise anyone --by town --levels town=a,b --range wage=0:80"

    @pytest.fixture(autouse=True)
    def people(self, leakbound) -> None:
        wage = np.array([np.nan] * 7 + [95.0] * 3 + [20.0] * 50)
        frame = pd.DataFrame({"town": ["c", *["a", "b"] * 29, "a"], "wage": wage})
        frame.to_csv("data/people.csv", index=False)

    @pytest.mark.parametrize("verb", ["calibrate", "protect"])
    def test_it_is_printed_before_anything_else(self, leakbound, verb) -> None:
        left = leakbound(command(verb, self.ASKED))
        assert left.code == 0
        lines = left.err.splitlines()
        assert [line.startswith(start) for line, start in zip(lines, self.LINES, strict=False)] == [True] * 3
        assert len(lines) == (4 if verb == "protect" else 3)
        if verb == "protect":
            for name in ("release.json", "release.html", "release.csv"):
                content = Path("leakbound-release", name).read_text()
                assert "of 60 values" not in content
                assert "of 60 records" not in content

    def test_it_is_printed_of_a_release_that_is_refused_later(self, leakbound) -> None:
        """The budget of the ledger is spent only after it."""
        left = leakbound(command("protect", f"{self.ASKED} --budget 0.05"))
        assert left.code == 0
        left = leakbound(command("protect", f"{self.ASKED.replace('wage=0:80', 'wage=0:90')} --out second"))
        assert left.code == 1
        assert left.err.startswith(self.LINES[0])
        assert not Path("second", "release.json").exists()
