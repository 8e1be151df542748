"""A protected release as its page, its charts and its CSV read it: its certificate, values and findings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leakbound.core.findings import Finding
from leakbound.reports import Curve, Report
from leakbound.reports.about import CertificateFacts, ProtectedAbout, ReleasedValue, about_as
from leakbound.reports.phrases import WITHOUT, plural
from leakbound.reports.results.parts import Part, attack_words, parts_of
from leakbound.reports.sentences import Sentence, sentences


@dataclass(frozen=True)
class ReleaseResult:
    """A release with noise and its certificate."""

    findings: Sequence[Finding]
    curves: Sequence[Curve]
    about: ProtectedAbout

    @property
    def certificate(self) -> CertificateFacts:
        """What is promised, under which game, coupling and confidence."""
        return self.about.certificate

    @property
    def values(self) -> Sequence[ReleasedValue]:
        """What was released, a row a coordinate; empty where only the noise was calibrated."""
        return self.about.values

    @property
    def by_statistic(self) -> tuple[tuple[str, ReleaseResult], ...]:
        """The statistics that were released together by name, each with its own values and noise; of one, none."""
        results = []
        for statistic in self.about.statistics:
            noise = {"noise": statistic.noise, "no_noise": statistic.noise.family == "none"}
            certificate = self.certificate.model_copy(update=noise)
            values = tuple(row for row in self.values if row.statistic == statistic.name)
            planned = tuple(number for number in self.about.planned if number.statistic == statistic.name)
            published = {
                "parameters": statistic.parameters,
                "table": statistic.table,
                "rules": statistic.rules,
                "planned": planned,
            }
            own = {"certificate": certificate, "values": values, "statistics": (), **published}
            results.append((statistic.name, replace(self, about=self.about.model_copy(update=own))))
        return tuple(results)

    @property
    def public(self) -> bool:
        """Whether this is for publication; otherwise it holds exact functions of the data."""
        return self.about.audience == "public"

    @property
    def unit(self) -> str:
        """What a record is called."""
        return self.about.unit

    @property
    def units(self) -> str:
        """Several of them."""
        return plural(self.unit)

    @property
    def prior_accuracy(self) -> float:
        """Accuracy of a guess from the prior alone."""
        return max(self.certificate.prior, 1 - self.certificate.prior)

    @property
    def promised(self) -> float:
        """Accuracy that no attacker exceeds."""
        return self.prior_accuracy + self.certificate.eta

    @property
    def eta_of_ledger(self) -> float | None:
        """Eta of all releases of the ledger together, as it was fixed before the first one; None without an entry."""
        entry = self.certificate.entry
        return None if entry is None else entry.budget

    @property
    def eta_of_all(self) -> float:
        """Eta of the headline: of all releases of the ledger together, or of this one where there is no other."""
        return self.certificate.eta if self.eta_of_ledger is None else self.eta_of_ledger

    @property
    def promised_of_all(self) -> float:
        """Accuracy that no attacker exceeds who sees all releases of the ledger."""
        return min(1.0, self.prior_accuracy + self.eta_of_all)

    @property
    def shares_a_budget(self) -> bool:
        """The ledger has a larger budget than this release takes: the headline is that of all its releases."""
        return self.eta_of_all != self.certificate.eta

    @property
    def on_average(self) -> bool:
        """The promise is for a record drawn at random, not for each of them."""
        return self.certificate.about == "average"

    @property
    def proved(self) -> bool:
        """The certificate holds, and what it says may be published."""
        return not self.about.insecure_seed and not self.contradictions

    @property
    def best(self) -> Finding | None:
        """Accuracy of the best attack on the release."""
        return next(iter(self.attacks), None)

    @property
    def attacks(self) -> tuple[Finding, ...]:
        """Accuracy of each attack on the release, the strongest first."""
        known = (finding for finding in self.findings if finding.quantity == "accuracy" and finding.attack)
        own = (finding for finding in known if finding.release != WITHOUT and finding.value is not None)
        in_game = (
            finding
            for finding in own
            if math.isclose(finding.operating_point.get("prior", 0.5), self.certificate.prior)
        )
        return tuple(sorted(in_game, key=_lower_end, reverse=True))

    @property
    def without_noise(self) -> Finding | None:
        """Accuracy of the best attack if there were no noise."""
        return max(self._of(WITHOUT, "accuracy"), key=_lower_end, default=None)

    @property
    def rates(self) -> tuple[Finding, ...]:
        """Members found that the certificate allows at the false-alarm rates."""
        return tuple(finding for finding in self._of("", "tpr") if not finding.attack and finding.bound_type == "upper")

    @property
    def rates_of_all(self) -> tuple[Finding, ...]:
        """The same of all releases of the ledger together."""
        of_all = (*self._of("joint", "tpr"), *self._of("joint_of_one", "tpr"))
        return tuple(finding for finding in of_all if not finding.attack)

    def field_of_promise(self, field: str) -> Any:
        """Return a field of the promise of the plan; reports of before have it among the others."""
        promise = self.about.plan.get("promise")
        fields = next(iter(promise.values())) if isinstance(promise, Mapping) else self.about.plan
        return fields.get(field)

    @property
    def declares_limits(self) -> bool:
        """Limits on the rates were declared beforehand."""
        return bool(self.field_of_promise("at_most"))

    @property
    def pmp(self) -> Finding | None:
        """Epsilon of practical membership privacy of the release."""
        return next(iter(self._of("", "pmp_epsilon")), None)

    @property
    def epsilons(self) -> tuple[Finding, ...]:
        """Epsilon of differential privacy of the release, for each way in which data are neighbours."""
        return tuple(finding for finding in self._of("", "epsilon") if not finding.attack)

    @property
    def privacy_of_all(self) -> tuple[tuple[Finding, Finding], ...]:
        """Mu and epsilon of differential privacy of all releases of the ledger together."""
        found = []
        for release in ("joint", "joint_of_one"):
            found += zip(self._of(release, "mu"), self._of(release, "epsilon"), strict=True)
        return tuple(found)

    @property
    def named_right(self) -> Finding | None:
        """Probability of naming the record left out from this release."""
        return next(iter(self._of("", "named_right")), None)

    @property
    def named_right_of_all(self) -> Finding | None:
        """Probability of naming the record left out from all releases of the ledger."""
        of_all = (*self._of("joint", "named_right"), *self._of("joint_of_one", "named_right"))
        return next(iter(of_all), None)

    @property
    def spent(self) -> Finding | None:
        """Eta that all releases of the ledger so far have spent, for the owner."""
        return next(iter(self._of("spent", "eta")), None)

    @property
    def most_exposed(self) -> Finding | None:
        """Accuracy of any attacker against the record that is told best, for the owner; None where it is not proved."""
        of_any = (finding for finding in self._of("", "accuracy") if not finding.attack)
        return next((finding for finding in of_any if finding.scope.kind == "worst"), None)

    @property
    def without_any_noise(self) -> tuple[str, ...]:
        """Names of the released numbers that got no noise."""
        return tuple(row.name for row in self.values if row.noise_std == 0)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The findings by release and scope, in order."""
        return parts_of(self.findings, self.about)

    @property
    def ceilings(self) -> tuple[Curve, ...]:
        """Curves that no attacker exceeds."""
        return tuple(curve for curve in self.curves if curve.role == "certified")

    @property
    def advantage(self) -> float:
        """The largest advantage of an attack or a ceiling; that without noise does not count."""
        drawn = (curve for curve in self.curves if curve.role in ("certified", "measured") and curve.release != WITHOUT)
        return max((curve.tradeoff.advantage() for curve in drawn), default=1.0)

    @property
    def contradictions(self) -> tuple[str, ...]:
        """What exceeds the certificate: an exact attack, or a ceiling that a test refuted."""
        exact = (finding for finding in self.attacks if finding.status == "certified")
        beyond = [finding.attack for finding in exact if (finding.value or 0.0) > self.promised + 1e-12]
        refuted = [curve.name for curve in self.ceilings if curve.verdict and curve.verdict.word == "refuted"]
        return tuple(attack_words(name) for name in (*beyond, *refuted))

    def _of(self, release: str, quantity: str) -> tuple[Finding, ...]:
        known = (finding for finding in self.findings if finding.release == release and finding.quantity == quantity)
        return tuple(finding for finding in known if finding.value is not None)


def release_result(report: Report) -> ReleaseResult:
    """Read the release of a report."""
    if report.record_table:
        raise ValueError(f"a protected release shows no records, got the columns {', '.join(report.record_table)}")
    about = about_as(ProtectedAbout, report.about)
    findings = (replace(finding, scope=finding.scope.unnamed) for finding in report.findings)
    curves = (replace(curve, scope=curve.scope.unnamed) for curve in report.curves)
    return ReleaseResult(tuple(findings), tuple(curves), about)


def _lower_end(finding: Finding) -> float:
    return (finding.value if finding.low is None else finding.low) or 0.0


def question_of(promise: str, statistic: str) -> str:
    """Write the question that a release answers, for a report without a title.

    >>> question_of("file", "ols")
    'Who is left out of the regression?'
    """
    asked = f"asked_statistic.{statistic}"
    name = Sentence(asked) if asked in sentences() else statistic
    return str(Sentence(f"release_question.{promise}", {"statistic": name}))
