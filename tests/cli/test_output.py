"""What commands write: whole or not at all, and without a trace of the machine."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leakbound.bounding.api import bound
from leakbound.cli import main as cli
from leakbound.cli.output import TOGETHER, command_line, emit, refuse_file, width, write
from leakbound.files.temporary import part_of
from leakbound.reports import Report


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["bound", "dp", "--epsilon", "1"], "leakbound bound dp --epsilon 1"),
        (["audit", "/home/ada/plan.toml", "--n-jobs", "4"], "leakbound audit plan.toml"),
        (["audit", "--out=a/b", "--store", "c", "--seed", "3"], "leakbound audit --seed 3"),
        (["audit", "--no-records", "--json", "--seed=3"], "leakbound audit --seed=3"),
        (["audit", "--data=/home/ada/a b.csv"], "leakbound audit '--data=a b.csv'"),
        (["audit", "--out"], "leakbound audit"),
        (["audit", "--records", "--seed", "3"], "leakbound audit --seed 3"),
        (["bound", "dpsgd", "--records", "600", "--json"], "leakbound bound dpsgd --records 600"),
        (["bound", "dpsgd", "--records=600"], "leakbound bound dpsgd --records=600"),
    ],
)
def test_the_command_without_folders(monkeypatch, typed, said):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/leakbound", *typed])
    assert command_line() == said


def test_a_file_where_a_folder_should_be(tmp_path):
    file = tmp_path / "report"
    file.write_text("x")
    refuse_file(tmp_path)
    refuse_file(tmp_path / "new" / "folder")
    for out in (file, file / "inner"):
        with pytest.raises(ValueError) as refused:
            refuse_file(out)
        assert str(refused.value) == f"--out {out}: {file} is a file; give a folder"


@pytest.mark.by_day("run.json")
@pytest.mark.parametrize("name", ["report.json", "report.html", "run.json", "noise.csv"])
def test_the_file_behind_a_link_is_written_and_the_link_stays(tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "there").write_text("old")
    os.symlink("../there", tmp_path / "out" / name)
    report = bound("dp", epsilon=1.0)
    refuse_file(tmp_path / "out")
    write(report, tmp_path / "out", True, time.time(), others={"noise.csv": "a,b\n"})
    assert os.readlink(tmp_path / "out" / name) == "../there"
    assert (tmp_path / "there").read_bytes() != b"old"
    assert Report.from_json(tmp_path / "out" / "report.json").digest() == report.digest()
    assert (tmp_path / "out" / "noise.csv").read_text() == "a,b\n"
    assert not [path for path in tmp_path.rglob("*") if path.name not in
                {"out", "there", "report.json", "report.html", "run.json", "noise.csv"}]  # fmt: skip


def test_a_link_to_nothing_is_refused_before_anything_is_written(tmp_path):
    (tmp_path / "out").mkdir()
    os.symlink("../gone", tmp_path / "out" / "run.json")
    line = r"^.*out/run\.json is a link to a file that is not there: \.\./gone$"
    with pytest.raises(ValueError, match=line):
        refuse_file(tmp_path / "out")
    with pytest.raises(ValueError, match=line):
        write(bound("dp", epsilon=1.0), tmp_path / "out", True, time.time())
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "run.json"]


def test_report_page_and_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["leakbound", "bound", "dp"])
    report = bound("dp", epsilon=1.0)
    write(report, tmp_path / "out", True, time.time() - 7)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["report.html", "report.json", "run.json"]
    assert Report.from_json(tmp_path / "out" / "report.json").digest() == report.digest()
    run = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert run["command"] == ["leakbound", "bound", "dp"]
    assert run["report"] == report.digest()
    assert 7 <= run["seconds"] < 60
    emit(report, tmp_path / "out", True)
    said = capsys.readouterr()
    assert said.out == report.to_json()
    assert said.err == f"leakbound: wrote {tmp_path / 'out/report.json'} and {tmp_path / 'out/report.html'}\n"
    emit(report, None, False)
    assert capsys.readouterr() == (report.table() + "\n", "")


def test_a_page_that_cannot_be_written_leaves_the_old_files(tmp_path, monkeypatch):
    first, second = bound("dp", epsilon=1.0), bound("dp", epsilon=2.0)
    write(first, tmp_path, True, time.time())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(self: Report, path: Path, publish: bool = False) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Report, "to_html", full)
    with pytest.raises(OSError) as refused:
        write(second, tmp_path, True, time.time())
    assert str(refused.value) == f"the folder {tmp_path} cannot be written: No space left on device"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_next_run_removes_what_a_killed_one_left(tmp_path):
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    ours = part_of(tmp_path / TOGETHER).name
    left = tmp_path / ours.replace(f".{os.getpid()}.", f".{ended.stdout.strip()}.")
    left.mkdir()
    (left / "report.json").write_text("{}")
    write(bound("dp", epsilon=1.0), tmp_path, True, time.time())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json", "run.json"]


class Terminal(io.StringIO):
    """Standard output on a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.mark.parametrize(("columns", "expected"), [(20, 60), (60, 60), (80, 80), (100, 100), (200, 100)])
def test_the_width_of_the_terminal(monkeypatch, columns, expected):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert width() == 100  # a file
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert width() == expected


@pytest.mark.by_day("attacks-60")
@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize(
    "command",
    [
        "attacks",
        "bound dp --epsilon 1 --delta 1e-5",
        "calibrate dpsgd --sample-rate 0.01 --steps 100 --advantage 0.1",
        "compare first.json second.json",
        "reproduce --list",
    ],
)
def test_what_commands_print_fits_the_terminal(monkeypatch, tmp_path, command, columns):
    monkeypatch.chdir(tmp_path)
    for name, epsilon in (("first", 1.0), ("second", 2.0)):
        bound("dp", epsilon=epsilon).to_json(tmp_path / f"{name}.json")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "argv", ["leakbound", *command.split()])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 0
    lines = terminal.getvalue().splitlines()
    assert columns // 2 < max(map(len, lines)) <= columns
