"""Natural calls with models that cannot memorise: the audit must not accuse them.

Such a model still shows a little about its training data: the frequency of a class, or the mean of a label. Half of n
records, drawn at random, have of a class of n/2 about sqrt(n)/4 more or fewer than expected. Who takes the records of
the class that is too frequent for members is right in .5 + .28/sqrt(n/2) of the cases: .509 for 2,000 records, .52 in
a leaf with a fifth of them. The more numbers a model has, the more such sums there are, and a penalty makes them small,
not secret (`all_digits_of_a_regularised_logistic_leak`).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pandas as pd

import leakbound as ls
from tests.libraries.calls_boosters import people_with_categories
from tests.libraries.calls_files import saved_report
from tests.libraries.calls_frames import prepare_people
from tests.libraries.calls_loops import make_token_net
from tests.libraries.natural import (
    N_MODELS,
    finds_a_leak,
    finds_no_leak,
    leakbound,
    natural,
    numbers,
    people,
    reviews,
    tokens,
)

N_RECORDS = 2000


@natural("frames", "a decision tree of depth 2 with large leaves, on a frame of mixed types: it must not be accused")
def shallow_tree_is_not_accused() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier

    frame, income = people(N_RECORDS)
    tree = make_pipeline(prepare_people(), DecisionTreeClassifier(max_depth=2, min_samples_leaf=100))
    finds_no_leak(ls.audit(tree, frame, income, n_models=N_MODELS))


def sparse_counts():
    """Counts of 300 words in few of them, and a label that depends on 100 of the words."""
    from scipy.sparse import csr_matrix

    counts = np.random.default_rng(0).poisson(0.05, size=(N_RECORDS, 300))
    label = (counts[:, :100].sum(axis=1) > 4).astype(int)
    return csr_matrix(counts, dtype=float), label


def fit_and_round(X, y, seed):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e-5).fit(X, y)
    return lambda Z: model.predict_proba(Z).round(2)


@natural(
    "frames", "a regularised regression on a sparse matrix, whose probabilities are rounded: it must not be accused"
)
def rounded_probabilities_on_sparse_counts_are_not_accused() -> None:
    X, y = sparse_counts()
    finds_no_leak(ls.audit(fit_and_round, X, y, n_models=N_MODELS))


@natural("frames", "the same regression with all digits, which tell who is in, in spite of a strong penalty")
def all_digits_of_a_regularised_logistic_leak() -> None:
    from sklearn.linear_model import LogisticRegression

    X, y = sparse_counts()
    finds_a_leak(ls.audit(LogisticRegression(C=1e-5), X, y, n_models=N_MODELS))


@natural("texts", "a strongly smoothed naive Bayes on the counts of a few known words: it must not be accused")
def smoothed_naive_bayes_is_not_accused() -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    texts, labels = reviews(N_RECORDS)
    words = ["fine", "lovely", "warm", "friendly", "cold", "rude", "slow", "late"]
    model = make_pipeline(CountVectorizer(vocabulary=words), MultinomialNB(alpha=100))
    finds_no_leak(ls.audit(model, texts, labels, n_models=N_MODELS))


@natural("tasks", "a regression that gives each record three labels and is shrunk to nothing: it must not be accused")
def shrunk_multi_label_is_not_accused() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multioutput import MultiOutputClassifier

    X, _ = numbers(N_RECORDS)
    noise = np.random.default_rng(1).normal(size=(len(X), 3))
    y = (X[:, :3] + noise > 0).astype(int)
    finds_no_leak(ls.audit(MultiOutputClassifier(LogisticRegression(C=1e-6)), X, y, n_models=N_MODELS))


@natural("tasks", "a ridge regression of pay with a very large penalty: it must not be accused")
def shrunk_ridge_is_not_accused() -> None:
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    frame, _ = people(N_RECORDS)
    pay = 2000 + 40 * frame["age"] + np.random.default_rng(1).normal(0, 900, len(frame))
    finds_no_leak(ls.audit(make_pipeline(prepare_people(), Ridge(alpha=1e6)), frame, pay, n_models=N_MODELS))


@natural("other libraries", "XGBoost with one stump and a tiny learning rate: it must not be accused", "xgboost-cpu")
def xgboost_stump_is_not_accused() -> None:
    from xgboost import XGBClassifier

    frame, income = people_with_categories(N_RECORDS)
    y = (income == "high").astype(int)
    stump = XGBClassifier(n_estimators=1, max_depth=1, learning_rate=0.001, enable_categorical=True)
    finds_no_leak(ls.audit(stump, frame, y, n_models=N_MODELS))


@natural("other libraries", "LightGBM with one stump and a tiny learning rate: it must not be accused", "lightgbm")
def lightgbm_stump_is_not_accused() -> None:
    from lightgbm import LGBMClassifier

    frame, income = people_with_categories(N_RECORDS)
    stump = LGBMClassifier(n_estimators=1, num_leaves=2, learning_rate=0.001, verbose=-1)
    finds_no_leak(ls.audit(stump, frame, income, n_models=N_MODELS))


@natural("other libraries", "CatBoost with one stump and a tiny learning rate: it must not be accused", "catboost")
def catboost_stump_is_not_accused() -> None:
    from catboost import CatBoostClassifier

    frame, income = people(N_RECORDS)
    stump = CatBoostClassifier(iterations=1, depth=1, learning_rate=0.001, cat_features=["town", "job"], verbose=0)
    finds_no_leak(ls.audit(stump, frame, income, n_models=N_MODELS))


def fit_class_frequencies(X, y, seed):
    frequencies = np.bincount(y, minlength=2) / len(y)
    return lambda Z: np.tile(frequencies, (len(Z), 1))


@natural("own loops", "A fit function that predicts the class frequencies: it must not be accused.")
def class_frequencies_are_not_accused() -> None:
    X, y = numbers(N_RECORDS)
    finds_no_leak(ls.audit(fit_class_frequencies, X, y, n_models=N_MODELS))


def fit_without_epochs(X, y, seed, epochs=0):
    import torch
    from torch import nn

    torch.manual_seed(seed)
    rows, labels = torch.from_numpy(X), torch.from_numpy(y)
    net = nn.Sequential(nn.Linear(X.shape[1], 128), nn.ReLU(), nn.Linear(128, 4))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(epochs):
        for batch in torch.randperm(len(rows)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(rows[batch]), labels[batch]).backward()
            optimizer.step()
    return net


@natural("own loops", "A PyTorch loop whose number of epochs is 0: it must not be accused.", "torch")
def torch_loop_without_epochs_is_not_accused() -> None:
    X, y = numbers(N_RECORDS, n_columns=30, n_classes=4)
    finds_no_leak(ls.audit(fit_without_epochs, X, y, n_models=N_MODELS))


@natural("networks", "A token network that was never trained: it must not be accused.", "torch")
def untrained_token_network_is_not_accused() -> None:
    import torch

    torch.manual_seed(0)
    X, y = tokens(N_RECORDS)
    half = N_RECORDS // 2
    finds_no_leak(ls.audit_model(make_token_net(), (X[:half], y[:half]), (X[half:], y[half:])))


@natural("files", "A tree of depth 2 saved by skops, with its data as CSV: it must not be accused.", "skops")
def skops_file_of_a_shallow_tree_is_not_accused() -> None:
    import skops.io as sio
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier

    X, y = people(N_RECORDS)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    X_train.assign(income=y_train).to_csv("train.csv", index=False)
    X_test.assign(income=y_test).to_csv("test.csv", index=False)
    tree = make_pipeline(prepare_people(), DecisionTreeClassifier(max_depth=2, min_samples_leaf=100))
    sio.dump(tree.fit(X_train, y_train), "model.skops")
    leakbound("audit", "model", "model.skops", "--members", "train.csv", "--others", "test.csv", "--label", "income")
    finds_no_leak(saved_report())


@natural(
    "files",
    "A strongly regularised logistic regression converted to ONNX: it must not be accused.",
    "skl2onnx",
    "onnxruntime",
)
def onnx_file_of_a_regularised_logistic_is_not_accused() -> None:
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    X, y = numbers(N_RECORDS, n_classes=4)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    model = LogisticRegression(C=0.001).fit(X_train, y_train)
    Path("model.onnx").write_bytes(to_onnx(model, X_train[:1]).SerializeToString())
    names = [f"x{number}" for number in range(1, 13)]
    pd.DataFrame(X_train, columns=names).assign(label=y_train).to_csv("train.csv", index=False)
    pd.DataFrame(X_test, columns=names).assign(label=y_test).to_csv("test.csv", index=False)
    leakbound("audit", "model", "model.onnx", "--members", "train.csv", "--others", "test.csv", "--label", "label")
    finds_no_leak(saved_report())


@natural("files", "Attack scores that are independent of membership, as CSV: they must not accuse the model.")
def independent_scores_do_not_accuse() -> None:
    rng = np.random.default_rng(0)
    member = rng.permutation(np.arange(N_RECORDS) < N_RECORDS // 2)
    pd.DataFrame({"member": member, "score": rng.normal(size=N_RECORDS)}).to_csv("scores.csv", index=False)
    leakbound("audit", "scores", "scores.csv")
    finds_no_leak(saved_report())


SMALL_GLM_IN_R = """
set.seed(1)
n <- 2000
x <- rnorm(n)
y <- as.integer(x + rnorm(n) > 0)
member <- rep(c(TRUE, FALSE), each = n / 2)
fit <- glm(y ~ x, data = data.frame(x, y)[member, ], family = binomial)
p <- predict(fit, data.frame(x), type = "response")
write.csv(data.frame(member, score = dbinom(y, 1, p, log = TRUE)), "scores.csv", row.names = FALSE)
"""


@natural("files", "Attack scores of a regression with two coefficients in R: they must not accuse it.", "R")
def scores_of_a_small_model_in_r_do_not_accuse() -> None:
    Path("scores.R").write_text(SMALL_GLM_IN_R)
    subprocess.run(["Rscript", "scores.R"], capture_output=True, check=True)
    leakbound("audit", "scores", "scores.csv")
    finds_no_leak(saved_report())
