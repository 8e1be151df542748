"""Claims: what was promised of a release, as the ceiling of the game that was actually played."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from leakbound.core.checks import non_negative, probability
from leakbound.core.tradeoff import EpsilonDelta, Gaussian, Piecewise, TradeOff
from leakbound.core.types import Game, NotApplicable

Adjacency = Literal["add_remove", "replace_one"]


@dataclass(frozen=True)
class Claim:
    """A promise in the units it was made in.

    Parameters
    ----------
    quantity : {"epsilon", "mu", "eta"}
        Of (epsilon, delta)-DP, of Gaussian DP, or of membership privacy (no record is guessed better than
        the better prior guess + eta).
    value : float
    delta : float
        Of (epsilon, delta)-DP.
    adjacency : {"add_remove", "replace_one"} or None
        Neighbouring data sets; None for eta, which names its game itself.

    Examples
    --------
    >>> Claim("epsilon", 4.0, 1e-5, "add_remove").text
    'epsilon = 4, delta = 1e-05, add/remove'
    """

    quantity: Literal["epsilon", "mu", "eta"]
    value: float
    delta: float = 0.0
    adjacency: Adjacency | None = None

    def __post_init__(self) -> None:
        self._check_value()
        probability("delta", self.delta)
        if (self.adjacency is None) != (self.quantity == "eta"):
            raise ValueError("epsilon and mu need an adjacency (add_remove or replace_one); eta takes none")

    def _check_value(self) -> None:
        non_negative(self.quantity, self.value)

    @property
    def text(self) -> str:
        """The claim in words."""
        words = [f"{self.quantity} = {self.value:g}"]
        if self.delta:
            words.append(f"delta = {self.delta:g}")
        if self.adjacency:
            words.append(self.adjacency.replace("_", "/" if self.adjacency == "add_remove" else " "))
        return ", ".join(words)

    def in_game(self, game: Game) -> Claim:
        """Translate the claim to the neighbours that the game has: one record swapped, or one in or out.

        A fixed-size half swaps one record for another, which is two steps of adding and removing:
        (epsilon, delta) becomes (2 epsilon, (1 + e^epsilon) delta) (group privacy, Dwork & Roth 2014,
        section 2.3), mu becomes 2 mu (Dong, Roth & Su 2022, theorem 2.14).

        Raises
        ------
        NotApplicable
            For a replace-one claim where records are in or out by coins of their own.
        """
        if self.adjacency == "add_remove" and game.sampling == "fixed":
            if self.quantity == "mu":
                return Claim("mu", Gaussian(self.value).doubled().mu, 0.0, "replace_one")
            epsilon, delta = EpsilonDelta(self.value, self.delta).doubled().promised
            return Claim("epsilon", epsilon, delta, "replace_one")
        if self.adjacency == "replace_one" and game.sampling == "poisson":
            raise NotApplicable("replace_one_by_coins")
        return self

    def ceiling(self, game: Game) -> TradeOff:
        """Return the curve below which no attacker's fnr can be, in the game that was played.

        eta at prior 1/2 is EpsilonDelta(0, 2 eta); at a prior p the line
        ``p fnr + (1 - p) fpr >= min(p, 1 - p) - eta`` (its mirror image is the attacker who guesses the
        opposite, above the diagonal).
        """
        played = self.in_game(game)
        if played.quantity == "mu":
            return Gaussian(played.value)
        if played.quantity == "epsilon":
            return EpsilonDelta(played.value, played.delta)
        if game.prior == 0.5:
            return EpsilonDelta(0.0, min(1.0, 2 * played.value))
        room = max(0.0, min(game.prior, 1 - game.prior) - played.value)
        return Piecewise([0.0, room / (1 - game.prior)], [room / game.prior, 0.0])


class AccountantEpsilon(Claim):
    """The epsilon of an accountant at a delta, which is infinite where the delta is too small for the noise.

    Parameters
    ----------
    quantity : {"epsilon"}
    value : float
        Not negative.
    delta : float
    adjacency : {"add_remove", "replace_one"}

    Examples
    --------
    >>> AccountantEpsilon("epsilon", float("inf"), 1e-9, "add_remove").text
    'epsilon = inf, delta = 1e-09, add/remove'
    """

    def _check_value(self) -> None:
        if self.value != math.inf:
            super()._check_value()
