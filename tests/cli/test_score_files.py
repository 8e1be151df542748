"""Tables of scores and of probabilities from other tools."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound.cli.score_files import read_probabilities
from leakbound.data.score_tables import read_scores

RNG = np.random.default_rng(0)
MEMBER = np.arange(100) % 2 == 0
SCORE = RNG.normal(MEMBER * 1.5)


@pytest.mark.parametrize("words", [(True, False), ("TRUE", "FALSE"), ("T", "F"), (1, 0), (1.0, 0.0), ("true", "false")])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_scores_of_one_model(tmp_path, words, suffix):
    path = tmp_path / f"scores{suffix}"
    frame = pd.DataFrame({"member": np.where(MEMBER, words[0], words[1]), "score": SCORE})
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    value, member, names = read_scores(path)
    np.testing.assert_allclose(value, SCORE[None])
    np.testing.assert_array_equal(member, MEMBER[None])
    assert names is None


def test_scores_of_several_models(tmp_path):
    path = tmp_path / "scores.csv"
    order = RNG.permutation(200)  # models are mixed; within a model the order of records is kept
    model = np.repeat(["a", "b"], 100)
    frame = pd.DataFrame({"model": model, "member": np.tile(MEMBER, 2), "score": np.arange(200.0)})
    frame.sort_values("score", kind="stable").iloc[np.argsort(order % 2, kind="stable")].to_csv(path, index=False)
    value, member, names = read_scores(path)
    assert value.shape == member.shape == (2, 100)
    np.testing.assert_array_equal(member, MEMBER[(value % 100).astype(int)])
    assert names is None


def test_a_column_names_the_records(tmp_path):
    frame = pd.DataFrame({"id": list("abab"), "model": [1, 1, 2, 2], "member": [1, 0, 0, 1], "score": range(4)})
    frame.to_csv(tmp_path / "scores.csv", index=False)
    assert read_scores(tmp_path / "scores.csv")[2].tolist() == ["a", "b"]
    frame.assign(id=list("abba")).to_csv(tmp_path / "scores.csv", index=False)
    with pytest.raises(
        ValueError, match="each model needs its rows in the same order of records, and their ids differ"
    ):
        read_scores(tmp_path / "scores.csv")


@pytest.mark.slow
def test_probabilities_give_the_signals_of_a_model_that_answers_so(tmp_path):
    path = tmp_path / "p.csv"
    p = RNG.dirichlet([1, 1, 1], 100)
    label = np.array(["a", "b", "c"])[RNG.integers(0, 3, 100)]
    frame = pd.DataFrame(p, columns=["p_c", "p_a", "p_b"]).assign(label=label, member=MEMBER.astype(int))
    frame.to_csv(path, index=False)
    signals = read_probabilities(path).signals
    own = frame.to_numpy()[np.arange(100), ["cab".index(name) for name in label]].astype(float)
    np.testing.assert_allclose(signals.arrays["loss"][0], -np.log(own), rtol=1e-6)
    assert signals.game.member[0].sum() == 50
    answers = {tuple(row): probabilities for row, probabilities in zip(np.eye(100), p[:, [1, 2, 0]], strict=True)}
    report = ls.audit_model(
        lambda X: np.array([answers[tuple(row)] for row in X]),
        (np.eye(100)[MEMBER], label[MEMBER]),
        (np.eye(100)[~MEMBER], label[~MEMBER]),
        classes=["a", "b", "c"],
        accept_shift=True,
    )
    same = ls.audit_signals(signals)
    expected = {(f.attack, f.quantity): f.value for f in report.findings if f.quantity == "auc"}
    assert {(f.attack, f.quantity): f.value for f in same.findings if f.quantity == "auc"} == pytest.approx(expected)


def answers_of(p: np.ndarray, label: np.ndarray) -> pd.DataFrame:
    frame = pd.DataFrame(p, columns=[f"p_{column}" for column in range(p.shape[1])])
    return frame.assign(label=label, member=MEMBER.astype(int))


@pytest.mark.by_day("1-3")
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("n_trees", [1, 3, 30])
def test_answers_with_exact_zeros(tmp_path, k, n_trees):
    """Of a forest, a tree or the nearest neighbour: the same numbers as from the model itself."""
    label = RNG.integers(0, k, 100)
    sure = np.where(MEMBER[:, None], np.eye(k)[label] * 3 + 0.1, 1.0)
    p = np.array([RNG.multinomial(n_trees, row / row.sum()) for row in sure]) / n_trees
    answers_of(p, label).to_csv(tmp_path / "p.csv", index=False)
    table = read_probabilities(tmp_path / "p.csv")
    assert table.notes == ()
    report = ls.audit_signals(table.signals)
    answers = dict(enumerate(p))
    from_model = ls.audit_model(
        lambda X: np.array([answers[int(row[0])] for row in X]),
        (np.flatnonzero(MEMBER)[:, None], label[MEMBER]),
        (np.flatnonzero(~MEMBER)[:, None], label[~MEMBER]),
        accept_shift=True,
    )
    expected = {f.attack: f.value for f in from_model.findings if f.quantity == "auc"}
    assert {f.attack: f.value for f in report.findings if f.quantity == "auc"} == pytest.approx(expected)
    assert {"loss", "confidence", "entropy"} <= expected.keys()


@pytest.mark.parametrize(("digits", "k"), [(2, 3), (2, 20), (3, 5), (4, 100)])
def test_rounded_answers_are_divided_by_the_sum_of_their_row(tmp_path, digits, k):
    p = RNG.dirichlet(np.full(k, 0.5), 100)
    rounded = p.round(digits)
    label = RNG.integers(0, k, 100)
    answers_of(rounded, label).to_csv(tmp_path / "p.csv", index=False)
    table = read_probabilities(tmp_path / "p.csv")
    (note,) = table.notes
    assert note.startswith(f"The probabilities are rounded to {digits} digits, and their rows sum to ")
    whole = rounded / rounded.sum(axis=1, keepdims=True)
    floor = whole[whole > 0].min() / 2
    expected = -np.log(np.maximum(whole[np.arange(100), label], floor))
    np.testing.assert_allclose(table.signals.arrays["loss"][0], expected, rtol=1e-5, atol=1e-6)
    answers_of(p.astype(np.float32), label).to_parquet(tmp_path / "whole.parquet")
    assert read_probabilities(tmp_path / "whole.parquet").notes == ()


def test_the_order_of_the_table_is_kept_and_its_ids_are_names(tmp_path):
    p = RNG.dirichlet([1, 1], 100)
    frame = answers_of(p, RNG.integers(0, 2, 100)).assign(id=[f"P-{row}" for row in range(100)])
    frame.to_csv(tmp_path / "p.csv", index=False)
    table = read_probabilities(tmp_path / "p.csv")
    np.testing.assert_array_equal(table.signals.game.member[0], MEMBER)
    assert table.names is not None
    assert table.names[:2].tolist() == ["P-0", "P-1"]


GOOD = pd.DataFrame({"member": [1, 0], "score": [0.5, 0.1], "label": ["a", "b"], "p_a": [0.9, 0.5], "p_b": [0.1, 0.5]})


@pytest.mark.parametrize(
    ("read", "frame", "message"),
    [
        (read_scores, GOOD.drop(columns="score"), "no column 'score'; columns: member, label, p_a, p_b"),
        (read_scores, GOOD.assign(score=["high", "low"]), "score must hold finite numbers; row 1 has 'high'"),
        (read_scores, GOOD.assign(score=[1.0, np.inf]), "score must hold finite numbers; row 2 has np.float64(inf)"),
        (read_scores, GOOD.assign(member=["yes", "no"]), "member must be true or false, or 1 or 0; got 'yes'"),
        (read_scores, GOOD.assign(member=[1, 1]), "needs members and others; all of the rows are members"),
        (
            read_scores,
            pd.concat([GOOD.assign(model="a"), GOOD.assign(model="b").iloc[:1]]),
            "each model needs a row for each record, in one order; rows of a model: 1 to 2",
        ),
        (read_probabilities, GOOD.drop(columns="p_b"), "needs a column p_LABEL for each label, with its probability; "),
        (read_probabilities, GOOD.assign(label=["a", "z"]), "no column p_z for the label 'z'; columns: p_a, p_b"),
        (read_probabilities, GOOD.assign(p_a=[3.0, 2.0]), "rows must be probabilities: smallest entry"),
        (read_probabilities, GOOD.assign(p_a=[0.95, 0.5]), "rows must be probabilities: smallest entry"),
        (
            read_probabilities,
            GOOD.assign(p_a=[0.8, 0.5]),
            "the probabilities have 1 digit, and rows sum to 0.9 to 1; give 2 digits or more",
        ),
        (read_probabilities, GOOD.drop(columns="label"), "no column 'label'; columns: member, score, p_a, p_b"),
    ],
)
def test_the_line_that_a_bad_table_gets(tmp_path, read, frame, message):
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    with pytest.raises(ValueError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"), [("a.xlsx", "a table is a file of .csv or .parquet"), ("a.csv", "no such file")]
)
def test_files_that_are_no_tables(tmp_path, name, message):
    with pytest.raises(ValueError, match=message):
        read_scores(tmp_path / name)
