"""The least noise multiplier of DP-SGD for a target, and what the accountant says that it keeps."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, Context

from leakbound.bounding.api import bound
from leakbound.core import reasons
from leakbound.core.findings import Finding, Term
from leakbound.core.reasons import as_reason
from leakbound.core.types import NotApplicable
from leakbound.dpsgd.calibration import Adjacency, dpsgd_multiplier
from leakbound.plans.protects import MultiplierPlan
from leakbound.reports import Report, phrases

_RATES = (0.01, 0.001)  # false positive rates at which DP-SGD is reported
_DELTA = 1e-5
_NEIGHBOURS: dict[Adjacency, str] = {
    "replace_one": "a record is replaced by another",
    "add_remove": "a record is added or removed, as Opacus and TF Privacy count",
}
_KEPT = {  # a target in a sentence
    "advantage": "advantage <= {advantage:g}",
    "fpr": "fnr >= {fnr:g} at fpr = {fpr:g}",
    "epsilon": "({epsilon:g}, {delta:g})-DP",
}


def multiplier_report(plan: MultiplierPlan, command: str = "") -> Report:
    """Report the bound of DP-SGD at the least noise multiplier that keeps a target.

    >>> report = multiplier_report(MultiplierPlan(sample_rate=0.01, steps=1000, advantage=0.1))
    >>> round(report.about.plan["noise_multiplier"], 2)
    2.52
    >>> {name: round(noise, 2) for name, noise in report.about.plan["noise_multipliers"].items()}
    {'replace_one': 2.52, 'add_remove': 1.42}
    """
    # replacing a record needs more noise than adding or removing one, which other libraries count by: both are reported
    target = plan.target
    try:
        multiplier = _least(plan, plan.adjacency)
    except NotApplicable as reason:
        raise ValueError(f"calibrate dpsgd: {reason}") from None
    other: Adjacency = "add_remove" if plan.adjacency == "replace_one" else "replace_one"
    try:
        other_multiplier, why_not = _least(plan, other), None
    except (NotApplicable, ValueError) as reason:
        other_multiplier, why_not = None, as_reason(reason)
    promise = _KEPT[next(iter(target))].format(**target)
    report = bound(
        "dpsgd",
        sample_rate=plan.rate,
        steps=plan.n_steps,
        batches=plan.batches,
        adjacency=plan.adjacency,
        noise_multiplier=multiplier,
        delta=target.get("delta", _DELTA),
        fpr=(*_RATES, target.get("fpr", _RATES[0])),
        title=f"Which noise keeps {promise} in DP-SGD?",
        command=command,
    )
    # The report is that of `bound dpsgd` at the multiplier found; the multiplier comes first, and epsilon at the usual
    # delta as well where the target names another one.
    epsilon, *others = report.findings
    usual = [replace(epsilon, value=report.curves[0].tradeoff.epsilon(_DELTA), operating_point={"delta": _DELTA})]
    notes = [
        f"noise multiplier {multiplier:g} keeps {promise}; 0.1 % less does not",
        _other_line(other, other_multiplier, why_not),
        "the noise has a standard deviation of the noise multiplier times the clipping norm, in every step",
        f"the game, adjacency {plan.adjacency}: {phrases.game(epsilon.game or Term(plan.adjacency))}",
        *map(phrases.words, epsilon.assumptions),
    ]
    by_adjacency = {plan.adjacency: multiplier, other: other_multiplier}
    multipliers = {name: by_adjacency[name] for name in ("replace_one", "add_remove")}
    words = {**report.about.plan, "target": promise, "noise_multipliers": multipliers}
    about = report.about.model_copy(update={"notes": tuple(notes), "plan": words})
    least_noise = Finding("noise_multiplier", multiplier, status="certified", source=epsilon.source)
    status = "measured" if other_multiplier is None else "certified"
    other_noise = Finding(
        "noise_multiplier", other_multiplier, status=status, source=epsilon.source, release=other, reason=why_not
    )
    at_usual_delta = usual if epsilon.operating_point["delta"] != _DELTA else []
    return replace(report, about=about, findings=(least_noise, epsilon, *at_usual_delta, *others, other_noise))


def _least(plan: MultiplierPlan, adjacency: Adjacency) -> float:
    """Find the multiplier that keeps the target, for one way of counting neighbours."""
    least = dpsgd_multiplier(plan.rate, plan.n_steps, adjacency=adjacency, batches=plan.batches, **plan.target)
    return _rounded_up(least)


def _other_line(other: Adjacency, multiplier: float | None, why_not: Term | None) -> str:
    """State the multiplier by the other way of counting neighbours, and who counts so."""
    counted = f"with adjacency {other} ({_NEIGHBOURS[other]})"
    if why_not is not None:
        return f"{counted}: {reasons.words(why_not)}"
    return f"{counted} noise multiplier {multiplier:g} keeps it; compare like with like"


def _rounded_up(value: float) -> float:
    """Round to six digits, so that it can be written out."""
    return float(Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(value))
