"""The designs side by side: the total error of each for the same accuracy of an attacker, and what each promises.

The errors are exact functions of the data, for their owner alone; the recommendation follows from public facts (the
kind of statistic, what was declared), so that following it tells nothing of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from leakscope.core.types import NotApplicable
from leakscope.noise.left_out import jackknife_std
from leakscope.plans.protects import OF_DESIGN, PROMISE_OF, Design
from leakscope.protection import differential_privacy, leave_one_out, per_instance
from leakscope.protection.comparison import total_errors
from leakscope.protection.jobs import Job
from leakscope.protection.leave_one_out import counts_records, settled
from leakscope.protection.noise_search import search_noise
from leakscope.protection.prepared import Prepared
from leakscope.protection.request import Request
from leakscope.reports.numbers import significant
from leakscope.reports.render.text import columns, wrapped
from leakscope.runtime.all_but_one import values_of

Array = np.ndarray
Why = Literal["counts", "ranges", "declared_scale", "no_ranges"]
_MOST_COLUMNS = 6  # numbers that a terminal shows
RECOMMENDED: Mapping[Why, str] = {
    "counts": (
        "Recommended: --promise anyone. It is a table of counts, for which differential privacy needs about as much "
        "noise as any other promise, and promises the most."
    ),
    "ranges": (
        "Recommended: --promise anyone. The ranges of the columns are declared, so that differential privacy can be "
        "promised, also to people who are not in the file."
    ),
    "declared_scale": (
        "Recommended: --promise file --design per-instance. The noise scale was declared beforehand, so that nothing "
        "of the noise tells of the file."
    ),
    "no_ranges": (
        "Recommended: --promise file. Nothing was declared that bounds what one record changes, and leaving one record "
        "out needs no such bound. If you know ranges from a codebook, declare them (--ranges) and compare again."
    ),
}
FOR_THE_OWNER = (
    "These errors are exact functions of the data, for their owner alone. The recommendation follows from the kind of "
    "statistic and from what was declared, and tells nothing."
)
DESIGNS_IN_ORDER: tuple[Design, ...] = ("dp", "leave-one-out", "per-instance", "half")


@dataclass(frozen=True, eq=False)
class DesignRow:
    """A design for a statistic.

    Parameters
    ----------
    design : Design
    errors : array of shape (d,) or None
        Root mean square error against the statistic of all records: of the records that are not used, and of the noise.
    reason : str
        Why there is none; empty otherwise.
    """

    design: Design
    errors: Float[Array, " d"] | None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class DesignTable:
    """All designs for a statistic, for the owner of the data alone.

    Parameters
    ----------
    labels : sequence of str
        Of the numbers.
    standard_errors : array of shape (d,)
        Jackknife standard errors of the statistic of all records; NaN where there are none.
    rows : sequence of DesignRow
    recommended : Design
    why : str
        The public fact that it follows from.
    """

    labels: Sequence[str]
    standard_errors: Float[Array, " d"]
    rows: Sequence[DesignRow]
    recommended: Design
    why: Why

    def __repr__(self) -> str:
        """Show the errors, number by number, in units of the standard error, and the recommendation."""
        reasons = [f"{row.design}: {row.reason}." for row in self.rows if row.reason]
        texts = [*reasons, RECOMMENDED[self.why], FOR_THE_OWNER]
        return "\n".join(
            [*wrapped(self._title), "", self._errors, "", *(line for text in texts for line in wrapped(text))]
        )

    @property
    def _unit(self) -> Float[Array, " d"] | None:
        """The standard errors, where all are known."""
        known = np.isfinite(self.standard_errors) & (self.standard_errors > 0)
        return self.standard_errors if known.all() else None

    @property
    def _title(self) -> str:
        unit = "" if self._unit is None else ", in standard errors of the statistic of all records"
        n = len(self.labels)
        more = f" (the first {_MOST_COLUMNS} of {n:,} numbers)" if n > _MOST_COLUMNS else ""
        return f"Total error of each design for the same accuracy of any attacker{unit}{more}:"

    @property
    def _errors(self) -> str:
        """The errors as a table: a row for each design that has any."""
        unit = np.ones(len(self.labels)) if self._unit is None else self._unit
        rows = []
        for row in self.rows:
            if row.errors is not None:
                errors = dict(zip(self.labels, map(significant, row.errors / unit), strict=True))
                shown = {label: errors[label] for label in self.labels[:_MOST_COLUMNS]}
                rows.append({"Design": row.design, "Promise": PROMISE_OF[row.design], **shown})
        return columns(rows)

    @property
    def best(self) -> Sequence[Design]:
        """The design of the least error, for each number."""
        known = [row for row in self.rows if row.errors is not None]
        errors = np.array([row.errors for row in known])
        return [known[place].design for place in errors.argmin(axis=0)]


def cost_of_designs(request: Request) -> DesignTable:
    """Compute what each design would cost for the statistic of a request; nothing is drawn or released.

    Parameters
    ----------
    request : Request
        Its promise and design do not matter.

    Returns
    -------
    DesignTable
    """
    points = request.data.points
    statistic = settled(request.statistic, points)
    of_all, without = values_of(statistic, points, None, request.plan.pairs_seed, execution=request.execution)
    rows = [_row(request, design, of_all) for design in DESIGNS_IN_ORDER]
    recommended, why = recommendation(request)
    errors = jackknife_std(without)
    return DesignTable(statistic.labels(points), errors, rows, recommended, why)


def recommendation(request: Request) -> tuple[Design, Why]:
    """Recommend a design from public facts alone, and say from which.

    Counts, and columns whose ranges are declared, have differential privacy, which promises the most; a scale that was
    declared beforehand always answers; all else is left to leave-one-out.
    """
    plan, statistic = request.plan, request.statistic
    if counts_records(statistic):
        return "dp", "counts"
    if plan.noise_scale is not None:
        return "per-instance", "declared_scale"
    if plan.ranges and differential_privacy.is_known(statistic):
        return "dp", "ranges"
    return "leave-one-out", "no_ranges"


def _row(request: Request, design: Design, of_all: Float[Array, " d"]) -> DesignRow:
    """Compute the errors of a design, or say why it has none."""
    try:
        return DesignRow(design, _ERRORS[design](_with_design(request, design), of_all))
    except (ValueError, NotApplicable) as reason:
        return DesignRow(design, None, str(reason))


def _with_design(request: Request, design: Design) -> Request:
    """Ask for another design; what belongs to others alone is left at its default."""
    fields = type(request.plan).model_fields
    defaults = {
        name: fields[name].default for name, designs in OF_DESIGN.items() if name in fields and design not in designs
    }
    changes = {"design": design, "promise": PROMISE_OF[design], "compare": False, "games": 0, **defaults}
    return replace(request, plan=request.plan.model_copy(update=changes))


def _dp(request: Request, of_all: Float[Array, " d"]) -> Float[Array, " d"]:
    """Return the noise and what moving values into their ranges changes: all records are used."""
    prepared = differential_privacy.prepare(request)
    if len(prepared.labels) != len(of_all):
        raise ValueError(
            "columns without a declared range are not used: declare theirs, or leave them out of all designs"
        )
    moved = prepared.value_of(0) / prepared.divisor - of_all
    return np.hypot(prepared.rms, moved)


def _leave_one_out(request: Request, of_all: Float[Array, " d"]) -> Float[Array, " d"]:
    prepared: Prepared = leave_one_out.prepare(request)
    n = prepared.units.n
    squares = np.zeros(len(of_all))
    for unit in range(n):
        squares += np.square(prepared.value_of(unit) - of_all)
    return np.hypot(prepared.rms, np.sqrt(squares / n))


def _per_instance(request: Request, of_all: Float[Array, " d"]) -> Float[Array, " d"]:
    if request.plan.noise_scale is None:
        raise ValueError("needs a noise_scale that was declared before looking at the data")
    return per_instance.prepare(request).rms


def _half(request: Request, of_all: Float[Array, " d"]) -> Float[Array, " d"]:
    job = Job.of(request)
    rms = search_noise(job.mechanism, job.target).rms
    ours = total_errors(job.mechanism, job.target.eta, rms, n_draws=max(2, job.target.fits // 2), seed=job.target.seed)
    if ours[0].value is None:
        raise ValueError("its sampling error is not known")
    return np.array(list(ours[0].detail.values()))


_ERRORS: Mapping[Design, Callable[[Request, Float[Array, " d"]], Float[Array, " d"]]] = {
    "dp": _dp,
    "leave-one-out": _leave_one_out,
    "per-instance": _per_instance,
    "half": _half,
}
