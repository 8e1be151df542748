"""What a calibration and a release return."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from leakscope.core.types import Noise
from leakscope.reports import Report, write
from leakscope.reports.render.csv_table import released_csv

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class CalibratedNoise:
    """The noise that a promise needs, before anything is released.

    Parameters
    ----------
    noise : Noise or None
        None where none is needed.
    certificate : Report
        What will be promised, and by which noise; without values. It is the owner's: it holds exact functions of the
        data, and is not for publication.
    """

    noise: Noise | None
    certificate: Report

    def __repr__(self) -> str:
        """Show what will be promised: the owner's table."""
        return repr(self.certificate)

    def _repr_html_(self) -> str:
        return self.certificate._repr_html_()


@dataclass(frozen=True, eq=False)
class Protected:
    """A statistic that was released with its noise.

    Parameters
    ----------
    value : array of shape (d,)
        What may be published.
    noise : Noise or None
        The distribution of the noise; None where none was needed. Its values are kept nowhere; with a ledger they
        follow from its key.
    certificate : Report
        What is promised, with the value: for publication. In addition to what was declared public and the released
        value it holds scale and shape of the noise, rounded, and nothing else of the data.
    owner : Report
        The same for the owner of the data alone, with exact functions of them: what is proved beyond the promise,
        sampling errors, attacks, the most exposed record, a digest.
    """

    value: Float[Array, " d"]
    noise: Noise | None
    certificate: Report
    owner: Report

    def __repr__(self) -> str:
        """Show the public table: what only the owner may see is not in it."""
        return repr(self.certificate)

    def _repr_html_(self) -> str:
        return self.certificate._repr_html_()

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write value and public certificate as JSON; to a path by way of a temporary file in its folder."""
        return self.certificate.to_json(path)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write what is published as CSV: a row a number, with its noise and the 95 % interval of that."""
        text = released_csv(self.certificate)
        if path is not None:
            write(path, text, private=False)
        return text

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write the public page; to a path by way of a temporary file in its folder."""
        return self.certificate.to_html(path)
