"""The answers of a fitted model, as signals: which method is asked, which column is which class, several outputs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Num, Shaped
from sklearn.base import is_regressor

from leakbound.core.types import Points
from leakbound.data.points import how_to_drop, some
from leakbound.data.records import Fields, Sequences, Texts, as_given
from leakbound.releases import readout
from leakbound.releases.specs import OR_SCORE, first_line

Array = np.ndarray
Method = Literal["predict_proba", "decision_function", "predict"]
# The one estimator that answers for another, with the records as they are
INNER = {
    "GridSearchCV": "best_estimator_",
    "RandomizedSearchCV": "best_estimator_",
    "HalvingGridSearchCV": "best_estimator_",
    "HalvingRandomSearchCV": "best_estimator_",
    "FixedThresholdClassifier": "estimator_",
    "TunedThresholdClassifierCV": "estimator_",
    "FrozenEstimator": "estimator",
    "TransformedTargetRegressor": "regressor_",
    "SelfTrainingClassifier": "estimator_",
    "RANSACRegressor": "estimator_",
}
OF_TEXTS = ("could not convert string to float", "Expected 2D array")  # what estimators say of a list of texts
# parameters by which the estimators of a family become simpler; some of a later family are those of an earlier one, too
FAMILIES = {
    "neighbours": {"n_neighbors"},
    "network": {"hidden_layer_sizes"},
    "trees": {"max_depth", "max_leaf_nodes", "num_leaves"},
    "regularised": {"C", "alpha", "l1_ratio"},
}
MOST_NAMED = 6  # columns that an error tells to leave out


@dataclass(frozen=True, eq=False)
class Truth:
    """Labels or responses of all points, which the answers of models are compared with."""

    values: Num[Array, "N L"]
    classes: tuple[Shaped[Array, " _"], ...]

    def with_classes(self, classes: Sequence[Shaped[Array, " _"]]) -> Truth:
        """Return the same labels as indices of other classes, which must include all of them."""
        if not self.classes:
            return self
        columns = [
            np.searchsorted(other, own)[code]
            for own, other, code in zip(self.classes, classes, self.values.T, strict=True)
        ]
        return Truth(np.column_stack(columns), tuple(classes))

    @property
    def n_outputs(self) -> int:
        """L."""
        return self.values.shape[1]

    @property
    def scale(self) -> Float[Array, " L"]:
        """Standard deviation of each response."""
        return np.array([column.std() for column in self.values.T])


def truth_of(points: Points, name: str, *, responses: bool) -> Truth:
    """Read the labels of points as classes or as responses.

    >>> truth_of(Points(np.zeros((3, 1)), np.array(["b", "a", "b"])), "model", responses=False).values.ravel().tolist()
    [1, 0, 1]
    """
    if points.y is None:
        raise ValueError(f"{name} needs labels, and there are none: give y, {OR_SCORE}")
    columns = np.asarray(points.y).reshape(len(points), -1)
    if responses:
        if columns.dtype.kind not in "fiu":
            raise ValueError(f"{name} is a regressor and needs numbers as labels, got text")
        truth = Truth(columns.astype(float), ())
        if not truth.scale.all():
            raise ValueError(f"{name}: the response is the same at all {len(columns):,} points")
        return truth
    codes, classes = [], []
    for column in columns.T:
        values, code = np.unique(column, return_inverse=True)
        if len(values) < 2:
            raise ValueError(f"{name} needs at least 2 classes, got only {values[0]}")
        if len(values) > len(column) / 2 and values.dtype.kind == "f":
            raise ValueError(f"{name} is a classifier, but the label has {len(values):,} different numbers")
        codes.append(code)
        classes.append(values)
    return Truth(np.column_stack(codes), tuple(classes))


def method_of(model: Any) -> Method | None:
    """Name the method of a model that signals are computed from; None if it has none of them.

    An estimator that is not fitted may not know yet whether it will have probabilities, as a StackingClassifier.
    """
    if predicts_numbers(model):
        return "predict"
    if callable(getattr(model, "predict_proba", None)):
        return "predict_proba"
    if callable(getattr(model, "decision_function", None)):
        return "decision_function"
    return None


def owner_of(model: Any) -> Any:
    """Return the fitted estimator of a method such as predict_proba, and anything else as it is."""
    owner = getattr(model, "__self__", None)
    return model if owner is None else owner


def is_of(model: Any, names: Collection[str]) -> bool:
    """Tell whether a model is of one of these classes of scikit-learn, or of a class that is made from one."""
    return any(base.__name__ in names and base.__module__.startswith("sklearn.") for base in type(model).__mro__)


def answering_estimator(model: Any) -> tuple[Any, bool]:
    """Return the estimator that answers for a fitted or unfitted one, and whether its parameters were searched.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> answering_estimator(make_pipeline(StandardScaler(), DecisionTreeClassifier()))
    (DecisionTreeClassifier(), False)
    """
    model, is_searched = owner_of(model), False
    while True:
        inner = None
        if is_of(model, ["Pipeline"]):
            inner = model.steps[-1][1]
        for class_name, name in INNER.items():
            if is_of(model, [class_name]):
                template = getattr(model, "estimator", getattr(model, "regressor", None))  # where it is not fitted
                inner = getattr(model, name, template)
                is_searched = True
        if inner is None or isinstance(inner, str):
            return model, is_searched
        model = inner


def family_of(model: Any) -> str:
    """Name the family of an estimator by the parameters that make it simpler; empty where none of them is known."""
    get_params = getattr(model, "get_params", None)
    parameters: Any = get_params() if callable(get_params) else {}
    names = {name.rpartition("__")[2] for name in parameters}
    return next((family for family, simpler in FAMILIES.items() if names & simpler), "")


def predicts_numbers(model: Any) -> bool:
    """Tell whether an object is a regressor, by scikit-learn's tags or the mark of older libraries."""
    if not callable(getattr(model, "predict", None)):
        return False
    try:
        return is_regressor(model)
    except (AttributeError, TypeError):  # not of scikit-learn
        return getattr(model, "_estimator_type", None) == "regressor"


def ask(model: Any, method: Method, points: Points, name: str) -> Float[Array, "N ..."] | list[Float[Array, "N _"]]:
    """Compute a fitted model's answers at all points."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = getattr(model, method)(as_given(points.x))
            if isinstance(given, list) and all(np.ndim(part) == 2 for part in given):
                answers = [np.asarray(part, dtype=float) for part in given]
            else:
                answers = [np.atleast_1d(np.asarray(given, dtype=float))]
    except Exception as error:  # the model may be the user's: it may raise anything
        why = why_no_answers(model, points.x, error)
        raise RuntimeError(f"{name} gives no numbers for {len(points):,} points: {why}") from error
    for answer in answers:
        if len(answer) != len(points):
            raise ValueError(f"{name} gave {len(answer):,} answers for {len(points):,} points")
        if not np.isfinite(answer).all():
            raise ValueError(f"{name} answers with NaN or infinite values")
    return answers if isinstance(given, list) and len(answers) > 1 else answers[0]


def why_not(model: Any, x: Any, error: Exception) -> str:
    """Say in a line why an estimator does not take records: its own error, unless what was given explains it.

    An estimator of scikit-learn complains of rows of different lengths, of dictionaries and of texts in words about
    arrays.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from leakbound.data.records import sequences
    >>> why_not(DecisionTreeClassifier(), sequences([[1.0], [2.0, 3.0]]), ValueError("inhomogeneous shape"))
    'x has rows of different lengths; allowed: an array of numbers, or a frame with a column for each feature'
    """
    if isinstance(x, Texts) and any(words in str(error) for words in OF_TEXTS):
        # a model in another process says the name of its class itself
        name = getattr(model, "class_name", type(answering_estimator(model)[0]).__name__)
        return f"x holds texts, which it does not read; give make_pipeline(TfidfVectorizer(), {name}(...))"
    forms = {Fields: "is a dictionary of arrays", Sequences: "has rows of different lengths"}
    if type(x) not in forms or type(model).__module__.partition(".")[0] != "sklearn":
        return first_line(error)
    return f"x {forms[type(x)]}; allowed: an array of numbers, or a frame with a column for each feature"


def why_no_answers(model: Any, x: Any, error: Exception) -> str:
    """Say in a line why a fitted model gives no answers: as `why_not`, or the columns that it was not fitted on."""
    return _other_columns(model, x) or why_not(model, x, error)


def _other_columns(model: Any, x: Any) -> str:
    """Say in which columns a frame differs from the one that a model was fitted on; empty where it does not."""
    fitted_on, columns = getattr(model, "feature_names_in_", None), getattr(x, "columns", None)  # of a frame
    if fitted_on is None or columns is None:
        return ""
    known, given = list(map(str, fitted_on)), list(map(str, columns))
    extra = [name for name in given if name not in known]
    missing = [name for name in known if name not in given]
    parts = []
    if missing:
        parts.append(f"it was fitted on {some(missing)}, which the data lack")
    if extra:
        parts.append(
            f"it was not fitted on {some(extra)}; leave out what is no feature: {how_to_drop(extra, MOST_NAMED)}"
        )
    if not parts and known != given:
        parts.append(f"its columns are in another order; give them as it was fitted: {', '.join(known)}")
    return ", and ".join(parts)


def signals_of(
    model: Any,
    method: Method,
    points: Points,
    truth: Truth,
    model_classes: Sequence[Shaped[Array, " _"]],
    want: Sequence[str],
    name: str,
) -> Mapping[str, Float[Array, "N ..."]]:
    """Compute the signals of a fitted model at all points."""
    answer = ask(model, method, points, name)
    if method == "predict":
        responses = np.asarray(answer).reshape(len(points), -1)
        if responses.shape[1] != truth.n_outputs:
            raise ValueError(
                f"{name} predicts {responses.shape[1]} numbers a point, and the label has {truth.n_outputs}"
            )
        return readout.predictions(responses, truth.values, truth.scale, want)
    if truth.n_outputs == 1:
        outputs = _all_classes(np.asarray(answer), model_classes[0], truth.classes[0])
        of_outputs = readout.probabilities if method == "predict_proba" else readout.margins
        return of_outputs(outputs, truth.values[:, 0], want)
    if method == "decision_function":
        return readout.several_margins(np.asarray(answer), truth.values, want)
    outputs = [
        _all_classes(output, known, classes)
        for output, known, classes in zip(each_label(answer, truth), model_classes, truth.classes, strict=True)
    ]
    return readout.several_probabilities(outputs, truth.values, want)


def classes_of(model: Any, seen: Shaped[Array, "n L"], truth: Truth) -> list[Shaped[Array, " _"]]:
    """List the classes of each label that a fitted model gives an answer for."""
    own = getattr(model, "classes_", None)
    if truth.n_outputs == 1 and own is not None:
        return [np.asarray(own)]
    if isinstance(own, list) and len(own) == truth.n_outputs:
        return [np.asarray(classes) for classes in own]
    return [np.unique(column) for column in seen.T]


def takes(function: Any, keyword: str) -> bool:
    """Tell whether a function or class takes a keyword of this name."""
    try:
        return keyword in inspect.signature(function).parameters
    except (TypeError, ValueError):  # of a class that is written in C
        return False


def each_label(answer: Any, truth: Truth) -> list[Float[Array, "N _"]]:
    """Split probabilities of several labels: a list of them, or an array with the probability of each second class."""
    if isinstance(answer, list):
        if len(answer) != truth.n_outputs:
            raise ValueError(f"the model gives probabilities of {len(answer)} labels, and there are {truth.n_outputs}")
        return answer
    if answer.ndim != 2 or answer.shape[1] != truth.n_outputs or any(len(each) != 2 for each in truth.classes):
        raise ValueError(
            f"the model gives an array of shape {answer.shape} for {truth.n_outputs} labels; allowed: a list of "
            "probabilities, or one probability for each label of two values"
        )
    return [np.column_stack([1 - column, column]) for column in answer.T]


def _all_classes(outputs: Float[Array, "N ..."], model_classes: Array, classes: Array) -> Float[Array, "N ..."]:
    """Extend the outputs to columns for all classes, also for those that are not in the model's training data."""
    if outputs.ndim == 2 and outputs.shape[1] != len(model_classes):
        raise ValueError(f"the model gives {outputs.shape[1]} values a point, but has {len(model_classes)} classes")
    if len(model_classes) == len(classes):
        return outputs
    if outputs.ndim == 1:
        outputs = np.column_stack([-outputs, outputs])
    lowest = outputs.min() if outputs.min() < 0 else 0.0
    extended = np.full((len(outputs), len(classes)), lowest)
    extended[:, np.searchsorted(classes, model_classes)] = outputs[:, : len(model_classes)]
    return extended
