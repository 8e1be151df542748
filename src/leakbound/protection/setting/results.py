"""What a calibration and a release return."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from leakbound.core.types import Noise
from leakbound.reports import Report, write
from leakbound.reports.numbers import rounded_to_noise
from leakbound.reports.render.csv_table import planned_csv, released_csv

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class CalibratedNoise:
    """The noise that a promise needs, before anything is released."""

    noise: Noise | None
    certificate: Report  # the owner's, not for publication: it holds exact functions of the data

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
    """One of several statistics that were released together."""

    labels: tuple[str, ...]
    value: Float[Array, " d"]
    noise: Noise | None


@dataclass(frozen=True, eq=False)
class Protected:
    """A statistic that was released with its noise."""

    value: Float[Array, " d"]
    # None where none was needed, and of several statistics. Its values are not kept: they follow from a ledger's key.
    noise: Noise | None
    # For publication: besides what was declared public and the value, scale and shape of the noise, rounded.
    certificate: Report
    # For the owner alone, with exact functions of the data: sampling errors, attacks, the most exposed record.
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


def rounded_to_rms(value: Float[Array, " d"], rms: Float[Array, " d"]) -> Float[Array, " d"]:
    """Round each number to what its noise leaves of it."""
    return np.array([rounded_to_noise(*pair) for pair in zip(value.tolist(), rms.tolist(), strict=True)])
