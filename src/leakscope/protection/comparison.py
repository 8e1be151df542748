"""The noise that other methods need for the same limit on membership inference, on the same statistic and data.

They promise other things. Differential privacy protects every record of any data, so it needs a bound of what one
record can change; PAC privacy protects every record of these data; averaged information a record drawn at random.
Where a method does not apply, its row says why.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import gammaln, xlog1py, xlogy

from leakscope.core.checks import count, one_of, positive
from leakscope.core.findings import Finding, Scope, Term
from leakscope.core.lengths import p_norm
from leakscope.core.seeds import stream
from leakscope.core.types import NotApplicable
from leakscope.noise import (
    Baseline,
    GaussianNoise,
    Mahalanobis,
    best_covariance,
    calibrate,
    dp_baselines,
    dp_gaussian_scale,
    information_baselines,
    information_of_eta,
    izzo,
    moment,
)
from leakscope.protection.mechanism import Mechanism
from leakscope.releases.statistics.algorithms import Quantiles
from leakscope.releases.statistics.features import Cells, Columns, Histogram, SecondMoments, columns_of, numbers
from leakscope.releases.statistics.statistic import Covariance, Linear, Statistic
from leakscope.runtime.observe import DataSets

Array = np.ndarray
_DELTA = 1e-5  # of (epsilon, delta)-DP, as is the custom
_MOST = 2000  # numbers whose covariance is made: its eigenvectors take seconds
_ROUNDING = 2.0**-26  # of the deviation: what a grid needs, 1,024 steps of at least 2^-36
_INDEPENDENT = "each record is in the data in use independently of the others, with probability k/n (Poisson draws)"


def compared(
    mechanism: Mechanism,
    eta: float,
    clip: float | None,
    n_draws: int,
    seed: int,
    declared: Mapping[str, tuple[float, float]] | None = None,
) -> list[Finding]:
    """Noise of other methods with which no attacker is more than eta above the better prior guess.

    Parameters
    ----------
    mechanism : Mechanism
        The statistic of k records, drawn from all n.
    eta : float
        > 0 and < min(k/n, 1 - k/n).
    clip : float or None
        Largest absolute value of the columns without a declared range, for differential privacy.
    n_draws : int
        Data sets drawn for a covariance that is not known from the features: so many of fixed size, and as
        many in which each record is drawn independently. At least 2.
    seed : int
        Of these draws.
    declared : mapping of str to pair of float, optional
        Smallest and largest value of a column. A column with neither this nor a clip has the range of the data, which
        favours differential privacy, and is said; counts need none.

    Returns
    -------
    list of Finding
        Quantity "noise_rms", a method each: root mean square of its noise over the coordinates, in units of the
        statistic; that of each coordinate by its label in ``detail``. ``release`` names the method, ``method``
        says what it promises, and ``scope`` is the average where that is for a random record. Status
        "certified" where nothing is estimated; ``reason`` where it does not apply.

    Raises
    ------
    ValueError
        For an eta out of range, a clip that is not > 0, or fewer than 2 draws.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.protection.comparison import compared
    >>> from leakscope.protection.mechanism import Mechanism
    >>> from leakscope.releases.statistics.statistic import named
    >>> from leakscope.core.types import Points
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
        *_differential_privacy(mechanism, eta, clip, declared),
        *_information(mechanism, eta, fixed, poisson),
        *_algorithm_1(mechanism, eta, fixed),
        _moment(mechanism, eta, fixed),
    ]


@dataclass(frozen=True, eq=False)
class Ranges:
    """The smallest and the largest value of each column, for differential privacy.

    Parameters
    ----------
    low, high : arrays of shape (p,)
    from_data : bool array of shape (p,)
        Where nobody declared a range, so that it is that of these records. A range that depends on the data promises
        nothing: such a column favours differential privacy.
    """

    low: Float[Array, " p"]
    high: Float[Array, " p"]
    from_data: Bool[Array, " p"]

    @classmethod
    def of(
        cls, mechanism: Mechanism, clip: float | None = None, declared: Mapping[str, tuple[float, float]] | None = None
    ) -> Ranges:
        """Each column's declared range; else the clip, [-c, c]; else the range of the data.

        Raises
        ------
        ValueError
            For a range of a column that is not there.
        NotApplicable
            If the columns hold no numbers.
        """
        names = columns_of(mechanism.points.x)
        declared = dict(declared or {})
        for name in declared:
            one_of("column of ranges", name, names)
        try:
            values = numbers(mechanism.points.x)
        except ValueError as reason:
            raise NotApplicable(str(reason)) from None
        low, high = values.min(axis=0), values.max(axis=0)
        if clip is not None:
            low, high = np.full_like(low, -clip), np.full_like(high, clip)
        for column, name in enumerate(names):
            if name in declared:
                low[column], high[column] = declared[name]
        from_data = np.array([clip is None and name not in declared for name in names])
        return cls(low, high, from_data)

    @property
    def width(self) -> Float[Array, " p"]:
        """High less low."""
        return self.high - self.low


@dataclass(frozen=True, eq=False)
class Moves:
    """How far replacing one record can move a statistic, whatever the data.

    Parameters
    ----------
    unit : array of shape (d,)
        Of each coordinate: noise is proportional to it, so that columns of other units get noise of their own.
    one, two : float
        Upper bounds of the l1 and the l2 norm of the move, in these units.
    """

    unit: Float[Array, " d"]
    one: float
    two: float


def moves(mechanism: Mechanism, ranges: Ranges | None = None, *, n_records: int | None = None) -> Moves:
    """Bound how far replacing one record can move a statistic, whatever the data.

    Counts: the record leaves one bin of each column and enters another, so a column moves by 2 in l1. Means and sums of
    columns, quantiles: each coordinate by at most the width of its range, over the number of records for a mean.
    Products of columns around a public centre m, each column in units of ``C_i = max |x_i - m_i|``: ``uu^T - vv^T =
    (st^T + ts^T)/2``, s = u + v and t = u - v, where ``|s_i| + |t_i| <= 2``, so the p^2 entries of the whole matrix sum
    to at most p^2, those of the triangle to (p^2 + p)/2, and the triangle has at most p in l2; where no column changes
    its sign around the centre, each entry moves by at most 1. Covariance with divisor k: the other k - 1 records have
    a mean r, and the covariance moves by ``(k - 1)/k^2`` times ``(u-r)(u-r)^T - (v-r)(v-r)^T``, each entry of which is
    at most the product of the two widths, since ``u_i - r_i`` and ``v_i - r_i`` lie in an interval of that length
    around 0; reached by records in opposite corners.

    Parameters
    ----------
    mechanism : Mechanism
    ranges : Ranges, optional
        Counts need none.
    n_records : int, optional
        Records that the statistic is of: k unless given.

    Returns
    -------
    Moves
        Both bounds are reached for counts, columns and the covariance.

    Raises
    ------
    NotApplicable
        Where no bound is known, or it needs ranges.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.protection.comparison import Ranges, moves
    >>> from leakscope.protection.mechanism import Mechanism
    >>> from leakscope.releases.statistics.statistic import named
    >>> from leakscope.core.types import Points
    >>> mean = Mechanism.of(named("mean"), Points(np.zeros((10, 4))))
    >>> found = moves(mean, Ranges.of(mean, clip=1.0))
    >>> found.unit.tolist(), found.one, found.two
    ([0.4, 0.4, 0.4, 0.4], 4.0, 2.0)
    """
    statistic, d = mechanism.statistic, mechanism.d
    k = mechanism.k if n_records is None else n_records
    if isinstance(statistic, Linear):
        found = _of_features(statistic, d, ranges)
        divisor = k if statistic.statistic == "mean" else 1
        return Moves(found.unit / divisor, found.one, found.two)
    if isinstance(statistic, Covariance):
        if k == 1:
            raise NotApplicable("the covariance of a single record is 0 whatever the record")
        width = _known(ranges).width
        first, second = np.triu_indices(len(width))
        return Moves(width[first] * width[second] * (k - 1) / k**2, float(d), math.sqrt(d))
    if isinstance(statistic.algorithm, Quantiles):  # between the smallest and the largest value
        width = _known(ranges).width
        return Moves(_width_by_label(mechanism, width), float(d), math.sqrt(d))
    what = f"{statistic.name} coefficients" if statistic.name in ("ols", "logistic") else statistic.name
    raise NotApplicable(f"no bound of the sensitivity of {what} is known; clipping the data does not give one")


def _width_by_label(mechanism: Mechanism, width: Float[Array, " p"]) -> Float[Array, " d"]:
    """Of quantiles: that of the column which each is of; for each probability the columns come one after another."""
    return np.tile(width, mechanism.d // len(width))


def _of_features(statistic: Linear, d: int, ranges: Ranges | None) -> Moves:
    """Of a sum of features."""
    features = statistic.features
    if isinstance(features, Histogram | Cells):
        sizes = [len(edges) - 1 for edges in features.edges] if isinstance(features, Histogram) else [d]
        moved = sum(min(size, 2) for size in sizes)  # a single bin is entered or left
        return Moves(np.ones(d), float(moved), math.sqrt(moved))
    if isinstance(features, Columns):
        return Moves(_known(ranges).width, float(d), math.sqrt(d))
    if isinstance(features, SecondMoments):
        known = _known(ranges)
        centre = np.asarray(features.centre) if features.centre is not None else np.zeros(len(known.low))
        below, above = known.low - centre, known.high - centre
        largest = np.maximum(np.abs(below), np.abs(above))
        first, second = np.triu_indices(len(largest))
        one_sign = bool(((below >= 0) | (above <= 0)).all())
        two = min(math.sqrt(d), float(len(largest))) if one_sign else float(len(largest))
        return Moves(largest[first] * largest[second], float(d), two)
    raise NotApplicable(f"no bound of the sensitivity of {statistic.name} is known")


def _known(ranges: Ranges | None) -> Ranges:
    if ranges is None:
        raise NotApplicable("needs the range of each column")
    return ranges


def _is_of_counts(statistic: Statistic) -> bool:
    return isinstance(statistic, Linear) and isinstance(statistic.features, Histogram | Cells)


@dataclass(frozen=True, eq=False)
class _Spread:
    """Covariance of a statistic over the draw of D, of the coordinates that vary at all."""

    varying: Bool[Array, " d"]
    covariance: Float[Array, "r r"]
    exact: bool
    method: Term

    @classmethod
    def of(cls, covariance: Float[Array, "d d"], exact: bool, method: Term) -> _Spread:
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
    return _Spread.of(factor * _population(mechanism.features), True, Term("covariance_of_features"))


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
    return _Spread.of(covariance, True, Term("covariance_of_features"))


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
    return _Spread.of(_population(made), False, Term("covariance_of_draws", worked=len(made), drawn=sets.n_fits))


def _differential_privacy(
    mechanism: Mechanism, eta: float, clip: float | None, declared: Mapping[str, tuple[float, float]] | None
) -> Iterator[Finding]:
    """Laplace, Gaussian, and Gaussian by (epsilon, delta): noise in proportion to the range of each column."""
    smaller = min(mechanism.prior, 1 - mechanism.prior)
    delta = min(_DELTA, eta / smaller / 2)
    reach, ranges, reason = None, None, ""
    try:
        ranges = None if _is_of_counts(mechanism.statistic) else Ranges.of(mechanism, clip, declared)
        reach = moves(mechanism, ranges)
    except NotApplicable as refusal:
        reason = str(refusal)
    rows = dp_baselines(eta, 1, (1.0, 1.0), delta, mechanism.prior)
    for place, row in enumerate(rows):
        rms = None
        if reach is not None:
            length = reach.one if place == 0 else reach.two
            rms = row.rms * length * reach.unit
        yield _row(
            mechanism,
            row,
            rms,
            status="measured" if reason else _status(ranges),
            reason=reason,
            operating_point={"delta": delta} if place == 2 else {},
            method=[Term("dp_replace_one")],
            assumptions=() if reason else _assumed(mechanism, ranges),
        )


def _status(ranges: Ranges | None) -> str:
    """Nothing is certified by a range that was read off the data."""
    return "estimated" if ranges is not None and ranges.from_data.any() else "certified"


def _assumed(mechanism: Mechanism, ranges: Ranges | None) -> Sequence[str]:
    """What the ranges assume, and how many values of these data they would change; counts need none."""
    if ranges is None:
        return ()
    names = np.array(columns_of(mechanism.points.x))
    values = numbers(mechanism.points.x)
    assumed = []
    declared = ~ranges.from_data
    if declared.any():
        told = [
            f"{name} from {low:g} to {high:g}"
            for name, low, high in zip(names[declared], ranges.low[declared], ranges.high[declared], strict=True)
        ]
        beyond = int(((values < ranges.low) | (values > ranges.high)).sum())
        changed = f"; {beyond:,} values of these data are beyond, and would be clipped" if beyond else ""
        assumed.append(f"declared ranges: {', '.join(told)}{changed}")
    if ranges.from_data.any():
        assumed.append(
            f"no range was declared of {', '.join(names[ranges.from_data])}: that of these data is taken, which "
            "favours differential privacy, whose ranges must not depend on the data"
        )
    return tuple(assumed)


def total_errors(
    mechanism: Mechanism,
    eta: float,
    noise: Float[Array, " d"],
    clip: float | None = None,
    declared: Mapping[str, tuple[float, float]] | None = None,
    *,
    n_draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Compare the error of our draw and noise with differential privacy on all records.

    The error is that against the statistic of all n records. Ours is ``sqrt(sampling^2 + noise^2)``, because only k of
    the n are drawn; differential privacy needs no draw, and has noise alone. A sum or count of the k that are drawn
    stands for n/k times as much, and so do its errors.

    Parameters
    ----------
    mechanism : Mechanism
        The statistic of k records, drawn from all n.
    eta : float
        Accuracy above the better prior guess that is allowed. Of differential privacy on all n records, where nobody
        is drawn, above 1/2.
    noise : array of shape (d,)
        Standard deviation of our noise in each coordinate.
    clip, declared
        As in `Ranges.of`.
    n_draws, seed : int
        Draws of k records for the sampling error, where it does not follow from the features.

    Returns
    -------
    list of Finding
        Quantity "total_error": root mean square over the coordinates, and each coordinate by its label in ``detail``.
        "this calibration" and "DP Gaussian on all records".

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.protection.comparison import total_errors
    >>> from leakscope.protection.mechanism import Mechanism
    >>> from leakscope.releases.statistics.statistic import named
    >>> from leakscope.core.types import Points
    >>> wages = Points(np.random.default_rng(0).uniform(0, 80, size=(1000, 1)))
    >>> mean = Mechanism.of(named("mean"), wages)
    >>> for row in total_errors(mean, 0.05, np.array([0.4]), declared={"x0": (0, 80)}):
    ...     print(row.release, round(row.value, 3))
    this calibration 0.824
    DP Gaussian on all records 0.318
    """
    every = Term("error_against_all")
    is_sum = isinstance(mechanism.statistic, Linear) and mechanism.divisor == 1
    per_draw = mechanism.n / mechanism.k if is_sum else 1.0
    ours = Baseline("this calibration", "every", 0.0, np.zeros((1, 1)), "sampling error and noise")
    theirs = Baseline("DP Gaussian on all records", "any_data", 0.0, np.zeros((1, 1)), "dong2022, eq. 6")
    found = []
    spread = _tried(partial(_fixed_size, mechanism, n_draws, seed))
    if isinstance(spread, str):
        found.append(_row(mechanism, ours, None, quantity="total_error", method=[every], reason=spread))
    else:
        sampling = spread.whole(spread.std)
        total = per_draw * np.hypot(sampling, noise)
        words = {"method": [every, spread.method], "status": spread.status}
        found.append(_row(mechanism, ours, total, quantity="total_error", **words))
    try:
        ranges = None if _is_of_counts(mechanism.statistic) else Ranges.of(mechanism, clip, declared)
        reach = moves(mechanism, ranges, n_records=mechanism.n)
    except NotApplicable as reason:
        found.append(_row(mechanism, theirs, None, quantity="total_error", method=[every], reason=str(reason)))
        return found
    rms = dp_gaussian_scale(eta, 1.0) * reach.two * reach.unit
    words = {
        "method": [every, Term("noise_alone")],
        "status": _status(ranges),
        "assumptions": _assumed(mechanism, ranges),
    }
    found.append(_row(mechanism, theirs, rms, quantity="total_error", **words))
    return found


def _information(mechanism: Mechanism, eta: float, fixed: _Spread | str, poisson: _Spread | str) -> Iterator[Finding]:
    """PAC privacy with two shapes from draws of fixed size, averaged information from independent ones."""
    every, average = Term("information_every"), Term("information_average")
    spreads, said = (fixed, fixed, poisson), (every, every, average)
    for place, (spread, promise) in enumerate(zip(spreads, said, strict=True)):
        # the last is for another game than the others, which its name must say
        game = {"release": "averaged information, Poisson draws", "scope": Scope("average")} if place == 2 else {}
        assumed = [_INDEPENDENT] if place == 2 else []
        if isinstance(spread, str):
            row = information_baselines(eta, np.eye(1), mechanism.n, mechanism.prior)[place]
            yield _row(mechanism, row, None, reason=spread, method=[promise], assumptions=assumed, **game)
            continue
        # the shape of Sigma does not depend on units: its numbers are better in those of the statistic's deviation
        unit = spread.std if place == 0 else np.ones(len(spread.std))
        scaled = spread.covariance / unit / unit[:, None]
        row = information_baselines(eta, scaled, mechanism.n, mechanism.prior)[place]
        rms = unit * np.sqrt(np.diagonal(row.covariance))
        if (rms < _ROUNDING * spread.std).any():
            lost = f"lost in the rounding of floating point: {mechanism.n:,} records share the information"
            yield _row(mechanism, row, None, reason=lost, method=[promise], assumptions=assumed, **game)
            continue
        words = {"status": spread.status, "method": [promise, spread.method], "assumptions": assumed}
        yield _row(mechanism, row, spread.whole(rms), **words, **game)


def _algorithm_1(mechanism: Mechanism, eta: float, spread: _Spread | str) -> Iterator[Finding]:
    """Algorithm 1 of Izzo et al. (2022) with second moments, with the printed radius and with that of its theorem."""
    every, literal = Term("second_moments"), Term("sigma_of_all_draws")
    rows: tuple[tuple[str, Literal["laplace-literal", "gamma"], str, list[Term]], ...] = (
        ("Algorithm 1 as printed", "laplace-literal", "izzo2022, Algorithm 1", [every, literal]),
        ("Algorithm 1, Gamma radius", "gamma", "izzo2022, Theorem 7 and Corollary 8", [every]),
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
        yield _row(mechanism, row, rms, status=status, method=[*promise, spread.method])


def _moment(mechanism: Mechanism, eta: float, spread: _Spread | str) -> Finding:
    """Gaussian noise of the best shape for the bound by the second moment of the outputs alone."""
    row = Baseline("moment bound", "every", 0.0, np.zeros((1, 1)), "izzo2022, Theorem 7 with the least constant")
    promise = Term("second_moment_of_outputs")
    if isinstance(spread, str):
        return _row(mechanism, row, None, reason=spread, method=[promise])
    shape = best_covariance(spread.covariance / spread.std.max() ** 2, kappa=1.0)  # the scale follows
    norm = Mahalanobis(shape)
    sigma = math.sqrt(float(np.trace(np.linalg.solve(norm.shape, spread.covariance))))
    shifts = moment(sigma, len(shape), mechanism.prior, norm)
    noise = calibrate(shifts, eta, partial(GaussianNoise, shape=shape))
    rms = spread.whole(noise.rms(len(shape)) * np.sqrt(np.diagonal(shape) / np.diagonal(shape).mean()))
    return _row(mechanism, row, rms, status=spread.status, method=[promise, spread.method])


def _row(
    mechanism: Mechanism,
    baseline: Baseline,
    rms: Float[Array, " d"] | None,
    quantity: str = "noise_rms",
    **fields: Any,
) -> Finding:
    """The noise or the error of a method as a finding; None where it does not apply."""
    fields = {"release": baseline.name, "source": baseline.source} | fields
    if rms is None:
        return Finding(quantity, None, **fields)
    total = float(p_norm(rms, 2.0)) / math.sqrt(len(rms))
    return Finding(quantity, total, detail=dict(zip(mechanism.labels, rms.tolist(), strict=True)), **fields)
