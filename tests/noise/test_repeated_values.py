"""Values without each record, each distinct one kept once: every number is that of the same values in full."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from leakbound.core.repeated_rows import RepeatedRows, side_by_side
from leakbound.noise import (
    GaussianNoise,
    LeftOut,
    calibrate_left_out,
    joint_advantage,
    largest_distance,
    largest_reserve,
    least_left_out_noise,
    left_out_curve,
)
from leakbound.protection.ledger.budget import BudgetLedger as ReleaseLedger
from leakbound.protection.ledger.budget import Release
from leakbound.protection.ledger.ledger import Query
from tests.protection.ledger.test_ledger_file import mutated, sealed
from tests.protection.ledger.test_release_ledger import KEY, PLAIN, check_flips, content, digest, opened_line

N, CELLS = 60, 7


def counts(seed: int, n: int = N) -> tuple[RepeatedRows, np.ndarray]:
    """Counts without each record, of cells with few and many records and one that is empty; compact and in full."""
    rng = np.random.default_rng(seed)
    cell = rng.choice(CELLS, n, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05, 0.0])
    total = np.bincount(cell, minlength=CELLS).astype(float)
    occurring = np.unique(cell)
    rows = total - np.eye(CELLS)[occurring]
    return RepeatedRows(rows, np.searchsorted(occurring, cell)), total - np.eye(CELLS)[cell]


@pytest.mark.parametrize("seed", range(5))
def test_a_left_out_record_is_told_as_well(seed) -> None:
    compact, full = counts(seed)
    one, other = LeftOut(compact), LeftOut(full)
    shape = np.diag(np.arange(1.0, CELLS + 1)) + 0.1
    for noise in (
        GaussianNoise(0.4),
        GaussianNoise(3.0),
        GaussianNoise(2.0, shape),
        GaussianNoise(2.0, np.diag(shape)),
    ):
        assert one.worst(noise) == other.worst(noise)
        assert (one.advantages(noise) == other.advantages(noise)).all()
    np.testing.assert_allclose(one.jackknife_std, other.jackknife_std, rtol=1e-13)
    assert calibrate_left_out(one, 0.05).scale == calibrate_left_out(other, 0.05).scale
    found, expected = least_left_out_noise(one, 0.05), least_left_out_noise(other, 0.05)
    assert found.scale == expected.scale
    assert (np.asarray(found.shape) == np.asarray(expected.shape)).all()


@pytest.mark.parametrize("seed", range(3))
def test_several_releases_of_it(seed) -> None:
    (first, of_first), (second, of_second) = counts(seed), counts(seed + 10)
    compact, full = side_by_side([first, second]), np.hstack([of_first, of_second])
    compact, full = RepeatedRows(compact.rows / 20, compact.which), full / 20
    assert joint_advantage(compact, 0.1) == joint_advantage(full, 0.1)
    assert (left_out_curve(compact, 0.1).value == left_out_curve(full, 0.1).value).all()
    assert largest_distance(compact) == largest_distance(full)
    assert largest_reserve(compact, 0.2) == largest_reserve(full, 0.2)
    assert largest_reserve(LeftOut(compact), 0.2) == largest_reserve(full, 0.2)


@pytest.mark.parametrize("scale", [0.5, 5.0])
def test_a_reserve_that_is_nothing_is_found_at_once(scale) -> None:
    """By one record alone: as by all of them."""
    values = np.random.default_rng(0).lognormal(size=(200, 2)) / scale
    assert (largest_reserve(LeftOut(values), 0.05) == 0) == (joint_advantage(values).advantage > 0.1)
    assert largest_reserve(LeftOut(values), 0.05) == largest_reserve(values, 0.05)


def test_memory_is_that_of_the_cells() -> None:
    """400 cells of 100,000 records: 320 MB in full."""
    rng = np.random.default_rng(0)
    cell = rng.integers(400, size=100_000)
    total = np.bincount(cell, minlength=400).astype(float)
    compact = RepeatedRows(total - np.eye(400), cell)
    tracemalloc.start()
    noise = calibrate_left_out(compact, 0.05)
    assert LeftOut(compact).worst(noise).advantage <= 0.1
    assert tracemalloc.get_traced_memory()[1] < 30e6
    tracemalloc.stop()


# ---------------------------------------------------------------------------------------------------------------------
# In a ledger


UNITS = [f"person {number}" for number in range(N)]


def entry(ledger: ReleaseLedger, name: str, table: RepeatedRows | np.ndarray, query: str = "") -> Release:
    return Release(
        query or digest(name), 0.05, "2027-01-04", digest(name), digest(name), digest("noise"), 1.0,
        ledger.unit_hashes(UNITS), table,
    )  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger"


def scaled(table: RepeatedRows, factor: float) -> RepeatedRows:
    return RepeatedRows(table.rows * factor, table.which)


def test_a_ledger_counts_it_as_in_full(path) -> None:
    (first, of_first), (second, of_second) = counts(0), counts(10)
    ledgers = [ReleaseLedger.create(path.with_name(name), "leave-one-out", 0.2, KEY) for name in "ab"]
    made = []
    for ledger, tables in zip(ledgers, ((first, second), (of_first, of_second)), strict=True):
        one, other = (scaled(each, 1 / 50) if isinstance(each, RepeatedRows) else each / 50 for each in tables)
        made.append(ledger.append(entry(ledger, "first", one)).append(entry(ledger, "second", other)))
    assert made[0].reserve == made[1].reserve
    assert made[0].spent() == made[1].spent()
    weak = [entry(ledger, "third", table) for ledger, table in zip(made, (first, of_first), strict=True)]
    assert made[0].noise_factor(weak[0]) == made[1].noise_factor(weak[1])


def test_it_is_written_and_read(path) -> None:
    table = scaled(counts(0)[0], 1 / 50)
    ledger = ReleaseLedger.create(path, "leave-one-out", 0.2, KEY)
    query = Query({"statistic": "table"}, 0.05)
    ledger = ledger.declare(query, "today", table, ledger.unit_hashes(UNITS))
    kept = ReleaseLedger.open(path, "leave-one-out").queries[0].values
    assert isinstance(kept, RepeatedRows)
    order = sorted(range(N), key=lambda row: bytes(ledger.unit_hashes(UNITS)[row]))
    assert (np.asarray(kept) == np.asarray(table)[order]).all()
    opened = ReleaseLedger.open(path, "leave-one-out")
    opened = opened.append(entry(opened, "first", table, opened.queries[0].digest)).published(0)
    again = ReleaseLedger.open(path, "leave-one-out")
    assert again.releases[0].declared
    assert isinstance(again.releases[0].table, RepeatedRows)
    assert (np.asarray(again.releases[0].table) == np.asarray(table)[order]).all()
    assert content(again) == content(opened)
    assert again.spent() == opened.spent()


@pytest.mark.parametrize(
    ("place", "wrong", "line"),
    [
        (("which",), None, "releases[0] has 6 rows for 60 units, and does not say which one each has"),
        (("which",), "AAAA", "releases[0].which must be 60 numbers in base 64"),
        (("which",), "A" * 320, "releases[0].which must name all of 6 rows and no others"),
        (("rows",), 10**15, "releases[0].values must be 1,000,000,000,000,000 x 7 numbers in base 64"),
        (("rows",), 0, "releases[0].rows: Input should be greater than or equal to 1"),
    ],
)
def test_damage_is_one_line(path, place, wrong, line) -> None:
    ledger = ReleaseLedger.create(path, "leave-one-out", 0.2, KEY)
    ledger.append(entry(ledger, "first", scaled(counts(0)[0], 1 / 50)))
    kept = json.loads(path.read_text())["content"]
    made = sealed(mutated(kept, ("releases", 0, *place), wrong))
    assert opened_line(path, made, "leave-one-out").startswith(f"{path} {PLAIN}{line}")


def test_no_flipped_bit_gives_another_number(path) -> None:
    ledger = ReleaseLedger.create(path, "leave-one-out", 0.2, KEY)
    ledger.append(entry(ledger, "first", scaled(counts(0)[0], 1 / 50)))
    check_flips(path, 100, seed=5)


def test_a_checked_release_is_completed_once(path) -> None:
    """The file is written when the value is known, and then with all that was checked."""
    ledger = ReleaseLedger.begun(path, "leave-one-out", 0.2, KEY)
    checked = ledger.check(entry(ledger, "first", scaled(counts(0)[0], 1 / 50)))
    assert not path.exists()
    value = hashlib.sha256(b"value").hexdigest()
    made = checked.completed(value)
    assert ReleaseLedger.open(path, "leave-one-out").releases[0].release == value
    later = made.check(entry(made, "second", scaled(counts(1)[0], 1 / 900)))
    with pytest.raises(ValueError, match="holds this release already, as release 1"):
        later.completed(value)
    other = replace(made, digest="0" * 64)
    line = "was changed since it was opened: another release was made meanwhile; the same command again counts"
    with pytest.raises(ValueError, match=line):
        other.append(entry(made, "third", scaled(counts(1)[0], 1 / 900)))
