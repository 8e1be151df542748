"""What of a report may be published: no rows, no labels, no membership, nothing with an entry a record."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.core.findings import Finding, Term
from leakbound.reports import Report
from leakbound.reports.content import schema
from tests.reports import made_bounds, made_protected, samples
from tests.reports.abouts import about as about_with
from tests.reports.abouts import changed

N = 61  # points: an odd number that no array of the report has by itself
ROWS = np.random.default_rng(4).normal(7351, 10, (N, 3)).round(4)


GROUPS = ("class diagnosis-0", "class diagnosis-1")


def walked(value):
    """Every list and every plain value of a document."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from walked(item)
    elif isinstance(value, list):
        yield value
        for item in value:
            yield from walked(item)
    else:
        yield value


@pytest.fixture(scope="module")
def audit():
    """A tree that memorises, so that records are exposed and shown."""
    labels = np.array([f"diagnosis-{number}" for number in np.random.default_rng(5).integers(0, 2, N)])
    return ls.audit(DecisionTreeClassifier(), ROWS, labels, n_models=40, n_jobs=1)


def test_the_report_of_its_owner_shows_records(audit):
    text = audit.to_json()
    assert "diagnosis-1" in text
    n_records = audit.about.releases[0].target_points
    assert any(isinstance(each, list) and len(each) == n_records for each in walked(json.loads(text)))


def test_a_published_audit_holds_nothing_of_single_records(audit):
    document = json.loads(audit.to_json(publish=True))
    raw = {f"{value:.4g}" for value in ROWS.ravel()} | {str(value) for value in ROWS.ravel().tolist()}
    found = list(walked(document))
    lists = [each for each in found if isinstance(each, list)]
    assert not [each for each in lists if len(each) in (N, audit.about.releases[0].target_points)]
    assert not [each for each in lists if len(each) > 3 and all(item in (0, 1) for item in each)]
    plain = [str(each) for each in found if not isinstance(each, list) and each not in GROUPS]
    assert not [text for text in plain if text in raw or "diagnosis" in text]
    assert document["records"] == {}
    assert document["about"]["releases"][0]["data"]["digest"] == ""
    assert document["about"]["releases"][0]["games"]["won"] == []  # of fewer than 100 records
    assert Draft202012Validator(schema()).is_valid(document)
    page = audit.to_html(publish=True)
    for name in GROUPS:  # of at least 10 records each
        page = page.replace(name, "")
    assert "diagnosis" not in page
    assert 'class="strip"' not in page
    assert audit.without_records().digest() in page
    assert audit.digest() not in page


def without_threshold(finding):
    """A threshold is the score of a record."""
    return replace(finding, detail={name: value for name, value in finding.detail.items() if name != "threshold"})


def test_findings_about_one_record_give_their_reason(audit):
    assert any(each.quantity == "most_exposed" and each.value is not None for each in audit.findings)
    free = audit.without_records()
    (worst,) = (each for each in free.findings if each.quantity == "most_exposed")
    assert (worst.value, worst.low, dict(worst.detail)) == (None, None, {})
    assert worst.reason == Term("single_record")
    others = [without_threshold(each) for each in audit.findings if not (each.per_record or each.scope.is_part)]
    assert [each for each in free.findings if not (each.per_record or each.scope.is_part)] == others


def test_numbers_of_targets_are_left_out():
    for game, where in (
        (ls.Canaries(targets=(17, 23)), {"canaries": {"targets": [17, 23]}}),
        (ls.PerDatum(17), {"per_datum": {"target": 17}}),
    ):
        report = ls.audit(DecisionTreeClassifier(), ROWS, np.arange(N) % 2, n_models=8, n_jobs=1, game=game)
        assert report.about.plan["game"] == where
        (name,) = where
        assert report.without_records().about.plan["game"] == {name: {}}


@pytest.mark.parametrize("typed", ["canaries,targets=[17,23]", "per_datum,target=17,references=4"])
def test_targets_that_were_typed_are_left_out(audit, typed):
    command = f"leakbound audit --game {typed} --label target=a"
    report = replace(audit, about=audit.about.model_copy(update={"command": command}))
    assert report.about.command == command
    assert "17" not in report.without_records().about.command
    assert report.without_records().about.command.endswith("--label target=a")


@pytest.mark.parametrize("make", [lambda: made_bounds.leakage(50), made_bounds.odd_cells, made_bounds.many_cells])
def test_a_published_bound_names_no_record_and_no_cell(make):
    report = make()
    names = {str(name) for name in next(iter(report.record_table.values())) if not str(name).isdigit() and str(name)}
    document = json.loads(report.to_json(publish=True))
    rows = len(next(iter(report.record_table.values())))
    assert not [each for each in walked(document) if isinstance(each, list) and len(each) == rows > 3]
    assert not [each for each in walked(document) if str(each) in names]
    scopes = [each["scope"] for each in (*document["findings"], *document["curves"])]
    assert all(each["index"] is None and each["name"] == "" for each in scopes)
    assert Draft202012Validator(schema()).is_valid(document)
    assert report.to_html(publish=True) == report.without_records().to_html()


@pytest.mark.parametrize("make", [samples.two_models, made_bounds.regression, made_protected.means])
def test_to_be_without_records_twice_is_to_be_so_once(make):
    once = make().without_records()
    assert once.without_records().to_json() == once.to_json()


class TestPermissions:
    def mode(self, path):
        return stat.S_IMODE(path.stat().st_mode)

    @pytest.fixture(autouse=True)
    def common_umask(self):
        before = os.umask(0o022)
        yield
        os.umask(before)

    @pytest.mark.parametrize("write", [Report.to_json, Report.to_html])
    def test_a_report_on_data_is_for_its_owner_alone(self, write, tmp_path):
        path = tmp_path / "new" / "deeper" / "report"
        write(made_bounds.leakage(20), path)
        assert [self.mode(each) for each in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]

    @pytest.mark.parametrize("write", [Report.to_json, Report.to_html])
    def test_what_is_published_has_the_permissions_of_other_files(self, write, tmp_path):
        path = tmp_path / "new" / "report"
        write(made_bounds.leakage(20), path, publish=True)
        assert [self.mode(each) for each in (path, path.parent)] == [0o644, 0o755]

    def test_a_bound_from_numbers_is_no_secret(self, tmp_path):
        path = tmp_path / "report.json"
        made_bounds.dp().to_json(path)
        assert self.mode(path) == 0o644

    def test_a_public_certificate_is_no_secret_and_that_of_the_owner_is(self, tmp_path):
        base = made_protected.means()
        for audience, mode in (("public", 0o644), ("owner", 0o600)):
            path = tmp_path / f"{audience}.json"
            Report(changed(base.about, audience=audience), base.findings).to_json(path)
            assert self.mode(path) == mode

    def test_an_open_file_is_closed_by_the_next_report(self, tmp_path):
        path = tmp_path / "report.json"
        path.write_text("{}")
        path.chmod(0o644)
        samples.tiny().to_json(path)
        assert self.mode(path) == 0o600

    def test_a_folder_that_is_there_stays_as_it_is(self, tmp_path):
        tmp_path.chmod(0o755)
        samples.tiny().to_json(tmp_path / "report.json")
        assert self.mode(tmp_path) == 0o755
        assert [each.name for each in tmp_path.iterdir()] == ["report.json"]


def test_letters_that_a_terminal_obeys_are_escaped_in_the_json():
    about = about_with(kind="bound", title="\x1b[2J \u202egnp \x9b1m \udcff")
    text = Report(about, [Finding("eta", 0.1)]).to_json()
    assert text.replace("\n", "").isprintable()
    assert json.loads(text)["about"]["title"] == about.title
