"""Reports of simulated audits, for the tests of the page and of the charts.

A release leaks ``leak[j]`` standard deviations about record j: the signal of a model is N(leak[j], 1) if the
record is in and N(0, 1) if not, on top of a difficulty of the record that only reference models reveal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import betaincinv

from leakbound.core.findings import Finding, Term
from leakbound.core.seeds import stream
from leakbound.core.tradeoff import EpsilonDelta, Piecewise, TradeOff
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Curve, Report, Verdict, Word
from leakbound.reports.about import AnyAbout
from tests.reports.abouts import about as about_with
from tests.reports.abouts import changed

Array = np.ndarray
FPR = (0.01, 0.001)
CONFIDENCE = 0.95
TITLES = {
    "lira": ("LiRA", "Carlini et al. 2022", "likelihood ratio of the log-odds with and without the record"),
    "rmia": ("RMIA", "Zarifzadeh et al. 2024", "likelihood ratio against records of the population"),
    "loss": ("loss threshold", "Yeom et al. 2018", "low loss means member"),
    "gap": ("gap", "Yeom et al. 2018", "correct means member"),
}
CLAIM = Claim("epsilon", 4.0, 1e-5, "replace_one")


@dataclass(frozen=True, eq=False)
class Played:
    """The games of one release: scores (T, N) by attack, the membership and the signal behind them."""

    name: str
    title: str
    member: Array
    signal: Array
    scores: Mapping[str, Array]


@cache
def two_models() -> Report:
    """A forest that gives its data away and a regression that hardly does; a refuted and a standing claim."""
    releases = (
        play("forest", "Random forest", 2.6, n_models=64, n_records=1500),
        play("regression", "Logistic regression", 0.35, n_models=64, n_records=1500),
    )
    return audit(releases, claims={"forest": "refuted", "regression": "not_refuted"})


@cache
def judged() -> Report:
    """Three models with their quality and the verdicts of a policy; a name that tries to break out of the page."""
    evil = "<script>alert(1)</script>"
    releases = (
        play("forest", "Random forest", 2.6, n_models=16, n_records=300),
        play("regression", "Logistic regression", 0.35, n_models=16, n_records=300),
        play("constant", evil, 0.0, n_models=16, n_records=300),
    )
    report = audit(releases)
    qualities = {"forest": (0.95, 0.05, 0), "regression": (0.9, 0.01, 0), "constant": (0.6, 0.0, 16)}
    findings = [
        Finding(
            "test_accuracy",
            value,
            value - 0.01,
            min(value + 0.01, 1.0),
            confidence=0.95,
            release=name,
            source="student1908",
            detail={"training": value + gap, "gap": gap, "baseline": 0.6, "models_of_one_class": n, "classes": 2},
        )
        for name, (value, gap, n) in qualities.items()
    ]
    auc = {"check": "auc", "limit": 0.6, "attack": "lira"}
    leaf = {"check": "smallest_leaf", "limit": 10}
    no_leaves = {"reason": {"id": "no_leaves", "values": {}}}
    decisions = [
        {
            "release": "forest",
            "verdict": "do_not_release",
            "checks": [
                {**auc, "outcome": "not_kept", "value": 0.9, "low": 0.88, "high": 0.92},
                {**leaf, "outcome": "not_kept", "value": 1},
            ],
        },
        {
            "release": "regression",
            "verdict": "ask",
            "checks": [
                {**auc, "outcome": "open", "reason": {"id": "interval_includes_limit", "values": {}}}
                | {"value": 0.58, "low": 0.55, "high": 0.61},
                {**leaf, "outcome": "kept", **no_leaves},
            ],
        },
        {
            "release": "constant",
            "verdict": "release",
            "checks": [
                {**auc, "outcome": "kept", "value": 0.5, "low": 0.49, "high": 0.51},
                {**leaf, "outcome": "kept", **no_leaves},
            ],
        },
    ]
    policy = {
        "title": f"Policy {evil}",
        "confidence": 0.95,
        "signs": ["Researcher", evil],
        "then": {"release": "Archive.", "ask": "Two people decide.", "do_not_release": evil},
    }
    plan = {"author": f"Ada {evil}", "policy": policy}
    about = changed(report.about, decisions=decisions, plan=plan)
    return replace(report, about=about, findings=(*report.findings, *findings))


@cache
def one_model_no_claim() -> Report:
    """One trained model with 16 references: no games per record, intervals over records."""
    return audit((play("model", "Gradient boosting", 0.9, n_models=1, n_records=4000),), references=16)


@cache
def no_leak() -> Report:
    """Scores that know nothing of the membership."""
    return audit((play("mean", "Mean of a column", 0.0, n_models=64, n_records=1000),))


@cache
def few_models() -> Report:
    """Eight models: even eight wins of eight show nothing about a single record."""
    return audit((play("tree", "Decision tree", 1.5, n_models=8, n_records=600),))


@cache
def tiny() -> Report:
    """Six records and one model; names and text that try to break out of the page; a constant score."""
    played = play("<script>alert(1)</script>", "A & B </title><script>alert(2)</script>", 1.0, n_models=1, n_records=6)
    scores = {"lira": played.scores["lira"], "constant": np.zeros_like(played.signal)}
    return audit((Played(played.name, played.title, played.member, played.signal, scores),))


def play(name: str, title: str, leak: float, *, n_models: int, n_records: int) -> Played:
    """Draw the games: leaks differ tenfold between records, ``leak`` is their typical size."""
    rng = stream(1, "sample", name)
    member = np.zeros((n_models, n_records), dtype=bool)
    for row in member:
        row[rng.permutation(n_records)[: n_records // 2]] = True
    leaks = leak * rng.lognormal(0.0, 0.6, n_records)
    difficulty = rng.normal(0.0, 2.0, n_records)
    own = rng.normal(size=member.shape) + leaks * member
    loss = own + difficulty
    scores = {
        "lira": leaks * own - leaks**2 / 2 if leak else own,
        "rmia": np.tanh((own - leaks / 2) / 3) + rng.normal(0.0, 0.02, member.shape),
        "loss": np.minimum(loss, np.quantile(loss[~member], 0.99)) if n_models > 1 else loss,
        "gap": (loss > -2.0).astype(float),
    }
    return Played(name, title, member, own + difficulty, scores)


def audit(
    releases: Sequence[Played], claims: Mapping[str, Word] | None = None, references: int | None = None
) -> Report:
    """The report of such games."""
    findings = [finding for played in releases for finding in findings_of(played)]
    curves = [curve_of(played, attack) for played in releases for attack in played.scores]
    for name, word in (claims or {}).items():
        curves.append(claimed(name, word))
    tables = [records_of(played) for played in releases if len(played.member) > 8]
    table = {column: [cell for part in tables for cell in part[column]] for column in (tables[0] if tables else ())}
    return Report(about_of(releases, findings, references), tuple(findings), tuple(curves), table)


def about_of(releases: Sequence[Played], findings: Sequence[Finding], references: int | None) -> AnyAbout:
    """What the plan says of the audit."""
    names = sorted({attack for played in releases for attack in played.scores})
    known = {name: TITLES.get(name, (name, "", "")) for name in names}
    return about_with(
        kind="audit",
        confidence=CONFIDENCE,
        fpr=list(FPR),
        attacks={n: dict(zip(("title", "source", "summary"), known[n], strict=True)) for n in names},
        command="leakbound audit --dataset digits --seed 0",
        plan={"n_models": len(releases[0].member), "seed": 0, "attacks": names, "fpr": list(FPR)},
        versions={"numpy": "2.4.6", "scikit-learn": "1.8.0"},
        notes=["52 records stand in both members and others"],
        releases=[release_of(played, findings, references) for played in releases],
    )


def release_of(played: Played, findings: Sequence[Finding], references: int | None) -> dict[str, Any]:
    """The facts of one release."""
    n_models, n_records = played.member.shape
    best = best_attack(played, findings)
    return {
        "name": played.name,
        "title": played.title,
        "description": f"sklearn.ensemble:{played.name}",
        "data": {"name": "digits", "digest": "0123456789abcdef", "records": n_records},
        "game": "half_split" if n_models > 1 else "one_model",
        "sampling": "fixed",
        "models": n_models + (references or 0),
        "targets": n_models,
        "references": n_models - 1 if references is None else references,
        "target_points": n_records,
        "population": 0,
        "prior": 0.5,
        "best": best,
        "games": games_of(played, best) if n_models > 1 else None,
        "knowledge": None,
        "files": {},
    }


def best_attack(played: Played, findings: Sequence[Finding]) -> str:
    """The attack with the largest lower end of accuracy."""
    own = [f for f in findings if f.release == played.name and f.quantity == "accuracy"]
    return max(own, key=lambda finding: finding.low or 0.0).attack


def won_by(played: Played, attack: str) -> Array:
    """Games won against each record (N,), threshold at the middle of the scores."""
    value = played.scores[attack]
    return ((value > np.median(value)) == played.member).sum(axis=0)


def lower_limit(won: Array, n_games: int, level: float) -> Array:
    """One-sided Clopper-Pearson lower limit."""
    return np.where(won > 0, betaincinv(np.maximum(won, 1), n_games - np.maximum(won, 1) + 1, level), 0.0)


def first_exposed(n_games: int, n_records: int) -> int | None:
    """The number of wins whose simultaneous lower limit passes 1/2."""
    limits = lower_limit(np.arange(n_games + 1), n_games, (1 - CONFIDENCE) / n_records)
    return int(np.argmax(limits > 0.5)) if (limits > 0.5).any() else None


def games_of(played: Played, attack: str) -> dict[str, Any]:
    """Games won per record."""
    n_models, n_records = played.member.shape
    won = won_by(played, attack)
    first = first_exposed(n_models, n_records)
    return {
        "played": n_models,
        "won": np.bincount(won, minlength=n_models + 1).tolist(),
        "first_exposed": first,
        "exposed": 0 if first is None else int((won >= first).sum()),
        "records": n_records,
        "attack": attack,
        "smallest_detectable": 1.0 if first is None else first / n_models,
        "models_needed": int(np.ceil(np.log2(n_records / (1 - CONFIDENCE)))),
    }


def findings_of(played: Played) -> list[Finding]:
    """The numbers of every attack, epsilon, and the most exposed record."""
    found = [finding for attack in played.scores for finding in attack_findings(played, attack)]
    first = next(iter(played.scores))
    common = {"release": played.name, "attack": first, "bound_type": "lower", "confidence": CONFIDENCE}
    tpr = next(f for f in found if f.quantity == "tpr" and f.attack == first and f.operating_point["fpr"] == FPR[0])
    bound = max(0.0, float(np.log((tpr.low or 1e-9) / FPR[0])))
    found.append(
        Finding(
            "epsilon", bound, bound, np.inf, operating_point={"delta": 1e-5}, source="Kairouz et al. 2015", **common
        )
    )
    n_models, n_records = played.member.shape
    if n_models > 1:
        won = int(won_by(played, first).max())
        low = float(lower_limit(np.array([won]), n_models, (1 - CONFIDENCE) / n_records)[0])
        found.append(
            Finding(
                "most_exposed", won / n_models, low, 1.0, detail={"won": won, "games": n_models},
                method=(Term("clopper_pearson"), Term("all_records_at_once")),
                source="Clopper and Pearson 1934", **common,
            )
        )  # fmt: skip
    return found


def attack_findings(played: Played, attack: str) -> list[Finding]:
    """Accuracy, advantage, AUC and members found, averaged over models."""
    common: dict[str, Any] = {
        "release": played.name, "attack": attack, "game": Term("half_split", others="pool"),
        "interval_over": averages(played), "confidence": CONFIDENCE, "source": TITLES.get(attack, ("", "", ""))[1],
        "method": (Term("cluster_t"),),
    }  # fmt: skip
    value, member = played.scores[attack], played.member
    curves = [roc(value[row], member[row]) for row in range(len(member))]
    called = value >= np.median(value)
    accuracy = (called == member).mean(axis=1)
    advantage = np.maximum(2 * accuracy - 1, 0)
    auc = np.array([1 - np.trapezoid(curve.value, curve.at) for curve in curves])
    found = [
        Finding("accuracy", *interval(accuracy, member), operating_point={"prior": 0.5}, bound_type="lower", **common),
        Finding("advantage", *interval(advantage, member), bound_type="lower", **common),
        Finding("auc", *interval(auc, member), **common),
    ]
    pooled = roc(value, member)
    for fpr in FPR:
        at = {"fpr": fpr}
        if len(pooled.at) < 5:
            point = pooled.at[len(pooled.at) // 2]
            found.append(
                Finding(
                    "tpr", None, operating_point=at, reason=Term(f"one point, at FPR {100 * point:.1f} %"), **common
                )
            )
        else:
            found.append(
                Finding(
                    "tpr", *interval(np.full(len(member), pooled.tpr_at(fpr)), member), operating_point=at, **common
                )
            )
    return found


def averages(played: Played) -> str:
    """What the intervals are over."""
    return "models" if len(played.member) >= 8 else "points"


def interval(values: Array, member: Array) -> tuple[float, float, float]:
    """Mean with a normal interval over models, or over records where there is one model."""
    mean = float(values.mean())
    spread = values.std() / np.sqrt(len(values)) if len(values) > 1 else 0.0
    half = 2 * float(max(spread, np.sqrt(mean * (1 - mean) / member.size)))
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def roc(value: Array, member: Array) -> Piecewise:
    """The ROC as measured, thinned to about 300 thresholds."""
    order = np.argsort(-value, axis=None, kind="stable")
    value, member = value.ravel()[order], member.ravel()[order]
    last = np.flatnonzero(np.r_[np.diff(value) != 0, True])  # of each run of equal scores
    hits, alarms = np.cumsum(member)[last], np.cumsum(~member)[last]
    wanted = np.geomspace(1, max(alarms[-1], 2), 300)
    keep = np.unique(np.r_[0, np.searchsorted(alarms, wanted[wanted <= alarms[-1]]), len(last) - 1])
    return Piecewise(alarms[keep] / alarms[-1], 1 - hits[keep] / hits[-1])


def curve_of(played: Played, attack: str) -> Curve:
    """The pooled ROC with a band."""
    measured = roc(played.scores[attack], played.member)
    n_nonmember = int((~played.member).sum())
    fpr = measured.at[(measured.at >= min(10 / n_nonmember, 1.0)) & (measured.at < 1)]
    tpr = measured.tpr_at(fpr)
    half = 3 * np.sqrt(tpr * (1 - tpr) / n_nonmember + (tpr * 0.02) ** 2 / 4)
    band = (fpr.tolist(), np.maximum(tpr - half, 0).tolist(), np.minimum(tpr + half, 1).tolist())
    return Curve(attack, played.name, "measured", measured, *band, confidence=CONFIDENCE, n_nonmember=n_nonmember)


def claimed(release: str, word: Word, ceiling: TradeOff | None = None) -> Curve:
    """A claim with its verdict."""
    measured = 4.09 if word == "refuted" else 1.51
    shown = {"fpr": 0.01, "tpr": 0.604, "low": 0.598, "high": 0.609, "ceiling": 0.546, "false_alarms": 480}
    at = shown if word == "refuted" else {}
    verdict = Verdict(CLAIM, word, "epsilon", 4.0, measured, CONFIDENCE, "lira", at if word == "refuted" else {})
    return Curve(CLAIM.text, release, "claimed", ceiling or EpsilonDelta(4.0, 1e-5), verdict=verdict)


def records_of(played: Played) -> dict[str, list[Any]]:
    """A row a record; signals and memberships of the ten most exposed."""
    n_models, n_records = played.member.shape
    won = won_by(played, next(iter(played.scores)))
    low = lower_limit(won, n_models, (1 - CONFIDENCE) / n_records)
    margin = np.where(played.member, played.signal, -played.signal).mean(axis=0)
    shown = set(np.lexsort((-margin, -won))[:10].tolist())
    image = [[16 * ((row * column) % 16) for column in range(8)] for row in range(8)]
    return {
        "release": [played.name] * n_records,
        "record": list(range(n_records)),
        "label": [f"a {j % 10}" for j in range(n_records)],
        "games": [n_models] * n_records,
        "won": won.tolist(),
        "low": low.tolist(),
        "exposed": (low > 0.5).tolist(),
        "margin": margin.tolist(),
        "log_odds": [played.signal[:, j].tolist() if j in shown else None for j in range(n_records)],
        "member": [played.member[:, j].astype(int).tolist() if j in shown else None for j in range(n_records)],
        "preview": [{"image": image} if j in shown else None for j in range(n_records)],
    }
