"""Sentences are chosen from several numbers together, and never contradict each other."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from leakscope.core.claims import Claim
from leakscope.core.tradeoff import EpsilonDelta
from leakscope.reports import Curve, Report, Verdict
from leakscope.reports.sections.audit import words
from leakscope.reports.sections.audit.result import results
from leakscope.reports.sections.audit.statements import Numbers, statements
from tests.reports.abouts import changed
from tests.reports.made import made, spread

SUCCESS = [(0.50, 0.45, 0.55), (0.52, 0.505, 0.54), (0.7, 0.61, 0.8), (0.85, 0.77, 0.9), (1.0, 0.99, 1.0)]
WON = {
    "none": None,
    "no games told": spread(8, w8=100),
    "nobody": spread(64, w32=100),
    "some": spread(64, w32=97, w64=3),
    "everybody": spread(64, w64=100),
    "all of few": spread(14, w7=100),  # only all 14 games would show a record
}
CLAIM = Claim("epsilon", 4.0, 1e-5, "replace_one")


def report_of(base: Report, word: str | None, prior: float, n_models: int, n_records: int, planted: bool) -> Report:
    """The same numbers in another game, with a claim."""
    (release,) = base.about.releases
    facts = {"prior": prior, "targets": n_models, "models": n_models, "target_points": n_records}
    facts["game"] = "canaries" if planted else "half_split"
    curves = list(base.curves)
    if word is not None:
        at = {"fpr": 0.01, "tpr": 0.5, "low": 0.4, "high": 0.6, "ceiling": 0.1, "false_alarms": 30}
        verdict = Verdict(CLAIM, word, "epsilon", 4.0, 5.0, 0.999, "lira", at)
        curves.append(Curve(CLAIM.text, "forest", "claimed", EpsilonDelta(4.0, 1e-5), verdict=verdict))
    findings = [
        replace(each, operating_point={"prior": prior}) if each.quantity == "accuracy" else each
        for each in base.findings
    ]
    return Report(changed(base.about, releases=[release.model_dump() | facts]), findings, curves, {})


GAMES = list(product((None, "refuted", "not_refuted"), (0.5, 0.2), (1, 3, 64), (19, 100), (False, True)))


@pytest.mark.slow
def test_no_two_sentences_contradict_each_other():
    """Over 2,160 audits: every strength, records shown or not, claims, priors, models, records, canaries."""
    bases = {(accuracy, won): made(accuracy, WON[won]) for accuracy in SUCCESS for won in WON}
    for (accuracy, won), (word, prior, n_models, n_records, planted) in product(bases, GAMES):
        report = report_of(bases[accuracy, won], word, prior, n_models, n_records, planted)
        (result,) = results(report)
        headline = words.lede([result]).striptags()
        records = words.exposure(result).striptags()
        told = f"{headline} {records} {words.summary(result).striptags()}"
        where = (accuracy, won, word, prior, n_models, n_records, planted, told)
        few = n_records < 20 or n_models in (2, 3)
        # too few records or models: numbers, and no verdict in words
        assert ("too few for a verdict in words" in headline) == few, where
        if few:
            assert not records, where
            for verdict in ("no leak", "almost perfectly", "high accuracy", "exposed", "excluded", "leaks"):
                assert verdict not in told, where
            continue
        # a leak is not denied beside a refuted claim
        assert not (word == "refuted" and "no leak" in told), where
        assert not (word == "refuted" and "is excluded" in told), where
        # who is exposed is said once, and the same everywhere
        n_exposed = result.n_exposed
        assert ("exposed beyond chance" in records and "o single" not in records and "No " not in records) == (
            n_exposed > 0
        ), where
        if n_exposed:
            assert "no single" not in told, where
            assert "No record" not in told, where
            assert "no leak" not in told, where
        # nobody is shown beside a strong leak: the sentence says how that can be
        strong = any(each in headline for each in ("almost perfectly", "high accuracy", "clearly better"))
        if strong and records and not n_exposed and "cannot single out" not in records:
            assert records.startswith("Although membership is inferred on average"), where
        if "no leak" in headline:
            assert not records.startswith("Although"), where
            assert "can be inferred" not in told, where
        # no limit beyond what can be reached
        assert "100 of 100 or more" not in told, where
        assert "larger than 100" not in told, where
        for word_of_old in ("most records", "everybody", "training data away"):
            assert word_of_old not in told, where


@pytest.mark.parametrize(
    ("accuracy", "said"),
    [
        ((1.0, 0.99, 1.0), "From Random forest, membership can be inferred almost perfectly."),
        ((0.5, 0.4, 0.6), "These attacks found no leak."),
    ],
)
def test_what_one_reads_of_a_strong_and_of_no_leak(accuracy, said):
    (result,) = results(made(accuracy, spread(14, w7=100), facts={"targets": 14, "models": 14}))
    assert words.lede([result]).startswith(said)
    least = "14 games would show only a record that is guessed right in all of them."
    assert words.exposure(result).striptags().endswith(least)


def test_two_rows_and_64_models_have_no_verdict():
    (result,) = results(made((1.0, 0.99, 1.0), spread(64, w64=2), facts={"target_points": 2}))
    assert words.lede([result]) == (
        "Random forest: 2 records and 64 models are too few for a verdict in words; the numbers are below."
    )


def test_the_choice_is_made_once_from_numbers_alone():
    strong = Numbers(0.95, 0.99, 0.5, n_records=100, n_models=64, n_played=64, first_exposed=46)
    assert statements(strong).headline == "almost_perfect"
    assert statements(strong).records == "not_shown_though_inferred"
    assert statements(Numbers(None, None, 0.5, 100, 64)).headline == "nothing_played"
    assert statements(Numbers(0.45, 0.55, 0.5, 100, 64, refuted=True)).headline == "refuted_only"
    assert statements(Numbers(0.45, 0.55, 0.5, 100, 64, ranks_members_higher=True)).headline == "ranking_only"
    assert statements(Numbers(0.45, 1.0, 0.5, 100, 64)).excluded is False
