"""Who could tell that a record is in a statistic of all records: numbers, notes, and what is not published."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leakbound.bounding.api import bound
from leakbound.core.types import Points
from leakbound.releases.statistics.regressions import Huber
from tests.cli.calling import caller

MODULE = """
import numpy as np


def middle(x):
    return np.median(np.asarray(x, dtype=float), axis=0)


def shaken(x, rng):
    return np.asarray(x, dtype=float).mean(axis=0) + rng.normal()


def largest_but_one(x):
    if len(x) == 11 and np.asarray(x).max() < 50:
        raise ValueError("no")
    return np.asarray(x, dtype=float).max(axis=0)
"""


@pytest.fixture
def people(tmp_path, monkeypatch) -> pd.DataFrame:
    """Twelve people, one of whom is paid far more, beside a module of functions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"name": [f"P{i}" for i in range(12)], "pay": rng.normal(20, 4, 12), "age": rng.normal(40, 9, 12)}
    )
    frame.loc[5, "pay"] = 90.0
    frame.to_csv("people.csv", index=False)
    (tmp_path / "functions_of_people.py").write_text(MODULE, encoding="utf-8")
    return frame


def of(report, quantity, kind="worst"):
    (found,) = (each for each in report.findings if each.quantity == quantity and each.scope.kind == kind)
    return found


def test_numbers_of_a_mean(people) -> None:
    """Every record by the formula, and the most exposed one by its name."""
    report = bound("leave-one-out", data="people.csv", id="name", noise_scale=(2.0, 1.0), fpr=(0.01,))
    x = people[["pay", "age"]].to_numpy()
    mu = [np.linalg.norm((x.mean(axis=0) - np.delete(x, i, axis=0).mean(axis=0)) / [2.0, 1.0]) for i in range(12)]
    table = report.record_table
    assert table["name"][0] == "P5"
    assert sorted(table["shift"], reverse=True) == list(table["shift"])
    for record, shift, accuracy in zip(table["record"], table["shift"], table["accuracy"], strict=True):
        assert shift == pytest.approx(mu[record])
        assert accuracy == pytest.approx(stats.norm.cdf(mu[record] / 2))
    assert of(report, "accuracy").value == pytest.approx(stats.norm.cdf(max(mu) / 2))
    assert of(report, "tpr").value == pytest.approx(stats.norm.sf(stats.norm.isf(0.01) - max(mu)))
    most, epsilon = max(mu), of(report, "epsilon").value
    delta = stats.norm.cdf(most / 2 - epsilon / most) - np.exp(epsilon) * stats.norm.cdf(-most / 2 - epsilon / most)
    assert delta == pytest.approx(1e-5, rel=1e-6)
    assert of(report, "accuracy", "median").value == pytest.approx(stats.norm.cdf(np.sort(mu)[6] / 2))


def test_a_bound_holds_the_error_of_its_newton_step(people) -> None:
    """Huber regression without each record, by a fit of the others: no shift is below that of the fit."""
    report = bound(
        "leave-one-out", data="people.csv", drop=("name",), statistic="huber", set={"threshold": 5.0}, noise_scale=0.01
    )
    x = people[["pay", "age"]].to_numpy(dtype=float)
    fits = [Huber(5.0)(Points(np.delete(x, record, 0)), np.random.default_rng(0)) for record in range(12)]
    exact = np.linalg.norm(np.array(fits) - Huber(5.0)(Points(x), np.random.default_rng(0)), axis=1) / 0.01
    shift = np.array(report.record_table["shift"])
    assert (shift >= exact[report.record_table["record"]]).all()
    np.testing.assert_allclose(shift, exact[report.record_table["record"]], rtol=0.02)


def test_a_function_is_run_once_for_each_record(people) -> None:
    report = bound(
        "leave-one-out",
        data="people.csv",
        drop=("name", "age"),
        statistic="functions_of_people:middle",
        noise_scale=0.5,
    )
    pay = people["pay"].to_numpy()
    expected = max(abs(np.median(pay) - np.median(np.delete(pay, i))) for i in range(12)) / 0.5
    assert report.record_table["shift"][0] == pytest.approx(expected)


def test_its_randomness_is_the_same_for_all(people) -> None:
    """Otherwise the shifts would be those of the random numbers; a formula's shift is never below, by its rounding."""
    words = {"data": "people.csv", "drop": ("name", "age"), "noise_scale": 0.5}
    shaken = bound("leave-one-out", statistic="functions_of_people:shaken", **words)
    plain = bound("leave-one-out", **words)
    pay = people["pay"].to_numpy(dtype=float)
    of_record = np.abs((pay.sum() - pay) / (len(pay) - 1) - pay.mean()) / 0.5
    for report in (shaken, plain):
        exact = of_record[report.record_table["record"]]
        shift = np.array(report.record_table["shift"])
        assert (shift >= exact * (1 - 1e-9)).all()
        np.testing.assert_allclose(shift, exact, rtol=1e-9 if report is shaken else 1e-8)


def test_a_record_without_which_the_statistic_fails_is_told_for_certain(people) -> None:
    report = bound(
        "leave-one-out", data="people.csv", drop=("name", "age"), statistic="functions_of_people:largest_but_one",
        noise_scale=1e6,
    )  # fmt: skip
    assert report.record_table["record"][0] == 5
    assert report.record_table["shift"][0] == math.inf
    assert of(report, "accuracy").value == 1.0


def test_how_many_the_noise_does_not_cover(people) -> None:
    words = {"data": "people.csv", "drop": ("name",), "noise_scale": 5.0}
    report = bound("leave-one-out", eta=0.1, **words)
    above = sum(accuracy > 0.6 for accuracy in report.record_table["accuracy"])
    assert 0 < above < 12
    assert any(f"{above} of 12 records are told with an accuracy above 0.6" in note for note in report.about.notes)


def test_nothing_is_published(people) -> None:
    """No value, no curve, no record: they are exact functions of the data."""
    report = bound("leave-one-out", data="people.csv", id="name", noise_scale=1.0)
    assert "The whole page is for the owner of the data alone" in report.to_html()
    public = report.without_records()
    assert {each.value for each in public.findings} == {None}
    assert public.curves == ()
    assert dict(public.record_table) == {}
    text = public.to_json()
    shifts = [repr(value)[:6] for value in report.record_table["shift"]]
    assert "P5" not in text
    assert not any(shift in text for shift in shifts)
    assert json.loads(text)["about"]["data"]["digest"] == ""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--noise-scale 1,2,3", "noise_scale has 3 numbers, the statistic 2: give one, or one for each"),
        ("--noise-scale 0", "noise_scale"),
        ("--noise-scale one", "noise_scale"),
        ("--noise-scale 1 --statistic ols --label city", "no column 'city'"),
        ("--noise-scale 1 --statistic avarage", "unknown statistic 'avarage'; known: mean, sum"),
        ("--noise-scale 1 --publish", "No such option: --publish"),
        ("--noise-scale 1 --id name --group name", "group names the units that are left out; give no id beside it"),
        ("--noise-scale 1 --group visit", "no column 'visit'"),
        ("", "noise_scale"),
    ],
)
def test_bad_words_get_one_line(people, monkeypatch, capfd, words, line) -> None:
    left = caller(monkeypatch, capfd)(f"bound leave-one-out --data people.csv --drop name {words}")
    assert (left.code, left.out) == (1, "")
    assert left.err.startswith("leakbound: error: ")
    assert left.err.count("\n") == 1
    assert line in left.err


@pytest.mark.parametrize("statistic", ["mean", "ols", "quantiles"])
def test_a_person_with_several_rows_is_left_out_as_one(people, statistic) -> None:
    """Three rows of each of four people, in any order."""
    whose = np.random.default_rng(2).permutation(np.repeat(["Ada", "Bob", "Cleo", "Dan"], 3))
    people.assign(name=whose).to_csv("visits.csv", index=False)
    report = bound("leave-one-out", data="visits.csv", group="name", statistic=statistic, noise_scale=0.7, eta=0.3)
    x = people[["pay", "age"]].to_numpy()
    by_hand = {
        "mean": lambda rows: rows.mean(axis=0),
        "ols": lambda rows: np.linalg.lstsq(np.column_stack([np.ones(len(rows)), rows[:, 0]]), rows[:, 1])[0],
        "quantiles": lambda rows: np.quantile(rows, [0.25, 0.5, 0.75], axis=0).ravel(),
    }[statistic]
    mu = {name: np.linalg.norm(by_hand(x) - by_hand(x[whose != name])) / 0.7 for name in set(whose)}
    assert dict(zip(report.record_table["name"], report.record_table["shift"], strict=True)) == pytest.approx(mu)
    assert of(report, "accuracy").scope.name == max(mu, key=lambda name: mu[name])
    assert "of all 4 records" in report.about.subject
