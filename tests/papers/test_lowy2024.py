"""Practical membership privacy: the settings of the figures against enumeration and closed forms."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.lab import Lab
from leakbound.papers.lowy2024 import (
    clipped_mean,
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    geometric_median,
    ratios,
)
from leakbound.papers.lowy2024.ratios import EXACT, HALVED, NOMINAL, PROMISE, Runs
from leakbound.papers.printed import printed, settings
from tests.marks import nightly

LAB = Lab(quick=True, n_jobs=1)


def selection_laws(loss, sensitivity, epsilon):
    """P(w | D) of every half D, one after the other."""
    n = loss.shape[1] // 2
    halves = [frozenset(half) for half in combinations(range(2 * n), n)]
    weight = [np.exp(-epsilon / (2 * sensitivity) * loss[:, list(half)].mean(axis=1)) for half in halves]
    return halves, [each / each.sum() for each in weight]


def subset_epsilon_by_pairs(halves, distributions):
    pairs = [(a, b) for a in range(len(halves)) for b in range(len(halves)) if len(halves[a] - halves[b]) == 1]
    return max(np.log(distributions[a] / distributions[b]).max() for a, b in pairs)


def pmp_by_records(halves, distributions):
    inside = [
        np.sum([distribution for half, distribution in zip(halves, distributions, strict=True) if x in half], axis=0)
        for x in range(6)
    ]
    outside = [
        np.sum(
            [distribution for half, distribution in zip(halves, distributions, strict=True) if x not in half], axis=0
        )
        for x in range(6)
    ]
    return np.abs(np.log(np.array(inside) / outside)).max()


@pytest.fixture(scope="module")
def small():
    """Six records in two dimensions and four outputs: 20 halves."""
    return geometric_median.Setting(subset=2.0, d=2, n=3, n_outputs=4, clip=3.0, n_outliers=1)


@pytest.mark.parametrize("number", range(3))
def test_both_readings_against_all_halves(small, number):
    loss, sensitivity = geometric_median.game(0, small, number)
    found = geometric_median.trial(0, small, number)
    for epsilon, pmp in zip(found["epsilon"], found["pmp"], strict=True):
        assert pmp == pytest.approx(pmp_by_records(*selection_laws(loss, sensitivity, epsilon)), rel=1e-9)
    exact, nominal = found["epsilon"]
    assert subset_epsilon_by_pairs(*selection_laws(loss, sensitivity, exact)) == pytest.approx(2.0, rel=1e-5)
    assert nominal == pytest.approx(2.0 * 4.0 / np.ptp(loss, axis=1).max())  # min(2C, C + 1) = 4
    assert nominal <= exact


def test_the_game_is_that_of_the_section(small):
    loss, sensitivity = geometric_median.game(0, small, 0)
    assert loss.shape == (4, 6)
    assert sensitivity == pytest.approx(4 / 3)
    assert (loss >= 0).all()
    assert (loss <= 4).all()
    assert (loss[:, 0] > 2 - 1e-12).all()  # the outlier lies at the clip, 3, and the outputs at 1
    close, _ = geometric_median.game(0, small._replace(sigma=1e-9, n_outliers=0), 0)
    assert close[0] == pytest.approx(np.zeros(6), abs=1e-8)  # the data are drawn around the first output


def test_in_one_dimension_two_outputs_differ():
    setting = geometric_median.Setting(subset=1.0, n_outputs=2)  # a fair coin makes them the same
    assert all(np.ptp(geometric_median.game(0, setting, number)[0], axis=0).max() > 0 for number in range(20))


def test_random_halves_hold_what_all_halves_give():
    setting = geometric_median.Setting(subset=2.0, d=5)
    for number in range(3):
        value, low, high = geometric_median.larger(0, setting, number, 2**14, 0.9999)["to_subset"]
        exact = geometric_median.larger(0, setting, number, None, 0.9999)["to_subset"]
        assert low <= exact[0] == exact[1] == exact[2] <= high
        assert value == pytest.approx(exact[0], rel=0.05)
    assert exact[0] == pytest.approx(geometric_median.trial(0, setting, 2)["pmp"][1] / 2.0)


def test_practical_of_a_fixed_epsilon(small):
    found = geometric_median.practical(0, small, 1, 3.0)["pmp"]
    distributions = selection_laws(*geometric_median.game(0, small, 1), 3.0)
    assert found == pytest.approx(pmp_by_records(*distributions), rel=1e-9)


@pytest.mark.parametrize("fixed", [EXACT, PROMISE])
def test_of_two_records_every_promise_is_the_same(fixed):
    """With n = 1 of two records, D with x is x: the noise hides a swap of the two, and nothing is uncertain."""
    found = clipped_mean.trial(0, clipped_mean.Setting(2.0, fixed, d=3, n=1, clip=4.0), 0)
    assert found["pmp"] == pytest.approx(found["subset"], rel=1e-9)
    assert found["average"] == pytest.approx(found["subset"], rel=1e-5)
    assert found["epsilon" if fixed == PROMISE else "subset"] == pytest.approx(2.0, rel=1e-9)
    assert found["epsilon"] > found["subset"]


def hockey(shift, epsilon):
    """Lemma 10 of the paper, for a shift in standard deviations."""
    return norm.cdf(shift / 2 - epsilon / shift) - np.exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift)


@pytest.mark.parametrize("fixed", [EXACT, NOMINAL, PROMISE, HALVED])
def test_every_epsilon_of_the_gaussian_mechanism_by_its_definition(fixed):
    setting = clipped_mean.Setting(3.0, fixed, d=2, n=4, clip=5.0, sigma=3.0, n_outliers=1)
    records = clipped_mean.data(0, setting, 0)
    found = clipped_mean.trial(0, setting, 0)
    assert np.linalg.norm(records, axis=1).max() == pytest.approx(5.0)
    distance = np.linalg.norm(records[:, None] - records, axis=2)[~np.eye(8, dtype=bool)].reshape(8, 7) / 4
    sensitivity = (1 if fixed == HALVED else 2) * 5 / 4
    low, high = 1e-3, 1e3  # the scale that makes the promise, by bisection
    for _ in range(80):
        scale = (low + high) / 2
        low, high = (low, scale) if hockey(sensitivity / scale, found["epsilon"]) < 0.01 else (scale, high)
    mean = hockey(distance / scale, found["pmp"]).mean(axis=1)
    assert mean.max() == pytest.approx(0.01, rel=1e-6)
    assert hockey(distance / scale, found["average"]).mean() == pytest.approx(0.01, rel=1e-4)
    assert found["average"] < found["pmp"]
    assert found["pmp"] < found["epsilon"] or fixed == HALVED
    if fixed == NOMINAL:
        assert found["epsilon"] * distance.max() / sensitivity == pytest.approx(3.0)
        assert found["subset"] == pytest.approx(3.0)
    else:
        assert hockey(distance.max() / scale, found["subset"]) == pytest.approx(0.01, rel=1e-6)
        assert found["subset" if fixed == EXACT else "epsilon"] == pytest.approx(3.0)


def test_rises():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, 40))
    assert ratios.rises(np.arange(4.0)[:, None] + 0.1 * noise)
    assert ratios.rises(-np.arange(4.0)[:, None] + 0.1 * noise) is False
    assert ratios.rises(0.1 * noise) is None  # neither rise nor fall beyond three standard errors
    assert ratios.rises(np.zeros((4, 5))) is False
    assert not ratios.rises(np.array([0.0, 2.0, 1.0, 3.0])[:, None] + 0.1 * noise)  # a step falls
    assert ratios.rises(np.array([0.0, 2.0, 1.999, 3.0])[:, None] + 0.1 * noise)  # within its error


@pytest.mark.nightly
@pytest.mark.statistics
def test_few_data_sets_do_not_explain_the_printed_values_of_figure_1():
    """Of 1,500 single data sets 1.3 % (exact) and 1.1 % (nominal) have both values within a tenth of the printed ones.

    Here 400: 3 % of them are exceeded with a probability below 1 %.
    """
    setting = figure1.SETTING._replace(sigma=1.0)
    trials = [geometric_median.trial(7, setting, number) for number in range(400)]
    epsilon, pmp = (np.array([trial[name] for trial in trials]) for name in ("epsilon", "pmp"))
    for shape in (400, 80):  # single data sets, and means of five
        means = [values.reshape(shape, -1, 2).mean(axis=1) for values in (epsilon, pmp)]
        near = (np.abs(means[0] / 28.5 - 1) < 0.1) & (np.abs(means[1] / 2.14 - 1) < 0.1)
        assert (near.mean(axis=0) <= 0.03).all()


def made_up(to_epsilon, to_subset, subset=5.0):
    """Runs with these ratios on four data sets, and noise that has the mean 0."""
    wobble = np.array([1.0, 0.999, 1.001, 1.0])
    pmp = np.outer(np.multiply(to_subset, subset), wobble)
    return Runs(pmp / np.array(to_epsilon)[:, None], np.full(pmp.shape, subset), pmp)


def test_claims_of_figure_1():
    slope = np.array(figure1.SIGMAS) / 10
    runs = {EXACT: made_up(slope, [0.8] * 7 + [0.6, 0.3]), NOMINAL: made_up(slope, [0.4] * 7 + [0.3, 0.1])}
    left = np.array([[0.1, 0.1], [0.2, 0.3], [0.1, 0.1]])
    ours = figure1.claims(runs[EXACT]) | {"zero": figure1.alike(runs, left)}
    assert ours.keys() == printed("lowy2024")["figure1"].keys()
    assert ours["epsilon"].value == pytest.approx(40)
    assert ours["pmp"].value == pytest.approx(4.0)
    assert figure1.claims(runs[NOMINAL])["pmp"].value == pytest.approx(2.0)
    wide = figure1.claims(figure1.wide(runs[EXACT], figure1.SETTING))
    assert wide["epsilon"].value == pytest.approx(40 * 20 / 11)  # 2C/n and (C + 1)/n at C = 10
    assert wide["ratio"].value == pytest.approx(0.1 * 11 / 20)
    assert wide["pmp"] == ours["pmp"]
    at_other_values = figure1.wide(runs[EXACT], figure1.SETTING._replace(clip=3.0, n=7))
    np.testing.assert_allclose(at_other_values.epsilon, runs[EXACT].epsilon * 6 / 4)  # 2C/n and (C + 1)/n at C = 3
    assert ours["ratio"].value == pytest.approx(0.1)
    assert ours["grows_with_sigma"].value is True
    assert ours["zero"].value == pytest.approx(0.25)
    assert ours["flat"].value == pytest.approx(0.0, abs=1e-12)
    assert "to 5: 0.50" in ours["flat"].detail


def test_claims_of_figure_2():
    fall = 1 / np.array(figure2.CLIPS)
    runs = {EXACT: made_up(fall, [0.5] * 7, 10.0), NOMINAL: made_up(fall, fall, 10.0)}
    ours = figure2.claims(runs[EXACT])
    assert ours.keys() == printed("lowy2024")["figure2"].keys()
    assert ours["ratio_epsilon"].value == pytest.approx(0.02)
    assert ours["ratio_subset"].value == pytest.approx(0.5)
    assert ours["nearly_worst"].value == pytest.approx(0.02 / 0.5)
    assert ours["shrinks"].value is False
    assert figure2.claims(runs[NOMINAL])["shrinks"].value is True


CASES = [
    (figure3, "DIMENSIONS", (1, 20), {"shrinks": True}),
    (figure4, "SUBSETS", (2.0, 10.0), {"grows": False}),
    (figure5, "CLIPS", (10.0, 100.0), {}),
    (figure6, "DIMENSIONS", (1, 20), {"grows": True}),
]
CASES = [CASES[3], *(nightly(*case) for case in CASES[:3])]


@pytest.mark.slow
@pytest.mark.parametrize(("figure", "axis", "values", "holds"), CASES, ids=["6", "3", "4", "5"])
def test_figures_at_two_places(monkeypatch, figure, axis, values, holds):
    """The claims that a few data sets decide, of 80 records where they need 200^2 pairs; and a picture that needs the
    numbers alone.
    """
    monkeypatch.setattr(figure, axis, values)
    if figure is not figure3:
        monkeypatch.setattr(figure, "Setting", partial(clipped_mean.Setting, n=40))
    outcome = figure.measure(LAB)
    name = figure.__name__.rsplit(".", 1)[1]
    assert outcome.ours.keys() == printed("lowy2024")[name].keys()
    assert {key: outcome.ours[key].value for key in holds} == holds
    assert outcome.tried.keys() == settings("lowy2024").get(name, {}).keys()
    assert all(tried.keys() <= outcome.ours.keys() for tried in outcome.tried.values())
    undecided = {key for key, ours in outcome.ours.items() if ours.smaller}
    assert undecided == ({"shrinks"} if figure is figure5 else set())
    drawn_from(figure, outcome.numbers)


@pytest.mark.parametrize(("lab", "places"), [(Lab(), figure4.SUBSETS), (LAB, (1.0, 4.0, 7.0, 10.0))])
def test_a_quick_run_of_figure_4_has_fewer_places_of_the_same_axis(monkeypatch, lab, places):
    swept = []

    def sweep(lab, settings, n_trials):
        swept.append(tuple(each.value for each in settings))
        return made_up(np.linspace(0.5, 0.4, len(settings)), [0.7] * len(settings), 10.0), np.ones((len(settings), 4))

    monkeypatch.setattr(clipped_mean, "sweep", sweep)
    found = figure4.measure(lab)
    assert set(swept) == {places}
    assert set(found.numbers["x"]) == set(places)
    assert found.ours.keys() == printed("lowy2024")["figure4"].keys()


@pytest.mark.slow
def test_epsilons_that_the_text_prints_are_not_ours():
    """Figure 4: some 7 at an exact epsilon(X) of 10, not below .9; Figure 5: 2 at epsilon = 5, not 1."""
    four = clipped_mean.trial(0, clipped_mean.Setting(10.0, EXACT, d=20), 0)
    assert four["pmp"] == pytest.approx(6.9, abs=0.5)
    assert four["epsilon"] > 300
    five = clipped_mean.trial(0, clipped_mean.Setting(5.0, PROMISE, d=10, clip=100.0, sigma=5.0, n_outliers=2), 0)
    assert five["pmp"] == pytest.approx(2.0, abs=0.1)
    assert five["average"] == pytest.approx(0.33, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("figure", [figure1, figure2])
def test_figures_of_the_exponential_mechanism(figure):
    settings = [figure.SETTING._replace(clip=clip) for clip in (5.0, 50.0)]
    table = ratios.table(geometric_median.sweep(LAB, settings, n_trials=2), (5.0, 50.0))
    assert set(table["line"]) == {EXACT, NOMINAL}
    kept = table.query("quantity == 'subset'")
    assert (kept["mean"] == figure.SETTING.subset).all()
    assert (kept["error"] == 0).all()
    drawn_from(figure, pd.concat([table, geometric_median.beyond(LAB, figure.SETTING)]))


def drawn_from(figure, numbers):
    """After a way through a file, with a label on each axis and the lines named."""
    with figures.looking():
        made = figure.draw(pd.DataFrame(numbers.to_dict("records")))
    # an axis for each reading: figures 4 and 5 have further ones for the practical epsilon itself
    assert len(made.axes) == {figure4: 6, figure5: 4}.get(figure, 3)
    drawn = [ax for ax in made.axes if ax.has_data()]  # a row may have a place to spare
    for ax in drawn:
        assert all((ax.get_xlabel(), ax.get_ylabel(), ax.get_title("left")))
    assert sum(ax.get_legend() is not None for ax in made.axes) >= 2
    assert len(figures.as_bytes(made, "png")) > 10_000


def test_names_that_the_pages_use_are_public():
    for name in ("geometric_median_loss", "subset_epsilon", "subset_sensitivity", "clipped_mean_sensitivity"):
        assert name in ls.bounds.__all__
