"""The configuration of DP-SGD: sampling, clipping, noise and step size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from leakbound.core.checks import count, non_negative, one_of, positive, probability
from leakbound.core.tradeoff import TradeOff
from leakbound.dpsgd.accountant import dpsgd
from leakbound.releases.specs import from_words


@dataclass(frozen=True)
class DpSgd:
    """Stochastic gradient descent on clipped gradients with Gaussian noise (Abadi et al. 2016, algorithm 1).

    Step t changes the parameters by ``-lr u_t``: ``B u_t`` is the sum of the batch's clipped gradients plus a draw of
    N(0, sigma^2 c^2 I).

    Parameters
    ----------
    noise_multiplier : float
        sigma, the standard deviation of the noise on the sum in units of the clipping norm; 0 for none.
    clip : float
        c, the largest Euclidean norm of a record's gradient; longer ones are scaled down to it.
    sample_rate : float
        q in (0, 1]: the probability that a record is in a batch.
    steps : int
        Number of steps.
    lr : float
        Step size.
    batches : {"poisson", "fixed"}
        Each record independently, or a fixed number of records drawn without replacement.

    Raises
    ------
    ValueError
        In one line: what was given, what is allowed.

    Examples
    --------
    >>> from leakbound.dpsgd.config import DpSgd
    >>> round(DpSgd(noise_multiplier=1.0, sample_rate=0.01, steps=1000).ceiling().epsilon(1e-5), 3)
    1.828
    """

    noise_multiplier: float = 1.0
    clip: float = 1.0
    sample_rate: float = 0.05
    steps: int = 200
    lr: float = 0.5
    batches: Literal["poisson", "fixed"] = "poisson"

    def __post_init__(self) -> None:
        one_of("batches", self.batches, ("poisson", "fixed"))
        checked = {
            "noise_multiplier": non_negative("noise_multiplier", self.noise_multiplier),
            "clip": positive("clip", self.clip),
            "sample_rate": probability("sample_rate", positive("sample_rate", self.sample_rate)),
            "steps": count("steps", self.steps),
            "lr": positive("lr", self.lr),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> DpSgd:
        """Build from a mapping, as a table of a plan.

        Raises
        ------
        ValueError
            For an unknown name, with the nearest known one, and as the class itself.
        """
        return from_words(cls, words, "DP-SGD")

    def describe(self) -> dict[str, Any]:
        """Return every field as plain data."""
        return asdict(self)

    def ceiling(
        self, adjacency: Literal["add_remove", "replace_one"] = "add_remove", coarseness: float = 1.0
    ) -> TradeOff:
        """Bound every attack, if the training is correct, by ``leakbound.dpsgd.accountant.dpsgd``.

        For batches of fixed size ``sample_rate`` must be at least their fraction of the records; if the rate was
        rounded, or the size of the data is not known, that may need a larger one.

        Parameters
        ----------
        adjacency : {"add_remove", "replace_one"}
        coarseness : float
            As in ``leakbound.dpsgd.accountant.dpsgd``.

        Returns
        -------
        TradeOff

        Raises
        ------
        ValueError
            Without noise, which gives no guarantee.
        """
        return dpsgd(self.noise_multiplier, self.sample_rate, self.steps, adjacency, coarseness, batches=self.batches)
