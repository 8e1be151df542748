"""Bounds as reports: from words to what a theorem says."""

from __future__ import annotations

from typing import Any

from leakbound.bounding.ceilings import Stated
from leakbound.bounds import Bound, find
from leakbound.core.types import NotApplicable
from leakbound.plans.bounds import BOUND_PLANS
from leakbound.plans.plan import PagePlan, read
from leakbound.releases.specs import own
from leakbound.reports import Report
from leakbound.reports.about import BoundAbout, DataFacts, TheoremFacts, envelope
from leakbound.reports.sentences import Sentence
from leakbound.runtime.progress import progress


def bound(name: str, *, command: str = "", **options: Any) -> Report:
    """Compute what a theorem allows any attacker, as a report: what ``leakbound bound NAME`` does.

    Parameters
    ----------
    name : {"dp", "gaussian", "dpsgd", "pmp", "leakage", "table", "total", "leave-one-out", "gap",
        "information", "regression"}
        A row of ``leakbound.bounds.BOUNDS``.
    command : str
        Printed on the page.
    **options
        Of every bound: ``title``, ``unit="record"``, ``date``, ``fpr=(0.01, 0.001)``, and of

        dp
            (epsilon, delta)-differential privacy: ``epsilon`` or ``at_most``, ``delta=0.0``,
            ``adjacency="replace_one"``, ``sampling="fixed"``, ``prior=0.5``.
        gaussian
            Gaussian differential privacy: ``mu`` or ``at_most``, ``delta=1e-5``, ``adjacency="replace_one"``,
            ``sampling="fixed"``, ``prior=0.5``.
        dpsgd
            Training by DP-SGD: ``noise_multiplier``, ``sample_rate`` and ``steps``, or ``epochs``, ``batch_size`` and
            ``records``; ``batches="poisson"``, ``delta=1e-5``, ``adjacency="replace_one"``, ``prior=0.5``.
        pmp
            Practical membership privacy: ``data``, ``drop=()``, ``drop_missing=False``, ``mechanism="mean"``, ``clip``,
            ``scale`` (of a mean), ``delta=1e-5``, ``epsilon`` or ``at_most`` (of an exponential mechanism),
            ``candidates=32``, ``method="auto"``, ``n_subsets=65536``, ``confidence=0.95``, ``seed=0``; of CSV
            ``separator``, ``decimal``, ``encoding``.
        leakage
            Per-datum leakage of the mean of a table: ``data``, ``drop=()``, ``drop_missing=False``, ``id``,
            ``covariance="diagonal"``, ``released``, ``rate=1.0``, ``delta=1e-5``; of CSV ``separator``, ``decimal``,
            ``encoding``.
        table
            Counts without noise: ``data``, ``drop_missing=False``, ``by``, ``sampling="fixed"``, ``prior=0.5`` or
            ``k``, ``eta``; of CSV ``separator``, ``decimal``, ``encoding``.
        total
            The total of a column without noise: ``data``, ``drop_missing=False``, ``column``, ``id``, ``round=1.0``,
            ``sampling="poisson"``, ``prior=0.5`` or ``k``; of CSV ``separator``, ``decimal``, ``encoding``.
        leave-one-out
            A statistic of all records with declared noise: ``data``, ``label``, ``drop=()``,
            ``drop_missing=False``, ``statistic="mean"``,
            ``by=()``, ``levels={}``, ``set={}``, ``id`` or ``group``, ``noise_scale``, ``eta``, ``delta=1e-5``,
            ``seed=0``; of CSV ``separator``, ``decimal``, ``encoding``.
        gap
            A generalisation gap: ``gap``, ``low=0.0``, ``high=1.0``, ``prior=0.5``.
        information
            Mutual information in nats: ``information``, ``prior=0.5``.
        regression
            Least squares with a fixed design: ``data``, ``drop=()``, ``drop_missing=False``, ``id``,
            ``noise_std=1.0``; of CSV ``separator``, ``decimal``, ``encoding``.

        ``leakbound bound NAME --help`` says what each means, and so do the fields of
        ``leakbound.plans.BOUND_PLANS[NAME]``.

    Returns
    -------
    Report
        With findings of a proved or asymptotic bound, its curves and, where it is about a table, its records.

    Raises
    ------
    ValueError
        In one line: what was given, what is allowed; for an unknown keyword the nearest known one.

    Examples
    --------
    >>> import leakbound as ls
    >>> report = ls.bound("dp", epsilon=1.0)
    >>> round(next(each.value for each in report.findings if each.quantity == "accuracy"), 4)
    0.7311
    """
    row = find(name)
    plan = read(BOUND_PLANS[name], options, f"bound {name}")
    try:
        with progress(f"bound {name}"):
            stated = own(row.report)(plan, row)
    except NotApplicable as reason:
        raise ValueError(f"bound {name}: {reason}") from None
    return Report(_about(row, plan, stated, command), tuple(stated.findings), tuple(stated.curves), stated.records)


def _about(row: Bound, plan: PagePlan, stated: Stated, command: str) -> BoundAbout:
    content, data = plan.model_dump(), stated.data
    common = envelope(
        content,
        seed=content.get("seed", 0),
        confidence=content.get("confidence", 1.0),
        command=command,
        notes=stated.notes,
    )
    return BoundAbout(
        kind="bound",
        **common,
        bound=row.name,
        subject=stated.subject,
        question=str(Sentence(f"question.{row.name}")),
        fpr=plan.fpr,
        theorem=TheoremFacts(title=row.name, source=row.source, summary=row.summary),
        data=data and DataFacts(name=data.name, digest=data.points.digest[:16], records=len(data.points)),
    )
