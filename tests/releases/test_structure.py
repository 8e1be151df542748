"""The structure of fitted models, against what scikit-learn says of its own trees."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression, LogisticRegression, RANSACRegressor, Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelPropagation, SelfTrainingClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import all_estimators

from leakbound.core.types import Points
from leakbound.data.records import sparse_rows
from leakbound.releases.structure import BOOSTING_OF_OTHERS, COMPOSITES, WITHOUT_RECORDS, structure_of

X, Y = load_breast_cancer(return_X_y=True)
WINE = load_wine(return_X_y=True)
MEMBERS = Points(X, Y)


def test_a_tree_by_its_own_counts():
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(*WINE)
    found = structure_of(tree, Points(*WINE))
    leaf = tree.tree_.children_left == -1
    sizes = tree.tree_.n_node_samples[leaf]
    pure = (tree.tree_.impurity[leaf] == 0).sum()
    # two splits and two fractions of three classes in each leaf
    assert found.n_parameters == (~leaf).sum() + 2 * leaf.sum()
    assert (found.smallest_leaf, found.smallest_group) == (sizes.min(), sizes.min())
    assert found.one_label_groups == pure
    assert found.degrees_of_freedom == 178 - found.n_parameters
    assert found.has_leaves
    assert found.stores_records is False


def test_a_forest_by_the_leaves_of_its_trees():
    forest = RandomForestClassifier(5, max_depth=2, random_state=0).fit(X, Y)
    found = structure_of(forest, MEMBERS)
    rows = [tuple(row) for row in forest.apply(X)]
    counts = {row: rows.count(row) for row in set(rows)}
    assert found.smallest_group == min(counts.values())
    labels = {row: {int(label) for other, label in zip(rows, Y, strict=True) if other == row} for row in counts}
    assert found.one_label_groups == sum(len(seen) == 1 for seen in labels.values())
    smallest = min(np.unique(column, return_counts=True)[1].min() for column in forest.apply(X).T)
    assert found.smallest_leaf == smallest


@pytest.mark.parametrize(
    ("model", "n_parameters"),
    [
        (make_pipeline(StandardScaler(), LogisticRegression()), 31),
        (make_pipeline(StandardScaler(), MLPClassifier((5,), max_iter=2000, random_state=0)), 30 * 5 + 5 + 5 + 1),
        (GaussianNB(), 2 * 30 * 2 + 2),
        (VotingClassifier([("a", GaussianNB()), ("b", GaussianNB())]), 2 * (2 * 30 * 2 + 2)),
    ],
)
def test_models_without_leaves_are_counted(model, n_parameters):
    found = structure_of(model.fit(X, Y), MEMBERS)
    assert found.n_parameters == n_parameters
    assert (found.has_leaves, found.smallest_leaf, found.smallest_group) == (False, None, None)
    assert found.stores_records is False


def test_a_regression():
    x, y = load_diabetes(return_X_y=True)
    members = Points(x, y)
    assert structure_of(Ridge().fit(x, y), members).n_parameters == 11
    found = structure_of(DecisionTreeRegressor(max_depth=2).fit(x, y), members)
    assert (found.n_parameters, found.one_label_groups) == (7, None)


@pytest.mark.parametrize("model", [KNeighborsClassifier(), make_pipeline(StandardScaler(), SVC())])
def test_models_that_hold_records(model):
    assert structure_of(model.fit(X, Y), MEMBERS).stores_records


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingClassifier(n_estimators=3),
        AdaBoostClassifier(n_estimators=3),
        BaggingClassifier(n_estimators=3, max_features=0.5, random_state=0),
        GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}),
    ],
)
def test_other_trees_have_leaves(model):
    found = structure_of(model.fit(X, Y), MEMBERS)
    assert found.has_leaves
    assert found.smallest_leaf >= found.smallest_group >= 1


def test_three_classes_of_boosted_trees_have_a_tree_each():
    model = GradientBoostingClassifier(n_estimators=2, max_depth=1).fit(*WINE)
    assert structure_of(model, Points(*WINE)).n_parameters == 2 * 3 * (1 + 2)


@pytest.mark.parametrize("model", [HistGradientBoostingClassifier(max_iter=2).fit(X, Y), lambda x: x])
def test_what_does_not_tell_is_not_known(model):
    found = structure_of(model, MEMBERS)
    assert (found.n_parameters, found.has_leaves, found.degrees_of_freedom) == (None, None, None)


def test_the_method_of_a_fitted_model_is_that_model():
    tree = DecisionTreeClassifier(max_depth=2).fit(X, Y)
    assert structure_of(tree.predict_proba, MEMBERS) == structure_of(tree, MEMBERS)


def small_data(n=60, d=4, n_labels=1):
    """Records of d normal numbers, no two of them alike, and labels of two classes that depend on them."""
    x = np.abs(np.random.default_rng(3).normal(size=(n, d)))
    labels = (x[:, :n_labels] > 0.7).astype(int)
    return x, labels[:, 0] if n_labels == 1 else labels


KNN = KNeighborsClassifier(3)
TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
FOREST = RandomForestClassifier(3, max_depth=2, random_state=0)
LOGISTIC = LogisticRegression()


def fitted(model, x, y):
    """Fit a model; some warn of data on which they have nothing to do, such as without unlabelled records."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(x, y)


def composites(part):
    """Yield estimators that consist of a classifier and of others."""
    yield StackingClassifier([("a", LOGISTIC)], final_estimator=part, cv=2)
    yield StackingClassifier([("a", LOGISTIC), ("b", part)], cv=2)
    yield CalibratedClassifierCV(part, cv=2)
    yield VotingClassifier([("a", Pipeline([("b", part)])), ("c", LOGISTIC)])
    yield VotingClassifier([("a", VotingClassifier([("b", part)])), ("c", LOGISTIC)])
    yield VotingClassifier([("a", GridSearchCV(part, {}, cv=2)), ("c", LOGISTIC)])
    yield GridSearchCV(part, {}, cv=2)
    yield BaggingClassifier(part, 2, random_state=0)
    yield BaggingClassifier(BaggingClassifier(part, 2, random_state=0), 2, random_state=0)
    yield FixedThresholdClassifier(part)
    yield SelfTrainingClassifier(part)
    yield OneVsRestClassifier(part)
    yield OneVsOneClassifier(part)
    yield OutputCodeClassifier(part, random_state=0)
    x, y = small_data()
    yield FrozenEstimator(part.fit(x, y))
    yield make_pipeline(StandardScaler(), FrozenEstimator(part.fit(x, y)))


@pytest.mark.parametrize("model", list(composites(KNN)), ids=lambda model: type(model).__name__)
def test_records_are_looked_for_in_all_parts(model):
    x, y = small_data()
    structure = structure_of(fitted(model, x, y), Points(x, y))
    assert structure.stores_records is True
    assert structure.has_leaves is False
    assert structure.n_parameters is None


@pytest.mark.by_day("tree")
@pytest.mark.parametrize("part", [TREE, FOREST], ids=["tree", "forest"])
def test_leaves_are_looked_for_in_all_parts(part):
    x, y = small_data()
    for model in composites(part):
        structure = structure_of(fitted(model, x, y), Points(x, y))
        assert structure.has_leaves is True, model
        assert structure.stores_records is keeps_labels(model), model


@pytest.mark.parametrize("model", list(composites(LOGISTIC)), ids=lambda model: type(model).__name__)
def test_a_model_of_linear_parts_has_neither_records_nor_leaves(model):
    x, y = small_data()
    structure = structure_of(fitted(model, x, y), Points(x, y))
    assert (structure.stores_records, structure.has_leaves) == (keeps_labels(model), False)


def keeps_labels(model):
    """Tell whether a model holds the label of each record, as self-training does."""
    return isinstance(model, SelfTrainingClassifier)


class OfUnknownParts(ClassifierMixin, BaseEstimator):
    """A classifier of another package, which may keep anything."""

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, x):
        return np.full(len(x), self.classes_[0])

    def predict_proba(self, x):
        return np.full((len(x), len(self.classes_)), 1 / len(self.classes_))


@pytest.mark.parametrize("model", list(composites(OfUnknownParts())), ids=lambda model: type(model).__name__)
def test_nothing_is_known_of_a_model_with_an_unknown_part(model):
    x, y = small_data()
    structure = structure_of(fitted(model, x, y), Points(x, y))
    stores_records = True if keeps_labels(model) else None
    assert (structure.stores_records, structure.has_leaves, structure.n_parameters) == (stores_records, None, None)


@pytest.mark.parametrize(
    "model",
    [
        GaussianProcessClassifier(),
        LabelPropagation(),
        make_pipeline(KNNImputer(), LOGISTIC),
        make_pipeline(Nystroem(n_components=10, random_state=0), LOGISTIC),
        make_pipeline(ColumnTransformer([("a", KNNImputer(), [0, 1])], remainder=StandardScaler()), LOGISTIC),
        make_pipeline(ColumnTransformer([("a", StandardScaler(), [0, 1])], remainder=KNNImputer()), LOGISTIC),
        make_pipeline(FeatureUnion([("a", KNNImputer()), ("b", StandardScaler())]), LOGISTIC),
        make_pipeline(make_pipeline(StandardScaler(), KNNImputer()), TREE),
        GradientBoostingClassifier(n_estimators=2, init=KNN),
    ],
    ids=lambda model: "-".join(type(part).__name__ for part in getattr(model, "named_steps", {"": model}).values()),
)
def test_records_are_looked_for_in_all_steps(model):
    x, y = small_data()
    assert structure_of(model.fit(x, y), Points(x, y)).stores_records is True


def test_records_inside_of_regressions():
    x, y = small_data()[0], small_data()[0][:, 0]
    for model in (
        TransformedTargetRegressor(KNeighborsRegressor()),
        RANSACRegressor(KNeighborsRegressor(), min_samples=20, random_state=0),
    ):
        assert structure_of(model.fit(x, y), Points(x, y)).stores_records is True


def holds_a_record(value, records, seen):
    """Look for a row of the data in everything that an object holds."""
    if id(value) in seen:
        return False
    seen[id(value)] = value
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray) and value.dtype != object:
        of_records = value.ndim == 2 and value.shape[1] == 4 and value.dtype.kind == "f"
        return of_records and any(row.astype(float).tobytes() in records for row in value)
    if isinstance(value, np.ndarray):
        value = value.ravel().tolist()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return any(holds_a_record(part, records, seen) for part in value)
    return holds_a_record(getattr(value, "__dict__", {}), records, seen)


@pytest.mark.slow
def test_no_class_of_which_it_is_said_keeps_records():
    """Fit the classes of scikit-learn that are said to keep no records, and look for rows of the data in them."""
    x, y = small_data()
    records = {row.tobytes() for row in x}
    assert holds_a_record(KNN.fit(x, y), records, {})
    tried = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, kind in all_estimators():
            if name not in WITHOUT_RECORDS - COMPOSITES or not kind.__module__.startswith("sklearn."):
                continue
            try:
                model = kind().fit(x, y)
            except (TypeError, ValueError, AttributeError):  # for texts, several labels, or many columns
                continue
            tried.add(name)
            # each number of these data is a category of its own
            keeps_values = name in ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder")
            assert structure_of(model, Points(x, y)).stores_records is keeps_values, name
            assert not holds_a_record(model, records, {}), name
    assert len(tried) > 80


def test_parameters_of_all_parts_are_counted():
    x, y = small_data()
    members = Points(x, y)
    stack = StackingClassifier([("a", LOGISTIC)], final_estimator=LogisticRegression(), cv=2).fit(x, y)
    assert structure_of(stack, members).n_parameters == (4 + 1) + (1 + 1)
    calibrated = CalibratedClassifierCV(LOGISTIC, cv=2).fit(x, y)
    assert structure_of(calibrated, members).n_parameters == 2 * ((4 + 1) + 2)
    mixed = VotingClassifier([("a", LOGISTIC), ("b", TREE)]).fit(x, y)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(x, y)
    n_of_tree = tree.tree_.node_count  # its splits, and a fraction of one class in each leaf
    structure = structure_of(mixed, members)
    assert (structure.n_parameters, structure.has_leaves, structure.smallest_leaf) == (5 + n_of_tree, True, None)


def test_covariances_of_classes_are_counted():
    x, y = small_data()
    # two classes of four means, ten variances and covariances, and a fraction
    for covariances in (False, True):
        model = QuadraticDiscriminantAnalysis(store_covariance=covariances).fit(x, y)
        assert structure_of(model, Points(x, y)).n_parameters == 2 * (4 + 10 + 1)


def test_sparse_coefficients_are_counted():
    x, y = small_data()
    model = SVC(kernel="linear").fit(sparse.csr_array(x), y)
    assert structure_of(model, Points(x, y)).n_parameters == 5


def expected_leaves(leaves, y):
    """Smallest leaf, smallest group and groups of one label, from the leaves of each record in each tree."""
    rows = [tuple(row) for row in leaves]
    labels = {row: [int(label) for other, label in zip(rows, y, strict=True) if other == row] for row in rows}
    of_trees = [[list(tree).count(leaf) for leaf in tree] for tree in np.transpose(leaves)]
    groups = list(labels.values())
    return min(map(min, of_trees)), min(map(len, groups)), sum(len(set(group)) == 1 for group in groups)


def leaf_counts(structure):
    return structure.smallest_leaf, structure.smallest_group, structure.one_label_groups


def test_forests_inside_of_bagging():
    x, y = small_data()
    model = BaggingClassifier(FOREST, 2, max_features=0.5, random_state=0).fit(x, y)
    columns = zip(model.estimators_, model.estimators_features_, strict=True)
    leaves = np.hstack([forest.apply(x[:, chosen]) for forest, chosen in columns])
    assert leaf_counts(structure_of(model, Points(x, y))) == expected_leaves(leaves, y)


def test_bagging_inside_of_bagging():
    x, y = small_data()
    inner = BaggingClassifier(TREE, 2, max_features=0.75, random_state=0)
    model = BaggingClassifier(inner, 2, max_features=0.75, random_state=0).fit(x, y)
    leaves = []
    for member, chosen in zip(model.estimators_, model.estimators_features_, strict=True):
        for tree, inner_chosen in zip(member.estimators_, member.estimators_features_, strict=True):
            leaves.append(tree.apply(x[:, chosen][:, inner_chosen]))
    assert leaf_counts(structure_of(model, Points(x, y))) == expected_leaves(np.transpose(leaves), y)


def test_pipelines_inside_of_ensembles():
    x, y = small_data()
    model = VotingClassifier([("a", make_pipeline(StandardScaler(), TREE)), ("b", make_pipeline(FOREST))]).fit(x, y)
    tree, forest = model.estimators_
    leaves = np.column_stack([tree[-1].apply(tree[0].transform(x)), forest[-1].apply(x)])
    assert leaf_counts(structure_of(model, Points(x, y))) == expected_leaves(leaves, y)


def test_selected_columns_of_a_tree():
    x, y = small_data()
    model = RFE(DecisionTreeClassifier(max_depth=2, random_state=0), n_features_to_select=2).fit(x, y)
    leaves = model.estimator_.apply(x[:, model.support_])[:, None]
    assert leaf_counts(structure_of(model, Points(x, y))) == expected_leaves(leaves, y)


def test_sparse_records_of_bagging():
    x, y = small_data()
    x[x < 0.5] = 0.0
    rows = sparse.csr_array(x)
    model = BaggingClassifier(TREE, 2, max_features=0.5, random_state=0).fit(rows, y)
    columns = zip(model.estimators_, model.estimators_features_, strict=True)
    leaves = np.column_stack([tree.apply(rows[:, chosen]) for tree, chosen in columns])
    assert leaf_counts(structure_of(model, Points(sparse_rows(rows), y))) == expected_leaves(leaves, y)


def test_frames_of_bagging():
    x, y = small_data()
    frame = pd.DataFrame(x, columns=list("abcd"))
    ensembles = [BaggingClassifier(TREE, 2, max_features=0.5, random_state=0), AdaBoostClassifier(TREE, n_estimators=2)]
    for model in ensembles:
        structure = structure_of(model.fit(frame, y), Points(frame, y))
        assert structure == structure_of(model.fit(x, y), Points(x, y))
        assert structure.smallest_leaf is not None


def test_several_labels():
    x, y = small_data(n_labels=2)
    both = MultiOutputClassifier(TREE).fit(x, y)
    leaves = np.column_stack([tree.apply(x) for tree in both.estimators_])
    structure = structure_of(both, Points(x, y))
    assert (structure.smallest_leaf, structure.smallest_group) == expected_leaves(leaves, y[:, 0])[:2]
    # the second tree of a chain was asked about the first label too
    chain = structure_of(ClassifierChain(TREE).fit(x, y), Points(x, y))
    assert (chain.has_leaves, chain.smallest_leaf, chain.n_parameters) == (True, None, None)


def test_trees_that_select_columns_have_leaves():
    x, y = small_data()
    for model in (LOGISTIC, TREE):
        pipeline = make_pipeline(SelectFromModel(ExtraTreesClassifier(3, random_state=0)), model).fit(x, y)
        structure = structure_of(pipeline, Points(x, y))
        assert (structure.has_leaves, structure.smallest_leaf) == (True, None)


def test_trees_that_find_outliers():
    x, _ = small_data()
    model = IsolationForest(n_estimators=2, max_features=0.5, random_state=0).fit(x)
    structure = structure_of(model, Points(x))
    assert (structure.has_leaves, structure.has_classes, structure.one_label_groups) == (True, None, None)
    assert structure.smallest_leaf >= structure.smallest_group >= 1


class Failing(DecisionTreeClassifier):
    """A tree that does not tell its leaves."""

    def apply(self, X, check_input=True):
        raise ZeroDivisionError


class FailingStep(TransformerMixin, BaseEstimator):
    """A step that works while it is fitted, and not any more later."""

    def fit_transform(self, x, y=None):
        return x

    def fit(self, x, y=None):
        return self

    def transform(self, x):
        raise RuntimeError("out of order")


class Applying(BaseEstimator):
    """An object whose apply does something else."""

    def __init__(self, answer=None):
        self.answer = answer

    def fit(self, x, y):
        return self

    def predict(self, x):
        return np.zeros(len(x))

    def apply(self, x):
        return self.answer


@pytest.mark.parametrize(
    "model",
    [
        Failing(),
        make_pipeline(FailingStep(), TREE),
        RFE(Failing(), n_features_to_select=2),
        VotingClassifier([("a", Failing()), ("b", TREE)]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_that_fails_does_not_tell_its_leaves(model):
    x, y = small_data()
    structure = structure_of(model.fit(x, y), Points(x, y))
    assert (structure.has_leaves, structure.n_parameters) == (True, None)
    assert leaf_counts(structure) == (None, None, None)


@pytest.mark.parametrize(
    "answer",
    [
        *(None, 3, "leaf", object()),
        *(np.zeros((7, 2)), np.zeros((60, 0)), np.full(60, "a"), np.full((60, 2), 0.5), np.full(60, np.nan)),
    ],
)
def test_what_is_no_leaf_of_each_record_is_not_read(answer):
    x, y = small_data()
    structure = structure_of(Applying(answer), Points(x, y))
    assert (structure.has_leaves, structure.n_parameters, structure.stores_records) == (None, None, None)


def boosted(package, name, mixin=ClassifierMixin):
    """Return a class with the interface of another package's boosted trees, which are two thresholds here."""

    def leaves(x):
        return (np.asarray(x)[:, :2] > 0.7).astype(np.int32)

    def predict(self, x, pred_leaf=False):
        return leaves(x) if pred_leaf else leaves(x)[:, 0]

    methods = {"fit": lambda self, x, y: self, "predict": predict, "__module__": f"{package}.sklearn"}
    if package == "catboost":
        methods["calc_leaf_indexes"] = lambda self, x: leaves(x)
    if package == "xgboost":
        methods["apply"] = lambda self, x: leaves(x).astype(np.float32)
    if mixin is ClassifierMixin:
        methods["classes_"] = np.arange(2)
    return type(name, (mixin, BaseEstimator), methods)()


@pytest.mark.parametrize(
    ("package", "name"),
    [("lightgbm", "LGBMClassifier"), ("xgboost", "XGBClassifier"), ("catboost", "CatBoostClassifier")],
)
def test_boosted_trees_of_other_packages(package, name):
    assert name in BOOSTING_OF_OTHERS[package]
    x, y = small_data()
    leaves = (x[:, :2] > 0.7).astype(int)
    model = boosted(package, name)
    for whole in (model, make_pipeline(StandardScaler(with_mean=False, with_std=False), model).fit(x, y)):
        structure = structure_of(whole, Points(x, y))
        assert (structure.has_leaves, structure.stores_records, structure.has_classes) == (True, False, True)
        assert structure.n_parameters == 2 * (1 + 2)
        assert leaf_counts(structure) == expected_leaves(leaves, y)
    regression = boosted(package, name.replace("Classifier", "Regressor"), RegressorMixin)
    structure = structure_of(regression, Points(x, x[:, 0]))
    assert (structure.smallest_leaf is None, structure.has_classes, structure.one_label_groups) == (False, False, None)
    # a class of the same package that is not known, such as one that the user derived
    assert structure_of(boosted(package, "Other"), Points(x, y)).stores_records is None


def test_what_answers_with_classes():
    x, y = small_data()
    members = Points(x, y)
    for model in (TREE, make_pipeline(TREE), GridSearchCV(TREE, {}, cv=2), make_pipeline(SimpleImputer(), LOGISTIC)):
        assert structure_of(model.fit(x, y), members).has_classes is True
    for model in (DecisionTreeRegressor(), make_pipeline(LinearRegression()), GridSearchCV(Ridge(), {}, cv=2)):
        assert structure_of(model.fit(x, y), members).has_classes is False
    assert structure_of(lambda rows: rows, members).has_classes is None
