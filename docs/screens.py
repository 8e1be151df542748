"""Pictures of a page of several models on screens and on paper: ``python -m docs.screens``, in the root of the clone.

It runs the plan ``docs/plans/candidates.toml`` in a temporary folder and writes ``docs/_static/models-*.png``. It needs
Chromium, and ``pip install pypdfium2``, which draws the sheets of a PDF.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pypdfium2 as pdfium  # pyright: ignore[reportMissingImports]
from docs.picture import save, screen
from PIL import Image

HERE = Path(__file__).parent
PLAN, PICTURES = HERE / "plans" / "candidates.toml", HERE / "_static"
WIDE, PHONE = (1280, 1260), (400, 1330)  # the table of the models and its charts
GAP = 24  # pixels between two pictures side by side
DOTS_PER_INCH, POINTS_PER_INCH = 75, 72
PAGES = 2  # of paper
NOT_RELEASED = 3  # exit code: the policy does not let every model go


def side_by_side(images: Sequence[Image.Image]) -> Image.Image:
    """Pictures of one height in a row, on grey."""
    width = sum(image.width for image in images) + GAP * (len(images) - 1)
    row = Image.new("RGB", (width, max(image.height for image in images)), "#8a9199")
    left = 0
    for image in images:
        row.paste(image, (left, 0))
        left += image.width + GAP
    return row


def printed(pdf: Path) -> list[Image.Image]:
    """The first sheets of a PDF."""
    sheets = pdfium.PdfDocument(pdf)
    return [sheets[number].render(scale=DOTS_PER_INCH / POINTS_PER_INCH).to_pil() for number in range(PAGES)]


def main() -> None:
    """Make the report and its pictures."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "leakbound", "audit", str(PLAN), "--out", folder, "--pdf"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != NOT_RELEASED:
            raise RuntimeError(done.stderr)
        page, pdf = Path(folder) / "report.html", Path(folder) / "report.pdf"
        for scheme in ("light", "dark"):
            save(screen(page, *WIDE, scheme), PICTURES / f"models-{scheme}.png")
        save(
            side_by_side([screen(page, *PHONE, scheme) for scheme in ("light", "dark")]), PICTURES / "models-phone.png"
        )
        save(side_by_side(printed(pdf)), PICTURES / "models-print.png")


if __name__ == "__main__":
    main()
