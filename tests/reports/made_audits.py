"""An audit made by hand that has everything which a page of one model may have."""

from __future__ import annotations

from dataclasses import replace

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.tradeoff import Gaussian
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Curve, Report, Verdict
from leakbound.reports.about import ExecutionFacts
from tests.reports.made import made, spread

GROUPS = [("class 7", 20, 0.9), ("class 1", 60, 0.6), ("joined group 1", 20, 0.55)]


def full() -> Report:
    """Claims, a policy, groups, slices, exposed records with pictures and fields, notes and a store."""
    claim = Claim("epsilon", 4.0, 1e-5, "add_remove")
    at = {"fpr": 0.01, "tpr": 0.43, "low": 0.41, "high": 0.46, "ceiling": 0.0546, "false_alarms": 48}
    common = {"release": "forest", "attack": "lira", "confidence": 0.95, "bound_type": "lower"}
    found = [
        Finding("tpr", 0.4, 0.3, 0.5, operating_point={"fpr": 0.01}, method=(Term("cluster_t"),), **common),
        Finding("auc", 0.9, 0.85, 0.95, **common),
        Finding("accuracy", None, reason=Term("no_reference", n=0), release="forest", attack="gap"),
        Finding("accuracy", 0.53, 0.52, source="a theorem", release="forest", bound_type="lower", confidence=0.95),
        Finding(
            "membership_without_model", 0.5, 0.4, 0.6, confidence=0.95, release="forest",
            detail={"smallest_auc": 0.6, "smallest_shift": 0.3},
        ),
        *(
            Finding("accuracy", low, low, low + 0.04, detail={"records": n}, scope=Scope("group", name=name), **common)
            for name, n, low in GROUPS
        ),
        Finding("accuracy", None, reason=Term("no_attack"), release="forest", scope=Scope("group", name="class 2"),
                detail={"records": 3}),
        *(
            Finding(
                quantity, low, low - 0.01, low + 0.01, scope=Scope("slice", name=f"town = {name}"),
                operating_point=point,
                detail={"records": 50, "column": 0, "rest": rest, "rest_low": rest - 0.01, "rest_high": rest + 0.01},
                **common,
            )
            for name, low, rest in (("Bern", 0.9, 0.6), ("Chur", 0.6, 0.9))
            for quantity, point in (("accuracy", {"prior": 0.5}), ("tpr", {"fpr": 0.01}))
        ),
    ]  # fmt: skip
    check = {"check": "auc", "limit": 0.6, "attack": "lira", "value": 0.9, "low": 0.88, "high": 0.92}
    unread = {"check": "smallest_leaf", "limit": 10, "reason": {"id": "structure_not_readable", "values": {}}}
    kept = {"check": "claim", "outcome": "kept"}
    checks = [{**check, "outcome": "not_kept"}, {**unread, "outcome": "open"}, kept]
    groups = [
        {"name": name, "records": n, "judged": True, "joined": [], "models_needed": None, "exposed": 5}
        for name, n, _ in GROUPS
    ]
    groups[2] |= {"joined": ["class 2", "class 3"], "models_needed": 99}
    report = made(
        won=spread(64, w32=90, w64=10),
        verdict=Verdict(claim, "refuted", "epsilon", 4.0, 5.769, 0.999, "lira", at, reason=Term("shift")),
        findings=tuple(found),
        facts={
            "data": {"name": "kunden.csv", "digest": "0123456789abcdef", "records": 100},
            "description": "a forest", "knowledge": "others", "population": 5, "steps_by": "own_loop",
            "prepared": "Columns were encoded", "sampled_from": 500, "units": 90, "family": "trees",
            "slices": {"attack": "lira", "columns": ["town"], "intervals": 6, "left_out": 1},
            "groups": {"groups": groups, "least": 30, "intervals": 6, "left_out": 1, "reason": None},
        },
        about={
            "unit": "customer", "date": "1 December", "command": "leakbound audit",
            "notes": ["a note", "another", "a third"],
            "owner_notes": ["for the owner"], "versions": {"numpy": "2"}, "failed": {"tree": "it cannot be fitted"},
            "decisions": [{"release": "forest", "verdict": "ask", "checks": checks, "left_out": ["rmia"]}],
            "plan": {"author": "Ada", "policy": {"title": "A policy", "signs": ["Owner"], "then": {"ask": "Ask Bob."}}},
        },
    )  # fmt: skip
    first = {"label": ["9"], "name": ["P-1"], "log_odds": [[1.0, -1.0]], "member": [[1, 0]]}
    table = {
        "release": ["forest"], "record": [17], "games": [64], "won": [64], "low": [0.88], "exposed": [True],
        "margin": [1.0], "preview": [{"image": [[0, 255], [255, 0]], "fields": {"age": "40"}}], **first,
    }  # fmt: skip
    execution = ExecutionFacts(reused=1, made=2, first_written="a", last_written="b", other_machine=1, differing=1)
    proof = Curve("a proof", "forest", "certified", Gaussian(1.0), verdict=Verdict(claim, "refuted", "mu", 1.0, 2.0))
    about = report.about.model_copy(update={"execution": execution})
    return replace(report, about=about, curves=(*report.curves, proof), record_table=table)
