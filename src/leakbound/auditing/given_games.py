"""Games that the user describes: whether the memberships look as they are said to be drawn."""

from __future__ import annotations

import math

from leakbound.attacks.blocks import all_target_points
from leakbound.core.types import Game

_HARDLY = 1e-9  # chance that fair coins look so little like coins: then they are refused, for epsilon would be wrong
_FAR = 6.0  # standard deviations of a fraction of fair coins
_MANY = 100  # models; with fewer of them, more models than records are a usual design


def refuse_no_coins(game: Game) -> None:
    """Refuse memberships that are said to be fair coins and hardly can be.

    Epsilon is then computed from the number of coins that were guessed, and would be too large.

    >>> from leakbound.core.games import half_split
    >>> refuse_no_coins(half_split(100, 8, sampling="poisson"))
    """
    if game.sampling != "poisson":
        return
    member = game.target_member
    n_models, n_points = member.shape
    if abs(2 * member.mean() - 1) * math.sqrt(member.size) > _FAR:
        raise ValueError(
            f"sampling='poisson' says that each record is in a model by a fair coin, and {100 * member.mean():.3g} % "
            "of the target points are members; say sampling='fixed', which holds for any fraction"
        )
    n_members = member.sum(axis=1)
    # two models are of one size with a probability of at most that of the most likely size
    chance = min(1.0, math.sqrt(2 / (math.pi * n_points))) ** (n_models - 1)
    if n_members.min() == n_members.max() and chance < _HARDLY:
        raise ValueError(
            f"sampling='poisson' says that each record is in by a coin of its own, and all {n_models:,} models have "
            f"exactly {n_members[0]:,} members, as coins hardly ever give; say sampling='fixed'"
        )


def notes_of_game(game: Game, has_units: bool = False) -> list[str]:
    """List what a reader should check of a game that the user describes.

    >>> from leakbound.core.games import half_split
    >>> from dataclasses import replace
    >>> notes_of_game(half_split(100, 8))
    []
    >>> notes_of_game(replace(half_split(100, 8, sampling="poisson"), sampling="fixed"))[0][:68]
    'The models have 45 to 55 members among the target points: these are '
    """
    n_models, n_points = game.member.shape
    notes = []
    if n_models >= _MANY and 1 < n_points < n_models:
        notes.append(
            f"There are more models ({n_models:,}, the first axis of member) than records ({n_points:,}, the second): "
            "if it is the other way round, transpose member and the signals"
        )
    member = game.target_member
    n_members = member.sum(axis=1)
    sizes_differ = n_members.min() < n_members.max()
    looks_fair = abs(2 * member.mean() - 1) * math.sqrt(member.size) <= _FAR
    several = game.is_target_point.ndim == 1 and len(all_target_points(game)) > 1
    if (
        several and n_models > 1
    ):  # records in exactly so many of the models have a note of their own: that of the design
        n_in = member.sum(axis=0)
        several = bool(n_in.min() < n_in.max())
    # with units of several records, sets of equally many units may differ in their numbers of records
    if game.sampling == "fixed" and sizes_differ and several and looks_fair and not has_units:
        notes.append(
            f"The models have {n_members.min():,} to {n_members.max():,} members among the target points: these are "
            "not sets of one size. Epsilon is of replacing a record in a set of given size, which holds for each set "
            "at its own size. If each record was in by a fair coin of its own, say sampling='poisson': then adding or "
            "removing a record is tested"
        )
    return notes
