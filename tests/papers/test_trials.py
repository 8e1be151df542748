"""The numbers of the papers' experiments that are kept follow from the trials that are kept with them."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from docs import gallery

from leakbound.papers import PAPERS
from leakbound.papers.delgrosso2021.figure4 import THRESHOLDS

OWN = ("trial", "value")
Checked = Iterator[tuple[str, float, float]]  # what, from the trials, as kept


def read(name: str) -> tuple[dict, pd.DataFrame, pd.DataFrame]:
    """Claims by key, numbers and trials of a run that is kept."""
    result = gallery.read(name)
    assert result is not None
    tables = (io.StringIO(result[table]) for table in ("numbers", "trials"))
    numbers, trials = (pd.read_csv(table, keep_default_na=False, na_values=[""]) for table in tables)
    return {claim["key"]: claim for claim in result["claims"]["claims"]}, numbers, trials


def with_trials() -> list[str]:
    return [name for name in PAPERS if (gallery.read(name) or {}).get("trials")]


def standard_error(values: pd.Series) -> float:
    return float(values.std() / np.sqrt(len(values)))


def means(trials: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error of the trials of each kind."""
    of = [column for column in trials.columns if column not in OWN]
    return trials.groupby(of, dropna=False)["value"].agg(["mean", standard_error]).reset_index()


def matched(trials: pd.DataFrame, numbers: pd.DataFrame, value: str, error: str | None) -> Checked:
    """Trials whose kinds are rows of the numbers."""
    found = means(trials)
    of = [column for column in found.columns if column in numbers.columns and column not in ("mean", "standard_error")]
    both = found.merge(numbers, on=of, suffixes=("_found", "_kept"))
    assert len(both) > 0
    for row in both.to_dict("records"):
        what = ", ".join(str(row[column]) for column in of)
        yield what, row.get("mean_found", row.get("mean")), row.get(f"{value}_kept", row.get(value))
        if error is not None:
            own = row.get("standard_error_found", row.get("standard_error"))
            yield f"error of {what}", own, row.get(f"{error}_kept", row.get(error))


def of_lowy(claims: dict, numbers: pd.DataFrame, trials: pd.DataFrame) -> Checked:
    """Epsilons as they are, and ratios from two of them, data set by data set."""
    yield from matched(trials, numbers, "mean", "error")
    each = trials.pivot(index=["line", "x", "trial"], columns="quantity", values="value").reset_index()
    for ratio, below in (("to_epsilon", "epsilon"), ("to_subset", "subset")):
        values = each.assign(value=each["pmp"] / each[below], quantity=ratio)
        yield from matched(values[["line", "x", "quantity", *OWN]].dropna(), numbers, "mean", "error")


def of_networks(claims: dict, numbers: pd.DataFrame, trials: pd.DataFrame) -> Checked:
    """The attack at .8, the accuracy, and the bound from the mean gap."""
    names = {"success at 0.8": "likelihood", "test_accuracy": "test_accuracy"}
    same = trials[trials["line"].isin(names)]
    yield from matched(same.assign(line=same["line"].map(names)), numbers, "value", None)
    gaps = means(trials[trials["line"] == "gap"]).drop(columns="line")
    for row in gaps.merge(numbers[numbers["line"] == "bound"], on=["setting", "data", "n"]).to_dict("records"):
        yield f"bound {row['data']} {row['n']}", (1 + max(row["mean"], 0.0) / 4) / 2, row["value"]
    for data in ("mnist", "fashion", "cifar10"):
        of_data = trials.query("data == @data and setting == 'text'")
        other = of_data[of_data["line"] == "test_accuracy by cross-entropy"]
        is_same_n = of_data["n"] == other["n"].iloc[0]
        by_loss = of_data[is_same_n & (of_data["line"] == "test_accuracy")].set_index("trial")["value"]
        effect = by_loss - other.set_index("trial")["value"]
        yield f"mse {data}", effect.mean(), claims[f"mse_{data}"]["ours"]
        yield f"error of mse {data}", standard_error(effect), claims[f"mse_{data}"]["error"]
        success = of_data[of_data["line"].str.startswith("success at")]
        by_threshold = success.groupby(["line", "n"])["value"].mean().groupby("line").mean()
        best = by_threshold.idxmax().removeprefix("success at ")
        assert f"largest with {best}" in claims[f"threshold_{data}"]["note"]
        assert len(by_threshold) == len(THRESHOLDS)


def of_writers(claims: dict, numbers: pd.DataFrame, trials: pd.DataFrame) -> Checked:
    yield from matched(trials[trials["line"] != "gap"], numbers, "value", None)
    last = trials.query("setting == 'text' and n == 8000 and line == 'success'")["value"]
    yield "membership at 8,000", last.mean(), claims["membership_8000"]["ours"]
    yield "its error", standard_error(last), claims["membership_8000"]["error"]


def of_covariance(claims: dict, numbers: pd.DataFrame, trials: pd.DataFrame) -> Checked:
    yield from matched(trials, numbers, "mean", "standard_error")
    dp = trials.query("method == 'DP-SGD' and `error of` == 'A'")
    values = dp[dp["eta"] == dp.groupby("eta")["value"].mean().idxmin()]["value"]
    yield "least error of DP-SGD", values.mean(), claims["dp_above_1"]["ours"]
    yield "its error", standard_error(values), claims["dp_above_1"]["error"]


def of_splits(claims: dict, numbers: pd.DataFrame, trials: pd.DataFrame) -> Checked:
    yield from matched(trials, numbers, "value", "error")
    values = trials.query("setting == 'text' and n == 400 and attack == 'MALT' and measure == 'accuracy'")["value"]
    yield "MALT at 400", values.mean(), claims["malt_400"]["ours"]
    yield "its error", standard_error(values), claims["malt_400"]["error"]


def of_games(claims: dict, numbers: pd.DataFrame, trials: pd.DataFrame) -> Checked:
    once = numbers.drop_duplicates(["attack", "tau"])
    for threshold, column in (("zero", "at_zero"), ("best", "best")):
        yield from matched(trials[trials["threshold"] == threshold], once, column, None)
    best = trials.query("threshold == 'best' and tau == 'with the constant'").pivot(
        index="trial", columns="attack", values="value"
    )
    lead = best["MAST"] - best["MALT"]
    yield "MAST less MALT", lead.mean(), claims["mast_beats_malt"]["ours"]
    yield "its error", standard_error(lead), claims["mast_beats_malt"]["error"]


def of_models(claims: dict, numbers: pd.DataFrame, trials: pd.DataFrame) -> Checked:
    """The errors of the numbers are larger: the models are references of each other."""
    yield from matched(trials, numbers, "accuracy", None)


def of_attacked_networks(claims: dict, numbers: pd.DataFrame, trials: pd.DataFrame) -> Checked:
    """Medians of the networks that trained, in an interval of order statistics.

    The run that is kept attacked each network with all others: the errors of reference attacks are larger.
    """
    for attack, part in trials.groupby("attack"):
        rows = numbers[numbers["attack"] == attack]
        yield f"networks of {attack}", part["value"].sum(), rows["accuracy"].sum()
    inflation = {"zero_one": 1.0, "malt": 1.0, "shadow": 3.0, "mast": 4.5}
    for attack, factor in inflation.items():
        values = np.sort(trials[(trials["attack"] == attack) & ~trials["failed"]]["value"])
        assert len(values) == 29
        median, low, high = values[14], values[6], values[22]  # P(Bin(29, 1/2) <= 6) = .0012
        yield attack, median, claims[attack]["ours"]
        yield f"error of {attack}", max(high - median, median - low) / 3 * factor**0.5, claims[attack]["error"]
    assert [claims[attack]["at_least"] for attack in inflation] == [False, True, True, False]


def of_scores(claims: dict, numbers: pd.DataFrame, trials: pd.DataFrame) -> Checked:
    for (p, target, gamma), part in trials.groupby(["p", "target", "gamma"]):
        key = f"m_noisy_{gamma}" if gamma else f"m_{target}" + ("_as_written" if p == "as written" else "")
        yield key, part["value"].mean(), claims[key]["ours"]
        yield f"error of {key}", standard_error(part["value"]), claims[key]["error"]


def of_targets(claims: dict, numbers: pd.DataFrame, trials: pd.DataFrame) -> Checked:
    yield "average score", trials["value"].mean(), claims["average_score"]["ours"]
    yield "its error", standard_error(trials["value"]), claims["average_score"]["error"]


FOLLOWING = {
    "izzo2022/figure2": of_covariance,
    "azize2024/figure2": of_scores,
    "azize2024/table1": of_targets,
    "delgrosso2021/figure4": of_networks,
    "delgrosso2021/figure5": of_writers,
    "sablayrolles2019/figure1": of_games,
    "sablayrolles2019/table1": of_splits,
    "sablayrolles2019/table2": of_attacked_networks,
    "sablayrolles2019/table3": of_models,
    **{f"lowy2024/figure{number}": of_lowy for number in range(1, 7)},
}


def test_each_run_of_several_trials_keeps_them() -> None:
    assert set(with_trials()) == set(FOLLOWING)


@pytest.mark.parametrize("name", FOLLOWING)
def test_numbers_and_claims_follow_from_the_trials_that_are_kept(name: str) -> None:
    compared = list(FOLLOWING[name](*read(name)))
    assert len(compared) >= 2
    for what, found, kept in compared:
        assert found == pytest.approx(kept, rel=1e-9, abs=1e-12), what


FAR = 0.5  # standard deviations of the trials: a mean so far from the median averages several populations
BY_MEDIAN = {"sablayrolles2019/table2"}
AT_A_FLOOR = {("delgrosso2021/figure4", "success at 0.9")}  # a threshold that calls nobody: the success is .5


@pytest.mark.parametrize("name", FOLLOWING)
def test_no_mean_of_several_populations_is_reported(name: str) -> None:
    """Where mean and median of 20 trials or more are far apart, the median is reported, and each trial is drawn."""
    _, numbers, trials = read(name)
    of = [column for column in trials.columns if column not in OWN]
    apart = set()
    for kind, part in trials.groupby(of, dropna=False):
        value = part["value"]
        if len(value) < 20 or value.std() == 0 or abs(value.mean() - value.median()) <= FAR * value.std():
            continue
        if not AT_A_FLOOR & {(name, word) for word in kind}:
            apart.add(kind)
    assert bool(apart) == (name in BY_MEDIAN)
    if apart:
        assert "median" in (gallery.read(name) or {})["claims"]["run"]
        assert len(numbers) == len(trials)
