"""The statistics as objects: each has the fields that it alone knows, and the keys of a plan that say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, field
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from leakbound.plans.choices import choice, name_of, set_fields
from leakbound.plans.plan import ColumnNames, columns
from leakbound.plans.promises import Promise

Columns = Annotated[tuple[str, ...], BeforeValidator(columns)]
Levels = Annotated[dict[str, tuple[Any, ...]], Field()]
_OF_A_PLAN = ("by", "levels", "merge", "non_negative")  # keys of a plan; other fields are below its key set


class Statistic:
    """A statistic by its name, with the fields that it alone knows."""

    @property
    def words(self) -> dict[str, Any]:
        """The keys of a plan that ask for it."""
        given = set_fields(self)
        parameters = {name: value for name, value in given.items() if name not in _OF_A_PLAN}
        words: dict[str, Any] = {"statistic": name_of(type(self))}
        words |= {name: value for name, value in given.items() if name in _OF_A_PLAN}
        return words | {"set": parameters} if parameters else words


@choice
class Table(Statistic):
    """Counts in the cells of a table.

    Parameters
    ----------
    by : str or tuple of str
        The columns that are counted.
    levels : mapping of str to sequence
        Public levels of each column, as ``{"sector": ["care", "trade"]}``; those of the data unless given, which are
        not published.
    merge : mapping of str to sequence of str
        Neighbouring levels that are published as one, as ``{"age": ["20-29:40-49"]}``; the release itself is of the
        levels as they were declared.
    non_negative : bool
        Publish counts as the nearest ones >= 0; small counts are then too large on average.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Table("sex", levels={"sex": ["f", "m"]}).by
    ('sex',)
    """

    by: Columns
    _: KW_ONLY
    levels: Levels = field(default_factory=dict)
    merge: dict[str, tuple[str, ...]] = field(default_factory=dict)
    non_negative: bool = False


@choice
class Mean(Statistic):
    """The mean of each column, of all records or of each group.

    Parameters
    ----------
    by : str or tuple of str
        Columns whose levels are the groups.
    levels, non_negative : see `Table`
        As of `Table`.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Mean()
    Mean(by=(), levels={}, non_negative=False)
    """

    by: Columns = ()
    _: KW_ONLY
    levels: Levels = field(default_factory=dict)
    non_negative: bool = False


@choice
class Histogram(Statistic):
    """Counts in bins of columns.

    Parameters
    ----------
    by : str or tuple of str
        The columns that are counted.
    edges : sequence of float, optional
        Ends of the bins, declared; of several columns a sequence of them for each.
    bins : int, optional
        Bins over the range of the data, in place of edges; not published.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Histogram("age", edges=[0, 20, 40]).edges
    [0, 20, 40]
    """

    by: Columns
    edges: Any = None
    _: KW_ONLY
    bins: Any = None


@choice
class Sum(Statistic):
    """The sum of each column.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Sum()
    Sum()
    """


@choice
class SecondMoment(Statistic):
    """Mean products of columns.

    Parameters
    ----------
    centre : sequence of float, optional
        What is subtracted from each column first.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.SecondMoment([40.0])
    SecondMoment(centre=[40.0])
    """

    centre: Any = None


@choice
class Covariance(Statistic):
    """The covariance of the columns.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Covariance()
    Covariance()
    """


@choice
class Correlation(Statistic):
    """The correlations of the columns.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Correlation()
    Correlation()
    """


@choice
class Ratio(Statistic):
    """The total of each column over that of one of them.

    Parameters
    ----------
    denominator : str
        That column; the last one unless given.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Ratio("hours").denominator
    'hours'
    """

    denominator: str = ""


@choice
class Quantiles(Statistic):
    """Quantiles of each column.

    Parameters
    ----------
    probabilities : sequence of float
        Which; the quartiles unless given.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Quantiles([0.5]).probabilities
    [0.5]
    """

    probabilities: Any = (0.25, 0.5, 0.75)


@choice
class Ols(Statistic):
    """Coefficients of least squares.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Ols()
    Ols()
    """


@choice
class StandardErrors(Statistic):
    """Standard errors of the coefficients of least squares.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.StandardErrors()
    StandardErrors()
    """


@choice
class Ridge(Statistic):
    """Least squares with a penalty.

    Parameters
    ----------
    penalty : float
        On the squares of the slopes.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Ridge(2).penalty
    2
    """

    penalty: Any = 1.0


@choice
class Logistic(Statistic):
    """Coefficients of a logistic regression.

    Parameters
    ----------
    penalty : float
        On the squares of the slopes.
    centre, spread : sequence of float, optional
        What is subtracted from each column, and what it is divided by; mean and standard deviation of all records
        unless given, which are not published.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Logistic(centre=[40], spread=[15]).penalty
    1.0
    """

    penalty: Any = 1.0
    _: KW_ONLY
    centre: Any = None
    spread: Any = None


@choice
class Poisson(Statistic):
    """Coefficients of a Poisson regression.

    Parameters
    ----------
    penalty : float
        On the squares of the slopes.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Poisson()
    Poisson(penalty=0.0)
    """

    penalty: Any = 0.0


@choice
class Huber(Statistic):
    """Coefficients of a Huber regression.

    Parameters
    ----------
    threshold : float
        Where residuals begin to count linearly.
    penalty : float
        On the squares of the slopes.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Huber(5.0).threshold
    5.0
    """

    threshold: Any
    penalty: Any = 0.0


@choice
class Weighted:
    """One of several statistics that are released together.

    Parameters
    ----------
    statistic : str, statistic or callable
        As a single one.
    weight : float
        Relative size of its part of eta.
    name : str
        What the page calls it.
    label : str, optional
        The column that it predicts.
    drop : str or sequence of str
        Columns that it is not of.
    promise : Anyone or File, optional
        The same promise as that of all; fields that are set replace those of all.
    rules : mapping of str to float
        As of ``leakbound.protect``.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Weighted("mean", 2, drop="town").drop
    ('town',)
    """

    statistic: Any
    weight: float = 1.0
    _: KW_ONLY
    name: str = ""
    label: str | None = None
    drop: ColumnNames = ()
    promise: Promise | None = None
    rules: dict[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> dict[str, Any]:
        """The keys of a ``[[statistic]]`` table that say the same."""
        words = {name: getattr(self, name) for name in set_fields(self) if name != "statistic"}
        return words_of_statistic(self.statistic) | words


def words_of_statistic(statistic: Any) -> dict[str, Any]:
    """Return the keys of a plan that ask for a statistic; one of a user's own stays as it is."""
    if isinstance(statistic, Mapping):
        raise ValueError(
            "a statistic of a list is a name, an object as Quantiles([0.5]), or Weighted(statistic, weight)"
        )
    return statistic.words if isinstance(statistic, Statistic | Weighted) else {"statistic": statistic}


def tables_of(statistics: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Return a ``[[statistic]]`` table for each of several statistics."""
    return [words_of_statistic(statistic) for statistic in statistics]
