"""How the numbers were made: intervals and assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from leakbound.core.findings import Finding, Term
from leakbound.reports import phrases
from leakbound.reports.results.words import capital, listed, sentence

QUANTITIES = {
    "auc": "area under the curve",
    "tpr": "TPR",
    "tpr_these_models": "TPR for these models",
    "ppv": "PPV",
    "average_precision": "average precision",
    "epsilon": "ε",
    "pmp_epsilon": "ε of practical membership privacy",
    "mu": "μ",
    "largest_epsilon": "largest ε",
    "largest_mu": "largest μ",
    "most_exposed": "single records",
    "attribute_accuracy": "correct guesses",
    "attribute_gain": "gain",
    "eta": "gain over guessing",
    "named_right": "naming the record left out",
}


@runtime_checkable
class WithFindings(Protocol):
    """A release, or a part of a report."""

    @property
    def findings(self) -> Sequence[Finding]:
        """What is judged."""
        ...


Judged = Sequence[WithFindings]


def intervals(results: Judged) -> list[tuple[str, str]]:
    """Quantities and the method of their interval, a row a method."""
    quantities: dict[tuple[Term, ...], dict[str, None]] = {}
    for result in results:
        for finding in result.findings:
            if finding.value is not None and finding.method:
                name = QUANTITIES.get(finding.quantity, finding.quantity.replace("_", " "))
                quantities.setdefault(tuple(finding.method), {})[name] = None
    return [(listed(names), capital(sentence(phrases.method(terms)))) for terms, names in quantities.items()]


def assumptions(results: Judged) -> list[str]:
    """List what the findings rest on, each once."""
    findings = [finding for result in results for finding in result.findings]
    return list(
        dict.fromkeys(capital(sentence(phrases.words(term))) for finding in findings for term in finding.assumptions)
    )
