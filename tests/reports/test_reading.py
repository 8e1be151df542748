"""Reports come back as they were written, or not at all."""

from __future__ import annotations

import hashlib
import json
import random

import pytest

from leakbound.reports import Report
from tests.marks import nightly
from tests.reports import made_bounds, samples
from tests.reports.test_schema import OTHERS, places

FLIPS = 250


def numbers(report):
    """Everything that a reader could take from a report."""
    return json.loads(report.to_json())


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A small audit with records, in a file."""
    path = tmp_path_factory.mktemp("report") / "report.json"
    samples.few_models().to_json(path)
    return path


def test_the_digest_is_of_the_sorted_content_without_itself(written):
    content = json.loads(written.read_text(encoding="utf-8"))
    said = content.pop("sha256")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(text.encode("ascii")).hexdigest() == said
    assert samples.few_models().digest() == said[:16]


def test_another_layout_of_the_same_content_is_the_same_report(written, tmp_path):
    other = tmp_path / "compact.json"
    content = json.loads(written.read_text(encoding="utf-8"))
    other.write_text(json.dumps(dict(reversed(content.items()))), encoding="utf-8")
    assert Report.from_json(other).to_json() == Report.from_json(written).to_json()


def test_a_report_with_our_former_name_is_read(tmp_path):
    """Until it was leakbound the package was leakscope: in the key of the version, and in who made the steps."""
    content = json.loads(samples.few_models().to_json())
    content["about"]["leakscope"] = content["about"].pop("leakbound")
    for release in content["about"]["releases"]:
        release["steps_by"] = "leakscope"
    del content["sha256"]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    content["sha256"] = hashlib.sha256(text.encode("ascii")).hexdigest()
    older = tmp_path / "older.json"
    older.write_text(json.dumps(content), encoding="utf-8")
    about = Report.from_json(older).about
    assert about.leakbound == samples.few_models().about.leakbound
    assert {release.steps_by for release in about.releases} == {"leakbound"}


def test_a_report_edited_by_hand_is_refused_unless_unverified(written, tmp_path):
    edited = tmp_path / "edited.json"
    content = json.loads(written.read_text(encoding="utf-8"))
    content["findings"][0]["value"] = 0.5
    edited.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"edited\.json is not as it was written: .*--unverified \(unverified=True\)"):
        Report.from_json(edited)
    assert Report.from_json(edited, unverified=True).findings[0].value == 0.5


def test_a_report_without_its_digest_is_refused(written, tmp_path):
    bare = tmp_path / "bare.json"
    content = json.loads(written.read_text(encoding="utf-8"))
    del content["sha256"]
    bare.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match="the key 'sha256' is missing"):
        Report.from_json(bare, unverified=True)


def test_a_key_that_stands_twice_is_refused(written, tmp_path):
    twice = tmp_path / "twice.json"
    text = written.read_text(encoding="utf-8")
    twice.write_text(text.replace('"schema": 1,', '"schema": 1,\n "schema": 1,', 1), encoding="utf-8")
    with pytest.raises(ValueError, match="a key occurs twice"):
        Report.from_json(twice)


def read(path, **words):
    """The report in a file; None if it is refused, in one line."""
    try:
        return Report.from_json(path, **words)
    except ValueError as error:
        line = str(error)
    assert len(line) <= 300
    assert "\n" not in line
    return None


def flipped(n_flips, path, folder, seed):
    """What reading gives after each of many single bit flips: None where it is refused, in one line."""
    rng, whole = random.Random(seed), path.read_bytes()
    for _ in range(n_flips):
        place, bit = rng.randrange(len(whole)), 1 << rng.randrange(8)
        made = folder / "flipped.json"
        made.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        yield read(made)


def check_flips(n_flips, report, folder):
    path = folder / "report.json"
    report.to_json(path)
    true = numbers(report)
    found = list(flipped(n_flips, path, folder, seed=5))
    assert all(numbers(each) == true for each in found if each is not None)
    assert sum(each is None for each in found) > n_flips / 2  # flips in spaces between values change nothing


@pytest.mark.parametrize("make", [nightly(samples.few_models), made_bounds.dp, made_bounds.regression])
def test_a_flipped_bit_gives_no_other_number(make, tmp_path):
    check_flips(FLIPS, make(), tmp_path)


@pytest.mark.nightly
def test_ten_thousand_flipped_bits_give_no_other_number(tmp_path):
    check_flips(5000, samples.few_models(), tmp_path)
    check_flips(5000, made_bounds.leakage(20), tmp_path)


@pytest.mark.parametrize("make", [nightly(samples.few_models), lambda: made_bounds.leakage(20)])
def test_values_of_other_types_are_one_line_also_unverified(make, tmp_path):
    rng, content, path = random.Random(6), json.loads(make().to_json()), tmp_path / "report.json"
    paths = [path for path in places(content) if path]
    for _ in range(100):
        made = json.loads(json.dumps(content))
        *steps, last = rng.choice(paths)
        inner = made
        for step in steps:
            inner = inner[step]
        inner[last] = rng.choice(OTHERS)
        path.write_text(json.dumps(made), encoding="utf-8")
        read(path, unverified=True)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"schema": ' + "9" * 5000 + "}", "is not JSON"),
        ('{"schema": NaN}', "NaN is no number of JSON"),
        ('{"schema": true}', "is not a leakbound report of schema 1"),
        ('{"schema": 1, "schema": 1}', "a key occurs twice"),
        ("\ufeff{}", "is not JSON"),
    ],
)
def test_odd_json_is_one_line(text, line, tmp_path):
    path = tmp_path / "odd.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=line) as refused:
        Report.from_json(path, unverified=True)
    assert len(str(refused.value)) <= 300


def test_columns_of_other_lengths_are_refused(tmp_path):
    path = tmp_path / "report.json"
    content = json.loads(made_bounds.leakage(20).to_json())
    content["records"]["score"].pop()
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match="records: columns of 19 to 20 rows"):
        Report.from_json(path, unverified=True)
