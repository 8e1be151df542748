"""What a reader of released numbers must know of the statistic is published: class, scale, penalty, response."""

from __future__ import annotations

import html
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakbound.data import from_arrays
from leakbound.plans.promises import File
from leakbound.plans.protects import CalibrationPlan
from leakbound.plans.statistics import STATISTICS
from leakbound.protection.certificate.statistic_parameters import parameters_of
from leakbound.releases.statistics.logistic import Logistic
from leakbound.releases.statistics.statistic import Fit
from leakbound.reports.about import StatisticParameters
from leakbound.reports.results.release.parameters import parameter_notes
from tests.promising import calibrate_file, protect_file

CENTRED = {"centre": [40, 30], "spread": [10, 8]}
# Of each statistic: its fields in a plan, the facts that are published, and what the page says.
OF_EACH: dict[str, tuple[dict[str, Any], dict[str, Any] | None, str]] = {
    "mean": ({}, None, ""),
    "sum": ({}, None, ""),
    "second_moment": (
        {"set": {"centre": [40, 30, 0]}},
        {"scales": [("age", 40, 1), ("wage", 30, 1), ("ill", 0, 1)]},
        "a public centre is subtracted from each column: age 40; wage 30; ill 0;",
    ),
    "covariance": ({}, {}, "the number of the records that they are of as divisor"),
    "correlation": ({}, {}, "Correlations are those of Pearson."),
    "ratio": ({"set": {"denominator": "age"}}, {"denominator": "age"}, "divided by the total of age."),
    "histogram": ({"by": "age", "set": {"edges": [0, 40, 80]}}, {}, "A bin holds its left edge"),
    "table": ({"by": "ill", "levels": {"ill": ["0", "1"]}}, None, ""),
    "quantiles": ({"allow_exact": True}, {"interpolation": "linear"}, "interpolated linearly"),
    "ols": ({"label": "wage"}, {"response": "wage"}, "Least squares of wage, on the columns as they are."),
    "standard_errors": ({"label": "wage"}, {"response": "wage"}, "least squares of wage, for independent records"),
    "ridge": ({"set": {"penalty": 2.5}}, {"response": "ill", "penalty": 2.5}, "of ill, with 2.5 times the sum of"),
    "logistic": (
        {"label": "ill", "set": CENTRED},
        {"response": "ill", "modelled_class": "1", "penalty": 1, "scales": [("age", 40, 10), ("wage", 30, 8)]},
        "the log odds of ill = 1: a positive one says that this class is more frequent where its column is larger. "
        "Before the fit each column is standardised: its centre is subtracted, and the rest divided by its spread, so "
        "that a coefficient is per spread. Column (centre, spread): age (40, 10); wage (30, 8); Penalty: 1/(2C) times "
        "the sum of squared slopes, C = 1.",
    ),
    "poisson": ({"label": "ill", "set": {"penalty": 3}}, {"response": "ill", "penalty": 3}, "Penalty: 3/2 times"),
    "huber": (
        {"label": "wage", "set": {"threshold": 4}},
        {"response": "wage", "threshold": 4, "penalty": 0},
        "by the pseudo-Huber loss, with the threshold 4 in its unit.",
    ),
}


@pytest.fixture
def people(tmp_path) -> str:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 65, 80), "wage": rng.normal(30, 8, 80).round(1)})
    frame["ill"] = (rng.uniform(size=80) < 0.2 + 0.6 * (frame.age > 40)).astype(int)
    frame.to_csv(tmp_path / "people.csv", index=False)
    return str(tmp_path / "people.csv")


def flat(text: str) -> str:
    return " ".join(text.split())


def facts_of(report) -> dict[str, Any] | None:
    """Return the facts as a reader of the JSON gets them, without those at their defaults."""
    content = json.loads(report.to_json())["about"]["parameters"]
    if content is None:
        return None
    content["scales"] = [tuple(scale.values()) for scale in content["scales"]]
    del content["kind"]
    return {name: value for name, value in content.items() if value not in ("", None, []) and value is not False}


def test_every_statistic_is_listed() -> None:
    assert set(OF_EACH) == set(STATISTICS)


@pytest.mark.by_day("histogram", "table")
@pytest.mark.parametrize("name", list(STATISTICS))
def test_what_a_reader_must_know_is_published(name, people) -> None:
    fields, facts, said = OF_EACH[name]
    made = protect_file(data=people, statistic=name, promise=File(games=0), eta=0.2, **fields)
    for half in (made.certificate, made.owner):
        assert facts_of(half) == facts
        assert said in flat(half.table(full=True))
    kind = json.loads(made.certificate.to_json())["about"]["parameters"]
    assert kind is None if facts is None else kind["kind"] == name


def test_the_pages_say_it_too(people) -> None:
    fields, _, said = OF_EACH["logistic"]
    made = protect_file(data=people, statistic="logistic", promise=File(games=0), eta=0.2, **fields)
    for half in (made.certificate, made.owner):
        assert said in flat(html.unescape(half.to_html()))


def test_a_calibration_says_the_same_to_the_owner(people) -> None:
    fields, facts, said = OF_EACH["logistic"]
    made = calibrate_file(data=people, statistic="logistic", promise=File(games=0), eta=0.2, **fields)
    assert facts_of(made.certificate) == facts
    assert said in flat(made.certificate.table(full=True))


def test_the_classes_of_a_response_are_named_as_public(people) -> None:
    fields, _, _ = OF_EACH["logistic"]
    made = protect_file(data=people, statistic="logistic", promise=File(games=0), eta=0.2, **fields)
    assert "the names of the columns, the two classes of the response," in flat(made.certificate.table(full=True))


def test_several_statistics_each_have_their_own(people) -> None:
    tables = [{"statistic": "ratio"}, {"statistic": "huber", "set": {"threshold": 4}}]
    made = protect_file(data=people, statistic=tables, promise=File(games=0), eta=0.2)
    first, second = json.loads(made.certificate.to_json())["about"]["statistics"]
    assert (first["parameters"]["denominator"], second["parameters"]["threshold"]) == ("ill", 4)
    assert "Ratio: Each ratio is a total divided by the total of ill. Huber: A regression of ill" in flat(
        made.certificate.table(full=True)
    )


def said_of(facts: StatisticParameters | None) -> str:
    """What a page says of a statistic."""
    return " ".join(map(str, parameter_notes(facts)))


def test_a_scale_that_was_read_from_the_data_is_said_and_not_published() -> None:
    """What counts is where the scale came from, and not whether the plan has one: a regression may be an object."""
    points = from_arrays(np.array([[1.0], [3.0], [2.0]]), ["no", "yes", "yes"])
    plan = CalibrationPlan(data="array", eta=0.1)
    read = parameters_of(plan, Fit("logistic", Logistic.standardised(points)), points)
    assert read is not None
    assert (read.scales_of_data, read.scales, read.modelled_class) == (True, (), "yes")
    said = said_of(read)
    assert "the log odds of the response = yes" in said
    assert "slopes per standard deviation of all records, which is not published" in said
    declared = parameters_of(plan, Fit("logistic", Logistic((2.0,), None)), points)
    assert declared is not None
    assert not declared.scales_of_data
    assert [(scale.column, scale.centre, scale.spread) for scale in declared.scales] == [("x0", 2.0, 1.0)]
    assert "not published" not in said_of(declared)
    as_they_are = parameters_of(plan, Fit("logistic", Logistic()), points)
    assert "The columns are used as they are." in said_of(as_they_are)


@pytest.mark.by_day("file")
@pytest.mark.parametrize("promise", ["file", "drawn"])
def test_no_mean_and_no_deviation_of_a_column_is_published(people, promise) -> None:
    """A logistic regression without declared scales takes them from the file; no file for publication has them."""
    fields: dict[str, Any] = {"games": 0, "n_jobs": 1, "eta": 0.2, "label": "ill"}
    if promise == "drawn":
        fields["fits"] = 80
    made = protect_file(data=people, statistic="logistic", promise=promise, **fields)
    columns = pd.read_csv(people)[["age", "wage"]]
    for number in [*columns.mean(), *columns.std(), *columns.std(ddof=0)]:
        for published in (made.to_json(), made.to_html(), made.to_csv()):
            assert f"{number:.6g}" not in published
