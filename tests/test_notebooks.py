"""The papers' notebooks: their parameters, their pictures on the page, and that they run."""

from __future__ import annotations

import inspect
import io
import json
import re
import sys

import matplotlib as mpl
import numpy as np
import pytest
from docs import notebooks
from matplotlib import font_manager
from PIL import Image

from leakbound.papers import figures
from tests.marks import nightly_but

LETTERS = "LiberationSans"  # of the kept pictures, where a machine has no Helvetica or Arial
BY_DAY = ("azize2024",)


@pytest.mark.parametrize("paper", notebooks.GRIDS)
def test_a_notebook_has_parameters_a_figure_and_sliders(paper):
    book = json.loads((notebooks.BOOKS / f"{paper}.ipynb").read_text(encoding="utf-8"))
    assert book["nbformat"] == 4
    assert all(cell["outputs"] == [] for cell in book["cells"] if cell["cell_type"] == "code")
    (parameters,), (sliders,) = (notebooks.cells(paper, tag) for tag in ("parameters", "sliders"))
    defaults: dict[str, object] = {}
    exec(parameters, defaults)
    names = set(defaults) - {"__builtins__"}
    assert all(set(values) == names for values in notebooks.GRIDS[paper])
    assert all(re.search(rf"{name}=\w+Slider\(value={name}, ", sliders) for name in names)  # they begin at its values
    assert sliders.endswith("\nshown")  # what the cell displays


@pytest.mark.parametrize("paper", notebooks.GRIDS)
def test_the_page_shows_a_small_picture_of_its_grid(paper):
    assert 5000 < (notebooks.PICTURES / f"{paper}.png").stat().st_size < 200_000
    text = (notebooks.HERE / f"{paper}.md").read_text(encoding="utf-8")
    assert f"_static/notebooks/{paper}.png" in text
    assert f"notebooks/{paper}.ipynb" in text


@pytest.mark.slow
@pytest.mark.parametrize("paper", nightly_but(notebooks.GRIDS, *BY_DAY))
def test_a_notebook_runs_and_draws_the_picture_of_the_page(paper):
    names = notebooks.executed(paper)
    assert list(inspect.signature(names["show"]).parameters) == list(notebooks.GRIDS[paper][0])
    made, kept = notebooks.grid(paper), (notebooks.PICTURES / f"{paper}.png").read_bytes()
    drawn, shown = (np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float) for png in (made, kept))
    assert drawn.shape == shown.shape
    with mpl.rc_context(figures.LOOK):
        font = font_manager.findfont(font_manager.FontProperties())
    # of 255: wider letters move everything beside them, and older releases of matplotlib place titles elsewhere
    as_kept = LETTERS in font and mpl.__version_info__ >= (3, 11)
    assert np.abs(drawn - shown).mean() < (3 if as_kept else 15)


@pytest.mark.slow
def test_without_sliders_the_values_of_the_first_cell_are_shown(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    names = notebooks.executed("lowy2024")
    (sliders,) = notebooks.cells("lowy2024", "sliders")
    exec(sliders, names)
    assert names["shown"].axes
