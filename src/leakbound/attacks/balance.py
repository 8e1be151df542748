"""Designs in which the data of the other models reveal who was in a model's data, and references that do not.

A reference attack compares a model with models whose memberships it knows. It measures the model only if these
memberships are independent of the model's own. In the usual design of LiRA they are not: where each point is in exactly
half of K models, K/2 - 1 of the K - 1 others have it if the model has it, and K/2 if not. An attack profits without
counting: a mean over the others (RMIA) is lower where a member is missing, and the number of references on a side
affects the variance that is estimated there (LiRA), the soft minimum (MAST) and the best threshold.

Axes: K models, N points, R references of a target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.special import gammaln

from leakbound.attacks.blocks import all_target_points
from leakbound.core.findings import Term
from leakbound.core.on_disk import taken
from leakbound.core.reasons import words
from leakbound.core.seeds import stream
from leakbound.core.types import Game, NotApplicable, Signals

Array = np.ndarray
_CHANCE = 1e-3  # a design is reported only if independent draws look like it with a smaller probability
_FAR = 6.0  # a correlation beyond so many standard deviations of that of independent draws is called dependence
_MANY_PATTERNS = 16  # with so many models or more, equal columns are the rows of one unit rather than chance
_COLUMNS = 4096  # columns that correlations are computed from: enough to see what would change a result


@dataclass(frozen=True, eq=False)
class Design:
    """How the memberships of the models depend on each other at the target points."""

    same: Bool[Array, "K K"]
    # how many models each target point is in; 0 where that differs from point to point
    n_in: int = 0
    reason: Term | None = None

    @property
    def note(self) -> str:
        """The note in the report."""
        if self.reason:
            return f"Attacks with references were left out: {words(self.reason)}"
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
    """Test whether the memberships of the other models of a game reveal those of a model.

    >>> from leakbound.core.games import half_split
    >>> design(half_split(100, 8)) is None
    True
    >>> half = half_split(100, 4).member
    >>> complements = design(Game("signals", np.concatenate([half, ~half]), np.ones(100, dtype=bool), 8))
    >>> complements.same[0].nonzero()[0].tolist()
    [4]
    """
    if game.n_references < 1:
        return None
    columns = all_target_points(game)
    sample = columns[np.linspace(0, len(columns) - 1, min(len(columns), _COLUMNS)).astype(int)]
    unit = game.candidate_of if group is None else group
    sampled_member = game.member[:, sample]
    n_free = _independent_columns(sampled_member, None if unit is None else unit[sample])
    member = taken(game.member, columns)
    n_in = member.sum(axis=0)
    constant = int(n_in[0]) if n_in.min() == n_in.max() else 0
    # Without known units the columns are counted as independent: a wrong alarm costs one reference, no more.
    n_units = n_free if unit is not None else len(sample)
    same = _same_or_opposite(member)
    if game.n_models**2 * 0.5**n_free > _CHANCE:  # pairs and counts that chance hardly explains tell of a design
        same = np.zeros_like(same)
    if game.leave_one_out or game.n_targets == 1:
        constant = _constant_count(constant, game.n_models, n_units)
        if constant and not same.any():
            return Design(same, constant, _uneven_pairs(sampled_member, n_free))
    reason = _dependence(game.n_targets, sampled_member, same, n_free)
    return Design(same, 0, reason) if reason or same.any() else None


def design_of(signals: Signals) -> Design | None:
    """Test the game of these signals, with the units of its points; see `design`."""
    return design(signals.game, None if signals.points is None else signals.points.group)


def apart(signals: Signals, dependent: Design, score: Callable[[Signals], Float[Array, "1 J"]]) -> Float[Array, "T J"]:
    """Score each target by references whose memberships are independent of its own.

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
    if dependent.reason:
        raise NotApplicable(dependent.reason)
    scores = [score(_one_target(signals, dependent, target)) for target in range(signals.game.n_targets)]
    return np.concatenate(scores)


def one_target(signals: Signals, target: int) -> Signals:
    """Build a game of one target, row 0, and its references, without the other targets."""
    n_models = signals.game.n_models
    return _one_target(signals, Design(np.zeros((n_models, n_models), dtype=bool)), target)


def _one_target(signals: Signals, dependent: Design, target: int) -> Signals:
    """Build a game of one target, row 0, with the references that are left, which may differ from point to point."""
    game = signals.game
    rows = np.arange(game.n_models) if game.leave_one_out else np.arange(game.n_targets, game.n_models)
    rows = rows[(rows != target) & ~dependent.same[target, rows]]
    points = np.arange(game.member.shape[1])
    reference_rows = np.broadcast_to(rows[:, None], (len(rows), len(points)))
    if dependent.n_in:
        left_out = _draw_left_out(game.member, rows, target)
        place = np.arange(len(rows) - 1)[:, None]
        reference_rows = rows[place + (place >= left_out)]  # all places but the one that is left out

    def rows_of(array: Array) -> Array:
        return np.concatenate([array[target : target + 1], array[reference_rows, points]])

    is_target = game.is_target_point if game.is_target_point.ndim == 1 else game.is_target_point[target]
    member = rows_of(game.member)
    # A point that is no target point counts as the population only if it is in no model at all.
    member[0] |= ~is_target & game.member.any(axis=0)
    alone = replace(game, member=member, is_target_point=is_target, n_targets=1)
    arrays = {name: rows_of(array) for name, array in signals.arrays.items()}
    return replace(signals, game=alone, arrays=arrays)


def _draw_left_out(member: Bool[Array, "K N"], rows: Int[Array, " R"], target: int) -> Int[Array, " N"]:
    """Draw, at each point, the place in ``rows`` of one reference whose membership is not the target's.

    Any reference, where there is no such one (a point in no model).
    """
    uniform = stream(0, "balanced design", target).random((len(rows), member.shape[1]), dtype=np.float32)
    uniform[member[rows] == member[target]] -= 1  # below all others
    return uniform.argmax(axis=0)


def _independent_columns(member: Bool[Array, "K J"], unit: Shaped[Array, " J"] | None) -> int:
    """Count the columns that were drawn independently: rows of one unit are in or out together."""
    if unit is not None:
        return len(np.unique(unit))
    n_models, n_points = member.shape
    if n_models < _MANY_PATTERNS:
        return n_points
    return np.unique(np.packbits(member, axis=0), axis=1).shape[1]


def _same_or_opposite(member: Bool[Array, "K J"]) -> Bool[Array, "K K"]:
    """Find the pairs of different rows that are equal or opposite at all points."""
    relative_to_first = np.packbits(member, axis=1)
    # opposite rows become equal
    relative_to_first[member[:, 0]] ^= np.packbits(np.ones(member.shape[1], dtype=bool))
    numbers: dict[bytes, int] = {}
    pattern = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in relative_to_first])
    same = pattern[:, None] == pattern[None, :]
    np.fill_diagonal(same, False)
    return same


def _constant_count(n_in: int, n_models: int, n_units: int) -> int:
    """Return the number of models that every point is in, if chance hardly makes it the same for all; else 0."""
    if n_in in (0, n_models):
        return 0
    c, fraction = n_in, n_in / n_models
    # log of the binomial probability of c
    log_chance = gammaln(n_models + 1) - gammaln(c + 1) - gammaln(n_models - c + 1)
    log_chance += c * np.log(fraction) + (n_models - c) * np.log1p(-fraction)
    return c if (n_units - 1) * log_chance < np.log(_CHANCE) else 0


def _correlations(member: Bool[Array, "K J"]) -> Float[Array, "K K"]:
    """Compute the correlation of the memberships of each pair of rows; 0 where a row is constant."""
    centred = member - member.mean(axis=1, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=1))
    scaled = centred / np.where(length > 0, length, 1)[:, None]
    return scaled @ scaled.T


def _uneven_pairs(member: Bool[Array, "K J"], n_free: int) -> Term | None:
    """Say why rows with constant counts are not exchangeable, as with blocks of models that have each point once.

    Exchangeable rows with constant counts have correlations of -1/(K - 1).
    """
    n_models = len(member)
    if n_models < 3:
        return None
    correlation = _correlations(member)
    others = ~np.eye(n_models, dtype=bool)
    far = np.abs(correlation[others] + 1 / (n_models - 1)).max() * np.sqrt(n_free)
    return Term("pairs_share_fewer_points") if far > _FAR else None


def _dependence(n_targets: int, member: Bool[Array, "K J"], same: Bool[Array, "K K"], n_free: int) -> Term | None:
    """Say why the memberships of a target depend on those of its references; None if they do not seem to."""
    usable = ~same & ~np.eye(len(member), dtype=bool)
    if n_targets < len(member):
        usable[:, :n_targets] = False
    usable = usable[:n_targets]
    root = np.sqrt(n_free)
    correlation = _correlations(member)[:n_targets]
    if usable.any() and np.abs(correlation[usable]).max() * root > _FAR:
        return Term("pairs_share_points")
    # The correlation of a target's memberships with the number of its references that have the point.
    own = member[:n_targets].astype(float)
    n_references_in = usable.astype(float) @ member
    own -= own.mean(axis=1, keepdims=True)
    n_references_in -= n_references_in.mean(axis=1, keepdims=True)
    length = np.sqrt((own**2).sum(axis=1) * (n_references_in**2).sum(axis=1))
    count_correlation = (own * n_references_in).sum(axis=1) / np.where(length > 0, length, 1)
    far_count = np.abs(count_correlation).max() * root > _FAR
    if far_count or _dispersion(member, usable) * np.sqrt(n_free / 2) > _FAR:
        return Term("counts_tell")
    return None


def _dispersion(member: Bool[Array, "K J"], usable: Bool[Array, "T K"]) -> float:
    """Compare the variance of the number of models with a point with that of independent draws; relative difference.

    It uses all targets at once, and so detects what the correlations of single targets are too noisy to show.
    """
    n_models = len(member)
    if usable.shape != (n_models, n_models) or usable.sum() < n_models * (n_models - 1):
        return 0.0
    fraction = member.mean(axis=1)
    expected = (fraction * (1 - fraction)).sum()
    return abs(member.sum(axis=0).var() / expected - 1) if expected > 0 else 0.0
