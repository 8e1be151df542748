"""``leakbound reproduce``: experiments of the papers, compared with what is printed."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakbound.cli.options import argument, command, grouped, option
from leakbound.cli.output import encodable, refuse_file, say, width
from leakbound.core.checks import printable
from leakbound.papers import PAPERS
from leakbound.version import __version__

if TYPE_CHECKING:
    from leakbound.papers import Experiment

PAGE = "papers.html"


OPTIONS = (
    argument("name", str, "Experiment or paper; all, in quick mode, unless given."),
    option("listed", bool, "Name the experiments.", False, "--list"),
    option("quick", bool, "Small sizes instead of the paper's own.", False),
    option(
        "setting", str, "The one setting to run: text, or another that --list names. [text and all others]", "", "--as"
    ),
    option("values", list[str] | None, "NAME=VALUE, a parameter with another value than the paper's.", flag="--set"),
    option("out", Path, "Folder of numbers, figures, claims and the page.", Path("leakbound-papers")),
    option("store", str | None, "Folder or URL of finished runs. [OUT/store]"),
    option("n_jobs", int | None, "Worker processes. [all cores]"),
    option("seed", int, "Of all random numbers.", 0),
    option("download", bool, "Fetch data sets that are not there.", False),
    option("full", bool, "Print every claim, not the answer alone.", False),
    option("as_json", bool, "Print the claims as JSON and nothing else.", False, "--json"),
)
HELP = """Repeat the experiments of five papers and compare with what they print.

Each writes numbers (CSV), its figure (PNG and SVG) and its claims; one page shows them all."""


def _reproduce(name: str | None, listed: bool, full: bool, as_json: bool, **flags: Any) -> None:
    if listed:
        print("\n".join(_listed(experiment) for experiment in PAPERS.values()))
        return
    documents = _run(name, **flags)
    if as_json:
        sys.stdout.write(json.dumps(documents, indent=1) + "\n")
    else:
        print(encodable(import_module("leakbound.reports").claims_table(documents, width(), full)), end="")
    say(f"wrote {flags['out'] / PAGE}")


def _listed(experiment: Experiment) -> str:
    """Name an experiment and its title; below, its settings other than that of the text, and its parameters."""
    room = import_module("leakbound.papers.reproduction")
    sentences = [experiment.title]
    if settings := room.settings_of(experiment):
        sentences.append(f"--as {', '.join(settings)}")
    if not {"torch", "opacus"} & set(experiment.needs):  # listing imports no PyTorch; these have no parameters
        parameters = room.parameters_of(experiment)
        sentences += [f"--set {each.name}={each.value:g}: {each.says}; {each.range}" for each in parameters]
    lines: list[str] = []
    for text in sentences:
        lines += textwrap.wrap(printable(text), width() - 26, subsequent_indent="  ")
    names = [experiment.name] + [""] * (len(lines) - 1)
    return "\n".join(f"{name:24}  {line}" for name, line in zip(names, lines, strict=True))


def _values(words: list[str] | None) -> dict[str, float]:
    """Read ``NAME=VALUE`` of ``--set``."""
    values = {}
    for word in words or ():
        name, found, value = word.partition("=")
        if name in values:
            raise ValueError(f"--set {name} is given twice")
        try:
            values[name] = float(value)
        except ValueError:
            found = ""
        if not found:
            raise ValueError(f"--set needs NAME=VALUE with a number, as C=20, got {word!r}")
    return values


def _run(
    name: str | None,
    *,
    quick: bool,
    setting: str,
    values: list[str] | None,
    out: Path,
    download: bool,
    **work: Any,
) -> list[dict[str, Any]]:
    """Run the experiments of a name, write their page, and return their documents."""
    room = import_module("leakbound.papers.reproduction")
    experiments: list[Experiment] = room.find(name)
    if download:
        os.environ[import_module("leakbound.papers.data").FETCH] = "1"
    refuse_file(out)
    given = _values(values)
    labs = {}
    for experiment in experiments:
        room.refuse_unknown_setting(experiment, setting)
        labs[experiment.name] = import_module("leakbound.papers.lab").Lab(
            quick or name is None,
            work["seed"],
            work["store"] or out / "store",
            work["n_jobs"],
            setting,
            room.checked_values(experiment, given),
        )
    if len(experiments) == 1:  # one that cannot be run is an error; of several it is a line on the page
        experiment = experiments[0]
        if not _was_lacking(room, experiment, out):
            room.refuse_existing(out / _folder(experiment))
        if reason := room.lacking(experiment):
            raise ValueError(f"{experiment.name}: {reason}")
    for experiment in PAPERS.values():  # a damaged one is found before hours are spent
        room.finished(out / _folder(experiment))
    for experiment in experiments:
        if _finished(room, experiment, labs[experiment.name], out) is None and not _was_lacking(room, experiment, out):
            room.refuse_existing(out / _folder(experiment))
    documents = []
    what = ("experiments", len(experiments)) if len(experiments) > 1 else (experiments[0].name, None)
    with import_module("leakbound.runtime.progress").progress(*what) as advance:
        for experiment in experiments:
            is_there = _finished(room, experiment, labs[experiment.name], out) is not None
            documents.append(_one(room, experiment, labs[experiment.name], out))
            advance(stored=is_there)
    _write_page(room, out)
    return documents


reproduce = command(HELP, _reproduce, grouped(OPTIONS, "Experiment"), "reproduce")


def _one(room: Any, experiment: Experiment, lab: Any, out: Path) -> dict[str, Any]:
    """Run an experiment and write it, or say why it was not run; an earlier run of the same is kept."""
    started, folder = time.monotonic(), out / _folder(experiment)
    if (document := _finished(room, experiment, lab, out)) is not None:
        say(f"{experiment.name}: is there already")
        return document
    reason = room.lacking(experiment)
    outcome = None if reason else experiment.module.measure(lab)
    reproduction = room.Reproduction(experiment, lab, outcome, reason)
    if _was_lacking(room, experiment, out):
        shutil.rmtree(folder)
    reproduction.write(folder)
    seconds = round(time.monotonic() - started, 1)
    words = ["leakbound reproduce", experiment.name]
    if lab.quick:
        words.append("--quick")
    if lab.setting:
        words.append(f"--as {lab.setting}")
    words += [f"--set {parameter}={value!r}" for parameter, value in lab.set.items()]
    if lab.seed:
        words.append(f"--seed {lab.seed}")
    run = {
        "command": " ".join(words),
        "seconds": seconds,
        "leakbound": __version__,
    }  # seconds differ from run to run
    import_module("leakbound.reports").write(folder / "run.json", json.dumps(run, indent=1) + "\n")
    say(f"{experiment.name}: {reason or f'{seconds:.0f} s'}")
    return reproduction.document()


def _write_page(room: Any, out: Path) -> None:
    """Write the page of all experiments in the folder, in the order of the papers."""
    documents, figures = [], {}
    for experiment in PAPERS.values():
        folder = out / _folder(experiment)
        if (document := room.finished(folder)) is not None:
            documents.append(document)
        if (folder / "figure.svg").is_file():
            figures[experiment.name] = (folder / "figure.svg").read_bytes()
    report = import_module("leakbound.reports")
    report.write(out / PAGE, report.claims_page(documents, figures))


def _finished(room: Any, experiment: Experiment, lab: Any, out: Path) -> dict[str, Any] | None:
    """Read an earlier run of the same experiment, scale, seed, version and data."""
    document = room.finished(out / _folder(experiment))
    if document is None or document["reason"] or not room.Reproduction(experiment, lab, None).same_run(document):
        return None
    return document


def _was_lacking(room: Any, experiment: Experiment, out: Path) -> bool:
    """Whether its folder holds only the reason why it could not be run, so that nothing is lost with it."""
    document = room.finished(out / _folder(experiment))
    return document is not None and bool(document["reason"])


def _folder(experiment: Experiment) -> str:
    return experiment.name.replace("/", "-")
