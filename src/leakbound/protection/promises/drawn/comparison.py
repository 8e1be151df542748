"""The noise that other methods need for the same limit on membership inference, on the same statistic and data.

They promise other things. Differential privacy protects every record of any data, so it needs a bound of what one
record can change; PAC privacy protects every record of these data; averaged information a record drawn at random.
Where a method does not apply, its row says why.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import gammaln, xlog1py, xlogy

from leakbound.core.checks import count
from leakbound.core.findings import AVERAGE, EVERY, Finding, Scope, Status, Term
from leakbound.core.lengths import p_norm
from leakbound.core.reasons import as_reason
from leakbound.core.seeds import stream
from leakbound.core.types import NotApplicable
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
from leakbound.protection.promises.anyone.sensitivity import Ranges, Sensitivity, sensitivity
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.statistic import Linear
from leakbound.runtime.observe import DataSets

Array = np.ndarray
_DELTA = 1e-5  # of (epsilon, delta)-DP, as is the custom
_MOST = 2000  # numbers whose covariance is made: its eigenvectors take seconds
_ROUNDING = 2.0**-26  # of the deviation: what a grid needs, 1,024 steps of at least 2^-36
_INDEPENDENT = Term("poisson_draws")
_XIAO = "xiao2023, Gaussian noise on a deterministic mechanism"


def compared(
    mechanism: Mechanism,
    eta: float,
    n_draws: int,
    seed: int,
    declared: Mapping[str, tuple[float, float]] | None = None,
) -> list[Finding]:
    """Noise of other methods with which no attacker is more than eta above the better prior guess.

    >>> from leakbound.releases.statistics.statistic import named
    >>> from leakbound.core.types import Points
    >>> ages = Points(np.random.default_rng(0).uniform(20, 60, size=(1000, 1)))
    >>> mean, declared = Mechanism.of(named("mean"), ages), {"x0": (-60, 60)}
    >>> for row in compared(mean, eta=0.05, n_draws=100, seed=0, declared=declared):
    ...     print(f"{row.release:20} {row.value:9.4f} {row.status}")
    dp_laplace              1.6914 certified
    dp_gaussian             0.9549 certified
    dp_gaussian_pair        3.9013 certified
    pac_shape_of_sigma      3.5895 certified
    pac_least_noise         3.5895 certified
    averaged_information    0.0024 certified
    izzo_printed         7730.8435 estimated
    izzo_gamma           7730.8435 certified
    moment_bound            2.8661 certified
    """
    information_of_eta(eta, mechanism.prior)  # refuses an eta out of range
    count("n_draws", n_draws, least=2)
    # For a covariance that is not known from the features, n_draws data sets of fixed size are drawn, and as many in
    # which each record is drawn independently. A column without a declared range has that of the data, which favours
    # differential privacy, and is reported.
    setting = _Setting(mechanism, eta, dict(declared or {}), n_draws, seed)
    return [_compared(setting, method) for method in METHODS]


def noise_of(mechanism: Mechanism, eta: float, method: str, *, n_draws: int, seed: int) -> Float[Array, " d"]:
    """Compute the standard deviation of the noise of one method that needs no ranges."""
    (row,) = [each for each in METHODS if each.id == method]
    return row.noise(_Setting(mechanism, eta, {}, n_draws, seed)).rms


def _compared(setting: _Setting, method: Method) -> Finding:
    """Report the noise of a method, or why it does not apply."""
    operating_point = {"delta": setting.delta} if method.takes_delta else {}
    fields: dict[str, Any] = {"scope": method.scope, "operating_point": operating_point}
    try:
        noise = method.noise(setting)
    except NotApplicable as reason:
        fields |= {"method": method.promise, "assumptions": method.assumptions, "reason": as_reason(reason)}
        return _row(setting.mechanism, "noise_rms", method.id, method.source, None, **fields)
    fields |= {"method": [*method.promise, *noise.method], "assumptions": (*method.assumptions, *noise.assumptions)}
    return _row(setting.mechanism, "noise_rms", method.id, method.source, noise.rms, status=noise.status, **fields)


@dataclass(frozen=True, eq=False)
class _Noise:
    """The noise of a method."""

    rms: Float[Array, " d"]
    status: Status
    method: Sequence[Term] = ()
    assumptions: Sequence[Term] = ()


@dataclass(frozen=True, eq=False)
class _Setting:
    """What all methods are compared on."""

    mechanism: Mechanism
    eta: float
    declared: Mapping[str, tuple[float, float]]
    n_draws: int
    seed: int

    @property
    def delta(self) -> float:
        """Of (epsilon, delta)-DP: the usual one, or less where that alone would exceed eta."""
        smaller_prior = min(self.mechanism.prior, 1 - self.mechanism.prior)
        return min(_DELTA, self.eta / smaller_prior / 2)

    @cached_property
    def ranges(self) -> Ranges | None:
        """Of each column; counts need none."""
        return None if self.mechanism.counts else Ranges.of(self.mechanism, self.declared)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """Of the statistic of k records."""
        return sensitivity(self.mechanism, self.ranges)

    @cached_property
    def _over_subsets(self) -> _Spread | NotApplicable:
        return _or_reason(partial(_fixed_size, self.mechanism, self.n_draws, self.seed))

    @cached_property
    def _over_poisson_draws(self) -> _Spread | NotApplicable:
        return _or_reason(partial(_poisson, self.mechanism, self.n_draws, self.seed))

    @property
    def fixed_size(self) -> _Spread:
        """The covariance over uniform k-subsets, if there is one."""
        return _known(self._over_subsets)

    @property
    def poisson(self) -> _Spread:
        """The covariance where each record is drawn independently, if there is one."""
        return _known(self._over_poisson_draws)


@dataclass(frozen=True)
class Method:
    """A method that is compared."""

    id: str
    promise: tuple[Term, ...]
    source: str
    noise: Callable[[_Setting], _Noise]
    scope: Scope = EVERY
    assumptions: tuple[Term, ...] = ()
    takes_delta: bool = False


def _differential_privacy(setting: _Setting, rms: float, norm: Literal["l1", "l2"]) -> _Noise:
    """Scale the noise for a sensitivity of 1 by that of the statistic, in the unit of each coordinate."""
    bound, ranges = setting.sensitivity, setting.ranges
    length = bound.l1 if norm == "l1" else bound.l2
    if ranges is None:
        return _Noise(rms * length * bound.unit, "certified")
    return _Noise(rms * length * bound.unit, ranges.status, assumptions=ranges.assumptions(setting.mechanism))


def _dp_laplace(setting: _Setting) -> _Noise:
    scale = dp_laplace_scale(setting.eta, 1.0, setting.mechanism.prior)
    return _differential_privacy(setting, math.sqrt(2) * scale, "l1")


def _dp_gaussian(setting: _Setting) -> _Noise:
    scale = dp_gaussian_scale(setting.eta, 1.0, prior=setting.mechanism.prior)
    return _differential_privacy(setting, scale, "l2")


def _dp_gaussian_pair(setting: _Setting) -> _Noise:
    scale = dp_gaussian_scale(setting.eta, 1.0, setting.delta, prior=setting.mechanism.prior)
    return _differential_privacy(setting, scale, "l2")


def _pac_shape_of_sigma(setting: _Setting) -> _Noise:
    # this shape does not depend on units: its numbers are better in those of the statistic's deviation
    return _information(setting, setting.fixed_size, setting.fixed_size.std, "isotropic")


def _pac_least_noise(setting: _Setting) -> _Noise:
    spread = setting.fixed_size
    return _information(setting, spread, np.ones(len(spread.std)), "least_trace")


def _averaged_information(setting: _Setting) -> _Noise:
    spread = setting.poisson
    return _information(setting, spread, np.ones(len(spread.std)), "least_trace", setting.mechanism.n)


def _information(
    setting: _Setting,
    spread: _Spread,
    unit: Float[Array, " r"],
    structure: Literal["isotropic", "least_trace"],
    n_sharing: int = 1,
) -> _Noise:
    """Compute the noise that limits the mutual information, which ``n_sharing`` records may share.

    An average over n records allows n times the information of one.
    """
    n = setting.mechanism.n
    nats = n_sharing * information_of_eta(setting.eta, setting.mechanism.prior)
    covariance = noise_of_information(spread.covariance / unit / unit[:, None], nats, structure)
    rms = unit * np.sqrt(np.diagonal(covariance))
    if (rms < _ROUNDING * spread.std).any():
        raise NotApplicable("lost_in_rounding", n=n)
    return _Noise(spread.all_coordinates(rms), spread.status, [spread.method])


def _izzo(setting: _Setting, radius: Literal["laplace-literal", "gamma"]) -> _Noise:
    """Compute the noise of Algorithm 1 of Izzo et al. (2022) with second moments."""
    spread = setting.fixed_size
    n_varying = len(spread.std)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "laplace-literal is for reproduction ..."
        noise = izzo(np.ones(n_varying), setting.eta, radius=radius)
    # as printed nothing is certified, however large the noise: its sigma is that of the data in use
    status = "estimated" if radius == "laplace-literal" else spread.status
    return _Noise(spread.all_coordinates(spread.std * noise.rms(n_varying)), status, [spread.method])


def _moment(setting: _Setting) -> _Noise:
    """Compute Gaussian noise of the best shape for the bound by the second moment of the outputs alone."""
    spread = setting.fixed_size
    shape = best_covariance(spread.covariance / spread.std.max() ** 2, kappa=1.0)  # the scale follows
    norm = Mahalanobis(shape)
    sigma = math.sqrt(float(np.trace(np.linalg.solve(norm.shape, spread.covariance))))
    shifts = moment(sigma, len(shape), setting.mechanism.prior, norm)
    noise = calibrate(shifts, setting.eta, partial(GaussianNoise, shape=shape))
    rms = noise.rms(len(shape)) * np.sqrt(np.diagonal(shape) / np.diagonal(shape).mean())
    return _Noise(spread.all_coordinates(rms), spread.status, [spread.method])


_DP, _EVERY = (Term("dp_replace_one"),), (Term("information_every"),)
METHODS = (
    Method("dp_laplace", _DP, "kairouz2015, Theorem 2.1", _dp_laplace),
    Method("dp_gaussian", _DP, "dong2022, eq. 6", _dp_gaussian),
    Method("dp_gaussian_pair", _DP, "balle2018, Theorem 8", _dp_gaussian_pair, takes_delta=True),
    Method("pac_shape_of_sigma", _EVERY, _XIAO, _pac_shape_of_sigma),
    Method("pac_least_noise", _EVERY, _XIAO, _pac_least_noise),
    Method(
        "averaged_information",
        (Term("information_average"),),
        f"chain rule of mutual information; {_XIAO}",
        _averaged_information,
        AVERAGE,
        (_INDEPENDENT,),
    ),
    Method(
        "izzo_printed",
        (Term("second_moments"), Term("sigma_of_all_draws")),
        "izzo2022, Algorithm 1",
        partial(_izzo, radius="laplace-literal"),
    ),
    Method(
        "izzo_gamma", (Term("second_moments"),), "izzo2022, Theorem 7 and Corollary 8", partial(_izzo, radius="gamma")
    ),
    Method(
        "moment_bound",
        (Term("second_moment_of_outputs"),),
        "izzo2022, Theorem 7 with the least constant",
        _moment,
    ),
)


def total_errors(
    mechanism: Mechanism,
    eta: float,
    noise: Float[Array, " d"],
    declared: Mapping[str, tuple[float, float]] | None = None,
    *,
    n_draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Compare the error of our draw and noise with differential privacy on all records.

    The error is that against the statistic of all n records. Ours is ``sqrt(sampling^2 + noise^2)``, because only k of
    the n are drawn; differential privacy needs no draw, and has noise alone. A sum or count of the k that are drawn
    estimates n/k times as much, and so its errors count n/k times.

    >>> from leakbound.releases.statistics.statistic import named
    >>> from leakbound.core.types import Points
    >>> wages = Points(np.random.default_rng(0).uniform(0, 80, size=(1000, 1)))
    >>> mean = Mechanism.of(named("mean"), wages)
    >>> for row in total_errors(mean, 0.05, np.array([0.4]), declared={"x0": (0, 80)}):
    ...     print(row.release, round(row.value, 3))
    this_calibration 0.824
    dp_gaussian_all_records 0.318
    """
    method = Term("error_against_all")
    is_sum = isinstance(mechanism.statistic, Linear) and mechanism.divisor == 1
    per_draw = mechanism.n / mechanism.k if is_sum else 1.0  # a sum of k is scaled to estimate that of n
    row = partial(_row, mechanism, "total_error", "this_calibration", "sampling error and noise")
    try:
        spread = _fixed_size(mechanism, n_draws, seed)
        error = per_draw * np.hypot(spread.all_coordinates(spread.std), noise)
        ours = row(error, method=[method, spread.method], status=spread.status)
    except NotApplicable as reason:
        ours = row(None, method=[method], reason=as_reason(reason))
    row = partial(_row, mechanism, "total_error", "dp_gaussian_all_records", "dong2022, eq. 6")
    try:
        ranges = None if mechanism.counts else Ranges.of(mechanism, declared)
        bound = sensitivity(mechanism, ranges, n_records=mechanism.n)
    except NotApplicable as reason:
        return [ours, row(None, method=[method], reason=as_reason(reason))]
    status, assumptions = ("certified", ()) if ranges is None else (ranges.status, ranges.assumptions(mechanism))
    # nobody is drawn here: eta is the accuracy above 1/2
    error = dp_gaussian_scale(eta, 1.0) * bound.l2 * bound.unit
    theirs = row(error, method=[method, Term("noise_alone")], status=status, assumptions=assumptions)
    return [ours, theirs]


@dataclass(frozen=True, eq=False)
class _Spread:
    """Covariance of a statistic over the draw of D, of the coordinates that vary at all."""

    varying: Bool[Array, " d"]
    covariance: Float[Array, "r r"]
    exact: bool
    method: Term

    @classmethod
    def of(cls, covariance: Float[Array, "d d"], exact: bool, method: Term) -> _Spread:
        """Leave out what never varies; refuse a statistic that never does."""
        if not np.isfinite(covariance).all():
            raise NotApplicable("too_large_numbers")
        varying = np.diagonal(covariance) > 0
        if not varying.any():
            raise NotApplicable("constant_statistic")
        return cls(varying, covariance[np.ix_(varying, varying)], exact, method)

    @property
    def std(self) -> Float[Array, " r"]:
        """Standard deviation of these coordinates."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def status(self) -> Status:
        """Nothing is certified by a covariance that was estimated."""
        return "certified" if self.exact else "estimated"

    def all_coordinates(self, rms: Float[Array, " r"]) -> Float[Array, " d"]:
        """Return the noise of each coordinate: none where nothing varies."""
        all_rms = np.zeros(len(self.varying))
        all_rms[self.varying] = rms
        return all_rms


def _or_reason(covariance: Callable[[], _Spread]) -> _Spread | NotApplicable:
    """Compute a covariance once for all methods, or why there is none."""
    try:
        return covariance()
    except NotApplicable as reason:
        return reason


def _known(spread: _Spread | NotApplicable) -> _Spread:
    """Refuse where there is no covariance."""
    if isinstance(spread, NotApplicable):
        raise NotApplicable(spread.reason)
    return spread


def _fixed_size(mechanism: Mechanism, n_draws: int, seed: int) -> _Spread:
    """Compute it over uniform k-subsets: a sum of features has the covariance ``k (1 - k/n) S``, divisor n - 1 in S."""
    _countable(mechanism.d)
    if mechanism.features is None:
        return _sampled(mechanism, mechanism.draws(n_draws, seed, "compare"))
    factor = mechanism.k * (1 - mechanism.prior) / mechanism.divisor**2
    return _Spread.of(factor * _population(mechanism.features), True, Term("covariance_of_features"))


def _poisson(mechanism: Mechanism, n_draws: int, seed: int) -> _Spread:
    """Compute it where each record is in D independently with probability k/n.

    A sum has the covariance ``pi (1 - pi) sum f f^T``, whose size tells something as well. A mean of M records has,
    given M, that of a draw of fixed size and the same expectation, hence ``E[1/M - 1/n] S``; where nobody is drawn
    the mean of all records is released.
    """
    _countable(mechanism.d)
    if mechanism.features is None:
        rng = stream(seed, "calibrate", "compare independent", "draws")
        member = np.empty((n_draws, mechanism.n), dtype=bool)
        for row in member:
            row[:] = rng.random(mechanism.n) < mechanism.prior
        fit_seeds = stream(seed, "calibrate", "compare independent", "seeds").integers(2**32, size=n_draws)
        return _sampled(mechanism, DataSets(member, fit_seeds))
    if mechanism.divisor == 1:
        with np.errstate(over="ignore", invalid="ignore"):
            total = mechanism.features.T @ mechanism.features
        covariance = mechanism.prior * (1 - mechanism.prior) * total
    else:
        covariance = _inverse_size(mechanism.n, mechanism.prior) * _population(mechanism.features)
    return _Spread.of(covariance, True, Term("covariance_of_features"))


def _countable(d: int) -> None:
    if d > _MOST:
        raise NotApplicable("large_covariance", most=_MOST, d=d)


def _population(features: Float[Array, "n d"]) -> Float[Array, "d d"]:
    """Compute the covariance of the features over all records, divisor n - 1; exactly 0 for a constant column."""
    with np.errstate(over="ignore", invalid="ignore"):
        centred = features - features[0]
        centred -= centred.mean(axis=0)
        return centred.T @ centred / (len(features) - 1)


def _inverse_size(n: int, prior: float) -> float:
    """Compute ``E[1/M - 1/n; M >= 1]`` of a binomial number M."""
    size = np.arange(1.0, n + 1)
    choices = gammaln(n + 1) - gammaln(size + 1) - gammaln(n - size + 1)
    probability = np.exp(choices + xlogy(size, prior) + xlog1py(n - size, -prior))
    return float(probability @ (1 / size - 1 / n))


def _sampled(mechanism: Mechanism, sets: DataSets) -> _Spread:
    """Estimate it from outputs over draws; fits that failed are left out."""
    outputs = mechanism.outputs(sets)
    outputs = outputs[np.isfinite(outputs).all(axis=1)]
    if len(outputs) <= mechanism.d:
        raise NotApplicable("few_draws", d=mechanism.d, worked=len(outputs))
    return _Spread.of(_population(outputs), False, Term("covariance_of_draws", worked=len(outputs), drawn=sets.n_fits))


def _row(
    mechanism: Mechanism,
    quantity: str,
    release: str,
    source: str,
    rms: Float[Array, " d"] | None,
    **fields: Any,
) -> Finding:
    """Report the noise or the error of a method; None where it does not apply."""
    if rms is None:
        return Finding(quantity, None, release=release, source=source, **fields)
    total = float(p_norm(rms, 2.0)) / math.sqrt(len(rms))
    detail = dict(zip(mechanism.labels, rms.tolist(), strict=True))
    return Finding(quantity, total, release=release, source=source, detail=detail, **fields)
