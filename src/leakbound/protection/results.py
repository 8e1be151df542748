"""What a calibration and a release return."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from leakbound.core.types import Noise
from leakbound.reports import Report, write
from leakbound.reports.render.csv_table import planned_csv, released_csv

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class CalibratedNoise:
    """The noise that a promise needs, before anything is released.

    Parameters
    ----------
    noise : Noise or None
        None where none is needed, and for several statistics: the certificate has that of each.
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

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write the noise of each number that would be published as CSV, for the owner: a row a number."""
        text = planned_csv(self.certificate)
        if path is not None:
            write(path, text, private=True)
        return text


@dataclass(frozen=True, eq=False)
class ReleasedStatistic:
    """One of several statistics that were released together.

    Parameters
    ----------
    labels : tuple of str
        Of the numbers.
    value : array of shape (d,)
        What may be published.
    noise : Noise or None
        The distribution of its noise; None where none was needed.
    """

    labels: tuple[str, ...]
    value: Float[Array, " d"]
    noise: Noise | None


@dataclass(frozen=True, eq=False)
class Protected:
    """A statistic that was released with its noise.

    Parameters
    ----------
    value : array of shape (d,)
        What may be published.
    noise : Noise or None
        The distribution of the noise; None where none was needed, and for several statistics. Its values are kept
        nowhere; with a ledger they follow from its key.
    certificate : Report
        What is promised, with the value: for publication. In addition to what was declared public and the released
        value it holds scale and shape of the noise, rounded, and nothing else of the data.
    owner : Report
        The same for the owner of the data alone, with exact functions of them: what is proved beyond the promise,
        sampling errors, attacks, the most exposed record, a digest.
    statistics : mapping of str to ReleasedStatistic
        By name, if several were released together; ``value`` has their values one after another.
    """

    value: Float[Array, " d"]
    noise: Noise | None
    certificate: Report
    owner: Report
    statistics: Mapping[str, ReleasedStatistic] = field(default_factory=dict)

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
