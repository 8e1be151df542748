"""Canaries for a training that leakbound does not run: records, and the secret which of them are in.

Everything here is numpy, so that a loop in JAX, or in any other language, is audited in the same way.

Axes: N records, C canaries.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Int, Shaped
from numpy.typing import ArrayLike

from leakbound.core.checks import count, known_keywords, one_of
from leakbound.core.seeds import stream
from leakbound.core.types import Game, Points
from leakbound.dpsgd.canaries import mislabelled, random
from leakbound.files import private_file
from leakbound.files.untrusted import in_one_line

Array = np.ndarray
OF_RECORDS = {"mislabelled": mislabelled, "random": random}
KINDS = ("dirac", *OF_RECORDS)
LENGTH = 100.0  # of a Dirac canary's gradient, in clipping norms: more than all others of a batch
_FORMAT = "leakscope canaries 1"  # our former name, so that older files are read


@dataclass(frozen=True, eq=False)
class PlantedCanaries:
    """Records to train on, some of which are canaries, and which canaries are among them."""

    # to train on: all records that are no canaries, and the canaries that are in, in the order of the data
    x: Shaped[Array, "n ..."]
    y: Shaped[Array, " n"]
    canary_x: Shaped[Array, "C ..."]
    canary_y: Shaped[Array, " C"]
    inside: Bool[Array, " C"]
    number: Int[Array, " n"]  # of the canary that a record is, or -1; a loss needs it for Dirac canaries alone
    kind: str

    @property
    def game(self) -> Game:
        """Who was in: each canary by a coin of its own."""
        return game_of(self.inside)


@known_keywords()
def canaries(
    X: ArrayLike,
    y: ArrayLike,
    n: int = 1000,
    *,
    file: str | os.PathLike[str],
    kind: Literal["dirac", "mislabelled", "random"] = "dirac",
    seed: int | None = None,
) -> PlantedCanaries:
    """Plant canaries in the data of a training that leakbound does not run.

    Each canary is in the data by a fair coin. The coins are kept in a file for you alone. Train on ``x`` and ``y``, in
    any library, and have the training judged:

    * by `leakbound.follow`, which is called in every step of a training by DP-SGD, for Dirac canaries;
    * by `leakbound.audit_scores`, with a score of each canary after the training (higher = more likely in).

    Dirac canaries need one line in the loss: the network gets an additional parameter for each canary, 0 at first, and
    the loss of a record with ``number`` j >= 0 gets ``100 c w[j]`` added, c the clipping norm. So the gradient of a
    canary is long in a parameter of its own, and clipping leaves about c there.

    Parameters
    ----------
    X : array-like of shape (N, ...)
        The records.
    y : array-like of shape (N,)
        Their labels.
    n : int
        C; of canaries that are records fewer than N.
    file : path
        Where the coins are written: a new file, which its owner alone may read. An existing one is never replaced.
    kind : {"dirac", "mislabelled", "random"}
        Whether canaries are additional copies of records, to be marked in the loss; or records, that get a wrong label
        drawn from the other classes, or stay as they are.
    seed : int, optional
        Of the choice and the coins; from the randomness of the system unless given. Whoever knows it knows the coins.

    Returns
    -------
    PlantedCanaries
        Records and labels to train on, with the number of the canary that each one is.

    Raises
    ------
    ValueError
        In one line: for a file that exists, arrays that do not fit each other, or too many canaries.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import leakbound as ls
    >>> X, y = np.random.default_rng(0).normal(size=(600, 4)), np.arange(600) % 3
    >>> file = Path(tempfile.mkdtemp()) / "canaries.json"
    >>> planted = ls.canaries(X, y, 400, file=file, kind="mislabelled", seed=0)
    >>> planted.canary_x.shape, planted.x.shape == (200 + planted.inside.sum(), 4)
    ((400, 4), True)
    >>> nearest = [np.square(planted.x - canary).sum(axis=1).min() for canary in planted.canary_x]  # a leaky release
    >>> claim = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add_remove"}
    >>> ls.audit_scores(-np.array(nearest), file, claims=claim).curves[-1].verdict.word
    'refuted'
    """
    x, label = np.asarray(X), np.asarray(y)
    if label.ndim != 1 or len(x) != len(label):
        raise ValueError(f"X has {len(x):,} records, y has shape {label.shape}; give one label a record")
    one_of("kind", kind, tuple(KINDS))
    path = Path(file)
    if path.exists():
        raise ValueError(f"{path} exists already; the secret of other canaries is not replaced: name a new file")
    seed = secrets.randbits(62) if seed is None else seed
    inside = stream(seed, "canaries", "coins").random(count("n", n)) < 0.5
    if kind == "dirac":
        copied = stream(seed, "canaries", "copied").integers(len(x), size=n)
        number = np.concatenate([np.full(len(x), -1), np.arange(n)])
        x, label = np.concatenate([x, x[copied]]), np.concatenate([label, label[copied]])
    else:
        chosen = OF_RECORDS[kind](Points(x, label, digest=""), n, seed)
        assert chosen.points.y is not None
        label = chosen.points.y
        number = np.full(len(x), -1)
        number[chosen.numbers] = np.arange(n)
    rows = np.flatnonzero(number >= 0)  # of the canaries, in their order
    is_in = np.ones(len(x), dtype=bool)
    is_in[rows[~inside]] = False
    content = {"format": _FORMAT, "kind": kind, "rows": rows.tolist(), "inside": inside.tolist()}
    private_file.write(path, content, None)
    return PlantedCanaries(x[is_in], label[is_in], x[rows], label[rows], inside, number[is_in], kind)


@in_one_line
def read_game(file: str | os.PathLike[str]) -> Game:
    """Read who was in from a file that `canaries` has written."""
    content, _ = private_file.read(Path(file))
    return game_of(_inside(file, content))


def game_of(inside: Bool[Array, " C"]) -> Game:
    """Make the game of one model in which each canary is in by a fair coin."""
    return Game("canaries", inside[None], np.ones(len(inside), dtype=bool), 1, 0.5, "pool", "poisson")


def _inside(file: str | os.PathLike[str], content: Mapping[str, Any]) -> Bool[Array, " C"]:
    values = content.get("inside")
    is_list = isinstance(values, list) and len(values) > 0 and all(isinstance(value, bool) for value in values)
    if content.get("format") != _FORMAT or not is_list:
        raise ValueError(f"{file} holds no canaries; give the file that leakbound.canaries has written")
    return np.array(values, dtype=bool)
