"""Gower's distances, compared with a loop over pairs; what is left out, and what is refused."""

import datetime as dt
import math

import numpy as np
import pandas as pd
import pytest

from leakbound.releases.generators import distances
from leakbound.releases.generators.distances import Encoding, nearest_distances


def by_pairs(candidates: pd.DataFrame, records: pd.DataFrame, synthetic: pd.DataFrame) -> np.ndarray:
    """Gower's distance of every pair, in plain Python."""
    result = np.empty((len(records), len(synthetic)))
    for i, own in enumerate(records.to_dict("records")):
        for j, other in enumerate(synthetic.to_dict("records")):
            parts = []
            for name in candidates.columns:
                values = candidates[name].dropna()
                first, second = own[name], other[name]
                if pd.isna(first) or pd.isna(second):
                    parts.append(float(pd.isna(first) != pd.isna(second)))
                elif isinstance(first, str):
                    parts.append(float(first != second))
                else:
                    parts.append(abs(first - second) / (values.max() - values.min()))
            result[i, j] = math.fsum(parts) / len(parts)
    return result


def mixed(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "wage": rng.normal(size=n).round(2),
            "town": rng.choice(["Bern", "Chur", "Genf"], n),
            "married": rng.choice(["yes", "no"], n),
        }
    )
    frame["wage"] = frame["wage"].mask(rng.random(n) < 0.2)
    frame["town"] = frame["town"].astype(object).mask(rng.random(n) < 0.2, None)
    return frame


@pytest.mark.parametrize("columns", [["age", "wage", "town", "married"], ["age"], ["wage", "age"], ["town"]])
def test_distances_are_those_of_a_loop_over_pairs(columns, monkeypatch):
    monkeypatch.setattr(distances, "_BLOCK", 100)  # so that several blocks are compared
    candidates, synthetic = mixed(40, 1)[columns], mixed(25, 2)[columns]
    synthetic.iloc[0] = candidates.iloc[3]  # a copy
    encoding = Encoding.of(candidates)
    nearest = nearest_distances(encoding.encode(candidates), encoding.encode(synthetic), k=5)
    expected = np.sort(by_pairs(candidates, candidates, synthetic), axis=1)
    np.testing.assert_allclose(nearest, expected[:, :5], atol=1e-12)
    np.testing.assert_array_equal(nearest[:, 0] == 0, expected[:, 0] == 0)
    assert nearest[3, 0] == 0


def test_fewer_rows_than_neighbours_give_all_of_them():
    encoding = Encoding.of(np.arange(12.0).reshape(6, 2))
    rows = encoding.encode(np.arange(4.0).reshape(2, 2))
    assert nearest_distances(rows, rows, k=5).shape == (2, 2)
    with pytest.raises(ValueError, match="the synthetic file has no rows"):
        nearest_distances(rows, rows.take([]), k=5)


def test_ranges_and_levels_are_those_of_the_candidates():
    candidates = pd.DataFrame({"age": [20.0, 60.0], "town": ["Bern", "Chur"]})
    encoding = Encoding.of(candidates)
    # far outside of the range, and a level that nobody has: the candidates' range of 40 years still counts
    rows = encoding.encode(pd.DataFrame({"age": [100.0], "town": ["Genf"]}))
    assert nearest_distances(encoding.encode(candidates), rows, 1).ravel().tolist() == [1.5, 1.0]


def test_a_constant_column_is_equal_or_not():
    encoding = Encoding.of(pd.DataFrame({"zone": [7, 7, 7], "age": [1, 2, 3]}))
    records = encoding.encode(pd.DataFrame({"zone": [7], "age": [2]}))
    assert nearest_distances(records, encoding.encode(pd.DataFrame({"zone": [8], "age": [2]})), 1) == 0.5
    assert nearest_distances(records, encoding.encode(pd.DataFrame({"zone": [7.0], "age": [2]})), 1) == 0


@pytest.mark.parametrize(
    "days",
    [
        ["2024-01-01", "2024-01-11", "2024-01-02"],
        pd.to_datetime(["2024-01-01", "2024-01-11", "2024-01-02"]),
        [dt.date(2024, 1, 1), dt.date(2024, 1, 11), dt.date(2024, 1, 2)],
    ],
)
def test_dates_are_numbers(days):
    frame = pd.DataFrame({"day": days})
    encoded = Encoding.of(frame).encode(frame)
    np.testing.assert_allclose(encoded.numbers.ravel(), [0, 1, 0.1])


def test_truth_values_and_python_numbers_are_numbers():
    frame = pd.DataFrame({"ill": [True, False, True], "paid": pd.Series([1, None, 3], dtype=object)})
    encoding = Encoding.of(frame)
    assert list(encoding.numbers) == ["ill", "paid"]
    np.testing.assert_array_equal(encoding.encode(frame).numbers, [[1, 0], [0, np.nan], [1, 1]])


def test_identifiers_are_left_out_and_named():
    frame = pd.DataFrame({"customer": [f"C-{i}" for i in range(30)], "age": [30.0, 40.0, 50.0] * 10})
    encoding = Encoding.of(frame)
    assert encoding.left_out == ("customer",)
    copied = frame.assign(customer=[f"S-{i}" for i in range(30)])
    assert nearest_distances(encoding.encode(frame), encoding.encode(copied), 1).max() == 0
    assert encoding.encode(frame.drop(columns="customer")).n_columns == 1  # nobody asks for it
    with pytest.raises(ValueError, match="no column is left to compare: customer has"):
        Encoding.of(frame[["customer"]])


def test_what_cannot_be_compared_is_refused_in_one_line():
    texts = pd.DataFrame({"note": [f"came {i} times" for i in range(58)], "age": np.arange(58) % 7})
    texts.loc[:9, "note"] = "never"
    with pytest.raises(ValueError, match="reads no text, and more than half of the values of note occur once") as free:
        Encoding.of(texts)
    encoding = Encoding.of(pd.DataFrame({"age": [1, 2], "town": ["Bern", "Chur"]}))
    with pytest.raises(ValueError, match="the synthetic file lacks the columns town, which the records have") as lacks:
        encoding.encode(pd.DataFrame({"age": [1]}))
    with pytest.raises(ValueError, match="the synthetic file has the columns wage, which the records lack") as has:
        encoding.encode(pd.DataFrame({"age": [1], "town": ["Bern"], "wage": [3]}))
    with pytest.raises(ValueError, match="column age has numbers or dates in the records and text in the") as kind:
        encoding.encode(pd.DataFrame({"age": ["one"], "town": ["Bern"]}))
    with pytest.raises(ValueError, match="a distance needs a frame, or an array of numbers") as form:
        Encoding.of(["a", "b"])
    assert not any("\n" in str(error.value) for error in (free, lacks, has, kind, form))


def test_files_published_together_are_rows_of_one():
    people = np.array([[0.0, 0.0], [4.0, 10.0], [2.0, 5.0]])
    encoding = Encoding.of(people)
    first, second = encoding.encode(people[:1]), encoding.encode(people[1:2])
    both = nearest_distances(encoding.encode(people), first.followed_by(second), k=1)
    assert both.ravel().tolist() == [0, 0, 0.5]
