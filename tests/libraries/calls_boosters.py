"""Natural calls with other libraries that follow scikit-learn: LightGBM, XGBoost, CatBoost and imbalanced-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd

import leakbound as ls
from tests.libraries.natural import N_MODELS, finds_a_leak, natural, people


def people_with_categories(n: int = 240) -> tuple[pd.DataFrame, pd.Series]:
    """People whose town and job are pandas categories, as the boosting libraries want them."""
    frame, income = people(n)
    return frame.astype({"town": "category", "job": "category"}), income


@natural("other libraries", "LightGBM on a frame with category columns", "lightgbm")
def lightgbm_with_categories() -> None:
    from lightgbm import LGBMClassifier

    frame, income = people_with_categories()
    model = LGBMClassifier(n_estimators=300, min_child_samples=5, verbose=-1)
    report = ls.audit(model, frame, income, n_models=N_MODELS)
    finds_a_leak(report)


@natural("other libraries", "XGBoost on a frame with category columns, labels 0 and 1", "xgboost-cpu")
def xgboost_with_categories() -> None:
    from xgboost import XGBClassifier

    frame, income = people_with_categories()
    y = (income == "high").astype(int)
    report = ls.audit(XGBClassifier(enable_categorical=True), frame, y, n_models=N_MODELS)
    finds_a_leak(report)


@natural("other libraries", "CatBoost on a frame with text columns, which it is told by name", "catboost")
def catboost_with_text_columns() -> None:
    from catboost import CatBoostClassifier

    frame, income = people()
    model = CatBoostClassifier(iterations=300, learning_rate=0.3, cat_features=["town", "job"], verbose=0)
    report = ls.audit(model, frame, income, n_models=N_MODELS)
    finds_a_leak(report)


@natural("other libraries", 'XGBoost with the labels "high" and "low"', "xgboost-cpu")
def xgboost_with_text_labels() -> None:
    from xgboost import XGBClassifier

    frame, income = people()
    report = ls.audit(XGBClassifier(), frame[["age", "hours", "married"]], income, n_models=N_MODELS)
    finds_a_leak(report)


@natural("other libraries", "imbalanced-learn's pipeline of an oversampler and a forest", "imbalanced-learn")
def oversampling_and_forest() -> None:
    from imblearn.over_sampling import RandomOverSampler
    from imblearn.pipeline import Pipeline
    from sklearn.ensemble import RandomForestClassifier

    frame, income = people(360)
    kept = (income == "low") | (np.random.default_rng(1).random(len(frame)) < 0.3)
    X, y = frame.loc[kept, ["age", "hours", "married"]], income[kept]
    model = Pipeline([("sampler", RandomOverSampler(random_state=0)), ("forest", RandomForestClassifier())])
    report = ls.audit(model, X, y, n_models=N_MODELS)
    finds_a_leak(report)


@natural(
    "other libraries",
    "four boosting libraries side by side, each with its own way of category columns",
    "lightgbm",
    "xgboost-cpu",
    "catboost",
)
def four_boosting_libraries() -> None:
    from catboost import CatBoostClassifier
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier
    from xgboost import XGBClassifier

    frame, income = people_with_categories()
    y = (income == "high").astype(int)
    models = {
        "scikit-learn": HistGradientBoostingClassifier(
            categorical_features="from_dtype", max_iter=300, min_samples_leaf=5
        ),
        "LightGBM": LGBMClassifier(n_estimators=300, min_child_samples=5, verbose=-1),
        "XGBoost": XGBClassifier(enable_categorical=True),
        "CatBoost": CatBoostClassifier(iterations=300, learning_rate=0.3, cat_features=["town", "job"], verbose=0),
    }
    report = ls.audit(models, frame, y, n_models=N_MODELS)
    for name in models:
        finds_a_leak(report, name)


@natural("other libraries", "one fitted LightGBM model, with an unfitted one for the reference models", "lightgbm")
def one_fitted_lightgbm() -> None:
    from lightgbm import LGBMClassifier
    from sklearn.model_selection import train_test_split

    frame, income = people_with_categories()
    X_train, X_test, y_train, y_test = train_test_split(frame, income, test_size=0.5, random_state=0)
    settings = {"n_estimators": 300, "min_child_samples": 5, "verbose": -1}
    fitted = LGBMClassifier(**settings).fit(X_train, y_train)
    report = ls.audit_model(
        fitted,
        members=(X_train, y_train),
        others=(X_test, y_test),
        references=ls.Fitted(LGBMClassifier(**settings), n=N_MODELS),
    )
    finds_a_leak(report)


@natural("other libraries", "LightGBM that predicts pay from a frame with category columns", "lightgbm")
def lightgbm_regression() -> None:
    from lightgbm import LGBMRegressor

    frame, _ = people_with_categories()
    pay = 2000 + 40 * frame["age"] + np.random.default_rng(1).normal(0, 900, len(frame))
    model = LGBMRegressor(n_estimators=300, min_child_samples=5, verbose=-1)
    report = ls.audit(model, frame, pay, n_models=N_MODELS)
    finds_a_leak(report)
