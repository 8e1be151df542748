"""Reports of protected releases made by hand, with every number in closed form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.tradeoff import Gaussian, Piecewise
from leakbound.reports import Curve, Report
from tests.reports.abouts import about as about_with

FPR = (0.01, 0.001)
PHI = NormalDist()
CERTIFIED: Mapping[str, Any] = {"bound_type": "upper", "status": "certified"}
SECRET = 40.123456  # a value without noise, which no page may show
MEANS = (
    ("mean of age", "years", 43.217, 0.56, 0.57),
    ("mean of gross monthly income", "EUR 1,000", 2.9164, 0.0517, 0.0524),
    ("mean of weekly working hours", "hours", 36.58, 0.37, 0.39),
)


def mu_of(eta: float) -> float:
    """Gaussian noise with Phi(mu/2) - 1/2 = eta at even odds."""
    return 2 * PHI.inv_cdf(0.5 + eta)


def values(rows: Sequence[tuple[str, str, float, float, float | None]], k: int = 500) -> list[dict[str, Any]]:
    """What was released; the noise costs k noise^2/(noise^2 + sampling^2) records."""
    return [
        {
            "name": name,
            "unit": unit,
            "value": value,
            "noise_std": noise,
            "sampling_std": sampling,
            "sample_cost": None if sampling is None else k * noise**2 / (noise**2 + sampling**2),
        }
        for name, unit, value, noise, sampling in rows
    ]


def protected(
    findings: Sequence[Finding],
    curves: Sequence[Curve] = (),
    certificate: Mapping[str, Any] | None = None,
    noise: Mapping[str, Any] | None = None,
    **about: Any,
) -> Report:
    """A report of a protected release."""
    promised = {
        "eta": 0.05,
        "promise": "drawn",
        "design": "half",
        "about": "every",
        "prior": 0.5,
        "k": 500,
        "n": 1000,
        "coupling": "swap",
        "noise": {
            "family": "gaussian",
            "scale": 1.0,
            "rms": [0.56, 0.0517, 0.37],
            "grid": [2.0**-20] * 3,
            "deviations": [0.56, 0.0517, 0.37],
            "correlations": None,
            "declared": False,
        }
        | dict(noise or {}),
        "exact": True,
        "confidence": 1.0,
        "pairs": 999,
        "fits": 0,
        "failures": 0,
        "assumptions": [
            {"id": words, "values": {}}
            for words in ("the draw is uniform", "the shape of the noise was fixed without looking at the draw")
        ],
        "ledger": False,
        "no_noise": False,
    } | dict(certificate or {})
    whole = {
        "kind": "protected",
        "audience": "owner",
        "leakbound": "0.1.0",
        "title": "Three means of a survey",
        "question": "Who is in the mean?",
        "unit": "person",
        "date": "",
        "seed": 0,
        "insecure_seed": False,
        "confidence": 0.95,
        "fpr": list(FPR),
        "command": "leakbound protect --data survey.csv --statistic mean --promise drawn --eta 0.05 --out release",
        "plan": {"data": "survey.csv", "statistic": "mean", "promise": "drawn", "eta": 0.05},
        "versions": {"numpy": "2.4.6"},
        "notes": [],
        "data": {"name": "survey.csv", "digest": "0123456789abcdef", "records": 1000},
        "certificate": promised,
        "values": values(MEANS),
    } | about
    return Report(about_with(**whole), tuple(findings), tuple(curves), {})


def ceiling(eta: float = 0.05, **words: Any) -> tuple[list[Finding], Curve]:
    """What a certificate of Gaussian noise allows: findings and curve."""
    curve = Gaussian(mu_of(eta))
    said = {**CERTIFIED, **words}
    found = [
        Finding("accuracy", 0.5 + eta, operating_point={"prior": 0.5}, **said),
        Finding("eta", eta, **said),
        *(Finding("tpr", float(curve.tpr_at(fpr)), operating_point={"fpr": fpr}, **said) for fpr in FPR),
        Finding("pmp_epsilon", 1.0572, operating_point={"delta": 1e-5}, **said),
    ]
    return found, Curve("certified", "", "certified", curve)


def attack(mu: float = 0.2, games: int = 20_000) -> tuple[list[Finding], Curve]:
    """The likelihood ratio on a Gaussian with this mu, on so many games each."""
    curve = Gaussian(mu)
    fpr = np.r_[np.geomspace(1e-4, 0.1, 80), np.linspace(0.11, 0.999, 80)]
    tpr = np.asarray(curve.tpr_at(fpr))
    half = 1.96 * np.sqrt(tpr * (1 - tpr) / games)
    band = {
        "band_fpr": fpr.tolist(),
        "low": np.clip(tpr - half, 0, 1).tolist(),
        "high": np.clip(tpr + half, 0, 1).tolist(),
    }
    accuracy, error = curve.accuracy(0.5), 1.96 * math.sqrt(0.25 / (2 * games))
    words: dict[str, Any] = {"confidence": 0.95, "bound_type": "lower", "status": "measured", "source": "azize2024"}
    found = [
        Finding(
            "accuracy",
            accuracy,
            accuracy - error,
            accuracy + error,
            operating_point={"prior": 0.5},
            attack="likelihood_ratio",
            scope=Scope("worst", 10617),
            method=(Term("clopper_pearson"),),
            **words,
        )
    ]
    measured = Piecewise(fpr, 1 - tpr)
    name = "likelihood_ratio"
    return found, Curve(name, "", "measured", measured, **band, confidence=0.95, n_nonmember=games)


def without(mu: float = 0.37) -> tuple[list[Finding], Curve]:
    """The same release without its noise, for large n."""
    curve = Gaussian(mu)
    words: dict[str, Any] = {"status": "asymptotic", "bound_type": "point", "source": "azize2024, Theorem 4.1"}
    found = [Finding("accuracy", curve.accuracy(0.5), operating_point={"prior": 0.5}, release="without_noise", **words)]
    return found, Curve("without_noise", "without_noise", "asymptotic", curve)


@cache
def means() -> Report:
    """Three means under an exact swap: at most 55 of 100, the attack reaches 53.9, without noise about 57.3."""
    parts = [ceiling(), attack(), without()]
    rms = [
        Finding("noise_rms", each, operating_point={"coordinate": n}, status="certified")
        for n, each in enumerate((0.56, 0.0517))
    ]
    return protected([each for found, _ in parts for each in found] + rms, [curve for _, curve in parts])


@cache
def published() -> Report:
    """The same three means for publication: the promise and the printed noise, no function of the data beside them."""
    rows = [(name, unit, value, noise, None) for name, unit, value, noise, _ in MEANS]
    ceiling = Piecewise([0.0, 0.9], [0.9, 0.0])
    found = [
        Finding("accuracy", 0.55, operating_point={"prior": 0.5}, **CERTIFIED),
        Finding("eta", 0.05, **CERTIFIED),
        *(Finding("tpr", fpr + 0.1, operating_point={"fpr": fpr}, **CERTIFIED) for fpr in FPR),
    ]
    return protected(
        found,
        [Curve("certified", "", "certified", ceiling)],
        {"pairs": None, "fits": None, "failures": None},
        audience="public",
        command="",
        data={"name": "survey.csv", "digest": "", "records": 1000},
        values=values(rows),
    )


@cache
def calibrated() -> Report:
    """A calibration that released nothing."""
    found, curve = ceiling()
    return protected(
        [*found, Finding("noise_rms", 0.0357, status="certified")],
        [curve],
        noise={"rms": [0.0357] * 3},
        title="",
        values=[],
        command="leakbound calibrate --data survey.csv --statistic mean --promise drawn --eta 0.05",
    )


@cache
def average() -> Report:
    """A promise for a random record, from sampled pairs of which three failed."""
    found, curve = ceiling(0.1, confidence=0.95)
    many = [(f"coefficient {n}", "", 0.3 * n - 10, 0.01 * (n + 1), 0.2) for n in range(300)]
    certificate = {
        "eta": 0.1,
        "about": "average",
        "coupling": "average_swap",
        "exact": False,
        "confidence": 0.95,
        "pairs": 500,
        "fits": 1000,
        "failures": 3,
    }
    measured, line = attack(0.3, 2000)
    return protected(
        [*found, *measured],
        [curve, line],
        certificate,
        noise={"rms": [0.01 * (n + 1) for n in range(300)]},
        values=values(many),
        title="",
        question="Who is in the logistic regression?",
        notes=["three fits did not converge"],
    )


@cache
def insecure() -> Report:
    """Noise from a seed that was given."""
    found, curve = ceiling()
    command = "leakbound protect --data survey.csv --promise drawn --eta 0.05"
    plan = {"data": "survey.csv"}
    return protected(found, [curve], insecure_seed=True, command=command, plan=plan)


@cache
def no_noise() -> Report:
    """Counts whose cells are large: the draw alone keeps the promise; exact Bayes is the best attack."""
    rows = [(f"income > {10 * n}", "", 120.0 + n, 0.0, None) for n in range(3)]
    exact = Finding(
        "accuracy",
        0.5396,
        operating_point={"prior": 0.5},
        bound_type="lower",
        status="certified",
        attack="bayes",
        scope=Scope("worst"),
    )
    certificate = {"no_noise": True, "coupling": "", "assumptions": []}
    found = [Finding("accuracy", 0.55, operating_point={"prior": 0.5}, **CERTIFIED), exact]
    return protected(found, (), certificate, noise={"rms": [0.0] * 3, "scale": 0.0, "grid": None}, values=values(rows))


@cache
def uneven() -> Report:
    """A fifth of the candidates: guessing gives 80, the promise 82.5; sizes of every magnitude."""
    rows = [("sum <of> a", "EUR", -123456789.0, 4.5e6, 2.0e6), ("b", "", 1.2345678e-7, 3.2e-9, None)]
    return protected(
        [Finding("accuracy", 0.825, operating_point={"prior": 0.2}, **CERTIFIED)],
        (),
        {"k": 200, "prior": 0.2, "eta": 0.025},
        noise={"rms": [4.5e6, 3.2e-9]},
        values=values(rows, 200),
        unit="household",
    )


@cache
def nothing() -> Report:
    """A certificate without findings, curves or values."""
    return protected([], values=[], title="", data={"name": "", "digest": "", "records": 1000})
