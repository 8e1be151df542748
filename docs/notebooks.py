"""Pictures of the notebooks for a fixed grid of their parameters: ``python docs/notebooks.py``.

The notebooks are in ``notebooks``, one a paper. Each has a cell of parameters (its tag says so) and a function ``show``
of these parameters, which returns a figure.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from leakbound.papers import figures

HERE = Path(__file__).parent
BOOKS, PICTURES = HERE / "notebooks", HERE / "_static" / "notebooks"
GRIDS: dict[str, list[dict[str, float]]] = {
    "izzo2022": [{"eta": 0.02, "n": 36}, {"eta": 0.1, "n": 36}, {"eta": 0.1, "n": 20}],
    "azize2024": [
        {"rho": 1.0, "gamma": 0.0, "n": 1000, "d": 5000},
        {"rho": 0.5, "gamma": 0.0, "n": 1000, "d": 5000},
        {"rho": 0.5, "gamma": 1.0, "n": 1000, "d": 5000},
    ],
    "delgrosso2021": [{"n": 50, "d": 20}, {"n": 200, "d": 20}, {"n": 50, "d": 5}],
    "sablayrolles2019": [{"n": 100, "d": 2000}, {"n": 100, "d": 100}],
    "lowy2024": [
        {"epsilon": 5.0, "C": 100.0, "n": 100},
        {"epsilon": 5.0, "C": 20.0, "n": 100},
        {"epsilon": 5.0, "C": 100.0, "n": 20},
    ],
}


def cells(paper: str, tag: str = "") -> list[str]:
    """Return the code cells of a notebook: those with a tag, or all but the sliders."""
    book = json.loads((BOOKS / f"{paper}.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    if tag:
        return ["".join(cell["source"]) for cell in code if tag in cell["metadata"].get("tags", [])]
    return ["".join(cell["source"]) for cell in code if "sliders" not in cell["metadata"].get("tags", [])]


def executed(paper: str) -> dict[str, Any]:
    """Run all cells but the sliders, and return the names that they define."""
    names: dict[str, Any] = {"__name__": paper}
    for code in cells(paper):
        exec(compile(code, f"{paper}.ipynb", "exec"), names)
    return names


def shown(names: Mapping[str, Any], values: Mapping[str, float]) -> Image.Image:
    """Draw the figure of a notebook for some values of its parameters."""
    with figures.looking():
        png = figures.as_bytes(names["show"](**values), "png")
    return Image.open(io.BytesIO(png)).convert("RGB")


def grid(paper: str) -> bytes:
    """Draw the fixed grid of a notebook, side by side in 64 colours."""
    names = executed(paper)
    images = [shown(names, values) for values in GRIDS[paper]]
    whole = Image.new("RGB", (sum(image.width for image in images), max(image.height for image in images)), "white")
    left = 0
    for image in images:
        whole.paste(image, (left, 0))
        left += image.width
    held = io.BytesIO()
    whole.quantize(64, Image.Quantize.MAXCOVERAGE).save(held, "png", optimize=True)
    return held.getvalue()


def main() -> None:
    """Make all pictures anew."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for paper in GRIDS:
        (PICTURES / f"{paper}.png").write_bytes(grid(paper))


if __name__ == "__main__":
    main()
