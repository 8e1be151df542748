"""Natural calls with scikit-learn: data frames as people have them, texts, and other tasks than two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin

import leakbound as ls
from tests.libraries.natural import (
    N_MODELS,
    WrongResult,
    finds_a_leak,
    finds_no_leak,
    natural,
    numbers,
    people,
    reviews,
)


def prepare_people() -> Any:
    """Columns of people as numbers: one column per word, missing hours filled in, all on one scale."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    return ColumnTransformer(
        [
            ("words", OneHotEncoder(handle_unknown="ignore"), ["town", "job"]),
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "hours"]),
        ],
        remainder="passthrough",
    )


class SimilarPeople(ClassifierMixin, BaseEstimator):
    """Every person seen in training votes, the more the closer in age and hours, and those in the same job twice."""

    def __init__(self, width: float = 0.1) -> None:
        self.width = width

    def fit(self, X: pd.DataFrame, y: pd.Series) -> SimilarPeople:
        self.classes_ = np.unique(y)
        self.columns_ = list(X.columns)
        self.usual_hours_ = X["hours"].mean()
        self.people_ = X[["age", "hours", "job"]].fillna({"hours": self.usual_hours_})
        self.votes_ = np.asarray(y)[:, None] == self.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        X = X[self.columns_].fillna({"hours": self.usual_hours_})
        rows = []
        for number in range(len(X)):
            person = X.iloc[number]
            distance = (self.people_["age"] - person["age"]) ** 2 + (self.people_["hours"] - person["hours"]) ** 2
            weight = (1 + (self.people_["job"] == person["job"])) / (self.width + distance)
            rows.append(weight.to_numpy() @ self.votes_ / weight.sum())
        return np.array(rows)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@natural("frames", "a bare random forest on a frame with text columns and missing values")
def forest_on_mixed_frame() -> None:
    from sklearn.ensemble import RandomForestClassifier

    frame, income = people()
    report = ls.audit(RandomForestClassifier(random_state=0), frame, income, n_models=N_MODELS)
    finds_a_leak(report)


@natural("frames", "histogram gradient boosting that takes its categories from the dtypes of the frame")
def hist_boosting_categories_from_dtype() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    frame, income = people()
    frame = frame.astype({"town": "category", "job": "category"})
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=300, min_samples_leaf=5)
    report = ls.audit(model, frame, income, n_models=N_MODELS)
    finds_a_leak(report)


@natural("frames", "a pipeline whose column transformer names the columns of the frame")
def pipeline_with_named_columns() -> None:
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame, income = people()
    columns = ColumnTransformer(
        [
            ("words", OneHotEncoder(handle_unknown="ignore"), ["town", "job"]),
            ("numbers", SimpleImputer(strategy="median"), ["age", "hours", "married"]),
        ]
    )
    model = Pipeline([("columns", columns), ("forest", RandomForestClassifier())])
    report = ls.audit(model, frame, income, n_models=N_MODELS)
    finds_a_leak(report)


@natural("frames", "a grid search around a pipeline that names the columns of the frame")
def grid_search_around_pipeline() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline

    frame, income = people()
    pipeline = Pipeline([("prepare", prepare_people()), ("forest", RandomForestClassifier(50))])
    search = GridSearchCV(pipeline, {"forest__max_depth": [20, None]}, cv=3)
    report = ls.audit(search, frame, income, n_models=N_MODELS)
    finds_a_leak(report)


@natural("frames", "a randomised search for the settings of a decision tree on columns of numbers")
def randomised_search_of_a_tree() -> None:
    from scipy.stats import randint
    from sklearn.model_selection import RandomizedSearchCV
    from sklearn.tree import DecisionTreeClassifier

    X, y = numbers()
    settings = {"max_depth": randint(10, 30), "criterion": ["gini", "entropy"], "splitter": ["best", "random"]}
    search = RandomizedSearchCV(DecisionTreeClassifier(), settings, n_iter=5, cv=3, random_state=0)
    report = ls.audit(search, X, y, n_models=N_MODELS)
    finds_a_leak(report)


@natural("frames", "a random forest whose probabilities are calibrated by cross-validation")
def calibrated_forest() -> None:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import RandomForestClassifier

    X, y = numbers()
    X = pd.DataFrame(X, columns=[f"sensor_{number}" for number in range(X.shape[1])])
    model = CalibratedClassifierCV(RandomForestClassifier(50), cv=5)
    report = ls.audit(model, X, y, n_models=N_MODELS)
    finds_a_leak(report)


@natural("frames", "a forest and a tree stacked under a logistic regression, on the frame")
def stacked_models() -> None:
    from sklearn.ensemble import RandomForestClassifier, StackingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier

    frame, income = people()
    stack = StackingClassifier(
        [
            ("forest", make_pipeline(prepare_people(), RandomForestClassifier(50))),
            ("tree", make_pipeline(prepare_people(), DecisionTreeClassifier(max_depth=8))),
        ],
        final_estimator=LogisticRegression(),
    )
    report = ls.audit(stack, frame, income, n_models=N_MODELS)
    finds_a_leak(report)


@natural("frames", "an estimator class of one's own that uses X.iloc and the names of the columns")
def own_estimator_on_frame() -> None:
    frame, income = people()
    report = ls.audit({"similar people": SimilarPeople(width=0.5)}, frame, income, n_models=N_MODELS)
    finds_a_leak(report)


@natural("frames", "a logistic regression on a sparse matrix of counts with more columns than rows")
def logistic_on_sparse_counts() -> None:
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    counts = rng.poisson(0.05, size=(240, 800))
    y = np.where(rng.random(240) < 0.25, rng.random(240) < 0.5, counts[:, :100].sum(axis=1) > 4).astype(int)
    X = csr_matrix(counts, dtype=float)
    report = ls.audit(LogisticRegression(C=1000, max_iter=1000), X, y, n_models=N_MODELS)
    finds_a_leak(report)


@natural("frames", "histogram gradient boosting on a frame with pandas' nullable dtypes and pd.NA")
def nullable_dtypes() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    frame, income = people()
    frame = frame.astype({"age": "Int64", "married": "boolean", "town": "string", "job": "string"})
    for start, column in enumerate(["age", "married", "town"]):
        frame.loc[frame.index[start::20], column] = pd.NA
    model = HistGradientBoostingClassifier(max_iter=300, min_samples_leaf=5)
    report = ls.audit(model, frame, income, n_models=N_MODELS)
    finds_a_leak(report)


@natural("frames", "a random forest on a frame with a column of dates")
def frame_with_dates() -> None:
    from sklearn.ensemble import RandomForestClassifier

    frame, income = people()
    days = np.random.default_rng(1).integers(0, 3000, len(frame))
    frame["hired"] = pd.Timestamp("2015-01-01") + pd.to_timedelta(days, unit="D")
    report = ls.audit(RandomForestClassifier(), frame, income, n_models=N_MODELS)
    finds_a_leak(report)


@natural("frames", "a random forest on a frame whose columns are kept by pyarrow", "pyarrow")
def pyarrow_dtypes() -> None:
    from sklearn.ensemble import RandomForestClassifier

    frame, income = people()
    frame = frame.convert_dtypes(dtype_backend="pyarrow")
    report = ls.audit(RandomForestClassifier(), frame, income, n_models=N_MODELS)
    finds_a_leak(report)


@natural("frames", "which of three models may be published: a stump, a forest, or nearest neighbours")
def which_model_may_i_publish() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier

    frame, income = people()
    report = ls.audit(
        {
            "stump": make_pipeline(prepare_people(), DecisionTreeClassifier(max_depth=1)),
            "forest": make_pipeline(prepare_people(), RandomForestClassifier()),
            "neighbours": make_pipeline(prepare_people(), KNeighborsClassifier()),
        },
        frame,
        income,
        n_models=N_MODELS,
    )
    print(report.table())
    finds_a_leak(report, "forest")
    finds_no_leak(report, "stump")


@natural("frames", "a column that numbers the customers was left in the frame, and the report names it")
def identifier_left_in_frame() -> None:
    from sklearn.ensemble import RandomForestClassifier

    frame, income = people()
    numbers_of_customers = np.random.default_rng(1).permutation(len(frame))
    frame.insert(0, "customer_id", [f"C{number:05d}" for number in numbers_of_customers])
    report = ls.audit(RandomForestClassifier(), frame, income, n_models=N_MODELS)
    if "customer_id" not in report.table():
        raise WrongResult("the report does not say that customer_id is different for every row")


@natural("frames", "labels as a pandas Series of categories")
def labels_as_categories() -> None:
    from sklearn.ensemble import RandomForestClassifier

    frame, income = people()
    X = frame[["age", "hours", "married"]]
    y = income.astype("category")
    report = ls.audit(RandomForestClassifier(), X, y, n_models=N_MODELS)
    finds_a_leak(report)


@natural("texts", "tf-idf and a logistic regression on a list of texts and a list of labels")
def tfidf_on_list_of_texts() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, labels = reviews()
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100))
    report = ls.audit(model, texts, labels, n_models=N_MODELS)
    finds_a_leak(report)


@natural("texts", "tf-idf and a logistic regression on a pandas Series of texts with an index of its own")
def tfidf_on_series_of_texts() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, labels = reviews()
    index = [f"review-{number}" for number in np.random.default_rng(1).permutation(len(texts))]
    texts = pd.Series(texts, index=index, name="review")
    labels = pd.Series(labels, index=index, name="opinion")
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100))
    report = ls.audit(model, texts, labels, n_models=N_MODELS)
    finds_a_leak(report)


@natural("texts", "a frame with a column of texts and a column of prices, each with its own transformer")
def texts_and_prices_in_frame() -> None:
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    texts, labels = reviews()
    price = np.random.default_rng(1).uniform(12, 60, len(texts)).round(2)
    frame = pd.DataFrame({"review": texts, "price": price})
    columns = ColumnTransformer([("text", TfidfVectorizer(), "review"), ("number", StandardScaler(), ["price"])])
    model = make_pipeline(columns, LogisticRegression(C=100))
    report = ls.audit(model, frame, labels, n_models=N_MODELS)
    finds_a_leak(report)


@natural("texts", "hashed words and a linear support vector machine, which gives margins instead of probabilities")
def hashed_words_with_margins() -> None:
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    texts, labels = reviews()
    model = make_pipeline(HashingVectorizer(), LinearSVC(C=10))
    report = ls.audit(model, texts, labels, n_models=N_MODELS)
    finds_a_leak(report)


@natural("tasks", "a random forest that predicts pay from the numbers in the frame")
def forest_regression() -> None:
    from sklearn.ensemble import RandomForestRegressor

    frame, _ = people()
    pay = 2000 + 40 * frame["age"] + np.random.default_rng(1).normal(0, 900, len(frame))
    report = ls.audit(RandomForestRegressor(), frame[["age", "hours"]], pay, n_models=N_MODELS)
    finds_a_leak(report)


@natural("tasks", "bare gradient boosting that predicts pay from a frame with text columns and missing values")
def boosted_regression_on_mixed_frame() -> None:
    from sklearn.ensemble import GradientBoostingRegressor

    frame, _ = people()
    pay = 2000 + 40 * frame["age"] + np.random.default_rng(1).normal(0, 900, len(frame))
    model = GradientBoostingRegressor(n_estimators=400, max_depth=4)
    report = ls.audit(model, frame, pay, n_models=N_MODELS)
    finds_a_leak(report)


@natural("tasks", "a random forest that gives each record three labels, each of them yes or no")
def forest_with_three_labels() -> None:
    from sklearn.ensemble import RandomForestClassifier

    X, _ = numbers()
    noise = np.random.default_rng(1).normal(size=(len(X), 3))
    y = (X[:, :3] + noise > 0).astype(int)
    report = ls.audit(RandomForestClassifier(), X, y, n_models=N_MODELS)
    finds_a_leak(report)


@natural("tasks", "a classifier with two outputs, whose labels are two text columns of a frame")
def two_text_outputs() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.multioutput import MultiOutputClassifier

    frame, income = people()
    owner = (frame["age"] > 40) ^ (np.random.default_rng(1).random(len(frame)) < 0.25)
    y = pd.DataFrame({"income": income, "home": np.where(owner, "owned", "rented")}, index=frame.index)
    model = MultiOutputClassifier(RandomForestClassifier(50))
    report = ls.audit(model, frame[["age", "hours", "married"]], y, n_models=N_MODELS)
    finds_a_leak(report)


@natural("tasks", "a random forest that predicts two numbers at once")
def regression_of_two_numbers() -> None:
    from sklearn.ensemble import RandomForestRegressor

    X, _ = numbers()
    y = X[:, :2] + np.random.default_rng(1).normal(size=(len(X), 2))
    report = ls.audit(RandomForestRegressor(), X, y, n_models=N_MODELS)
    finds_a_leak(report)


@natural("tasks", "one fitted pipeline with a forest, given as it is, with its training and its test data")
def one_fitted_pipeline() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline

    frame, income = people()
    X_train, X_test, y_train, y_test = train_test_split(frame, income, test_size=0.5, random_state=0)
    forest = make_pipeline(prepare_people(), RandomForestClassifier(random_state=0))
    forest.fit(X_train, y_train)
    report = ls.audit_model(forest, (X_train, y_train), (X_test, y_test))
    finds_a_leak(report)


@natural("tasks", "one fitted random forest for regression, given as it is, with its training and its test data")
def one_fitted_regressor() -> None:
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.model_selection import train_test_split

    X, _ = numbers()
    y = X[:, 0] + np.random.default_rng(1).normal(size=len(X))
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    forest = RandomForestRegressor(random_state=0).fit(X_train, y_train)
    report = ls.audit_model(forest, (X_train, y_train), (X_test, y_test))
    finds_a_leak(report)
