"""Other packages on the same arrays as leakbound: ``python -m benchmarks.peers``.

Each package is installed by pip into an environment of its own, with the versions of ``packages.PEERS``, and measured
in a process of its own on one thread. PrivacyGuard, LeakPro and Privacy Meter are read from git checkouts, which
are newer than what PyPI has of them. A package that cannot be installed or run is a row with the reason.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

from benchmarks.peers import arrays
from benchmarks.peers.measured import ABOVE, MEASURES
from benchmarks.peers.packages import PEERS, ROOT, Outcome, commit_of, default_environments, measured

FPRS = (0.001, 0.01)
COLUMNS = ("measure", "package", "call", "AUC", "TPR at FPR 0.1 %", "at 1 %", "value", "level", "CPU s", "note")


def rates(scores: Sequence[float], member: np.ndarray) -> dict[str, float]:
    """AUC, and the largest TPR of a threshold whose FPR is at most that; by scikit-learn for every package."""
    value = np.asarray(scores, dtype=float)
    if value.shape != member.shape:
        raise ValueError(f"{value.size:,} scores for {member.size:,} points")
    if not np.isfinite(value).all():
        raise ValueError(f"{np.count_nonzero(~np.isfinite(value)):,} scores are not finite")
    fpr, tpr, _ = roc_curve(member, value, drop_intermediate=False)
    at = {f"tpr_at_{limit:g}": float(tpr[fpr <= limit].max()) for limit in FPRS}
    return {"auc": float(roc_auc_score(member, value)), **at}


def summary(row: Mapping[str, Any], member: np.ndarray) -> dict[str, Any]:
    """A row without its many numbers: rates of scores, the median of bounds, the level where nothing leaks."""
    kept = {name: value for name, value in row.items() if name not in ("scores", "bounds")}
    try:
        if "scores" in row:
            kept |= rates(row["scores"], member)
        if "bounds" in row:
            bounds = np.asarray(row["bounds"], dtype=float)
            kept["value"] = median(bounds.tolist())
            kept["above_truth"] = int(np.count_nonzero(bounds > arrays.TRUE_EPSILON))
            kept["repetitions"] = len(bounds)
            kept["level"] = row["null_above"] / row["null_repetitions"]
        if "reason" not in row:
            kept["seconds"] = float(row["seconds"])
            kept |= {"setting": [float(value) for value in row["setting"]]} if "setting" in row else {}
            if "scores" not in row and not math.isfinite(kept["value"]):
                raise ValueError(f"the value is {kept['value']}")
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        kept = {name: row.get(name, "") for name in ("measure", "call", "note")} | {"reason": words}
    return kept


def rows_of(outcome: Outcome, member: np.ndarray) -> list[dict[str, Any]]:
    """All rows of a package, or one with the reason why there are none."""
    head = {"package": outcome.peer.title}
    rows = [head | summary(row, member) for row in outcome.rows]
    return rows or [head | {"measure": "", "call": "", "note": "", "reason": outcome.reason}]


def in_order(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """By measure, and in the order of the packages within one; the packages without a measure are last."""
    order = {measure: place for place, measure in enumerate(MEASURES)}
    return sorted(rows, key=lambda row: order.get(row["measure"], len(order)))


def seconds_text(seconds: float) -> str:
    """Three digits."""
    return f"{seconds:.3g}" if seconds < 100 else f"{seconds:.0f}"


def cells(row: Mapping[str, Any]) -> list[str]:
    """The cells of a row of the table."""
    measure = str(row["measure"])
    if "setting" in row:
        measure += ", " + ", ".join(f"{value:g}" for value in row["setting"])
    notes = [str(row["note"])] if row["note"] else []
    if row.get("repetitions", arrays.REPETITIONS) < arrays.REPETITIONS:
        notes.append(f"median of {row['repetitions']}")
    if row.get("above_truth"):
        notes.append(f"above the truth in {row['above_truth']} of {row['repetitions']}")
    if "reason" in row:
        notes = [str(row["reason"])]
        return [measure, row["package"], row["call"], "", "", "", "", "", "", notes[0].replace("|", "/")]
    percents = [f"{100 * row[name]:.2f} %" if name in row else "" for name in (f"tpr_at_{fpr:g}" for fpr in FPRS)]
    return [
        measure,
        row["package"],
        row["call"],
        f"{row['auc']:.4f}" if "auc" in row else "",
        *percents,
        f"{row['value']:.4f}" if "value" in row else "",
        f"{row['null_above']} of {row['null_repetitions']}" if "level" in row else "",
        seconds_text(row["seconds"]),
        "; ".join(notes),
    ]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table in Markdown, with columns of equal width."""
    lines = [list(COLUMNS), *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines)


def machine() -> str:
    """Processor, cores, load and system."""
    processor = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        models = [line.split(":", 1)[1] for line in information.read_text().splitlines() if "model name" in line]
        processor = models[0].strip() if models else processor
    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    return f"{processor}, {os.cpu_count()} cores{load}, {platform.system()}, Python {platform.python_version()}"


def package_line(outcome: Outcome) -> str:
    """Versions and commit of a package, or why it was not measured."""
    versions = [f"{name} {version}" for name, version in outcome.versions.items() if version]
    where = [f"{outcome.peer.repository} {outcome.commit}".strip()] if outcome.commit else []
    failed = [outcome.reason] if outcome.reason else []
    said = [*where, ", ".join(versions), *failed]
    return f"* {outcome.peer.title}: " + "; ".join(part for part in said if part)


def report(outcomes: Sequence[Outcome], rows: Sequence[dict[str, Any]], facts: Mapping[str, str]) -> str:
    """The table with what it was made of."""
    explained = (
        f"value: epsilon (median of {arrays.REPETITIONS}, truth {arrays.TRUE_EPSILON}) or noise multiplier. "
        f"level: null repetitions in which the bound at 95 % confidence is above {ABOVE}. "
        "DP-SGD: noise multiplier, sampling rate, steps; its noise: advantage, sampling rate, steps."
    )
    lines = [f"{name}: {value}" for name, value in facts.items()]
    return "\n".join([*lines, "", table(rows), "", explained, "", *map(package_line, outcomes)])


def parser() -> argparse.ArgumentParser:
    """Build the parser of the options."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=(__doc__ or "").split("\n\n")[1])
    made.add_argument("--environments", type=Path, metavar="DIR", help="where the environments are, and stay")
    made.add_argument("--checkouts", type=Path, metavar="DIR", help="folder with the git checkouts that are read")
    names = [peer.name for peer in PEERS]
    made.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    made.add_argument("--timeout", type=float, default=1800, help="seconds of one installation, or of one run")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the same as JSON")
    return made


def main(arguments: Sequence[str] | None = None, peers: Sequence = PEERS) -> int:
    """Measure the packages, print the table, and write it as JSON."""
    options = parser().parse_args(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    facts = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "command": shlex.join(["python", "-m", "benchmarks.peers", *given]),
        "machine": machine(),
        "leakbound": commit_of(ROOT),
    }
    environments = options.environments or default_environments()
    environments.mkdir(parents=True, exist_ok=True)
    chosen = [peer for peer in peers if not options.only or peer.name in options.only]
    with tempfile.TemporaryDirectory(prefix="leakbound-peers-arrays-") as temporary:
        paths = arrays.write(Path(temporary))
        with np.load(paths[0], allow_pickle=False) as made:
            member = made["member"][0, : int(made["n_points"])]
        places = environments.resolve(), options.checkouts
        outcomes = [measured(peer, paths, *places, options.timeout) for peer in chosen]
    rows = in_order([row for outcome in outcomes for row in rows_of(outcome, member)])
    print(report(outcomes, rows, facts))
    if options.json:
        packages = [
            {
                "name": outcome.peer.name,
                "repository": outcome.peer.repository,
                "commit": outcome.commit,
                "python": outcome.python,
                "versions": outcome.versions,
                "reason": outcome.reason,
            }
            for outcome in outcomes
        ]
        content = {**facts, "packages": packages, "rows": rows}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
