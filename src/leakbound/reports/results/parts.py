"""The findings of a report by whom they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leakbound.core.findings import EVERY, Finding, Scope
from leakbound.reports import phrases
from leakbound.reports.about import About
from leakbound.reports.results.words import capital

TITLES = {"bayes": "exact Bayes"}


@dataclass(frozen=True)
class Part:
    """What a bound says of one release, such as the most exposed record."""

    release: str
    findings: Sequence[Finding]
    about: About
    scope: Scope = EVERY

    @property
    def title(self) -> str:
        """The part in words."""
        return capital(phrases.title(self.release, self.scope, phrases.row_word(self.about)))

    @property
    def of_all(self) -> bool:
        """What holds of every record of the release itself: it needs no heading of its own."""
        return not self.release and self.scope.kind == "every"


def attack_words(name: str) -> str:
    """Write an attack that has no title in words.

    >>> attack_words("likelihood_ratio"), attack_words("bayes")
    ('likelihood ratio', 'exact Bayes')
    """
    return TITLES.get(name, name.replace("_", " "))


def parts_of(findings: Sequence[Finding], about: About) -> tuple[Part, ...]:
    """Group findings by release and scope, in order."""
    own: dict[tuple[str, Scope], list[Finding]] = {}
    for finding in findings:
        own.setdefault((finding.release, finding.scope), []).append(finding)
    return tuple(Part(release, tuple(items), about, scope) for (release, scope), items in own.items())
