"""``leakscope reproduce``: experiments of the papers, beside what is printed."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.cli.options import argument, command, option
from leakscope.cli.output import refuse_file, say
from leakscope.papers import PAPERS
from leakscope.version import __version__

if TYPE_CHECKING:
    from leakscope.papers import Experiment

PAGE = "papers.html"


OPTIONS = (
    argument("name", str, "Experiment or paper; all, in quick mode, unless given."),
    option("listed", bool, "Name the experiments.", False, "--list"),
    option("quick", bool, "Small sizes instead of the paper's own.", False),
    option("out", Path, "Folder of numbers, figures, claims and the page.", Path("leakscope-papers")),
    option("store", Path | None, "Folder of finished runs. [OUT/store]"),
    option("n_jobs", int | None, "Worker processes. [all cores]"),
    option("seed", int, "Of all random numbers.", 0),
    option("download", bool, "Fetch data sets that are not there.", False),
    option("as_json", bool, "Print the claims as JSON and nothing else.", False, "--json"),
)
HELP = """Repeat the experiments of five papers and compare with what they print.

Each writes numbers (CSV), its figure (PNG and SVG) and its claims; one page shows them all."""


def _reproduce(name: str | None, listed: bool, as_json: bool, **given: Any) -> None:
    if listed:
        print("\n".join(f"{each.name:24}  {each.title}" for each in PAPERS.values()))
        return
    documents = _run(name, **given)
    if as_json:
        sys.stdout.write(json.dumps(documents, indent=1) + "\n")
    else:
        print(import_module("leakscope.reports").claims_table(documents))
    say(f"wrote {given['out'] / PAGE}")


def _run(name: str | None, *, quick: bool, out: Path, download: bool, **work: Any) -> list[dict[str, Any]]:
    """Run the experiments of a name and write their page; what each of them says."""
    room = import_module("leakscope.papers.reproduction")
    chosen: list[Experiment] = room.find(name)
    if download:
        os.environ[import_module("leakscope.papers.data").FETCH] = "1"
    refuse_file(out)
    lab = import_module("leakscope.papers.lab").Lab(
        quick or name is None, work["seed"], work["store"] or out / "store", work["n_jobs"]
    )
    if len(chosen) == 1:
        if not _was_lacking(room, chosen[0], out):
            room.refuse_existing(out / _folder(chosen[0]))
        if reason := room.lacking(chosen[0]):
            raise ValueError(f"{chosen[0].name}: {reason}")
    for each in PAPERS.values():  # a damaged one is found before hours are spent
        room.finished(out / _folder(each))
    for each in chosen:
        if _there(room, each, lab, out) is None and not _was_lacking(room, each, out):
            room.refuse_existing(out / _folder(each))
    documents = [_one(room, each, lab, out) for each in chosen]
    _write_page(room, out)
    return documents


reproduce = command(HELP, _reproduce, OPTIONS, "reproduce")


def _one(room: Any, experiment: Experiment, lab: Any, out: Path) -> dict[str, Any]:
    """Run an experiment and write it, or say why it was not run; of several, those that are there stay."""
    started, folder = time.monotonic(), out / _folder(experiment)
    if (there := _there(room, experiment, lab, out)) is not None:
        say(f"{experiment.name}: is there already")
        return there
    reason = room.lacking(experiment)
    outcome = None if reason else experiment.module.measure(lab)
    found = room.Reproduction(experiment, lab, outcome, reason)
    if _was_lacking(room, experiment, out):
        shutil.rmtree(folder)
    found.write(folder)
    seconds = round(time.monotonic() - started, 1)
    words = ["leakscope reproduce", experiment.name, *["--quick"] * lab.quick, *[f"--seed {lab.seed}"] * bool(lab.seed)]
    run = {"command": " ".join(words), "seconds": seconds, "leakscope": __version__}  # of a clock: in no other file
    import_module("leakscope.reports").write(folder / "run.json", json.dumps(run, indent=1) + "\n")
    say(f"{experiment.name}: {reason or f'{seconds:.0f} s'}")
    return found.document()


def _write_page(room: Any, out: Path) -> None:
    """Write the page of all experiments in the folder, in the order of the papers."""
    documents, figures = [], {}
    for each in PAPERS.values():
        folder = out / _folder(each)
        if (document := room.finished(folder)) is not None:
            documents.append(document)
        if (folder / "figure.svg").is_file():
            figures[each.name] = (folder / "figure.svg").read_bytes()
    report = import_module("leakscope.reports")
    report.write(out / PAGE, report.claims_page(documents, figures))


def _there(room: Any, experiment: Experiment, lab: Any, out: Path) -> dict[str, Any] | None:
    """Read an earlier run of the same experiment, scale, seed, version and data."""
    found = room.finished(out / _folder(experiment))
    if found is None or found["reason"] or not room.Reproduction(experiment, lab, None).same_run(found):
        return None
    return found


def _was_lacking(room: Any, experiment: Experiment, out: Path) -> bool:
    """Whether all that its folder says is why it could not be run: nothing is lost with that."""
    found = room.finished(out / _folder(experiment))
    return found is not None and bool(found["reason"])


def _folder(experiment: Experiment) -> str:
    return experiment.name.replace("/", "-")
