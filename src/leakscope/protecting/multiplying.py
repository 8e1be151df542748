"""The least noise multiplier of DP-SGD for a target, and what the accountant says that it keeps."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, Context

from leakscope.bounding import bound
from leakscope.findings import Finding
from leakscope.noise import dpsgd_multiplier
from leakscope.plans.protects import MultiplierPlan
from leakscope.report import Report
from leakscope.types import NotApplicable

_RATES = (0.01, 0.001)  # false-alarm rates at which DP-SGD is judged
_DELTA = 1e-5
_KEPT = {  # a target in a sentence
    "advantage": "advantage <= {advantage:g}",
    "fpr": "fnr >= {fnr:g} at fpr = {fpr:g}",
    "epsilon": "({epsilon:g}, {delta:g})-DP",
}


def multiplier_report(plan: MultiplierPlan, command: str = "") -> Report:
    """The bound of DP-SGD at the least noise multiplier that keeps a target.

    Parameters
    ----------
    plan : MultiplierPlan
    command : str
        Of the report.

    Returns
    -------
    Report
        Of the bound ``dpsgd``; the multiplier is ``about["plan"]["noise_multiplier"]``, rounded up to six digits.

    Raises
    ------
    ValueError
        If no noise is needed, or none is enough.

    Examples
    --------
    >>> from leakscope.plans import MultiplierPlan
    >>> from leakscope.protecting import multiplier_report
    >>> report = multiplier_report(MultiplierPlan(sample_rate=0.01, steps=1000, advantage=0.1))
    >>> round(report.about["plan"]["noise_multiplier"], 2)
    2.52
    """
    target = plan.target
    try:
        least = dpsgd_multiplier(plan.sample_rate, plan.steps, adjacency=plan.adjacency, batches=plan.batches, **target)
    except NotApplicable as reason:
        raise ValueError(f"calibrate dpsgd: {reason}") from None
    multiplier = _rounded_up(least)
    promise = _KEPT[next(iter(target))].format(**target)
    report = bound(
        "dpsgd",
        sample_rate=plan.sample_rate,
        steps=plan.steps,
        batches=plan.batches,
        adjacency=plan.adjacency,
        noise_multiplier=multiplier,
        delta=target.get("delta", _DELTA),
        fpr=(*_RATES, target.get("fpr", _RATES[0])),
        title=f"Which noise keeps {promise} in DP-SGD?",
        command=command,
    )
    asked, *others = report.findings
    usual = [replace(asked, value=report.curves[0].tradeoff.epsilon(_DELTA), at={"delta": _DELTA})]
    notes = [
        f"noise multiplier {multiplier:g} keeps {promise}; 0.1 % less does not",
        "the noise has a standard deviation of the noise multiplier times the clipping norm, in every step",
        f"the game, adjacency {plan.adjacency}: {asked.game}",
        *asked.assumptions,
    ]
    about = {**report.about, "notes": notes, "plan": {**report.about["plan"], "target": promise}}
    least_noise = Finding("noise_multiplier", multiplier, status="certified", source=asked.source)
    return replace(
        report, about=about, findings=(least_noise, asked, *(usual if asked.at["delta"] != _DELTA else []), *others)
    )


def _rounded_up(value: float) -> float:
    """To six digits, so that it can be written out."""
    return float(Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(value))
