"""The noise that other methods need for the same limit on membership inference, on the same statistic and data.

They promise other things. Differential privacy protects every record of any data, so it needs a bound of what one
record can change; PAC privacy protects every record of these data; averaged information a record drawn at random.
Run it for the wages of docs/limit.md: ``python -m benchmarks.other_methods``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, xlog1py, xlogy

from leakbound.core.checks import count, one_of
from leakbound.core.seeds import stream
from leakbound.core.types import NotApplicable, Points
from leakbound.noise import (
    GaussianNoise,
    Mahalanobis,
    best_covariance,
    calibrate,
    dp_gaussian_scale,
    dp_laplace_scale,
    information_of_eta,
    izzo,
    moment,
    noise_of_information,
)
from leakbound.protection.promises.anyone.sensitivity import Sensitivity
from leakbound.protection.promises.anyone.sensitivity import sensitivity as of_declared
from leakbound.protection.promises.drawn.spread import Spread, check_size, covariance_of
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.features import Columns, SecondMoments, columns_of, numbers
from leakbound.releases.statistics.statistic import Covariance, Linear, named
from leakbound.runtime.observe import DataSets, Execution

Array = np.ndarray
Declared = Mapping[str, tuple[float, float]]
Ranges = tuple[Float[Array, " p"], Float[Array, " p"]]  # the smallest and the largest value of each column
_DELTA = 1e-5  # of (epsilon, delta)-DP, as is the custom
_ROUNDING = 2.0**-26  # of the deviation: what a grid needs, 1,024 steps of at least 2^-36


def compared(
    mechanism: Mechanism, eta: float, n_draws: int, seed: int, declared: Declared | None = None
) -> dict[str, Float[Array, " d"] | NotApplicable]:
    """Compute the deviations of the noise with which no attacker is more than eta above the better prior guess.

    >>> ages = Points(np.random.default_rng(0).uniform(20, 60, size=(1000, 1)))
    >>> mean, declared = Mechanism.of(named("mean"), ages), {"x0": (-60, 60)}
    >>> for name, noise in compared(mean, eta=0.05, n_draws=100, seed=0, declared=declared).items():
    ...     print(f"{name:20} {noise[0]:9.4f}")
    dp_laplace              1.6914
    dp_gaussian             0.9549
    dp_gaussian_pair        3.9013
    pac_shape_of_sigma      3.5895
    pac_least_noise         3.5895
    averaged_information    0.0024
    izzo_printed         7730.8435
    izzo_gamma           7730.8435
    moment_bound            2.8661
    """
    information_of_eta(eta, mechanism.prior)  # refuses an eta out of range
    count("n_draws", n_draws, least=2)
    # For a covariance that is not known from the features, n_draws data sets of fixed size are drawn, and as many in
    # which each record is drawn independently. A column without a declared range has that of the data, which favours
    # differential privacy.
    setting = Setting(mechanism, eta, dict(declared or {}), n_draws, seed)
    found: dict[str, Float[Array, " d"] | NotApplicable] = {}
    for name, noise in METHODS.items():
        try:
            found[name] = noise(setting)
        except NotApplicable as reason:
            found[name] = reason
    return found


@dataclass(frozen=True, eq=False)
class Setting:
    """What all methods are compared on."""

    mechanism: Mechanism
    eta: float
    declared: Declared
    n_draws: int
    seed: int

    @property
    def delta(self) -> float:
        """Of (epsilon, delta)-DP: the usual one, or less where that alone would exceed eta."""
        smaller_prior = min(self.mechanism.prior, 1 - self.mechanism.prior)
        return min(_DELTA, self.eta / smaller_prior / 2)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """Of the statistic of k records."""
        return sensitivity(self.mechanism, None if self.mechanism.counts else ranges_of(self.mechanism, self.declared))

    @cached_property
    def fixed_size(self) -> Spread:
        """The covariance over uniform k-subsets, if there is one."""
        return Spread.over_subsets(self.mechanism, self.n_draws, self.seed)

    @cached_property
    def poisson(self) -> Spread:
        """The covariance where each record is drawn independently, if there is one."""
        return _poisson(self.mechanism, self.n_draws, self.seed)


def ranges_of(mechanism: Mechanism, declared: Declared) -> Ranges:
    """Take the declared range of each column, else the range of the data."""
    names = columns_of(mechanism.points.x)
    for name in declared:
        one_of("column of ranges", name, names)
    try:
        values = numbers(mechanism.points.x)
    except ValueError as reason:
        raise NotApplicable(str(reason)) from None
    low, high = values.min(axis=0), values.max(axis=0)
    for column, name in enumerate(names):
        if name in declared:
            low[column], high[column] = declared[name]
    return low, high


def sensitivity(mechanism: Mechanism, ranges: Ranges | None) -> Sensitivity:
    """Bound how far replacing one of k records can move a statistic, whatever the data.

    Means and sums of records that all have a value: each coordinate by at most the width of its range, over k for a
    mean. Products of columns around a public centre m, each column in units of ``C_i = max |x_i - m_i|``: ``uu^T - vv^T
    = (st^T + ts^T)/2``, s = u + v and t = u - v, where ``|s_i| + |t_i| <= 2``, so the p^2 entries of the whole matrix
    sum to at most p^2, those of the triangle to (p^2 + p)/2, and the triangle has at most p in l2; where no column
    changes its sign around the centre, each entry moves by at most 1. Covariance with divisor k: the other k - 1
    records have a mean r, and the covariance moves by ``(k - 1)/k^2`` times ``(u-r)(u-r)^T - (v-r)(v-r)^T``, each entry
    of which is at most the product of the two widths, since ``u_i - r_i`` and ``v_i - r_i`` lie in an interval of that
    length around 0; reached by records in opposite corners.
    """
    statistic, d, k = mechanism.statistic, mechanism.d, mechanism.k
    features = statistic.features if isinstance(statistic, Linear) else None
    if not isinstance(statistic, Covariance) and not isinstance(features, Columns | SecondMoments):
        return of_declared(mechanism, n_records=k)
    if ranges is None:
        raise NotApplicable("needs the range of each column")
    low, high = ranges
    width, p = high - low, len(low)
    first, second = np.triu_indices(p)
    if isinstance(statistic, Covariance):
        if k == 1:
            raise NotApplicable("the covariance of a single record is 0 whatever the record")
        return Sensitivity(width[first] * width[second] * (k - 1) / k**2, float(d), math.sqrt(d))
    if not isinstance(features, SecondMoments):
        return Sensitivity(width / mechanism.divisor, float(d), math.sqrt(d))
    centre = np.zeros(p) if features.centre is None else np.asarray(features.centre)
    below, above = low - centre, high - centre
    largest = np.maximum(np.abs(below), np.abs(above))
    has_one_sign = bool(((below >= 0) | (above <= 0)).all())
    two = min(math.sqrt(d), float(p)) if has_one_sign else float(p)
    return Sensitivity(largest[first] * largest[second] / mechanism.divisor, float(d), two)


def _dp_laplace(setting: Setting) -> Float[Array, " d"]:
    bound, scale = setting.sensitivity, dp_laplace_scale(setting.eta, 1.0, setting.mechanism.prior)
    return math.sqrt(2) * scale * bound.l1 * bound.unit


def _dp_gaussian(setting: Setting, *, by_pair: bool = False) -> Float[Array, " d"]:
    bound, delta = setting.sensitivity, setting.delta if by_pair else None
    return dp_gaussian_scale(setting.eta, 1.0, delta, setting.mechanism.prior) * bound.l2 * bound.unit


def _pac_shape_of_sigma(setting: Setting) -> Float[Array, " d"]:
    # this shape does not depend on units: its numbers are better in those of the statistic's deviation
    return _information(setting, setting.fixed_size, setting.fixed_size.std, "isotropic")


def _pac_least_noise(setting: Setting) -> Float[Array, " d"]:
    return _information(setting, setting.fixed_size, np.ones(len(setting.fixed_size.std)), "least_trace")


def _averaged_information(setting: Setting) -> Float[Array, " d"]:
    spread = setting.poisson
    return _information(setting, spread, np.ones(len(spread.std)), "least_trace", setting.mechanism.n)


def _information(
    setting: Setting,
    spread: Spread,
    unit: Float[Array, " r"],
    structure: Literal["isotropic", "least_trace"],
    n_sharing: int = 1,
) -> Float[Array, " d"]:
    """Compute the noise that limits the mutual information, which ``n_sharing`` records may share.

    An average over n records allows n times the information of one.
    """
    n = setting.mechanism.n
    nats = n_sharing * information_of_eta(setting.eta, setting.mechanism.prior)
    covariance = noise_of_information(spread.covariance / unit / unit[:, None], nats, structure)
    rms = unit * np.sqrt(np.diagonal(covariance))
    if (rms < _ROUNDING * spread.std).any():
        raise NotApplicable(f"lost in the rounding of floating point: {n:,} records share the information")
    return spread.all_coordinates(rms)


def _izzo(setting: Setting, radius: Literal["laplace-literal", "gamma"]) -> Float[Array, " d"]:
    """Compute the noise of Algorithm 1 of Izzo et al. (2022) with second moments."""
    spread = setting.fixed_size
    n_varying = len(spread.std)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "laplace-literal is for reproduction ..."
        noise = izzo(np.ones(n_varying), setting.eta, radius=radius)
    return spread.all_coordinates(spread.std * noise.rms(n_varying))


def _moment(setting: Setting) -> Float[Array, " d"]:
    """Compute Gaussian noise of the best shape for the bound by the second moment of the outputs alone."""
    spread = setting.fixed_size
    shape = best_covariance(spread.covariance / spread.std.max() ** 2, kappa=1.0)  # the scale follows
    norm = Mahalanobis(shape)
    sigma = math.sqrt(float(np.trace(np.linalg.solve(norm.shape, spread.covariance))))
    shifts = moment(sigma, len(shape), setting.mechanism.prior, norm)
    noise = calibrate(shifts, setting.eta, partial(GaussianNoise, shape=shape))
    return spread.all_coordinates(noise.rms(len(shape)) * np.sqrt(np.diagonal(shape) / np.diagonal(shape).mean()))


METHODS: Mapping[str, Callable[[Setting], Float[Array, " d"]]] = {
    "dp_laplace": _dp_laplace,  # kairouz2015, Theorem 2.1
    "dp_gaussian": _dp_gaussian,  # dong2022, eq. 6
    "dp_gaussian_pair": partial(_dp_gaussian, by_pair=True),  # balle2018, Theorem 8
    "pac_shape_of_sigma": _pac_shape_of_sigma,  # xiao2023, Gaussian noise on a deterministic mechanism
    "pac_least_noise": _pac_least_noise,  # xiao2023
    "averaged_information": _averaged_information,  # chain rule of mutual information; to a random record
    "izzo_printed": partial(_izzo, radius="laplace-literal"),  # izzo2022, Algorithm 1; certifies nothing
    "izzo_gamma": partial(_izzo, radius="gamma"),  # izzo2022, Theorem 7 and Corollary 8
    "moment_bound": _moment,  # izzo2022, Theorem 7 with the least constant
}


def _poisson(mechanism: Mechanism, n_draws: int, seed: int) -> Spread:
    """Compute it where each record is in D independently with probability k/n.

    A sum has the covariance ``pi (1 - pi) sum f f^T``, whose size tells something as well. A mean of M records has,
    given M, that of a draw of fixed size and the same expectation, hence ``E[1/M - 1/n] S``; where nobody is drawn
    the mean of all records is released.
    """
    check_size(mechanism.d)
    if mechanism.features is None:
        rng = stream(seed, "calibrate", "compare independent", "draws")
        member = np.empty((n_draws, mechanism.n), dtype=bool)
        for row in member:
            row[:] = rng.random(mechanism.n) < mechanism.prior
        fit_seeds = stream(seed, "calibrate", "compare independent", "seeds").integers(2**32, size=n_draws)
        return Spread.sampled(mechanism, DataSets(member, fit_seeds))
    if mechanism.divisor > 1:
        return Spread.of(_inverse_size(mechanism.n, mechanism.prior) * covariance_of(mechanism.features))
    with np.errstate(over="ignore", invalid="ignore"):
        total = mechanism.features.T @ mechanism.features
    return Spread.of(mechanism.prior * (1 - mechanism.prior) * total)


def _inverse_size(n: int, prior: float) -> float:
    """Compute ``E[1/M - 1/n; M >= 1]`` of a binomial number M."""
    size = np.arange(1.0, n + 1)
    choices = gammaln(n + 1) - gammaln(size + 1) - gammaln(n - size + 1)
    probability = np.exp(choices + xlogy(size, prior) + xlog1py(n - size, -prior))
    return float(probability @ (1 / size - 1 / n))


def survey_wages() -> Points:
    """Make the wages of docs/limit.md, n = 1000 and seed 0."""
    rng = np.random.default_rng(0)
    rng.choice(["care", "trade", "industry", "mining"], 1000, p=[0.4, 0.35, 0.24, 0.01])
    school, years = rng.integers(8, 19, 1000), rng.integers(0, 40, 1000)
    wage = np.minimum(80, 12 * np.exp(0.06 * school + 0.01 * years + rng.normal(0, 0.35, 1000)))
    return Points(wage.round(2)[:, None])


def main() -> None:
    """Print a line for each method."""
    mean = Mechanism.of(named("mean"), survey_wages(), execution=Execution(n_jobs=1))
    for name, noise in compared(mean, 0.05, 1000, 0, {"x0": (0.0, 80.0)}).items():
        print(f"{name:22}", noise if isinstance(noise, NotApplicable) else f"{noise[0]:12.4g}")


if __name__ == "__main__":
    main()
