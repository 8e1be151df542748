"""The noise that other methods need for the same limit on membership inference, on the same statistic and data.

They promise other things. Differential privacy protects every record of any data, so it needs a bound of what one
record can change; PAC privacy protects every record of these data; averaged information a record drawn at random.
Where a method does not apply, its row says why.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import gammaln, xlog1py, xlogy

from leakscope.checks import count, positive
from leakscope.findings import Finding
from leakscope.noise import (
    Baseline,
    GaussianNoise,
    Mahalanobis,
    best_covariance,
    calibrate,
    dp_baselines,
    information_baselines,
    information_of_eta,
    izzo,
    moment,
)
from leakscope.noise.norms import p_norm
from leakscope.observing import DataSets
from leakscope.protecting.mechanisms import Mechanism
from leakscope.releases.algorithms import Quantiles
from leakscope.releases.features import Cells, Columns, Histogram, SecondMoments, numbers
from leakscope.releases.statistics import Covariance, Linear
from leakscope.seeds import stream
from leakscope.types import NotApplicable

Array = np.ndarray
_DELTA = 1e-5  # of (epsilon, delta)-DP, as is the custom
_MOST = 2000  # numbers whose covariance is made: its eigenvectors take seconds
_ROUNDING = 2.0**-26  # of the deviation: what a grid needs, 1,024 steps of at least 2^-36
_INDEPENDENT = "each record is in the data in use independently of the others, with probability k/n (Poisson draws)"
_LITERAL = "sigma is taken from draws of all records: from halves of the data in use, as printed, it promises nothing"


def compared(mechanism: Mechanism, eta: float, clip: float | None, n_draws: int, seed: int) -> list[Finding]:
    """Noise of other methods with which no attacker is more than eta above the better prior guess.

    Parameters
    ----------
    mechanism : Mechanism
        The statistic of k records, drawn from all n.
    eta : float
        > 0 and < min(k/n, 1 - k/n).
    clip : float or None
        Largest absolute value of a column, for differential privacy; counts need none.
    n_draws : int
        Data sets drawn for a covariance that is not known from the features: so many of fixed size, and as
        many in which each record is drawn independently. At least 2.
    seed : int
        Of these draws.

    Returns
    -------
    list of Finding
        Quantity "noise_rms", a method each: root mean square of its noise over the coordinates, in units of the
        statistic; that of each coordinate by its label in ``detail``. ``release`` names the method, ``method``
        says what it promises, and ``game`` is "average_datum" where that is for a random record. Status
        "certified" where nothing is estimated; ``reason`` where it does not apply.

    Raises
    ------
    ValueError
        For an eta out of range, a clip that is not > 0, or fewer than 2 draws.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.protecting.comparing import compared
    >>> from leakscope.protecting.mechanisms import Mechanism
    >>> from leakscope.releases.statistics import named
    >>> from leakscope.types import Points
    >>> ages = Points(np.random.default_rng(0).uniform(20, 60, size=(1000, 1)))
    >>> for row in compared(Mechanism.of(named("mean"), ages), eta=0.05, clip=60, n_draws=100, seed=0):
    ...     print(f"{row.release:35} {row.value:9.4f} {row.status}")
    DP Laplace                             1.6914 certified
    DP Gaussian                            0.9549 certified
    DP Gaussian by (epsilon, delta)        3.9013 certified
    PAC privacy, shape of Sigma            3.5895 certified
    PAC privacy, least noise               3.5895 certified
    averaged information, Poisson draws    0.0024 certified
    Algorithm 1 as printed              7730.8435 estimated
    Algorithm 1, Gamma radius           7730.8435 certified
    moment bound                           2.8661 certified
    """
    information_of_eta(eta, mechanism.prior)  # refuses an eta out of range
    count("n_draws", n_draws, least=2)
    if clip is not None:
        positive("clip", clip)
    fixed = _tried(partial(_fixed_size, mechanism, n_draws, seed))
    poisson = _tried(partial(_poisson, mechanism, n_draws, seed))
    return [
        *_differential_privacy(mechanism, eta, clip),
        *_information(mechanism, eta, fixed, poisson),
        *_algorithm_1(mechanism, eta, fixed),
        _moment(mechanism, eta, fixed),
    ]


def sensitivity(mechanism: Mechanism, clip: float | None = None) -> tuple[float, float]:
    """How far replacing one record can move a statistic, in the l1 and the l2 norm, whatever the data.

    Counts: the record leaves one bin of each column and enters another, so a column moves by 2 in l1. Means and
    sums of columns: each coordinate by at most 2 clip, over k for a mean. Products of columns around a public
    centre m, with ``C_i = clip + |m_i|``: ``uu^T - vv^T = (st^T + ts^T)/2``, s = u + v and t = u - v, where
    ``|s_i| + |t_i| <= 2 C_i``, so the entries of the whole matrix sum to at most ``(sum C_i)^2`` and those of the
    triangle to ``((sum C_i)^2 + sum C_i^2)/2``; in l2 the triangle has at most ``sum C_i^2``. Covariance with
    divisor k: the other k - 1 records have a mean r, and the covariance moves by ``(k - 1)/k^2`` times ``(u-r)(u-r)^T
    - (v-r)(v-r)^T``, each entry of which is at most ``4 clip^2``, since ``u_i - r_i`` and ``v_i - r_i`` lie in an
    interval of length 2 clip around 0; reached by records in opposite corners.

    Parameters
    ----------
    mechanism : Mechanism
    clip : float or None
        Largest absolute value of a column.

    Returns
    -------
    pair of float
        Upper bounds. Both are reached for counts, columns and the covariance.

    Raises
    ------
    NotApplicable
        Where no bound is known, or it needs a clip.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.protecting.comparing import sensitivity
    >>> from leakscope.protecting.mechanisms import Mechanism
    >>> from leakscope.releases.statistics import named
    >>> from leakscope.types import Points
    >>> sensitivity(Mechanism.of(named("mean"), Points(np.zeros((10, 4)))), clip=1.0)
    (1.6, 0.8)
    """
    statistic, d = mechanism.statistic, mechanism.d
    if isinstance(statistic, Linear):
        one, two = _of_features(statistic, d, clip)
        return one / mechanism.divisor, two / mechanism.divisor
    if isinstance(statistic, Covariance):
        if mechanism.k == 1:
            raise NotApplicable("the covariance of a single record is 0 whatever the record")
        most = 4 * _bounded(clip) ** 2 * (mechanism.k - 1) / mechanism.k**2
        return d * most, math.sqrt(d) * most
    if isinstance(statistic.algorithm, Quantiles):  # between the smallest and the largest value
        return 2 * _bounded(clip) * d, 2 * _bounded(clip) * math.sqrt(d)
    what = f"{statistic.name} coefficients" if statistic.name in ("ols", "logistic") else statistic.name
    raise NotApplicable(f"no bound of the sensitivity of {what} is known; clipping the data does not give one")


def _of_features(statistic: Linear, d: int, clip: float | None) -> tuple[float, float]:
    """Sensitivity of a sum of features."""
    features = statistic.features
    if isinstance(features, Histogram | Cells):
        sizes = [len(edges) - 1 for edges in features.edges] if isinstance(features, Histogram) else [d]
        moved = sum(min(size, 2) for size in sizes)  # a single bin is entered or left
        return float(moved), math.sqrt(moved)
    if isinstance(features, Columns):
        return 2 * _bounded(clip) * d, 2 * _bounded(clip) * math.sqrt(d)
    if isinstance(features, SecondMoments):
        n_columns = math.isqrt(2 * d)  # d = p (p + 1)/2
        reach = _bounded(clip) + np.abs(features.centre if features.centre is not None else np.zeros(n_columns))
        squares = float(np.square(reach).sum())
        return (float(reach.sum()) ** 2 + squares) / 2, squares
    raise NotApplicable(f"no bound of the sensitivity of {statistic.name} is known")


def _bounded(clip: float | None) -> float:
    if clip is None:
        raise NotApplicable("needs clip, the largest value")
    return clip


@dataclass(frozen=True, eq=False)
class _Spread:
    """Covariance of a statistic over the draw of D, of the coordinates that vary at all."""

    varying: Bool[Array, " d"]
    covariance: Float[Array, "r r"]
    exact: bool
    method: str

    @classmethod
    def of(cls, covariance: Float[Array, "d d"], exact: bool, method: str) -> _Spread:
        if not np.isfinite(covariance).all():
            raise NotApplicable("the numbers are too large for a covariance")
        varying = np.diagonal(covariance) > 0
        if not varying.any():
            raise NotApplicable("the statistic is the same for every draw of the data in use: it needs no noise")
        return cls(varying, covariance[np.ix_(varying, varying)], exact, method)

    @property
    def std(self) -> Float[Array, " r"]:
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def status(self) -> str:
        return "certified" if self.exact else "estimated"

    def whole(self, rms: Float[Array, " r"]) -> Float[Array, " d"]:
        """Noise of each coordinate: none where nothing varies."""
        made = np.zeros(len(self.varying))
        made[self.varying] = rms
        return made


def _tried(make: Callable[[], _Spread]) -> _Spread | str:
    """A covariance, or why there is none."""
    try:
        return make()
    except NotApplicable as reason:
        return str(reason)


def _fixed_size(mechanism: Mechanism, n_draws: int, seed: int) -> _Spread:
    """Over uniform k-subsets: a sum of features has the covariance ``k (1 - k/n) S``, divisor n - 1 in S."""
    _countable(mechanism.d)
    if mechanism.features is None:
        return _sampled(mechanism, mechanism.draws(n_draws, seed, "compare"))
    factor = mechanism.k * (1 - mechanism.prior) / mechanism.divisor**2
    return _Spread.of(factor * _population(mechanism.features), True, "covariance from the features of all records")


def _poisson(mechanism: Mechanism, n_draws: int, seed: int) -> _Spread:
    """Each record is in D independently with probability k/n.

    A sum has the covariance ``pi (1 - pi) sum f f^T``, whose size tells something as well. A mean of M records has,
    given M, that of a draw of fixed size and the same expectation, hence ``E[1/M - 1/n] S``; where nobody is drawn
    it stands for the mean of all.
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
    return _Spread.of(covariance, True, "covariance from the features of all records")


def _countable(d: int) -> None:
    if d > _MOST:
        raise NotApplicable(f"a covariance is made of at most {_MOST:,} numbers, the statistic has {d:,}")


def _population(features: Float[Array, "n d"]) -> Float[Array, "d d"]:
    """Covariance of the features over all records, divisor n - 1; exactly 0 for a constant column."""
    with np.errstate(over="ignore", invalid="ignore"):
        centred = features - features[0]
        centred -= centred.mean(axis=0)
        return centred.T @ centred / (len(features) - 1)


def _inverse_size(n: int, prior: float) -> float:
    """``E[1/M - 1/n; M >= 1]`` of a binomial number M."""
    size = np.arange(1.0, n + 1)
    choices = gammaln(n + 1) - gammaln(size + 1) - gammaln(n - size + 1)
    probability = np.exp(choices + xlogy(size, prior) + xlog1py(n - size, -prior))
    return float(probability @ (1 / size - 1 / n))


def _sampled(mechanism: Mechanism, sets: DataSets) -> _Spread:
    """From outputs over draws; fits that failed are left out."""
    made = mechanism.outputs(sets)
    made = made[np.isfinite(made).all(axis=1)]
    if len(made) <= mechanism.d:
        raise NotApplicable(f"a covariance of {mechanism.d:,} numbers needs more draws, {len(made):,} worked")
    return _Spread.of(_population(made), False, f"covariance from {len(made):,} of {sets.n_fits:,} draws")


def _differential_privacy(mechanism: Mechanism, eta: float, clip: float | None) -> Iterator[Finding]:
    """Laplace, Gaussian, and Gaussian by (epsilon, delta): the same noise in every coordinate."""
    smaller = min(mechanism.prior, 1 - mechanism.prior)
    delta = min(_DELTA, eta / smaller / 2)
    reach, reason = (math.nan, math.nan), ""
    try:
        reach = sensitivity(mechanism, clip)
    except NotApplicable as refusal:
        reason = str(refusal)
    # the noise is proportional to the sensitivity, and the same in every coordinate
    for row, moved in zip(dp_baselines(eta, 1, (1.0, 1.0), delta, mechanism.prior), (0, 1, 1), strict=True):
        yield _row(
            mechanism,
            row,
            None if reason else np.full(mechanism.d, reach[moved] * row.rms),
            status="measured" if reason else "certified",
            reason=reason,
            at={"delta": delta} if "delta" in row.name else {},
            method="differential privacy, replacing one record: every record of any data",
            assumptions=() if reason else _clipped(mechanism, clip),
        )


def _clipped(mechanism: Mechanism, clip: float | None) -> Sequence[str]:
    """What a clip assumes, and how many values of these data it would change; counts need none."""
    statistic = mechanism.statistic
    if clip is None or (isinstance(statistic, Linear) and isinstance(statistic.features, Histogram | Cells)):
        return ()
    beyond = int((np.abs(numbers(mechanism.points.x)) > clip).sum())
    changed = f"; {beyond:,} values of these data are, and would be clipped" if beyond else ""
    return (f"no value is beyond {clip:g} in absolute value{changed}",)


def _information(mechanism: Mechanism, eta: float, fixed: _Spread | str, poisson: _Spread | str) -> Iterator[Finding]:
    """PAC privacy with two shapes from draws of fixed size, averaged information from independent ones."""
    every = "mutual information of the data in use and the release: every record of these data"
    average = "mutual information of the data in use and the release, shared by its records: a random record"
    spreads, said = (fixed, fixed, poisson), (every, every, average)
    for place, (spread, promise) in enumerate(zip(spreads, said, strict=True)):
        # the last is for another game than the others, which its name must say
        game = {"release": "averaged information, Poisson draws", "game": "average_datum"} if place == 2 else {}
        assumed = [_INDEPENDENT] if place == 2 else []
        if isinstance(spread, str):
            row = information_baselines(eta, np.eye(1), mechanism.n, mechanism.prior)[place]
            yield _row(mechanism, row, None, reason=spread, method=promise, assumptions=assumed, **game)
            continue
        # the shape of Sigma does not depend on units: its numbers are better in those of the statistic's deviation
        unit = spread.std if place == 0 else np.ones(len(spread.std))
        scaled = spread.covariance / unit / unit[:, None]
        row = information_baselines(eta, scaled, mechanism.n, mechanism.prior)[place]
        rms = unit * np.sqrt(np.diagonal(row.covariance))
        if (rms < _ROUNDING * spread.std).any():
            lost = f"lost in the rounding of floating point: {mechanism.n:,} records share the information"
            yield _row(mechanism, row, None, reason=lost, method=promise, assumptions=assumed, **game)
            continue
        words = {"status": spread.status, "method": f"{promise}; {spread.method}", "assumptions": assumed}
        yield _row(mechanism, row, spread.whole(rms), **words, **game)


def _algorithm_1(mechanism: Mechanism, eta: float, spread: _Spread | str) -> Iterator[Finding]:
    """Algorithm 1 of Izzo et al. (2022) with second moments, with the printed radius and with that of its theorem."""
    every = "second moments of each coordinate: every record of these data"
    rows: tuple[tuple[str, Literal["laplace-literal", "gamma"], str, str], ...] = (
        ("Algorithm 1 as printed", "laplace-literal", "izzo2022, Algorithm 1", f"{every}; {_LITERAL}"),
        ("Algorithm 1, Gamma radius", "gamma", "izzo2022, Theorem 7 and Corollary 8", every),
    )
    for name, radius, source, promise in rows:
        row = Baseline(name, "every", 0.0, np.zeros((1, 1)), source)
        if isinstance(spread, str):
            yield _row(mechanism, row, None, reason=spread, method=promise)
            continue
        n_varying = len(spread.std)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "laplace-literal is for reproduction ..."
            noise = izzo(np.ones(n_varying), eta, radius=radius)
        rms = spread.whole(spread.std * noise.rms(n_varying))
        # as printed nothing is certified, however large the noise: its sigma is that of the data in use
        status = "estimated" if radius == "laplace-literal" else spread.status
        yield _row(mechanism, row, rms, status=status, method=f"{promise}; {spread.method}")


def _moment(mechanism: Mechanism, eta: float, spread: _Spread | str) -> Finding:
    """Gaussian noise of the best shape for the bound by the second moment of the outputs alone."""
    row = Baseline("moment bound", "every", 0.0, np.zeros((1, 1)), "izzo2022, Theorem 7 with the least constant")
    promise = "second moment of the outputs, any algorithm: every record of these data"
    if isinstance(spread, str):
        return _row(mechanism, row, None, reason=spread, method=promise)
    shape = best_covariance(spread.covariance / spread.std.max() ** 2, kappa=1.0)  # the scale follows
    norm = Mahalanobis(shape)
    sigma = math.sqrt(float(np.trace(np.linalg.solve(norm.shape, spread.covariance))))
    shifts = moment(sigma, len(shape), mechanism.prior, norm)
    noise = calibrate(shifts, eta, partial(GaussianNoise, shape=shape))
    rms = spread.whole(noise.rms(len(shape)) * np.sqrt(np.diagonal(shape) / np.diagonal(shape).mean()))
    return _row(mechanism, row, rms, status=spread.status, method=f"{promise}; {spread.method}")


def _row(mechanism: Mechanism, baseline: Baseline, rms: Float[Array, " d"] | None, **words: Any) -> Finding:
    """The noise of a method as a finding; None where it does not apply."""
    words = {"release": baseline.name, "source": baseline.source} | words
    if rms is None:
        return Finding("noise_rms", None, **words)
    total = float(p_norm(rms, 2.0)) / math.sqrt(len(rms))
    return Finding("noise_rms", total, detail=dict(zip(mechanism.labels, rms.tolist(), strict=True)), **words)
