"""What DP-SGD promises by its accountant, and which claims about it this promise denies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

from leakbound.core.findings import Term
from leakbound.core.numerics import bisect
from leakbound.core.tradeoff import TradeOff
from leakbound.core.tradeoff.claims import AccountantEpsilon, Claim
from leakbound.core.tradeoff.families import Gaussian
from leakbound.dpsgd.accountant import epsilon_at_least
from leakbound.dpsgd.config import DpSgd

DEFAULT_DELTA = 1e-5  # of an epsilon, where no claim names another one
_ACCOUNTED = 1.01  # the accountant rounds epsilon up, by less than a hundredth: a claim of the true mu is not denied


@dataclass(frozen=True)
class AccountantClaim:
    """What DP-SGD promises by its accountant: a whole curve, and the family of those with more or less noise."""

    dpsgd: DpSgd
    adjacency: Literal["add_remove", "replace_one"]
    delta: float

    @cached_property
    def ceiling(self) -> TradeOff:
        """The promised curve."""
        return self.dpsgd.ceiling(self.adjacency)

    @property
    def epsilon(self) -> float:
        """Promised at delta."""
        return self.ceiling.epsilon(self.delta)

    @property
    def claim(self) -> AccountantEpsilon:
        """The promise at delta, epsilon rounded up."""
        epsilon = math.ceil(1000 * self.epsilon) / 1000 if math.isfinite(self.epsilon) else math.inf
        return AccountantEpsilon("epsilon", epsilon, self.delta, self.adjacency)

    @property
    def training(self) -> Term:
        """The training, as the accountant has it."""
        return Term(
            "dpsgd_accountant_fixed" if self.dpsgd.batches == "fixed" else "dpsgd_accountant",
            noise_multiplier=self.dpsgd.noise_multiplier,
            sample_rate=self.dpsgd.sample_rate,
            steps=self.dpsgd.steps,
        )

    def ruled_out(self, p_value: Callable[[TradeOff], float], level: float) -> float:
        """Epsilon of the least noise that the evidence refuses: no noise with a smaller epsilon explains what was seen.

        The curves fall with the noise, and every noise is tested by its whole curve at the same level; a refusal of
        a true one has at most the probability ``level`` (Mahloujifar, Melis & Chaudhuri 2024).
        """

        @cache  # a curve takes a tenth of a second even with coarse steps
        def curve_of(noise: float) -> TradeOff:
            return replace(self.dpsgd, noise_multiplier=noise).ceiling(self.adjacency, coarseness=10.0)

        @cache
        def is_refused(noise: float) -> bool:
            # delta(infinity) > delta: epsilon is infinite, which promises nothing and cannot be refused
            curve = curve_of(noise)
            return p_value(curve) < level and curve.delta(math.inf) <= self.delta

        refused = self.dpsgd.noise_multiplier
        while not is_refused(refused):
            if curve_of(refused).delta(0.01) <= self.delta:
                return 0.0
            refused *= 2
        possible = refused / 2
        while is_refused(possible):  # ends, because with ever less noise epsilon is infinite
            refused, possible = possible, possible / 2
        least_noise = bisect(is_refused, inside=refused, outside=possible, rtol=0.01, geometric=True)
        return curve_of(least_noise).epsilon(self.delta)


@dataclass(frozen=True)
class Denial:
    """Why a training as declared does not keep a claim."""

    reason: Term
    is_certain: bool  # the training gives more; otherwise only the accountant's upper bound is larger


def denied(claim: Claim, promise: AccountantClaim) -> Denial | None:
    """Return why the accountant denies a claim of epsilon or mu; None if it does not.

    A mu is compared by the epsilon that it allows at one delta: what is more there is more than mu.
    """
    dpsgd = promise.dpsgd
    # the rate of fixed batches is that of the neighbours which the game has
    if claim.quantity == "eta" or (dpsgd.batches == "fixed" and claim.adjacency != promise.adjacency):
        return None
    delta = claim.delta or DEFAULT_DELTA  # what is more than epsilon at this delta is more at 0
    given = dpsgd.ceiling(claim.adjacency or promise.adjacency).epsilon(delta)
    is_epsilon = claim.quantity == "epsilon"
    allowed = claim.value if is_epsilon else float(Gaussian(claim.value).epsilon(delta))
    if allowed * (1.0 if is_epsilon else _ACCOUNTED) >= given:
        return None
    least = 0.0
    if claim.adjacency == "add_remove" and dpsgd.batches == "poisson":
        least = epsilon_at_least(dpsgd.noise_multiplier, dpsgd.sample_rate, dpsgd.steps, delta)
    is_certain = least > allowed
    known = {"given": given, "delta": delta} | ({"least": least} if is_certain else {})
    if is_epsilon:
        return Denial(Term("declared_gives_more" if is_certain else "accountant_gives_more", **known), is_certain)
    reason = "declared_gives_more_than_mu" if is_certain else "accountant_gives_more_than_mu"
    return Denial(Term(reason, **known, mu=claim.value, allowed=allowed), is_certain)
