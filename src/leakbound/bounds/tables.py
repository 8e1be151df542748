"""Exactly what a table of counts reveals about each record, without noise, and which of its cells to merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from leakbound.bounds.sampling import Sampling, inclusion
from leakbound.core.checks import count, non_negative, numbers, probability
from leakbound.core.numerics import bisect_integers

Array = np.ndarray


def exact_eta_table(
    cell_sizes: ArrayLike, n: int, k: int | None = None, sampling: Sampling = "fixed", prior: float | None = None
) -> Float[Array, " n_cells"]:
    """Accuracy of the best attacker above the better prior guess, for the records of each cell of a table.

    The n records fall into cells (the bins of a histogram, the combinations of a cross-table); the release is the
    number N of members of D in each cell. Given it, each of the m records of a cell is equally likely to be one of
    the N, so the posterior of membership is N/m and

        eta = E max(N/m, 1 - N/m) - max(pi, 1 - pi),    N ~ Hypergeometric(n, m, k) or Binomial(m, pi).

    All that is computed from the table (rates, a naive Bayes classifier) reveals at most as much. For several tables
    of one D the cells of their common refinement (the combinations of their cells) give an upper bound.

    eta never rises with m: N/m is the mean of m exchangeable coins, that of m + 1 of them is its conditional mean, and
    ``max(t, 1 - t)`` is convex. For pi = 1/2 it is about ``0.399/sqrt(m)``.

    Parameters
    ----------
    cell_sizes : array_like of int, shape (n_cells,)
        m: how many of the n records fall into each cell. An empty cell exposes nobody: 0.
    n : int
        All records, those of D and the others.
    k : int or None
        Size of D for ``sampling="fixed"``; None is n // 2.
    sampling : {"fixed", "poisson"}
        All subsets of k records are equally likely, or each record is in with probability ``prior``.
    prior : float or None
        For ``sampling="poisson"``; None is 1/2.

    Returns
    -------
    array of shape (n_cells,)
        In [0, 1/2], with an error below 1e-12.

    Raises
    ------
    ValueError
        If a size is no whole number from 0 to n, or k, prior or sampling is out of its range.

    Examples
    --------
    >>> from leakbound.bounds.tables import exact_eta_table
    >>> exact_eta_table([1, 2, 20, 64], n=10_000).round(5).tolist()
    [0.5, 0.24997, 0.08801, 0.04951]
    """
    n_members = _MemberCount(count("n", n), *inclusion(n, k, sampling, prior))
    sizes, which = np.unique(_sizes(cell_sizes, n), return_inverse=True)
    return np.array([n_members.eta(int(m)) for m in sizes])[which]


def smallest_cell(
    eta: float, n: int, k: int | None = None, sampling: Sampling = "fixed", prior: float | None = None
) -> int:
    """Find the least m such that cells of m records or more keep eta.

    Parameters
    ----------
    eta : float
        Largest allowed accuracy above the better prior guess, >= 0.
    n : int
        All records, those of D and the others.
    k : int or None
        As in `exact_eta_table`.
    sampling : {"fixed", "poisson"}
        As in `exact_eta_table`.
    prior : float or None
        As in `exact_eta_table`.

    Returns
    -------
    int
        From 1 to n. Every larger cell keeps eta too, because eta never rises with the size.

    Raises
    ------
    ValueError
        If a cell of all n records does not keep eta (possible for Poisson sampling only).

    Examples
    --------
    >>> from leakbound.bounds.tables import smallest_cell
    >>> smallest_cell(0.05, n=1_000_000)
    64
    """
    n_members = _MemberCount(count("n", n), *inclusion(n, k, sampling, prior))
    return n_members.smallest(non_negative("eta", eta))


@dataclass(frozen=True)
class Merged:
    """Cells that become one."""

    parts: tuple[int, ...]
    size: int
    eta: float


def cells_to_merge(
    cell_sizes: ArrayLike,
    eta: float,
    n: int,
    k: int | None = None,
    sampling: Sampling = "fixed",
    prior: float | None = None,
) -> list[Merged]:
    """Which cells of a table to merge so that every record keeps eta.

    As few cells as possible are changed: those that are exposed (smaller than `smallest_cell`), and the smallest safe
    one only if the exposed ones together are too few. The exposed cells become as many groups as balanced filling
    finds (the largest cell first, always into the smallest group). That is at least half of what is possible: groups
    differ by less than the smallest size s, so if one of g is below s, all have less than (2 g - 1) s together.

    Parameters
    ----------
    cell_sizes : array_like of int, shape (n_cells,)
        Empty cells stay as they are.
    eta : float
        As in `smallest_cell`.
    n : int
        All records, those of D and the others.
    k : int or None
        As in `exact_eta_table`.
    sampling : {"fixed", "poisson"}
        As in `exact_eta_table`.
    prior : float or None
        As in `exact_eta_table`.

    Returns
    -------
    list of Merged
        A group each, in the order of their first cells; empty if no cell is exposed.

    Raises
    ------
    ValueError
        If merging all cells is not enough.

    Examples
    --------
    >>> from leakbound.bounds.tables import cells_to_merge
    >>> [(group.parts, group.size) for group in cells_to_merge([50, 3, 900, 30, 17, 100], 0.05, n=1100)]
    [((0, 1, 3, 4), 100)]
    """
    n_members = _MemberCount(count("n", n), *inclusion(n, k, sampling, prior))
    sizes, least = _sizes(cell_sizes, n), n_members.smallest(non_negative("eta", eta))
    exposed = np.flatnonzero((sizes > 0) & (sizes < least))
    if len(exposed) == 0:
        return []
    # The exposed cells are joined with each other first; a safe one is changed only if all of them are too few.
    groups = _covered(exposed[np.argsort(-sizes[exposed], kind="stable")].tolist(), sizes, least)
    if sizes[groups[0]].sum() < least:
        safe = np.flatnonzero(sizes >= least)
        if len(safe) == 0:
            raise ValueError(f"all cells together have {sizes.sum():,} records; eta = {eta:g} needs {least:,}")
        groups[0].append(int(safe[np.argmin(sizes[safe])]))
    # In the order of their cells, so that the result does not depend on how the groups were filled.
    merged = [(tuple(sorted(group)), int(sizes[group].sum())) for group in groups]
    return [Merged(parts, size, n_members.eta(size)) for parts, size in sorted(merged)]


def related_cells_to_merge(
    levels: Int[Array, "n_cells n_columns"],
    ordered: Sequence[bool],
    cell_sizes: ArrayLike,
    eta: float,
    n: int,
    k: int | None = None,
    sampling: Sampling = "fixed",
    prior: float | None = None,
) -> list[Merged]:
    """Which cells of a cross-table to merge with their neighbours so that every record keeps eta.

    A merged cell is a block: all cells that have one of some levels in each column, as ``town in {Davos, Chur}, q8 =
    1``. In a column with an order its levels are consecutive. So a merged cell has a name that a reader of the table
    understands. Greedy: the smallest exposed block is joined with another one, and with all blocks that overlap the
    two; along one column where that is possible, with exposed blocks before safe ones, and with as few records more
    than are needed. It is not always the fewest merges; `cells_to_merge` changes the fewest cells, whatever they mean.

    Parameters
    ----------
    levels : int array of shape (n_cells, n_columns)
        Of each cell that is not empty, the number of its level in each column: from 0 on, in the order of the levels
        where there is one; -1 for a missing value, which is no neighbour of any level in particular.
    ordered : sequence of bool, length n_columns
        Whether the levels of a column have an order.
    cell_sizes : array_like of int, shape (n_cells,)
        Records of each cell, at least 1.
    eta : float
        As in `smallest_cell`.
    n : int
        All records, those of D and the others.
    k : int or None
        As in `exact_eta_table`.
    sampling : {"fixed", "poisson"}
        As in `exact_eta_table`.
    prior : float or None
        As in `exact_eta_table`.

    Returns
    -------
    list of Merged
        A group each, in the order of their first cells; empty if no cell is exposed.

    Raises
    ------
    ValueError
        If merging all cells is not enough, or the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.tables import related_cells_to_merge
    >>> levels = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])  # town, answer
    >>> groups = related_cells_to_merge(levels, [False, False], [500, 20, 900, 60], 0.05, n=1480)
    >>> [(group.parts, group.size) for group in groups]  # the answers 1 of both towns
    [((1, 3), 80)]
    """
    n_members = _MemberCount(count("n", n), *inclusion(n, k, sampling, prior))
    sizes, least = _sizes(cell_sizes, n), n_members.smallest(non_negative("eta", eta))
    if levels.shape != (len(sizes), len(ordered)):
        raise ValueError(f"levels have shape {levels.shape}; {len(sizes)} cells of {len(ordered)} columns are given")
    blocks = [
        _Block((cell,), tuple(frozenset([level]) for level in row), int(size))
        for cell, (row, size) in enumerate(zip(levels.tolist(), sizes, strict=True))
    ]
    while exposed := [block for block in blocks if block.size < least]:
        if len(blocks) == 1:
            raise ValueError(f"all cells together have {sizes.sum():,} records; eta = {eta:g} needs {least:,}")
        # The smallest first; of equal ones the first in the table, so that the result is always the same.
        worst = min(exposed, key=lambda block: (block.size, block.cells))
        joined = _joined_with_neighbours(worst, blocks, ordered, least)
        blocks = [block for block in blocks if not set(block.cells) <= set(joined.cells)]
        blocks.append(joined)
    merged = sorted((block.cells, block.size) for block in blocks if len(block.cells) > 1)
    return [Merged(cells, size, n_members.eta(size)) for cells, size in merged]


@dataclass(frozen=True)
class _MemberCount:
    """The number of members among m records: hypergeometric if D has k of the n records, binomial if k = 0."""

    n: int
    k: int
    prior: float

    def eta(self, m: int) -> float:
        """``E |2 N/m - 1|`` on the side that the prior does not guess: a sum of positive terms."""
        if m == 0:
            return 0.0
        members, chance = self._members(m)
        excess = (2 * members - m) / m if self.prior <= 0.5 else (m - 2 * members) / m
        return float(np.maximum(excess, 0.0) @ chance)

    def smallest(self, eta: float) -> int:
        """Find the least size that keeps eta, by bisection."""
        if self.eta(self.n) > probability("eta", eta):
            raise ValueError(f"a cell of all {self.n:,} records has eta = {self.eta(self.n):.4g}; wanted {eta:g}")
        return bisect_integers(lambda m: self.eta(m) <= eta, inside=self.n, outside=0)

    def _members(self, m: int) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
        """N and its probabilities, by ratios from the mode outwards, to where e^-72 is left (Hoeffding)."""
        fixed = self.k > 0
        mode = (m + 1) * (self.k + 1) // (self.n + 2) if fixed else int((m + 1) * self.prior)
        far = int(6 * m**0.5) + 2
        low, high = max(0, mode - far), min(m, mode + far)
        if fixed:  # hypergeometric: k records in, n - k out
            low, high = max(low, m - (self.n - self.k)), min(high, self.k)
        mode = min(mode, high)
        j = np.arange(low, high, dtype=float)  # the ratio of the chances of j + 1 and j
        if fixed:
            ratio = (m - j) * (self.k - j) / ((j + 1) * (self.n - m - self.k + j + 1))
        else:
            ratio = (m - j) * self.prior / ((j + 1) * (1 - self.prior))
        above, below = np.cumprod(ratio[mode - low :]), np.cumprod(1 / ratio[: mode - low][::-1])[::-1]
        chance = np.concatenate([below, [1.0], above])
        return np.arange(low, high + 1, dtype=float), chance / chance.sum()


def _sizes(cell_sizes: ArrayLike, n: int | None) -> Array:
    """Whole numbers from 0 to n."""
    sizes = np.atleast_1d(numbers("cell sizes", cell_sizes))
    if sizes.ndim != 1 or sizes.size == 0:
        raise ValueError(f"cell sizes must have shape (n_cells,), at least one; got {sizes.shape}")
    with np.errstate(invalid="ignore"):
        is_whole = np.isfinite(sizes) & (np.floor(sizes) == sizes) & (sizes >= 0)
    if not is_whole.all():
        raise ValueError(f"cell sizes must be whole numbers >= 0, got {sizes[~is_whole][0]:g}")
    if n is not None and sizes.max() > n:
        raise ValueError(f"a cell has {sizes.max():,.0f} records; there are n = {n:,}")
    return sizes.astype(np.int64)


def _covered(descending: list[int], sizes: Array, least: int) -> list[list[int]]:
    """Exposed cells as the most groups for which filling the smallest first makes all large enough; one, if none."""
    for n_groups in range(int(sizes[descending].sum()) // least, 1, -1):
        groups: list[tuple[int, list[int]]] = [(0, []) for _ in range(n_groups)]
        for cell in descending:
            size, parts = heappop(groups)
            heappush(groups, (size + int(sizes[cell]), [*parts, cell]))
        if groups[0][0] >= least:
            return [parts for _, parts in groups]
    return [descending]


@dataclass(frozen=True)
class _Block:
    """Cells that become one, and their levels in each column."""

    cells: tuple[int, ...]
    levels: tuple[frozenset[int], ...]
    size: int


def _joined_with_neighbours(worst: _Block, blocks: list[_Block], ordered: Sequence[bool], least: int) -> _Block:
    """Join an exposed block with the best of its neighbours."""
    others = [block for block in blocks if block is not worst]
    along_one_column = [block for block in others if _n_columns_apart(worst, block) == 1]
    best: tuple[tuple[int, int, int, int, tuple[int, ...]], _Block] | None = None
    for other in along_one_column or others:
        joined = _hull(worst, other, blocks, ordered)
        absorbed = [block for block in others if set(block.cells) <= set(joined.cells)]
        n_widened = sum(one != two for one, two in zip(worst.levels, joined.levels, strict=True))
        n_safe = sum(block.size >= least for block in absorbed)
        still_exposed = joined.size < least
        # of what is enough the smallest, of what is not enough the largest
        rest = -joined.size if still_exposed else joined.size
        cost = (n_widened, n_safe, int(still_exposed), rest, joined.cells)
        if best is None or cost < best[0]:
            best = cost, joined
    assert best is not None  # there are at least two blocks
    return best[1]


def _n_columns_apart(one: _Block, other: _Block) -> int:
    """In how many columns two blocks have other levels."""
    return sum(left != right for left, right in zip(one.levels, other.levels, strict=True))


def _share_cells(one: Sequence[frozenset[int]], other: Sequence[frozenset[int]]) -> bool:
    """Whether two blocks have cells in common: a common level in every column."""
    return all(left & right for left, right in zip(one, other, strict=True))


def _hull(one: _Block, other: _Block, blocks: list[_Block], ordered: Sequence[bool]) -> _Block:
    """Find the smallest block that holds both of them and cuts no other block in two."""
    levels = [left | right for left, right in zip(one.levels, other.levels, strict=True)]
    while True:
        for column, has_order in enumerate(ordered):
            known = [level for level in levels[column] if level >= 0]
            if has_order and known:  # without gaps: in a column with an order levels are consecutive
                levels[column] |= frozenset(range(min(known), max(known) + 1))
        touched = [block for block in blocks if _share_cells(block.levels, levels)]
        widened = [frozenset().union(*(block.levels[column] for block in touched)) for column in range(len(levels))]
        larger = [wide | more for wide, more in zip(levels, widened, strict=True)]
        if larger == levels:  # no block is cut in two any more
            cells = tuple(sorted(cell for block in touched for cell in block.cells))
            return _Block(cells, tuple(levels), sum(block.size for block in touched))
        levels = larger
