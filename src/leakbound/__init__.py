"""Measure, bound and limit how much a released statistic or model reveals about who is in its data.

It measures by attacks and audits, bounds by theorems made executable, and limits by noise with a certificate. Its
vocabulary, in the code, the docs and the reports:

release
    What is published: a statistic of the data, or a model trained on it.
game
    Who is in and who is out, as a boolean matrix ``member`` (M models, N points). Half-splits, one fixed
    target (per datum), a random target (average datum) and canaries are rows of such a matrix. The attacked
    rows are **targets**, the others **references**.
signal
    What one sees of a release at a point: loss, log-odds, the vector of log-probabilities.
attack
    Signals in, **scores** out; higher = member, always.
trade-off
    The curve fnr(fpr). A measured ROC and a proved **ceiling** are the same type.
finding
    One number with its quantity, side, interval, status, assumptions and source. A **report** holds what it
    is about, findings, curves and records; the page is drawn from them.
coupling
    A way to pair a data set with the record and one without; it turns the noise into a promise. **Shifts**:
    what a coupling measured.
certificate
    The report of protected data: what is promised, under which game, coupling and confidence. **ledger**: the
    private memory of what was released from the same draw.
plan
    A frozen description of a job. **store**: finished rows by content. **pool**: workers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from leakbound.version import __version__

if TYPE_CHECKING:
    from leakbound import attacks, bounds, data, dpsgd, metrics, noise, papers, plans, releases, reports
    from leakbound.auditing.api import audit, audit_model, audit_scores, audit_signals, audit_synthetic
    from leakbound.auditing.follow import follow
    from leakbound.bounding.api import bound
    from leakbound.core import covariance, games, intervals, seeds, tradeoff
    from leakbound.core.findings import Finding
    from leakbound.core.tradeoff import claims
    from leakbound.core.types import Game, Noise, NotApplicable, Points, Scores, Signals
    from leakbound.dpsgd.planted import canaries
    from leakbound.files.signal_files import open_signals, write_blocks
    from leakbound.papers import reproduce
    from leakbound.plans.fitted import Fitted
    from leakbound.plans.games import Attribute, AverageDatum, Canaries, Forgotten, Fresh, HalfSplit, PerDatum, Queries
    from leakbound.plans.page import Page, Store
    from leakbound.plans.promises import Anyone, Drawn, File
    from leakbound.plans.statistic_objects import (
        Correlation,
        Covariance,
        Histogram,
        Huber,
        Logistic,
        Mean,
        Ols,
        Poisson,
        Quantiles,
        Ratio,
        Ridge,
        SecondMoment,
        StandardErrors,
        Sum,
        Table,
        Weighted,
    )
    from leakbound.plans.until import Until
    from leakbound.protection import calibrate, protect
    from leakbound.releases.generators.generator import Generator
    from leakbound.releases.scored import Loss
    from leakbound.reports import Report
    from leakbound.reports.comparison import compare
    from leakbound.runtime.observe import signals_of
    from leakbound.runtime.repeat import repeat

_HOME = {  # the module that holds each name
    "Anyone": "plans.promises",
    "Correlation": "plans.statistic_objects",
    "Covariance": "plans.statistic_objects",
    "Histogram": "plans.statistic_objects",
    "Huber": "plans.statistic_objects",
    "Logistic": "plans.statistic_objects",
    "Mean": "plans.statistic_objects",
    "Ols": "plans.statistic_objects",
    "Poisson": "plans.statistic_objects",
    "Quantiles": "plans.statistic_objects",
    "Ratio": "plans.statistic_objects",
    "Ridge": "plans.statistic_objects",
    "SecondMoment": "plans.statistic_objects",
    "StandardErrors": "plans.statistic_objects",
    "Sum": "plans.statistic_objects",
    "Table": "plans.statistic_objects",
    "Weighted": "plans.statistic_objects",
    "Drawn": "plans.promises",
    "File": "plans.promises",
    "audit": "auditing.api",
    "audit_model": "auditing.api",
    "audit_scores": "auditing.api",
    "audit_signals": "auditing.api",
    "audit_synthetic": "auditing.api",
    "bound": "bounding.api",
    "calibrate": "protection",
    "canaries": "dpsgd.planted",
    "compare": "reports.comparison",
    "follow": "auditing.follow",
    "protect": "protection",
    "repeat": "runtime.repeat",
    "signals_of": "runtime.observe",
    "reproduce": "papers",
    "write_blocks": "files.signal_files",
    "open_signals": "files.signal_files",
    "Attribute": "plans.games",
    "AverageDatum": "plans.games",
    "Canaries": "plans.games",
    "Fitted": "plans.fitted",
    "Forgotten": "plans.games",
    "Fresh": "plans.games",
    "Generator": "releases.generators.generator",
    "HalfSplit": "plans.games",
    "Loss": "releases.scored",
    "Page": "plans.page",
    "PerDatum": "plans.games",
    "Queries": "plans.games",
    "Store": "plans.page",
    "Until": "plans.until",
    "Report": "reports",
    "Finding": "core.findings",
    "Game": "core.types",
    "Noise": "core.types",
    "NotApplicable": "core.types",
    "Points": "core.types",
    "Scores": "core.types",
    "Signals": "core.types",
}
_MODULES = {  # modules that are public as a whole, under their own name
    "attacks": "attacks",
    "bounds": "bounds",
    "claims": "core.tradeoff.claims",
    "covariance": "core.covariance",
    "data": "data",
    "dpsgd": "dpsgd",
    "games": "core.games",
    "intervals": "core.intervals",
    "metrics": "metrics",
    "noise": "noise",
    "papers": "papers",
    "plans": "plans",
    "releases": "releases",
    "reports": "reports",
    "seeds": "core.seeds",
    "tradeoff": "core.tradeoff",
}

__all__ = [
    "Anyone",
    "Attribute",
    "AverageDatum",
    "Canaries",
    "Correlation",
    "Covariance",
    "Drawn",
    "File",
    "Finding",
    "Fitted",
    "Forgotten",
    "Fresh",
    "Game",
    "Generator",
    "HalfSplit",
    "Histogram",
    "Huber",
    "Logistic",
    "Loss",
    "Mean",
    "Noise",
    "NotApplicable",
    "Ols",
    "Page",
    "PerDatum",
    "Points",
    "Poisson",
    "Quantiles",
    "Queries",
    "Ratio",
    "Report",
    "Ridge",
    "Scores",
    "SecondMoment",
    "Signals",
    "StandardErrors",
    "Store",
    "Sum",
    "Table",
    "Until",
    "Weighted",
    "__version__",
    "attacks",
    "audit",
    "audit_model",
    "audit_scores",
    "audit_signals",
    "audit_synthetic",
    "bound",
    "bounds",
    "calibrate",
    "canaries",
    "claims",
    "compare",
    "covariance",
    "data",
    "dpsgd",
    "follow",
    "games",
    "intervals",
    "metrics",
    "noise",
    "open_signals",
    "papers",
    "plans",
    "protect",
    "releases",
    "repeat",
    "reports",
    "reproduce",
    "seeds",
    "signals_of",
    "tradeoff",
    "write_blocks",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used (PEP 562)."""
    if name in _MODULES:
        return import_module(f"leakbound.{_MODULES[name]}")
    if name in _HOME:
        return getattr(import_module(f"leakbound.{_HOME[name]}"), name)
    raise AttributeError(f"module 'leakbound' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
