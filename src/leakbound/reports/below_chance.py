"""Attacks that are wrong more often than a guess, beyond chance: they hide a leak and show none.

An attack whose AUC is below 1/2 finds the members as well as one above it, once its scores are reversed. Most often
the files of members and others were exchanged; else the score has the wrong sign. Either way "found no leak" is false.
"""

from __future__ import annotations

from collections.abc import Iterable

from leakbound.core.findings import Finding, Term

STRICTER = 1.7  # of an interval at 95 %, about what makes it one at 99.9 %: several attacks are looked at
GIVEN = frozenset({"one_model", "synthetic", "signals", "scores"})  # games in which the user says who was in
LARGEST_GIVEN = 0.49  # an AUC that is closer to 1/2 is no exchange
LARGEST_DRAWN = 0.45  # where leakbound drew who was in, references that leave out the attacked model may be biased


def below_chance(findings: Iterable[Finding]) -> Term | None:
    """Tell whether attacks on one release are wrong more often than a guess, beyond chance.

    >>> area = Finding("auc", 0.25, 0.22, 0.28, attack="loss", game=Term("scores"))
    >>> below_chance([area]).id
    'exchanged_or_sign'
    """
    areas = _areas(findings)
    below = [finding for finding in areas if _is_below(finding)]
    if not below or any((finding.low or 0.0) > 0.5 for finding in areas):
        return None
    worst = min(below, key=lambda finding: finding.value or 0.0)
    if len(below) > 1:
        return Term("exchanged", n=len(below))
    name = "wrong_sign" if len(areas) > 1 else "exchanged_or_sign"
    return Term(name, attack=worst.attack)


def is_reversed(findings: Iterable[Finding], attack: str) -> bool:
    """Tell whether one attack is wrong more often than a guess, beyond chance, whatever the others reach."""
    return any(finding.attack == attack and _is_below(finding) for finding in _areas(findings))


def _areas(findings: Iterable[Finding]) -> list[Finding]:
    """List the areas of attacks on all records that have an interval."""
    areas = [
        finding
        for finding in findings
        if finding.quantity == "auc" and finding.attack and not finding.scope.is_part and not finding.refused
    ]
    return [finding for finding in areas if finding.low is not None and finding.high is not None]


def _is_below(finding: Finding) -> bool:
    value, high = finding.value or 0.0, finding.high or 0.0
    largest = LARGEST_GIVEN if finding.game is not None and finding.game.id in GIVEN else LARGEST_DRAWN
    return value < largest and value + STRICTER * (high - value) < 0.5
