"""Designs in which the other models tell who was in a model's data, and references that do not.

A reference attack compares a model with models whose memberships it knows. It measures the model only if these
memberships say nothing about the model's own. In the usual design of LiRA they do: where each point is in exactly half
of K models, the K - 1 others hold it K/2 - 1 times if the model holds it and K/2 times if not. An attack need not count
to profit: a mean over the others (RMIA) is lower where a member is missing, and the number of references on a side
decides the variance that is estimated there (LiRA), the soft minimum (MAST) and the best threshold.

Axes: K models, N points, R references of a target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.special import gammaln

from leakscope.core.seeds import stream
from leakscope.core.types import Game, NotApplicable, Signals

Array = np.ndarray
_CHANCE = 1e-3  # a design is seen only where independent draws look so with a smaller probability
_FAR = 6.0  # standard deviations of a correlation of independent draws that are called dependent
_MANY_PATTERNS = 16  # models from which on equal columns are rather the rows of one unit than chance
_COLUMNS = 4096  # that correlations are computed of: enough to see whatever would move a result
DEPENDENT = (
    "the data of the other models tell who was in the data of the attacked one ({how}), and references would too; "
    "draw the data of each model by itself, or so that each point is in exactly half of the models"
)


@dataclass(frozen=True, eq=False)
class Design:
    """How the memberships of the models depend on each other at the judged points.

    Parameters
    ----------
    same : bool array of shape (K, K)
        Pairs of models with equal or with opposite memberships at all judged points.
    n_in : int
        The number of models that each judged point is in, where that is the same for all of them; else 0.
    reason : str
        Why no choice of references is known to be valid; "" where one is.
    """

    same: Bool[Array, "K K"]
    n_in: int = 0
    reason: str = ""

    @property
    def note(self) -> str:
        """What a report says of it."""
        if self.reason:
            return f"Attacks with references were left out: {self.reason}"
        n_models = len(self.same)
        if self.same.any():
            return (
                "Some models were trained on the same points, or on exactly the others: neither is a reference of the "
                "other, for its data would tell who was in"
            )
        return (
            f"Each point is in exactly {self.n_in} of the {n_models} models, so that the other models tell whether the "
            "attacked one has it; for each attacked model and point one reference was left out at random, of those "
            "with the point if the model is without it and the reverse, and the number of references tells nothing"
        )


def design(game: Game, group: Shaped[Array, " N"] | None = None) -> Design | None:
    """Find out whether the other models of a game tell who was in a model's data.

    Parameters
    ----------
    game : Game
    group : array of shape (N,), optional
        Unit of each point: its rows are in or out together.

    Returns
    -------
    Design or None
        None where the memberships look like independent draws, as those of ``leakscope.core.games`` are.

    Examples
    --------
    >>> from leakscope.core.games import half_split
    >>> design(half_split(100, 8)) is None
    True
    >>> half = half_split(100, 4).member
    >>> found = design(Game("signals", np.concatenate([half, ~half]), np.ones(100, dtype=bool), 8))
    >>> found.same[0].nonzero()[0].tolist()
    [4]
    """
    if game.n_references < 1:
        return None
    columns = np.flatnonzero(np.atleast_2d(game.judged).any(axis=0))
    part = columns[np.linspace(0, len(columns) - 1, min(len(columns), _COLUMNS)).astype(int)]
    unit = game.candidate_of if group is None else group
    sample = game.member[:, part]
    n_free = _independent_columns(sample, None if unit is None else unit[part])
    member = game.member[:, columns]
    same = _same_or_opposite(member, n_free)
    n_units = n_free if unit is not None else len(part)  # a false find costs no more than a reference
    n_in = _constant_count(member, n_units) if game.leave_one_out or game.n_targets == 1 else 0
    if n_in and not same.any():
        return Design(same, n_in, _uneven(sample, n_free))
    reason = _dependence(game, sample, same, n_free)
    return Design(same, 0, reason) if reason or same.any() else None


def design_of(signals: Signals) -> Design | None:
    """Find the design of the game that signals are of, with their units; see `design`."""
    return design(signals.game, None if signals.points is None else signals.points.group)


def apart(signals: Signals, found: Design, score: Callable[[Signals], Float[Array, "1 J"]]) -> Float[Array, "T J"]:
    """Score each target by references whose memberships are independent of its own.

    Parameters
    ----------
    signals : Signals
    found : Design
        Of its game.
    score : callable
        An attack on a game of one target whose references are fixed.

    Returns
    -------
    array of shape (T, J)

    Raises
    ------
    NotApplicable
        If the design leaves no valid references.

    Notes
    -----
    Models with opposite (equal) memberships: leave out the reference that is the target's own complement (copy). Where
    the other pairs were drawn independently, so are all memberships that remain.

    Each point in exactly c of the K models: let b be the memberships of a point, uniform over the vectors with c ones
    (independent of the models' order, that is all that is needed). Of the references leave out one, d, drawn uniformly
    from those with b_d = 1 - b_m: K - c of them if b_m = 1, c if b_m = 0. What remains has c - 1 ones and K - c - 1
    zeros in both cases, and for any such rest r and any d

        P(b_m = 1, d, r) = 1 / C(K, c) / (K - c),    P(b_m = 0, d, r) = 1 / C(K, c) / c,

    neither of which depends on d and r. So b_m is independent of (d, r) and is 1 with probability c / K: which
    references are left and who is in them says nothing about the target.
    """
    if found.reason:
        raise NotApplicable(found.reason)
    game = signals.game
    return np.concatenate([score(_one_target(signals, found, target)) for target in range(game.n_targets)])


def _one_target(signals: Signals, found: Design, target: int) -> Signals:
    """A target as row 0 and below it the references that are left, which may be others at each point."""
    game = signals.game
    rows = np.arange(game.n_models) if game.leave_one_out else np.arange(game.n_targets, game.n_models)
    rows = rows[(rows != target) & ~found.same[target, rows]]
    n_points = game.member.shape[1]
    if found.n_in:
        left_out = _one_of_the_other_kind(game.member, rows, target)
        place = np.arange(len(rows) - 1)[:, None]
        rows_at = rows[place + (place >= left_out)]
    else:
        rows_at = np.broadcast_to(rows[:, None], (len(rows), n_points))
    points = np.arange(n_points)

    def taken(array: Array) -> Array:
        return np.concatenate([array[target : target + 1], array[rows_at, points]])

    member = taken(game.member)
    judged = game.judged if game.judged.ndim == 1 else game.judged[target]
    # A point that nobody judges counts as the population only where it is in no model at all.
    member[0] |= ~judged & game.member.any(axis=0)
    alone = replace(game, member=member, judged=judged, n_targets=1)
    arrays = {name: taken(array) for name, array in signals.arrays.items()}
    return replace(signals, game=alone, arrays=arrays)


def _one_of_the_other_kind(member: Bool[Array, "K N"], rows: Int[Array, " R"], target: int) -> Int[Array, " N"]:
    """Place among the rows of one reference at each point, drawn from those whose membership is not the target's.

    Where there is none (a point in no model), any reference.
    """
    drawn = stream(0, "balanced design", target).random((len(rows), member.shape[1]), dtype=np.float32)
    drawn[member[rows] == member[target]] -= 1
    return drawn.argmax(axis=0)


def _pairs(game: Game) -> tuple[Bool[Array, " K"], Bool[Array, " K"]]:
    """Which rows are targets and which are references."""
    row = np.arange(game.n_models)
    return row < game.n_targets, row >= (0 if game.leave_one_out else game.n_targets)


def _independent_columns(member: Bool[Array, "K J"], unit: Shaped[Array, " J"] | None) -> int:
    """How many columns were drawn: rows of one unit are in or out together."""
    if unit is not None:
        return len(np.unique(unit))
    n_models, n_points = member.shape
    if n_models < _MANY_PATTERNS:
        return n_points
    return np.unique(np.packbits(member, axis=0), axis=1).shape[1]


def _same_or_opposite(member: Bool[Array, "K J"], n_free: int) -> Bool[Array, "K K"]:
    """Pairs of different rows that are equal or opposite at all points, if chance would hardly make one."""
    n_models = len(member)
    same = np.zeros((n_models, n_models), dtype=bool)
    if n_models**2 * 0.5**n_free > _CHANCE:
        return same
    by_first = np.packbits(member ^ member[:, :1], axis=1)  # opposite rows become equal
    _, kind = np.unique(by_first, axis=0, return_inverse=True)
    same[:] = kind.ravel()[:, None] == kind.ravel()[None, :]
    np.fill_diagonal(same, False)
    return same


def _constant_count(member: Bool[Array, "K J"], n_units: int) -> int:
    """The number of models that every point is in, if it is the same for all and not by chance; else 0."""
    n_in = member.sum(axis=0)
    n_models = len(member)
    if n_in.min() != n_in.max() or n_in[0] in (0, n_models):
        return 0
    c, share = int(n_in[0]), n_in[0] / n_models
    log_chance = gammaln(n_models + 1) - gammaln(c + 1) - gammaln(n_models - c + 1)
    log_chance += c * np.log(share) + (n_models - c) * np.log1p(-share)  # of c in a binomial draw
    return c if (n_units - 1) * log_chance < np.log(_CHANCE) else 0


def _correlations(member: Bool[Array, "K J"]) -> Float[Array, "K K"]:
    """Of the memberships of each pair of rows; 0 where a row is in or out everywhere."""
    centred = member - member.mean(axis=1, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=1))
    scaled = centred / np.where(length > 0, length, 1)[:, None]
    return scaled @ scaled.T


def _uneven(member: Bool[Array, "K J"], n_free: int) -> str:
    """Why rows with constant counts were not drawn alike, as in blocks of models that hold each point equally often."""
    n_models = len(member)
    if n_models < 3:
        return ""
    correlation = _correlations(member)
    others = ~np.eye(n_models, dtype=bool)
    far = np.abs(correlation[others] + 1 / (n_models - 1)).max() * np.sqrt(n_free)
    return DEPENDENT.format(how="some pairs of models share fewer points than others") if far > _FAR else ""


def _dependence(game: Game, member: Bool[Array, "K J"], same: Bool[Array, "K K"], n_free: int) -> str:
    """Why the memberships of a target are not independent of those of its references; "" where they seem to be."""
    targets, references = _pairs(game)
    usable = references[None, :] & ~same & ~np.eye(game.n_models, dtype=bool)
    usable = usable[targets]
    root = np.sqrt(n_free)
    correlation = _correlations(member)[targets]
    if usable.any() and np.abs(correlation[usable]).max() * root > _FAR:
        return DEPENDENT.format(how="pairs of models share more or fewer points than chance has it")
    own = member[targets].astype(float)
    n_others = usable.astype(float) @ member
    own -= own.mean(axis=1, keepdims=True)
    n_others -= n_others.mean(axis=1, keepdims=True)
    length = np.sqrt((own**2).sum(axis=1) * (n_others**2).sum(axis=1))
    told = (own * n_others).sum(axis=1) / np.where(length > 0, length, 1)
    if np.abs(told).max() * root > _FAR or _dispersion(game, member, usable) * np.sqrt(n_free / 2) > _FAR:
        return DEPENDENT.format(how="by how many of them have a point")
    return ""


def _dispersion(game: Game, member: Bool[Array, "K J"], usable: Bool[Array, "T K"]) -> float:
    """How far the variance of the number of models with a point is from that of independent draws, relative to it.

    It sees all targets at once what the correlation of a target with the number of its references cannot.
    """
    if not game.leave_one_out or not usable.any(axis=1).all() or usable.sum() < game.n_models * (game.n_models - 1):
        return 0.0
    share = member.mean(axis=1)
    expected = (share * (1 - share)).sum()
    return abs(member.sum(axis=0).var() / expected - 1) if expected > 0 else 0.0
