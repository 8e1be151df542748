"""Make ``first_claims.csv``, the papers' claims as they were first committed: ``python -m tests.papers.first_claims``.

A row holds the commit's day, and the claim's kind, value, tolerance and erratum of that day. The history is read in the
order of its commits, so that running this again changes no row that is there.
"""

from __future__ import annotations

import csv
import subprocess
import tomllib
from pathlib import Path

from leakbound.papers import PAPERS
from leakbound.papers.printed import unfolded

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("first_claims.csv")
COLUMNS = ("experiment", "key", "since", "kind", "value", "tolerance", "erratum")


def git(*words: str) -> str:
    """What git prints, in the repository of this file."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def claims_at(commit: str, paper: str) -> list[dict[str, object]]:
    """All claims of a paper as a commit has them."""
    path = f"src/leakbound/papers/{paper}/printed.toml"
    if not git("ls-tree", commit, "--", path):
        return []
    tables = tomllib.loads(git("show", f"{commit}:{path}"))["claim"]
    return [row | {"experiment": f"{paper}/{row['experiment']}"} for table in tables for row in unfolded(table)]


def first_claims() -> list[dict[str, object]]:
    """Each claim as it was first committed, in that order."""
    rows: dict[tuple[object, object], dict[str, object]] = {}
    for line in git("log", "--reverse", "--format=%H %as", "--", "src/leakbound/papers/*/printed.toml").splitlines():
        commit, day = line.split()
        for paper in dict.fromkeys(experiment.paper for experiment in PAPERS.values()):
            for claim in claims_at(commit, paper):
                first = {"since": day, "value": "", "tolerance": 0.0, "erratum": ""} | claim
                rows.setdefault((claim["experiment"], claim["key"]), {name: first[name] for name in COLUMNS})
    return list(rows.values())


if __name__ == "__main__":
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(first_claims())
