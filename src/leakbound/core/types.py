"""The types that the rooms pass to each other.

Letters of the axes: M models, N points, T targets (attacked models), J target points, K classes, S steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Num, Shaped
from numpy.typing import ArrayLike

from leakbound.core import reasons
from leakbound.core.findings import Term
from leakbound.core.on_disk import taken
from leakbound.core.signals import (
    SIGNALS,
    class_indices,
    first_queries,
    of_log_prob,
    refuse_disagreeing,
    refuse_impossible,
    why_missing,
)

Array = np.ndarray


class NotApplicable(Exception):
    """A method cannot say anything about these signals; the report prints the reason.

    Parameters
    ----------
    reason : str or Term
        A key of ``leakbound.core.reasons.REASONS`` or, in an attack of your own, a sentence.
    **values : float, int or str
        The numbers and names that belong to the key.

    Attributes
    ----------
    reason : Term
        Which a finding without a value holds.

    Examples
    --------
    >>> from leakbound.core.types import NotApplicable
    >>> str(NotApplicable("few_references", fewest=2, n=0))
    'needs at least 2 reference models, and there are 0'
    >>> str(NotApplicable("needs the signal margin"))
    'needs the signal margin'
    """

    def __init__(self, reason: str | Term, /, **values: float | int | str) -> None:
        super().__init__(reason)
        if isinstance(reason, Term):
            self.reason = reason
        elif reason in reasons.REASONS:
            self.reason = Term(reason, **values)
        else:
            self.reason = Term("own_words", words=reason)

    def __str__(self) -> str:
        return reasons.words(self.reason)


@dataclass(frozen=True, eq=False)
class Points:
    """The records of a game.

    Parameters
    ----------
    x : array, frame, or any object with ``len`` and ``take(indices)``
        What the release is fitted on. Only the rooms ``data`` and ``releases`` look inside.
    y : array of shape (N,) or (N, L), optional
        The label or response of each point, or L of them.
    group : array of shape (N,), optional
        The unit of privacy (a person with several rows); its rows are in or out together.
    digest : str
        Identifies the content; part of every store key.
    names : array of shape (N,), optional
        What the owner calls each record: shown to the owner alone, no feature, and no part of the digest.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Points
    >>> len(Points(np.zeros((5, 2)), y=np.arange(5)).take(np.array([0, 3])))
    2
    """

    x: Any
    y: Shaped[Array, " N"] | Shaped[Array, "N L"] | None = None
    group: Shaped[Array, " N"] | None = None
    digest: str = ""
    names: Shaped[Array, " N"] | None = None

    def __post_init__(self) -> None:
        for name in ("y", "group", "names"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self):
                raise ValueError(f"x has {len(self):,} points, {name} has {len(values):,}")

    def __len__(self) -> int:
        return len(self.x)

    @property
    def unnamed(self) -> Points:
        """The points without names: what models are fitted on."""
        return replace(self, names=None)

    def take(self, indices: Int[Array, " n"]) -> Points:
        """Take the points at these positions, in that order.

        They have no digest: what is kept under the digest of all points is not that of some of them. They have no
        names either: models are fitted on them.
        """
        return Points(
            self.x[indices] if isinstance(self.x, np.ndarray) else self.x.take(indices),
            None if self.y is None else self.y[indices],
            None if self.group is None else self.group[indices],
        )


@dataclass(frozen=True, eq=False)
class Game:
    """Who is in and who is out, for every model.

    Parameters
    ----------
    kind : str
        The name of the game, as in ``leakbound.core.games``.
    member : bool array of shape (M, N)
        ``member[m, i]``: point i is in the data of model m.
    is_target_point : bool array of shape (N,) or (T, N)
        The points whose membership is guessed; the same number J in each row.
    n_targets : int
        T. The rows [:T] are attacked. If T < M the other rows are references; if T = M the references of
        a row are all other rows (leave one out).
    prior : float
        Fraction of the target points that are members: the baseline accuracy is max(prior, 1-prior).
    others : {"pool", "fresh"}
        The points that are no target points are all columns (pool), or drawn anew for each model (fresh): by the
        release from its distribution, so that the target points are the only columns; or from the file, as columns
        that are in the data of some models (``leakbound.core.games.fresh``).
    sampling : {"fixed", "poisson"}
        Fixed-size halves fit replace-one claims, independent coins fit add/remove claims.
    candidate_of : int array of shape (N,), optional
        In a game about an attribute: the record that each row is a candidate for. At most one row of a record is
        ever in, the record as it is.
    sampled_from : int, optional
        Of how many units the target points are a random sample; None if all that are in or out by chance are targets.
    size, pool : int, optional
        With others drawn anew from the file: units in each data set, and units that the others are drawn from.

    Examples
    --------
    >>> from leakbound.core.games import half_split
    >>> game = half_split(n_points=6, n_models=4)
    >>> game.member.shape, game.leave_one_out
    ((4, 6), True)
    """

    kind: str
    member: Bool[Array, "M N"]
    is_target_point: Bool[Array, " N"] | Bool[Array, "T N"]
    n_targets: int
    prior: float = 0.5
    others: Literal["pool", "fresh"] = "pool"
    sampling: Literal["fixed", "poisson"] = "fixed"
    candidate_of: Int[Array, " N"] | None = None
    sampled_from: int | None = None
    size: int | None = None
    pool: int | None = None

    def __post_init__(self) -> None:
        # point-major, like the signals; a memmap stays one
        object.__setattr__(self, "member", np.asanyarray(self.member, order="F"))
        n_models, n_points = self.member.shape
        if not 1 <= self.n_targets <= n_models:
            raise ValueError(f"n_targets must be from 1 to the {n_models} models, got {self.n_targets}")
        if self.is_target_point.shape not in {(n_points,), (self.n_targets, n_points)}:
            raise ValueError(
                f"is_target_point has shape {self.is_target_point.shape}; "
                f"allowed: ({n_points},) or ({self.n_targets}, {n_points})"
            )
        counts = np.unique(np.atleast_2d(self.is_target_point).sum(axis=1))
        if len(counts) != 1 or counts[0] == 0:
            raise ValueError(
                f"each target must have the same number of target points, at least 1; got {counts.tolist()}"
            )
        if self.candidate_of is not None and self.candidate_of.shape != (n_points,):
            raise ValueError(f"candidate_of has shape {self.candidate_of.shape}; allowed: ({n_points},)")

    @property
    def n_models(self) -> int:
        """The number M of models."""
        return self.member.shape[0]

    @property
    def leave_one_out(self) -> bool:
        """Whether every model is a target; the references of a target are then all other models."""
        return self.n_targets == self.n_models

    @property
    def by_coins(self) -> bool:
        """Whether each target point is in by a fair coin of its own, whatever the size of the data sets."""
        return self.sampling == "poisson" or self.kind == "fresh"

    @property
    def n_references(self) -> int:
        """Number of reference models of each target."""
        return self.n_models - (1 if self.leave_one_out else self.n_targets)

    def of_models(self, is_kept: Bool[Array, " M"]) -> Game:
        """Play the game with some of its models.

        Parameters
        ----------
        is_kept : bool array of shape (M,)

        Raises
        ------
        ValueError
            If no target is left.
        """
        targets = is_kept[: self.n_targets]
        if not targets.any():
            raise ValueError("no model that is attacked is among those that are finished")
        each = self.is_target_point if self.is_target_point.ndim == 1 else self.is_target_point[targets]
        return replace(self, member=self.member[is_kept], is_target_point=each, n_targets=int(targets.sum()))

    @cached_property
    def target_points(self) -> Int[Array, " J"] | Int[Array, "T J"]:
        """Indices of the target points, in ascending order, of all targets or of each target."""
        if self.is_target_point.ndim == 1:
            return np.flatnonzero(self.is_target_point)
        return np.nonzero(self.is_target_point)[1].reshape(self.n_targets, -1)

    @property
    def n_target_points(self) -> int:
        """J."""
        return self.target_points.shape[-1]

    @cached_property
    def population(self) -> Int[Array, " Z"]:
        """Indices of the points that are in no model and no target points: draws from the population."""
        unused = ~self.member.any(axis=0) & ~np.atleast_2d(self.is_target_point).any(axis=0)
        return np.flatnonzero(unused)

    @cached_property
    def target_member(self) -> Bool[Array, "T J"]:
        """Membership of the target points in the data of each target."""
        return self.at_targets(self.member)

    def at_targets(self, array: Shaped[Array, "M N ..."], block: slice = slice(None)) -> Shaped[Array, "T J ..."]:
        """Take the rows of the targets at their target points, or at a block of these."""
        columns = self.target_points[..., block]
        if columns.ndim == 1:
            return taken(array[: self.n_targets], _as_slice(columns))
        return array[np.arange(self.n_targets)[:, None], columns]

    def split(self) -> Game:
        """Return the same rows with the first half of them as targets, so that no reference is a target."""
        if not self.leave_one_out or self.n_models < 2:
            return self
        n_targets = self.n_models // 2
        is_target_point = self.is_target_point if self.is_target_point.ndim == 1 else self.is_target_point[:n_targets]
        return replace(self, is_target_point=is_target_point, n_targets=n_targets)


@dataclass(frozen=True, eq=False)
class Signals:
    """What one sees of the models at the points.

    Parameters
    ----------
    game : Game
    points : Points or None
        None where the signals come without their points.
    arrays : mapping of str to array of shape (M, N, ...)
        By name. Those of ``SIGNALS`` have its axes and values. A signal of any other name is your own: its first two
        axes are the models and the points, and an attack gets it by its name. Memory is point-major (a point's models
        are neighbours). With ``log_prob`` (M, N, K), log-probabilities in class order, the ``loss``, ``log_odds`` and
        ``correct`` that are not given are computed from it. Of models that were asked about Q versions of each point,
        the point itself first, ``query_loss``, ``query_log_odds`` and ``query_correct`` (M, N, Q); what is not given
        without queries is taken from the first one.
    labels : int array of shape (N,), optional
        The class index of each point, which ``log_prob`` needs: column k of it is class k.
    checked : bool
        The values were checked before, or read off a release by leakbound (`observed`).

    Raises
    ------
    ValueError
        If a signal is no array of numbers, has another shape or values that it cannot have, or signals disagree: in one
        line.

    Examples
    --------
    >>> game = Game("signals", np.array([[True, False]]), np.array([True, True]), 1)
    >>> log_prob = np.log([[[0.2, 0.8], [0.6, 0.4]]])
    >>> signals = Signals(game, None, {"log_prob": log_prob}, labels=np.array([1, 1]))
    >>> signals.array("loss").round(3).tolist()
    [[0.223, 0.916]]
    >>> Signals(game, None, {"logins": np.array([[3, 0]])}).targets("logins").tolist()  # a signal of your own
    [[3, 0]]
    >>> two_queries = {"query_loss": np.array([[[0.1, 0.2], [0.5, 0.4]]])}
    >>> Signals(game, None, two_queries).array("loss").tolist()
    [[0.1, 0.5]]
    """

    game: Game
    points: Points | None
    arrays: Mapping[str, Shaped[Array, "M N ..."]]
    labels: Num[Array, " N"] | None = None
    checked: bool = False

    def __post_init__(self) -> None:
        if "logits" in self.arrays:
            raise ValueError(
                "signal 'logits' is not taken, for it does not say what it holds; give log_prob (M, N, K), "
                "log-probabilities in class order, and labels (N,), class indices; apply log_softmax to raw logits"
            )
        # the same axis has the same length in all signals
        lengths: dict[str, int] = {}
        for name, array in self.arrays.items():
            self._check_axes(name, array)
            axes = SIGNALS[name].axes if name in SIGNALS else ()
            for axis, length in zip(axes[2:], array.shape[2:], strict=False):
                if lengths.setdefault(axis, length) != length:
                    raise ValueError(
                        f"signal {name!r} has {axis} = {length}, another signal has {axis} = {lengths[axis]}"
                    )
            if not finite(array):
                raise ValueError(f"signal {name!r} has NaN or infinite values")
        if not self.checked:
            self._check_values()
            object.__setattr__(self, "checked", True)

    def _check_axes(self, name: str, array: Any) -> None:
        """Check that a signal holds numbers, by model and point; one of ``SIGNALS`` with its further axes."""
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            kind = f"array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ValueError(f"signal {name!r} must be an array of numbers by model and point, got {kind}")
        game_shape = self.game.member.shape
        if name not in SIGNALS:
            if array.shape[:2] != game_shape:
                raise ValueError(
                    f"signal {name!r} has shape {array.shape}; its first two axes must be (M, N) = {game_shape}"
                    f"{_if_swapped(array.shape, game_shape)}"
                )
            return
        axes = SIGNALS[name].axes
        if array.ndim != len(axes) or array.shape[:2] != game_shape:
            raise ValueError(
                f"signal {name!r} has shape {array.shape}; its axes are ({', '.join(axes)}) with (M, N) = {game_shape}"
                f"{_if_swapped(array.shape, game_shape)}"
            )

    def _check_values(self) -> None:
        """Compare the signals with each other, and compute from ``log_prob`` what was not given."""
        arrays = {**first_queries(self.arrays), **self.arrays}
        refuse_impossible(arrays)
        if "loss" in arrays and not arrays["loss"].min() >= 0:  # by rounding of a probability near 1
            arrays["loss"] = np.maximum(arrays["loss"], 0)
        if "log_prob" not in arrays:
            if self.labels is not None:
                raise ValueError(
                    "labels are the class indices of the signal 'log_prob', and there is none; leave them out"
                )
        else:
            log_prob = arrays["log_prob"]
            if self.labels is None:
                raise ValueError(
                    "signal 'log_prob' needs labels (N,): the class index of each point, 0 for its first column"
                )
            labels = class_indices(self.labels, log_prob.shape[1], log_prob.shape[2])
            derived = of_log_prob(log_prob, labels)
            refuse_disagreeing(arrays, derived)
            arrays = {**derived, **arrays}
            object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "arrays", arrays)

    @classmethod
    def observed(cls, game: Game, points: Points | None, arrays: Mapping[str, Shaped[Array, "M N ..."]]) -> Signals:
        """Wrap what leakbound read off a release: its ``log_prob`` has the true label's class first.

        A release reads a probability of 0 as half of the smallest positive one, and normalises ``log_prob`` alone, so
        the loss of a row with zeros may differ from it; they are not compared.
        """
        labels = np.zeros(game.member.shape[1], dtype=np.intp) if "log_prob" in arrays else None
        return cls(game, points, arrays, labels, checked=True)

    def array(self, *names: str) -> Shaped[Array, "M N ..."]:
        """Return the first of these signals that is there.

        Raises
        ------
        NotApplicable
            If none of them is.
        """
        for name in names:
            if name in self.arrays:
                return self.arrays[name]
        raise NotApplicable(why_missing(names, self.arrays))

    def only(self, names: Sequence[str]) -> Signals:
        """Keep the signals of these names, as far as they are there."""
        return replace(self, arrays={name: array for name, array in self.arrays.items() if name in names}, checked=True)

    def targets(self, name: str, block: slice = slice(None)) -> Shaped[Array, "T J ..."]:
        """Take a signal of the targets at their target points."""
        return self.game.at_targets(self.array(name), block)

    def true_class(self, block: slice = slice(None)) -> Int[Array, "T J"]:
        """Which class of ``log_prob`` is the true one, of the targets at their target points."""
        self.array("log_prob")  # without it there are no labels
        return self.game.at_targets(np.broadcast_to(np.asarray(self.labels), self.game.member.shape), block)

    def blocks(self, size: int = 2048) -> Iterator[slice]:
        """Slices of the target points, so that work on (T, J) arrays stays small."""
        for start in range(0, self.game.n_target_points, size):
            yield slice(start, min(start + size, self.game.n_target_points))


def _if_swapped(shape: tuple[int, ...], game_shape: tuple[int, ...]) -> str:
    """Say what to do where models and points are the wrong way round."""
    if shape[:2] != game_shape[::-1] or shape[:2] == game_shape:
        return ""
    return f", {game_shape[0]:,} models and {game_shape[1]:,} points: transpose the signal, or member"


def _as_slice(indices: Array) -> Array | slice:
    """Convert consecutive indices to a slice, so that taking them makes no copy."""
    if len(indices) and indices[-1] - indices[0] + 1 == len(indices):
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


def finite(array: Array, chunk: int = 1 << 22) -> bool:
    """Check that all values are finite, in pieces, so that no mask of the whole array is made."""
    flat = array.reshape(-1, order="A")
    return all(bool(np.isfinite(flat[start : start + chunk]).all()) for start in range(0, flat.size, chunk))


class WrongScores(ValueError):
    """What the function of an attack returned are no scores of its targets and target points."""


@dataclass(frozen=True, eq=False)
class Scores:
    """What an attack says of each target point of each target; higher = member, always.

    Parameters
    ----------
    attack : str
        Name of the attack.
    value : array of shape (T, J)
        Finite scores.
    member : bool array of shape (T, J)
        The truth.
    source : str
        Where the score is defined.
    variance_inflation : float
        Variance of an average over the targets, relative to that over independent ones: 1 where no target
        is a reference of another.
    points : int array of shape (J,) or (T, J), optional
        Indices of the target points, of all targets or of each; None where the scores are of units of several points.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> Scores("loss", np.array([[0.3, -1.0]]), np.array([[True, False]])).value.shape
    (1, 2)
    """

    attack: str
    value: Float[Array, "T J"]
    member: Bool[Array, "T J"]
    source: str = ""
    variance_inflation: float = 1.0
    points: Int[Array, " J"] | Int[Array, "T J"] | None = None

    def __post_init__(self) -> None:
        if self.value.shape != self.member.shape or self.value.ndim != 2:
            raise ValueError(
                f"scores have shape {self.value.shape}, memberships {self.member.shape}; both must be (T, J)"
            )
        if not finite(self.value):
            raise ValueError(f"{self.attack}: scores have NaN or infinite values")


@runtime_checkable
class Attack(Protocol):
    """Signals in, scores out."""

    @property
    def name(self) -> str:
        """Identifier, unique in an audit."""
        ...

    @property
    def title(self) -> str:
        """How reports call it."""
        ...

    @property
    def source(self) -> str:
        """Key of the bibliography, and the equation or section."""
        ...

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        ...

    def __call__(self, signals: Signals) -> Scores:
        """Scores of the target points of each target."""
        ...


@runtime_checkable
class Release(Protocol):
    """What is published, as something that can be made again from other data."""

    @property
    def name(self) -> str:
        """Identifier, unique in an audit."""
        ...

    @property
    def chunk(self) -> int:
        """Number of rows that are made and stored together."""
        ...

    def describe(self) -> Mapping[str, Any] | None:
        """Return a canonical description for the store, or None if there is none (a lambda)."""
        ...

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m ..."]]:
        """Make one release for each row of ``member`` and see it at every point.

        Returns those of the wanted signals that this release can give; ``log_prob`` with the class of the true label
        first, as ``leakbound.releases.readout.probabilities`` gives it. A signal has the axes (m, N, ...); of
        ``DIAGNOSTICS``, which are about a training and not about a point, (m, P).
        """
        ...


@runtime_checkable
class Noise(Protocol):
    """A symmetric distribution that is added to a statistic of d numbers, with what it hides of a shift.

    Shifts v count by their length ``u = norm(v)`` alone, in the noise's own norm (without its scale).

    Examples
    --------
    >>> from leakbound.core.types import Noise
    >>> from leakbound.noise import GaussianNoise
    >>> isinstance(GaussianNoise(1.0), Noise)
    True
    """

    @property
    def d(self) -> int | None:
        """Coordinates of the statistic; None if any number will do."""
        ...

    @property
    def norm(self) -> Callable[[Array], Array]:
        """Lengths of shifts of shape (..., d); NaN where a shift is not finite. Equal norms compare equal."""
        ...

    def sample(self, value: Num[Array, "*batch d"], rng: np.random.Generator) -> Float[Array, "*batch d"]:
        """Add an independent draw to each vector."""
        ...

    def log_density(self, z: Num[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Compute the log of the density of the noise, in nats."""
        ...

    def shift_tv(self, u: ArrayLike) -> Float[Array, "*shape"]:
        """Bound the total variation between the noise and its shift by the length u; concave; NaN gives 1."""
        ...

    def shift_hockey(self, u: ArrayLike, gamma: float) -> Float[Array, "*shape"]:
        """Bound the hockey-stick divergence ``int (p - gamma q)_+`` of the same pair; gamma >= 1."""
        ...

    def rms(self, d: int) -> float:
        """Compute the root mean square of the noise in each of d coordinates."""
        ...
