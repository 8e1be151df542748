"""Sentences are chosen from several numbers together, and never contradict each other."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from leakbound.core.tradeoff import EpsilonDelta
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Curve, Report, Verdict
from leakbound.reports.results.audit import answer as words
from leakbound.reports.results.audit.result import results
from leakbound.reports.results.audit.statements import BANDS, Numbers, band, statements
from tests.reports.abouts import changed
from tests.reports.made import made, spread
from tests.reports.page_reading import said

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
        headline = said(words.answer(result))
        records = said(words.single_records(result))
        told = f"{headline} {records} {said(words.summary(result))}"
        where = (accuracy, won, word, prior, n_models, n_records, planted, told)
        few = n_records < 20 or n_models in (2, 3)
        # too few records or models: numbers, and no verdict in words
        assert ("For a verdict in words" in headline) == few, where
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
        assert ("Exposed beyond chance" in records) == (n_exposed > 0), where
        if n_exposed:
            assert "no single" not in told, where
            assert "No record" not in told, where
            assert "no leak" not in told, where
        # nobody is shown beside a strong leak: the sentence says how that can be
        strong = any(each in headline for each in ("almost perfectly", "high accuracy", "clearly better"))
        if strong and records and not n_exposed and "can be tested by itself" not in records:
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
    ("accuracy", "answer"),
    [
        ((1.0, 0.99, 1.0), "From Random forest, membership can be inferred almost perfectly."),
        ((0.5, 0.4, 0.59), "In Random forest these attacks found no leak."),
        (
            (0.55, 0.48, 0.62),
            "In Random forest no leak is shown, but up to 62 of 100 is not excluded: 14 models are too few to say.",
        ),
        (
            (0.65, 0.58, 0.76),
            "About membership Random forest leaks at least a little, perhaps much (58 to 76 of 100): 14 models "
            "are too few to say.",
        ),
        (
            (0.65, 0.58, 0.74),
            "About membership Random forest leaks at least a little, perhaps clearly (58 to 74 of 100): 14 models "
            "are too few to say.",
        ),
        (
            (0.7, 0.62, 0.79),
            "From Random forest, membership can be inferred clearly better than by guessing, perhaps with high "
            "accuracy (62 to 79 of 100).",
        ),
        ((0.6, 0.58, 0.62), "From Random forest, membership can be inferred clearly better than by guessing."),
        ((0.5, 0.49, 0.52), "In Random forest these attacks found no leak. A leak larger than 52 of 100"),
    ],
)
def test_what_one_reads_of_a_strong_and_of_no_leak(accuracy, answer):
    (result,) = results(made(accuracy, spread(14, w7=100), facts={"targets": 14, "models": 14}))
    assert said(words.answer(result)).startswith(answer)
    least = "14 games would show only a record that is guessed right in all of them."
    assert said(words.single_records(result)).endswith(least)


def allowed_words(chosen) -> tuple[int, int]:
    """The mildest and the firmest word, of `BANDS`, that a headline leaves possible."""
    mildest = {"little_perhaps": 1, "clear_perhaps": 2, "high_perhaps": 3, "not_shown": 0}.get(chosen.headline)
    if mildest is not None:
        return mildest, BANDS.index(chosen.perhaps)
    word = BANDS.index("little" if chosen.headline == "little_untested" else chosen.headline)
    return word, word


@pytest.mark.parametrize("baseline", [0.5, 0.8])
@pytest.mark.parametrize("n_models", [1, 4, 16, 64])
def test_every_word_touches_the_interval_and_no_narrower_one_contradicts_it(baseline, n_models):
    """Over a grid of all (low, high): words come from both ends, and "too few" from their bands alone."""
    ends = [round(0.01 * step, 2) for step in range(40, 101)]
    chosen = {}
    for low, high in product(ends, ends):
        if low > high:
            continue
        numbers = Numbers(low, high, baseline, n_records=100, n_models=n_models, accuracy=(low + high) / 2)
        found = chosen[low, high] = statements(numbers)
        mildest, firmest = allowed_words(found)
        least, most = band(low, baseline), band(high, baseline)
        assert least <= mildest <= firmest <= most, (low, high, found)
        assert (found.perhaps is None) == (mildest == firmest), (low, high, found)
        if found.perhaps is None and (mildest, most) != (0, 1):  # one word: one band, or a narrow interval
            assert least == most or (most - least == 1 and high - low <= 0.05 + 1e-9), (low, high, found)
            assert firmest == most, (low, high, found)
        if found.perhaps is not None and found.needed is not None:
            assert n_models <= found.needed, (low, high, found)
            assert n_models == 1 or found.needed <= 4096, (low, high, found)
    for (low, high), wide in chosen.items():
        for narrow in ((low + 0.01, high), (low, high - 0.01)):
            found = chosen.get((round(narrow[0], 2), round(narrow[1], 2)))
            if found is None or wide.perhaps is None:
                continue
            mildest, firmest = allowed_words(found)
            assert allowed_words(wide)[0] <= mildest <= firmest <= allowed_words(wide)[1], (low, high, wide, found)


def test_how_many_models_would_decide():
    """Half-widths of 9 fall to the distance of 2 from the border at 60 with T (9/2)^2 models."""
    numbers = Numbers(0.55, 0.71, 0.5, n_records=100, n_models=4, accuracy=0.62)
    assert statements(numbers).needed == 81
    assert statements(replace(numbers, n_models=1)).needed == 2025  # of 100 records
    assert statements(replace(numbers, n_models=256)).needed is None  # 5,184
    assert statements(replace(numbers, accuracy=0.605)).needed is None  # too close to the border
    assert statements(replace(numbers, accuracy_low=0.61, accuracy_high=0.63)).perhaps is None


def test_two_rows_and_64_models_have_no_verdict():
    (result,) = results(made((1.0, 0.99, 1.0), spread(64, w64=2), facts={"target_points": 2}))
    assert said(words.answer(result)) == (
        "For a verdict in words on Random forest, 2 records and 64 models are too few; the numbers are below."
    )


def test_the_choice_is_made_once_from_numbers_alone():
    strong = Numbers(0.95, 0.99, 0.5, n_records=100, n_models=64, n_played=64, first_exposed=46)
    assert statements(strong).headline == "almost_perfect"
    assert statements(strong).records == "not_shown_though_inferred"
    assert statements(Numbers(None, None, 0.5, 100, 64)).headline == "nothing_played"
    assert statements(Numbers(0.45, 0.55, 0.5, 100, 64, refuted=True)).headline == "refuted_only"
    assert statements(Numbers(0.45, 0.55, 0.5, 100, 64, ranks_members_higher=True)).headline == "ranking_only"
    assert statements(Numbers(0.45, 1.0, 0.5, 100, 64)).excluded is False


@pytest.mark.parametrize(
    ("low", "high", "group_low", "headline"),
    [
        (0.45, 0.52, 0.55, "group_exposed"),  # shown of the group alone
        (0.45, 0.52, 0.49, "no_leak"),
        (0.52, 0.55, 0.62, "group_exposed"),
        (0.52, 0.55, 0.58, "little_untested"),  # as little as on average
        (0.62, 0.65, 0.95, "clear"),  # the group stands beside it
    ],
)
def test_no_headline_denies_what_a_group_shows(low, high, group_low, headline):
    """An average over all records hides a class."""
    numbers = Numbers(low, high, 0.5, n_records=100, n_models=64, group_low=group_low)
    assert statements(numbers).headline == headline
    assert statements(numbers).excluded == (headline == "no_leak")
