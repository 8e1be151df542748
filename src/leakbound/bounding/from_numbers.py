"""Bounds from numbers alone: differential privacy, a generalisation gap, mutual information."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leakbound.bounding.ceilings import Stated, allowed, epsilon_at, largest
from leakbound.bounds import Bound
from leakbound.bounds.dp import dpsgd_tradeoff, posterior_from_dp, posterior_from_tradeoff
from leakbound.bounds.generalisation import generalisation_bound
from leakbound.bounds.information import kl_upper
from leakbound.core.checks import non_negative
from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.tradeoff import TradeOff
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.types import Game
from leakbound.plans.bounds import DpPlan, DpsgdPlan, GapPlan, GaussianPlan, InformationPlan
from leakbound.reports import Curve

SWAP, COIN = Term("swap"), Term("coin")
BATCHES = {"poisson": Term("poisson_batches_of_dpsgd"), "fixed": Term("fixed_batches_of_dpsgd")}


def dp(plan: DpPlan, row: Bound) -> Stated:
    """(epsilon, delta)-DP as a ceiling, or the epsilon that keeps a limit."""
    ceiling, parameter, common = _promise(plan, row, "epsilon")
    claim = Claim("epsilon", parameter.value or 0.0, plan.delta, plan.adjacency)
    curve = ceiling(claim.value)
    findings = [*([parameter] if plan.at_most else []), *allowed(curve, plan.prior, plan.fpr, **common)]
    if plan.delta == 0:  # with a delta some releases may prove membership
        posterior = posterior_from_dp(claim.in_game(_game(plan)).value, plan.prior)
        facts: dict[str, Any] = common | {"source": "sablayrolles2019, section 3.4"}
        findings.append(
            Finding("posterior", posterior, operating_point={"prior": plan.prior}, bound_type="upper", **facts)
        )
    findings.append(_mean_posterior(curve, plan.prior, common))
    return _stated(claim.text, curve, findings)


def gaussian(plan: GaussianPlan, row: Bound) -> Stated:
    """mu-GDP as a ceiling, or the mu that keeps a limit."""
    ceiling, parameter, common = _promise(plan, row, "mu")
    curve = ceiling(parameter.value or 0.0)
    return _stated(
        Claim("mu", parameter.value or 0.0, 0.0, plan.adjacency).text,
        curve,
        [
            *([parameter] if plan.at_most else []),
            *allowed(curve, plan.prior, plan.fpr, **common),
            epsilon_at(curve, plan.delta, **common),
            _mean_posterior(curve, plan.prior, common),
        ],
    )


def dpsgd(plan: DpsgdPlan, row: Bound) -> Stated:
    """DP-SGD as a ceiling, by its privacy loss distribution."""
    curve = dpsgd_tradeoff(plan.noise_multiplier, plan.rate, plan.n_steps, plan.adjacency, batches=plan.batches)
    common = {
        "status": row.status,
        "source": row.source,
        "game": SWAP if plan.adjacency == "replace_one" else COIN,
        "assumptions": [BATCHES[plan.batches], Term("sees_every_step")],
    }
    return _stated(
        f"noise multiplier {plan.noise_multiplier:g}, sample rate {plan.rate:g}, {plan.n_steps:,} steps, "
        + ("fixed batches, " if plan.batches == "fixed" else "")
        + plan.adjacency.replace("_", "/" if plan.adjacency == "add_remove" else " "),
        curve,
        [
            epsilon_at(curve, plan.delta, **common),
            *allowed(curve, plan.prior, plan.fpr, **common),
            _mean_posterior(curve, plan.prior, common),
        ],
    )


def gap(plan: GapPlan, row: Bound) -> Stated:
    """Bound from below the accuracy of the best attacker, by a generalisation gap alone."""
    reached = generalisation_bound(plan.gap, plan.low, plan.high, plan.prior)
    common: dict[str, Any] = {
        "operating_point": {"prior": plan.prior},
        "scope": Scope("average"),
        "bound_type": "lower",
        "status": row.status,
        "source": row.source,
        "game": Term("member_or_fresh_record"),
        "assumptions": [
            Term("bounded_loss", low=plan.low, high=plan.high),
            Term("true_gap"),
        ],
    }
    baseline_accuracy = max(plan.prior, 1 - plan.prior)
    return Stated(
        f"gap {plan.gap:g}, losses from {plan.low:g} to {plan.high:g}",
        [Finding("accuracy", reached, **common), Finding("eta", reached - baseline_accuracy, **common)],
    )


def information(plan: InformationPlan, row: Bound) -> Stated:
    """Bound from above the accuracy of any attacker on the one record that the mutual information is about."""
    baseline_accuracy = max(plan.prior, 1 - plan.prior)  # of whoever says the likelier of "in" and "out"
    accuracy = kl_upper(non_negative("information", plan.information), baseline_accuracy)
    common: dict[str, Any] = {
        "operating_point": {"prior": plan.prior},
        "scope": Scope("one"),
        "bound_type": "upper",
        "status": row.status,
        "source": row.source,
        "assumptions": [Term("information_of_one", unit=plan.unit)],
    }
    return Stated(
        f"{plan.information:g} nats of mutual information",
        [Finding("accuracy", accuracy, **common), Finding("eta", accuracy - baseline_accuracy, **common)],
    )


def _promise(
    plan: DpPlan | GaussianPlan, row: Bound, quantity: Any
) -> tuple[Callable[[float], TradeOff], Finding, dict[str, Any]]:
    """Return the ceiling of each value of a promise, the value that is meant, and what its findings have in common."""
    game = _game(plan)
    delta = plan.delta if quantity == "epsilon" else 0.0

    def ceiling(value: float) -> TradeOff:
        return Claim(quantity, value, delta, plan.adjacency).ceiling(game)

    is_two_steps = plan.adjacency == "add_remove" and plan.sampling == "fixed"
    common = {
        "status": row.status,
        "source": row.source,
        "game": SWAP if plan.sampling == "fixed" else COIN,
        "assumptions": [Term("swap_is_two_steps")] if is_two_steps else [],
    }
    if plan.at_most is None:
        return ceiling, Finding(quantity, getattr(plan, quantity), **common), common
    value = largest(ceiling, plan.at_most, plan.prior)
    method = [Term("bisection", limit=plan.at_most)]
    return ceiling, Finding(f"largest_{quantity}", value, bound_type="lower", method=method, **common), common


def _mean_posterior(curve: TradeOff, prior: float, common: dict[str, Any]) -> Finding:
    """How sure of a member an attacker is, on average: with a delta a single release may prove membership."""
    return Finding(
        "mean_posterior",
        posterior_from_tradeoff(curve, prior),
        operating_point={"prior": prior},
        bound_type="upper",
        **common,
    )


def _game(plan: DpPlan | GaussianPlan) -> Game:
    """One record, in with the probability of the prior."""
    member = np.array([[True], [False]])
    return Game("one record", member, np.ones(1, dtype=bool), 2, plan.prior, sampling=plan.sampling)


def _stated(subject: str, curve: TradeOff, findings: list[Finding]) -> Stated:
    return Stated(subject, findings, [Curve(subject, "", "certified", curve)])
