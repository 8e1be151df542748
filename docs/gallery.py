"""Pictures and tables of the papers' experiments for these pages: ``python docs/gallery.py FOLDER``.

The folder is what ``leakscope reproduce --out FOLDER`` wrote, once for each experiment. Experiments that are not in it
keep their picture and table.
"""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from pathlib import Path

from PIL import Image

from leakscope.papers import PAPERS
from leakscope.papers.printed import changes, printed
from leakscope.reports.render.claims import VERDICTS, counted, measured, stated, verdict

HERE = Path(__file__).parent
PICTURES, TABLES = HERE / "_static" / "papers", HERE / "papers"


def picture(source: Path, target: Path) -> None:
    """A figure in 64 colours."""
    with Image.open(io.BytesIO(source.read_bytes())) as image:
        image.convert("RGB").quantize(64, Image.Quantize.MAXCOVERAGE).save(target, optimize=True)


def table(folder: Path) -> str:
    """What was run, and the claims, as Markdown."""
    document = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    lines = [
        f"{document['run']} `{run['command']}`: {counted([document])}.",
        "",
        "| what the paper says | printed | ours | verdict |",
        "|---|---|---|---|",
    ]
    for claim in document["claims"]:
        note = f"; {claim['note']}" if claim["note"] else ""
        says = f"{claim['says']} ({claim['where']}{note})"
        ours = measured(claim).replace("+-", "±")
        lines.append(
            "| " + " | ".join(each.replace("|", "\\|") for each in (says, stated(claim), ours, told(claim))) + " |"
        )
        for tried in claim["tried"]:
            note = f" ({tried['note']})" if tried["note"] else ""
            cells = (f"with *{tried['setting']}*{note}", "", measured(tried).replace("+-", "±"))
            lines.append(
                "| " + " | ".join(each.replace("|", "\\|") for each in (*cells, VERDICTS[tried["verdict"]])) + " |"
            )
    if document["settings"]:
        lines.append("")
    for setting in document["settings"]:
        lines += [f"With *{setting['name']}*: {setting['says']} ({setting['why']}).", ""]
    return "\n".join(lines) + "\n"


def changed() -> str:
    """Changes of the claims since their tolerances were committed, as Markdown."""
    lines = ["| experiment | claims | change | why | was our result known? |", "|---|---|---|---|---|"]
    for paper in dict.fromkeys(experiment.paper for experiment in PAPERS.values()):
        for change in changes(paper):
            keys = ", ".join(f"`{key}`" for key in change.keys)
            known = "yes" if change.after_results else "no"
            lines.append(f"| {change.experiment} | {keys} | {change.what} | {change.why} | {known} |")
    return "\n".join([*lines, "", *committed()]) + "\n"


def committed() -> list[str]:
    """On which days the claims of each experiment were committed, as Markdown."""
    lines = ["| experiment | claims | committed |", "|---|---|---|"]
    for experiment in PAPERS.values():
        days = Counter(claim.since for claim in printed(experiment.paper)[experiment.figure].values())
        lines += [f"| {experiment.name} | {count} | {day} |" for day, count in sorted(days.items())]
    return lines


def told(claim: dict) -> str:
    """The verdict, with a link to the erratum that explains it."""
    if claim["verdict"] == "erratum":
        return f"[the paper errs](errata.md#erratum-{claim['erratum']})"
    return verdict(claim)


def main(results: Path) -> None:
    """All experiments of a folder."""
    for folder in (PICTURES, TABLES):
        folder.mkdir(parents=True, exist_ok=True)
    (TABLES / "changes.md").write_text(changed(), encoding="utf-8")
    for name in (each.replace("/", "-") for each in PAPERS):
        if (results / name / "figure.png").is_file():
            picture(results / name / "figure.png", PICTURES / f"{name}.png")
            (TABLES / f"{name}.md").write_text(table(results / name), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
