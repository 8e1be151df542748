"""``leakbound audit FILE``: a plan; every other file has a command or a flag of its own."""

from __future__ import annotations

import pytest

from tests.cli.calling import caller, refused


@pytest.mark.parametrize(
    "name", ["scores.csv", "people.npz", "folder", "forest.skops", "gone.parquet", "result.docx", "plan.txt", "a:b"]
)
def test_other_files_need_a_flag(tmp_path, monkeypatch, capfd, name):
    monkeypatch.chdir(tmp_path)
    left = caller(monkeypatch, capfd)(f"audit {name}")
    refused(left, f"{name} is no plan (.toml); data are given by --data, a trained model to leakbound audit model, ")
    assert "leakbound audit scores and leakbound audit signals" in left.err
    assert list(tmp_path.iterdir()) == []


def test_a_plan_that_is_not_there(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    refused(caller(monkeypatch, capfd)("audit gone.toml"), "gone.toml: no such plan file")
