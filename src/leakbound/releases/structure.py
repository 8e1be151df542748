"""What a fitted model shows of its training records by its structure alone, without any attack.

These are the checks that output checkers make of models today: residual degrees of freedom, the smallest leaf, groups
of records that no leaf tells apart, groups with a single label, and models that hold records. That a model has no
leaves is said only if each of its parts is of a class that is known for it; that it holds no records, only if in
addition nothing of the training data is found in it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Int
from scipy.sparse import issparse

from leakbound.core.types import Points
from leakbound.data.records import as_given
from leakbound.releases.answers import INNER, answering_estimator, is_of, owner_of, predicts_numbers
from leakbound.releases.foreign_model import ForeignModel
from leakbound.releases.kept_records import Held, Kept, search
from leakbound.releases.specs import is_network

Array = np.ndarray


def _names(text: str) -> frozenset[str]:
    """Read names that are separated by spaces."""
    return frozenset(text.split())


# attributes in which estimators keep training records as they are
RECORDS = ("_fit_X", "X_", "X_fit_", "X_train_", "support_vectors_", "training_data_")
# classes of scikit-learn that keep records in attributes which mean something else in other classes
KEEP_RECORDS = frozenset({"AffinityPropagation", "DBSCAN", "KernelDensity", "Nystroem"})

# Classes that keep numbers about many records (coefficients, means, categories, leaves) and no record as it is.
# A class that is in none of the following sets may keep anything.
LINEAR_MODELS = _names(
    "ARDRegression BayesianRidge ElasticNet ElasticNetCV GammaRegressor HuberRegressor Lars LarsCV Lasso LassoCV "
    "LassoLars LassoLarsCV LassoLarsIC LinearRegression LogisticRegression LogisticRegressionCV MultiTaskElasticNet "
    "MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV "
    "PassiveAggressiveClassifier PassiveAggressiveRegressor Perceptron PoissonRegressor QuantileRegressor "
    "RANSACRegressor Ridge RidgeCV RidgeClassifier RidgeClassifierCV SGDClassifier SGDOneClassSVM SGDRegressor "
    "TheilSenRegressor TweedieRegressor LinearSVC LinearSVR"
)
OTHER_MODELS = _names(
    "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB LinearDiscriminantAnalysis "
    "QuadraticDiscriminantAnalysis MLPClassifier MLPRegressor DummyClassifier DummyRegressor NearestCentroid "
    "_SigmoidCalibration _TemperatureScaling _ConstantPredictor"
)
TRANSFORMERS = _names(
    "Binarizer FunctionTransformer KBinsDiscretizer LabelBinarizer LabelEncoder MaxAbsScaler MinMaxScaler "
    "MultiLabelBinarizer Normalizer OneHotEncoder OrdinalEncoder PolynomialFeatures PowerTransformer RobustScaler "
    "SplineTransformer StandardScaler TargetEncoder SimpleImputer MissingIndicator IterativeImputer CountVectorizer "
    "DictVectorizer FeatureHasher HashingVectorizer TfidfTransformer TfidfVectorizer PCA IncrementalPCA "
    "TruncatedSVD FactorAnalysis FastICA GaussianRandomProjection SparseRandomProjection AdditiveChi2Sampler "
    "PolynomialCountSketch RBFSampler SkewedChi2Sampler GenericUnivariateSelect SelectFdr SelectFpr SelectFwe "
    "SelectKBest SelectPercentile VarianceThreshold"
)
# They are what their parts are.
COMPOSITES = _names(
    "Pipeline FeatureUnion ColumnTransformer GridSearchCV RandomizedSearchCV HalvingGridSearchCV "
    "HalvingRandomSearchCV FixedThresholdClassifier TunedThresholdClassifierCV CalibratedClassifierCV "
    "_CalibratedClassifier FrozenEstimator TransformedTargetRegressor SelfTrainingClassifier RFE RFECV "
    "SelectFromModel SequentialFeatureSelector MultiOutputClassifier MultiOutputRegressor ClassifierChain "
    "RegressorChain OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier VotingClassifier VotingRegressor "
    "StackingClassifier StackingRegressor BaggingClassifier BaggingRegressor AdaBoostClassifier AdaBoostRegressor "
    "IsolationForest"
)
TREES = _names(
    "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor RandomForestClassifier "
    "RandomForestRegressor ExtraTreesClassifier ExtraTreesRegressor RandomTreesEmbedding GradientBoostingClassifier "
    "GradientBoostingRegressor"
)
# Its leaves cannot be read.
HISTOGRAM_BOOSTING = frozenset({"HistGradientBoostingClassifier", "HistGradientBoostingRegressor"})
BOOSTING_OF_OTHERS = {
    "lightgbm": frozenset({"LGBMClassifier", "LGBMRegressor", "LGBMRanker"}),
    "xgboost": frozenset({"XGBClassifier", "XGBRegressor", "XGBRanker", "XGBRFClassifier", "XGBRFRegressor"}),
    "catboost": frozenset({"CatBoost", "CatBoostClassifier", "CatBoostRegressor", "CatBoostRanker"}),
}
WITHOUT_RECORDS = LINEAR_MODELS | OTHER_MODELS | TRANSFORMERS | COMPOSITES | TREES | HISTOGRAM_BOOSTING
# Neighbours, kernels and Gaussian processes keep records, but have no leaves.
KERNELS = _names(
    "KNeighborsClassifier KNeighborsRegressor RadiusNeighborsClassifier RadiusNeighborsRegressor "
    "KNeighborsTransformer RadiusNeighborsTransformer NearestNeighbors LocalOutlierFactor KNNImputer SVC SVR NuSVC "
    "NuSVR OneClassSVM KernelRidge KernelPCA KernelDensity Nystroem GaussianProcessClassifier "
    "GaussianProcessRegressor _BinaryGaussianProcessClassifierLaplace LabelPropagation LabelSpreading"
)
WITHOUT_LEAVES = LINEAR_MODELS | OTHER_MODELS | TRANSFORMERS | COMPOSITES | KERNELS

# attributes in which a fitted estimator holds other fitted ones
PARTS = (
    "best_estimator_",
    "estimator_",
    "estimators_",
    "final_estimator_",
    "base_estimator_",
    "regressor_",
    "transformer_",
    "calibrated_classifiers_",
    "calibrators",
    "init_",
    "initial_imputer_",
    "imputation_sequence_",
    "transformers_",
    "transformer_list",
    "steps",
)
# Their parameter of this name is fitted; that of other classes is a template.
WITH_FITTED_ESTIMATOR = frozenset({"FrozenEstimator", "_CalibratedClassifier"})

SELECTORS = _names("RFE RFECV")  # what answers for them has only the columns that they select
# ensembles whose members all answer with the records as they are, except for the columns that bagging selects
ENSEMBLES = _names(
    "BaggingClassifier BaggingRegressor IsolationForest AdaBoostClassifier AdaBoostRegressor VotingClassifier "
    "VotingRegressor MultiOutputClassifier MultiOutputRegressor OneVsRestClassifier OutputCodeClassifier"
)
# Members of these are fitted on something else: answers of other members, or some of the records.
INDIRECT = _names(
    "StackingClassifier StackingRegressor ClassifierChain RegressorChain OneVsOneClassifier CalibratedClassifierCV"
)
BOOSTING = _names("GradientBoostingClassifier GradientBoostingRegressor")

COEFFICIENTS = (("coef_", "intercept_"), ("coefs_", "intercepts_"))
# of the classes in OTHER_MODELS: naive Bayes, centroids, constants, and the calibration of probabilities
OTHER_NUMBERS = (
    *("theta_", "var_", "class_prior_", "feature_log_prob_", "class_log_prior_"),
    *("centroids_", "constant_", "a_", "b_", "beta_"),
)


@dataclass(frozen=True)
class Structure:
    """The structure of one fitted model."""

    n_records: int
    # numbers that were fitted, of all parts that answer: coefficients, or splits and values of leaves; None if those of
    # any part cannot be counted
    n_parameters: int | None = None
    has_leaves: bool | None = None
    smallest_leaf: int | None = None
    smallest_group: int | None = None
    one_label_groups: int | None = None
    stores_records: bool | None = None
    has_classes: bool | None = None
    kept: Kept = field(default_factory=Kept)
    class_name: str = ""

    @property
    def degrees_of_freedom(self) -> int | None:
        """Records minus parameters, which may be negative."""
        return None if self.n_parameters is None else self.n_records - self.n_parameters

    @property
    def rows_alone(self) -> Structure | None:
        """That the model holds rows, without what else is known of it; None if none were found."""
        return Structure(self.n_records, stores_records=True, kept=self.kept) if self.kept.n_rows else None


def structure_of(model: Any, members: Points) -> Structure:
    """Read the structure of a fitted model.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> members = Points(np.arange(10.0)[:, None], np.arange(10) // 5)
    >>> structure = structure_of(DecisionTreeClassifier().fit(members.x, members.y), members)
    >>> structure.n_parameters, structure.smallest_leaf, structure.one_label_groups
    (3, 5, 2)
    """
    n_records = len(members)
    if isinstance(owner_of(model), ForeignModel):
        return _of_plain(owner_of(model).computed("leakbound.releases.structure:plain_structure", members))
    if is_network(model):
        n_numbers = sum(int(tensor.numel()) for tensor in model.parameters())
        kept = search(model, members)
        return Structure(
            n_records,
            n_numbers,
            has_leaves=False,
            stores_records=_holds(kept, by_class=False),
            kept=kept,
            class_name=type(model).__name__,
        )
    model = owner_of(model)
    given = as_given(members.x)
    answering = list(_answering(model, given))
    leaves = [_leaves(part, x, n_records) for part, x in answering]
    parts = list(_all_parts(model))
    handed_on = {id(x): x for _, x in answering if x is not given}
    kept = search(model, members, list(handed_on.values()))
    structure = Structure(
        n_records,
        _n_parameters([part for part, _ in answering], leaves),
        True if any(of_part is not None for of_part in leaves) else _has_leaves(parts),
        stores_records=_holds(kept, by_class=_stores_records(parts)),
        has_classes=_has_classes(model),
        kept=kept,
        class_name=type(answering[0][0] if len(answering) == 1 else model).__name__,
    )
    read = [of_part for of_part in leaves if of_part is not None]
    of_answering = {id(inner) for part, _ in answering for inner in _all_parts(part)}
    others = [part for part in parts if id(part) not in of_answering]
    if len(read) < len(leaves) or _has_leaves(others):  # the leaves of some trees are not known
        return structure
    all_leaves = np.hstack(read)
    sizes_of_leaves = [np.unique(tree, return_counts=True)[1] for tree in all_leaves.T]
    _, group, sizes = np.unique(all_leaves, axis=0, return_inverse=True, return_counts=True)
    return replace(
        structure,
        smallest_leaf=int(min(sizes_of_tree.min() for sizes_of_tree in sizes_of_leaves)),
        smallest_group=int(sizes.min()),
        one_label_groups=None if structure.has_classes is False else _one_label_groups(group.ravel(), members),
    )


def plain_structure(model: Any, members: Points) -> dict[str, Any]:
    """Return the fields of a structure, as another process sends them."""
    return asdict(structure_of(model, members))


def _of_plain(fields: Mapping[str, Any]) -> Structure:
    kept = fields["kept"]
    held = tuple(Held(**each) for each in kept["held"])
    unexplained, extra = tuple(kept["unexplained"]), tuple(kept["extra"])
    return Structure(**{**fields, "kept": Kept(held, extra, unexplained, kept["complete"])})


@dataclass(frozen=True)
class ClassAndParameters:
    """What is compared of a trained model and of the recipe of its references."""

    name: str
    classes: Sequence[str]
    parameters: Mapping[str, str]
    is_searched: bool


def class_and_parameters(model: Any) -> ClassAndParameters | None:
    """Read the class and the parameters of an estimator, fitted or not; None of anything else."""
    if isinstance(owner_of(model), ForeignModel):
        fields = owner_of(model).computed("leakbound.releases.structure:plain_class_and_parameters")
        return None if fields is None else ClassAndParameters(**fields)
    estimator, is_searched = answering_estimator(model)
    if not callable(getattr(estimator, "get_params", None)):
        return None
    classes = [f"{base.__module__}.{base.__qualname__}" for base in type(estimator).__mro__]
    parameters = {name: repr(value) for name, value in estimator.get_params(deep=False).items()}
    return ClassAndParameters(type(estimator).__name__, classes, parameters, is_searched)


def plain_class_and_parameters(model: Any) -> dict[str, Any] | None:
    """Return the fields of `class_and_parameters`, as another process sends them."""
    found = class_and_parameters(model)
    return None if found is None else asdict(found)


def _answering(model: Any, x: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the estimators that answer inside of pipelines, searches and ensembles, with what they are asked about.

    That is None where it is not known: then leaves cannot be read.
    """
    inside = _answering_inside(model, x)
    if inside is None:
        yield model, x
    else:
        for part, x_of_part in inside:
            yield from _answering(part, x_of_part)
    # boosting begins with the answers of another estimator, by default with a constant
    if is_of(model, BOOSTING) and model.init is not None:
        for part in _flat(model.init_):
            yield from _answering(part, x)


def _answering_inside(model: Any, x: Any) -> list[tuple[Any, Any]] | None:
    """Return the estimators of which a model is made; None if it answers itself."""
    for class_name, name in INNER.items():
        if is_of(model, [class_name]):
            return [(getattr(model, name, None), x)]
    if is_of(model, ["Pipeline"]):
        for _, step in model.steps[:-1]:
            if step is not None and step != "passthrough":
                x = _asked(getattr(step, "transform", None), x)
        return [(model.steps[-1][1], x)]
    if is_of(model, SELECTORS):
        return [(model.estimator_, _asked(model.transform, x))]
    if is_of(model, INDIRECT):
        return [(part, None) for part in _indirect(model)]
    if is_of(model, ENSEMBLES):
        return list(_members(model, x))
    return None


def _indirect(model: Any) -> Iterator[Any]:
    """Yield the estimators of which a stack, a chain or a calibrated model is made."""
    for calibrated in getattr(model, "calibrated_classifiers_", ()):
        yield from _flat([calibrated.estimator, calibrated.calibrators])
    yield from _flat([getattr(model, "estimators_", None), getattr(model, "final_estimator_", None)])


def _members(model: Any, x: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the members of an ensemble."""
    members = list(_flat(model.estimators_))
    columns_of_members = getattr(model, "estimators_features_", None)  # of bagging
    if columns_of_members is None:
        columns_of_members = [None] * len(members)
    for member, columns in zip(members, columns_of_members, strict=True):
        if columns is None or x is None:
            yield member, x
        elif issparse(x):
            yield member, x.tocsr()[:, columns]
        else:
            yield member, np.asarray(x)[:, columns]


def _asked(method: Callable[..., Any] | None, x: Any, **options: Any) -> Any:
    """Return what a method of the user's model answers about records; None if it fails, or there is no such method."""
    if not callable(method) or x is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as of names of columns, which members of ensembles do not know
            return method(x, **options)
    except Exception:  # the model is the user's: it may raise anything, and then it does not tell
        return None


def _leaves(model: Any, x: Any, n_records: int) -> Int[Array, "n trees"] | None:
    """Return the leaf of each record in each tree; None for what is not made of trees, or does not tell."""
    package = type(model).__module__.partition(".")[0]
    if package == "lightgbm":
        answer = _asked(model.predict, x, pred_leaf=True)
    elif package == "catboost":
        answer = _asked(model.calc_leaf_indexes, x)
    else:
        answer = _asked(getattr(model, "apply", None), x)
    if answer is None:
        return None
    leaves = np.asarray(answer)
    # another package may mean something else by "apply"
    if leaves.ndim == 0 or leaves.size == 0 or len(leaves) != n_records or leaves.dtype.kind not in "biuf":
        return None
    if not np.isfinite(leaves).all() or np.any(leaves != np.floor(leaves)):
        return None
    return leaves.astype(np.int64).reshape(n_records, -1)


def _n_parameters(models: Sequence[Any], leaves: Sequence[Int[Array, "n _"] | None]) -> int | None:
    """Count the numbers that were fitted in all estimators that answer; None if it is not known where some are."""
    total = 0
    for model, leaves_of_model in zip(models, leaves, strict=True):
        n_numbers = _n_coefficients(model) if leaves_of_model is None else _n_of_trees(model, leaves_of_model)
        if n_numbers is None:
            return None
        total += n_numbers
    return total


def _n_of_trees(model: Any, leaves: Int[Array, "n trees"]) -> int:
    """Count splits and values of leaves: K - 1 fractions of K classes, or one value of a boosted tree."""
    n_leaves = [len(np.unique(tree)) for tree in leaves.T]
    first = next(_flat(getattr(model, "estimators_", None)), model)
    tree = getattr(first, "tree_", None)
    n_values = 1
    if tree is not None:
        _, n_outputs, n_classes = tree.value.shape
        n_values = n_outputs * max(n_classes - 1, 1)
    return sum(n - 1 for n in n_leaves) + n_values * sum(n_leaves)


def _n_coefficients(model: Any) -> int | None:
    """Count the numbers that were fitted in one estimator; None if it is not known where they are."""
    for names in COEFFICIENTS:
        if getattr(model, names[0], None) is not None:
            return sum(_size(getattr(model, name, 0.0)) for name in names)
    if is_of(model, ["QuadraticDiscriminantAnalysis"]):
        return _size(model.means_) + _size(model.priors_) + sum(_n_of_covariance(axes) for axes in model.rotations_)
    if not is_of(model, OTHER_MODELS):  # names may mean something else there
        return None
    sizes = [_size(getattr(model, name)) for name in OTHER_NUMBERS if getattr(model, name, None) is not None]
    return sum(sizes) if sizes else None


def _n_of_covariance(axes: Array) -> int:
    """Count the free numbers of a covariance with r principal axes in d dimensions: r variances, and the axes."""
    d, r = axes.shape
    return r + d * r - r * (r + 1) // 2  # the axes are orthogonal and of length 1; d (d + 1) / 2 in all if r = d


def _size(values: Any) -> int:
    """Count numbers in an array, or in a list of arrays."""
    if issparse(values):
        return int(np.prod(values.shape))
    if isinstance(values, list | tuple):
        return sum(_size(part) for part in values)
    return int(np.size(values))


def _all_parts(model: Any) -> Iterator[Any]:
    """Yield a fitted estimator, and all fitted estimators inside of it."""
    waiting, seen = [model], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        names: list[str] = list(PARTS)
        if _is_known(part, WITH_FITTED_ESTIMATOR):
            names.append("estimator")
        if getattr(part, "estimators_", None) is not None:
            names.remove("estimator_")  # in an ensemble, what its members are copies of
        for name in names:
            waiting += _flat(getattr(part, name, None))


def _flat(values: Any) -> Iterator[Any]:
    """Yield the estimators in lists, tuples, mappings and arrays of objects, in their order.

    An estimator may have a length itself, as pipelines and forests do: only these containers are opened.
    """
    if isinstance(values, np.ndarray):
        values = values.ravel().tolist() if values.dtype == object else []
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, list | tuple):
        for value in values:
            yield from _flat(value)
    elif any(callable(getattr(values, name, None)) for name in ("fit", "transform", "predict", "predict_proba")):
        yield values


def _is_known(model: Any, names: frozenset[str]) -> bool:
    """Tell whether a model is of exactly one of these classes of scikit-learn: a class made from it may do more."""
    return type(model).__name__ in names and type(model).__module__.startswith("sklearn.")


def _is_boosting_of_others(model: Any) -> bool:
    """Tell whether a model is of LightGBM, XGBoost or CatBoost."""
    package = type(model).__module__.partition(".")[0]
    return type(model).__name__ in BOOSTING_OF_OTHERS.get(package, ())


def _has_leaves(parts: Sequence[Any]) -> bool | None:
    """Tell whether any part of a model is made of trees; None if that is not known."""
    if any(is_of(part, TREES) for part in parts):
        return True
    return False if all(_is_known(part, WITHOUT_LEAVES) for part in parts) else None


def _stores_records(parts: Sequence[Any]) -> bool | None:
    """Tell whether any part of a model holds training records; None if that is not known."""
    for part in parts:
        if _is_known(part, KEEP_RECORDS) or any(getattr(part, name, None) is not None for name in RECORDS):
            return True
    holds_none = all(_is_known(part, WITHOUT_RECORDS) or _is_boosting_of_others(part) for part in parts)
    return False if holds_none else None


def _holds(kept: Kept, by_class: bool | None) -> bool | None:
    """Combine what the classes keep with what was found; None if a part is not explained."""
    if by_class or kept.held:
        return True
    return None if kept.unexplained or not kept.complete else by_class


def _has_classes(model: Any) -> bool | None:
    """Tell whether a model answers with classes; None if that is not known."""
    if predicts_numbers(model):
        return False
    return True if getattr(model, "classes_", None) is not None else None


def _one_label_groups(group: Int[Array, " n"], members: Points) -> int | None:
    """Count the groups whose records all have the same label; None without labels."""
    if members.y is None:
        return None
    labels = np.asarray(members.y).reshape(len(members), -1)
    _, code = np.unique(labels, axis=0, return_inverse=True)
    pairs = np.unique(np.column_stack([group, code.ravel()]), axis=0)
    _, n_labels = np.unique(pairs[:, 0], return_counts=True)
    return int(np.count_nonzero(n_labels == 1))
