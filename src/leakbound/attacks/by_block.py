"""Attacks on signals in files, some points at a time: the scores are those of the same attack in memory.

Most attacks score a point by what the models say of it alone. LiRA needs one number of all points first, its pooled
variance; RMIA needs the ratios of the population, which it ranks the others among. Attacks that learn from all points
at once are not played here.

Axes: B points of a block, M models, T targets, J target points, Z population.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from leakbound.attacks import Attack, checked
from leakbound.attacks.balance import Design, design_of_sample
from leakbound.attacks.blocks import blocks
from leakbound.attacks.lira import PooledVariance, offline, online
from leakbound.attacks.rmia import fraction_below, log_ratio, log_ratio_offline, sampled_places, slopes_of_sample
from leakbound.core.block_signals import BlockSignals
from leakbound.core.checks import positive
from leakbound.core.external_sort import read_into, write_all
from leakbound.core.temporary import part_of, remove
from leakbound.core.types import NotApplicable, Signals

Array = np.ndarray
MEMORY = 256_000_000  # bytes for ratios of the population that are held at once
POINT_BY_POINT = (
    "gap", "confidence", "loss", "entropy", "mast", "mast_threshold", "scalar_product", "likelihood_ratio",
    "gradient_norm",
)  # fmt: skip
_COLUMNS = 4096  # target points that the design is computed from, as in memory


class ScoreFile:
    """Scores of the target points of each target, in a file."""

    def __init__(self, signals: BlockSignals, path: Path, dtype: type[np.floating] = np.float32) -> None:
        self.signals, self.path, self.dtype = signals, path, dtype

    @property
    def shape(self) -> tuple[int, int]:
        """J and T."""
        return self.signals.game.n_target_points, self.signals.n_targets

    def values(self) -> Iterator[Float[Array, "B T"]]:
        """Read the scores, block by block."""
        n_points, n_targets = self.shape
        with FileIO(self.path) as file:
            for start in range(0, n_points, self.signals.block_points):
                block = np.empty((min(self.signals.block_points, n_points - start), n_targets), dtype=self.dtype)
                read_into(file, block.reshape(-1))
                yield block

    def blocks(self) -> Iterator[tuple[Float[Array, "B T"], Bool[Array, "B T"]]]:
        """Read the scores and the truth, block by block."""
        return zip(self.values(), self.signals.target_members(), strict=True)

    def change(self, function: Callable[[Float[Array, "B T"]], None]) -> None:
        """Change the scores in place, block by block."""
        with FileIO(self.path, "r+") as file:
            for block in self.values():
                function(block)
                write_all(file, block)

    def close(self) -> None:
        """Remove the file."""
        remove(self.path)

    def __enter__(self) -> ScoreFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def score(attack: Attack, signals: BlockSignals, folder: Path, memory: int = MEMORY) -> ScoreFile:
    """Attack signals in files.

    >>> import tempfile
    >>> from leakbound.attacks import ATTACKS
    >>> from leakbound.core.block_signals import write_blocks
    >>> folder = Path(tempfile.mkdtemp())
    >>> with write_blocks(folder / "signals", n_models=2) as write:
    ...     write(np.array([[True, False]]), {"loss": np.array([[0.5, 2.0]])})
    >>> with score(ATTACKS["loss"], BlockSignals(folder / "signals"), folder) as scores:
    ...     next(scores.values()).tolist()
    [[-0.5, -2.0]]
    """
    require_by_block(attack)
    kind = _kind(attack)
    dependent = design(signals) if attack.needs_references else None
    if dependent is not None and dependent.reason is not None:
        raise NotApplicable(dependent.reason)
    if dependent is not None:
        raise NotApplicable("dependent_in_files")
    names = _names(attack, signals)
    parameters: dict[str, Any] = dict(attack.parameters)
    path = part_of(folder / "scores")
    try:
        if kind.startswith("rmia"):
            _rmia(signals, names, path, kind, parameters, memory)
        else:
            _write(path, signals, names, attack, _lira(signals, names, kind, parameters))
    except BaseException:
        remove(path)
        raise
    return ScoreFile(signals, path)


def require_by_block(attack: Attack) -> None:
    """Refuse an attack that is not played on signals in files.

    >>> from leakbound.attacks import ATTACKS
    >>> require_by_block(ATTACKS["lira"])
    """
    if _kind(attack) in (*POINT_BY_POINT, "lira", "lira_offline", "rmia", "rmia_offline"):
        return
    if not isinstance(attack.function, str):
        raise NotApplicable("own_attack_in_files")
    raise NotApplicable("needs_all_points", attack=_kind(attack))


def _kind(attack: Attack) -> str:
    """Return the name in the table, without parameters; empty for an attack of the user's own."""
    return attack.name.partition("(")[0] if isinstance(attack.function, str) else ""


def design(signals: BlockSignals) -> Design | None:
    """Test whether the memberships of the other models reveal those of a model: `leakbound.attacks.balance.design`."""
    game = signals.game
    if game.n_references < 1:
        return None
    n_models = signals.n_models
    sample = signals.sampled_members(_COLUMNS)
    # pairs of models whose memberships are equal, or opposite, as far as was seen
    equal = opposite = np.ones((n_models, n_models), dtype=bool)
    for member in signals.target_members(of_all=True):
        sign = np.where(member, np.float32(1), np.float32(-1))
        product = sign.T @ sign
        equal, opposite = equal & (product == len(member)), opposite & (product == -len(member))
        if not (equal & ~np.eye(n_models, dtype=bool)).any() and not opposite.any():
            break
    same = (equal | opposite) & ~np.eye(n_models, dtype=bool)
    return design_of_sample(sample, same, game.n_in, game.n_targets)


def _names(attack: Attack, signals: BlockSignals) -> list[str]:
    """List the signals to read: of alternatives the first that is there."""
    there = [name for name in attack.signals if name in signals.names]
    return there[:1] if _kind(attack).startswith("lira") else there


def _lira(
    signals: BlockSignals, names: list[str], kind: str, parameters: Mapping[str, Any]
) -> Callable[[Signals], Array] | None:
    """Return the function that scores a block by LiRA; None for another attack."""
    if not kind.startswith("lira"):
        return None
    play = online if kind == "lira" else offline
    variance = parameters.get("variance", "shrunk")
    sums = PooledVariance(signals.n_targets)
    for place, block in enumerate(signals.target_blocks(names)):
        if place == 0:
            play(block, variance, None)  # which refuses what it cannot score
        sums.add(block)
    pooled = sums.value(np.dtype(np.float32))
    return lambda block: play(block, variance, pooled)


def _write(
    path: Path,
    signals: BlockSignals,
    names: list[str],
    attack: Attack,
    play: Callable[[Signals], Array] | None,
) -> None:
    """Score block by block."""
    function = play or (lambda block: attack.function_of_signals()(block, **attack.parameters))
    with FileIO(path, "x") as file:
        for block in signals.target_blocks(names):
            value = checked(attack.name, function(block), block.game.target_member.shape)
            write_all(file, value.astype(np.float32, copy=False).T)


def _rmia(
    signals: BlockSignals, names: list[str], path: Path, kind: str, parameters: Mapping[str, Any], memory: int
) -> None:
    """Write the ranks of the target points' ratios, which are rounded to float32 when all are known."""
    gamma = positive("gamma", parameters.get("gamma", 1.0))
    a = parameters.get("a")
    if kind == "rmia_offline" and a is None:
        a = _slopes(signals, names)

    def ratios(block: Signals) -> Float[Array, "B T"]:
        at = log_ratio(block) if kind == "rmia" else log_ratio_offline(block, a=a)
        parts = [at(part) for part in blocks(block.game, np.arange(block.game.member.shape[1]), signals.n_models)]
        return np.concatenate(parts).astype(np.float64, copy=False)

    ratio_path = part_of(path)
    try:
        with FileIO(ratio_path, "x") as file:
            for block in signals.target_blocks(names):
                write_all(file, ratios(block))
        ranked = ScoreFile(signals, ratio_path, np.float64)
        _rank_columns(ranked, lambda: map(ratios, signals.population_blocks(names)), gamma, memory)
        with FileIO(path, "x") as file:
            for block in ranked.values():
                write_all(file, block.astype(np.float32))
    finally:
        remove(ratio_path)


def _rank_columns(
    scores: ScoreFile, population: Callable[[], Iterator[Float[Array, "B T"]]], gamma: float, memory: int
) -> None:
    """Replace the ratios of the target points by their ranks among those of the population, some targets at a time."""
    game, n_targets = scores.signals.game, scores.signals.n_targets
    n_population = game.n_population or game.n_target_points
    n_at_once = max(1, memory // (n_population * 8))
    for first in range(0, n_targets, n_at_once):
        targets = slice(first, min(first + n_at_once, n_targets))
        parts = population() if game.n_population else scores.values()
        thresholds = _sorted_columns(
            (part[:, targets] for part in parts), n_population, targets.stop - targets.start, gamma
        )

        def rank(block: Float[Array, "B T"], thresholds: Array = thresholds, targets: slice = targets) -> None:
            for column, ascending in zip(range(targets.start, targets.stop), thresholds, strict=True):
                block[:, column] = fraction_below(block[:, column], ascending)

        scores.change(rank)


def _slopes(signals: BlockSignals, names: list[str]) -> Float[Array, " T"]:
    """Choose the slopes of offline RMIA at the points that are sampled in memory, too."""
    places = sampled_places(signals.game.n_target_points)
    losses, members, n_before = [], [], 0
    for block in signals.target_blocks(names):
        n_points = block.game.member.shape[1]
        here = places[(places >= n_before) & (places < n_before + n_points)] - n_before
        losses.append(block.array("loss")[:, here].T)
        members.append(block.game.member[:, here].T)
        n_before += n_points
    return slopes_of_sample(np.concatenate(losses), np.concatenate(members), signals.n_targets)


def _sorted_columns(
    parts: Iterator[Float[Array, "B t"]], n_rows: int, n_columns: int, gamma: float
) -> Float[Array, "t Z"]:
    """Put the columns of blocks together and sort each; multiplied by gamma, which are logarithms."""
    columns = np.empty((n_columns, n_rows))
    start = 0
    for part in parts:
        columns[:, start : start + len(part)] = part.T
        start += len(part)
    columns.sort(axis=1)
    columns += np.log(gamma)
    return columns
