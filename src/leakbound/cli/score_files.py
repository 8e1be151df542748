"""The probabilities of a trained model in a table, as signals."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NamedTuple, Unpack

import numpy as np
from jaxtyping import Shaped

from leakbound.core.games import one_model
from leakbound.core.types import Signals
from leakbound.data.csv_rows import CsvForm
from leakbound.data.score_tables import read_answers
from leakbound.files.untrusted import in_one_line
from leakbound.releases import readout

SIGNALS = ("loss", "log_odds", "correct", "log_prob")


class ProbabilityTable(NamedTuple):
    """What a table of probabilities holds."""

    signals: Signals
    names: Shaped[np.ndarray, " N"] | None
    notes: tuple[str, ...]


@in_one_line
def read_probabilities(path: str | os.PathLike[str], **form: Unpack[CsvForm]) -> ProbabilityTable:
    r"""Read the probabilities of one trained model from a table.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "p.csv"
    ...     _ = file.write_text("member,label,p_no,p_yes\n1,no,0.9,0.1\n0,yes,0.5,0.5\n")
    ...     read_probabilities(file).signals.arrays["correct"].tolist()
    [[1.0, 0.0]]
    """
    answers = read_answers(path, **form)
    try:
        arrays = readout.probabilities(answers.p, answers.label, SIGNALS)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    n_members = int(answers.member.sum())
    game = one_model(n_members, len(answers.member) - n_members)
    # the rows stay in the order of the table, so that record 7 of the report is its row 7
    game = replace(game, member=answers.member[None])
    rows = {name: array[None].astype(np.float32) for name, array in arrays.items()}
    return ProbabilityTable(Signals.observed(game, None, rows), answers.names, (answers.note,) if answers.note else ())
