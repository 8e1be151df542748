"""Groups by default: the records of each class, of each label, or of each tenth of the response.

An average hides a rare class, so each of these groups is looked at by itself. Where nothing leaks, n records over T
models show it only if T n is large: with intervals at 95 %, the upper ends of all of 100 groups are below .6 in every
audit at T n = 2,560, and in half of the audits at 1,280. So small groups are joined.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int, Shaped

from leakbound.core.findings import Scope
from leakbound.data.slices import SEVERAL, cut

Array = np.ndarray
TRIALS = 2500  # models times records of a group that is judged by itself
TRIALS_OF_FEW = 6600  # the same of fewer than 8 models: the interval of 4 is wider by Student's t, (3.18/1.96)^2 = 2.6
FEW_MODELS = 8
FEWEST = 20  # records of a group that is judged by itself, however many models there are
FEWEST_OF_ONE_MODEL = 800
TENTHS = 10
MOST_RESPONSES = 20  # of more, none is cut into tenths
SEVERAL_CLASSES = "several classes"  # a unit whose records are of different classes


@dataclass(frozen=True, eq=False)
class Group:
    """Some of the units whose membership is guessed."""

    name: str
    units: Int[Array, " n"]
    # Limits ask that every attack stays below them in a group that is judged. The others are small classes of a
    # joined group: one may show a leak by itself, but needs not exclude it.
    is_judged: bool = True
    joined: tuple[str, ...] = ()
    # of a joined group: with so many models each of its classes would be judged; None if one has too few records
    models_needed: int | None = None
    ends: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.units)


def least_size(n_models: int) -> int:
    """Return how many records a group needs to be judged by itself, with so many attacked models.

    >>> least_size(64), least_size(1000), least_size(1)
    (40, 20, 800)
    """
    if n_models == 1:
        return FEWEST_OF_ONE_MODEL
    trials = TRIALS_OF_FEW if n_models < FEW_MODELS else TRIALS
    return max(FEWEST, math.ceil(trials / n_models))


def models_for(n_records: int) -> int | None:
    """Return with how many models a group of so many records is judged by itself; None if with no number of them.

    >>> models_for(38), models_for(19)
    (66, None)
    """
    if n_records < FEWEST:
        return None
    needed = math.ceil(TRIALS / n_records)
    if needed < FEW_MODELS:
        needed = min(FEW_MODELS, math.ceil(TRIALS_OF_FEW / n_records))
    return max(2, needed)


def groups_by_label(
    label: Shaped[Array, " J"] | Shaped[Array, "J L"],
    unit: Int[Array, " J"] | None,
    n_models: int,
    is_classifier: bool,
) -> list[Group]:
    """Group the target units by their labels, and join what is too small.

    >>> label = np.repeat(["a", "b", "c", "d"], [90, 45, 35, 12])
    >>> [(group.name, len(group), group.joined) for group in groups_by_label(label, None, 64, True)]
    [('class a', 90, ()), ('class b', 45, ()), ('joined group 1', 47, ('class d', 'class c')), \
('class d', 12, ()), ('class c', 35, ())]
    """
    least = least_size(n_models)
    # Groups are classes; the records that have a label, of several labels; the tenths by rank of a response.
    # A unit with records of several classes is in the group "several classes".
    return joined(list(_by_label(label, unit, least, is_classifier)), least)


def groups_by_columns(columns: Mapping[str, Shaped[Array, " J"]], unit: Int[Array, " J"] | None, n: int) -> list[Group]:
    """Group the target units by columns that the user names, where nothing is known of their labels."""
    least, groups = least_size(n), []
    for column, values in columns.items():
        levels = cut(values)
        code = level_of_units(levels.of_record, unit, len(levels.names))
        groups += _by_code(code, [Scope.of_slice(column, name).name for name in (*levels.names, SEVERAL)])
    return joined(groups, least)


def joined(groups: Sequence[Group], least: int) -> list[Group]:
    """Join groups of fewer than ``least`` units with each other, the smallest first.

    A joined group is complete with ``least`` units. What is left over goes to the last one, and if there is none it is
    a group by itself. A group of ``least`` or more is never joined.
    """
    large = [group for group in groups if len(group) >= least]
    small = sorted((group for group in groups if len(group) < least), key=len)
    bundles: list[list[Group]] = []
    bundle: list[Group] = []
    units = np.empty(0, dtype=np.intp)
    # the smallest first, until a bundle has enough units
    for group in small:
        bundle.append(group)
        units = np.union1d(units, group.units)
        if len(units) >= least:
            bundles.append(bundle)
            bundle, units = [], units[:0]
    # what is left over
    if bundle and bundles:
        bundles[-1] += bundle
    elif bundle:
        bundles.append(bundle)
    # a bundle of one group is that group; the parts of others are shown, but not judged by themselves
    several = [parts for parts in bundles if len(parts) > 1]
    alone = [part for parts in bundles if len(parts) == 1 for part in parts]
    together = [_bundled(f"joined group {number}", parts) for number, parts in enumerate(several, start=1)]
    by_themselves = [replace(part, is_judged=False) for parts in several for part in parts]
    return [*large, *alone, *together, *by_themselves]


def level_of_units(level: Int[Array, " J"], unit: Int[Array, " J"] | None, several: int) -> Int[Array, " U"]:
    """Return the level of each unit from those of its records; ``several`` where they differ."""
    if unit is None:
        return level
    lowest, highest = np.full(unit.max() + 1, several), np.full(unit.max() + 1, -1)
    np.minimum.at(lowest, unit, level)
    np.maximum.at(highest, unit, level)
    return np.where(lowest == highest, lowest, several)


def _bundled(name: str, parts: Sequence[Group]) -> Group:
    """Make one group of several."""
    units = np.unique(np.concatenate([part.units for part in parts]))
    return Group(name, units, joined=tuple(part.name for part in parts), models_needed=models_for(len(parts[0])))


def _by_label(
    label: Shaped[Array, " J"] | Shaped[Array, "J L"], unit: Int[Array, " J"] | None, least: int, is_classifier: bool
) -> Iterator[Group]:
    """Yield the groups before any of them are joined."""
    # one label: classes, or a response in tenths
    if label.ndim == 1:
        if is_classifier or not _is_number(label):
            yield from _classes(label, unit)
        else:
            yield from _parts_by_rank(label, unit, least, "response")
    elif label.ndim == 2 and _is_number(label):
        columns = label.T
        # several: the records that have each label, or each response in tenths
        if np.isin(label, (0, 1)).all():
            for number, column in enumerate(columns):
                having = np.flatnonzero(column) if unit is None else np.unique(unit[column.astype(bool)])
                if len(having):
                    yield Group(f"label {number}", having)
        elif label.dtype.kind == "f" and len(columns) <= MOST_RESPONSES:
            for number, column in enumerate(columns):
                yield from _parts_by_rank(column, unit, least, f"response {number}")


def _is_number(label: Array) -> bool:
    """Tell numbers from text; truth values count as numbers."""
    return label.dtype.kind in "iufb"


def _classes(label: Shaped[Array, " J"], unit: Int[Array, " J"] | None) -> Iterator[Group]:
    """Yield the records of each class."""
    names, code = np.unique(label, return_inverse=True)
    of_unit = level_of_units(code, unit, len(names))
    yield from _by_code(of_unit, [*(f"class {name}" for name in names), SEVERAL_CLASSES])


def _parts_by_rank(
    value: Shaped[Array, " J"], unit: Int[Array, " J"] | None, least: int, response: str
) -> Iterator[Group]:
    """Yield the tenths of a response by rank, equal values together; fewer parts where tenths would be too small."""
    n_units = len(value) if unit is None else int(unit.max()) + 1
    n_parts = min(max(n_units // least, 1), TENTHS)
    edges = np.quantile(value, np.arange(1, n_parts) / n_parts, method="lower")
    code = np.searchsorted(np.unique(edges), value, side="left")
    numbers, code = np.unique(code, return_inverse=True)
    word = "tenth" if n_parts == TENTHS else "part"
    names = [f"{word} {number + 1} of {n_parts} of {response}" for number in range(len(numbers))]
    for group in _by_code(level_of_units(code, unit, len(names)), [*names, f"several parts of {response}"]):
        if group.name in names:
            part = value[code == names.index(group.name)]
            group = replace(group, ends=(float(part.min()), float(part.max())))
        yield group


def _by_code(code: Int[Array, " U"], names: Sequence[str]) -> Iterator[Group]:
    """Yield the units of each code that occurs."""
    order = np.argsort(code, kind="stable")
    starts = np.searchsorted(code[order], np.arange(len(names) + 1))
    for name, start, end in zip(names, starts, starts[1:], strict=False):
        if end > start:
            yield Group(name, order[start:end])
