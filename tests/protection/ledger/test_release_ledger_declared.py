"""Declared queries whose tables a ledger keeps until its first output, what it was asked for, and keys for tests."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leakbound.noise import largest_reserve
from leakbound.protection.ledger import budget as budgeted
from leakbound.protection.ledger.budget import BudgetLedger as ReleaseLedger
from leakbound.protection.ledger.ledger import Query
from tests.protection.ledger.test_ledger_file import mutated, sealed
from tests.protection.ledger.test_release_ledger import (
    KEY,
    PLAIN,
    UNITS,
    VALUES,
    check_flips,
    check_mutations,
    content,
    in_order,
    opened_line,
    refused,
    release,
)

MEAN, SUM = Query({"statistic": "mean"}, 0.05), Query({"statistic": "sum"}, 0.05)
TABLES = [VALUES / 60, VALUES[:, :1] / 40]
FINITE = "the table must be finite, and no value above 1e+140: a failure has no noise"
OTHER_UNITS = "the data have other units than when the queries of {} were declared: start another ledger"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.json"


@pytest.fixture
def declared(path: Path) -> ReleaseLedger:
    """With a query whose table is kept, and another one, whose rows came in another order."""
    ledger = ReleaseLedger.create(path, "leave-one-out", 0.2, KEY)
    hashes, order = ledger.unit_hashes(UNITS), np.random.default_rng(0).permutation(12)
    ledger = ledger.declare(MEAN, "2027-01-03", TABLES[0], hashes)
    return ledger.declare(SUM, "2027-01-04", TABLES[1][order], hashes[order])


class TestWhatIsKept:
    def test_until_the_first_output(self, path, declared) -> None:
        """Then all are counted as if the tables had been given; each is kept until its release, and not twice."""
        opened = ReleaseLedger.open(path, "leave-one-out")
        for query, table in zip(opened.queries, TABLES, strict=True):
            assert query.values is not None
            assert query.hashes is not None
            assert (query.values == in_order(opened, table)).all()
            assert (query.hashes == in_order(opened, opened.unit_hashes(UNITS))).all()
            assert query.table is None
        assert path.stat().st_mode & 0o777 == 0o600
        assert not any(unit.encode() in path.read_bytes() for unit in UNITS)
        entries = [
            replace(release(opened, name, table=table), query=query.digest)
            for name, table, query in zip(("mean", "sum"), TABLES, opened.queries, strict=True)
        ]
        forgotten = replace(opened, queries=tuple(replace(each, hashes=None, values=None) for each in opened.queries))
        given = forgotten._with(entries[1], TABLES)
        begun = opened.append(entries[1])
        assert begun.reserve == given.reserve == pytest.approx(largest_reserve(np.hstack(TABLES), 0.2), rel=1e-8)
        assert begun.queries == given.queries
        assert [each.values is None for each in begun.queries] == [False, True]
        assert all(each.table and (each.hashes is None) == (each.values is None) for each in begun.queries)
        opened_again = ReleaseLedger.open(path, "leave-one-out")
        both = opened_again.append(entries[0])
        assert [entry.declared for entry in both.releases] == [True, True]
        assert all(each.values is None and each.hashes is None for each in both.queries)
        for ledger in (begun, opened_again, both):  # whichever of them are released
            assert ledger.declared_table is not None
            assert (np.asarray(ledger.declared_table) == in_order(opened, np.hstack(TABLES))).all()
        assert replace(begun, queries=forgotten.queries).declared_table is None  # as in an older ledger
        assert content(ReleaseLedger.open(path, "leave-one-out")) == content(both)

    def test_other_units_and_other_values(self, path, declared) -> None:
        hashes = declared.unit_hashes(UNITS)
        mean = replace(release(declared, "mean", table=TABLES[0]), query=declared.queries[0].digest)
        for units, table in (
            (UNITS[1:], TABLES[0][1:]),
            ([*UNITS[1:], "new"], TABLES[0]),
            ([*UNITS, "new"], np.vstack([TABLES[0], TABLES[0][:1]])),
        ):
            with refused(OTHER_UNITS.format(path)):
                declared.append(replace(mean, hashes=declared.unit_hashes(units), table=table))
        with pytest.raises(ValueError, match=r"^the values of this declared query are not those that .* counted befo"):
            declared.append(replace(mean, table=np.nextafter(TABLES[0], 9)))
        assert ReleaseLedger.open(path, "leave-one-out").releases == ()
        order = np.random.default_rng(1).permutation(12)
        ledger = declared.append(replace(mean, hashes=hashes[order], table=TABLES[0][order]))
        assert ledger.releases[0].declared

    @pytest.mark.parametrize(
        ("table", "n_units", "line"),
        [
            (np.full((12, 1), np.nan), 12, FINITE),
            (np.ones((11, 1)), 12, "the table must have shape (12, d), d >= 1; got (11, 1)"),
            (np.ones((12, 0)), 12, "the table must have shape (12, d), d >= 1; got (12, 0)"),
            (np.ones((1, 1)), 1, "hashes must have shape (n, 16), n >= 2; got (1, 16)"),
        ],
    )  # fmt: skip
    @pytest.mark.usefixtures("as_users_run_it")
    def test_what_cannot_be_kept(self, path, table, n_units, line) -> None:
        ledger = ReleaseLedger.create(path, "leave-one-out", 0.2, KEY)
        before = path.read_bytes()
        with refused(line):
            ledger.declare(MEAN, "today", table, ledger.unit_hashes(UNITS)[:n_units])
        assert path.read_bytes() == before

    def test_it_counts_as_numbers_of_the_file(self, path, monkeypatch) -> None:
        """24 of the table, and 24 of the hashes."""
        ledger = ReleaseLedger.create(path, "leave-one-out", 0.2, KEY)
        monkeypatch.setattr(budgeted, "MOST_NUMBERS", 60)
        hashes = ledger.unit_hashes(UNITS)
        ledger = ledger.declare(MEAN, "today", VALUES, hashes)
        with refused(f"{path} would hold 96 numbers, allowed are 60: release fewer columns, or start another ledger"):
            ledger.declare(SUM, "today", VALUES, hashes)
        assert len(ReleaseLedger.open(path, "leave-one-out").queries) == 1


@pytest.mark.parametrize("design", ["leave-one-out", "dp"])
def test_it_remembers_what_was_asked_for_and_whether_its_key_is_a_secret(path, design) -> None:
    values = {"leave-one-out": {"table": VALUES / 300}, "dp": {"mu": 0.1}}[design]
    ledger = ReleaseLedger.create(path, design, 0.2, KEY, is_insecure=True)
    ledger = ledger.append(release(ledger, "mean", **values))
    ledger.append(release(ledger, "sum", **values)).published(1)
    again = ReleaseLedger.open(path, design)
    assert again.is_insecure is True
    assert again.key not in repr(again).encode()
    assert KEY.hex() not in repr(again)
    assert ReleaseLedger.create(path.with_name("another"), design, 0.2).is_insecure is False


class TestDamage:
    def test_no_flipped_bit_gives_another_number(self, path, declared) -> None:
        check_flips(path, 200, seed=3)

    def test_wrong_types_are_one_line(self, path, declared) -> None:
        assert check_mutations(path, 150) > 0.7

    @pytest.mark.parametrize(
        ("place", "wrong", "line"),
        [
            (("insecure",), 0, "insecure: Input should be a valid boolean"),
            (("insecure",), ..., "insecure: Field required"),
            (("queries", 0, "kept"), [12], "queries[0].kept must be a number of units, one of columns"),
            (("queries", 0, "kept"), [12, 0, 12], "queries[0].kept[1]: Input should be greater"),
            (("queries", 0, "kept"), [10**15, 2, 12], "queries[0].units must be 1,000,000,000,000,000 x 16 numbers"),
            (("queries", 0, "kept"), [12, 10**12, 12], "queries[0].values must be 12 x 1,000,000,000,000 numbers"),
            (("queries", 0, "kept"), [], "queries[0] has values of no kept table"),
            (("queries", 0, "units"), None, "queries[0].kept must be a number of units, one of columns"),
            (("queries", 0, "values"), None, "queries[0].values must be 12 x 2 numbers in base 64"),
            (("queries", 0, "table"), "a" * 64, "queries must have a table after the first output under leave-one-out"),
            (("queries", 1, "values"), "AAAA", "queries[1].values must be 12 x 1 numbers in base 64"),
        ],
    )  # fmt: skip
    def test_the_line_names_what_is_wrong(self, path, declared, place, wrong, line) -> None:
        made = mutated(json.loads(path.read_text())["content"], place, wrong)
        found = opened_line(path, sealed(made), "leave-one-out")
        assert found.startswith(f"{path} {PLAIN}{line}"), found

    def test_values_that_no_ledger_writes(self, path, declared) -> None:
        kept = json.loads(path.read_text())["content"]
        values, units = kept["queries"][0]["values"], kept["queries"][0]["units"]
        for place, wrong, line in (
            (("queries", 0, "values"), "AAAAAAAA+H8" + values[11:], "queries[0].values must be finite, and no value a"),
            (("queries", 0, "units"), units[:64] * 4, "queries[0].units must be in order, each of them"),
        ):
            found = opened_line(path, sealed(mutated(kept, place, wrong)), "leave-one-out")
            assert PLAIN in found
            assert line in found
