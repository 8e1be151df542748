"""A private record of all releases from a source of data under one design, and what they promise together.

One person is left out for the life of the data: the unit whose identifier has the smallest keyed hash. It is the same
for another order, format or choice of columns, and for every version of the file that holds it and nobody with a
smaller hash. The file holds the key of these hashes and of the noise, and the leave-one-out values of every release: it
is for its owner alone, and never part of a certificate.

The joint promise is a budget that is fixed before the first output. What a release takes of it is counted *before* its
value is published, whatever it was chosen from. Two copies of a ledger can still spend the budget twice, with different
queries; `Ledger.entry_digest` then differs between their certificates.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, final, get_args

import numpy as np
from jaxtyping import Num, UInt8
from scipy.special import ndtr, ndtri

from leakbound.core.checks import gain_over_prior, one_of, positive
from leakbound.core.numerics import bisect
from leakbound.core.repeated_rows import RepeatedRows, Table, rows_of, side_by_side, taken, with_rows
from leakbound.noise.gaussian import GaussianNoise
from leakbound.noise.left_out import LeftOut
from leakbound.noise.left_out_joint import LARGEST_VALUE, joint_advantage, largest_distance, largest_reserve
from leakbound.plans.promises import NAME_OF
from leakbound.protection.ledger.hashes import check_hashes, order_of, place_in, units_of, words_of
from leakbound.protection.ledger.keyed import (
    KEY_BYTES,
    NAME_BYTES,
    KeyedGenerator,
    canonical_digest,
    keyed_hashes,
    new_key,
    text_names,
)
from leakbound.protection.ledger.ledger import Ledger, OtherRelease, Query, read
from leakbound.protection.ledger.people import IDENTIFIERS, RECORDS, Overlap, People, PeopleNames, overlap_of
from leakbound.protection.ledger.schema import (
    FORMAT_OF_BUDGET,
    FORMATS_OF_DRAWS,
    BudgetRow,
    Design,
    QueryHead,
    QueryRow,
    ReleaseHead,
    ReleaseRow,
    checked,
    decoded,
)

Array = np.ndarray
DESIGNS = get_args(Design)
RETIRED = ("per-instance",)
MOST_NUMBERS = 2**26  # float64 in all tables and hashes together: 716 MB in base 64, below the limit of a private file
# A table is multiplied and divided on its way here: noise that was calibrated for the whole budget must not be refused
# because of the last bits.
_ROUNDING = 1e-9
_NO_ROOM = 1000.0  # times as much noise is no way to fit in
_FACTOR_PRECISION = 1e-3
_OTHER_DESIGN = "a release of another design has no effect in its game and would count as nothing; start another ledger"


@final
@dataclass(frozen=True)
class DeclaredQuery:
    """A query that was declared before the first output."""

    digest: str
    eta: float
    date: str
    # digest of the table that was counted; None before the first output, and in designs without tables
    table: str | None = None
    hashes: UInt8[Array, "n 16"] | None = field(default=None, repr=False, compare=False)
    values: Table | None = field(default=None, repr=False, compare=False)


@final
@dataclass(frozen=True, eq=False)
class Release:
    """One release, with what is counted of it."""

    query: str
    eta: float
    date: str
    subject: str
    release: str
    noise_digest: str
    scale: float
    hashes: UInt8[Array, "n 16"] | None = field(default=None, repr=False)
    table: Num[Array, "n d"] | RepeatedRows | None = field(default=None, repr=False)
    mu: float | None = field(default=None, repr=False)
    declared: bool = False
    published: bool = False
    # in other ledgers of these people at that time: the certificate stays the same
    others: tuple[OtherRelease, ...] = ()
    knows_people: bool = False  # another ledger was known to hold its people, and the owner allowed it
    # not written: digest of units and values in the order of the hashes; total variation by which the table alone
    # tells a unit; whether undeclared releases may follow, if it is the first output
    content: str = field(default="", repr=False)
    advantage: float | None = field(default=None, repr=False)
    leaves_reserve: bool = field(default=True, repr=False)

    def __post_init__(self) -> None:
        checked(ReleaseHead, self.head)
        object.__setattr__(self, "eta", float(self.eta))
        object.__setattr__(self, "scale", float(self.scale))

    @property
    def head(self) -> dict[str, Any]:
        """What the file keeps of it, but for what is counted."""
        return {
            "query": self.query,
            "eta": self.eta,
            "date": self.date,
            "subject": self.subject,
            "release": self.release,
            "noise": self.noise_digest,
            "scale": self.scale,
        }


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class BudgetLedger(Ledger):
    """A design, a budget, and the releases so far.

    **Leave one out.** At the first output the tables of all declared queries are counted, and what they leave of the
    budget becomes the reserve R: ``mean over j != x of F(sqrt(S_xj + R^2)) <= 2 budget`` for every unit x. A query that
    was not declared is accepted as long as the tables of all of these, side by side, have no two rows farther apart
    than R. So no pair of units can use more than its own budget ``B_xj^2 = S_xj + R^2``, however queries were chosen
    from outputs, and nobody tells the left-out unit of the first version, at even odds, more often than in ``1/2 +
    budget``.

    **Versions** of the file may have other units, and other units left out. Their largest distances add up in squares.
    To see that this is enough, exchange the hashes of two units x and j of the first version. Given that x is left out
    of it, that gives the distribution of the hashes given that j is left out of it. In any other version the unit that
    is left out stays the same or becomes another one of the same version, and two of its rows are no farther apart than
    the farthest. Declared tables are all of the first version. So given x and given j the releases together are at most
    B_xj apart, and the promise holds for the first version whatever versions came later, even if they were chosen from
    outputs. By the same exchange a unit of a later version of m units, chosen from no output, is told with at most
    ``1/2 + budget max(1, (1 - 1/n)/(1 - 1/m))``, n the units of the first version.

    **Differential privacy.** The squares of mu add up to at most ``(2 Phi^-1(1/2 + budget))^2``.

    **Retired designs.** A ledger of "per-instance" (all records, with declared noise) is read: its releases are
    named and its units are known, but what they tell is not added up, and no release is added.

    >>> import tempfile
    >>> ledger = BudgetLedger.create(Path(tempfile.mkdtemp()) / "ledger.json", "leave-one-out", budget=0.1)
    >>> wages = np.array([18.0, 20.0, 22.0, 25.0, 60.0])
    >>> means, names = (wages.sum() - wages[:, None]) / 4, ["Ada", "Ben", "Cy", "Di", "Eve"]
    >>> hashes, of = ledger.unit_hashes(names), {"eta": 0.05, "date": "2027-01-04", "noise_digest": "c" * 64}
    >>> first = Release("0" * 64, subject="0" * 64, release="0" * 64, scale=40.0, hashes=hashes, table=means / 40, **of)
    >>> ledger = ledger.append(first).published(0)
    >>> ledger.promised, round(ledger.spent(), 3), round(ledger.reserve, 3)
    (0.1, 0.048, 0.445)
    >>> more = Release("1" * 64, subject="1" * 64, release="1" * 64, scale=90.0, hashes=hashes, table=means / 90, **of)
    >>> len(ledger.append(more).releases), names[ledger.left_out(names)] in names
    (2, True)
    """

    budget: float
    queries: tuple[DeclaredQuery, ...] = ()
    reserve: float | None = None
    releases: tuple[Release, ...] = ()
    is_insecure: bool = False

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        design: str,
        budget: float,
        key: bytes | None = None,
        *,
        is_insecure: bool = False,
    ) -> BudgetLedger:
        """Make a new file, with a new key: see `begun`."""
        return cls.begun(path, design, budget, key, is_insecure=is_insecure).written()

    @classmethod
    def begun(
        cls,
        path: str | os.PathLike[str],
        design: str,
        budget: float,
        key: bytes | None = None,
        *,
        is_insecure: bool = False,
    ) -> BudgetLedger:
        """Begin a ledger with a new key, without a file: its first declaration or release makes the file."""
        one_of("design", design, DESIGNS)
        budget = gain_over_prior(budget, 0.5)
        key = new_key() if key is None else key
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, got {len(key)}")
        return cls(path=Path(path), design=design, budget=budget, key=key, is_insecure=is_insecure)

    @classmethod
    def open(cls, path: str | os.PathLike[str], design: str) -> BudgetLedger:
        """Read the ledger of a file, for releases of a design."""
        path, content, digest = read(path)
        if content.get("format") in FORMATS_OF_DRAWS:
            raise ValueError(f"{path} is a ledger of design half: {_OTHER_DESIGN}")
        ledger = cls.of_content(path, content, digest)
        if ledger.design != design:
            raise ValueError(f"{path} is a ledger of design {ledger.design}: {_OTHER_DESIGN}")
        return ledger

    @classmethod
    def of_content(cls, path: Path, content: Mapping[str, Any], digest: str) -> BudgetLedger:
        """Make the ledger of the content of its file, whatever its design."""
        try:
            return _decoded(path, checked(BudgetRow, content), digest)
        except ValueError as reason:
            raise ValueError(f"{path} is no ledger of this version: {reason}") from None

    @property
    def promised(self) -> float:
        """Accuracy above 1/2 of all releases together, fixed before the first output: the budget."""
        return self.budget

    @property
    def for_tests(self) -> bool:
        """Whether its key is from a seed that was given."""
        return self.is_insecure

    @property
    def state(self) -> str:
        """What it has spent of its budget."""
        if self.design in RETIRED:
            return f"which is of the retired design {self.design} (releases: {len(self.releases)})"
        spent, promise = self.spent(), NAME_OF[self.design]
        return f"which has spent {spent:.3g} of its budget of {self.budget:g} (promise {promise})"

    @property
    def versions(self) -> tuple[UInt8[Array, "_ 16"], ...]:
        """The sets of units of the releases, each once, in the order in which they were first released."""
        found: list[UInt8[Array, "n 16"]] = []
        for release in self.releases:
            if release.hashes is not None and place_in(found, release.hashes) is None:
                found.append(release.hashes)
        return tuple(found)

    @property
    def declared_table(self) -> Table | None:
        """The tables of all declared queries side by side; None where one is not kept, as in older ledgers."""
        tables: list[Table] = []
        for query in self.queries:
            released = [
                release.table for release in self.releases if release.declared and release.query == query.digest
            ]
            table = released[0] if released else query.values
            if table is None:
                return None
            tables.append(table)
        return side_by_side(tables)

    def left_out(self, units: Sequence[str] | UInt8[Array, "n 16"]) -> int:
        """Return the place of the unit that is left out: the one whose identifier has the smallest keyed hash.

        The key is random, so every unit of a file is equally likely. Which one it is depends on nothing but the set of
        the identifiers.
        """
        if len(units) == 0:
            raise ValueError("there are no units, so none can be left out")
        words = words_of(keyed_hashes(self.key, "left out", _named(units)))
        (smallest,) = np.nonzero(words[:, 0] == words[:, 0].min())
        return int(smallest[words[smallest, 1].argmin()])

    def unit_hashes(self, units: Sequence[str] | UInt8[Array, "n 16"]) -> UInt8[Array, "n 16"]:
        """Compute the hashes that take the place of identifiers in the ledger.

        They are not those by which `left_out` chooses: whose hash is the smallest of these tells nothing.
        """
        hashes = keyed_hashes(self.key, "unit", _named(units))
        n_different = len(units_of([hashes])[0])
        if n_different < len(units):
            raise ValueError(f"{len(units):,} units have {n_different:,} identifiers: every unit needs its own")
        return hashes

    def with_people(self, names: PeopleNames) -> BudgetLedger:
        """Add who is in the file of a release; nothing is written."""
        if self.design != "dp":  # whose units are in its versions
            names = PeopleNames(names.contents)
        return replace(self, people=self.people.joined(self.key, names))

    def overlaps(
        self, names: PeopleNames, units: UInt8[Array, "n 16"] | None = None, n_drawn: int | None = None
    ) -> list[Overlap]:
        """Compare the people of a file with those of this ledger, in its versions too."""
        units = names.identifiers if units is None else units
        found = [*super().overlaps(names, units, n_drawn)]
        by_content = names.identifiers is None  # needed for ledgers of older versions alone
        known = [*self.versions, *(query.hashes for query in self.queries if query.hashes is not None)]
        if units is None or not known or (by_content and self.people.contents):
            return found
        in_versions = units_of(known)[0]

        def n_known(names: UInt8[Array, "n 16"]) -> int:
            n_of_both = len(units_of([self.unit_hashes(names), in_versions])[0])
            return len(names) + len(in_versions) - n_of_both

        what = RECORDS if by_content else IDENTIFIERS
        return [*found, overlap_of(what, units, len(in_versions), n_known, n_drawn)]

    def generator(self, subject: str) -> KeyedGenerator:
        """Return the random numbers of a subject: the same for the same one, independent for others."""
        return KeyedGenerator(self.key, subject)

    def declare(
        self,
        query: Query,
        date: str,
        table: Num[Array, "n d"] | RepeatedRows | None = None,
        hashes: UInt8[Array, "n 16"] | None = None,
    ) -> BudgetLedger:
        """Add a query before the first output; the file is written before this returns."""
        if self.releases:
            raise ValueError(
                f"{len(self.releases)} releases of {self.path} came before: a query is declared before the first output"
            )
        if any(known.digest == query.digest for known in self.queries):
            raise ValueError(f"the query was declared in {self.path} already")
        head = checked(QueryHead, {"digest": query.digest, "eta": query.eta, "date": date})
        declared = DeclaredQuery(head.digest, head.eta, head.date)
        # kept until the first output, where all declared tables are counted; else append needs the table
        if table is not None and hashes is not None:
            if self.design != "leave-one-out":
                raise ValueError("a query is declared with a table under the design leave-one-out, and under no other")
            _check_table("the table", _as_table(table), check_hashes(hashes))
            order = order_of(hashes)
            values = taken(_as_table(table), order)
            declared = replace(declared, hashes=np.ascontiguousarray(hashes)[order], values=values)
        ledger = replace(self, queries=(*self.queries, declared))
        _check_size(ledger)
        return ledger.written()

    def place_of(self, query: str, subject: str) -> int:
        """Find the place of a release: that of an earlier one of the same query and subject, else the next."""
        for place, release in enumerate(self.releases):
            if (release.query, release.subject) == (query, subject):
                return place
        return len(self.releases)

    def check(self, release: Release, declared_tables: Sequence[Num[Array, "n _"] | RepeatedRows] = ()) -> BudgetLedger:
        """Check that a release can be appended; nothing is written."""
        return self._with(release, declared_tables)

    def completed(self, release: str) -> BudgetLedger:
        """Append the release that was checked; the file is written before this returns."""
        checked = replace(self.releases[-1], release=release)
        earlier = self.releases[:-1]
        replace(self, releases=earlier)._check_new(checked)
        return replace(self, releases=(*earlier, checked)).written()

    def append(
        self, release: Release, declared_tables: Sequence[Num[Array, "n _"] | RepeatedRows] = ()
    ) -> BudgetLedger:
        """Add a release; the file is written before this returns."""
        # at the first output under leave-one-out the whitened tables of all declared queries are counted, in order
        return self._with(release, declared_tables).written()

    def noise_factor(self, release: Release) -> float:
        """Compute how many times its noise must be as large for a release that was not declared to fit in."""
        _check_values(release, "leave-one-out")
        return self._factor(self._sharing(_in_order(release)[0]))

    def spent(self) -> float:
        """Compute what the releases so far tell, for the owner: it is no promise, since it depends on outputs."""
        if not self.releases:
            return 0.0
        if self.design == "dp":
            return _gain(self._used_mu)
        # releases of the first version count pair by pair, those of each other version by their largest distance
        first = self.releases[0].hashes
        if len(self.releases) == 1 and self.releases[0].advantage is not None:
            return self.releases[0].advantage / 2
        table = side_by_side([_table_of(each) for each in self.releases if each.hashes is first])
        if all(release.declared for release in self.releases):
            return _told_without_reserve(LeftOut(table)) / 2
        later = [release for release in self.releases if release.hashes is not first]
        return joint_advantage(table, _joint_distance(later)).advantage / 2

    def difference(self) -> float:
        """Compute how likely it is that not the same unit is left out of all versions.

        It is the same one exactly if the unit with the smallest hash of all that ever were in the file is in every
        version: then it is the smallest everywhere; and if it is missing in one, another one is left out there. That
        unit is uniform on the union, so the probability is ``1 - |units of all versions|/|units of any version|``, and
        at most the sum of those of successive versions. It takes nothing from the promise, which holds for every
        version; it tells how likely it is that two units were left out where one was meant.
        """
        # this supposes that nobody chose the versions from outputs
        versions = self.versions
        if len(versions) < 2:
            return 0.0
        units, count = units_of(versions)
        return 1.0 - int((count == len(versions)).sum()) / len(units)

    def _with(self, release: Release, declared_tables: Sequence[Num[Array, "n _"] | RepeatedRows]) -> BudgetLedger:
        """Return the ledger with one more release, not yet written."""
        self._check_new(release)
        _check_values(release, self.design)
        release, tables = _in_order(replace(release, declared=False, published=False), declared_tables)
        release, ledger = self._sharing(release), self
        if self.design == "leave-one-out":
            if self.releases:
                release = replace(release, declared=self._counted(release))
            elif self.queries:
                ledger, _ = self._started(release, tables)
                release = replace(release, declared=ledger._counted(release))
            else:  # the only one that is declared
                ledger, advantage = self._started(release, tables)
                release = replace(release, declared=True, advantage=advantage)
            ledger._check_room(release)
        elif self.design == "dp":
            self._check_mu(release)
        queries = ledger.queries
        if release.declared:  # its table is that of the release from now on
            queries = tuple(
                replace(query, hashes=None, values=None) if query.digest == release.query else query
                for query in queries
            )
        ledger = replace(ledger, queries=queries, releases=(*self.releases, release))
        _check_size(ledger)
        return ledger

    def _check_new(self, release: Release) -> None:
        for place, known in enumerate(self.releases):
            if known.release == release.release:
                raise ValueError(f"{self.path} holds this release already, as release {place + 1}")
            if (known.query, known.subject) == (release.query, release.subject):
                raise ValueError(
                    f"{self.path} holds this query as release {place + 1} with another value, which was computed on "
                    "another machine or by other versions: a second release of it would show both"
                )

    def _started(self, release: Release, declared_tables: Sequence[Table]) -> tuple[BudgetLedger, float | None]:
        """Count the declared queries, and fix the reserve; return also by how much they are told, where it decides."""
        queries, tables = self.queries, list(declared_tables)
        if not queries:
            queries = (DeclaredQuery(release.query, release.eta, release.date),)
            tables = tables or [_table_of(release)]
        if not tables:
            tables = self._declared_tables(release)
        if len(tables) != len(queries):
            raise ValueError(
                f"at the first output the tables of all {len(queries)} declared queries are counted, got {len(tables)}"
            )
        together = LeftOut(side_by_side(tables))
        reserve, advantage = 0.0, None
        if release.leaves_reserve:
            reserve = largest_reserve(together, self.budget)
        if reserve == 0:
            # Nothing else will be released, so the lesser of two bounds counts; noise was calibrated for that one.
            advantage = _told_without_reserve(together)
            told = advantage / 2
            if told > self.budget * (1 + _ROUNDING):
                raise ValueError(
                    f"the declared queries together take {_rounded_up(told):g} of a budget of {self.budget:g}: start "
                    f"with budget = {_rounded_up(told):g}, or give them more noise"
                )
        counted = zip(queries, tables, strict=True)
        queries = tuple(
            replace(
                query,
                table=_content_of(release) if table is release.table else content_digest(release.hashes, table),
                hashes=release.hashes,
                values=table,
            )
            for query, table in counted
        )
        return replace(self, queries=queries, reserve=reserve), advantage

    def _declared_tables(self, release: Release) -> list[Table]:
        """Return the tables that were kept when the queries were declared, if they are of the units of a release."""
        tables = []
        for query in self.queries:
            if query.values is None or query.hashes is None:
                return []
            if release.hashes is None or not np.array_equal(query.hashes, release.hashes):
                raise ValueError(
                    f"the data have other units than when the queries of {self.path} were declared: start another "
                    "ledger"
                )
            tables.append(query.values)
        return tables

    def _counted(self, release: Release) -> bool:
        """Tell whether a release was counted before the first output; it is so once."""
        declared = [query for query in self.queries if query.digest == release.query]
        if not declared or any(known.query == release.query for known in self.releases):
            return False
        if declared[0].table != _content_of(release):
            raise ValueError(
                f"the values of this declared query are not those that {self.path} counted before the first output: "
                "data or noise have changed; ask it with another eta, as a query that was not declared"
            )
        return True

    def _check_room(self, release: Release) -> None:
        if release.declared:
            return
        factor = self._factor(release)
        if factor <= 1:
            return
        only = self.queries[0]
        if len(self.queries) == 1 and only.eta >= self.budget:
            budget = 2 * self.budget if self.budget < 0.25 else self.budget
            raise ValueError(
                "the whole budget was given to the first query: this one is refused; a next time, "
                f"budget = {budget:g} with eta = {budget / 2:g} leaves room for more"
            )
        if factor > _NO_ROOM:
            raise ValueError(f"nothing is left of the budget of {self.budget:g} for queries that were not declared")
        raise ValueError(
            f"the query was not declared before the first output, and needs {_rounded_up(factor):g} times its noise to "
            f"fit in what is left of the budget of {self.budget:g}"
        )

    def _factor(self, release: Release) -> float:
        """Compute `noise_factor` of a release whose rows are in order."""
        reserve = self.reserve
        if reserve is None:
            raise ValueError(f"{self.path} has no reserve before the first output")
        undeclared = [known for known in self.releases if not known.declared]

        def fits(factor: float) -> bool:
            table = _table_of(release)
            weaker = replace(release, table=with_rows(table, rows_of(table) / factor))
            return _joint_distance([*undeclared, weaker]) <= reserve

        if fits(1.0):
            return 1.0
        left = math.sqrt(max(reserve**2 - _joint_distance(undeclared) ** 2, 0.0))
        alone = _joint_distance([release])
        if left * LARGEST_VALUE <= alone:
            return math.inf
        # the square of the largest distance of all together is at most the sum of those of its parts
        enough = alone / left * (1 + _ROUNDING)
        while not fits(enough):  # for rounding, or because a search of the largest distance was cut short
            enough *= 2
        return bisect(fits, enough, 1.0, rtol=_FACTOR_PRECISION, geometric=True)

    def _check_mu(self, release: Release) -> None:
        mu, most = release.mu or 0.0, _mu_of(self.budget)
        if math.hypot(self._used_mu, mu) <= most * (1 + _ROUNDING):
            return
        left = math.sqrt(max(most**2 - self._used_mu**2, 0.0))
        if left < mu / _NO_ROOM:
            raise ValueError(f"nothing is left of the budget of {self.budget:g}")
        raise ValueError(
            f"mu {left:.3g} is left of the {most:.3g} of a budget of {self.budget:g}, and this release takes {mu:.3g}: "
            f"it needs {_rounded_up(mu / left):g} times its noise"
        )

    @property
    def _used_mu(self) -> float:
        """Root of the sum of squares, under "dp"."""
        return math.hypot(*(release.mu or 0.0 for release in self.releases))

    def _sharing(self, release: Release) -> Release:
        """Let a release use the array of hashes of an earlier one with the same units."""
        if release.hashes is None:
            return release
        versions = self.versions
        place = place_in(versions, release.hashes)
        return release if place is None else replace(release, hashes=versions[place])

    @property
    def content(self) -> dict[str, Any]:
        """Plain JSON with arrays."""
        versions = self.versions
        return {
            "format": FORMAT_OF_BUDGET,
            "key": self.key.hex(),
            "insecure": self.is_insecure,
            "design": self.design,
            "budget": self.budget,
            "reserve": self.reserve,
            "people": self.people.content,
            "queries": [_content_of_query(query) for query in self.queries],
            "versions": [{"n": len(version), "units": version} for version in versions],
            "releases": [_content_of_release(release, versions) for release in self.releases],
        }


def _check_values(release: Release, design: str) -> None:
    """Check that a release has the values of its design and no others."""
    if (release.table is None) == (design == "leave-one-out"):
        raise ValueError("a release has a table under the design leave-one-out, and under no other")
    if (release.mu is None) == (design == "dp"):
        raise ValueError("a release has mu under the design dp, and under no other")
    if release.mu is not None:
        positive("mu", release.mu)
        if release.hashes is not None:
            raise ValueError("a release has no hashes of units under the design dp")
        return
    if release.hashes is None:
        raise ValueError(f"a release needs the hashes of its units under the design {design}")
    n = check_hashes(release.hashes)
    if release.table is not None:
        _check_table("the table", release.table, n)


def _check_table(name: str, table: Table, n: int) -> None:
    if table.ndim != 2 or len(table) != n or not table.shape[1]:
        raise ValueError(f"{name} must have shape ({n:,}, d), d >= 1; got {table.shape}")
    if not (np.abs(rows_of(table)) <= LARGEST_VALUE).all():
        raise ValueError(f"{name} must be finite, and no value above {LARGEST_VALUE:g}: a failure has no noise")


def _check_size(ledger: BudgetLedger) -> None:
    numbers = ledger.people.n_numbers + sum(_n_numbers(_values_of(release)) for release in ledger.releases)
    numbers += sum(version.size // 8 for version in ledger.versions)  # 8 bytes are a number
    numbers += sum(_n_numbers(query.values) for query in ledger.queries if query.values is not None)
    numbers += sum(query.hashes.size // 8 for query in ledger.queries if query.hashes is not None)
    if numbers > MOST_NUMBERS:
        raise ValueError(
            f"{ledger.path} would hold {numbers:,} numbers, allowed are {MOST_NUMBERS:,}: release fewer columns, or "
            "start another ledger"
        )


def _n_numbers(table: Table) -> int:
    """Return how many float64 a table takes in the file."""
    if isinstance(table, RepeatedRows):
        return table.rows.size + -(-len(table) // 2)  # a place has 4 bytes
    return table.size


def _in_order(
    release: Release, declared_tables: Sequence[Num[Array, "n _"] | RepeatedRows] = ()
) -> tuple[Release, list[Table]]:
    """Sort the rows of a release, and of tables that have the same rows, by the hashes of their units."""
    if release.hashes is None:
        return release, []
    hashes = np.ascontiguousarray(release.hashes)
    order = order_of(hashes)
    if not declared_tables and (order[1:] > order[:-1]).all():
        return release, []
    for place, table in enumerate(declared_tables):
        _check_table(f"declared table {place + 1}", _as_table(table), len(hashes))
    tables = [taken(_as_table(table), order) for table in declared_tables]
    return replace(release, hashes=hashes[order], table=taken(_table_of(release), order)), tables


def _named(units: Sequence[str] | UInt8[Array, "n 16"]) -> UInt8[Array, "n 16"]:
    """Return the names of units that are known by a text, or have a name already."""
    return units if isinstance(units, np.ndarray) else text_names(units)


def _as_table(table: Num[Array, "n d"] | RepeatedRows) -> Table:
    return table if isinstance(table, RepeatedRows) else np.asarray(table, dtype=float)


def _table_of(release: Release) -> Table:
    if release.table is None:
        raise ValueError("a release needs a table under the design leave-one-out")
    return _as_table(release.table)


def _values_of(release: Release) -> Table:
    """Return what the file keeps of a release, in rows."""
    if release.table is not None:
        return _as_table(release.table)
    return np.array([[release.mu or 0.0]])


def _joint_distance(releases: Sequence[Release]) -> float:
    """Compute how far apart releases can be for two units: side by side for the same units, else in sum of squares."""
    versions: list[UInt8[Array, "n 16"]] = []
    tables: list[list[Table]] = []
    for release in releases:
        place = None if release.hashes is None else place_in(versions, release.hashes)
        if place is not None:
            tables[place].append(_table_of(release))
        elif release.hashes is not None:
            versions.append(release.hashes)
            tables.append([_table_of(release)])
    return math.hypot(*(largest_distance(side_by_side(of_version)) for of_version in tables))


def _told_without_reserve(together: LeftOut) -> float:
    """Bound the total variation of releases that were all declared: they are one release with Gaussian noise."""
    return together.worst(GaussianNoise(1.0)).advantage


def content_digest(hashes: UInt8[Array, "n 16"] | None, values: Table) -> str:
    """Compute the digest of units and of what is known of each, both in the order of the hashes."""
    units = b"" if hashes is None else hashes.tobytes()
    content: Any = values
    if isinstance(values, RepeatedRows):
        content = {"rows": values.rows, "which": values.which.astype("<u4").tobytes()}
    return canonical_digest({"units": units, "table": content})


def _content_of(release: Release) -> str:
    return release.content or content_digest(release.hashes, _table_of(release))


def _mu_of(eta: float) -> float:
    return float(2 * ndtri(0.5 + eta))


def _gain(mu: float) -> float:
    """Compute the accuracy above 1/2 with which a shift of mu is told."""
    return float(ndtr(mu / 2)) - 0.5


def _rounded_up(number: float) -> float:
    """Round up to three significant digits."""
    step = 10.0 ** (math.floor(math.log10(number)) - 2)
    return float(f"{math.ceil(number / step) * step:.3g}")


def _content_of_query(query: DeclaredQuery) -> dict[str, Any]:
    return {
        "digest": query.digest,
        "eta": query.eta,
        "date": query.date,
        "table": query.table,
        "kept": [] if query.values is None else [*query.values.shape, len(rows_of(query.values))],
        "units": query.hashes,
        **_content_of_table(query.values),
    }


def _content_of_release(release: Release, versions: Sequence[UInt8[Array, "_ 16"]]) -> dict[str, Any]:
    values = _values_of(release)
    return {
        **release.head,
        "statistic": "",
        "version": None if release.hashes is None else place_in(versions, release.hashes),
        "d": values.shape[1],
        "rows": len(rows_of(values)),
        **_content_of_table(values),
        "declared": release.declared,
        "published": release.published,
        "others": [asdict(other) for other in release.others],
        "knows_people": release.knows_people,
    }


def _content_of_table(table: Table | None) -> dict[str, Any]:
    """Return the rows of a table, and which one each unit has, unless each has its own."""
    if table is None:
        return {"which": None, "values": None}
    which = table.which.astype("<u4") if isinstance(table, RepeatedRows) else None
    return {"which": which, "values": rows_of(table).astype("<f8", copy=False)}


def _decoded(path: Path, row: BudgetRow, digest: str) -> BudgetLedger:
    """Make the ledger of the rows of its file; every size is checked before memory is allocated."""
    versions: list[UInt8[Array, "_ 16"]] = []
    for place, version in enumerate(row.versions):
        hashes = _decoded_units(f"versions[{place}].units", version.units, version.n)
        if place_in(versions, hashes) is not None:
            raise ValueError(f"versions[{place}] is there twice")
        versions.append(hashes)
    # the rows are whole: what they say together is checked on the ledger
    ledger = BudgetLedger(
        path=path,
        design=row.design,
        budget=row.budget,
        queries=tuple(_decoded_query(f"queries[{place}]", query) for place, query in enumerate(row.queries)),
        reserve=row.reserve,
        releases=tuple(
            _decoded_release(f"releases[{place}]", release, versions, row.design)
            for place, release in enumerate(row.releases)
        ),
        digest=digest,
        key=bytes.fromhex(row.key),
        is_insecure=row.insecure,
        people=People.of_row(row.people),
    )
    _check_whole(ledger, versions)
    return ledger


def _decoded_units(name: str, text: str, n: int) -> UInt8[Array, "n 16"]:
    hashes = decoded(name, text, (n, NAME_BYTES), "u1")
    if not np.array_equal(units_of([hashes])[0], hashes):
        raise ValueError(f"{name} must be in order, each of them once")
    return hashes


def _decoded_query(name: str, row: QueryRow) -> DeclaredQuery:
    if not row.kept:
        if not row.units == row.which == row.values is None:
            raise ValueError(f"{name} has values of no kept table")
        return DeclaredQuery(row.digest, row.eta, row.date, row.table)
    if len(row.kept) != 3 or row.units is None:
        raise ValueError(f"{name}.kept must be a number of units, one of columns, and one of rows, with the units")
    n, d, n_rows = row.kept
    hashes = _decoded_units(f"{name}.units", row.units, n)
    values = _decoded_table(name, row, n, d, n_rows)
    _check_table(f"{name}.values", values, check_hashes(hashes))
    return DeclaredQuery(row.digest, row.eta, row.date, row.table, hashes, values)


def _decoded_table(name: str, row: QueryRow | ReleaseRow, n: int, d: int, n_rows: int) -> Table:
    """Read a table of n units: a row for each, or fewer rows and which one each unit has."""
    if row.which is None and n_rows != n:
        raise ValueError(f"{name} has {n_rows:,} rows for {n:,} units, and does not say which one each has")
    rows = decoded(f"{name}.values", row.values or "", (n_rows, d), "<f8")
    if row.which is None:
        return rows
    which = decoded(f"{name}.which", row.which, (n,), "<u4")
    if not (which < n_rows).all() or not np.bincount(which, minlength=n_rows).all():
        raise ValueError(f"{name}.which must name all of {n_rows:,} rows and no others")
    return RepeatedRows(rows, which.astype(np.min_scalar_type(n_rows)))


def _decoded_release(name: str, row: ReleaseRow, versions: Sequence[UInt8[Array, "_ 16"]], design: str) -> Release:
    if (row.version is None) != (design == "dp"):
        raise ValueError(f"{name}.version must be nothing under the design dp, and a number under any other")
    # differential privacy holds for any file; other promises are about the units of one version of the data
    hashes = None
    if row.version is not None:
        if row.version >= len(versions):
            raise ValueError(f"{name}.version is {row.version}, of {len(versions)}")
        hashes = versions[row.version]
    values = _decoded_table(name, row, 1 if hashes is None else len(hashes), row.d, row.rows)
    if design != "leave-one-out" and (row.d != 1 or row.which is not None):
        raise ValueError(f"{name}.d must be 1 and which nothing under the design {design}")
    release = Release(
        row.query,
        row.eta,
        row.date,
        row.subject,
        row.release,
        row.noise,
        row.scale,
        hashes,
        table=values if design == "leave-one-out" else None,
        mu=float(rows_of(values)[0, 0]) if design == "dp" else None,
        declared=row.declared,
        published=row.published,
        others=tuple(OtherRelease(**other.model_dump()) for other in row.others),
        knows_people=row.knows_people,
    )
    try:
        _check_values(release, design)
    except ValueError as reason:
        raise ValueError(f"{name}: {reason}") from None
    return release


def _check_whole(ledger: BudgetLedger, versions: Sequence[UInt8[Array, "_ 16"]]) -> None:
    """Check what the parts of a file say about one another."""
    begun = bool(ledger.releases) and ledger.design == "leave-one-out"
    if (ledger.reserve is not None) != begun:
        raise ValueError("reserve must be there after the first output under leave-one-out, and else nothing")
    if ledger.reserve is not None and ledger.reserve > _mu_of(ledger.budget) * (1 + _ROUNDING):
        raise ValueError("reserve is more than the budget")
    if any((query.table is not None) != begun for query in ledger.queries):
        raise ValueError("queries must have a table after the first output under leave-one-out, and else nothing")
    if any(query.values is not None for query in ledger.queries) and ledger.design != "leave-one-out":
        raise ValueError("queries must keep values under leave-one-out, and else none")
    if len({query.digest for query in ledger.queries}) < len(ledger.queries):
        raise ValueError("a query is declared twice")
    if len({release.release for release in ledger.releases}) < len(ledger.releases):
        raise ValueError("a release is there twice")
    if [id(version) for version in ledger.versions] != [id(version) for version in versions]:
        raise ValueError("versions must be in the order of their first release, and have one")
    _check_declared(ledger)
    _check_size(ledger)


def _check_declared(ledger: BudgetLedger) -> None:
    """Check that a release counts as declared if it is the first of a declared query, and has the table counted."""
    tables = {query.digest: query.table for query in ledger.queries}
    for place, release in enumerate(ledger.releases):
        earlier = any(known.query == release.query for known in ledger.releases[:place])
        expected = ledger.design == "leave-one-out" and release.query in tables and not earlier
        if release.declared != expected:
            raise ValueError(f"releases[{place}].declared is wrong")
        if expected and tables[release.query] != _content_of(release):
            raise ValueError(f"releases[{place}].values are not those that were declared")
