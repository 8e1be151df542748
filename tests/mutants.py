"""Mutants: one operator, number or condition of the source is changed, and some test must fail.

``python -m tests.mutants`` draws 200 of all mutants of the rooms below. cosmic-ray makes them; those that change
nothing but an annotation are left out. Which tests run a line is recorded once, with coverage.py; a mutant is run
against these tests until the first one fails, those of its own room first. What lives and is not in
``tests/mutants.toml``, with the reason why no test can or need see it, is an error.

A mutant is drawn by the digest of its own text, so a change elsewhere leaves the others as they are.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import NamedTuple
from xml.etree import ElementTree as ET

import coverage
import pytest
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).parents[1]
ACCEPTED = ROOT / "tests" / "mutants.toml"
PACKAGE = Path("src/leakbound")
MUTATED = ("noise", "protection", "metrics", "bounds", "auditing/claim_tests.py")
TESTS = ("noise", "protection", "metrics", "bounds", "bounding", "theory", "auditing/test_claim_tests.py")
ARITHMETIC = {"Add", "Sub", "Mul", "Div", "Pow"}
OTHER_OPERATORS = {
    "core/AddNot",
    "core/NumberReplacer",
    "core/ReplaceAndWithOr",
    "core/ReplaceBreakWithContinue",
    "core/ReplaceFalseWithTrue",
    "core/ReplaceOrWithAnd",
    "core/ReplaceTrueWithFalse",
    "core/ReplaceUnaryOperator_Delete_Not",
    "core/ReplaceUnaryOperator_USub_UAdd",
    "core/ZeroIterationForLoop",
}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
AS_USERS_RUN_IT = {"LEAKBOUND_CHECK_ANNOTATIONS": "none"}  # a mutant must be seen by a value, not by a type


@dataclass(frozen=True)
class Mutant:
    """A file with one change.

    Parameters
    ----------
    file : Path
        From the root of the checkout.
    line : int
        Of the change, from 1.
    before, after : str
        The changed lines, without the spaces around them.
    source : str
        The whole file with the change.
    """

    file: Path
    line: int
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is, wherever the line is."""
        return str(self.file), self.before, self.after

    @property
    def text(self) -> str:
        """It in a line."""
        return f"{self.file}:{self.line}: {self.before}  ->  {self.after}"


class Covered(NamedTuple):
    """Which tests run a line, and how long each takes."""

    by_line: Mapping[str, Mapping[int, set[str]]]
    seconds: Mapping[str, float]


def main() -> int:
    """Run the drawn mutants, and print what became of each; 1 if one lives that is not accepted, or was not tested."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutants", type=int, default=200, help="how many are drawn")
    parser.add_argument("--draw", default="0", help="another text draws others")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=300, help="of tests, for a mutant")
    parser.add_argument("--only", default="", help="files whose path holds this text")
    given = parser.parse_args()
    accepted = accepted_survivors()
    drawn = draw(given.mutants, given.draw, given.only)
    with tempfile.TemporaryDirectory() as folder:
        copies = [copy_of_checkout(Path(folder, f"copy-{number}")) for number in range(given.workers)]
        covered = coverage_of_tests(copies[0], given.workers)
        free: Queue[Path] = Queue()
        for copy in copies:
            free.put(copy)

        def judged(mutant: Mutant) -> str:
            copy = free.get()
            try:
                return fate(mutant, copy, covered, given.seconds)
            except RuntimeError as problem:
                print(problem, flush=True)
                return "error"
            finally:
                free.put(copy)

        fates: defaultdict[str, list[Mutant]] = defaultdict(list)
        with ThreadPoolExecutor(given.workers) as pool:
            for mutant, word in zip(drawn, pool.map(judged, drawn), strict=True):
                if word not in ("killed", "error") and mutant.key in accepted:
                    word = "accepted"
                fates[word].append(mutant)
                print(f"{word:>10}  {mutant.text}", flush=True)
    print(", ".join(f"{len(fates[word])} {word}" for word in sorted(fates)))
    return int(bool(set(fates) - {"killed", "accepted"}))


def accepted_survivors() -> set[tuple[str, str, str]]:
    """Read the list of survivors that are known, each with its reason."""
    rows = tomllib.loads(ACCEPTED.read_text(encoding="utf-8"))["survivor"]
    for row in rows:
        if not row["reason"].strip():
            raise ValueError(f"{ACCEPTED}: {row['before']} has no reason")
    return {(row["file"], row["before"], row["after"]) for row in rows}


def draw(n_mutants: int, text: str = "0", only: str = "") -> list[Mutant]:
    """Draw mutants by the digests of what is changed: only those that are drawn are made."""
    places: dict[bytes, tuple[Path, str, int]] = {}
    for file in mutated_files():
        if only not in str(file):
            continue
        for name, occurrence, *change in changes_in(file):
            digest = hashlib.sha256(repr((text, str(file), name, *change)).encode()).digest()
            places[digest] = (file, name, occurrence)
    drawn: dict[tuple[str, str, str], Mutant] = {}
    for digest in sorted(places):
        if len(drawn) == n_mutants:
            break
        mutant = mutated(*places[digest])
        if mutant is not None:
            drawn.setdefault(mutant.key, mutant)
    return list(drawn.values())


def mutated_files() -> list[Path]:
    """List the files whose mutants are drawn."""
    files: list[Path] = []
    for name in MUTATED:
        place = ROOT / PACKAGE / name
        files += [place] if place.is_file() else sorted(place.rglob("*.py"))
    return [file.relative_to(ROOT) for file in files if file.name != "__init__.py"]


def changes_in(file: Path) -> Iterator[tuple[str, int, str, int]]:
    """List what can be changed: operator, its place in the file, the line, and its place among equal ones."""
    source = (ROOT / file).read_text(encoding="utf-8")
    lines, nodes = source.splitlines(), list(ast_nodes(get_ast(source)))
    for name in operator_names():
        operator = plugins.get_operator(name)()
        seen: Counter[str] = Counter()
        occurrence = 0
        for node in nodes:
            for (line, _), _ in operator.mutation_positions(node):
                before = lines[line - 1].strip()
                yield name, occurrence, before, seen[before]
                seen[before] += 1
                occurrence += 1


def mutated(file: Path, name: str, occurrence: int) -> Mutant | None:
    """Make a mutant; None where it is the same program, or none."""
    source = (ROOT / file).read_text(encoding="utf-8")
    changed = mutate_code(source, plugins.get_operator(name)(), occurrence)
    if changed is None or meaning(changed) in (meaning(source), None):
        return None
    lines, after = source.splitlines(), changed.splitlines()
    line = next(number for number, both in enumerate(zip(lines, after, strict=False)) if both[0] != both[1])
    return Mutant(file, line + 1, lines[line].strip(), after[line].strip(), changed)


def operator_names() -> list[str]:
    """List the operators: arithmetic, comparisons, conditions, numbers, loops."""
    chosen = []
    for name in sorted(plugins.operator_names()):
        kind, _, change = name.removeprefix("core/").partition("_")
        is_arithmetic = kind == "ReplaceBinaryOperator" and set(change.split("_")) <= ARITHMETIC
        is_comparison = kind == "ReplaceComparisonOperator" and not change.endswith(("_Is", "_IsNot"))
        if is_arithmetic or is_comparison or name in OTHER_OPERATORS:
            chosen.append(name)
    return chosen


def meaning(source: str) -> str | None:
    """Write a program without annotations and decorators, which no test need see; None if it is no program."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns, node.decorator_list = None, []
        elif isinstance(node, ast.ClassDef):
            node.decorator_list = []  # frozen, eq
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


def copy_of_checkout(place: Path) -> Path:
    """Copy what git knows, and what is new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    return place


def all_pass(copy: Path, arguments: Sequence[str], seconds: float | None = None) -> bool | None:
    """Run tests of a copy with its own sources; None where they took too long.

    Raises
    ------
    RuntimeError
        If no test ran: pytest was interrupted, did not understand its arguments, or found no test.
    """
    environment = os.environ | ONE_THREAD | AS_USERS_RUN_IT | {"PYTHONPATH": str(copy / "src")}
    # a module that a mutant makes impossible to import fails, as a test does
    options = ["-p", "no:cacheprovider", "--continue-on-collection-errors"]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout.decode(errors='replace')[-2000:]}")
    return done.returncode == pytest.ExitCode.OK


def coverage_of_tests(copy: Path, workers: int) -> Covered:
    """Run the tests once, and record which of them run each line."""
    database, times = copy / "covered", copy / "times.xml"
    arguments = [f"tests/{name}" for name in TESTS]
    options = [f"--cov={copy / PACKAGE}", "--cov-context=test", "--cov-report=", f"--junitxml={times}"]
    settings = copy / "contexts.toml"
    settings.write_text(f'[tool.coverage.run]\ndata_file = "{database}"\n', encoding="utf-8")
    if not all_pass(copy, [*options, f"--cov-config={settings}", "-n", str(workers), *arguments]):
        raise RuntimeError("the tests fail without any mutant")
    data = coverage.CoverageData(str(database))
    data.read()
    by_line: dict[str, dict[int, set[str]]] = {}
    for file in data.measured_files():
        of_file: dict[int, set[str]] = {}
        for line, contexts in data.contexts_by_lineno(file).items():
            of_file[line] = {context.rpartition("|")[0] for context in contexts if context}  # less "|run"
        by_line[str(Path(file).relative_to(copy))] = of_file
    seconds: defaultdict[str, float] = defaultdict(float)
    for case in ET.parse(times).getroot().iter("testcase"):
        seconds[f"{case.get('classname')}::{case.get('name')}"] += float(case.get("time") or 0)
    return Covered(by_line, seconds)


def fate(mutant: Mutant, copy: Path, covered: Covered, seconds: float) -> str:
    """Run a mutant against the tests of its line: killed, lives, undecided (too slow), or unseen (no test runs it)."""
    tests = tests_of(mutant, covered)
    if not tests:
        return "unseen"
    of_its_file = [test for test in tests if is_of_file(test, mutant)]
    others = [test for test in tests if not is_of_file(test, mutant)]
    place = copy / mutant.file
    unchanged = place.read_text(encoding="utf-8")
    try:
        place.write_text(mutant.source, encoding="utf-8")
        for part in filter(None, (of_its_file, others)):  # to collect one file of tests is quick, and mostly enough
            passed = all_pass(copy, ["-x", *listed_in(copy, part)], seconds)
            if passed is None:
                return "undecided"
            if not passed:
                return "killed"
    finally:
        place.write_text(unchanged, encoding="utf-8")
    return "lives"


def listed_in(copy: Path, tests: Sequence[str]) -> list[str]:
    """Write names of tests to a file: they are longer than a command line may be."""
    listed = copy / "tests-of-a-mutant.txt"
    listed.write_text("\n".join(tests), encoding="utf-8")
    return ["-m", "not nightly", f"@{listed}"]


def is_of_file(test: str, mutant: Mutant) -> bool:
    """Whether a test is in the file of tests that is named as the changed file is."""
    return Path(test.partition("::")[0]).stem == f"test_{mutant.file.stem}"


def tests_of(mutant: Mutant, covered: Covered) -> list[str]:
    """List the tests that run the changed line, those of its own room and the short ones first."""
    by_line = covered.by_line.get(str(mutant.file), {})
    tests: set[str] = set()
    for line in lines_of_statement(mutant):
        tests |= by_line.get(line, set())
    if not tests:  # of a constant, which is computed while the file is imported: whatever uses the file
        tests = set().union(*by_line.values())
    room = mutant.file.relative_to(PACKAGE).parts[0]

    def order(test: str) -> tuple[bool, float, str]:
        case = test.replace(".py::", "::").replace("/", ".")
        return not test.startswith(f"tests/{room}/"), covered.seconds.get(case, 0.0), test

    return sorted(tests, key=order)


def lines_of_statement(mutant: Mutant) -> range:
    """Return the lines from the beginning of the innermost statement to the change."""
    first = 1
    for node in ast.walk(ast.parse((ROOT / mutant.file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= (node.end_lineno or node.lineno):
            first = max(first, node.lineno)
    return range(first, mutant.line + 1)


if __name__ == "__main__":
    sys.exit(main())
