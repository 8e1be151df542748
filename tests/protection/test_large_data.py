"""What keeps large data cheap changes no number: compact counts, names of records by blocks, columns one at a time."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from leakbound.core.repeated_rows import RepeatedRows
from leakbound.core.types import Points
from leakbound.data import content, read
from leakbound.data.content import row_names, row_names_of_parquet
from leakbound.files import private_file
from leakbound.plans.promises import NAME_OF, File
from leakbound.protection.promises.file.noise import search_left_out_noise
from leakbound.releases.statistics import left_out
from leakbound.releases.statistics.features import Cells, Histogram
from leakbound.releases.statistics.left_out import left_out_values
from leakbound.releases.statistics.statistic import Linear
from tests.promising import protect, protect_file

LEVELS = {"town": ["Bonn", "Köln", "Mainz"], "sex": ["0", "1"]}


def people(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "town": rng.choice(["Bonn", "Köln"], n, p=[0.9, 0.1]),  # nobody is in Mainz
            "sex": rng.integers(0, 2, n),
            "age": rng.integers(0, 90, n).astype(float),
            "person": [f"p{number // 2}" for number in range(n)],
        }
    )


def indicators(frame: pd.DataFrame) -> np.ndarray:
    """A row for each record, by a loop."""
    cells = [(town, int(sex)) for town in LEVELS["town"] for sex in LEVELS["sex"]]
    return np.array([[float(row == cell) for cell in cells] for row in zip(frame.town, frame.sex, strict=True)])


@pytest.mark.parametrize("dtype", ["str", "category", "object"])
def test_cells_are_those_of_a_loop(dtype) -> None:
    frame = people().astype({"town": dtype})
    frame.loc[[5, 9], "town"] = ["Bonn", "Köln"]
    cells = Cells(("town", "sex"), (tuple(LEVELS["town"]), (0, 1)))
    assert (cells(frame) == indicators(frame)).all()
    some = Cells(("town", "sex"), (("Köln",), (1, 7)))
    expected = np.column_stack([(frame.town == "Köln") & (frame.sex == 1), np.zeros(len(frame))])
    assert (some(frame) == expected).all()
    assert len(some.repeated(frame).rows) == 2


def test_a_missing_text_is_in_no_cell() -> None:
    frame = pd.DataFrame({"town": ["Bonn", None, "Köln"]})
    for dtype in ("str", "category", "object"):
        cells = Cells(("town",), (("Bonn", "Köln"),))
        assert cells(frame.astype({"town": dtype})).tolist() == [[1, 0], [0, 0], [0, 1]]
        with pytest.raises(ValueError, match=r"^1 record has no town \(an empty cell\): fill it in the file"):
            Cells.declared(frame.astype({"town": dtype}), ["town"], {"town": ["Bonn", "Köln"]})


def test_bins_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    x = np.append(rng.uniform(-1, 4, (500, 2)), [[0.0, 3.0], [3.0, 0.5], [2.0, 2.0]], axis=0)
    edges = ((0.0, 1.0, 2.0, 3.0), (0.5, 2.0, 3.0))
    bins = Histogram(("x0", "x1"), edges)
    expected = np.concatenate([np.histogram(x[:, column], edges[column])[0] for column in range(2)])
    assert bins(x).sum(axis=0).tolist() == expected.tolist()
    repeated = bins.repeated(x)
    assert (np.asarray(repeated) == bins(x)).all()
    assert len(repeated.rows) == len(np.unique(bins(x), axis=0))


@pytest.mark.parametrize(
    "features",
    [
        Cells(("town", "sex"), (tuple(LEVELS["town"]), (0, 1))),
        Histogram(("age",), ((0.0, 20.0, 60.0, 80.0),)),
        Histogram(("age", "sex"), ((0.0, 20.0, 60.0, 80.0), (0.0, 1.0, 2.0))),
    ],
)
@pytest.mark.parametrize("eta", [0.02, 0.1])
def test_the_certificate_of_counts_is_that_of_all_rows(features, eta) -> None:
    """Noise, grid, released values and what is proved, number for number."""
    frame = people()
    frame = frame[["age", "sex"]] if isinstance(features, Histogram) else frame
    statistic = Linear("count", features, "sum")
    of_all, compact = left_out_values(statistic, Points(frame)) or (None, None)
    assert isinstance(compact, RepeatedRows)
    dense = features(frame)
    full = dense.sum(axis=0) - dense
    assert of_all is not None
    assert (of_all == dense.sum(axis=0)).all()
    assert (np.asarray(compact) == full).all()
    labels = statistic.labels(Points(frame))
    found, expected = (search_left_out_noise(each, eta, labels, counts=True) for each in (compact, full))
    assert found.noise is not None
    assert expected.noise is not None
    assert (found.noise.scale, found.grid, found.worst) == (expected.noise.scale, expected.grid, expected.worst)
    assert (np.asarray(found.table) == expected.table).all()
    assert (np.asarray(found.whitened) == expected.whitened).all()


def dense_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count with a row for each record."""

    def counts(features: Any, units: Any) -> tuple[np.ndarray, np.ndarray]:
        rows = np.asarray(features)
        return rows.sum(axis=0), rows.sum(axis=0) - rows

    monkeypatch.setattr(left_out, "_counts", counts)


def test_a_whole_release_of_counts(tmp_path, monkeypatch) -> None:
    """The owner's page but for the last digits of standard errors, and what is published byte for byte."""
    words: dict[str, Any] = {
        "by": "town,sex", "levels": LEVELS, "eta": 0.05, "promise": File(games=200), "insecure_seed": 3,
        "date": "2027-01-04",
    }  # fmt: skip
    made = [protect("table", people(), ledger=tmp_path / "compact", **words)]
    dense_values(monkeypatch)
    made.append(protect("table", people(), ledger=tmp_path / "dense", **words))
    one, other = (each.owner.about for each in made)
    assert one.certificate.noise == other.certificate.noise
    assert one.certificate.assumptions == other.certificate.assumptions
    for mine, theirs in zip(one.values, other.values, strict=True):
        assert mine.noise_std == theirs.noise_std
        assert (mine.sampling_std or 0) == pytest.approx(theirs.sampling_std or 0, rel=1e-12)
    findings = [[(each.quantity, each.release, each.value) for each in report.owner.findings] for report in made]
    assert findings[0] == findings[1]


@pytest.mark.parametrize("promise", ["file", "anyone"])
@pytest.mark.parametrize("statistic", ["table", "histogram"])
def test_no_step_of_a_release_of_counts_makes_a_row_for_each_record(tmp_path, monkeypatch, promise, statistic) -> None:
    """Values, noise, ledger, rules of offices, certificate: ten million rows of all cells fit nowhere."""

    def refused(self: Any, x: Any) -> None:
        raise MemoryError("a row of all cells for each record")

    for kind in (Cells, Histogram):
        monkeypatch.setattr(kind, "__call__", refused)
    counted: dict[str, Any] = {"by": "age", "set": {"edges": [0, 30, 60, 90]}}
    if statistic == "table":
        counted = {"by": ["town", "sex"], "levels": LEVELS}
    columns = counted["by"] if statistic == "table" else ["age"]
    games = {"games": 0} if promise == "file" else {}
    made = protect(statistic, people()[columns], eta=0.1, promise=promise, ledger=tmp_path / "l", **games, **counted)
    assert np.isfinite(made.value).all()
    assert [rule.rule for rule in made.owner.about.rules] == ["minimum_frequency"]


def test_persons_with_several_records(tmp_path) -> None:
    """Their rows are counted together, and distinct ones once."""
    frame = people()
    words: dict[str, Any] = {"by": "town,sex", "levels": LEVELS, "eta": 0.05, "promise": File(games=0)}
    made = protect("table", frame, ledger=tmp_path / "ledger", group="person", **words)
    by_person = pd.DataFrame(indicators(frame)).groupby(frame.person.to_numpy()).sum().to_numpy()
    expected = search_left_out_noise(
        indicators(frame).sum(axis=0) - by_person, 0.05, [str(cell) for cell in range(6)], counts=True
    )
    assert expected.noise is not None
    assert made.noise.scale == expected.noise.scale


def test_memory_of_counts_is_that_of_the_cells() -> None:
    """400 cells of 200,000 records: 640 MB with a row for each."""
    rng = np.random.default_rng(0)
    x = rng.integers(20, size=(200_000, 2))
    statistic = Linear("count", Cells.of(x, ["x0", "x1"]), "sum")
    tracemalloc.start()
    _, values = left_out_values(statistic, Points(x)) or (None, None)
    assert values is not None
    found = search_left_out_noise(values, 0.05, statistic.labels(Points(x)), counts=True)
    assert found.worst.advantage <= 0.1
    assert tracemalloc.get_traced_memory()[1] < 30e6
    tracemalloc.stop()


def test_many_columns_have_a_deviation_each() -> None:
    """No matrix of all columns is kept: 100 columns take the time of 100 numbers a record."""
    values = np.random.default_rng(0).lognormal(size=(500, 100)) * np.arange(1, 101)
    found = search_left_out_noise(values, 0.05, [str(column) for column in range(100)])
    assert found.noise is not None
    assert np.ndim(found.noise.shape) == 1
    assert found.rms.shape == (100,)
    assert found.worst.advantage <= 0.1
    by_pairs = np.linalg.norm((found.table - found.table[found.worst.record]) / found.rms, axis=1)
    assert len(by_pairs) == 500


# ---------------------------------------------------------------------------------------------------------------------
# Names of records


def naive_numbers(keys: list[Any]) -> list[int]:
    seen: dict[Any, int] = {}
    numbers = []
    for key in keys:
        seen[key] = seen.get(key, -1) + 1
        numbers.append(seen[key])
    return numbers


def test_equal_records_are_numbered() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(3, size=(500, 2)).astype(float)
    words = row_names(Points(x)).view("<u8")
    assert words[:, 1].tolist() == naive_numbers([tuple(row) for row in x.tolist()])
    assert len(np.unique(words[:, 0])) == len(np.unique(x, axis=0))
    assert len(np.unique(words, axis=0)) == 500


def test_names_are_the_same_in_blocks(monkeypatch) -> None:
    frame = people().assign(when=pd.Timestamp("2027-01-04"), many=[None, *range(299)])
    frame["mixed"] = pd.Series([1, "1", None, *range(297)], dtype=object)
    whole = row_names(Points(frame))
    monkeypatch.setattr(content, "_BLOCK", 7)
    assert (row_names(Points(frame)) == whole).all()
    assert (row_names(Points(frame[frame.columns[::-1]])) == whole).all()
    order = np.random.default_rng(0).permutation(len(frame))
    shuffled = row_names(Points(frame.iloc[order].reset_index(drop=True)))
    assert sorted(map(bytes, shuffled)) == sorted(map(bytes, whole))


def test_columns_that_differ_or_change_places_have_other_names() -> None:
    first = row_names(Points(pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0]}))).view("<u8")[:, 0]
    assert first[0] != first[1]
    other = row_names(Points(pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.5]}))).view("<u8")[:, 0]
    assert (first[0], first[1] == other[1]) == (other[0], False)


def test_a_parquet_file_by_column_has_the_names_of_the_frame(tmp_path) -> None:
    frame = people().assign(town=lambda table: table.town.astype("category"), member=[True, None] * 150)
    frame.to_parquet(tmp_path / "people.parquet")
    frame.set_index("person").to_parquet(tmp_path / "indexed.parquet")
    for name in ("people", "indexed"):
        file = tmp_path / f"{name}.parquet"
        assert (row_names_of_parquet(file) == row_names(read(file).points)).all()


@pytest.mark.parametrize("design", ["dp", "leave-one-out"])
def test_a_release_reads_a_file_as_a_whole_for_its_names(tmp_path, design) -> None:
    """The same release of fewer columns knows the same records again; differential privacy has the same noise."""
    frame = people()
    frame.to_parquet(tmp_path / "people.parquet")
    words: dict[str, Any] = {
        "data": tmp_path / "people.parquet", "statistic": "table", "by": "sex", "levels": {"sex": ["0", "1"]},
        "eta": 0.05, "promise": NAME_OF[design], "ledger": tmp_path / "ledger", "budget": 0.3,
    }  # fmt: skip
    first = protect_file(**words)
    again = protect_file(**words)
    assert (first.value == again.value).all()
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "people.csv", index=False)
    shuffled = protect_file(**{**words, "data": tmp_path / "people.csv"})
    assert (first.value == shuffled.value).all()


# ---------------------------------------------------------------------------------------------------------------------
# Files


def test_a_private_file_is_written_piece_by_piece_as_json(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(private_file, "_BLOCK", 30)
    array = np.random.default_rng(0).normal(size=(7, 3))
    packed = private_file.base64.b64encode(array.tobytes()).decode()
    value: dict[str, Any] = {"b": [1, 2.5, None, {"z": "é", "a": []}], "a": {"n": True}, "c": array}
    digest = private_file.write(tmp_path / "file", value, None)
    plain = json.dumps({**value, "c": packed}, sort_keys=True, separators=(",", ":")).encode()
    assert digest == hashlib.sha256(plain).hexdigest() == private_file.digest_of(value)
    assert (tmp_path / "file").read_bytes() == b'{"content":' + plain + b',"sha256":"' + digest.encode() + b'"}'
    assert private_file.read(tmp_path / "file") == ({**value, "c": packed}, digest)
    assert private_file.write(tmp_path / "file", value, digest) == digest


def test_a_file_that_would_be_too_large_leaves_the_old_one(tmp_path, monkeypatch) -> None:
    digest = private_file.write(tmp_path / "file", {"a": 1}, None)
    before = (tmp_path / "file").read_bytes()
    monkeypatch.setattr(private_file, "LARGEST", 200)
    with pytest.raises(ValueError, match="would have more than 200 bytes, which are allowed"):
        private_file.write(tmp_path / "file", {"a": np.zeros(100)}, digest)
    assert (tmp_path / "file").read_bytes() == before
    assert [each.name for each in tmp_path.iterdir() if ".lock" not in each.name] == ["file"]


@pytest.mark.parametrize(
    "damage", [b"", b"x", b'{"content":', b'{"content":{}', b'{"content":{},"sha256":"' + b"0" * 64 + b'"}']
)
def test_a_damaged_file_is_not_replaced(tmp_path: Path, damage) -> None:
    digest = private_file.write(tmp_path / "file", {"a": 1}, None)
    (tmp_path / "file").write_bytes(damage)
    with pytest.raises(ValueError, match="is damaged: "):
        private_file.write(tmp_path / "file", {"a": 2}, digest)
    assert (tmp_path / "file").read_bytes() == damage


def test_a_text_that_is_repeated_in_every_row_counts_every_time(tmp_path) -> None:
    """A small file with a long text in each of many rows is refused before it is in memory."""
    file = tmp_path / "texts.parquet"
    column = pa.DictionaryArray.from_arrays(np.zeros(100_000, dtype=np.int32), ["x" * 100_000])
    parquet.write_table(pa.table({"a": column}), file, store_schema=False)  # read as texts
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"texts\.parquet: .* would take 10,0\d\d MB of memory"):
        read(file)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
