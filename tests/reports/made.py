"""Reports made by hand, so that a test can state every number that it expects."""

from __future__ import annotations

from math import comb
from typing import Any

from leakbound.core.findings import Finding
from leakbound.core.tradeoff import EpsilonDelta, Piecewise
from leakbound.reports import Curve, Report, Verdict
from tests.reports.abouts import about as about_with

ATTACKS = {
    "lira": {"title": "LiRA", "source": "Carlini et al. 2022", "summary": "two Gaussians per record"},
    "gap": {"title": "gap", "source": "Yeom et al. 2018", "summary": ""},
}


def made(
    accuracy: tuple[float, float, float] = (0.913, 0.9112, 0.9148),
    won: list[int] | None = None,
    verdict: Verdict | None = None,
    about: dict[str, Any] | None = None,
    facts: dict[str, Any] | None = None,
    findings: tuple[Finding, ...] = (),
) -> Report:
    """One release, LiRA against it; ``won[w]`` records lost w games each."""
    common: dict[str, Any] = {"release": "forest", "attack": "lira", "confidence": 0.95, "interval_over": "models"}
    at = {"prior": (facts or {}).get("prior", 0.5)}
    found = [Finding("accuracy", *accuracy, operating_point=at, bound_type="lower", **common), *findings]
    if won is not None:
        top = max(games for games, records in enumerate(won) if records)
        n = len(won) - 1
        number = (top / n, lower_limit(top, n, 0.05 / sum(won)), 1.0)
        detail = {"won": top, "games": n}
        found.append(Finding("most_exposed", *number, bound_type="lower", detail=detail, **common))
    curves = [Curve("lira", "forest", "measured", Piecewise([0.01, 0.5], [0.6, 0.1]), n_nonmember=3200)]
    if verdict is not None:
        curves.append(Curve(verdict.claim.text, "forest", "claimed", EpsilonDelta(4.0, 1e-5), verdict=verdict))
    release = {
        "name": "forest",
        "title": "Random forest",
        "description": "",
        "game": "half_split",
        "sampling": "fixed",
        "data": {"name": "", "digest": "", "records": 100},
        "models": 64,
        "targets": 64,
        "references": 63,
        "target_points": 100,
        "population": 0,
        "prior": 0.5,
        "best": "lira",
        "games": None if won is None else games(won),
        "knowledge": None,
        "files": {},
    } | (facts or {})
    whole = {
        "kind": "audit",
        "leakbound": "0.1.0",
        "title": "",
        "unit": "record",
        "date": "",
        "seed": 0,
        "confidence": 0.95,
        "fpr": [0.01],
        "attacks": ATTACKS,
        "command": "",
        "plan": {},
        "versions": {},
        "notes": [],
        "releases": [release],
    } | (about or {})
    return Report(about_with(**whole), tuple(found), tuple(curves), {})


def games(won: list[int]) -> dict[str, Any]:
    """Facts of games against single records, by a search over all counts."""
    n, n_records = len(won) - 1, sum(won)
    showing = [w for w in range(1, n + 1) if lower_limit(w, n, 0.05 / n_records) > 0.5]
    needed = next(m for m in range(1, 200) if lower_limit(m, m, 0.05 / n_records) > 0.5)
    first = showing[0] if showing else None
    return {
        "played": n,
        "won": won,
        "first_exposed": first,
        "exposed": sum(won[first:]) if first else 0,
        "records": n_records,
        "attack": "lira",
        "smallest_detectable": first / n if first else float("inf"),
        "models_needed": needed,
    }


def lower_limit(won: int, n: int, alpha: float) -> float:
    """One-sided Clopper-Pearson: the p at which ``won`` or more of n has probability alpha, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        p = (low + high) / 2
        tail = sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(won, n + 1))
        low, high = (p, high) if tail < alpha else (low, p)
    return low


def spread(n_games: int = 64, **wins: int) -> list[int]:
    """Records by games won: ``spread(64, w32=90, w64=10)``."""
    won = [0] * (n_games + 1)
    for name, records in wins.items():
        won[int(name[1:])] = records
    return won
