"""Sentences of README and CHANGELOG that are facts about the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from leakbound.attacks import ATTACKS
from leakbound.bounds import BOUNDS
from leakbound.papers import PAPERS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PEERS = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def test_the_changelog_names_every_attack():
    assert f"{len(ATTACKS)} attacks" in CHANGELOG
    named = set(re.findall(r"`(\w+)`", CHANGELOG))
    assert set(ATTACKS) <= named


def test_the_changelog_names_every_call():
    import leakbound

    calls = set(re.findall(r"`ls\.(\w+)`", CHANGELOG))
    assert calls >= {"bound", "calibrate", "protect", "reproduce"}
    assert all(callable(getattr(leakbound, call)) for call in calls)


def test_the_readme_counts_its_theorems():
    assert f"{NUMBERS[len(BOUNDS)].capitalize()} theorems are commands" in README


def test_the_readme_can_be_read_in_one_go():
    assert len(README.splitlines()) <= 120


def test_the_readme_counts_its_papers():
    assert len({experiment.paper for experiment in PAPERS.values()}) == 5


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_what_is_there_is_not_said_to_be_missing(page):
    """Every line that says that something is not there, by hand: none today."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert not re.findall(r"[^.]*not in this version[^.]*\.", text)


def test_commands_of_the_readme_exist():
    from typer.main import get_command

    from leakbound.cli.main import app

    commands = get_command(app).commands
    named = set(re.findall(r"^leakbound ([a-z]+)", README, re.MULTILINE)) | set(
        re.findall(r"`leakbound ([a-z]+)", README)
    )
    assert named
    assert named <= set(commands)
    bounds = set(re.findall(r"leakbound bound ([a-z]+)", README))
    assert bounds <= set(BOUNDS)


def test_the_table_of_peers_agrees_with_the_code():
    """A row that says yes for leakbound has an attack or a call behind it, and the other way round."""
    rows = {}
    for line in PEERS.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 4:
            rows[cells[1]] = cells[2]
    behind = {
        "LiRA online / offline": {"lira", "lira_offline"},
        "RMIA": {"rmia"},
        "MAST (calibrated loss)": {"mast"},
        "shadow classifier": {"shadow"},
        "gradients, steps of DP-SGD": {"gradient_norm", "glir"},
    }
    for row, attacks in behind.items():
        assert rows[row] == "yes"
        assert attacks <= set(ATTACKS)
    from leakbound.attacks.attribute import strategies

    assert rows["attribute inference"] == "yes"
    assert strategies(("default",))


def test_the_bibtex_entry_has_the_data_of_the_citation_file():
    entry = (
        (ROOT / "docs" / "references.md").read_text(encoding="utf-8").partition("```bibtex\n")[2].partition("```")[0]
    )
    fields = dict(re.findall(r"^  (\w+) += \{+(.*?)\}+,?$", entry, re.MULTILINE))
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (fields["title"], fields["version"]) == (citation["title"], citation["version"])
    assert fields["author"] == citation["authors"][0]["name"]
    assert citation["license"] in fields["note"]
    assert "references.md#cite-leakbound" in README
