"""Run the tutorials and keep their outputs: ``python docs/tutorials.py [NAMES]``.

They are notebooks in ``tutorials``. What they need beyond leakbound is in the first cell of each; ``nbclient`` and
``ipykernel`` run them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
BOOKS = HERE / "tutorials"


def names() -> list[str]:
    """Return the names of the notebooks."""
    return sorted(path.stem for path in BOOKS.glob("*.ipynb"))


def executed(name: str) -> Any:
    """Run a notebook from its first cell on; times and warnings, which differ from run to run, are left out."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(BOOKS / f"{name}.ipynb", as_version=4)
    with TemporaryDirectory() as folder:  # a library may leave files where it trains
        NotebookClient(book, timeout=1200, resources={"metadata": {"path": folder}}).execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return book


def main(chosen: Sequence[str]) -> None:
    """Run notebooks, all unless some are named, and write them with their outputs."""
    import nbformat

    for name in chosen or names():
        text = nbformat.writes(executed(name))
        (BOOKS / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")
        n_outputs = sum(len(cell.get("outputs", [])) for cell in json.loads(text)["cells"])
        print(f"{name}: {n_outputs} outputs, {len(text) / 1e3:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
