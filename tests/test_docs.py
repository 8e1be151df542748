"""The documentation runs: every Python block and every ``leakbound`` line, in order, a folder for each page.

Command lines are called in this process, and only those of the README draw their pages; every night each is a process
of its own, as a user types it, and draws its page.

A fence whose first line is ``# name.suffix`` is also a file of that name; ``# exit code 2`` behind a command
is checked. A text fence right behind one that runs shows a part of what it prints, ``...`` for lines left out.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import pydoc
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from fnmatch import fnmatch
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest
import typer
from docs import gallery
from matplotlib import pyplot as plt

import leakbound as ls
from leakbound.attacks import ATTACKS
from leakbound.bounds import BOUNDS
from leakbound.cli import main as cli
from leakbound.papers import PAPERS, figures
from leakbound.papers.printed import printed
from leakbound.plans.promises import NOISES, Coupling
from leakbound.plans.protects import ProtectionPlan
from leakbound.plans.statistics import STATISTICS
from tests.cli.calling import draw_no_pages
from tests.marks import slow_but
from tests.test_layers import LAYERS
from tests.test_public import FURTHER, public_things

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(python|toml|bash)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"# exit code (\d)$")
BY_DAY = {  # the lines that take seconds each, cheaper; what they print is compared every night
    "n_models=32,": "n_models=4,",
    "--game attribute,column=region --model sklearn.tree:DecisionTreeClassifier --n-models 16 --seed 1": (
        "--game attribute,column=region --model sklearn.tree:DecisionTreeClassifier --n-models 16 --seed 1 --dry-run"
    ),
    "--out claimed   # exit code 2": "--out claimed --dry-run",
    "--attack lira --out quick": "--attack lira --out quick --dry-run",
    "--n-models 16 --policy policy.toml": "--n-models 8 --policy policy.toml",
    "n_estimators=20 --n-models 32 --policy": "n_estimators=20 --n-models 8 --policy",
    "--policy research --out verdict --pdf": "--policy research --out verdict",
    "report = ls.audit(candidates, X, y, n_models=16)": "report = ls.audit(candidates, X, y, n_models=8)",
    '--author "A. Lovelace" --date 2026-11-24   # exit code 3': "--dry-run",
    "--publish --out for-the-researcher": "--publish --out for-the-researcher --dry-run",
    "--by region --levels region=north,south,west --drop age --drop ill --eta 0.05 --unit patient": (
        "--by region --levels region=north,south,west --drop age --drop ill --eta 0.05 --unit patient --promise file"
    ),
    "--promise drawn,fits=1000,games=0 --eta": "--promise drawn,fits=200,games=0 --eta",
    "fits=1000, games=0": "fits=200, games=0",
}
# what public calls return, and what pages of the documentation call by its module
ALSO_SHOWN = {
    "BayesAttacker", "Block", "CalibratedNoise", "Comparison", "DesignTable", "Epsilons", "Merged", "PlantedCanaries",
    "Protected", "RegressionLeakage", "ReleasedStatistic", "WrongTarget", "exit_code", "failures", "observe",
    "require_references", "score_points",
}  # fmt: skip
FAST = ("add-a-method.md", "cheap.md", "networks.md", "report.md")
KEY = re.compile(r"\b[a-z]{2,}(?:19|20)\d\d\b")


def fences(page: Path) -> list[tuple[str, str, str]]:
    """Language and text of the fences that can run, and what the page says that they print."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


Left = tuple[int, str, str]


def typed(arguments: list[str]) -> Left:
    """Exit code, output and errors of a command line as it is typed after ``pip install``."""
    done = subprocess.run([sys.executable, "-m", "leakbound", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def called(arguments: list[str]) -> Left:
    """The same without a new process, which takes several times as long to start as to work."""
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        patch.setattr(sys, "argv", ["leakbound", *arguments])
        patch.setattr(sys, "path", list(sys.path))
        with pytest.raises(SystemExit) as left:
            cli.main()
    return int(left.value.code or 0), out.getvalue(), err.getvalue()


def run(line: str, how: Callable[[list[str]], Left]) -> str:
    """What a command line prints; its exit code is checked."""
    expected = EXIT.search(line)
    code, out, err = how(shlex.split(line, comments=True)[1:])
    assert code == (int(expected[1]) if expected else 0), f"{line}\n{out}\n{err}"
    return out


def prints(text: str, names: dict[str, object], where: str) -> str:
    """What a Python block prints."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(text, where, "exec"), names)
    return said.getvalue()


def solid(text: str) -> list[str]:
    """Lines that are not blank, without the blanks at their ends."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def is_shown(shown: str, said: str) -> bool:
    """Whether a page shows a part of an output, line by line but for ``...``."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in solid(shown))
    return re.search("^" + pattern, "".join(line + "\n" for line in solid(said)), re.MULTILINE) is not None


def by_day(text: str) -> str:
    """The same lines, but for those that take long."""
    for long, short in BY_DAY.items():
        text = text.replace(long, short)
    return text


def test_the_pages_have_the_lines_that_are_cheaper_by_day() -> None:
    texts = [text for page in PAGES for _, text, _ in fences(page)]
    assert [line for line in BY_DAY if not any(line in text for text in texts)] == []


def forget_modules_in(folder: Path) -> None:
    """The next page imports its own files, also where they have the same names."""
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(f"{folder}{os.sep}"):
            del sys.modules[name]


def examples() -> list[Any]:
    """The pages with examples; those that audit and protect are slow."""
    pages = [page for page in PAGES if fences(page)]
    return slow_but(pages, *(page for page in pages if page.name in FAST))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("how", [called, pytest.param(typed, marks=pytest.mark.nightly)], ids=lambda how: how.__name__)
@pytest.mark.parametrize("page", examples(), ids=lambda page: page.name)
def test_every_example_runs(
    page: Path, how: Callable[[list[str]], Left], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "agg")
    if how is called and page.name != "README.md":
        draw_no_pages(monkeypatch)
    names: dict[str, object] = {"__name__": "__main__"}
    for language, written, shown in fences(page):
        text = written if how is typed else by_day(written)
        file = re.match(r"# ([\w-]+\.\w+)\n", text)
        if file:
            Path(file[1]).write_text(text, encoding="utf-8")
        said = ""
        if language == "python":
            said = prints(text, names, f"{page.name}: {text.splitlines()[0]}")
        elif language == "bash":
            said = "".join(run(line, how) for line in text.splitlines() if line.startswith("leakbound "))
        assert not shown or text != written or is_shown(shown, said), f"{text}\nprints\n{said}"
    forget_modules_in(tmp_path)


@pytest.mark.parametrize("shown", ["a\nb\nc\n", "b\n", "a\n\nb  \n", "a\n...\nc\n", "a\n...\nb\n"])
def test_an_output_is_shown(shown: str) -> None:
    assert is_shown(shown, "a\nb\n\nc\n")


@pytest.mark.parametrize("shown", ["d\n", "a\nc\n", "b\na\n", "aa\n", "a\n...\nc\n...\nb\n"])
def test_another_output_is_not_shown(shown: str) -> None:
    assert not is_shown(shown, "a\nb\n\nc\n")


def test_pages_with_examples_are_found() -> None:
    found = {page.name for page in PAGES if fences(page)}
    assert found >= {
        "README.md",
        "tour.md",
        "measure.md",
        "bound.md",
        "limit.md",
        "report.md",
        "add-a-method.md",
    }


def sections(page: str) -> dict[str, str]:
    """The sections of a page that are named by one word."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return dict(re.findall(r"^### ([\w-]+)\n(.*?)(?=^###? )", text, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize(("page", "table"), [("measure.md", ATTACKS), ("bound.md", BOUNDS)])
def test_every_row_has_a_section_with_its_source(page: str, table) -> None:
    found = sections(page)
    for name, row in table.items():
        assert name in found
        for key in KEY.findall(row.source):
            assert key in found[name], f"{name} does not name {key}"


def test_every_bound_has_a_command_a_call_and_a_price() -> None:
    for name, text in sections("bound.md").items():
        assert f"leakbound bound {name} " in text
        assert "```python\n" in text
        assert "*Price*" in text
        assert BOUNDS[name].status in text.lower()


def test_the_page_of_limits_names_every_choice() -> None:
    text = (ROOT / "docs" / "limit.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")]
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert {*NOISES, *STATISTICS, *get_args(Coupling)} - {"auto"} <= named
    options = set(re.findall(r"--([\w-]+)", " ".join(rows)))
    assert options <= {name.replace("_", "-") for name in ProtectionPlan.model_fields} | {"signals", "plan", "range"}


def test_every_erratum_has_a_test_of_its_values() -> None:
    text = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    entries = re.findall(r"^\(erratum-(\d+)\)=\n### \1\. ", text, re.MULTILINE)
    rows = re.findall(r"^\| \[(\d+)\]\(#erratum-\1\) \|", text, re.MULTILINE)
    tests = (ROOT / "tests" / "papers" / "test_errata_values.py").read_text(encoding="utf-8")
    bodies = dict(re.findall(r"^def test_erratum_(\d+)\(\):\n((?:(?:    .*)?\n)+)", tests, re.MULTILINE))
    assert entries == rows == list(bodies)
    assert all("    assert " in body for body in bodies.values())


TABLE = re.compile(
    r"^\.\. (auto|current)module:: (\S+)\n\n\.\. autosummary::\n(?:   :.*\n)+\n((?:   \S+\n)+)", re.MULTILINE
)


def reference_tables() -> list[tuple[str, str, list[str]]]:
    """The tables of the reference: whether all of a module is in it, the module, and the names, each with a page."""
    pages = (ROOT / "docs" / "reference").glob("*.md")
    tables = TABLE.findall("".join(page.read_text(encoding="utf-8") for page in pages))
    return [(kind, module, names.split()) for kind, module, names in tables]


def test_the_reference_describes_every_public_function_and_class() -> None:
    names = {name.rpartition(".")[2] for _, _, names in reference_tables() for name in names}
    things = {name for name in ls.__all__ if callable(getattr(ls, name))}
    assert things - names == set()


def test_a_table_of_a_module_has_all_that_is_public_in_it() -> None:
    tables = [(module, names) for kind, module, names in reference_tables() if kind == "auto"]
    assert len(tables) >= 20
    public = {id(thing) for _, thing in public_things()}
    for name, shown in tables:
        module = import_module(name)
        keys = getattr(module, "__all__", None) or [key for key, thing in vars(module).items() if is_of(thing, name)]
        own = {key for key in keys if id(getattr(module, key)) in public}
        assert own <= set(shown), name


def is_of(thing: object, module: str) -> bool:
    """Whether a module defines a function or class."""
    return getattr(thing, "__module__", "") == module


def test_the_reference_has_public_names_and_a_few_that_these_return() -> None:
    public = {id(thing) for _, thing in public_things()} | {id(pydoc.locate(name)) for name in FURTHER}
    shown = {f"{module}.{name}" for _, module, names in reference_tables() for name in names}
    others = {name.rpartition(".")[2] for name in shown if id(pydoc.locate(name)) not in public}
    assert others == ALSO_SHOWN


def test_the_page_of_the_command_line_has_every_command() -> None:
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^```{command-help} (.+)$", text, re.MULTILINE))
    commands: set[str] = set()
    for name, command in typer.main.get_command(cli.app).commands.items():
        commands |= {name, *(f"{name} {each}" for each in getattr(command, "commands", {}))}
    assert shown == commands


def test_terms_of_the_glossary_are_in_order_and_described_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^(\S.*)\n  \S", text.partition(":sorted:")[2], re.MULTILINE)
    assert len(terms) >= 40
    assert [term.lower() for term in terms] == sorted({term.lower() for term in terms})


def test_every_key_has_a_reference() -> None:
    text = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\*\*(\w+)\*\*$", text, re.MULTILINE))
    used: set[str] = set()
    for path in [*(ROOT / "src").rglob("*.py"), *PAGES]:
        used.update(KEY.findall(path.read_text(encoding="utf-8")))
    assert used <= known, f"without a reference: {sorted(used - known)}"


def test_every_plan_is_valid() -> None:
    from leakbound.plans import from_toml

    for path in sorted((ROOT / "docs" / "plans").glob("*.toml")):
        read, written = from_toml(path).model_dump(exclude_unset=True), tomllib.loads(path.read_text())
        assert read.keys() >= written.keys()
        assert [model["name"] for model in read["model"]] == [model["name"] for model in written["model"]]


def test_the_design_names_every_room() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    drawn = re.search(r"^## Folders\n\n[^`]*```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert drawn
    for layer, rooms in LAYERS.items():
        lines = re.search(rf"^{layer} +(.*?)(?=^\d|\Z)", drawn[1], re.MULTILINE | re.DOTALL)
        assert lines, layer
        assert set(rooms) <= set(re.findall(r"\w+", lines[1]))


def test_every_experiment_of_the_papers_has_a_picture_and_a_table() -> None:
    for each in PAPERS.values():
        name, text = each.name.replace("/", "-"), (ROOT / "docs" / f"{each.paper}.md").read_text(encoding="utf-8")
        assert f"](_static/papers/{name}.png)\n\n```{{include}} papers/{name}.md\n```" in text, name
        assert (ROOT / "docs" / "_static" / "papers" / f"{name}.png").is_file(), name


FIGURES = sorted((ROOT / "docs" / "examples").glob("*.py"))


@pytest.mark.parametrize("script", FIGURES, ids=lambda script: script.stem)
def test_a_figure_of_the_gallery_is_on_its_page_with_a_title_a_text_and_few_lines(script: Path) -> None:
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown, listed = re.findall(r"minigallery:: (\S+)", page), re.findall(r"^gallery/\S+", page, re.MULTILINE)
    assert any(fnmatch(f"examples/{script.name}", pattern) for pattern in shown)
    assert any(fnmatch(f"gallery/{script.stem}", pattern) for pattern in listed)
    text = script.read_text(encoding="utf-8")
    title, rule, *described = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert rule == "=" * len(title)
    assert "".join(described)
    code = text.split('"""\n')[-1].splitlines()
    assert len([line for line in code if line.strip() and not line.startswith(("import ", "from "))]) <= 12


def test_the_gallery_has_many_figures() -> None:
    assert len(FIGURES) >= 16


@pytest.mark.nightly  # the site draws them all on every change, and is not built if one fails
@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("script", FIGURES, ids=lambda script: script.stem)
def test_a_figure_of_the_gallery_is_drawn_without_a_warning(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    plt.close("all")
    runpy.run_path(str(script))
    (number,) = plt.get_fignums()
    axes = plt.figure(number).axes[0]
    written = [text.get_text() for text in (axes.xaxis.label, axes.yaxis.label, *axes.texts)]
    assert any(written)
    plt.close("all")
    assert not list(tmp_path.iterdir())


RUNS = ROOT / "docs" / "papers" / "runs"
KEPT = [name for name in PAPERS if (RUNS / f"{name.replace('/', '-')}.json.gz").is_file()]


@pytest.mark.by_day("izzo2022/theorem5", "delgrosso2021/figure3", "sablayrolles2019/table3")
@pytest.mark.parametrize("name", KEPT)
def test_a_table_is_that_of_the_run_that_is_kept_and_its_picture_can_be_drawn(name: str) -> None:
    """The verdicts are computed anew from the printed claims of today."""
    result = gallery.read(name)
    assert result
    assert gallery.table(result) == (ROOT / "docs" / "papers" / f"{name.replace('/', '-')}.md").read_text("utf-8")
    module = PAPERS[name].module
    with figures.looking():
        assert module.draw(pd.read_csv(io.StringIO(result["numbers"]))).axes


ITEMS = {paper: ROOT / "docs" / "papers" / f"items-{paper}.md" for paper in {each.paper for each in PAPERS.values()}}
VERDICTS = (
    "holds",
    "wrong",
    "misprint",
    "agrees",
    "identity",
    "differs",
    "explained",
    "cannot tell",
    "smaller run",
    "not run",
    "not in leakbound",
)


@pytest.mark.slow
@pytest.mark.parametrize("paper", sorted(ITEMS))
def test_every_statement_of_a_paper_says_where_it_is_and_what_tests_it(paper: str) -> None:
    heads, _, *rows = ITEMS[paper].read_text(encoding="utf-8").strip().splitlines()
    assert heads == "| item | what it says | where it is | test | verdict |"
    used: set[str] = set()
    for row in rows:
        cells = [cell.strip() for cell in row.strip().strip("|").split(" | ")]
        assert len(cells) == 5, row
        assert all(cells), row
        _, _, where, tests, verdict = cells
        assert verdict.startswith(VERDICTS), row
        for name in re.findall(r"`(leakbound[\w.]+)`", where):
            assert is_there(name), name
        for name in re.findall(r"`(\w+/\w+)`", where):
            assert name in PAPERS, name
        for file, name in re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", tests):
            assert f"def {name.split('::')[-1]}(" in (ROOT / file).read_text(encoding="utf-8"), row
        used |= set(re.findall(r"`(\w+/\w+:[\w{}.]+)`", tests))
        assert where == "not in leakbound" or "`" in tests, row
    assert used <= written_keys(paper)


def is_there(name: str) -> bool:
    """Whether a name can be imported; where that needs PyTorch and it is not here, whether it is written anywhere."""
    try:
        return pydoc.locate(name) is not None
    except (ModuleNotFoundError, pydoc.ErrorDuringImport):
        if find_spec("torch") is not None:
            raise
    last = name.rpartition(".")[2]
    sources = list((ROOT / "src" / "leakbound").rglob("*.py"))
    written = re.compile(rf"^\s*(def|class) {last}\b", re.MULTILINE)
    return any(path.stem == last or written.search(path.read_text(encoding="utf-8")) for path in sources)


def written_keys(paper: str) -> set[str]:
    """The keys of the claims as printed.toml has them, before and after its names are filled in."""
    text = (ROOT / "src" / "leakbound" / "papers" / paper / "printed.toml").read_text(encoding="utf-8")
    written = {f"{paper}/{claim['experiment']}:{claim['key']}" for claim in tomllib.loads(text)["claim"]}
    return written | {f"{paper}/{figure}:{key}" for figure, claims in printed(paper).items() for key in claims}


def test_the_runs_that_are_kept_are_small() -> None:
    assert sum(file.stat().st_size for file in RUNS.iterdir()) < 1e6


def test_the_overview_has_the_verdicts_of_the_tables() -> None:
    assert gallery.overview() == (ROOT / "docs" / "papers" / "overview.md").read_text("utf-8")
    assert gallery.as_public_code() == (ROOT / "docs" / "papers" / "delgrosso2021-figure4-code.md").read_text("utf-8")
    assert gallery.changed() == (ROOT / "docs" / "papers" / "changes.md").read_text("utf-8")


@pytest.mark.parametrize("name", PAPERS)
def test_a_table_of_claims_has_every_printed_number(name: str) -> None:
    text = (ROOT / "docs" / "papers" / f"{name.replace('/', '-')}.md").read_text(encoding="utf-8")
    paper, figure = name.split("/")
    for claim in printed(paper)[figure].values():
        assert f"| {claim.says} ({claim.where}" in text, claim.key


@pytest.mark.parametrize("name", ["models-light", "models-dark", "models-phone", "models-print", "report"])
def test_pictures_of_reports_are_small(name: str) -> None:
    file = ROOT / "docs" / "_static" / f"{name}.png"
    assert file.stat().st_size < 150_000
    assert any(f"_static/{name}.png" in page.read_text(encoding="utf-8") for page in PAGES)
