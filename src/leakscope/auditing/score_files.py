"""The probabilities of a trained model in a table, as signals."""

from __future__ import annotations

import os

import numpy as np

from leakscope.core.games import one_model
from leakscope.core.types import Signals
from leakscope.core.untrusted import in_one_line
from leakscope.data.score_tables import read_answers
from leakscope.releases import readout

SIGNALS = ("loss", "log_odds", "correct", "log_prob")


@in_one_line
def read_probabilities(
    path: str | os.PathLike[str], *, separator: str | None = None, decimal: str | None = None
) -> Signals:
    r"""Read the probabilities of one trained model from a table.

    Parameters
    ----------
    path, separator, decimal
        As in `leakscope.data.score_tables.read_answers`.

    Returns
    -------
    Signals
        Loss, log-odds, correctness and log-probabilities; members first.

    Raises
    ------
    ValueError
        In one line: for a column that is not there, or values that are none.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from leakscope.auditing.score_files import read_probabilities
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "p.csv"
    ...     _ = file.write_text("member,label,p_no,p_yes\n1,no,0.9,0.1\n0,yes,0.5,0.5\n")
    ...     read_probabilities(file).arrays["correct"].tolist()
    [[1.0, 0.0]]
    """
    member, label, p = read_answers(path, separator=separator, decimal=decimal)
    # members first, which is the order of the game
    order = np.argsort(~member, kind="stable")
    try:
        arrays = readout.probabilities(p[order], label[order], SIGNALS)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    game = one_model(int(member.sum()), int((~member).sum()))
    first = np.zeros(len(member), dtype=int)  # log_prob has the true label's class first
    return Signals(game, None, {name: array[None].astype(np.float32) for name, array in arrays.items()}, first)
