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
from leakbound.reports.sections.protected import sign_off
from leakbound.reports.sections.protected.designs import ONE_DESIGN
from tests.cli.calling import Left, caller, draw_no_pages

LEVELS = "--levels sector=care,trade,build,it,food --levels region=n,s,e,w"
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


def test_a_calibration_begins_with_a_short_form_to_sign(leakbound) -> None:
    lines = leakbound(f"calibrate {TABLE} --promise file,games=0 --compare drawn,fits=40").out.splitlines()
    assert lines[0] == "Would be released: 20 numbers (table by sector, region) of people.csv, 390 records"
    assert lines[1].startswith(
        "Promise: file (design leave-one-out), eta = 0.05: any attacker is right in at most 55.0"
    )
    assert lines[2].startswith("Noise: standard deviation 4.")
    assert lines[2].endswith("of the standard error without noise")
    assert lines[3].startswith(
        "Release it with: leakbound protect --data people.csv --statistic table --by sector,region"
    )


def test_the_ratios_are_those_of_the_table_below(leakbound) -> None:
    left = leakbound(f"calibrate {TABLE} --promise file,games=0 --json")
    planned = json.loads(left.out)["about"]["planned"]
    ratios = [row["noise_std"] / row["sampling_std"] for row in planned if row["noise_std"] and row["sampling_std"]]
    lines = leakbound(f"calibrate {TABLE} --promise file,games=0").out.splitlines()
    assert f", {min(ratios):.2f} to {max(ratios):#.2g} of the standard error" in lines[2]


def test_before_a_choice_it_has_the_recommended_design(leakbound) -> None:
    lines = leakbound(f"calibrate {TABLE} --compare drawn,fits=40").out.splitlines()
    first = flat(" ".join(lines[:5]))
    assert first.startswith("Would be released: 20 numbers. Nothing is chosen yet; recommended: promise anyone (design")
    assert "of the standard error without noise. Release it with: leakbound protect --data people.csv" in first
    assert f"{LEVELS} --eta 0.05 --promise anyone" in first


def test_the_command_releases(leakbound) -> None:
    text = flat(leakbound(f"calibrate {TABLE} --promise file,games=0").out)
    command = text.partition("Release it with: leakbound ")[2].partition(" Who is left out")[0]
    assert leakbound(command).code == 0
    assert Path("leakbound-release/release.json").exists()


@pytest.mark.parametrize("promise", ["anyone", "file,games=0", "drawn,games=0"])
def test_a_calibration_checks_the_rules_of_offices(leakbound, promise) -> None:
    """For a threshold of 12, the cells of 10 and 11 records fail."""
    left = leakbound(f"calibrate {TABLE} --promise {promise} --rules minimum=12 --json")
    (rule,) = json.loads(left.out)["about"]["rules"]
    assert (rule["rule"], rule["thresholds"], rule["checked"]) == ("minimum_frequency", {"minimum": 12.0}, 20)
    assert rule["failing"] == ["care / n", "trade / n"]
    assert "2 of 20: care / n;" in flat(leakbound(f"calibrate {TABLE} --promise {promise} --rules minimum=12").out)


def test_so_does_the_table_of_all_designs(leakbound) -> None:
    text = flat(leakbound(f"calibrate {TABLE} --compare drawn,fits=40 --rules minimum=12").out)
    assert "at least 12 records in a cell" in text
    assert "2 of 20: care / n;" in text


def test_the_owner_hears_that_a_design_is_for_life_before_the_first_release(leakbound) -> None:
    """Where nothing was chosen, in a comparison, and on the owner's page; the public one is for others."""
    for command in (
        "--compare drawn,fits=40",
        "--promise file,games=0 --compare drawn,fits=40",
        "--promise file,games=0",
    ):
        assert flat(leakbound(f"calibrate {TABLE} {command}").out).count(ONE_DESIGN) == 1
    assert ONE_DESIGN not in flat(leakbound(f"protect {TABLE} --promise file,games=0").out)


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
    assert sign_off.PROMISES == NAME_OF


def test_the_page_of_a_calibration_says_whom_it_is_for_before_all_else() -> None:
    x = np.random.default_rng(0).normal(size=(30, 1))
    page = ls.calibrate("mean", x, eta=0.1, promise=ls.File(games=0), n_jobs=1).certificate.to_html()
    body = page[page.index("<body") :]
    assert body.count("Not for publication") == 1
    assert body.index("Not for publication") < body.index("Would be released") < body.index("The promise")
