"""A text that reads like an infinity stays a text; infinities come back as numbers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import leakbound as ls
from leakbound.core.findings import Finding, Term
from leakbound.core.tradeoff import EpsilonDelta, Gaussian, Profile
from leakbound.core.tradeoff.claims import AccountantEpsilon
from leakbound.reports import Curve, Report, Verdict
from leakbound.reports.content import content_of
from tests.marks import nightly_but
from tests.reports import made_bounds, made_protected, samples
from tests.reports.made import made

TEXTS = ("inf", "-inf", "nan", "Infinity", "null", "true", "1")


def again(report: Report, folder) -> Report:
    report.to_json(folder / "report.json")
    return Report.from_json(folder / "report.json")


@pytest.mark.by_day("inf")
@pytest.mark.parametrize("text", nightly_but(TEXTS, "inf", "nan", "1"))
def test_names_stay_what_they_are(text, tmp_path):
    """Title, unit, date, notes, and the model, which is in findings, curves and records."""
    rng = np.random.default_rng(0)
    game = ls.games.half_split(60, 8)
    signals = ls.Signals(game, None, {"loss": rng.exponential(size=game.member.shape)})
    report = ls.audit_signals(
        signals, name=text, page=ls.Page(title=text, unit=text, date=text), claims="epsilon=1,adjacency=replace_one"
    )
    back = again(report, tmp_path)
    for name in ("title", "unit", "date"):
        assert getattr(back.about, name) == text
    assert {each.name for each in back.about.releases} == {text}
    assert {each.release for each in back.findings} == {each.release for each in back.curves} == {text}
    assert set(back.record_table["release"]) == {text}
    assert back.to_json() == report.to_json()
    assert back.table() == report.table()


# fields that hold any text
FREE = ("title", "unit", "date", "name", "description", "release", "attack", "claim", "reason", "source", "summary")


@pytest.mark.parametrize("text", nightly_but(TEXTS, "inf", "nan", "1"))
def test_every_string_of_a_report_stays_a_string(text):
    """Every text that may be another one is replaced, and infinities stand where they stood before."""
    for report in (samples.two_models(), made_bounds.dp(), made_protected.means()):
        content = _with_text(json.loads(report.to_json()), text)
        read = content_of(content).model_dump(by_alias=True, exclude_unset=True)
        for path, before in _leaves(content):
            after = _at(read, path)
            free = any(step in FREE for step in path)
            assert after == (before if free or before not in ("inf", "-inf") else float(before)), path


def test_infinite_numbers_come_back(tmp_path):
    verdict = Verdict(
        AccountantEpsilon("epsilon", math.inf, adjacency="add_remove"),
        "not_refuted",
        "epsilon",
        math.inf,
        0.5,
        0.999,
        "inf",
        {"fpr": 0.1, "ceiling": math.inf},
        training=Term("dpsgd_accountant", noise_multiplier=1.0, sample_rate=0.1, steps=10),
    )
    base = made(
        findings=(
            Finding(
                "epsilon",
                1.0,
                low=1.0,
                high=math.inf,
                operating_point={"delta": math.inf},
                release="inf",
                detail={"most": -math.inf},
            ),
        )
    )
    curves = (
        Curve("inf", "inf", "claimed", EpsilonDelta(math.inf), verdict=verdict),
        Curve("b", "inf", "claimed", Gaussian(math.inf)),
        Curve("c", "inf", "certified", Profile([0.0, math.inf], [0.5, 0.1])),
    )
    back = again(Report(base.about, base.findings, (*base.curves, *curves)), tmp_path)
    finding = back.findings[-1]
    assert (finding.high, finding.operating_point["delta"], finding.detail["most"], finding.release) == (
        math.inf,
        math.inf,
        -math.inf,
        "inf",
    )
    claimed = back.curves[-3]
    assert claimed.verdict is not None
    assert (claimed.verdict.allowed, claimed.verdict.claim.value, claimed.verdict.attack) == (math.inf, math.inf, "inf")
    assert claimed.verdict.operating_point["ceiling"] == math.inf
    assert claimed.tradeoff.to_dict() == EpsilonDelta(math.inf).to_dict()
    assert back.curves[-2].tradeoff.to_dict()["mu"] == math.inf
    assert back.curves[-1].tradeoff.to_dict()["epsilon"] == [0.0, math.inf]


def _leaves(value, path=()):
    """Each value that holds no others, with its path."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path, value
    else:
        for step, item in items:
            yield from _leaves(item, (*path, step))


def _at(value, path):
    for step in path:
        value = value[step]
    return value


def _with_text(value, text, name=None):
    """The content of a report with a text in every field that holds any text, unless it must be empty."""
    if isinstance(value, dict):
        return {key: _with_text(item, text, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_text(item, text, name) for item in value]
    return text if name in FREE and isinstance(value, str) and value else value
