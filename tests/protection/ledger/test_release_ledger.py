"""The ledger of releases on all the data: budgets, versions of a file, everything that it refuses, damaged files."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import os
import re
import tracemalloc
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from leakbound.files import private_file
from leakbound.noise import (
    GaussianNoise,
    LeftOut,
    calibrate_left_out,
    joint_advantage,
    largest_distance,
    largest_reserve,
)
from leakbound.protection.ledger import budget as budgeted
from leakbound.protection.ledger.budget import DESIGNS, Release
from leakbound.protection.ledger.budget import BudgetLedger as ReleaseLedger
from leakbound.protection.ledger.drawn import DrawnLedger as Ledger
from leakbound.protection.ledger.ledger import Query
from tests.protection.ledger.test_ledger import DRAW
from tests.protection.ledger.test_ledger_file import LONGEST, WRONG, mutated, places, seal, sealed

KEY = bytes(range(32))
UNITS = [f"person {number}" for number in range(12)]
VALUES = np.random.default_rng(4).lognormal(size=(12, 2))
ANOTHER = "a release of another design has no effect in its game and would count as nothing; start another ledger"
MEANWHILE = "another release was made meanwhile; the same command again counts this one beside it"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def refused(line: str) -> AbstractContextManager[object]:
    """The whole line."""
    return pytest.raises(ValueError, match=f"^{re.escape(line)}$")


def release(ledger: ReleaseLedger, name: str, units: list[str] = UNITS, **values: Any) -> Release:
    """A release under some name, by default of the mean of all columns."""
    design = {"scale": 2.0, "eta": 0.05, "noise_digest": digest("noise")}
    if ledger.design != "dp":
        design["hashes"] = ledger.unit_hashes(units)
    if ledger.design == "leave-one-out" and "table" not in values:
        design["table"] = VALUES[: len(units)] / 20
    content = {**design, **values}
    return Release(digest(name), date="2027-01-04", subject=digest("of " + name), release=digest(name), **content)


def in_order(ledger: ReleaseLedger, values: np.ndarray, units: list[str] = UNITS) -> np.ndarray:
    """Rows in the order of the hashes of their units."""
    return values[sorted(range(len(units)), key=lambda row: bytes(ledger.unit_hashes(units)[row]))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.json"


@pytest.fixture
def ledger(path: Path) -> ReleaseLedger:
    return ReleaseLedger.create(path, "leave-one-out", 0.1, KEY)


class TestFile:
    def test_it_remembers(self, path, ledger) -> None:
        ledger = ledger.declare(Query({"statistic": "mean"}, 0.05), "2027-01-03")
        mean = replace(release(ledger, "mean"), query=ledger.queries[0].digest)
        ledger = ledger.append(mean, [mean.table]).published(0)
        shuffled = np.random.default_rng(0).permutation(12)
        more = release(ledger, "more", [UNITS[row] for row in shuffled], table=VALUES[shuffled] / 1e3)
        ledger = ledger.append(more)
        again = ReleaseLedger.open(path, "leave-one-out")
        assert (again.digest, again.key, again.budget, again.promised) == (ledger.digest, KEY, 0.1, 0.1)
        assert again.reserve == ledger.reserve == largest_reserve(mean.table, 0.1)
        assert again.queries == ledger.queries
        assert (again.queries[0].digest, again.queries[0].date) == (mean.query, "2027-01-03")
        first, second = again.releases
        assert (first.declared, first.published, second.declared, second.published) == (True, True, False, False)
        assert (first.table == in_order(ledger, VALUES) / 20).all()
        assert (second.table == in_order(ledger, VALUES) / 1e3).all()
        assert first.hashes is second.hashes  # the same units are kept once
        for kept, made in ((first, mean), (second, more)):
            names = ("query", "eta", "date", "subject", "release", "noise_digest", "scale")
            assert all(getattr(kept, name) == getattr(made, name) for name in names)
        assert path.stat().st_mode & 0o777 == 0o600
        assert not any(unit.encode() in path.read_bytes() for unit in UNITS)
        assert not again.is_insecure

    def test_it_remembers_that_its_key_is_for_tests(self, path) -> None:
        ReleaseLedger.create(path, "dp", 0.1, KEY, is_insecure=True)
        assert ReleaseLedger.open(path, "dp").is_insecure

    def test_a_new_file_has_a_key_of_its_own(self, tmp_path) -> None:
        first, second = (ReleaseLedger.create(tmp_path / name, "dp", 0.1) for name in "ab")
        assert len(first.key) == len(second.key) == 32
        assert first.key != second.key
        assert first.generator("a").uniform() == ReleaseLedger.open(tmp_path / "a", "dp").generator("a").uniform()
        assert first.generator("a").uniform() != first.generator("b").uniform()

    @pytest.mark.parametrize("design", DESIGNS)
    def test_one_design_a_ledger(self, path, design) -> None:
        ReleaseLedger.create(path, design, 0.1)
        for other in DESIGNS:
            if other == design:
                assert ReleaseLedger.open(path, other).design == design
            else:
                with refused(f"{path} is a ledger of design {design}: {ANOTHER}"):
                    ReleaseLedger.open(path, other)

    def test_ledgers_of_half_draws_are_another_design(self, path) -> None:
        ledger = Ledger.create(path, DRAW, [])
        with refused(f"{path} is a ledger of design half: {ANOTHER}"):
            ReleaseLedger.open(path, "leave-one-out")
        private_file.write(path, {"format": "leakscope ledger 1"}, ledger.digest)
        with refused(f"{path} is a ledger of design half: {ANOTHER}"):
            ReleaseLedger.open(path, "dp")

    def test_and_they_refuse_this_one(self, path, ledger) -> None:
        with pytest.raises(ValueError, match="is no ledger of this version"):
            Ledger.open(path, "data")

    def test_bad_beginnings(self, path, ledger) -> None:
        with refused(f"{path} exists already: {MEANWHILE}"):
            ReleaseLedger.create(path, "dp", 0.1)
        for budget, line in ((0.5, "eta must be > 0 and < 0.5, the smaller prior; got 0.5"),
                             (0, "eta must be > 0 and < 0.5, the smaller prior; got 0")):  # fmt: skip
            with refused(line):
                ReleaseLedger.create(path.with_name("other"), "dp", budget)
        with refused("unknown design 'half'; known: leave-one-out, dp"):
            ReleaseLedger.create(path.with_name("other"), "half", 0.1)
        with refused("a key has 32 bytes, got 5"):
            ReleaseLedger.create(path.with_name("other"), "dp", 0.1, b"short")
        with refused(f"{path.with_name('none')} cannot be read: No such file or directory"):
            ReleaseLedger.open(path.with_name("none"), "dp")

    def test_two_owners_of_one_file(self, path, ledger) -> None:
        other = ReleaseLedger.open(path, "leave-one-out")
        ledger.append(release(ledger, "mean"))
        with refused(f"{path} was changed since it was opened: {MEANWHILE}"):
            other.append(release(other, "another"))
        path.chmod(0o640)
        with refused(f"{path} is open to others (mode 640); only its owner may read it: chmod 600"):
            ReleaseLedger.open(path, "leave-one-out")


class TestWhoIsLeftOut:
    def test_it_is_the_smallest_keyed_hash_whatever_the_order(self, ledger) -> None:
        names = [hashlib.blake2b(unit.encode(), digest_size=16).digest() for unit in UNITS]
        hashes = [hashlib.blake2b(name, key=KEY, person=b"left out", digest_size=16).digest() for name in names]
        chosen = UNITS[hashes.index(min(hashes))]
        rng = np.random.default_rng(0)
        for _ in range(20):
            order = rng.permutation(len(UNITS)).tolist()
            assert UNITS[order[ledger.left_out([UNITS[row] for row in order])]] == chosen
        without = [unit for unit in UNITS if unit != chosen]
        assert ledger.left_out([*without[:5], chosen]) == 5
        assert ledger.left_out(["only one"]) == 0
        assert ledger.left_out([chosen, chosen, *without]) == 0

    def test_every_unit_is_equally_likely(self, ledger) -> None:
        """Of 12 units under 6,000 keys; a chi-square test that a uniform choice fails once in 10,000."""
        rng = np.random.default_rng(1)
        chosen = [replace(ledger, key=rng.bytes(32)).left_out(UNITS) for _ in range(6000)]
        assert stats.chisquare(np.bincount(chosen, minlength=12)).pvalue > 1e-4

    def test_the_hashes_in_the_file_are_others(self, ledger) -> None:
        """Their order tells nothing of who is left out; names of any letters have some."""
        hashes = ledger.unit_hashes(UNITS)
        assert hashes.shape == (12, 16)
        assert len(np.unique(hashes, axis=0)) == 12
        least = [min(range(12), key=lambda row: bytes(table[row])) for table in
                 (replace(ledger, key=bytes([number] * 32)).unit_hashes(UNITS) for number in range(200))]  # fmt: skip
        chosen = [replace(ledger, key=bytes([number] * 32)).left_out(UNITS) for number in range(200)]
        assert 5 <= sum(a == b for a, b in zip(least, chosen, strict=True)) <= 32  # 17 expected; once in 1,000
        assert ledger.unit_hashes(["\ud800", "é", ""]).shape == (3, 16)
        names = np.array([list(hashlib.blake2b(unit.encode(), digest_size=16).digest()) for unit in UNITS], np.uint8)
        assert (ledger.unit_hashes(names) == hashes).all()
        assert ledger.left_out(names) == ledger.left_out(UNITS)

    def test_bad_units(self, ledger) -> None:
        with refused("3 units have 2 identifiers: every unit needs its own"):
            ledger.unit_hashes(["a", "b", "a"])
        with refused("there are no units, so none can be left out"):
            ledger.left_out([])


class TestDeclaration:
    def test_before_the_first_output_alone(self, path, ledger) -> None:
        query = Query({"statistic": "mean"}, 0.05)
        ledger = ledger.declare(query, "2027-01-03").declare(Query({"statistic": "sum"}, 0.02), "2027-01-03")
        with refused(f"the query was declared in {path} already"):
            ledger.declare(query, "2027-01-04")
        with refused("date: it must be a text of 1 to 100 printable letters"):
            ledger.declare(Query({"statistic": "median"}, 0.05), "")
        ledger = ledger.append(release(ledger, "first", table=VALUES / 80), [VALUES / 80, VALUES[:, :1] / 40])
        with refused(f"1 releases of {path} came before: a query is declared before the first output"):
            ledger.declare(Query({"statistic": "median"}, 0.05), "2027-01-04")

    def test_the_tables_of_all_are_counted(self, ledger) -> None:
        names, tables = ("mean", "sum"), [VALUES / 30, VALUES[:, :1] / 20]
        for name in names:
            ledger = ledger.declare(Query({"statistic": name}, 0.05), "2027-01-03")
        entries = [
            replace(release(ledger, name, table=table), query=query.digest)
            for name, table, query in zip(names, tables, ledger.queries, strict=True)
        ]
        with refused("at the first output the tables of all 2 declared queries are counted, got 0"):
            ledger.append(entries[1])
        ledger = ledger.append(entries[1], tables)  # in any order
        assert ledger.reserve == pytest.approx(largest_reserve(np.hstack(tables), 0.1), rel=1e-8)
        line = (
            f"the values of this declared query are not those that {ledger.path} counted before the first output: data "
            "or noise have changed; ask it with another eta, as a query that was not declared"
        )
        with refused(line):
            ledger.append(replace(entries[0], table=np.nextafter(tables[0], 9)))
        with refused(line):
            ledger.append(replace(entries[0], hashes=ledger.unit_hashes([*UNITS[1:], "new"])))
        order = np.random.default_rng(0).permutation(12)
        again = replace(entries[0], table=entries[0].table[order], hashes=entries[0].hashes[order])
        ledger = ledger.append(again)
        assert [entry.declared for entry in ledger.releases] == [True, True]
        assert ledger.spent() <= joint_advantage(np.hstack(tables)).advantage / 2 * (1 + 1e-12)
        # the second time on other data, it is one more query
        later = replace(entries[0], subject=digest("later"), release=digest("later"), table=tables[0] / 100)
        assert not ledger.append(later).releases[2].declared

    def test_tables_that_were_kept_with_the_declaration(self, path, ledger) -> None:
        """They are counted at the first output as if they were given then, and each is kept until it is released."""
        tables, order = [VALUES / 30, VALUES[:, :1] / 20], np.random.default_rng(1).permutation(12)
        hashes = ledger.unit_hashes(UNITS)
        for name, table in zip(("mean", "sum"), tables, strict=True):
            ledger = ledger.declare(Query({"statistic": name}, 0.05), "2027-01-03", table[order], hashes[order])
        ledger = ReleaseLedger.open(path, "leave-one-out")
        entry = replace(release(ledger, "sum", table=tables[1]), query=ledger.queries[1].digest)
        other = [*UNITS[1:], "new"]
        with refused(f"the data have other units than when the queries of {path} were declared: start another ledger"):
            ledger.append(release(ledger, "other", other))
        with pytest.raises(ValueError, match="are not those that"):
            ledger.append(replace(entry, table=tables[1] / 2))
        ledger.append(entry)
        ledger = ReleaseLedger.open(path, "leave-one-out")
        assert ledger.reserve == pytest.approx(largest_reserve(np.hstack(tables), 0.1), rel=1e-8)
        assert [query.values is None and query.hashes is None for query in ledger.queries] == [False, True]
        in_order = np.argsort([bytes(row) for row in hashes])
        np.testing.assert_array_equal(np.asarray(ledger.declared_table), np.hstack(tables)[in_order])
        ledger.append(replace(release(ledger, "mean", table=tables[0]), query=ledger.queries[0].digest))
        ledger = ReleaseLedger.open(path, "leave-one-out")
        assert [query.values is None and query.hashes is None for query in ledger.queries] == [True, True]
        np.testing.assert_array_equal(np.asarray(ledger.declared_table), np.hstack(tables)[in_order])
        with refused("a query is declared with a table under the design leave-one-out, and under no other"):
            ReleaseLedger.create(path.with_name("dp"), "dp", 0.1).declare(
                Query({"statistic": "mean"}, 0.05), "2027-01-03", tables[0], hashes
            )

    def test_what_they_need_together_is_said(self, path) -> None:
        ledger = ReleaseLedger.create(path, "leave-one-out", 0.05, KEY)
        for name in ("mean", "sum"):
            ledger = ledger.declare(Query({"statistic": name}, 0.05), "2027-01-03")
        table = VALUES / LeftOut(VALUES).values.std()
        scale = calibrate_left_out(table, 0.05).scale
        tables = [table / scale, table / scale]
        together = LeftOut(np.hstack(tables)).worst(GaussianNoise(1.0)).advantage / 2
        assert 0.05 < together < 0.0751
        eta = math.ceil(together * 1e4) / 1e4
        with refused(
            f"the declared queries together take {eta:g} of a budget of 0.05: start with budget = {eta:g}, "
            "or give "
            "them more noise"
        ):
            ledger.append(release(ledger, "mean", table=tables[0]), tables)
        larger = ReleaseLedger.create(path.with_name("larger"), "leave-one-out", eta, KEY)
        for query in ("mean", "sum"):
            larger = larger.declare(Query({"statistic": query}, 0.05), "2027-01-03")
        assert larger.append(replace(release(larger, "mean", table=tables[0]), query=larger.queries[0].digest), tables)

    @pytest.mark.parametrize("d", [1, 40])
    def test_noise_calibrated_for_the_whole_budget_fits(self, tmp_path, d) -> None:
        """With many columns the calibration uses a bound of one release that is below the mean over pairs."""
        values = np.random.default_rng(d).normal(size=(400, d))
        noise, units = calibrate_left_out(values, 0.05), [str(number) for number in range(400)]
        ledger = ReleaseLedger.create(tmp_path / "ledger", "leave-one-out", 0.05, KEY)
        ledger = ledger.append(release(ledger, "mean", units, table=values / noise.scale))
        assert ledger.spent() == pytest.approx(0.05, rel=1e-8)
        if d > 1:
            assert joint_advantage(values / noise.scale).advantage / 2 > 0.055
            assert ledger.reserve == 0
        with refused(
            "the whole budget was given to the first query: this one is refused; a next time, budget = 0.1 with eta = "
            "0.05 leaves room for more"
        ):
            ledger.append(release(ledger, "more", units, table=values / noise.scale))
        constant = release(ledger, "constant", units, table=np.ones((400, 1)))
        assert len(ledger.append(constant).releases) == 2  # it tells nobody from nobody


class TestBudget:
    def test_queries_that_were_not_declared(self, ledger) -> None:
        """One after the other, until the largest distance of them together is the reserve."""
        ledger = ledger.append(release(ledger, "first", table=VALUES / 80))
        reserve, shapes = ledger.reserve, np.random.default_rng(2).normal(size=(3, 12, 2))
        assert reserve is not None
        tables: list[np.ndarray] = []
        for number, shape in enumerate(shapes):
            entry = release(ledger, f"query {number}", table=shape)
            factor = ledger.noise_factor(entry)
            assert factor > 1
            with pytest.raises(ValueError, match=r"needs [\d.]+ times its noise to fit in what is left") as error:
                ledger.check(entry)
            said = float(re.findall(r"needs ([\d.]+) times", str(error.value))[0])
            assert factor <= said <= 1.011 * factor
            with pytest.raises(ValueError, match="times its noise"):
                ledger.append(replace(entry, table=shape / factor * 1.002))
            part = shape / factor / (1.5 if number < 2 else 1.0)  # the last one takes what is left
            ledger = ledger.append(replace(entry, table=part))
            tables.append(part)
            assert largest_distance(np.hstack(tables)) <= reserve
        assert largest_distance(np.hstack(tables)) == pytest.approx(reserve, rel=2e-3)
        assert ledger.spent() <= ledger.promised
        assert ledger.spent() == pytest.approx(joint_advantage(np.hstack([VALUES / 80, *tables])).advantage / 2)
        assert ReleaseLedger.open(ledger.path, ledger.design).spent() == ledger.spent()

    def test_nothing_is_left(self, ledger) -> None:
        ledger = ledger.append(release(ledger, "first", table=VALUES / 80))
        reserve = ledger.reserve
        assert reserve is not None
        ends = np.where(np.arange(12)[:, None] == 3, reserve * (1 - 1e-8), 0.0)
        ledger = ledger.append(release(ledger, "all", table=ends))
        with refused("nothing is left of the budget of 0.1 for queries that were not declared"):
            ledger.append(release(ledger, "one more", table=ends))
        # what is left is in the last digits alone
        others = np.where(np.arange(12)[:, None] == 4, 1e-5, 0.0)
        assert len(ledger.append(release(ledger, "of others", table=others)).releases) == 3

    def test_check_writes_nothing(self, path, ledger) -> None:
        before = path.read_bytes()
        ledger.check(release(ledger, "mean"))
        assert path.read_bytes() == before
        with refused(f"{path} has no reserve before the first output"):
            ledger.noise_factor(release(ledger, "mean"))
        assert ledger.spent() == 0

    def test_differential_privacy_adds_up_in_squares(self, path) -> None:
        ledger = ReleaseLedger.create(path, "dp", 0.1)
        most = 2 * stats.norm.ppf(0.6)
        for number in range(3):
            ledger = ledger.append(release(ledger, str(number), mu=most / 2))
        assert ledger.spent() == pytest.approx(stats.norm.cdf(most * math.sqrt(3) / 4) - 0.5)
        with refused(
            "mu 0.253 is left of the 0.507 of a budget of 0.1, and this release takes 0.5: it needs 1.98 times its "
            "noise"
        ):
            ledger.append(release(ledger, "too much", mu=0.5))
        ledger = ReleaseLedger.open(path, "dp").append(release(ledger, "last", mu=most / 2))
        assert ledger.spent() == pytest.approx(0.1, rel=1e-12)
        assert (ledger.difference(), ledger.reserve, ledger.promised) == (0, None, 0.1)
        with refused("nothing is left of the budget of 0.1"):
            ledger.append(release(ledger, "more", mu=0.1))


class TestVersions:
    def test_the_same_units_in_any_order_are_one_version(self, ledger) -> None:
        ledger = ledger.append(release(ledger, "first", table=VALUES / 80))
        ledger = ledger.append(release(ledger, "second", UNITS[::-1], table=VALUES[::-1] / 200))
        assert len(ledger.versions) == 1
        assert ledger.difference() == 0
        expected = joint_advantage(np.hstack([VALUES / 80, VALUES / 200])).advantage / 2
        assert ledger.spent() == pytest.approx(expected, rel=1e-12)

    def test_others_add_up_by_their_largest_distances(self, ledger) -> None:
        ledger = ledger.append(release(ledger, "first", table=VALUES / 80))
        units = [*UNITS[2:], "new", "newer", "newest"]
        values = np.random.default_rng(0).lognormal(size=(13, 1))
        parts = [VALUES / 60, values / 30, values**2 / 400]
        ledger = ledger.append(release(ledger, "1", table=parts[0]))
        ledger = ledger.append(release(ledger, "2", units, table=parts[1]))
        ledger = ledger.append(release(ledger, "3", units, table=parts[2]))
        of_new = largest_distance(np.hstack(parts[1:]))
        used = math.hypot(largest_distance(parts[0]), of_new)
        reserve = ledger.reserve
        assert reserve is not None
        assert used < reserve
        left = math.sqrt(reserve**2 - used**2)
        third = release(ledger, "4", ["a", "b"], table=np.array([[0.0], [left * 1.0001]]))
        with pytest.raises(ValueError, match=r"needs 1\.01 times its noise"):
            ledger.append(third)
        assert len(ledger.append(replace(third, table=third.table / 1.001)).versions) == 3
        expected = joint_advantage(np.hstack([VALUES / 80, parts[0]]), of_new).advantage / 2
        assert ledger.spent() == pytest.approx(expected, rel=1e-12)
        assert ledger.spent() < ledger.promised

    @pytest.mark.slow
    def test_the_left_out_unit_differs_that_often(self, tmp_path) -> None:
        """Three versions under 4,000 keys: the frequency within 4 standard errors."""
        versions = [UNITS, UNITS[1:], [*UNITS[1:11], "new"]]
        ledger = ReleaseLedger.create(tmp_path / "ledger", "leave-one-out", 0.1, KEY)
        for number, units in enumerate(versions):
            ledger = ledger.append(release(ledger, str(number), units, table=np.arange(len(units))[:, None] / 1e3))
        expected = 1 - 10 / 13
        assert ledger.difference() == pytest.approx(expected)
        rng, n_different = np.random.default_rng(0), 0
        for _ in range(4000):
            other = replace(ledger, key=rng.bytes(32))
            n_different += len({units[other.left_out(units)] for units in versions}) > 1
        assert abs(n_different / 4000 - expected) <= 4 * math.sqrt(expected * (1 - expected) / 4000)


class TestProtocol:
    def test_the_same_query_has_the_same_place(self, ledger) -> None:
        mean = release(ledger, "mean", table=VALUES / 80)
        assert ledger.place_of(mean.query, mean.subject) == 0
        ledger = ledger.append(mean)
        assert ledger.place_of(mean.query, mean.subject) == 0  # before and after it is published
        ledger = ledger.published(0)
        assert ledger.published(0) is ledger
        assert ledger.place_of(mean.query, mean.subject) == 0
        assert ledger.place_of(mean.query, digest("other data")) == 1
        with refused(f"{ledger.path} holds this release already, as release 1"):
            ledger.append(mean)
        with refused(
            f"{ledger.path} holds this query as release 1 with another value, which was computed on another machine or "
            "by other versions: a second release of it would show both"
        ):
            ledger.append(replace(mean, release=digest("other bits")))

    def test_copies_that_went_on_differently_have_other_entries(self, ledger) -> None:
        ledger = ledger.append(release(ledger, "first", table=VALUES / 80))
        copies = [replace(ledger, path=ledger.path.with_name(f"copy {number}")) for number in range(2)]
        for copy in copies:
            copy.path.write_bytes(ledger.path.read_bytes())
            copy.path.chmod(0o600)
        first, second = (
            copy.append(release(copy, f"query {number}", table=VALUES / 500)) for number, copy in enumerate(copies)
        )
        assert first.entry_digest(0) == second.entry_digest(0) == ledger.entry_digest(0)
        assert first.entry_digest(1) != second.entry_digest(1)
        entry = f"entry 2 {digest('query 0')}".encode()
        assert first.entry_digest(1) == hmac.new(KEY, entry, "sha256").hexdigest()

    @pytest.mark.parametrize(
        ("design", "changed", "line"),
        [
            ("leave-one-out", {"table": None}, "a release has a table under the design leave-one-out, and under no"),
            ("leave-one-out", {"mu": 0.1}, "a release has mu under the design dp, and under no other"),
            ("leave-one-out", {"hashes": None}, "a release needs the hashes of its units under the design leave-one"),
            ("leave-one-out", {"table": np.ones((11, 1))}, r"the table must have shape \(12, d\), d >= 1; got \(11, "),
            ("leave-one-out", {"table": np.ones((12, 0))}, r"the table must have shape \(12, d\), d >= 1; got \(12, "),
            ("leave-one-out", {"table": np.full((12, 1), np.nan)}, r"the table must be finite, and no value above 1"),
            ("leave-one-out", {"table": np.full((12, 1), 1e141)}, r"the table must be finite, and no value above 1"),
            ("leave-one-out", {"hashes": np.zeros((12, 16), np.uint8)}, "a unit occurs twice"),
            ("leave-one-out", {"hashes": np.zeros((1, 16), np.uint8)}, r"hashes must have shape \(n, 16\), n >= 2; "),
            ("dp", {"mu": 0.0}, "mu must be > 0, got 0"),
            ("dp", {"mu": math.inf}, "mu must be finite, got inf"),
            ("dp", {"mu": math.nan}, "mu must be finite, got nan"),
            ("dp", {"mu": np.ones(12)}, "mu must be a number, got array"),
            ("dp", {"hashes": np.zeros((1, 16), np.uint8)}, "a release has no hashes of units under the design dp"),
        ],
    )
    @pytest.mark.usefixtures("as_users_run_it")
    def test_bad_releases(self, path, design, changed, line) -> None:
        ledger = ReleaseLedger.create(path, design, 0.1)
        values: dict[str, Any] = {"leave-one-out": {}, "dp": {"mu": 0.1}}[design]
        entry = release(ledger, "mean", **{**values, **changed})
        with pytest.raises(ValueError, match=f"^{line}") as error:
            ledger.append(entry)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("changed", "line"),
        [
            ({"query": "mean"}, "query: String should match pattern '^[0-9a-f]{64}$'"),
            ({"release": "A" * 64}, "release: String should match pattern '^[0-9a-f]{64}$'"),
            ({"noise_digest": ""}, "noise: String should match pattern '^[0-9a-f]{64}$'"),
            ({"date": "\n"}, "date: it must be a text of 1 to 100 printable letters"),
            ({"scale": 0.0}, "scale: Input should be greater than 0"),
            ({"scale": math.inf}, "scale: Input should be a finite number"),
            ({"eta": math.nan}, "eta: Input should be a finite number"),
        ],
    )
    def test_bad_fields(self, ledger, changed, line) -> None:
        with refused(line):
            replace(release(ledger, "mean"), **changed)

    @pytest.mark.usefixtures("as_users_run_it")
    def test_a_declared_table_of_other_rows(self, ledger) -> None:
        ledger = ledger.declare(Query({"statistic": "mean"}, 0.05), "2027-01-03")
        with refused("declared table 1 must have shape (12, d), d >= 1; got (11, 2)"):
            ledger.append(release(ledger, "mean"), [VALUES[:11]])

    def test_tables_that_no_file_holds(self, path, ledger, monkeypatch) -> None:
        monkeypatch.setattr(budgeted, "MOST_NUMBERS", 100)
        ledger = ledger.append(release(ledger, "first", table=VALUES / 80))  # 24, and 24 of hashes
        ledger = ledger.append(release(ledger, "second", table=VALUES / 1e3))
        with refused(f"{path} would hold 108 numbers, allowed are 100: release fewer columns, or start another ledger"):
            ledger.append(release(ledger, "third", table=np.hstack([VALUES, VALUES[:, :1]]) / 1e4))


# ---------------------------------------------------------------------------------------------------------------------
# Damaged files, and made up ones


def content(ledger: ReleaseLedger) -> str:
    return json.dumps(ledger.content, sort_keys=True, default=in_base_64)


def in_base_64(array: np.ndarray) -> str:
    """As a ledger writes an array."""
    return base64.b64encode(array.tobytes()).decode()


@pytest.fixture(params=[*DESIGNS, "declared alone"])
def written(request, path) -> Path:
    """A ledger of each design with a declared query and three releases, of two versions; or before the first output."""
    if request.param == "declared alone":
        ledger = ReleaseLedger.create(path, "leave-one-out", 0.2, KEY)
        for name, table in (("mean", VALUES / 60), ("sum", VALUES[:, :1] / 90)):
            ledger = ledger.declare(Query({"statistic": name}, 0.05), "today", table, ledger.unit_hashes(UNITS))
        return path
    ledger = ReleaseLedger.create(path, request.param, 0.2, KEY).declare(Query({"statistic": "mean"}, 0.05), "today")
    names = ("first", "second", "third")
    if request.param == "dp":
        entries = [release(ledger, name, mu=0.1) for name in names]
    else:
        tables = [(UNITS, VALUES / 60), (UNITS[1:], VALUES[1:] / 300), (UNITS, VALUES[:, :1] / 300)]
        entries = [
            release(ledger, name, units, table=table) for name, (units, table) in zip(names, tables, strict=True)
        ]
    entries[0] = replace(entries[0], query=ledger.queries[0].digest)
    for number, entry in enumerate(entries):
        ledger = ledger.append(entry, [] if number or request.param != "leave-one-out" else [entry.table])
    ledger.published(0)
    return path


def design_of(path: Path) -> str:
    return str(path.read_bytes().split(b'"design":"')[1].split(b'"')[0], "ascii")


def opened_line(path: Path, text: bytes, design: str) -> str:
    """Write a text, open it: the line of the refusal, or nothing."""
    path.write_bytes(text)
    line = ""
    try:
        ReleaseLedger.open(path, design)
    except ValueError as error:
        line = str(error)
    assert "\n" not in line
    assert line.isprintable()
    assert len(line) - len(str(path)) <= LONGEST
    return line


def check_flips(path: Path, n_flips: int, seed: int) -> None:
    """One random bit at a time: every one is noticed."""
    whole, design = path.read_bytes(), design_of(path)
    for bit in np.random.default_rng(seed).integers(8 * len(whole), size=n_flips).tolist():
        text = bytearray(whole)
        text[bit // 8] ^= 1 << (bit % 8)
        assert opened_line(path, bytes(text), design).startswith(f"{path} is damaged: ")


@pytest.mark.by_day("dp")
def test_no_flipped_bit_gives_another_number(written) -> None:
    check_flips(written, 200, seed=0)


@pytest.mark.nightly
def test_thousands_of_flipped_bits(written) -> None:
    check_flips(written, 4000, seed=1)


def test_neither_does_a_missing_part(written) -> None:
    whole, design = written.read_bytes(), design_of(written)
    for start, end in np.sort(np.random.default_rng(2).integers(len(whole), size=(60, 2)), axis=1).tolist():
        text = whole[:start] + whole[end:]
        assert text == whole or opened_line(written, text, design)


def of_this_version(content: dict[str, Any]) -> dict[str, Any]:
    """With what a file of an earlier version has not (it knows nobody), without what no design asks for any more."""
    releases = [{"knows_people": False, **release, "statistic": ""} for release in content["releases"]]
    return {"people": {"identifiers": [], "contents": []}, **content, "releases": releases}


def check_mutations(path: Path, n_mutations: int) -> float:
    """With a digest that fits: a line, or a ledger whose content is the one that was written; which part is refused."""
    kept, design = json.loads(path.read_text())["content"], design_of(path)
    cases = [(place, wrong) for place in places(kept) for wrong in [*WRONG, ...]]
    chosen = np.random.default_rng(0).permutation(len(cases))[:n_mutations].tolist()
    n_refused = 0
    for number in chosen:
        place, wrong = cases[number]
        made = mutated(kept, place, wrong)
        line = opened_line(path, sealed(made), design)
        if line:
            n_refused += 1
            assert line.startswith(str(path))
        else:
            assert json.loads(content(ReleaseLedger.open(path, design))) == of_this_version(made), place
    return n_refused / len(chosen)


@pytest.mark.slow
def test_wrong_types_are_one_line(written) -> None:
    tracemalloc.start()
    assert check_mutations(written, 300) > 0.8
    assert tracemalloc.get_traced_memory()[1] < 30e6
    tracemalloc.stop()


@pytest.mark.nightly
def test_all_wrong_types_at_all_places(written) -> None:
    assert check_mutations(written, 10**6) > 0.8


def test_a_few_wrong_types(written) -> None:
    assert check_mutations(written, 40) > 0.7


PLAIN = "is no ledger of this version: "


@pytest.mark.by_day(
    "place0-wrong0-is damaged: not the JSON that was written-leave-one-out",
    "place6-None-line6-leave-one-out",
)
@pytest.mark.parametrize("written", ["leave-one-out"], indirect=True)
@pytest.mark.parametrize(
    ("place", "wrong", "line"),
    [
        ((), [], "is damaged: not the JSON that was written"),
        (("format",), "leakscope ledger 3", PLAIN + "format: Input should be 'leakscope ledger 4'"),
        (("key",), "ab", PLAIN + "key: String should match pattern '^[0-9a-f]{64}$'"),
        (("design",), "half", PLAIN + "design: Input should be 'leave-one-out', 'dp' or 'per-instance'"),
        (("budget",), 0.5, PLAIN + "budget: Input should be less than 0.5"),
        (("budget",), 0, PLAIN + "budget: Input should be greater than 0"),
        (("reserve",), None, PLAIN + "reserve must be there after the first output under leave-one-out, and else not"),
        (("reserve",), 3.0, PLAIN + "reserve is more than the budget"),
        (("reserve",), -1e-9, PLAIN + "reserve: Input should be greater than or equal to 0"),
        (("queries",), {}, PLAIN + "queries: Input should be a valid list"),
        (("queries", 0, "table"), None, PLAIN + "queries must have a table after the first output under leave-one-out"),
        (("queries", 0, "table"), "a" * 64, PLAIN + "releases[0].values are not those that were declared"),
        (("queries", 0, "date"), "x" * 101, PLAIN + "queries[0].date: it must be a text of 1 to 100 printable letters"),
        (("versions", 0, "n"), 10**15, PLAIN + "versions[0].units must be 1,000,000,000,000,000 x 16 numbers"),
        (("versions", 1, "n"), 12, PLAIN + "versions[1].units must be 12 x 16 numbers in base 64"),
        (("versions", 1), ..., PLAIN + "releases[1].version is 1, of 1"),
        (("releases", 1), ..., PLAIN + "versions must be in the order of their first release, and have one"),
        (("releases", 1, "d"), 10**12, PLAIN + "releases[1].values must be 11 x 1,000,000,000,000 numbers in base 64"),
        (("releases", 1, "rows"), 10, PLAIN + "releases[1] has 10 rows for 11 units, and does not say which one each"),
        (("releases", 1, "which"), "AAAA", PLAIN + "releases[1].which must be 11 numbers in base 64"),
        (("releases", 1, "which"), "A" * 59 + "=", PLAIN + "releases[1].which must name all of 11 rows and no others"),
        (("releases", 1, "version"), 2, PLAIN + "releases[1].version is 2, of 2"),
        (("releases", 1, "version"), None, PLAIN + "releases[1].version must be nothing under the design dp"),
        (("releases", 1, "scale"), True, PLAIN + "releases[1].scale: Input should be a valid number"),
        (("releases", 1, "declared"), True, PLAIN + "releases[1].declared is wrong"),
        (("releases", 0, "declared"), False, PLAIN + "releases[0].declared is wrong"),
        (("releases", 0, "published"), 1, PLAIN + "releases[0].published: Input should be a valid boolean"),
        (("releases", 0, "values"), ..., PLAIN + "releases[0].values: Field required"),
        (("releases", 0, "more"), 1, PLAIN + "releases[0]: Extra inputs are not permitted"),
    ],
)  # fmt: skip
def test_the_line_names_what_is_wrong(written, place, wrong, line) -> None:
    made = mutated(json.loads(written.read_text())["content"], place, wrong)
    assert opened_line(written, sealed(made), "leave-one-out").startswith(f"{written} {line}")


@pytest.mark.parametrize("written", ["leave-one-out"], indirect=True)
def test_units_and_values_that_no_ledger_writes(written) -> None:
    kept = json.loads(written.read_text())["content"]
    first = kept["versions"][0]["units"]
    doubled = [*kept["versions"], kept["versions"][0]]
    twice = [kept["releases"][0], kept["releases"][0]]
    for place, wrong, line in (
        (("versions",), doubled, "versions[2] is there twice"),
        (("versions", 0, "units"), first[4:] + first[:4], "versions[0].units must be in order, each of them once"),
        (("versions", 0, "units"), "!" * len(first), "versions[0].units must be in base 64"),
        (("releases",), twice, "a release is there twice"),
        (("queries",), kept["queries"] * 2, "a query is declared twice"),
    ):
        line = f"{written} is no ledger of this version: {line}"
        assert opened_line(written, sealed(mutated(kept, place, wrong)), "leave-one-out") == line
    not_a_number = {"values": "AAAAAAAA+H8" + kept["releases"][2]["values"][11:]}
    made = mutated(kept, ("releases", 2), {**kept["releases"][2], **not_a_number})
    line = "is no ledger of this version: releases[2]: the table must be finite"
    assert opened_line(written, sealed(made), "leave-one-out").startswith(f"{written} {line}")


@pytest.mark.parametrize("written", ["declared alone"], indirect=True)
@pytest.mark.parametrize(
    ("place", "wrong", "line"),
    [
        (("queries", 0, "kept"), [12], "queries[0].kept must be a number of units, one of columns, and one of rows"),
        (("queries", 0, "kept"), [12, 2, 3], "queries[0] has 3 rows for 12 units, and does not say which one each has"),
        (
            ("queries", 0, "kept"),
            [10**15, 2, 2],
            "queries[0].units must be 1,000,000,000,000,000 x 16 numbers in base 64",
        ),
        (
            ("queries", 0, "kept"),
            [12, 10**15, 12],
            "queries[0].values must be 12 x 1,000,000,000,000,000 numbers in base",
        ),
        (("queries", 0, "kept"), [], "queries[0] has values of no kept table"),
        (("queries", 1, "units"), "A" * 256, "queries[1].units must be in order, each of them once"),
        (("design",), "dp", "queries must keep values under leave-one-out, and else none"),
    ],
)
def test_the_line_names_what_is_wrong_with_a_kept_table(written, place, wrong, line) -> None:
    made = mutated(json.loads(written.read_text())["content"], place, wrong)
    assert opened_line(written, sealed(made), "leave-one-out").startswith(f"{written} {PLAIN}{line}")


@pytest.mark.parametrize("text", [b"", b"null", b"[" * 100_000, sealed({"a": float("nan")}), seal(b'{"a":1,"a":1}')])
def test_what_is_no_ledger_at_all(path, ledger, text) -> None:
    assert opened_line(path, text, "leave-one-out").startswith(f"{path} is damaged: ")


def test_what_is_no_regular_file_is_refused(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ValueError, match=r"pipe cannot be read: it is not a regular file$"):
        ReleaseLedger.open(tmp_path / "pipe", "dp")
