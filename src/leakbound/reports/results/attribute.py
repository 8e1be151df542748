"""One release whose attribute was guessed, as the report reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from leakbound.core.findings import Finding
from leakbound.reports import Report
from leakbound.reports.about import AttributeAbout, AttributeFacts, about_as

BASELINES = ("prior_guess", "imputation")


@dataclass(frozen=True)
class AttributeResult:
    """A release of an audit of an attribute."""

    facts: AttributeFacts
    findings: Sequence[Finding]
    about: AttributeAbout

    @property
    def title(self) -> str:
        """The release in words."""
        return self.facts.title or self.facts.name

    @cached_property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies, that with the largest gain first; those that do not apply last."""
        names = dict.fromkeys(finding.attack for finding in self.findings if finding.quantity == "attribute_gain")
        return tuple(sorted(names, key=self._strength, reverse=True))

    @property
    def best(self) -> str:
        """The strategy with the largest lower end of its gain, or an empty name."""
        return self.facts.best

    @property
    def gain(self) -> Finding | None:
        """Gain of the best strategy."""
        return self.find("attribute_gain", self.best) if self.best else None

    @property
    def baseline_accuracy(self) -> float:
        """Fraction of correct guesses about members without the release, by the best way."""
        finding = self.find("attribute_accuracy", self.facts.baseline, True) if self.facts.baseline else None
        return self.facts.chance if finding is None or finding.value is None else finding.value

    @property
    def baseline_title(self) -> str:
        """The best way to guess without the release, in words."""
        return self.attack_title(self.facts.baseline) if self.facts.baseline else "Chance"

    def find(self, quantity: str, attack: str, inside: bool | None = None) -> Finding | None:
        """Return the finding of this quantity that has a value, of members or of others."""
        for finding in self.findings:
            matches = finding.quantity == quantity and finding.attack == attack and finding.value is not None
            if matches and (inside is None or finding.operating_point.get("inside") == float(inside)):
                return finding
        return None

    def attack_title(self, name: str) -> str:
        """Return a strategy or a baseline in words."""
        known = self.about.attacks.get(name)
        return known.title if known is not None and known.title else name

    def _strength(self, name: str) -> tuple[float, float]:
        finding = self.find("attribute_gain", name)
        return (-2.0, -2.0) if finding is None else (finding.low or 0.0, finding.value or 0.0)


def attribute_results(report: Report) -> tuple[AttributeResult, ...]:
    """Return the releases of an audit of an attribute, in the order of the plan."""
    about = about_as(AttributeAbout, report.about)
    return tuple(
        AttributeResult(facts, tuple(finding for finding in report.findings if finding.release == facts.name), about)
        for facts in about.releases
    )


def ordered(result: AttributeResult) -> list[Finding]:
    """Sort the findings: what needs no release, then the strategies, that with the largest gain first."""
    rank = {name: place for place, name in enumerate((*BASELINES, *result.strategies))}
    return sorted(result.findings, key=lambda finding: rank[finding.attack])
