"""Games: who is in and who is out, drawn from the seed stream "game".

Row m depends on the seed and on m alone, so that 128 models begin with the same 64. Rows are drawn
independently and never balanced by column: a column of which the number of members is known reveals, with leave one
out, whether the row that was left out holds the point.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int, Shaped

from leakbound.core.checks import count, one_of, probability
from leakbound.core.seeds import stream
from leakbound.core.types import Game

Array = np.ndarray
Sampling = Literal["fixed", "poisson"]
Others = Literal["pool", "fresh"]
GAMES = ("half_split", "per_datum", "average_datum", "canaries", "fresh", "forgotten")
Kept = Literal["half", "all"]
LARGEST_POPULATION = 10_000
LEAST_FILE = 4  # times the data set: a smaller file makes members easier to tell by more than 15 % of a deviation


def half_split(
    n_points: int,
    n_models: int,
    *,
    seed: int = 0,
    sampling: Sampling = "fixed",
    population: float = 0.0,
    group: Shaped[Array, " N"] | None = None,
    sample: int | None = None,
) -> Game:
    """Each model gets a random half of the points, every model is a target and every point is a target point.

    Parameters
    ----------
    n_points : int
        N.
    n_models : int
        M; the references of a model are all others.
    seed : int
    sampling : {"fixed", "poisson"}
        Exactly half of the units, or each with probability 1/2.
    population : float
        Fraction of the units that is set aside (in no model, no target points; at most 10,000 points).
    group : array of shape (N,), optional
        Unit of each point; the rows of a unit are in or out together.
    sample : int, optional
        How many of the units are target points, drawn at random; all unless given. The models are the same.

    Returns
    -------
    Game
        With the sample, or all points that are not set aside, as targets.

    Raises
    ------
    ValueError
        For a sample of more units than there are.

    Examples
    --------
    >>> from leakbound.core.games import half_split
    >>> half_split(10, 4).member.sum(axis=1).tolist()
    [5, 5, 5, 5]
    >>> half_split(10, 4, sample=3).target_points.tolist()
    [1, 4, 8]
    """
    count("n_models", n_models)
    unit = _units(n_points, group)
    n_units = int(unit.max()) + 1
    fraction = probability("population", population)
    aside = np.zeros(n_units, dtype=bool)
    n_aside = _n_aside(fraction, n_units, n_points)
    aside[stream(seed, "game", "population").permutation(n_units)[:n_aside]] = True
    playing = np.flatnonzero(~aside)
    if len(playing) < 2:
        raise ValueError(f"a half split needs at least 2 units, got {len(playing)}")
    member = np.zeros((n_models, n_units), dtype=bool)
    for row in range(n_models):
        member[row, playing] = _half(len(playing), sampling, stream(seed, "game", row))
    prior = len(playing) // 2 / len(playing) if sampling == "fixed" else 0.5
    game = Game("half_split", member[:, unit], ~aside[unit], n_models, prior, "pool", sampling)
    if sample is None or sample == len(playing):
        return game
    if count("sample", sample) > len(playing):
        raise ValueError(f"sample must be from 1 to the {len(playing):,} that can be attacked, got {sample:,}")
    is_sampled = np.zeros(n_units, dtype=bool)
    is_sampled[stream(seed, "game", "sample").choice(playing, sample, replace=False)] = True
    return replace(game, is_target_point=is_sampled[unit], sampled_from=len(playing))


def fresh(
    n_points: int,
    n_models: int,
    *,
    targets: int,
    size: int,
    seed: int = 0,
    population: float = 0.0,
    group: Shaped[Array, " N"] | None = None,
    sample: int | None = None,
) -> Game:
    """Draw data sets of given size that share nothing but a few targets, each of which is in by a fair coin.

    A data set is filled with a uniform draw without replacement from the units that are no targets. So the references
    of a model tell nothing of its other records, unlike those of a half-split, which are of the same pool.

    Parameters
    ----------
    n_points : int
        N.
    n_models : int
        M; the references of a model are all others.
    targets : int
        How many units are targets, J: drawn at random once, for all models.
    size : int
        How many units each data set has, n.
    seed : int
    population : float
        Fraction of the units that is set aside (in no model, no target points; at most 10,000 points).
    group : array of shape (N,), optional
        Unit of each point; the rows of a unit are in or out together.
    sample : int, optional
        How many of the targets are attacked, drawn at random; all unless given. The models are the same.

    Returns
    -------
    Game
        With the targets, or their sample, as target points.

    Raises
    ------
    ValueError
        For more targets than a data set holds, fewer than 4 n others, or a sample of more than the targets.

    Notes
    -----
    A draw from N' others varies less than one from their distribution: the variance that the others of a data set add
    to what is released is 1 - n/N' of it, so that members are easier to tell by the factor 1/sqrt(1 - n/N') in
    standard deviations: 1.15 at N' = 4 n, 1.05 at 10 n.

    Examples
    --------
    >>> from leakbound.core.games import fresh
    >>> game = fresh(1000, 8, targets=20, size=200)
    >>> game.member.sum(axis=1).tolist(), game.n_target_points
    ([200, 200, 200, 200, 200, 200, 200, 200], 20)
    """
    count("n_models", n_models)
    unit = _units(n_points, group)
    n_units = int(unit.max()) + 1
    if count("targets", targets) > count("size", size):
        raise ValueError(f"a data set of size={size:,} cannot hold {targets:,} targets; give at most as many, or n/10")
    if n_units - targets < LEAST_FILE * size:
        raise ValueError(
            f"fresh data sets of size={size:,} need {LEAST_FILE * size:,} others to be drawn from, and besides the "
            f"{targets:,} targets there are {max(n_units - targets, 0):,}; give a size of at most "
            f"{max(n_units - targets, 0) // LEAST_FILE:,}, or play half_split"
        )
    in_random_order = stream(seed, "game", "targets").permutation(n_units)
    is_target, others = in_random_order[:targets], in_random_order[targets:]
    # in random order already, so that any part of the others is a random one
    pool = others[_n_aside(probability("population", population), n_units, n_points) :]
    member = np.zeros((n_models, n_units), dtype=bool)
    for row in range(n_models):
        rng = stream(seed, "game", row)
        inside = is_target[rng.random(targets) < 0.5]
        member[row, inside] = True
        member[row, rng.choice(pool, size - len(inside), replace=False)] = True
    attacked = is_target
    if sample is not None:
        if count("sample", sample) > targets:
            raise ValueError(f"sample must be from 1 to the {targets:,} targets, got {sample:,}")
        attacked = is_target[:sample]
    is_attacked = np.zeros(n_units, dtype=bool)
    is_attacked[attacked] = True
    return Game(
        "fresh",
        member[:, unit],
        is_attacked[unit],
        n_models,
        0.5,
        "fresh",
        "fixed",
        sampled_from=None if len(attacked) == targets else targets,
        size=size,
        pool=len(pool),
    )


def forgotten(
    n_points: int,
    n_models: int,
    *,
    targets: int,
    kept: Kept = "half",
    seed: int = 0,
    population: float = 0.0,
    group: Shaped[Array, " N"] | None = None,
) -> Game:
    """Draw which targets are in, to be removed after training, and which other units are kept.

    A member was in the data of a model and was removed; a target that is no member never was in. Other units are in and
    stay: they are no target points.

    Parameters
    ----------
    n_points : int
        N.
    n_models : int
        M; the references of a model are all others, which went through the same removal.
    targets : int
        How many units are targets, J: drawn at random once. Each is in each model by a fair coin.
    kept : {"half", "all"}
        For each model a random half of the other units, drawn anew, or all of them.
    seed : int
    population : float
        Fraction of the units that is set aside (in no model, no target points; at most 10,000 points).
    group : array of shape (N,), optional
        Unit of each point; the rows of a unit are in or out together.

    Returns
    -------
    Game
        With the targets as target points.

    Raises
    ------
    ValueError
        If fewer than two units are left to be kept.

    Notes
    -----
    If the removal is exact, so that the result has the distribution of a training on the kept records, it does not
    depend on the coins, and every attack has an AUC of 1/2.

    Examples
    --------
    >>> from leakbound.core.games import forgotten
    >>> game = forgotten(100, 4, targets=20)
    >>> game.n_target_points, (game.member & ~game.is_target_point).sum(axis=1).tolist()
    (20, [40, 40, 40, 40])
    """
    count("n_models", n_models)
    unit = _units(n_points, group)
    n_units = int(unit.max()) + 1
    in_random_order = stream(seed, "game", "targets").permutation(n_units)
    is_target, others = in_random_order[: count("targets", targets)], in_random_order[targets:]
    pool = others[_n_aside(probability("population", population), n_units, n_points) :]
    if len(pool) < 2:
        raise ValueError(f"{targets:,} targets of {n_units:,} leave {len(pool):,} to be kept; needs at least 2")
    one_of("kept", kept, ("half", "all"))
    member = np.zeros((n_models, n_units), dtype=bool)
    for row in range(n_models):
        rng = stream(seed, "game", row)
        member[row, is_target] = rng.random(targets) < 0.5
        member[row, pool] = True if kept == "all" else _half(len(pool), "fixed", rng)
    is_target_point = np.zeros(n_units, dtype=bool)
    is_target_point[is_target] = True
    return Game("forgotten", member[:, unit], is_target_point[unit], n_models, 0.5, "pool", "poisson")


def per_datum(
    n_points: int,
    target: int,
    n_models: int,
    *,
    references: int = 0,
    seed: int = 0,
    others: Others = "pool",
) -> Game:
    """Draw the game about one point: it is in by a fair coin; the others are a random half of the pool, or fresh.

    Source: azize2024, algorithm 1.

    Parameters
    ----------
    n_points : int
        N, the target included.
    target : int
        Index of the target point.
    n_models : int
        T, the models that are attacked: the unit of an epsilon test.
    references : int
        Number of further models with their own coins. With 0 each model is attacked by the others (leave one
        out); epsilon is then tested with the first half of the models as targets and the second half as references, and
        other numbers by attacks whose scores may use the others without telling who was in: loss, for example, but not
        LiRA.
    seed : int
        Of the draws.
    others : {"pool", "fresh"}
        Half of the pool of N - 1 other points, or drawn anew by the release from its distribution; then the target
        is the only column of the game.

    Returns
    -------
    Game
        With one target point.

    Examples
    --------
    >>> from leakbound.core.games import per_datum
    >>> per_datum(10, target=3, n_models=4).member.shape
    (4, 10)
    """
    n_rows = count("n_models", n_models) + count("references", references, least=0)
    targets = np.full(n_rows, _index("target", target, n_points))
    return _one_target_each("per_datum", n_points, targets, n_models, seed, others)


def average_datum(n_points: int, n_models: int, *, references: int = 0, seed: int = 0, others: Others = "pool") -> Game:
    """Draw the game about random points: each attacked model has a target of its own, which is in by a fair coin.

    Source: azize2024, algorithm 3; delgrosso2021, definition 4; izzo2022, Section 3.2.

    Parameters
    ----------
    n_points : int
        N, the number of points.
    n_models : int
        T, the number of models that are attacked.
    references : int
        As in `per_datum`.
    seed : int
        Of the draws.
    others : {"pool", "fresh"}
        As in `per_datum`; with fresh others the N points are candidates, each in no model but its own.

    Returns
    -------
    Game
        With ``is_target_point`` of shape (T, N), one point in each row.

    Examples
    --------
    >>> from leakbound.core.games import average_datum
    >>> average_datum(10, n_models=4).is_target_point.sum(axis=1).tolist()
    [1, 1, 1, 1]
    """
    n_rows = count("n_models", n_models) + count("references", references, least=0)
    targets = stream(seed, "game", "targets").integers(count("points", n_points, least=2), size=n_rows)
    return _one_target_each("average_datum", n_points, targets, n_models, seed, others)


def canaries(n_points: int, canary: Int[Array, " C"], n_models: int, *, references: int = 0, seed: int = 0) -> Game:
    """Draw the game about canaries: they are in by independent fair coins; all other points are in every model.

    Source: azize2024, algorithm 5.

    Parameters
    ----------
    n_points : int
        N, the canaries included.
    canary : int array of shape (C,)
        Indices of the canaries: the target points.
    n_models : int
        T; one model is enough for an audit in one run.
    references : int
        As in `per_datum`.
    seed : int
        Of the draws.

    Returns
    -------
    Game
        With the canaries as targets.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.games import canaries
    >>> game = canaries(10, np.array([2, 7]), n_models=3)
    >>> game.member[:, [0, 1, 3]].all()
    np.True_
    """
    canary = np.unique(np.array([_index("canary", int(number), n_points) for number in canary], dtype=int))
    n_rows = count("n_models", n_models) + count("references", references, least=0)
    member = np.ones((n_rows, n_points), dtype=bool)
    for row in range(n_rows):
        member[row, canary] = stream(seed, "game", row).random(len(canary)) < 0.5
    is_target_point = np.zeros(n_points, dtype=bool)
    is_target_point[canary] = True
    return Game("canaries", member, is_target_point, n_models, 0.5, "pool", "poisson")


def one_model(n_members: int, n_others: int, *, references: int = 0, seed: int = 0, population: float = 0.0) -> Game:
    """Return the game that a trained model has played already: members first, then the others.

    Parameters
    ----------
    n_members, n_others : int
        How many are members, and how many are not.
    references : int
        Number of further rows: random halves of members and others, for models of the same recipe.
    seed : int
        Of the halves.
    population : float
        Fraction of the others that is set aside: in no model, and no targets.

    Returns
    -------
    Game
        With one target, row 0.

    Examples
    --------
    >>> from leakbound.core.games import one_model
    >>> one_model(2, 3).member.tolist()
    [[True, True, False, False, False]]
    """
    n_points = count("members", n_members) + count("others", n_others)
    aside = np.zeros(n_points, dtype=bool)
    n_aside = min(int(probability("population", population) * n_others), LARGEST_POPULATION, n_others - 1)
    aside[n_members + stream(seed, "game", "population").permutation(n_others)[:n_aside]] = True
    playing = np.flatnonzero(~aside)
    member = np.zeros((1 + count("references", references, least=0), n_points), dtype=bool)
    member[0, :n_members] = True
    for row in range(1, len(member)):
        member[row, playing] = _half(len(playing), "fixed", stream(seed, "game", row))
    prior = n_members / len(playing)
    return Game("one_model", member, ~aside, 1, prior, "pool", "fixed")


def candidates(records: Game, candidate_of: Int[Array, " R"], own: Bool[Array, " R"]) -> Game:
    """Return the game about an attribute: who is in, and which of the rows that a record might be is the record.

    A record that is in is in with its own row; no model is trained on another one. What is guessed is not who is in
    but which row of a record is true, so the rows of the attacked records are target points of all models.
    Source: delgrosso2021, definition 3.

    Parameters
    ----------
    records : Game
        Who is in, N records; those that it judges may be attacked.
    candidate_of : int array of shape (R,)
        The record of each row.
    own : bool array of shape (R,)
        The rows as they are, one a record; all others are candidates.

    Returns
    -------
    Game
        Of R rows, with ``candidate_of``; the prior is that of the records.

    Raises
    ------
    ValueError
        If a record has not one row of its own, candidates are not the same number for each attacked record, or a
        record that is attacked is no target point.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.games import candidates, half_split
    >>> own = np.array([True, True, False, False])
    >>> game = candidates(half_split(2, 3), np.array([0, 1, 1, 1]), own)
    >>> game.member[:, ~own].any(), game.target_points.tolist()
    (np.False_, [2, 3])
    """
    n_records = records.member.shape[1]
    if not np.array_equal(np.sort(candidate_of[own]), np.arange(n_records)):
        raise ValueError(f"each of the {n_records:,} records needs one row of its own")
    # n_rows is 0 for records that are not attacked
    n_rows = np.bincount(candidate_of[~own], minlength=n_records)
    if len(np.unique(n_rows[n_rows > 0])) != 1:
        raise ValueError("each attacked record needs the same number of candidates, and there must be one to attack")
    if records.is_target_point.ndim != 1 or not records.is_target_point[n_rows > 0].all():
        raise ValueError("records that are attacked must be target points of every model of the game")
    return Game(
        "candidates",
        records.member[:, candidate_of] & own,
        ~own,
        records.n_targets,
        records.prior,
        records.others,
        records.sampling,
        candidate_of,
    )


def _one_target_each(
    kind: str, n_points: int, targets: Int[Array, " M"], n_models: int, seed: int, others: Others
) -> Game:
    """Each row tosses a coin for its own target; the other points are a random half, or not there."""
    one_of("others", others, ("pool", "fresh"))
    count("points", n_points, least=2 if others == "pool" else 1)
    fixed_target = kind == "per_datum"
    member = np.zeros((len(targets), n_points), dtype=bool)
    for row, target in enumerate(targets):
        if others == "pool":
            member[row] = _half(n_points, "fixed", stream(seed, "game", row))
        inside = bool(stream(seed, "game", "coin", row).random() < 0.5)
        _force(member[row], int(target), inside, stream(seed, "game", "swap", row) if others == "pool" else None)
    if others == "fresh" and fixed_target:
        member, targets, n_points = member[:, targets[:1]], np.zeros_like(targets), 1
    is_target_point = np.zeros((n_models, n_points), dtype=bool)
    is_target_point[np.arange(n_models), targets[:n_models]] = True
    return Game(kind, member, is_target_point[0] if fixed_target else is_target_point, n_models, 0.5, others, "fixed")


def _force(row: Bool[Array, " N"], target: int, inside: bool, swap: np.random.Generator | None) -> None:
    """Put the target in or out and, to keep the size, swap a random other point for it."""
    if row[target] == inside:
        return
    row[target] = inside
    if swap is not None:
        same = np.flatnonzero(row == inside)
        row[swap.choice(same[same != target])] = not inside


def _half(n: int, sampling: Sampling, rng: np.random.Generator) -> Bool[Array, " N"]:
    one_of("sampling", sampling, ("fixed", "poisson"))
    if sampling == "poisson":
        return rng.random(n) < 0.5
    row = np.zeros(n, dtype=bool)
    row[rng.permutation(n)[: n // 2]] = True
    return row


def _n_aside(fraction: float, n_units: int, n_points: int) -> int:
    """Count the units of the population that plays in no game: about LARGEST_POPULATION points at most."""
    return min(int(fraction * n_units), int(LARGEST_POPULATION * n_units / n_points))


def _units(n_points: int, group: Shaped[Array, " N"] | None) -> Int[Array, " N"]:
    """Return the index of the unit of each point."""
    if group is None:
        return np.arange(count("points", n_points, least=2))
    if len(group) != n_points:
        raise ValueError(f"group has {len(group):,} values for {n_points:,} points")
    return np.unique(group, return_inverse=True)[1]


def _index(name: str, number: int, n_points: int) -> int:
    if not 0 <= number < n_points:
        raise ValueError(f"{name} must be from 0 to {n_points - 1}, got {number}")
    return number
