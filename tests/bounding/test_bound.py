"""Bounds as reports: every row of the table, from words to findings."""

from __future__ import annotations

import json
import math
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import get_type_hints

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator

import leakbound as ls
from leakbound.bounding.api import bound
from leakbound.bounds import BOUNDS
from leakbound.plans import BOUND_PLANS
from leakbound.plans.bounds import DpsgdPlan
from leakbound.plans.protects import MultiplierPlan
from leakbound.protection import multiplier_report
from leakbound.releases.specs import own
from leakbound.reports import Report
from tests.marks import nightly_but

NUMBERS = {
    "dp": {"epsilon": 1.0},
    "gaussian": {"mu": 1.0},
    "dpsgd": {"noise_multiplier": 2.0, "sample_rate": 0.1, "steps": 5},
    "gap": {"gap": 0.1},
    "information": {"information": 0.1},
}
OF_DATA = {
    "pmp": {"clip": 2.0, "scale": 0.5, "drop": ("id", "city", "sex")},
    "leakage": {"drop": ("city", "sex")},
    "table": {"by": "city,sex"},
    "total": {"column": "hours"},
    "leave-one-out": {"drop": ("id", "city", "sex"), "noise_scale": (0.5, 1.0)},
    "regression": {"drop": ("id", "city", "sex")},
}


@pytest.fixture(scope="module")
def people(tmp_path_factory) -> str:
    """Forty people, one of them far from all others."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": np.arange(40),
            "hours": np.r_[rng.integers(30, 50, 39), 99],
            "wage": np.r_[rng.normal(20, 4, 39), 90.0],
            "city": ["Paris", "Rome"] * 20,
            "sex": ["f", "f", "m", "m"] * 10,
        }
    )
    file = tmp_path_factory.mktemp("data") / "people.csv"
    frame.to_csv(file, index=False)
    return str(file)


@cache
def made(name: str, people: str) -> Report:
    """The same report for all tests that only read it."""
    words = NUMBERS[name] if name in NUMBERS else OF_DATA[name] | {"data": people}
    return bound(name, **words)


def test_every_row_has_a_plan_a_theorem_and_a_report() -> None:
    assert set(BOUNDS) == set(BOUND_PLANS) == set(NUMBERS) | set(OF_DATA)
    for row in BOUNDS.values():
        plan = get_type_hints(own(row.report))["plan"]
        assert plan is BOUND_PLANS[row.name]
        assert callable(own(row.function))
        assert row.example.startswith(f"leakbound bound {row.name} ")


@pytest.mark.parametrize("name", list(BOUNDS))
def test_the_json_of_every_bound_matches_the_schema(name: str, people: str) -> None:
    schema = json.loads(resources.files("leakbound.reports").joinpath("schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(json.loads(made(name, people).to_json()))


@pytest.mark.parametrize("name", list(BOUNDS))
class TestEveryBound:
    def test_says_what_it_is(self, name: str, people: str) -> None:
        report = made(name, people)
        assert report.about.kind == "bound"
        assert report.about.bound == name
        assert report.about.subject
        assert report.findings
        for each in report.findings:
            assert each.value is not None
            assert each.status in ("certified", "asymptotic")
            assert each.source
            assert each.game or each.assumptions
        accuracy = [each for each in report.findings if each.quantity == "accuracy"]
        assert all(0.5 <= (each.value or 0) <= 1 for each in accuracy)

    def test_the_same_words_give_the_same_bytes_without_path_or_clock(self, name: str, people: str) -> None:
        first, second = (make(name, people).to_json() for make in (made, made.__wrapped__))
        assert first == second
        assert str(Path(people).parent) not in first

    def test_json_comes_back(self, name: str, people: str, tmp_path) -> None:
        report = made(name, people)
        report.to_json(tmp_path / "report.json")
        assert Report.from_json(tmp_path / "report.json").to_json() == report.to_json()
        assert json.loads(report.to_json())["schema"] == 1

    def test_status_is_that_of_the_row(self, name: str, people: str) -> None:
        assert {each.status for each in made(name, people).findings} == {BOUNDS[name].status}


@pytest.mark.parametrize("name", nightly_but(BOUNDS, "gap", "information", "table", "total", "regression"))
def test_text_page_and_plot(name: str, people: str) -> None:
    report = made(name, people)
    assert max(map(len, report.table().splitlines())) <= 100
    assert report.to_html().startswith("<!doctype html>")
    assert report._repr_html_()
    if report.curves:
        assert report.plot().get_lines()


def test_unknown_bound_and_unknown_word() -> None:
    with pytest.raises(ValueError, match="unknown bound 'tabel' \\(did you mean 'table'\\?\\); known: dp, gaussian"):
        bound("tabel")
    with pytest.raises(ValueError, match="bound dp: unknown key 'epsilom' \\(did you mean 'epsilon'\\?\\)"):
        bound("dp", epsilom=1)


def test_it_is_public() -> None:
    assert ls.bound is bound
    assert ls.bounds.mip_from_dp(1.0) == pytest.approx((math.e - 1) / (2 * (math.e + 1)))


class TestTrainingByEpochs:
    """Epochs, batch size and records in place of the sample rate and the steps."""

    WORDS = MappingProxyType({"noise_multiplier": 1.0, "delta": 1e-5})

    def test_the_same_training_has_the_same_bound(self):
        by_steps = ls.bound("dpsgd", sample_rate=0.01, steps=1000, **self.WORDS)
        by_epochs = ls.bound("dpsgd", epochs=10, batch_size=600, records=60_000, **self.WORDS)
        assert by_epochs.findings == by_steps.findings

    @pytest.mark.parametrize(
        ("epochs", "steps"), [(30, 7032), (0.5, 118), (256 / 60_000, 1), (1 / 60_000, 1), (2.5 * 256 / 60_000, 3)]
    )
    def test_a_last_batch_that_is_not_full_is_a_step(self, epochs, steps):
        plan = DpsgdPlan(noise_multiplier=1, epochs=epochs, batch_size=256, records=60_000)
        assert plan.n_steps == steps
        assert plan.rate == pytest.approx(256 / 60_000)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ({}, "give sample_rate and steps, or epochs, batch_size and records; got none"),
            ({"sample_rate": 0.1}, "give sample_rate and steps, or epochs, batch_size and records; got sample_rate"),
            ({"steps": 3, "epochs": 2, "batch_size": 1, "records": 9}, "got steps, epochs, batch_size, records"),
            ({"epochs": 2, "batch_size": 10}, "got epochs, batch_size"),
            ({"epochs": 2, "batch_size": 10, "records": 9}, "batch_size must be <= records, got 10 of 9"),
        ],
    )
    def test_anything_else_is_refused(self, words, message):
        with pytest.raises(ValueError, match=message):
            ls.bound("dpsgd", **words, **self.WORDS)

    @pytest.mark.slow
    def test_the_noise_for_it(self):
        by_steps = MultiplierPlan(sample_rate=0.01, steps=100, advantage=0.2)
        by_epochs = MultiplierPlan(epochs=1, batch_size=10, records=1000, advantage=0.2)
        assert multiplier_report(by_epochs).findings == multiplier_report(by_steps).findings
