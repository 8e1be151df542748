"""The lower bound of epsilon below the table, in games that are played for it."""

from __future__ import annotations

import numpy as np
import pytest

import leakbound as ls
from leakbound.reports.results.audit.answer import epsilon as sentences_of
from leakbound.reports.results.audit.result import results
from tests.reports.page_reading import said


def audited(kind: str, claim: str = "", signal: float = 3.0) -> ls.Report:
    """Audit 40 models with and without one record, or 200 canaries in one model."""
    shape = (60, 1) if kind != "canaries" else (1, 200)
    member = np.random.default_rng(1).random(shape) < 0.5
    n_targets = 40 if kind != "canaries" else 1
    game = ls.Game(kind, member, np.ones(shape[1], dtype=bool), n_targets, 0.5, "pool", "poisson")
    log_odds = np.random.default_rng(2).normal(signal * member)
    return ls.audit_signals(
        ls.Signals(game, None, {"loss": np.logaddexp(0, -log_odds)}), attacks=["loss"], claims=claim or ()
    )


@pytest.mark.parametrize("kind", ["per_datum", "canaries"])
def test_it_is_printed_with_and_without_a_claim(kind: str) -> None:
    report = audited(kind)
    epsilon = next(each for each in report.findings if each.quantity == "epsilon")
    assert epsilon.low is not None
    text = said(" ".join(report.table().split()))
    least = f"Any true ε is at least {int(100 * epsilon.low) / 100:.2f} at δ = 10⁻⁵ (95 %, by Loss (MALT))"
    assert f"{least}." in text
    claimed = said(" ".join(audited(kind, "epsilon=9,delta=1e-5,adjacency=add_remove").table().split()))
    assert f"{least}; the bound of a claim is smaller, because claims are tested at 99.9 %." in claimed
    (result,) = results(report)
    assert "Any true ε is at least" in said(list(sentences_of(result)))  # on the page


def test_it_is_not_printed_where_nothing_is_shown_or_the_game_is_another() -> None:
    for report in (audited("per_datum", signal=0.0), audited("signals")):
        assert "Any true ε" not in report.table()
