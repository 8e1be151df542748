"""What an owner is told before the first release: a short form to sign, office rules, the choice of a design."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound.plans.promises import NAME_OF
from leakbound.reports.results.release import designs as release_designs
from tests.cli.calling import Left, caller, draw_no_pages

LEVELS = "--levels sector=care,trade,build,it,food --levels region=n,s,e,w"
ONE_PROMISE = "after it, a release of these data under another promise is refused unless it is asked for"
TABLE = f"--data people.csv --statistic table --by sector,region {LEVELS} --eta 0.05"


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd) -> Callable[[str], Left]:
    monkeypatch.chdir(tmp_path)
    draw_no_pages(monkeypatch)
    sectors, regions = np.meshgrid(["care", "trade", "build", "it", "food"], ["n", "s", "e", "w"])
    frame = pd.DataFrame({"sector": sectors.ravel(), "region": regions.ravel()})
    frame = frame.loc[frame.index.repeat(list(range(10, 30)))]
    frame.to_csv("people.csv", index=False)
    return caller(monkeypatch, capfd)


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.slow
def test_a_calibration_begins_with_a_short_form_to_sign(leakbound) -> None:
    text = leakbound(f"calibrate {TABLE} --promise file,games=0 --compare drawn,fits=40").out
    assert len(text.splitlines()) <= 40
    bullets = [flat(bullet) for bullet in text.split(" • ")[1:]]
    assert bullets[0] == (
        "Would be released under promise file: 20 numbers (table by sector, region) of people.csv, 390 records."
    )
    assert bullets[1].startswith("Noise. Standard deviation 4.")
    assert bullets[1].endswith("of the standard error without noise.")
    assert bullets[3].startswith(
        "Release it with leakbound protect --data people.csv --statistic table --by sector,region"
    )


def test_the_ratios_are_those_of_the_table_below(leakbound) -> None:
    left = leakbound(f"calibrate {TABLE} --promise file,games=0 --json")
    planned = json.loads(left.out)["about"]["planned"]
    ratios = [row["noise_std"] / row["sampling_std"] for row in planned if row["noise_std"] and row["sampling_std"]]
    text = flat(leakbound(f"calibrate {TABLE} --promise file,games=0").out)
    assert f", {min(ratios):.2f} to {max(ratios):#.2g} of the standard error" in text


def test_before_a_choice_it_has_the_recommended_design(leakbound) -> None:
    first = flat(leakbound(f"calibrate {TABLE} --compare drawn,fits=40").out)
    assert "Would be released: 20 numbers. Nothing is chosen yet; recommended: promise anyone." in first
    assert "of the standard error without noise. • Release it with leakbound protect --data people.csv" in first
    assert f"{LEVELS} --eta 0.05 --promise anyone" in first


def test_before_a_choice_all_rows_are_shown_in_full(leakbound) -> None:
    """Of 20 numbers the first 6, and with --full each of them."""
    command = f"calibrate {TABLE} --compare drawn,fits=40"
    short, full = leakbound(command).out, leakbound(f"{command} --full").out
    cells = [f"{sector} / {region}" for sector in ("care", "trade", "build", "it", "food") for region in "nsew"]
    assert sum(cell in short for cell in cells) == 6
    assert all(cell in full for cell in cells)
    assert "The first of 20" not in flat(full)


def test_the_command_releases(leakbound) -> None:
    text = flat(leakbound(f"calibrate {TABLE} --promise file,games=0").out)
    command = text.partition("Release it with leakbound ")[2].partition(" If both answers")[0]
    assert leakbound(command).code == 0
    assert Path("leakbound-release/release.json").exists()


@pytest.mark.by_day("anyone")
@pytest.mark.parametrize("promise", ["anyone", "file,games=0", "drawn,games=0"])
def test_a_calibration_checks_the_rules_of_offices(leakbound, promise) -> None:
    """For a threshold of 12, the cells of 10 and 11 records fail."""
    left = leakbound(f"calibrate {TABLE} --promise {promise} --rules minimum=12 --json")
    (rule,) = json.loads(left.out)["about"]["rules"]
    assert (rule["rule"], rule["thresholds"], rule["checked"]) == ("minimum_frequency", {"minimum": 12.0}, 20)
    assert rule["failing"] == ["care / n", "trade / n"]
    text = flat(leakbound(f"calibrate {TABLE} --promise {promise} --rules minimum=12 --full").out)
    assert "2 of 20: care / n;" in text


def test_so_does_the_table_of_all_designs(leakbound) -> None:
    text = flat(leakbound(f"calibrate {TABLE} --compare drawn,fits=40 --rules minimum=12").out)
    assert "Minimum frequency (at least 12 records in a cell that is not empty)" in text
    assert "2 of 20: care / n;" in text


@pytest.mark.slow
def test_the_owner_hears_that_a_design_is_for_life_before_the_first_release(leakbound) -> None:
    """Where nothing was chosen, in a comparison, and on the owner's page; the public one is for others."""
    for command in (
        "--compare drawn,fits=40",
        "--promise file,games=0 --compare drawn,fits=40",
        "--promise file,games=0",
    ):
        assert flat(leakbound(f"calibrate {TABLE} {command}").out).count(ONE_PROMISE) == 1
    assert ONE_PROMISE not in flat(leakbound(f"protect {TABLE} --promise file,games=0").out)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "table --by region",
            "195 of the 390 records are drawn at random into the data. An attacker who guesses",
        ),
        ("table --by region --k 100", "100 of the 390 records are drawn at random into the data. An attacker"),
        (
            "table --by region --sampling poisson --prior 0.25",
            "Each of the 390 records is in the data with probability 0.25. An attacker who guesses",
        ),
    ],
)
def test_a_bound_says_its_game_in_the_first_sentence_of_its_finding(leakbound, command, said) -> None:
    left = leakbound(f"bound {command} --data people.csv")
    assert left.out.split("\n\n")[1].replace("\n", " ").startswith(said)


def test_the_short_form_names_the_promise_of_each_design() -> None:
    assert release_designs.PROMISES == NAME_OF


def test_the_page_of_a_calibration_says_whom_it_is_for_before_all_else() -> None:
    x = np.random.default_rng(0).normal(size=(30, 1))
    page = ls.calibrate("mean", x, eta=0.1, promise=ls.File(games=0), n_jobs=1).certificate.to_html()
    body = page[page.index("<body") :]
    assert body.count("Not for publication") == 1
    assert body.index("Not for publication") < body.index("Would be released") < body.index("The promise")
