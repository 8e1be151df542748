"""Pictures and tables of the papers' experiments for these pages: ``python docs/gallery.py [FOLDER]``.

The folder is what ``leakbound reproduce --out FOLDER`` wrote, once for each experiment. Claims, numbers and trials of
each full run are kept in ``papers/runs``, compressed; table and picture of every kept run are made again from them.
Experiments that were never kept stay as they are.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from leakbound.papers import PAPERS, Experiment, figures
from leakbound.papers.printed import changes, judged_again, printed
from leakbound.reports.results.papers import compared, counted, measured, stated, verdict

HERE = Path(__file__).parent
PICTURES, TABLES, RUNS = HERE / "_static" / "papers", HERE / "papers", HERE / "papers" / "runs"
CPU_TIME = {  # of one core of a small server, without a GPU
    "izzo2022/figure1": "2 to 9 s",
    "izzo2022/figure2": "3 min",
    "izzo2022/theorem5": "2 to 9 s",
    "azize2024/figure1": "6 min",
    "azize2024/figure2": "82 s",
    "azize2024/table1": "25 min",
    "azize2024/canaries": "23 min (120 trainings)",
    "delgrosso2021/figure3": "21 s",
    "delgrosso2021/section33": "2 to 9 s",
    "delgrosso2021/figure4": "2 h (423 networks)",
    "delgrosso2021/table1": "45 min (24 networks)",
    "delgrosso2021/figure5": "18 min (810 networks)",
    "sablayrolles2019/figure1": "11 s",
    "sablayrolles2019/table1": "40 min (500 splits)",
    "sablayrolles2019/table2": "30 min on a GPU (310 networks); without one 70 min (44 networks of 2,000 images)",
    "sablayrolles2019/table3": "30 min (24 networks)",
    "lowy2024/figure1": "4 min",
    "lowy2024/figure2": "3 min",
    "lowy2024/figure3": "3 min",
    "lowy2024/figure4": "4 min",
    "lowy2024/figure5": "4 min",
    "lowy2024/figure6": "1 min",
}


def picture(experiment: Experiment, result: dict[str, Any], target: Path) -> None:
    """Draw a figure from the numbers of a run, in 64 colours."""
    numbers = pd.read_csv(io.StringIO(result["numbers"]), keep_default_na=False, na_values=[""])
    with figures.looking():
        drawn = figures.as_bytes(experiment.module.draw(numbers), "png")
    with Image.open(io.BytesIO(drawn)) as image:
        image.convert("RGB").quantize(64, Image.Quantize.MAXCOVERAGE).save(target, optimize=True)


def kept(folder: Path) -> dict[str, Any]:
    """What a run left: its command, its claims, its numbers, and the trials behind their means."""
    trials = folder / "trials.csv"
    return {
        "run": json.loads((folder / "run.json").read_text(encoding="utf-8")),
        "claims": json.loads((folder / "claims.json").read_text(encoding="utf-8")),
        "numbers": (folder / "numbers.csv").read_text(encoding="utf-8"),
        "trials": trials.read_text(encoding="utf-8") if trials.is_file() else "",
    }


def read(name: str) -> dict[str, Any] | None:
    """The full run of an experiment, as ``azize2024/figure1``, judged by what is printed; None if it was not kept."""
    file = RUNS / f"{name.replace('/', '-')}.json.gz"
    if not file.is_file():
        return None
    result = json.loads(gzip.decompress(file.read_bytes()))
    result["claims"]["claims"] = judged_again(name, result["claims"]["claims"])
    return result


def table(result: dict[str, Any]) -> str:
    """What was run, and the claims, as Markdown."""
    document, run = result["claims"], result["run"]
    lines = [
        f"{document['run']} `{run['command']}`: {counted([document])}.",
        "",
        "| what the paper says | printed | ours | verdict |",
        "|---|---|---|---|",
    ]
    said = Counter(claim["note"] for claim in document["claims"])
    notes = [note for note, count in said.items() if count > 2 and len(note.split()) > 4]
    for claim in document["claims"]:
        says = f"{claim['says']} ({claim['where']}{noted(claim['note'], notes)})"
        ours = str(measured(claim))
        lines.append(
            "| " + " | ".join(each.replace("|", "\\|") for each in (says, str(stated(claim)), ours, told(claim))) + " |"
        )
        for tried in claim["tried"]:
            note = f" ({tried['note']})" if tried["note"] else ""
            cells = (f"with *{tried['setting']}*{note}", "", str(measured(tried)))
            lines.append("| " + " | ".join(each.replace("|", "\\|") for each in (*cells, str(compared(tried)))) + " |")
    if notes:
        lines += ["", *(f"Note {number}: {note}." for number, note in enumerate(notes, start=1))]
    if document["settings"]:
        lines.append("")
    for setting in document["settings"]:
        lines += [f"With *{setting['name']}*: {setting['says']} ({setting['why']}).", ""]
    return "\n".join(lines) + "\n"


def noted(note: str, repeated: list[str]) -> str:
    """Write a note behind the place of a claim: one of several claims is written once below the table."""
    if not note:
        return ""
    return f"; note {repeated.index(note) + 1}" if note in repeated else f"; {note}"


def as_public_code() -> str:
    """Networks as delgrosso2021's public code trains and asks them, beside its result files, as Markdown.

    From a run of `leakbound.papers.delgrosso2021.figure4.study` on two of the three sets of images.
    """
    numbers = pd.read_csv(RUNS / "delgrosso2021-figure4-two-sets.csv.gz")
    lines = [
        "| images drawn | success | of true members | in the file | bound | in the file | accuracy | in the file |"
    ]
    lines.append("|---|" + "---|" * 7)
    for (data, n), part in numbers[numbers["setting"] != "text"].groupby(["data", "n"], sort=True):
        at = {(row.setting, row.line): row for row in part.itertuples()}
        if ("code", "likelihood") not in at:
            continue
        cells = [f"{ {'mnist': 'MNIST', 'fashion': 'Fashion-MNIST'}[str(data)] }, {n:,}"]
        for quantity, more in (("likelihood", ("trained",)), ("bound", ()), ("test_accuracy", ())):
            own = at["code", quantity]
            cells.append(f"{own.value:.3f} ± {(own.high - own.low) / 2:.3f}")
            cells += [f"{at[setting, quantity].value:.3f}" for setting in (*more, "result file")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def changed() -> str:
    """Changes of the claims since their tolerances were committed, as Markdown: equal ones are one row."""
    claims: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for paper in dict.fromkeys(experiment.paper for experiment in PAPERS.values()):
        for change in changes(paper):
            known = "yes" if change.after_results else "no"
            of_change = claims.setdefault((change.what, change.why, known), {})
            of_change.setdefault(change.experiment, []).extend(change.keys)
    lines = ["| claims | change | why | was our result known? |", "|---|---|---|---|"]
    for (what, why, known), keys in claims.items():
        named = "; ".join(f"{experiment}: `{'`, `'.join(found)}`" for experiment, found in keys.items())
        lines.append(f"| {named} | {what} | {why} | {known} |")
    return "\n".join([*lines, "", *committed()]) + "\n"


def committed() -> list[str]:
    """On which days the claims of each experiment were committed, as Markdown."""
    lines = ["| experiment | claims | committed |", "|---|---|---|"]
    for experiment in PAPERS.values():
        days = Counter(claim.since for claim in printed(experiment.paper)[experiment.figure].values())
        lines += [f"| {experiment.name} | {count} | {day} |" for day, count in sorted(days.items())]
    return lines


def overview() -> str:
    """All experiments with their verdicts, as the tables have them, and what a full run takes, as Markdown."""
    lines = ["| experiment | what the idea is good for | verdicts | CPU time in full |", "|---|---|---|---|"]
    for name, experiment in PAPERS.items():
        file = TABLES / f"{name.replace('/', '-')}.md"
        head = file.read_text(encoding="utf-8").split("\n", 1)[0]
        verdicts = head.rsplit("`: ", 1)[1].removesuffix(".")
        anchor = f"[{name}](#{name.replace('/', '-')})"
        lines.append(f"| {anchor} | {experiment.use} | {verdicts} | {CPU_TIME[name]} |")
    return "\n".join(lines) + "\n"


def told(claim: dict) -> str:
    """The verdict, with a link to the erratum that explains it."""
    if claim["verdict"] == "erratum":
        return f"[{compared(claim)}](errata.md#erratum-{claim['erratum']})"
    return str(verdict(claim))


def main(results: Path | None = None) -> None:
    """Keep the runs of a folder, and make pictures and tables of all that are kept."""
    for folder in (PICTURES, TABLES, RUNS):
        folder.mkdir(parents=True, exist_ok=True)
    for name, experiment in PAPERS.items():
        file = name.replace("/", "-")
        if results is not None and (results / file / "numbers.csv").is_file():
            new = kept(results / file)
            if new["claims"]["scale"] != "full" or new["claims"].get("set"):
                raise ValueError(
                    f"{results / file} is no full run with the paper's own values: {new['run']['command']}"
                )
            content = json.dumps(new).encode()
            (RUNS / f"{file}.json.gz").write_bytes(gzip.compress(content, mtime=0))
        result = read(name)
        if result is not None:
            picture(experiment, result, PICTURES / f"{file}.png")
            (TABLES / f"{file}.md").write_text(table(result), encoding="utf-8")
    (TABLES / "delgrosso2021-figure4-code.md").write_text(as_public_code(), encoding="utf-8")
    (TABLES / "changes.md").write_text(changed(), encoding="utf-8")
    (TABLES / "overview.md").write_text(overview(), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
