"""``leakbound calibrate dpsgd``: the multiplier, what it keeps, what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from leakbound.core.types import NotApplicable
from leakbound.dpsgd import dpsgd_multiplier
from leakbound.dpsgd.accountant import dpsgd
from leakbound.plans import MultiplierPlan
from leakbound.protection import multiplier, multiplier_report
from leakbound.reports import Report
from tests.cli.calling import Left, caller, refused
from tests.marks import nightly

SCHEMA = json.loads(resources.files("leakbound.reports").joinpath("schema.json").read_text(encoding="utf-8"))


LEAST = multiplier._least
KNOWN: dict[tuple, float] = {}


@pytest.fixture(autouse=True)
def multipliers_are_found_once(monkeypatch) -> None:
    """The least multiplier for each question, for all tests that ask it."""

    def least(plan: MultiplierPlan, adjacency: str) -> float:
        key = (plan.rate, plan.n_steps, plan.batches, *plan.target.items(), adjacency)
        if key not in KNOWN:
            KNOWN[key] = LEAST(plan, adjacency)  # pyright: ignore[reportArgumentType]
        return KNOWN[key]

    monkeypatch.setattr(multiplier, "_least", least)


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd, as_users_run_it) -> Callable[[str], Left]:
    """A command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return caller(monkeypatch, capfd)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "promise"),
    [
        ({"advantage": 0.1}, "advantage <= 0.1"),
        nightly({"fpr": 0.05, "fnr": 0.8}, "fnr >= 0.8 at fpr = 0.05"),
        nightly({"epsilon": 2.0, "delta": 1e-6}, "(2, 1e-06)-DP"),
    ],
)
@pytest.mark.parametrize("adjacency", ["replace_one", nightly("add_remove")])
def test_what_is_printed(leakbound, target, promise: str, adjacency: str) -> None:
    flags = " ".join(f"--{name} {value}" for name, value in target.items())
    left = leakbound(f"calibrate dpsgd --sample-rate 0.01 --steps 1000 --adjacency {adjacency} {flags} --full")
    assert (left.code, left.err) == (0, "")
    assert max(map(len, left.out.splitlines())) <= 100
    assert left.out.startswith(f"Which noise keeps {promise} in DP-SGD?\nBound · noise multiplier ")
    kept = re.search(rf"Noise multiplier (\S+) keeps {re.escape(promise)}; 0.1 % less does not\.$", left.out, re.M)
    assert kept
    multiplier = float(kept[1])
    curve, less = (dpsgd(factor * multiplier, 0.01, 1000, adjacency) for factor in (1, 0.999))  # pyright: ignore[reportArgumentType]
    assert keeps(curve, **target)
    assert not keeps(less, **target)
    words = " ".join(left.out.split())
    assert f"The game, adjacency {adjacency}: " in words
    assert "Source: dp_accounting, " in words
    short = leakbound(f"calibrate dpsgd --sample-rate 0.01 --steps 1000 --adjacency {adjacency} {flags}").out
    assert f"• Noise multiplier {kept[1]} keeps {promise}; 0.1 % less does not." in short
    for rate in ("FPR 1 %", "FPR 0.1 %"):
        assert f"TPR of any attacker at {rate}" in short
    assert ("TPR of any attacker at FPR 5 %" in short) == ("fpr" in target)
    assert "ε at δ = 10⁻⁵" in words
    assert ("ε at δ = 10⁻⁶" in words) == ("delta" in target)


@pytest.mark.slow
def test_epochs_with_the_number_of_records(leakbound) -> None:
    left = leakbound("calibrate dpsgd --epochs 10 --batch-size 60 --records 6000 --advantage 0.1 --json")
    assert (left.code, left.err) == (0, "")
    found = json.loads(left.out)
    assert " --records 6000 " in found["about"]["command"]
    by_steps = json.loads(leakbound("calibrate dpsgd --sample-rate 0.01 --steps 1000 --advantage 0.1 --json").out)
    assert found["findings"] == by_steps["findings"]


@pytest.mark.by_day("replace_one-2.5193")
@pytest.mark.parametrize(("adjacency", "noise"), [("replace_one", 2.5193), ("add_remove", 1.4224)])
def test_multipliers_from_elsewhere(adjacency, noise: float) -> None:
    """Found by bisection on dp_accounting's own privacy loss distributions."""
    plan = MultiplierPlan(sample_rate=0.01, steps=1000, advantage=0.1, adjacency=adjacency)
    assert multiplier_report(plan).about.plan["noise_multiplier"] == pytest.approx(noise, rel=3e-3)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_both_ways_of_counting_neighbours_are_printed(leakbound, adjacency) -> None:
    """The multipliers of (2, 1e-6)-DP by bisection on the accountant's curves, whichever was asked for."""
    command = "calibrate dpsgd --sample-rate 0.01 --steps 1000 --epsilon 2 --delta 1e-6"
    left = leakbound(f"{command} --adjacency {adjacency}")
    words = " ".join(left.out.split())
    other = {"replace_one": "add_remove", "add_remove": "replace_one"}[adjacency]
    told = re.search(rf"With adjacency {other} \([^)]*\) noise multiplier (\S+) keeps it", words)
    assert told
    assert ("as Opacus and TF Privacy count" in words) == (other == "add_remove")
    about = json.loads(leakbound(f"{command} --adjacency {adjacency} --json").out)["about"]["plan"]
    found = about["noise_multipliers"]
    assert found[adjacency] == about["noise_multiplier"]
    assert found[other] == float(told[1])
    assert found["add_remove"] < found["replace_one"]
    for name, least in found.items():
        assert dpsgd(least, 0.01, 1000, name).delta(2.0) <= 1e-6
        assert dpsgd(0.998 * least, 0.01, 1000, name).delta(2.0) > 1e-6


def test_where_the_other_way_needs_no_noise_this_is_said(monkeypatch) -> None:
    def least(plan: MultiplierPlan, adjacency: str) -> float:
        if adjacency == "add_remove":
            raise NotApplicable("no_noise_needed", limit="advantage = 0.1")
        return 2.5

    monkeypatch.setattr(multiplier, "_least", least)
    made = multiplier_report(MultiplierPlan(sample_rate=0.01, steps=10, advantage=0.1))
    assert made.about.plan["noise_multipliers"] == {"replace_one": 2.5, "add_remove": None}
    assert any(note.endswith("count): no noise is needed for advantage = 0.1") for note in made.about.notes)
    Draft202012Validator(SCHEMA).validate(json.loads(made.to_json()))


@pytest.mark.slow
def test_batches_of_fixed_size(leakbound) -> None:
    left = leakbound("calibrate dpsgd --sample-rate 0.01 --steps 100 --advantage 0.1 --batches fixed --json")
    assert (left.code, left.err) == (0, "")
    found = next(each for each in json.loads(left.out)["findings"] if each["quantity"] == "noise_multiplier")
    curve, less = (dpsgd(factor * found["value"], 0.01, 100, "replace_one", batches="fixed") for factor in (1, 0.999))
    assert keeps(curve, advantage=0.1)
    assert not keeps(less, advantage=0.1)
    assert "drawn without replacement" in left.out
    left = leakbound("calibrate dpsgd --sample-rate 0.01 --steps 100 --advantage 0.1 --batches sliced")
    refused(left, "calibrate dpsgd: batches")


def test_json_and_nothing_else(leakbound) -> None:
    command = "calibrate dpsgd --sample-rate 1 --steps 100 --epsilon 1 --delta 1e-5"
    left = leakbound(f"{command} --json")
    assert (left.code, left.err) == (0, "")
    content = json.loads(left.out)
    Draft202012Validator(SCHEMA).validate(content)
    about = content["about"]
    assert about["command"] == f"leakbound {command}"
    assert about["plan"]["target"] == "(1, 1e-05)-DP"
    least = dpsgd_multiplier(1, 100, epsilon=1, delta=1e-5)
    assert least <= about["plan"]["noise_multiplier"] <= least * (1 + 1e-5)
    assert [each["operating_point"] for each in content["findings"] if each["quantity"] == "epsilon"] == [
        {"delta": 1e-5}
    ]
    assert list(Path().iterdir()) == []


def test_its_page_can_be_drawn(tmp_path) -> None:
    made = multiplier_report(MultiplierPlan(sample_rate=1, steps=1, advantage=0.2), "leakbound calibrate dpsgd")
    made.to_json(tmp_path / "report.json")
    assert "Noise multiplier" in Report.from_json(tmp_path / "report.json").to_html()


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("", "calibrate dpsgd: give advantage, or fpr and fnr, or epsilon and delta; got none"),
        ("--fpr 0.1", "calibrate dpsgd: give advantage, or fpr and fnr, or epsilon and delta; got fpr"),
        (
            "--advantage 0.1 --epsilon 1 --delta 1e-5",
            "calibrate dpsgd: give advantage, or fpr and fnr, or epsilon and delta; got advantage, epsilon, delta",
        ),
        ("--fpr 0.1 --fnr 0.95", "calibrate dpsgd: fnr must be < 0.9, that of a guess at fpr = 0.1; got 0.95"),
        ("--advantage 0.9", "calibrate dpsgd: no noise is needed for advantage = 0.9"),
        ("--advantage 1e-13", "no noise is enough for advantage = 1e-13: the accountant counts 1e-12 as lost"),
        ("--advantage 0.1 --sigma 2", "No such option: --sigma"),
    ],
)
def test_one_line_for_what_cannot_be(leakbound, flags: str, line: str) -> None:
    refused(leakbound(f"calibrate dpsgd --sample-rate 0.01 --steps 20 {flags}"), line)


def test_steps_and_rate_are_needed(leakbound) -> None:
    refused(
        leakbound("calibrate dpsgd --steps 20 --advantage 0.1"),
        "calibrate dpsgd: give sample_rate and steps, or epochs, batch_size and records; got steps",
    )


@pytest.mark.parametrize("flags", ["--data x.csv", "--n-jobs 2", "--json", "--out there", "--by a", "--compare all"])
def test_flags_before_the_command_are_refused(leakbound, flags: str) -> None:
    line = f"calibrate dpsgd takes no {flags.split()[0]} before it"
    refused(leakbound(f"calibrate {flags} dpsgd --sample-rate 0.1 --steps 9 --advantage 0.1"), line)


def keeps(
    curve: Any,
    advantage: float = 1,
    fpr: float = 0.5,
    fnr: float = 0,
    epsilon: float = 0,
    delta: float = 1,
) -> bool:
    """What a trade-off says of a target."""
    return curve.advantage() <= advantage and float(curve.fnr(fpr)) >= fnr and curve.delta(epsilon) <= delta
