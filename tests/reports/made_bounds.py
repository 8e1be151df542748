"""Reports of bounds made by hand, with every number in closed form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.seeds import stream
from leakbound.core.tradeoff import EpsilonDelta, Gaussian, Mixture, TradeOff
from leakbound.reports import Curve, Report
from tests.reports.abouts import about as about_with

FPR = (0.01, 0.001)
KAIROUZ = "kairouz2015, Theorem 2.1"
AZIZE = "azize2024, Theorem 4.1"
ODD_CELLS = (
    "<script>alert(1)</script>",
    "",
    "Very " + "long " * 60 + "name",
    "a / b & c",
    "x" * 300,
    "\u5b57 / caf\u00e9",
)


def bound(
    findings: Sequence[Finding],
    curves: Sequence[Curve] = (),
    records: Mapping[str, Sequence[Any]] | None = None,
    **about: Any,
) -> Report:
    """A report of a bound."""
    theorem = {"title": "Differential privacy", "source": KAIROUZ, "summary": "ceilings of any attacker"}
    whole = {
        "kind": "bound",
        "bound": "dp",
        "leakbound": "0.1.0",
        "title": "",
        "unit": "record",
        "date": "",
        "seed": 0,
        "confidence": 0.95,
        "fpr": list(FPR),
        "command": "leakbound bound dp --epsilon 1",
        "plan": {"epsilon": 1.0, "at_most": None},
        "versions": {"numpy": "2.4.6"},
        "notes": [],
        "subject": "epsilon = 1, delta = 1e-05, replace one",
        "question": "What does (epsilon, delta)-DP allow any attacker?",
        "theorem": theorem,
        "data": None,
    } | about
    return Report(about_with(**whole), tuple(findings), tuple(curves), records or {})


def numbers(curve: TradeOff, prior: float = 0.5, fpr: Sequence[float] = FPR, **words: Any) -> list[Finding]:
    """Accuracy, advantage and members found of a ceiling."""
    found = [Finding("accuracy", curve.accuracy(prior), operating_point={"prior": prior}, **words)]
    found.append(Finding("advantage", curve.advantage(), **words))
    found += [Finding("tpr", float(curve.tpr_at(rate)), operating_point={"fpr": rate}, **words) for rate in fpr]
    found += [
        Finding("ppv", float(curve.ppv(rate, prior)), operating_point={"fpr": rate, "prior": prior}, **words)
        for rate in fpr
    ]
    return found


@cache
def dp(epsilon: float = 1.0, delta: float = 1e-5, prior: float = 0.5) -> Report:
    """What (epsilon, delta)-DP allows: accuracy (e^epsilon + delta)/(1 + e^epsilon) at even odds."""
    curve = EpsilonDelta(epsilon, delta)
    words: dict[str, Any] = {"bound_type": "upper", "status": "certified", "source": KAIROUZ}
    words["assumptions"] = (Term("neighbouring data sets differ by the replacement of one record"),)
    found = [*numbers(curve, prior, **words), Finding("epsilon", epsilon, operating_point={"delta": delta}, **words)]
    found.append(Finding("posterior", 1 / (1 + math.exp(-epsilon)), operating_point={"prior": 0.5}, **words))
    subject = f"epsilon = {epsilon:g}, delta = {delta:g}, replace one"
    return bound(found, [Curve(subject, "", "certified", curve)], subject=subject)


@cache
def leakage(n_records: int = 5000) -> Report:
    """Scores of records that are ten times as long as others, Gaussian curves with mu^2 = score."""
    scores = np.sort(stream(2, "leakage").lognormal(-2.5, 1.1, n_records))[::-1]
    mu = np.sqrt(scores)
    worst, middle = Gaussian(float(mu[0])), Gaussian(float(mu[n_records // 2]))
    words: dict[str, Any] = {"bound_type": "point", "status": "asymptotic", "source": AZIZE}
    found = [*numbers(worst, scope=Scope("worst", 17), **words)]
    found += [*numbers(middle, scope=Scope("median"), **words)]
    found.append(Finding("leakage_score", float(scores[0]), scope=Scope("worst", 17), per_record=True, **words))
    curves = [
        Curve("worst", "", "asymptotic", worst, scope=Scope("worst", 17)),
        Curve("median", "", "asymptotic", middle, scope=Scope("median")),
    ]
    accuracy = np.array([0.5 * (1 + math.erf(each / 2 / math.sqrt(2))) for each in mu])
    order = stream(2, "names").permutation(n_records)
    order[np.flatnonzero(order == 17)[0]], order[0] = order[0], 17
    records = {
        "record": order,
        "accuracy": accuracy,
        "score": scores,
        "tpr@0.01": [float(Gaussian(m).tpr_at(0.01)) for m in mu],
    }
    theorem = {"title": "per-datum leakage of a mean", "source": AZIZE, "summary": "the likelihood ratio of one record"}
    data = {"name": "adult.parquet", "digest": "0123456789abcdef", "records": n_records}
    notes = ["two columns are constant and were left out"]
    return bound(
        found,
        curves,
        records,
        bound="leakage",
        subject="the mean of 6 columns over 2,500 records",
        question="How much does the mean of adult.parquet reveal about each record?",
        theorem=theorem,
        data=data,
        notes=notes,
        command="leakbound bound leakage --data adult.parquet",
        plan={"data": "adult.parquet", "covariance": "diagonal"},
    )


def table(cells: Sequence[str], sizes: Sequence[int], eta: Sequence[float], **about: Any) -> Report:
    """Counts without noise: eta of the records of each cell, given from most to least exposed."""
    words: dict[str, Any] = {"status": "certified", "method": (Term("hypergeometric_posterior"),)}
    found = [
        Finding(
            "accuracy", 0.5 + eta[0], operating_point={"prior": 0.5}, bound_type="upper", scope=Scope("worst"), **words
        )
    ]
    found.append(Finding("eta", eta[0], bound_type="upper", scope=Scope("worst"), **words))
    found.append(Finding("smallest_cell", 64.0, operating_point={"eta": 0.05}, **words))
    accuracy = [0.5 + each for each in eta]
    records = {"cell": list(cells), "accuracy": accuracy, "eta": list(eta), "records": list(sizes)}
    given = {
        "bound": "table",
        "subject": "counts by occupation, sex and income",
        "question": "How much do these counts reveal about who is in the data?",
        "theorem": {
            "title": "",
            "source": "",
            "summary": "given a table, the members of a cell are a random part of it",
        },
        "data": {"name": "adult.parquet", "digest": "0123456789abcdef", "records": sum(sizes)},
    }
    return bound(found, (), records, **(given | about))


@cache
def odd_cells() -> Report:
    """A small table whose cells try to break out of the page."""
    sizes = (1, 1, 2, 5, 20, 1000)
    return table(ODD_CELLS, sizes, (0.5, 0.5, 0.24997, 0.18746, 0.08801, 0.01197))


@cache
def many_cells() -> Report:
    """Sixty cells, the smallest with one record: eta about 0.4/sqrt(size)."""
    sizes = np.unique(np.geomspace(1, 9000, 60).astype(int))
    return table([f"job {n} / F / >50K" for n in range(len(sizes))], sizes.tolist(), (0.5 / np.sqrt(sizes)).tolist())


@cache
def one_record() -> Report:
    """A ranking of a single record."""
    words: dict[str, Any] = {"status": "certified", "bound_type": "point", "scope": Scope("worst")}
    found = [Finding("accuracy", 1.0, operating_point={"prior": 0.5}, **words)]
    records = {"record": [0], "accuracy": [1.0], "value": [3.0]}
    return bound(found, (), records, bound="total", subject="the total of one column", question="How much?")


@cache
def gap() -> Report:
    """A lower bound: some attacker does at least so well."""
    words: dict[str, Any] = {"bound_type": "lower", "status": "certified", "source": "delgrosso2021, Theorem 2"}
    found = [
        Finding("accuracy", 0.5312, operating_point={"prior": 0.5}, **words),
        Finding("advantage", 0.0624, **words),
    ]
    theorem = {"title": "generalisation gap", "source": "delgrosso2021, Theorem 2", "summary": "a gap betrays members"}
    return bound(
        found,
        bound="gap",
        subject="a gap of 0.0624 of a loss in [0, 1]",
        question="What does a gap prove?",
        theorem=theorem,
    )


@cache
def regression() -> Report:
    """A lower bound, the exact value and an upper bound of one accuracy, and an attack that was run beside them."""
    found = [
        Finding(
            "accuracy",
            0.70135,
            operating_point={"prior": 0.5},
            bound_type="point",
            status="certified",
            source="delgrosso2021, Sec. 5",
        ),
        Finding(
            "accuracy",
            0.5124,
            operating_point={"prior": 0.5},
            bound_type="lower",
            status="certified",
            source="delgrosso2021, Theorem 3",
        ),
        Finding(
            "accuracy",
            0.852417,
            operating_point={"prior": 0.5},
            bound_type="upper",
            status="certified",
            source="cover2006",
        ),
        Finding("information", 0.274653, bound_type="upper", status="certified", source="delgrosso2021, eq. 80"),
    ]
    return bound(found, bound="regression", subject="30 records, 20 columns", question="What does a regression reveal?")


@cache
def subsampled() -> Report:
    """A mixture below .15 of advantage: the second panel is drawn."""
    curve = Mixture((0.9, 0.1), (EpsilonDelta(0.0), Gaussian(8.8)))
    words: dict[str, Any] = {"bound_type": "upper", "status": "asymptotic", "source": "azize2024, Theorem 4.3"}
    certified = EpsilonDelta(0.0, 0.12)
    sure: dict[str, Any] = {"bound_type": "upper", "status": "certified", "source": "azize2024"}
    found = [*numbers(certified, **sure), *numbers(curve, scope=Scope("median"), **words)]
    curves = [
        Curve("eta = 0.06", "", "certified", certified),
        Curve("median", "", "asymptotic", curve, scope=Scope("median")),
    ]
    return bound(found, curves, subject="eta = 0.06, rate 0.1", question="What is left after sub-sampling?")


@cache
def empty() -> Report:
    """A theorem that does not apply."""
    found = [
        Finding(
            "accuracy",
            None,
            reason=Term("the covariance has rank 2 of 3"),
            operating_point={"prior": 0.5},
            bound_type="upper",
        )
    ]
    return bound(found, subject="3 columns", question="How much does a mean reveal?")
