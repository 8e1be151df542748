"""Reports made by hand of the designs that use all records, or all but one: for publication, and for the owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.tradeoff import Gaussian, Piecewise
from leakbound.reports import Curve, Report
from leakbound.reports.about import term_facts
from tests.reports.made_protected import CERTIFIED, FPR, mu_of, protected

N, ETA, BUDGET = 1000, 0.05, 0.1
DIGEST = "0123456789ab" + "c" * 52
ENTRY = {"number": 2, "digest": DIGEST, "budget": BUDGET, "declared": 3}
WHOLE_BUDGET = {"number": 1, "digest": DIGEST, "budget": ETA, "declared": 1}
OTHER = {"design": "dp", "date": "2027-01-04", "number": 3, "digest": "ab" * 32}
ROWS = (  # name, unit, released, noise, sampling error
    ("mean of age", "years", 43.217, 0.23, 0.57),
    ("mean of gross monthly income", "EUR 1,000", 2.9164, 0.0213, 0.0524),
    ("mean of weekly working hours", "hours", 36.58, 0.15, 0.39),
)
GAMES = {"leave-one-out": Term("left_out", n=N), "dp": Term("any_data", n=N)}
ASSUMED = {
    "leave-one-out": (
        Term("left_out_in_secret", n=N),
        Term("knows_all_but_left_out", n=N),
        Term("function_of_the_others"),
        Term("ledger_keeps_left_out"),
        Term("ledger_not_rolled_back"),
        Term("on_a_grid"),
    ),
    "dp": (
        Term("replace_one_any_data", n=N),
        Term("n_is_public", n=N),
        Term("ranges_declared", ranges="age from 18 to 99, income from 0 to 20, hours from 0 to 80"),
        Term("values_clamped"),
        Term("ledger_not_rolled_back"),
        Term("on_a_grid"),
    ),
}
PROMISES = {"leave-one-out": "file", "dp": "anyone"}
SOURCES = {
    "leave-one-out": "ours: joint convexity over the values without each record",
    "dp": "dong2022, eq. 6 and Theorem 2.7",
}
DESIGNS = tuple(PROMISES)
SCOPES = {"leave-one-out": Scope(), "dp": Scope("any_data")}


def named_right(eta: float) -> float:
    """Probability that the record left out is named: 1/n + (1 - 1/n) TV, with TV = 2 eta."""
    return 1 / N + (1 - 1 / N) * 2 * eta


def promised(design: str, eta: float = ETA) -> list[Finding]:
    """What follows from the promise alone, for publication."""
    common: dict[str, Any] = {
        **CERTIFIED,
        "scope": SCOPES[design],
        "game": GAMES[design],
        "assumptions": ASSUMED[design],
        "source": SOURCES[design],
    }
    found = [
        Finding("accuracy", 0.5 + eta, operating_point={"prior": 0.5}, **common),
        Finding("eta", eta, operating_point={"prior": 0.5}, **common),
        *(Finding("tpr", fpr + 2 * eta, operating_point={"fpr": fpr}, **common) for fpr in FPR),
    ]
    if design == "leave-one-out":
        found.append(Finding("named_right", named_right(eta), **common))
    if design == "dp":
        at = {"delta": 1e-5}
        epsilons = [Gaussian(part * mu_of(eta)).epsilon(1e-5) for part in (1.0, 0.5)]
        found.append(Finding("epsilon", epsilons[0], operating_point=at, **common))
        found.append(Finding("epsilon", epsilons[1], operating_point=at, method=(Term("add_or_remove"),), **common))
    return [*found, Finding("noise_rms", 0.16, status="certified")]


def owners(design: str) -> list[Finding]:
    """What the owner sees beside it: all releases of the ledger, what is spent, who is told best."""
    together: dict[str, Any] = {**CERTIFIED, "scope": SCOPES[design], "operating_point": {"prior": 0.5}}
    found = [
        Finding("accuracy", 0.5 + BUDGET, release="joint", **together),
        Finding("eta", BUDGET, release="joint", **together),
        Finding("eta", 0.0712, release="spent", **together),
    ]
    if design == "leave-one-out":
        found.insert(2, Finding("named_right", named_right(BUDGET), release="joint", **CERTIFIED))
        tried: dict[str, Any] = {"attack": "likelihood_ratio", "bound_type": "lower", "scope": Scope("worst", 617)}
        at = {"prior": 0.5}
        found.append(Finding("accuracy", 0.54, 0.531, 0.549, operating_point=at, confidence=0.95, **tried))
    return found


def certificate_of(design: str, **others: Any) -> dict[str, Any]:
    """The certificate of a design."""
    return {
        "promise": PROMISES[design],
        "design": design,
        "eta": ETA,
        "k": N - 1 if design == "leave-one-out" else N,
        "n": N,
        "coupling": "",
        "pairs": None,
        "fits": None,
        "failures": None,
        "assumptions": [term.model_dump() for term in term_facts(ASSUMED[design])],
        "ledger": True,
        "entry": ENTRY,
    } | others


def rows_of(rows: Sequence[tuple[str, str, float, float, float | None]], owner: bool) -> list[dict[str, Any]]:
    """What was released; the owner sees the sampling error."""
    fields = ("name", "unit", "value", "noise_std", "sampling_std")
    released = [dict(zip(fields, row, strict=True)) | {"sample_cost": None} for row in rows]
    return released if owner else [row | {"sampling_std": None} for row in released]


def design_report(
    design: str,
    owner: bool = False,
    certificate: Mapping[str, Any] | None = None,
    noise: Mapping[str, Any] | None = None,
    findings: Sequence[Finding] | None = None,
    rows: Sequence[tuple[str, str, float, float, float | None]] = ROWS,
    **about: Any,
) -> Report:
    """A release of a design, or with ``rows`` empty its calibration."""
    if findings is None:
        findings = [*promised(design), *(owners(design) if owner else ())]
    shape = [row[3] for row in rows if row[3]] if design == "leave-one-out" else None
    printed = {
        "rms": [row[3] for row in rows] or [0.1],
        "grid": [2.0**-20 if row[3] else None for row in rows] or None,
        "deviations": shape or None,
        "declared": design != "leave-one-out",
    }
    command = "leakbound protect --data survey.csv --statistic mean --promise file --eta 0.05 --out release"
    plan = {"data": "survey.csv", "statistic": "mean", "promise": PROMISES[design], "eta": ETA}
    if design == "dp":
        plan["ranges"] = ["age=18:99", "income=0:20", "hours=0:80"]
    whole = {
        "audience": "owner" if owner else "public",
        "title": "",
        "question": "Who is left out of the mean?" if design == "leave-one-out" else "Who is in the mean?",
        "command": command if owner else "",
        "plan": plan,
        "data": {"name": "survey.csv", "digest": "0123456789abcdef" if owner else "", "records": N},
        "values": rows_of(rows, owner),
    } | about
    ceiling = Curve("certified", "", "certified", Piecewise([0.0, 1 - 2 * ETA], [1 - 2 * ETA, 0.0]))
    printed |= dict(noise or {})
    return protected(findings, [ceiling], certificate_of(design, **(certificate or {})), printed, **whole)


def exact() -> Report:
    """A leave-one-out release of which one number is the same whoever is left out."""
    rows = [*ROWS[:2], ("number of sexes", "", 2.0, 0.0, None)]
    return design_report("leave-one-out", rows=rows)


def all_exact() -> Report:
    """A leave-one-out release of a number that is the same whoever is left out, and of no other."""
    noise = {"family": "none", "scale": 0.0, "grid": None, "deviations": None, "declared": False}
    rows = [("largest wage, top-coded", "", 80.0, 0.0, None)]
    return design_report("leave-one-out", certificate={"no_noise": True}, noise=noise, rows=rows)


def noise(size: float, **more: Any) -> dict[str, Any]:
    """The noise of one of several statistics."""
    return {
        "family": "gaussian",
        "scale": size,
        "deviations": None,
        "correlations": None,
        "rms": [size],
        "grid": [2.0**-20],
        "declared": False,
    } | more


def several(design: str = "leave-one-out", owner: bool = False, weights: tuple[float, float] = (2, 1)) -> Report:
    """Two statistics that were released together."""
    names = ("means", "means", "hours")
    values = [row | {"statistic": name} for row, name in zip(rows_of(ROWS, owner), names, strict=True)]
    declared = {"declared": design != "leave-one-out"}
    statistics = [
        {"name": "means", "weight": weights[0], "noise": noise(0.2, rms=[0.23, 0.0213], grid=[0.5, 0.5], **declared)},
        {"name": "hours", "weight": weights[1], "noise": noise(0.15, **declared)},
    ]
    return design_report(design, owner, {"entry": WHOLE_BUDGET}, values=values, statistics=statistics)


def beside_another_design() -> Report:
    """A release of data that were released under another design."""
    return design_report("leave-one-out", certificate={"others": [OTHER]})


ALL: Mapping[str, Callable[[], Report]] = {
    **{f"{design}, public": lambda design=design: design_report(design) for design in DESIGNS},
    **{f"{design}, owner": lambda design=design: design_report(design, owner=True) for design in DESIGNS},
    "leave-one-out, exact": exact,
    "leave-one-out, all exact": all_exact,
    "leave-one-out, several": several,
    "leave-one-out, several, owner": lambda: several(owner=True),
    "leave-one-out, another design": beside_another_design,
}
