"""The noise that other theories need for the same limit: differential privacy, PAC privacy, averaged information.

Each gives Gaussian or Laplace noise for a limit on membership inference, with which a calibrated noise can be
compared. Their promises differ: differential privacy protects every record of any data, PAC privacy every record of
this data, and averaged information a record drawn at random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Num

from leakbound.core.checks import count, positive, probability
from leakbound.noise.calibration import calibrate
from leakbound.noise.gaussian import GaussianNoise
from leakbound.noise.information import Structure, allowed_stick, information_of_eta, noise_of_information
from leakbound.noise.shifts import Shifts

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Baseline:
    """A row of a comparison: the noise that a theory needs.

    Parameters
    ----------
    name : str
        For example "DP Laplace".
    promise : {"any_data", "every", "average"}
        Every record of any data (differential privacy), every record of this data, or a record drawn at random.
    rms : float
        Root mean square of the noise over all coordinates, in units of the statistic.
    covariance : array of shape (d, d)
        Of the noise, in squared units of the statistic.
    source : str
        Key of the paper, and its theorem.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import Baseline
    >>> Baseline.of("isotropic noise", "every", np.diag([4.0, 4.0]), "by hand").rms
    2.0
    """

    name: str
    promise: Literal["any_data", "every", "average"]
    rms: float
    covariance: Float[Array, "d d"]
    source: str

    @classmethod
    def of(
        cls,
        name: str,
        promise: Literal["any_data", "every", "average"],
        covariance: Float[Array, "d d"],
        source: str,
    ) -> Baseline:
        """Make a row, and compute its root mean square."""
        return cls(name, promise, math.sqrt(np.trace(covariance) / len(covariance)), covariance, source)


def dp_baselines(
    eta: float, d: int, sensitivity: tuple[float, float], delta: float, prior: float = 0.5
) -> list[Baseline]:
    """Compute the noise of differential privacy for a limit: Laplace, Gaussian, and Gaussian by (epsilon, delta).

    Parameters
    ----------
    eta : float
        Accuracy above the better prior guess that is allowed, > 0 and < min(prior, 1 - prior).
    d : int
        Number of coordinates of the statistic.
    sensitivity : pair of float
        Largest l1 and l2 distance between the results on two data sets that differ in one record, after
        clipping, > 0. For the mean of k records with every coordinate clipped to [-c, c]: 2 c d/k and 2 c sqrt(d)/k.
    delta : float
        Of the third row, in (0, 1) and below eta/min(prior, 1 - prior).
    prior : float
        k/n, the fraction of the records that are in D.

    Returns
    -------
    list of Baseline
        Three rows, in this order.

    Examples
    --------
    >>> from leakbound.noise import dp_baselines
    >>> for row in dp_baselines(eta=0.05, d=3, sensitivity=(0.012, 0.007), delta=1e-5):
    ...     print(f"{row.name:32} {row.rms:.4f}")
    DP Laplace                       0.0846
    DP Gaussian                      0.0279
    DP Gaussian by (epsilon, delta)  0.1138
    """
    l1, l2 = sensitivity
    d = count("d", d)
    scales = (
        math.sqrt(2) * dp_laplace_scale(eta, l1, prior),
        dp_gaussian_scale(eta, l2, prior=prior),
        dp_gaussian_scale(eta, l2, delta, prior=prior),
    )
    names = ("DP Laplace", "DP Gaussian", "DP Gaussian by (epsilon, delta)")
    sources = ("kairouz2015, Theorem 2.1", "dong2022, eq. 6", "balle2018, Theorem 8")
    return [
        Baseline(name, "any_data", scale, np.diag(np.full(d, scale * scale)), source)
        for name, scale, source in zip(names, scales, sources, strict=True)
    ]


def information_baselines(eta: float, covariance: Num[Array, "d d"], n: int, prior: float = 0.5) -> list[Baseline]:
    """Compute the noise that mutual information needs: PAC privacy with two shapes, and the average over the records.

    Parameters
    ----------
    eta : float
        > 0 and < min(prior, 1 - prior).
    covariance : array of shape (d, d)
        Of the statistic over the draw of D.
    n : int
        Number of records of the data set.
    prior : float
        k/n.

    Returns
    -------
    list of Baseline
        For "averaged information" each record must be in D independently with probability ``prior``.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import information_baselines
    >>> for row in information_baselines(0.05, np.diag([0.004, 0.001, 0.001]), n=1000):
    ...     print(f"{row.name:28} {row.promise:8} {row.rms:.4f}")
    PAC privacy, shape of Sigma  every    0.7733
    PAC privacy, least noise     every    0.7290
    averaged information         average  0.0077
    """
    total, average = information_of_eta(eta, prior), count("n", n) * information_of_eta(eta, prior)
    proof = "xiao2023, Gaussian noise on a deterministic mechanism"
    rows: list[tuple[str, Literal["every", "average"], float, Structure, str]] = [
        ("PAC privacy, shape of Sigma", "every", total, "isotropic", proof),
        ("PAC privacy, least noise", "every", total, "least_trace", proof),
        ("averaged information", "average", average, "least_trace", f"chain rule of mutual information; {proof}"),
    ]
    return [
        Baseline.of(name, promise, noise_of_information(covariance, nats, structure), source)
        for name, promise, nats, structure, source in rows
    ]


def dp_laplace_scale(eta: float, sensitivity: float, prior: float = 0.5) -> float:
    """Compute the scale of Laplace noise on every coordinate whose differential privacy promises eta.

    It is ``sensitivity/epsilon`` with ``epsilon = log((1 - m + eta)/(m - eta))``, m = min(prior, 1 - prior): the
    largest epsilon that keeps eta for every epsilon-DP algorithm (Kairouz, Oh & Viswanath 2015, theorem 2.1), 2 atanh(2
    eta) for prior 1/2.
    Source: izzo2022, section 4.

    Parameters
    ----------
    eta : float
        > 0 and < min(prior, 1 - prior).
    sensitivity : float
        In the l1 norm, of replacing one record, after clipping, > 0.
    prior : float
        k/n, in (0, 1).

    Returns
    -------
    float
        The scale; the standard deviation is sqrt(2) times as large.

    Examples
    --------
    >>> from leakbound.noise import dp_laplace_scale
    >>> round(dp_laplace_scale(0.1, sensitivity=1.0), 6)
    2.466303
    """
    return positive("sensitivity", sensitivity) / _epsilon(*allowed_stick(eta, prior), 0.0)


def dp_gaussian_scale(eta: float, sensitivity: float, delta: float | None = None, prior: float = 0.5) -> float:
    """Compute the standard deviation of Gaussian noise whose differential privacy promises eta.

    Without delta the whole trade-off curve ``N(0, 1)`` against ``N(mu, 1)`` is used, which needs the least noise:
    ``mu = 2 Phi^-1(1/2 + eta)`` for prior 1/2. With delta a single (epsilon, delta) is used: the largest epsilon for
    which ``m (delta + (1 - delta) (e^epsilon - g)/(e^epsilon + 1)) <= eta``, m the smaller prior and g = (1 - m)/m,
    and the least noise that keeps it (Balle & Wang 2018, theorem 8). That is the noise for somebody who knows only
    the (epsilon, delta) of a mechanism.

    Parameters
    ----------
    eta : float
        > 0 and < min(prior, 1 - prior).
    sensitivity : float
        In the l2 norm, of replacing one record, after clipping, > 0.
    delta : float, optional
        In (0, 1) and below eta/min(prior, 1 - prior).
    prior : float
        k/n, in (0, 1).

    Returns
    -------
    float
        In units of the sensitivity.

    Examples
    --------
    >>> from leakbound.noise import dp_gaussian_scale
    >>> round(dp_gaussian_scale(0.1, sensitivity=1.0), 6), round(dp_gaussian_scale(0.1, 1.0, delta=1e-5), 4)
    (1.973577, 8.5231)
    """
    smaller, stick = allowed_stick(eta, prior)
    if delta is not None:
        delta = probability("delta", delta, open_ends=True)
        if delta >= stick:
            raise ValueError(f"delta must be < {stick:g}, eta over the smaller prior, got {delta:g}")
        # a hockey stick of order e^epsilon is eta/m at the smaller prior m = 1/(e^epsilon + 1)
        smaller, stick = 1 / (math.exp(_epsilon(smaller, stick, delta)) + 1), delta
    worst = Shifts(np.array([[positive("sensitivity", sensitivity)]]), "largest", d=1, prior=smaller)
    noise = calibrate(worst, smaller * stick, GaussianNoise)
    return noise.rms(1)


def _epsilon(smaller: float, stick: float, delta: float) -> float:
    """Compute the largest epsilon with ``delta + (1 - delta) (e^epsilon - g)/(e^epsilon + 1) <= stick``."""
    rest = (stick - delta) / (1 - delta)  # e^epsilon = (g + rest)/(1 - rest)
    return math.log1p(-smaller) - math.log(smaller) + math.log1p(rest * smaller / (1 - smaller)) - math.log1p(-rest)
