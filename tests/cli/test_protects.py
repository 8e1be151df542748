"""``leakscope calibrate`` and ``leakscope protect``: words, files, refusals; what is released is never lost."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from leakscope.plans import CalibrationPlan, MultiplierPlan, ProtectionPlan
from leakscope.report import Report
from tests.cli.calling import Left, caller, refused
from tests.report.made_protected import compared, means

KILLED = Path(__file__).parents[1] / "kills" / "killed_while_releasing.py"
CALIBRATE = "calibrate --data people.csv --eta 0.05"
PROTECT = "protect --data people.csv --eta 0.05"
WROTE = "leakscope: wrote leakscope-release.json and leakscope-release.html\n"
KEEP = "leakscope: the release stands on standard output: keep it, for it cannot be made again\n"


@pytest.fixture
def leakscope(tmp_path, monkeypatch, capfd, as_users_run_it) -> Callable[[str], Left]:
    """A command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return caller(monkeypatch, capfd)


class Protecting:
    """What the command asks for; ``happens`` before the last check and ``meanwhile`` after it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.happens: Callable[[], Any] = lambda: None
        self.meanwhile: Callable[[], Any] = lambda: None
        self.drawn = 0

    def calibrate_file(self, **words: Any) -> SimpleNamespace:
        self.asked.append(("calibrate", words))
        return SimpleNamespace(certificate=compared())

    def protect_file(self, before: Callable[[], None], **words: Any) -> SimpleNamespace:
        self.asked.append(("protect", words))
        self.happens()
        before()
        self.drawn += 1
        self.meanwhile()
        return SimpleNamespace(certificate=means())

    def declare_file(self, **words: Any) -> str:
        self.asked.append(("declare", words))
        return "announced: mean, eta = 0.05"


@pytest.fixture
def protecting(monkeypatch) -> Protecting:
    """In place of what calibrates and releases."""
    made, module = Protecting(), ModuleType("leakscope.protecting")
    vars(module).update({name: getattr(made, name) for name in ("calibrate_file", "protect_file", "declare_file")})
    monkeypatch.setitem(sys.modules, "leakscope.protecting", module)
    return made


@pytest.mark.parametrize(
    ("command", "plan", "of_the_run"),
    [
        ("calibrate", CalibrationPlan, {"--out", "--store", "--jobs", "--json", "--signals", "--help"}),
        ("calibrate dpsgd", MultiplierPlan, {"--json", "--help"}),
        ("protect", ProtectionPlan, {"--out", "--store", "--jobs", "--json", "--signals", "--help"}),
    ],
)
def test_options_are_the_fields_of_the_plan(leakscope, monkeypatch, command: str, plan, of_the_run) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    left = leakscope(f"{command} --help")
    assert left.code == 0
    options = set(re.findall(r"^ +(--[a-z-]+)", left.out, re.MULTILINE))
    assert options == {f"--{field.replace('_', '-')}" for field in plan.model_fields} | of_the_run


class TestCalibrate:
    def test_words(self, leakscope, protecting) -> None:
        left = leakscope(
            "calibrate --data ../data/people.csv --drop id --drop name --statistic histogram --by age,pay "
            "--set n_bins=5 --set edges=[0,1.5],note=x --eta 0.1 --k 40 --promise average --noise laplace "
            "--coupling swap --fits 100 --compare --clip 3 --fpr 0.2 --fpr 0.1 --unit person --store S --jobs 2"
        )
        assert left.code == 0
        ((what, words),) = protecting.asked
        assert what == "calibrate"
        assert (words.pop("store"), words.pop("jobs")) == ("S", 2)
        assert words.pop("command").startswith("leakscope calibrate --data people.csv --drop id")
        assert words == {
            "data": "../data/people.csv",
            "drop": ["id", "name"],
            "statistic": "histogram",
            "by": ["age,pay"],
            "set": {"n_bins": 5, "edges": [0, 1.5], "note": "x"},
            "eta": 0.1,
            "k": 40,
            "promise": "average",
            "noise": "laplace",
            "coupling": "swap",
            "fits": 100,
            "compare": True,
            "clip": 3.0,
            "fpr": [0.2, 0.1],
            "unit": "person",
        }

    def test_what_is_not_given_is_left_to_the_plan(self, leakscope, protecting) -> None:
        leakscope(CALIBRATE)
        places = {"store": "leakscope-report/store", "jobs": None, "command": f"leakscope {CALIBRATE}"}
        assert protecting.asked == [("calibrate", {"data": "people.csv", "eta": 0.05, **places})]

    def test_numbers_are_printed_and_nothing_is_written(self, leakscope, protecting) -> None:
        left = leakscope(CALIBRATE)
        assert (left.code, left.err) == (0, "")
        assert left.out == compared().table() + "\n"
        assert list(Path().iterdir()) == []

    def test_a_folder_on_request(self, leakscope, protecting) -> None:
        left = leakscope(f"{CALIBRATE} --out there --json")
        assert left.code == 0
        assert left.out == Path("there/report.json").read_text(encoding="utf-8") == compared().to_json()
        assert sorted(path.name for path in Path("there").iterdir()) == ["report.html", "report.json", "run.json"]
        assert left.err == "leakscope: wrote there/report.json and there/report.html\n"

    def test_own_modules_are_found(self, leakscope, protecting) -> None:
        leakscope(CALIBRATE)
        assert os.getcwd() in sys.path

    @pytest.mark.parametrize(
        ("command", "line"),
        [
            (
                "calibrate",
                "calibrate needs --data FILE and --eta, as --data people.csv --eta 0.05; of DP-SGD: leakscope "
                "calibrate dpsgd",
            ),
            ("calibrate --eta 0.05", "calibrate needs --data FILE and --eta, as --data people.csv"),
            ("calibrate --data people.csv", "calibrate: the key 'eta' is missing"),
            ("calibrate --data people.csv --eta 0.5", "calibrate: eta: Input should be less than 0.5, got 0.5"),
            ("calibrate --data people.csv --eta much", "Invalid value for '--eta': "),
            (f"{CALIBRATE} --statistic men", "calibrate: statistic: unknown statistic 'men' (did you mean 'mean'?)"),
            (f"{CALIBRATE} --statistic table", "calibrate: statistic table needs by: the columns that it counts"),
            (f"{CALIBRATE} --set bins", "--set: write NAME=VALUE, got 'bins'"),
            (f"{CALIBRATE} --jobs 0", "jobs must be >= 1, got 0"),
            (f"{CALIBRATE} --ledger l.json", "No such option: --ledger"),
            (f"{CALIBRATE} --out taken", "--out taken: taken is a file; give a folder"),
            ("calibrate dpsdg", "No such command 'dpsdg'. Did you mean 'dpsgd'?"),
        ],
    )
    def test_one_line_for_what_cannot_be(self, leakscope, protecting, command: str, line: str) -> None:
        Path("taken").touch()
        refused(leakscope(command), line)
        assert protecting.asked == []
        assert [path.name for path in Path().iterdir()] == ["taken"]


class TestProtect:
    def test_words(self, leakscope, protecting) -> None:
        left = leakscope(
            f"{PROTECT} --statistic ols --label pay --ledger /secret/ledger.json --insecure-seed 86420 --jobs 1 "
            "--store /far/away --title 'Pay' --out new/deep/pay.json"
        )
        assert left.code == 0
        ((what, words),) = protecting.asked
        assert what == "protect"
        assert words == {
            "data": "people.csv",
            "eta": 0.05,
            "statistic": "ols",
            "label": "pay",
            "ledger": "/secret/ledger.json",
            "insecure_seed": 86420,
            "title": "Pay",
            "jobs": 1,
            "store": "/far/away",
            "command": f"leakscope {PROTECT} --statistic ols --label pay --title Pay",
        }

    @pytest.mark.parametrize(
        "flags", ["--insecure-seed=86420 --ledger=/home/ada/l.json", "--ledger l.json --insecure-seed 86420"]
    )
    def test_the_command_tells_neither_seed_nor_ledger(self, leakscope, protecting, flags: str) -> None:
        leakscope(f"{PROTECT} {flags} --unit person")
        assert protecting.asked[0][1]["command"] == f"leakscope {PROTECT} --unit person"

    def test_what_is_written(self, leakscope, protecting) -> None:
        before = os.umask(0o077)
        try:
            left = leakscope(PROTECT)
        finally:
            os.umask(before)
        assert left == (0, means().table() + "\n", WROTE)
        check_release(Path())

    def test_json_and_nothing_else(self, leakscope, protecting) -> None:
        assert leakscope(f"{PROTECT} --json --out a/b/release.json").out == means().to_json()
        assert sorted(path.name for path in Path("a/b").iterdir()) == ["release.html", "release.json"]

    @pytest.mark.parametrize("there", ["leakscope-release.json", "leakscope-release.html"])
    @pytest.mark.parametrize("kind", ["file", "folder", "link to nothing"])
    def test_a_release_is_never_written_over(self, leakscope, protecting, there: str, kind: str) -> None:
        makes = {"file": lambda path: path.write_text("old"), "folder": Path.mkdir}
        makes.get(kind, lambda path: path.symlink_to("nowhere"))(Path(there))
        line = f"{there} exists already, and a release is never written over; choose another --out"
        refused(leakscope(PROTECT), line)
        assert protecting.asked == []
        assert [path.name for path in Path().iterdir()] == [there]

    @pytest.mark.parametrize(
        ("flags", "line"),
        [
            ("--out taken/release.json", "--out taken/release.json: taken is a file; give a folder"),
            ("--out taken/deep/release.json", "--out taken/deep/release.json: taken is a file; give a folder"),
            ("--out release.html", "--out release.html: a release is a file whose name ends in .json"),
            ("--out release", "--out release: a release is a file whose name ends in .json"),
            ("--out .json", "--out .json: a release is a file whose name ends in .json"),
            ("--out ''", "--out .: a release is a file whose name ends in .json"),
            (f"--out {'a' * 240}.json", f"{'a' * 240}.json cannot be written: File name too long"),
            (
                "--out r.json --ledger ./r.json",
                "--out r.json: the ledger would stand there; a release is public, its ledger is not",
            ),
            ("--out r.json --ledger r.html", "--out r.json: the ledger would stand there"),
            ("--declare", "protect: declare needs a ledger"),
            ("--declare --ledger l.json --out r.json", "protect --declare releases nothing; it takes no --out"),
            ("--insecure-seed -1", "protect: insecure_seed: Input should be greater than or equal to 0, got -1"),
            ("--eta 0", "protect: eta: Input should be greater than 0, got 0.0"),
            ("--jobs -2", "jobs must be >= 1, got -2"),
        ],
    )
    def test_one_line_for_what_cannot_be(self, leakscope, protecting, flags: str, line: str) -> None:
        Path("taken").touch()
        refused(leakscope(f"{PROTECT} {flags}"), line)
        assert protecting.asked == []
        assert [path.name for path in Path().iterdir()] == ["taken"]

    def test_data_are_needed(self, leakscope, protecting) -> None:
        refused(leakscope("protect"), "protect needs --data FILE and --eta, as --data people.csv --eta 0.05\n")

    def test_a_query_is_announced(self, leakscope, protecting) -> None:
        left = leakscope(f"{PROTECT} --ledger l.json --declare")
        assert left == (0, "announced: mean, eta = 0.05\n", "")
        words = {"data": "people.csv", "eta": 0.05, "ledger": "l.json", "declare": True}
        assert protecting.asked == [("declare", words)]
        assert json.loads(leakscope(f"{PROTECT} --ledger l.json --declare --json").out) == "announced: mean, eta = 0.05"
        assert list(Path().iterdir()) == []

    def test_what_protecting_refuses_is_one_line(self, leakscope, protecting) -> None:
        def refuses() -> None:
            raise ValueError("k must be from 1 to n - 1 = 29, got 30")

        protecting.happens = refuses
        refused(leakscope(PROTECT), "k must be from 1 to n - 1 = 29, got 30\n")
        assert list(Path().iterdir()) == []


class TestNothingIsLost:
    """Once drawn a value is in the ledger: it reaches a file, or standard output."""

    def test_a_file_that_came_during_the_calibration(self, leakscope, protecting) -> None:
        protecting.happens = lambda: Path("leakscope-release.html").write_text("old")
        refused(leakscope(PROTECT), "leakscope-release.html exists already, and a release is never written over")
        assert protecting.drawn == 0

    def test_a_file_that_came_during_the_release(self, leakscope, protecting) -> None:
        protecting.meanwhile = lambda: Path("leakscope-release.json").write_text("old")
        left = leakscope(PROTECT)
        line = "leakscope-release.json cannot be written: leakscope-release.json exists by now"
        assert left == (1, means().to_json(), f"{KEEP}leakscope: error: {line}\n")
        assert [path.name for path in Path().iterdir()] == ["leakscope-release.json"]
        assert Path("leakscope-release.json").read_text() == "old"

    def test_a_folder_that_went_during_the_calibration(self, leakscope, protecting) -> None:
        Path("there").mkdir()
        protecting.happens = lambda: Path("there").rmdir()
        assert leakscope(f"{PROTECT} --out there/leakscope-release.json").code == 0
        check_release(Path("there"))

    @pytest.mark.parametrize(
        ("error", "code", "said"),
        [
            (LookupError("lost"), 1, "leakscope: error: unexpected LookupError: lost; set LEAKSCOPE_TRACEBACK=1 for"),
            (KeyboardInterrupt(), 130, "leakscope: interrupted; "),
        ],
    )
    def test_a_page_that_cannot_be_drawn(self, leakscope, protecting, monkeypatch, error, code: int, said) -> None:
        def breaks(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setattr(Report, "to_html", breaks)
        left = leakscope(PROTECT)
        assert (left.code, left.out) == (code, means().to_json())
        assert left.err.startswith(KEEP + said)
        assert list(Path().iterdir()) == []

    def test_ctrl_c_before_the_draw(self, leakscope, protecting) -> None:
        protecting.happens = lambda: signal.raise_signal(signal.SIGINT)
        left = leakscope(PROTECT)
        assert (left.code, left.out, protecting.drawn) == (130, "", 0)
        assert list(Path().iterdir()) == []


@pytest.mark.kills
class TestRoughTreatment:
    def test_a_read_only_folder_is_noticed_before_anything_is_drawn(self, leakscope, protecting, disk) -> None:
        disk.mount("size=1m")
        disk.mount("remount,ro")
        line = "cannot be written: Read-only file system\n"
        refused(leakscope(f"{PROTECT} --out disk/new/r.json"), f"disk/new/r.json {line}")
        assert protecting.asked == []
        disk.mount("remount,rw")
        protecting.happens = lambda: disk.mount("remount,ro")
        refused(leakscope(f"{PROTECT} --out disk/r.json"), f"disk/r.json {line}")
        disk.mount("remount,rw")
        refused(leakscope(f"{PROTECT} --out disk/new/r.json"), f"disk/new/r.json {line}")
        assert protecting.drawn == 0
        assert list(Path("disk").iterdir()) == []

    @pytest.mark.parametrize("room", [4, 48])  # kilobytes: not for the JSON, for the JSON but not for the page
    def test_a_full_disk(self, leakscope, protecting, disk, room: int) -> None:
        disk.mount("size=1m")
        protecting.meanwhile = lambda: disk.mount(f"remount,size={room}k")
        left = leakscope(f"{PROTECT} --out disk/r.json")
        line = "disk/r.json cannot be written: No space left on device"
        assert left == (1, means().to_json(), f"{KEEP}leakscope: error: {line}\n")
        assert list(Path("disk").iterdir()) == []

    @pytest.mark.parametrize(
        ("call", "left"),
        [(1, ""), (2, ""), (3, ""), (4, "json"), (5, "html json")],
        ids=["JSON unflushed", "page unflushed", "before both renames", "between them", "after both"],
    )
    def test_a_kill_leaves_no_release_or_a_whole_one(self, leakscope, protecting, tmp_path, call, left) -> None:
        quick = {"PYTHONPATH": str(KILLED.parents[2]), "OMP_NUM_THREADS": "1"}
        words = [sys.executable, str(KILLED), str(call), *shlex.split(PROTECT)]
        run = subprocess.run(words, cwd=tmp_path, env=os.environ | quick, capture_output=True, text=True, timeout=60)
        assert (run.returncode, run.stdout) == (-signal.SIGKILL, "")
        there = sorted(Path().glob("[!.]*"))
        assert [path.suffix[1:] for path in there] == left.split()
        whole = {".json": means().to_json(), ".html": means().to_html()}
        assert all(path.read_text(encoding="utf-8") == whole[path.suffix] for path in there)
        again = leakscope(PROTECT)
        if left:
            refused(again, "leakscope-release.json exists already, and a release is never written over")
        else:
            assert again.code == 0
            assert Path("leakscope-release.json").read_text(encoding="utf-8") == whole[".json"]


def check_release(folder: Path) -> None:
    """Both files, for everybody to read, and nothing beside them."""
    release, page = folder / "leakscope-release.json", folder / "leakscope-release.html"
    assert sorted(folder.iterdir()) == sorted([release, page])
    assert [path.stat().st_mode & 0o777 for path in (release, page)] == [0o644, 0o644]
    assert release.read_text(encoding="utf-8") == means().to_json()
    assert page.read_text(encoding="utf-8") == means().to_html()
