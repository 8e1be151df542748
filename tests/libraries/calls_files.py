"""Natural calls: command lines on saved models, tables and results of other languages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from tests.libraries.natural import N_MODELS, WrongResult, finds_a_leak, leakbound, natural, numbers, people


def saved_report(folder: str = "leakbound-report") -> Any:
    """The report.json of a folder, its fields as attributes."""
    text = (Path(folder) / "report.json").read_text(encoding="utf-8")
    return json.loads(text, object_hook=lambda fields: SimpleNamespace(**fields))


def refusal(*words: str) -> str:
    """The single line with which a command must fail (`leakbound` would show the last line alone)."""
    command = [sys.executable, "-m", "leakbound", *words]
    environment = os.environ | {"COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    lines = done.stderr.strip().splitlines()
    if done.returncode != 1 or len(lines) != 1:
        raise WrongResult(f"exit code {done.returncode} and {len(lines)} lines of error, not 1 and one line")
    return lines[0]


def forest_on_people() -> Any:
    """A forest on half of the people, with train.csv and test.csv beside it."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    X, y = people()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    X_train.assign(income=y_train).to_csv("train.csv", index=False)
    X_test.assign(income=y_test).to_csv("test.csv", index=False)
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["town", "job"]),
        ("passthrough", ["age", "hours", "married"]),
    )
    return make_pipeline(encode, RandomForestClassifier(random_state=0)).fit(X_train, y_train)


@natural("files", "A forest saved by skops, with its training and test data as CSV.", "skops")
def skops_file() -> None:
    import skops.io as sio

    sio.dump(forest_on_people(), "model.skops")
    leakbound("audit", "model", "model.skops", "--members", "train.csv", "--others", "test.csv", "--label", "income")
    finds_a_leak(saved_report())


@natural("files", "A forest converted to ONNX, with numbers as CSV.", "skl2onnx", "onnxruntime")
def onnx_file() -> None:
    from skl2onnx import to_onnx
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

    X, y = numbers(n_classes=4)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    forest = RandomForestClassifier(random_state=0).fit(X_train, y_train)
    Path("model.onnx").write_bytes(to_onnx(forest, X_train[:1]).SerializeToString())
    names = [f"x{number}" for number in range(1, 13)]
    pd.DataFrame(X_train, columns=names).assign(label=y_train).to_csv("train.csv", index=False)
    pd.DataFrame(X_test, columns=names).assign(label=y_test).to_csv("test.csv", index=False)
    leakbound("audit", "model", "model.onnx", "--members", "train.csv", "--others", "test.csv", "--label", "label")
    finds_a_leak(saved_report())


@natural("files", "A joblib file that the user declares to be trusted.")
def joblib_file_trusted() -> None:
    import joblib

    joblib.dump(forest_on_people(), "model.joblib")
    data = ("--members", "train.csv", "--others", "test.csv", "--label", "income")
    leakbound("audit", "model", "model.joblib", *data, "--unpickle-trusted")
    finds_a_leak(saved_report())


@natural("files", "A joblib file without a word of trust is refused, and the option is named.")
def joblib_file_refused() -> None:
    import joblib

    joblib.dump(forest_on_people(), "model.joblib")
    line = refusal(
        "audit", "model", "model.joblib", "--members", "train.csv", "--others", "test.csv", "--label", "income"
    )
    if "--unpickle-trusted" not in line:
        raise WrongResult(f"the refusal does not name --unpickle-trusted: {line}")


GLM_IN_R = """
set.seed(1)
n <- 240
X <- matrix(rnorm(n * 80), n)
y <- as.integer(X[, 1] + rnorm(n) > 0)
member <- rep(c(TRUE, FALSE), each = n / 2)
d <- data.frame(y, X)
fit <- glm(y ~ ., data = d[member, ], family = binomial)
p <- predict(fit, d, type = "response")
"""


@natural("files", "Attack scores that were computed in R.", "R")
def scores_from_r() -> None:
    save = """
    score <- dbinom(y, 1, p, log = TRUE)
    write.csv(data.frame(member, score), "scores.csv", row.names = FALSE)
    """
    Path("scores.R").write_text(GLM_IN_R + save)
    subprocess.run(["Rscript", "scores.R"], capture_output=True, check=True)
    leakbound("audit", "scores", "scores.csv")
    finds_a_leak(saved_report())


@natural("files", "Predicted probabilities of a model in R.", "R")
def probabilities_from_r() -> None:
    save = """
    label <- ifelse(y == 1, "high", "low")
    out <- data.frame(member = as.integer(member), label, p_low = 1 - p, p_high = p)
    write.csv(out, "probabilities.csv", row.names = FALSE)
    """
    Path("probabilities.R").write_text(GLM_IN_R + save)
    subprocess.run(["Rscript", "probabilities.R"], capture_output=True, check=True)
    leakbound("audit", "model", "--probabilities", "probabilities.csv")
    finds_a_leak(saved_report())


@natural("files", "A CSV file with semicolons, decimal commas and latin-1 letters.")
def european_csv() -> None:
    X, y = people()
    X.assign(income=y).to_csv("people.csv", sep=";", decimal=",", encoding="latin-1", index=False)
    forest = "sklearn.ensemble:RandomForestClassifier"
    form = ("--separator", ";", "--decimal", ",", "--encoding", "latin-1")
    leakbound(
        "audit", "--data", "people.csv", *form, "--label", "income", "--model", forest, "--n-models", str(N_MODELS)
    )  # fmt: skip
    finds_a_leak(saved_report())


@natural("files", "A CSV file without a label is refused, and the missing option is named.")
def csv_without_a_label_refused() -> None:
    X, y = people()
    X.assign(income=y).to_csv("people.csv", index=False)
    line = refusal("audit", "people.csv")
    if "--label" not in line and "--data" not in line:
        raise WrongResult(f"the refusal names neither --label nor --data: {line}")


@natural("files", "A policy that forbids the release of a forest.", "skops")
def policy_says_do_not_release() -> None:
    import skops.io as sio

    sio.dump(forest_on_people(), "model.skops")
    Path("policy.toml").write_text("[limits]\naccuracy = 0.6\n")
    data = ("--members", "train.csv", "--others", "test.csv", "--label", "income")
    done = leakbound("audit", "model", "model.skops", *data, "--policy", "policy.toml")
    finds_a_leak(saved_report())
    if done.returncode != 3:
        raise WrongResult(f"a limit is exceeded, but the exit code is {done.returncode}")
    if "do not release" not in Path("leakbound-report/report.html").read_text(encoding="utf-8").lower():
        raise WrongResult("the page does not say: do not release")
