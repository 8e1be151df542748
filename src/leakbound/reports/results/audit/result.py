"""One audited release as the report reads it: its facts, and its findings looked up by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leakbound.core.findings import Finding, Term
from leakbound.core.parameter_names import short_names
from leakbound.reports import Curve, Report, Table, Verdict
from leakbound.reports.about import AuditAbout, GamesFacts, ReleaseFacts, about_as
from leakbound.reports.below_chance import below_chance
from leakbound.reports.numbers import percent
from leakbound.reports.phrases import plural
from leakbound.reports.sentences import Sentence

OF_ATTACKS = ("accuracy", "advantage", "auc", "tpr", "tpr_these_models", "ppv")
MOST = 10  # records in the table of the most exposed
FEW_GAMES = 20  # below it a fraction and a curve say less than the count
QUALITIES = ("test_accuracy", "test_r2")
ORDER = ("release", "ask", "do_not_release")  # verdicts of a policy: what may be released comes first


@dataclass(frozen=True)
class Result:
    """A release of an audit."""

    facts: ReleaseFacts
    findings: Sequence[Finding]
    curves: Sequence[Curve]
    about: AuditAbout
    records: Table
    slices: Sequence[Finding] = ()
    groups: Sequence[Finding] = ()

    @property
    def name(self) -> str:
        """The key of the release in findings and curves."""
        return self.facts.name

    @property
    def title(self) -> str:
        """The release in words."""
        return self.facts.title or self.name

    @property
    def games(self) -> GamesFacts | None:
        """Games against single records, or None where there were none."""
        return self.facts.games

    @property
    def n_games(self) -> int:
        """Guesses that the attacker made: attacked models times target points."""
        return self.facts.targets * self.facts.target_points

    @property
    def too_few(self) -> bool:
        """So few guesses that a count says more than a fraction."""
        return self.n_games < FEW_GAMES

    @property
    def knows_the_pool(self) -> bool:
        """Whether the attacker compares a half with other halves of the same records (leave one out)."""
        facts = self.facts
        return facts.game == "half_split" and facts.targets == facts.models and facts.references > 0

    @cached_property
    def prior(self) -> float:
        """Fraction of members at which accuracy is reported."""
        points = (
            finding.operating_point
            for finding in self.findings
            if finding.quantity in ("accuracy", "baseline_accuracy")
        )
        return next((float(point["prior"]) for point in points if "prior" in point), 0.5)

    @property
    def prior_accuracy(self) -> float:
        """Baseline accuracy: that of a guess from this prior alone."""
        return max(self.prior, 1 - self.prior)

    @property
    def prior_accuracy_in_game(self) -> float:
        """Chance to guess right about one record of the game, from the fraction of members in it."""
        return max(self.facts.prior, 1 - self.facts.prior)

    @cached_property
    def attacks(self) -> tuple[str, ...]:
        """Names of the attacks, strongest first; those without an accuracy last."""
        attacks = (finding.attack for finding in self.findings if finding.quantity in OF_ATTACKS)
        names = dict.fromkeys(name for name in attacks if name)
        return tuple(sorted(names, key=self._strength, reverse=True))

    @cached_property
    def attacks_that_ran(self) -> tuple[str, ...]:
        """Those of which something was measured: the reasons of the others are listed below the table."""
        measured = {
            finding.attack for finding in self.findings if finding.quantity in OF_ATTACKS and finding.value is not None
        }
        return tuple(name for name in self.attacks if name in measured)

    @cached_property
    def telling(self) -> tuple[str, ...]:
        """Attacks that say something new, strongest first: the best, and the one that finds most members at a rate.

        All other attacks find less than one of these at every rate asked for, and are right less often than the best.
        """
        if not self.best:
            return self.attacks_that_ran
        names = {self.best}
        for fpr in self.about.fpr:
            found = {name: self._members_found(name, fpr) for name in self.attacks_that_ran}
            most = max(found, key=lambda name: found[name])
            if found[most] > found.get(self.best, 0.0):
                names.add(most)
        return tuple(name for name in self.attacks_that_ran if name in names)

    @property
    def best(self) -> str:
        """The attack with the largest lower end of its accuracy, or an empty name."""
        if self.facts.best:
            return self.facts.best
        names = [name for name in self.attacks if self.find("accuracy", name) is not None]
        return names[0] if names else ""

    @property
    def accuracy(self) -> Finding | None:
        """Accuracy of the best attack."""
        return self.find("accuracy", self.best) if self.best else None

    @property
    def bounds(self) -> tuple[Finding, ...]:
        """What a theorem says of the accuracy of any attack on this release."""
        bounds = (finding for finding in self.findings if finding.quantity == "accuracy" and not finding.attack)
        return tuple(bound for bound in bounds if bound.value is not None)

    @property
    def strength(self) -> float:
        """Lower end of the accuracy of the best attack, by which releases are compared."""
        return self._strength(self.best)[0]

    @property
    def advantage(self) -> float:
        """Largest advantage of an attack."""
        values = (finding.value for finding in self.findings if finding.quantity == "advantage" and finding.attack)
        return max((value for value in values if value is not None), default=0.0)

    @property
    def most_exposed(self) -> Finding | None:
        """Accuracy against the most exposed record, if it could be measured."""
        return self.find("most_exposed")

    @property
    def n_played(self) -> int:
        """Games against each record."""
        return self.games.played if self.games else 0

    @property
    def first_exposed(self) -> int | None:
        """Fewest correct guesses that show a record as exposed; None if even all of them would not."""
        if not self.games or self.n_played < self.games.models_needed:
            return None
        return round(self.games.smallest_detectable * self.n_played)

    @property
    def n_exposed(self) -> int:
        """Records exposed beyond chance."""
        return self.games.exposed if self.games else 0

    @property
    def constant(self) -> frozenset[str]:
        """Attacks that gave every record the same score: a ROC without a corner."""
        measured = [curve for curve in self.curves if curve.role == "measured"]
        return frozenset(
            curve.name
            for curve in measured
            if set(curve.tradeoff.knots) <= {0.0, 1.0} and float(curve.tradeoff.fnr(0.0)) == 1.0
        )

    @property
    def ceilings(self) -> tuple[Curve, ...]:
        """Curves that are claimed or proved."""
        return tuple(curve for curve in self.curves if curve.role != "measured")

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What the audit says of each claim."""
        return tuple(curve.verdict for curve in self.curves if curve.verdict is not None)

    @property
    def quality(self) -> Finding | None:
        """The quality of a model on other records than those that it was trained on, if it was measured."""
        findings = [finding for name in QUALITIES if (finding := self.find(name)) is not None]
        return next((finding for finding in findings if finding.value is not None), None)

    @property
    def without_model(self) -> Finding | None:
        """How well members are told from others without the model; None where leakbound drew the membership."""
        findings = (finding for finding in self.findings if finding.quantity == "membership_without_model")
        return next(findings, None)

    @property
    def n_rows(self) -> int:
        """How many rows of the training data were found in the fitted model."""
        finding = self.find("stores_records")
        return 0 if finding is None else int(finding.detail.get("rows", 0))

    @property
    def members_differ(self) -> bool:
        """Whether a classifier without the model shows that members and others do not come from one source."""
        finding = self.without_model
        return finding is not None and (finding.low or 0.0) > 0.5

    @property
    def is_withheld(self) -> bool:
        """Whether there is no verdict because members and others differ, and the user does not accept that."""
        return self.members_differ and not self.about.plan.get("accept_shift")

    @cached_property
    def below_chance(self) -> Term | None:
        """Why attacks that are wrong more often than a guess leave no verdict; None if there are none."""
        found = below_chance(self.findings)
        if found is None or "attack" not in found.values:
            return found
        return Term(found.id, **{**found.values, "attack": self.attack_title(str(found.values["attack"]))})

    @property
    def measured_groups(self) -> list[Finding]:
        """The groups that were measured, the worst first: that with the largest lower end."""
        known = [finding for finding in self.groups if finding.value is not None]
        return sorted(known, key=lambda finding: (-(finding.low or 0.0), -(finding.value or 0.0)))

    @property
    def worst_group(self) -> Finding | None:
        """The group of which most is revealed; None where there are not several, or all are joined into one."""
        if not self.measured_groups or len(self.groups) < 2 or self.is_joined_of_all:
            return None
        return self.measured_groups[0]

    @property
    def is_joined_of_all(self) -> bool:
        """Whether every group is too small to be judged by itself, so that the joined one holds all records."""
        facts = self.facts.groups
        judged = [group for group in facts.groups if group.judged] if facts else []
        return len(judged) == 1 and bool(judged[0].joined)

    def find(self, quantity: str, attack: str | None = None, **at: float) -> Finding | None:
        """Return the first finding of this quantity that has a value."""
        for finding in self.findings:
            named = finding.quantity == quantity and attack in (None, finding.attack)
            if named and finding.value is not None and at.items() <= dict(finding.operating_point).items():
                return finding
        return None

    def attack_title(self, name: str) -> str:
        """Return the attack in words."""
        known = self.about.attacks.get(name)
        return known.title if known is not None and known.title else name

    def _members_found(self, name: str, fpr: float) -> float:
        """Return the fraction of members that an attack finds at a rate, 0 where it is not known or has no interval."""
        finding = self.find("tpr", name, fpr=fpr)
        return 0.0 if finding is None or finding.refused else finding.value or 0.0

    def _strength(self, name: str) -> tuple[float, float]:
        finding = self.find("accuracy", name)
        if finding is None or finding.value is None:
            return (-1.0, -1.0)
        return (finding.value if finding.low is None else finding.low, finding.value)


def results(report: Report) -> tuple[Result, ...]:
    """Return the releases of an audit, in the order of the plan."""
    about = about_as(AuditAbout, report.about)
    of_all = [finding for finding in report.findings if not finding.scope.is_part]
    of_slices = [finding for finding in report.findings if finding.scope.kind == "slice"]
    of_groups = [finding for finding in report.findings if finding.scope.kind == "group"]
    return tuple(
        Result(
            facts,
            tuple(finding for finding in of_all if finding.release == facts.name),
            tuple(curve for curve in report.curves if curve.release == facts.name),
            about,
            _rows_of(report.record_table, facts.name),
            tuple(finding for finding in of_slices if finding.release == facts.name),
            tuple(finding for finding in of_groups if finding.release == facts.name),
        )
        for facts in about.releases
    )


def ordered(found: Sequence[Result]) -> list[Result]:
    """Put what a policy lets be released first, then those that reveal least."""
    verdicts = {decision.release: decision.verdict for decision in found[0].about.decisions}

    def place(result: Result) -> tuple[int, float]:
        return ORDER.index(verdicts.get(result.name, ORDER[0])), result.strength

    return sorted(found, key=place)


def varied(result: Result) -> list[str]:
    """Name the parameters that differ between the variants of one model; none where models are compared."""
    return list(short_names(list(result.about.plan.get("vary") or {})).values())


def most_exposed(table: Table) -> list[int]:
    """Rows of the exposed records in order, at most ten."""
    rows = np.flatnonzero(np.asarray(table.get("exposed", ()), dtype=bool))
    if not len(rows):
        return []
    won, margin, record = (np.asarray(table[column])[rows] for column in ("won", "margin", "record"))
    return rows[np.lexsort((record, -margin, -won))][:MOST].tolist()


def record_name(table: Table, row: int) -> str:
    """Return what the owner calls the record of a row, or its index where it has no name."""
    name = str(table["name"][row]) if "name" in table else ""
    return name or str(table["record"][row])


def _rows_of(table: Table, release: str) -> Table:
    names = table.get("release", ())
    if all(name == release for name in names):
        return table
    keep = [row for row, name in enumerate(names) if name == release]
    return {column: [values[row] for row in keep] for column, values in table.items()}


def level(result: Result, finding: Finding | None = None) -> str:
    """Write the confidence of a finding, else that of the audit."""
    own = None if finding is None else finding.confidence
    return percent(result.about.confidence if own is None else own)


def written(result: Result, name: str, /, **gaps: str | Sentence) -> Sentence:
    """Name a sentence, whose gaps are the name of the release, the words for records, and others."""
    unit = result.about.unit
    title = Sentence("headline.release") if result.facts.game == "scores" else result.title
    return Sentence(name, {"unit": unit, "units": plural(unit), "title": title, **gaps})
