"""Made reports of audits of an attribute."""

from __future__ import annotations

from typing import Any

from leakbound.auditing.attribute.run import BASELINES
from leakbound.core.findings import Finding, Term
from leakbound.reports import Report
from tests.reports.abouts import about as about_with

TITLES = {"likelihood": "Likelihood", "loss": "Loss (MALT)", "posterior": "Posterior", "gradient_norm": "Gradient norm"}


def right(attack: str, value: float, inside: float = 1.0, **words: Any) -> Finding:
    """Share of right guesses, two points of a hundred either way."""
    ends = {
        "low": value - 0.02,
        "high": value + 0.02,
        "interval_over": "models",
        "method": (Term("cluster_t"),),
        "confidence": 0.95,
    }
    return Finding("attribute_accuracy", value, operating_point={"inside": inside}, attack=attack, **{**ends, **words})


def gain(attack: str, value: float, low: float, high: float, **words: Any) -> Finding:
    """What the release adds."""
    method = {"method": (Term("paired_t_points"),), "interval_over": "models", "confidence": 0.95}
    return Finding("attribute_gain", value, low, high, attack=attack, bound_type="lower", **method, **words)


def facts(name: str, **words: Any) -> dict[str, Any]:
    """What the page says of a release."""
    return {
        "name": name,
        "title": name,
        "description": "Net(width=64)",
        "data": {"name": "pens.npz", "digest": "ab" * 8, "records": 500},
        "attribute": "writer",
        "values": 44,
        "chance": 1 / 44,
        "attacked": 500,
        "sampling": "fixed",
        "models": 16,
        "population": 0,
        "baseline": "imputation",
        "best": "loss",
    } | words


def made(findings: list[Finding], *releases: dict[str, Any], **words: Any) -> Report:
    """A report about these findings."""
    titles = {name: {"title": title, "source": "delgrosso2021", "summary": "s"} for name, title in TITLES.items()}
    about = {
        "kind": "attribute",
        "leakbound": "0.1.0",
        "title": "",
        "unit": "record",
        "date": "",
        "seed": 0,
        "confidence": 0.95,
        "attacks": titles | {name: said.model_dump() for name, said in BASELINES.items()},
        "command": "leakbound audit --game attribute,column=writer",
        "plan": {"attribute": "writer"},
        "versions": {"python": "3.11"},
        "notes": [],
        "releases": list(releases or (facts("net"),)),
    }
    return Report(about_with(**(about | words)), tuple(findings))


def of(release: str, accuracy: float, best: tuple[float, float, float]) -> list[Finding]:
    """The findings of a release."""
    where = {"release": release}
    return [
        gain("likelihood", -0.01, -0.04, 0.02, **where),
        right("likelihood", 0.11, **where),
        right("likelihood", 0.05, 0.0, **where),
        gain("loss", *best, **where),
        right("loss", accuracy, **where),
        right("loss", 0.06, 0.0, **where),
        Finding("attribute_gain", None, attack="gradient_norm", reason=Term("needs the signal gradient_norm"), **where),
        right("prior_guess", 0.03, **where),
        right("imputation", 0.12, **where),
    ]


def leak() -> Report:
    """A network that gives the writer away."""
    return made(of("net", 0.42, (0.30, 0.26, 0.34)))


def no_leak() -> Report:
    """One whose guesses are no better than imputation."""
    return made(of("net", 0.13, (0.01, -0.03, 0.05)))


def two() -> Report:
    """Both side by side."""
    findings = of("first", 0.42, (0.30, 0.26, 0.34)) + of("<second>", 0.13, (0.01, -0.03, 0.05))
    return made(findings, facts("first"), facts("<second>"))


def nothing() -> Report:
    """No strategy applies, and chance is the best guess without the release."""
    findings = [
        Finding("attribute_gain", None, attack="loss", release="net", reason=Term("needs the signal loss")),
        right("prior_guess", 0.02, release="net"),
        right("imputation", 0.01, release="net", low=None, high=None),
    ]
    return made(findings, facts("net", baseline="", best=""))
