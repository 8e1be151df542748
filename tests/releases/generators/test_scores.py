"""Scores of records by the rows of synthetic files, compared with their definitions in loops."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import norm

from leakbound.releases.generators import scores as module
from leakbound.releases.generators.distances import Encoding
from leakbound.releases.generators.scores import largest_of_units, scores


@pytest.fixture
def numbers():
    """Records, synthetic rows and reference rows of three columns, and the ranges of the records."""
    rng = np.random.default_rng(0)
    records, synthetic, reference = (rng.normal(size=(n, 3)) for n in (30, 40, 80))
    synthetic[:4] = records[:4]  # copies
    return records, synthetic, reference, np.ptp(records, axis=0)


def encoded(*arrays):
    encoding = Encoding.of(arrays[0])
    return [encoding.encode(array) for array in arrays]


def test_nearest_rows_are_those_of_all_pairs(numbers):
    records, synthetic, _, ranges = numbers
    pairs = np.sort(cdist(records / ranges, synthetic / ranges, "cityblock"), axis=1) / 3
    found = scores(*encoded(records, synthetic), ["matches", "nearest", "nearest5", "density_ratio", "gen_lra"])
    assert list(found) == ["nearest", "nearest5", "matches"]  # nothing that needs a reference
    np.testing.assert_allclose(found["nearest"], -pairs[:, 0], atol=1e-12)
    np.testing.assert_allclose(found["nearest5"], -pairs[:, :5].mean(axis=1), atol=1e-12)
    assert found["matches"].tolist() == [1.0] * 4 + [0.0] * 26
    assert list(scores(*encoded(records, synthetic), ["matches"])) == ["matches"]


def test_a_number_next_to_a_record_is_no_match():
    records = np.array([[0.1, 1.0], [0.3, 2.0], [0.7, 5.0]])
    almost = np.nextafter(records, 9)
    found = scores(*encoded(records, almost), ["matches", "nearest"])
    assert found["matches"].tolist() == [0, 0, 0]
    assert found["nearest"].max() < 0
    assert scores(*encoded(records, records[::-1]), ["matches"])["matches"].tolist() == [1, 1, 1]


def test_the_density_ratio_compares_the_same_fraction_of_both_files(numbers):
    records, synthetic, reference, ranges = numbers
    to_synthetic, to_reference = (
        np.sort(cdist(records / ranges, rows / ranges, "cityblock"), axis=1) / 3 for rows in (synthetic, reference)
    )
    # 5 of 40 rows, and 10 of 80
    expected = np.log(to_reference[:, :10].mean(axis=1) + 0.01) - np.log(to_synthetic[:, :5].mean(axis=1) + 0.01)
    records, synthetic, reference = encoded(records, synthetic, reference)
    found = scores(records, synthetic, ["density_ratio"], reference)
    np.testing.assert_allclose(found["density_ratio"], expected, atol=1e-12)


def test_gen_lra_is_the_likelihood_of_the_nearest_rows_with_the_record_and_without(numbers, monkeypatch):
    monkeypatch.setattr(module, "NEAR_ROWS", 7)
    monkeypatch.setattr(module, "_PAIRS", 100)  # so that several blocks are computed
    records, synthetic, reference, _ = numbers
    n, d = reference.shape
    # Silverman's rule, in standard deviations of the reference
    width = reference.std(axis=0) * (n * (d + 2) / 4) ** (-1 / (d + 4))

    def density(rows, centres):
        return norm.pdf(rows[:, None], centres, width).prod(axis=2).mean(axis=1)

    expected = []
    for record in records:
        near = synthetic[np.argsort((((synthetic - record) / width) ** 2).sum(axis=1))[:7]]
        without, with_it = density(near, reference), density(near, np.vstack([reference, record]))
        expected.append(np.log(with_it / without).sum())
    records, synthetic, reference = encoded(records, synthetic, reference)
    found = scores(records, synthetic, ["gen_lra"], reference)
    np.testing.assert_allclose(found["gen_lra"], expected, rtol=1e-6, atol=1e-9)


def test_gen_lra_takes_mixed_columns_with_missing_values_and_at_most_20(numbers):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"town": rng.choice(["Bern", "Chur"], 60), "wage": rng.normal(size=60)})
    frame.loc[:20, "wage"] = np.nan
    records, synthetic, reference = encoded(frame[:20], frame[10:40], frame[40:])
    found = scores(records, synthetic, ["gen_lra"], reference)
    assert np.isfinite(found["gen_lra"]).all()
    assert found["gen_lra"][10:].mean() > found["gen_lra"][:10].mean()  # those are among the synthetic rows
    wide = encoded(*rng.normal(size=(3, 10, 21)))
    assert scores(wide[0], wide[1], ["gen_lra", "nearest"], wide[2]).keys() == {"nearest"}


def test_all_rows_of_a_unit_have_its_largest_score(numbers):
    records, synthetic, _, _ = numbers
    group = np.repeat(np.arange(10), 3)
    pair = encoded(records, synthetic)
    single = scores(*pair, ["nearest"])["nearest"]
    by_unit = scores(*pair, ["nearest"], group=group)["nearest"]
    np.testing.assert_array_equal(by_unit, np.repeat(single.reshape(10, 3).max(axis=1), 3))
    assert largest_of_units(np.array([1.0, 3.0, 2.0]), np.array(["b", "a", "b"])).tolist() == [2, 3, 2]
