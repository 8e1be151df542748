"""The three notebooks of the documentation: they hold the outputs of one whole run, and they run again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from docs import tutorials
from matplotlib import pyplot as plt

NAMES = ("compare_attacks", "own_training_loop", "publish_a_model")
OTHER_LIBRARIES = {"publish_a_model"}  # it needs boosters that the tests do without; .ci/libraries runs it


def book(name: str) -> Any:
    return json.loads((tutorials.BOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))


def code_of(name: str) -> list[Any]:
    return [cell for cell in book(name)["cells"] if cell["cell_type"] == "code"]


def test_they_are_all_on_the_page():
    assert tuple(tutorials.names()) == NAMES
    page = (tutorials.HERE / "tutorials.md").read_text(encoding="utf-8")
    assert all(f"tutorials/{name}.ipynb" in page for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_was_run_from_the_first_cell_to_the_last(name):
    cells = code_of(name)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert len(outputs) >= 3
    assert {output["output_type"] for output in outputs} <= {"execute_result", "display_data", "stream"}
    assert all(output.get("name") != "stderr" for output in outputs)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_small_and_tells_nothing_of_a_machine(name):
    text = (tutorials.BOOKS / f"{name}.ipynb").read_text(encoding="utf-8")
    assert len(text) < 400_000
    assert str(Path.home()) not in text
    assert not re.search(r"/(home|root|work|tmp|Users)/", text)


@pytest.mark.parametrize("name", NAMES)
def test_its_lines_fit_the_page(name):
    assert max(len(line.rstrip()) for cell in code_of(name) for line in "".join(cell["source"]).splitlines()) <= 110


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(set(NAMES) - OTHER_LIBRARIES))
def test_it_runs_again_with_the_same_texts(name, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    names: dict[str, Any] = {"__name__": name}
    for cell in code_of(name):
        source = "".join(cell["source"])
        *_, last = source.rstrip().splitlines()
        exec(compile(source, name, "exec"), names)
        texts = ["".join(output["data"].get("text/plain", "")) for output in cell["outputs"] if "data" in output]
        if texts and last.isidentifier():
            assert repr(names[last]).rstrip() == texts[0].rstrip()
