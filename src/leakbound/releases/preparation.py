"""What is done to columns and labels that an estimator does not take as they are.

An estimator gets the user's frame and labels first. Whether it takes them is tried once, on at most 200 rows. Only if
it refuses them, columns are encoded by a pipeline that is a part of each model: it is fitted on the model's own
training rows, so that no model knows a category that none of its rows has.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from leakbound.core.seeds import stream
from leakbound.core.types import Points
from leakbound.data.columns import refuse_free_text
from leakbound.data.points import some
from leakbound.data.records import as_given
from leakbound.releases.answers import method_of, predicts_numbers
from leakbound.releases.specs import first_line

MOST_ROWS = 200  # of the trial fit


@dataclass(frozen=True)
class Preparation:
    """What is done before an estimator is fitted."""

    words: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    fill: bool = False
    labels: bool = False
    refused: str = ""

    @property
    def of_columns(self) -> bool:
        """Whether columns are changed."""
        return bool(self.words or self.times or self.fill)

    def pipeline(self, estimator: Any, x: Any) -> Any:
        """Put the preparation of columns before an estimator; the estimator itself if there is none."""
        if not self.of_columns:
            return estimator
        changed = {*self.words, *self.times}
        numbers = [name for name in x.columns if str(name) not in changed]
        words = [name for name in x.columns if str(name) in self.words]
        times = [name for name in x.columns if str(name) in self.times]
        steps = []
        if numbers:
            steps.append((make_pipeline(FunctionTransformer(plain_numbers), self._of_numbers()), numbers))
        if times:
            steps.append((make_pipeline(FunctionTransformer(seconds), self._of_numbers()), times))
        if words:
            encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
            steps.append((make_pipeline(FunctionTransformer(plain_values), encode), words))
        return make_pipeline(make_column_transformer(*steps), estimator)

    def note(self, name: str) -> str:
        """Say in a sentence what is done; empty if nothing is."""
        done = []
        if self.words:
            done.append(f"{_columns(self.words)} one-hot encoded")
        if self.times:
            done.append(f"{_columns(self.times)} turned into seconds")
        if self.of_columns:
            done.append("numbers are standardised")
        if self.fill:
            done.append("missing numbers are replaced by the column's median")
        if self.labels:
            done.append("labels are replaced by 0, 1, ...")
        if not done:
            return ""
        return (
            f"{name} does not take the data as they are: in each model, {'; '.join(done)}, by what is fitted on that "
            "model's own training rows"
        )

    def owner_note(self, name: str) -> str:
        """Quote the estimator's error, which may name a value of the data; empty if it had none."""
        return f"{name} did not take the data as they are because of: {self.refused}" if self.refused else ""

    def _of_numbers(self) -> Any:
        return make_pipeline(SimpleImputer(strategy="median"), StandardScaler()) if self.fill else StandardScaler()


def preparation_for(estimator: Any, points: Points, of_labels: bool = True) -> Preparation:
    """Find what must be done to columns, and to labels unless they must stay, so that an estimator takes them.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from leakbound.data import from_arrays
    >>> frame = pd.DataFrame({"town": ["Chur", "Bern"] * 4, "age": range(8)})
    >>> preparation_for(DecisionTreeClassifier(), from_arrays(frame, [0, 1] * 4)).words
    ('town',)
    """
    candidates = list(_candidates(estimator, points, of_labels))
    if not candidates:
        return Preparation()
    rows = trial_rows(points)
    refused = try_fit(estimator, points.take(rows), Preparation())
    if not refused:
        return Preparation()
    for candidate in candidates:
        if not try_fit(estimator, points.take(rows), candidate):
            if candidate.words:
                name = type(estimator).__name__
                refuse_free_text(points.x, candidate.words, name, "name a TfidfVectorizer in a pipeline")
            return Preparation(candidate.words, candidate.times, candidate.fill, candidate.labels, refused)
    # if none works, the error of the real fit says why
    return Preparation()


def trial_rows(points: Points) -> Int[np.ndarray, " n"]:
    """Choose at most 200 rows with at least one of each class, as far as so many rows can have them."""
    if len(points) <= MOST_ROWS:
        return np.arange(len(points))
    order = stream(0, "trial fit").permutation(len(points))
    if points.y is not None and points.y.ndim == 1 and points.y.dtype.kind != "f":
        first = order[np.unique(points.y[order], return_index=True)[1]]
        order = np.concatenate([first, order[~np.isin(order, first)]])
    return np.sort(order[:MOST_ROWS])


def try_fit(estimator: Any, sample: Points, preparation: Preparation) -> str:
    """Fit an estimator on a few rows and ask it about them; return the first line of its error, or nothing."""
    y = encoded(sample.y)[0] if preparation.labels else sample.y
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model: Any = preparation.pipeline(unfitted(estimator), sample.x)
            model.fit(as_given(sample.x), *(() if y is None else (y,)))
            if (answer := getattr(model, method_of(model) or "predict", None)) is not None:
                answer(as_given(sample.x))
    except Exception as error:  # the estimator may be the user's: it may raise anything
        return first_line(error)
    return ""


def unfitted(estimator: Any) -> Any:
    """Copy an estimator without what it was fitted to, as scikit-learn's ``clone`` does.

    CatBoost copies lists that it is given, which ``clone`` refuses; a deep copy has the same parameters.
    """
    try:
        return clone(estimator)
    except RuntimeError:
        return copy.deepcopy(estimator)


def encoded(y: Any) -> tuple[Any, list[Any]]:
    """Replace the values of each label by 0 ... K-1."""
    columns = [np.unique(column, return_inverse=True) for column in np.reshape(y, (len(y), -1)).T]
    codes = np.column_stack([code for _, code in columns]).reshape(np.shape(y))
    return codes, [values for values, _ in columns]


def seconds(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert columns of times to seconds since 1970, and of durations to seconds; missing stays missing."""
    return pd.DataFrame({name: _in_seconds(pd.Series(frame[name])) for name in frame.columns})


def plain_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert columns of numbers of any type to floats in which a missing value is NaN."""
    columns = {name: pd.Series(frame[name]).to_numpy(dtype=float, na_value=np.nan) for name in frame.columns}
    return pd.DataFrame(columns, frame.index)


def plain_values(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert columns of any type to objects in which a missing value is None, as the encoder knows it."""
    return frame.astype(object).where(frame.notna(), None)


def _in_seconds(column: pd.Series) -> pd.Series:
    """Convert a column of times or durations."""
    unit = np.datetime_data(column.dtype if isinstance(column.dtype, np.dtype) else column.dt.tz_localize(None).dtype)[
        0
    ]
    per_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    return column.astype("int64").astype(float).where(column.notna()) / per_second


def _candidates(estimator: Any, points: Points, of_labels: bool) -> Iterator[Preparation]:
    """Yield the preparations that could help, the least first; none where the data are plain numbers."""
    of_labels = of_labels and _odd_labels(points) and not predicts_numbers(estimator)
    if of_labels:
        yield Preparation(labels=True)
    if not isinstance(points.x, pd.DataFrame):
        return
    times = tuple(str(name) for name in points.x.columns if _is_time(pd.Series(points.x[name])))
    words = tuple(
        str(name)
        for name in points.x.columns
        if str(name) not in times and not pd.api.types.is_numeric_dtype(points.x[name])
    )
    numbers = points.x.drop(columns=[name for name in points.x.columns if str(name) in {*times, *words}])
    fills = (False, True) if numbers.isna().any(axis=None) or times else (False,)
    for labels in (False, True) if of_labels else (False,):
        for fill in fills:
            if words or times or fill:
                yield Preparation(words, times, fill, labels)


def _odd_labels(points: Points) -> bool:
    """Whether labels are not 0 ... K-1, which is what some estimators want."""
    y = np.asarray(points.y)
    if y.dtype.kind in "biu":
        return not np.array_equal(np.unique(y), np.arange(int(y.max()) + 1))
    return True


def _is_time(column: pd.Series) -> bool:
    kinds = pd.api.types
    return kinds.is_datetime64_any_dtype(column) or kinds.is_timedelta64_dtype(column)


def _columns(names: Sequence[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {some(names)} {'is' if len(names) == 1 else 'are'}"
