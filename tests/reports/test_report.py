import json
from collections.abc import Callable
from functools import cache
from importlib import import_module, resources

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from leakbound.core.findings import QUANTITIES, Finding, Term
from leakbound.core.tradeoff import EpsilonDelta, Gaussian, Mixture
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Curve, Report, Verdict, plain
from leakbound.reports.render.html import CHARTS, DOCUMENTS
from leakbound.reports.report import FORMS
from tests.reports import made_bounds, made_protected, samples
from tests.reports.made import made

SAMPLES = ("two_models", "one_model_no_claim", "no_leak", "few_models", "tiny")
PROTECTED = ("means", "calibrated", "average", "insecure", "no_noise", "uneven", "nothing")
BOUNDS = ("dp", "leakage", "odd_cells", "one_record", "gap", "regression", "subsampled", "empty")
SCHEMA = json.loads(resources.files("leakbound.reports").joinpath("schema.json").read_text(encoding="utf-8"))
VALID = Draft202012Validator(SCHEMA)


def content(report):
    return json.loads(report.to_json())


@cache
def valid(make: Callable[[], Report]) -> str:
    """The JSON of a report, which follows the schema: written and checked once for all tests that spoil it."""
    text = make().to_json()
    VALID.validate(json.loads(text))
    return text


def leakage() -> Report:
    return made_bounds.leakage(50)


def audited() -> Report:
    """A model with a refuted claim and forty records, some of them exposed."""
    forest = samples.play("forest", "Random forest", 2.6, n_models=64, n_records=40)
    return samples.audit((forest,), claims={"forest": "refuted"})


def test_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.by_day("tiny")
@pytest.mark.parametrize("name", SAMPLES)
def test_samples_follow_the_schema(name):
    VALID.validate(content(getattr(samples, name)()))


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_follow_the_schema(name):
    VALID.validate(content(getattr(made_bounds, name)()))


@pytest.mark.parametrize("name", PROTECTED)
def test_protected_releases_follow_the_schema(name):
    VALID.validate(content(getattr(made_protected, name)()))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda report: report["about"].update(kind="bound"),
        lambda report: report["about"].pop("insecure_seed"),
        lambda report: report["about"].update(release_seed=7),
        lambda report: report["about"]["values"][0].update(value_without_noise=1.0),
        lambda report: report["about"]["values"][0].pop("noise_std"),
        lambda report: report["about"]["certificate"].update(eta=0.6),
        lambda report: report["about"]["certificate"].update(promise="some"),
        lambda report: report["about"]["certificate"].update(promise="every"),
        lambda report: report["about"]["certificate"].update(about="some"),
        lambda report: report["about"]["certificate"]["noise"].update(rms=[-1.0]),
        lambda report: report["about"]["certificate"].update(members=[3, 5]),
        lambda report: report["about"].update(releases=[{}]),
        lambda report: report["records"].update(record=[1]),
    ],
)
def test_the_schema_refuses_what_is_no_protected_release(spoil):
    bad = json.loads(valid(made_protected.means))
    spoil(bad)
    assert not VALID.is_valid(bad)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda report: report["about"].update(kind="audit"),
        lambda report: report["about"].pop("theorem"),
        lambda report: report["about"]["theorem"].pop("source"),
        lambda report: report["about"].update(releases=[{}]),
        lambda report: report["about"].update(attacks={}),
        lambda report: report["records"].update(cell=["a"]),  # and record: two names
        lambda report: report["records"].pop("record"),
        lambda report: report["records"]["accuracy"].append(1.5),
        lambda report: report["records"]["tpr@0.01"].append(-0.5),
        lambda report: report["records"].update(records=[-1]),
    ],
)
def test_the_schema_refuses_what_is_no_bound(spoil):
    bad = json.loads(valid(leakage))
    spoil(bad)
    assert not VALID.is_valid(bad)


def test_the_schema_knows_every_quantity():
    assert set(SCHEMA["$defs"]["FindingContent"]["properties"]["quantity"]["enum"]) == set(QUANTITIES)


def test_every_form_is_made_by_a_function_that_exists():
    assert set(FORMS) == {"table", "page", "notebook", "plot"}
    for path in FORMS.values():
        module, function = path.split(":")
        assert callable(getattr(import_module(f"leakbound.reports.{module}"), function))


def test_every_kind_of_report_has_a_document():
    assert set(DOCUMENTS) == set(CHARTS) == {"attribute", "audit", "bound", "protected"}


def test_every_kind_of_curve_and_infinity_follows_the_schema():
    mixture = Mixture([0.5, 0.5], [Gaussian(1.0), EpsilonDelta(float("inf"))])
    verdict = Verdict(Claim("mu", 1.0, adjacency="add_remove"), "cannot_be_tested", reason=Term("no"))
    bound = Finding("epsilon", 1.0, 1.0, float("inf"), operating_point={"delta": 0.0}, bound_type="lower")
    report = made(verdict=verdict, findings=(bound,))
    VALID.validate(content(Report(report.about, report.findings, (Curve("m", "forest", "certified", mixture),), {})))


@pytest.mark.by_day("<lambda>1")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda report: report.update(schema=2),
        lambda report: report.update(extra=1),
        lambda report: report["about"].pop("unit"),
        lambda report: report["about"]["releases"][0].update(game="chess"),
        lambda report: report["findings"][0].update(value=None),  # and no reason
        lambda report: report["findings"][0].update(reason={"id": "why", "values": {}}),  # and a value
        lambda report: report["findings"][0].update(quantity="risk score"),
        lambda report: report["curves"][0]["tradeoff"].update(kind="spline"),
        lambda report: report["records"].pop("won"),
        lambda report: report["records"]["low"].append(1.5),
    ],
)
def test_the_schema_refuses(spoil):
    bad = json.loads(valid(audited))
    spoil(bad)
    assert not VALID.is_valid(bad)


@pytest.mark.parametrize("name", SAMPLES)
def test_reading_what_was_written(name, tmp_path):
    report = getattr(samples, name)()
    path = tmp_path / "report.json"
    text = report.to_json(path)
    again = Report.from_json(path)
    assert again.to_json() == text == path.read_text(encoding="utf-8")
    assert again.digest() == report.digest()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("make", [samples.two_models, samples.tiny, made_bounds.leakage, made_bounds.odd_cells])
def test_the_layout_of_the_json_is_an_indent_of_one(make):
    report = make()
    assert report.to_json() == json.dumps(content(report), indent=1, ensure_ascii=False) + "\n"
    odd = Report(report.about, (), (), {"a": ["[\n]", "],\n   ["], "b": [], "c": [{"d": [1]}, None], "e": [[], [2]]})
    assert odd.to_json() == json.dumps(content(odd), indent=1, ensure_ascii=False) + "\n"


def test_frames_have_a_row_a_finding_and_a_row_a_record():
    report = samples.two_models()
    assert len(report.to_frame()) == len(report.findings)
    assert list(report.records()["won"].head(3)) == list(report.record_table["won"][:3])


def test_a_curve_by_name():
    report = samples.two_models()
    assert float(report.curve("lira", "regression").tpr_at(0.01)) < float(report.curve("lira").tpr_at(0.01))
    with pytest.raises(KeyError, match="did you mean 'lira'"):
        report.curve("lirra")


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 99}'])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"other\.json is not"):
        Report.from_json(path)


def test_plain_values():
    assert plain({"a": np.float32(0.5), "b": [np.int64(1), float("-inf")], "c": np.array([True])}) == {
        "a": 0.5,
        "b": [1, "-inf"],
        "c": [True],
    }
    with pytest.raises(ValueError, match="NaN"):
        plain(float("nan"))
