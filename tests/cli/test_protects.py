"""``leakbound calibrate`` and ``leakbound protect``: words, files, refusals; what is released is never lost."""

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

import leakbound as package
from leakbound.plans import CalibrationPlan, MultiplierPlan, ProtectionPlan
from leakbound.releases import user_modules
from leakbound.reports import Report
from leakbound.reports.render.csv_table import released_csv
from tests.cli.calling import Left, caller, refused
from tests.marks import slow_but
from tests.reports.made_protected import calibrated, means, published

SOURCES = Path(package.__file__).parents[1]
KILLED = Path(__file__).parents[1] / "kills" / "killed_while_releasing.py"
CALIBRATE = "calibrate --data people.csv --promise drawn --eta 0.05"
PROTECT = "protect --data people.csv --promise drawn --eta 0.05"
WROTE = (
    "leakbound: wrote leakbound-release: release.json, release.html and release.csv for publication, owner/ for you "
    "alone\n"
)
KEEP = "leakbound: the release is on standard output: keep it, for it cannot be made again\n"


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd, as_users_run_it) -> Callable[[str], Left]:
    """A command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return caller(monkeypatch, capfd)


DRAW = Report.to_html
DRAWN: dict[tuple, str] = {}


@pytest.fixture(autouse=True)
def pages_are_drawn_once(monkeypatch) -> None:
    """The page of each report is drawn when it is first asked for, and kept for all tests."""

    def to_html(report: Report, path: Any = None, **words: Any) -> str:
        if path is not None:
            return DRAW(report, path, **words)
        key = (report.to_json(), *sorted(words.items()))
        if key not in DRAWN:
            DRAWN[key] = DRAW(report, **words)
        return DRAWN[key]

    monkeypatch.setattr(Report, "to_html", to_html)


class Protecting:
    """What the command asks for; ``happens`` before the last check and ``meanwhile`` after it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.happens: Callable[[], Any] = lambda: None
        self.meanwhile: Callable[[], Any] = lambda: None
        self.drawn = 0

    def calibrate_file(self, plan: dict[str, Any], tell_owner: Callable[[str], Any], **words: Any) -> SimpleNamespace:
        self.asked.append(("calibrate", plan | words))
        return SimpleNamespace(certificate=calibrated())

    def protect_file(
        self,
        plan: dict[str, Any],
        before: Callable[[], None],
        publish: Callable[[Report], None],
        tell_owner: Callable[[str], Any],
        **words: Any,
    ) -> SimpleNamespace:
        self.asked.append(("protect", plan | words))
        self.happens()
        before()
        self.drawn += 1
        self.meanwhile()
        publish(published(), means())
        return SimpleNamespace(certificate=published(), owner=means())

    def declare_file(self, words: dict[str, Any]) -> str:
        self.asked.append(("declare", words))
        return "announced: mean, eta = 0.05"


@pytest.fixture
def protecting(monkeypatch) -> Protecting:
    """In place of what calibrates and releases."""
    made, module = Protecting(), ModuleType("leakbound.protection")
    vars(module).update({name: getattr(made, name) for name in ("calibrate_file", "protect_file", "declare_file")})
    monkeypatch.setitem(sys.modules, "leakbound.protection", module)
    return made


@pytest.mark.parametrize(
    ("command", "plan", "of_the_run"),
    [
        (
            "calibrate",
            CalibrationPlan,
            {
                "--plan",
                "--out",
                "--store",
                "--n-jobs",
                "--allow-modules",
                "--full",
                "--json",
                "--signals",
                "--help",
                "--help-all",
            },
        ),
        ("calibrate dpsgd", MultiplierPlan, {"--json", "--help", "--full"}),
        (
            "protect",
            ProtectionPlan,
            {
                "--plan",
                "--out",
                "--store",
                "--n-jobs",
                "--allow-modules",
                "--full",
                "--json",
                "--signals",
                "--help",
                "--help-all",
            },
        ),
    ],
)
def test_options_are_the_fields_of_the_plan(leakbound, monkeypatch, command: str, plan, of_the_run) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    left = leakbound(f"{command} --help-all" if "dpsgd" not in command else f"{command} --help")
    assert left.code == 0
    of_anyone = {"--range", "--others"} if "dpsgd" not in command else set()
    options = set(re.findall(r"^│ (--[a-z-]+)", left.out, re.MULTILINE))
    assert options == {f"--{field.replace('_', '-')}" for field in plan.model_fields} | of_the_run | of_anyone


class TestCalibrate:
    def test_words(self, leakbound, protecting) -> None:
        left = leakbound(
            "calibrate --data ../data/people.csv --drop id --drop name --statistic histogram --by age,pay "
            "--set n_bins=5 --set edges=[0,1.5],note=x --promise drawn,k=40,about=average,noise=laplace --eta 0.1 "
            "--compare all --fpr 0.2 --fpr 0.1 --unit person "
            "--store S --n-jobs 2"
        )
        assert left.code == 0
        ((what, words),) = protecting.asked
        assert what == "calibrate"
        assert (words.pop("store"), words.pop("n_jobs")) == ("S", 2)
        assert words.pop("command").startswith("leakbound calibrate --data people.csv --drop id")
        assert words == {
            "data": "../data/people.csv",
            "drop": ["id", "name"],
            "statistic": "histogram",
            "by": ["age,pay"],
            "set": {"n_bins": 5, "edges": [0, 1.5], "note": "x"},
            "eta": 0.1,
            "promise": "drawn,k=40,about=average,noise=laplace",
            "compare": ["all"],
            "fpr": [0.2, 0.1],
            "unit": "person",
        }

    def test_what_is_not_given_is_left_to_the_plan(self, leakbound, protecting) -> None:
        leakbound(CALIBRATE)
        places = {"store": "leakbound-report/store", "n_jobs": None, "command": f"leakbound {CALIBRATE}"}
        assert protecting.asked == [("calibrate", {"data": "people.csv", "promise": "drawn", "eta": 0.05, **places})]

    def test_numbers_are_printed_and_nothing_is_written(self, leakbound, protecting) -> None:
        left = leakbound(CALIBRATE)
        assert (left.code, left.err) == (0, "")
        assert left.out == calibrated().table() + "\n"
        assert list(Path().iterdir()) == []

    def test_a_folder_on_request(self, leakbound, protecting) -> None:
        left = leakbound(f"{CALIBRATE} --out there --json")
        assert left.code == 0
        assert left.out == Path("there/report.json").read_text(encoding="utf-8") == calibrated().to_json()
        assert sorted(path.name for path in Path("there").iterdir()) == [
            "noise.csv",
            "report.html",
            "report.json",
            "run.json",
        ]
        assert left.err == "leakbound: wrote there/report.json, there/report.html and there/noise.csv\n"

    def test_own_modules_are_found(self, leakbound, protecting) -> None:
        leakbound(CALIBRATE)
        assert user_modules.for_workers() == (os.getcwd(), ())
        assert os.getcwd() not in sys.path

    @pytest.mark.parametrize(
        ("command", "line"),
        [
            (
                "calibrate",
                "calibrate needs --data FILE, --promise and --eta, as --data people.csv --promise file --eta 0.05; of "
                "DP-SGD: leakbound calibrate dpsgd",
            ),
            ("calibrate --eta 0.05", "calibrate needs --data FILE, --promise and --eta, as --data people.csv"),
            ("calibrate --data people.csv", "calibrate: the key 'eta' is missing"),
            ("calibrate --data people.csv --eta 0.5", "calibrate: eta must be > 0 and < 0.5, got 0.5"),
            ("calibrate --data people.csv --eta much", "Invalid value for '--eta': "),
            (f"{CALIBRATE} --statistic men", "calibrate: statistic: unknown statistic 'men' (did you mean 'mean'?)"),
            (f"{CALIBRATE} --statistic table", "calibrate: statistic table needs by: the columns that it counts"),
            (f"{CALIBRATE} --set bins", "--set: write NAME=VALUE, got 'bins'"),
            (f"{CALIBRATE} --n-jobs 0", "n_jobs must be >= 1, got 0"),
            (f"{CALIBRATE} --ledger l.json", "No such option: --ledger"),
            (f"{CALIBRATE} --out taken", "--out taken: taken is a file; give a folder"),
            ("calibrate dpsdg", "No such command 'dpsdg'. Did you mean 'dpsgd'?"),
            ("calibrate people.csv", "No such command 'people.csv'; data are given by --data people.csv"),
            ("calibrate survey.toml", "No such command 'survey.toml'; a plan is given by --plan survey.toml"),
            (
                "protect people.csv --eta 0.05",
                "Got unexpected extra argument(s) (people.csv); data are given by --data people.csv",
            ),
            (
                "protect wage.toml b.toml",
                "Got unexpected extra argument(s) (wage.toml b.toml); a plan is given by --plan wage.toml",
            ),
            (
                "bound table people.csv",
                "Got unexpected extra argument(s) (people.csv); data are given by --data people.csv",
            ),
            ("protect people", "Got unexpected extra argument(s) (people)"),
        ],
    )
    def test_one_line_for_what_cannot_be(self, leakbound, protecting, command: str, line: str) -> None:
        Path("taken").touch()
        refused(leakbound(command), line)
        assert protecting.asked == []
        assert [path.name for path in Path().iterdir()] == ["taken"]


class TestProtect:
    @pytest.mark.slow
    def test_words(self, leakbound, protecting) -> None:
        left = leakbound(
            f"{PROTECT} --statistic ols --label pay --ledger /secret/ledger.json --insecure-seed 86420 --n-jobs 1 "
            "--store /far/away --title 'Pay' --out new/deep/pay"
        )
        assert left.code == 0
        ((what, words),) = protecting.asked
        assert what == "protect"
        assert words == {
            "data": "people.csv",
            "promise": "drawn",
            "eta": 0.05,
            "statistic": "ols",
            "label": "pay",
            "ledger": "/secret/ledger.json",
            "insecure_seed": 86420,
            "title": "Pay",
            "n_jobs": 1,
            "store": "/far/away",
            "command": f"leakbound {PROTECT} --statistic ols --label pay --title Pay",
        }

    @pytest.mark.parametrize(
        "flags", ["--insecure-seed=86420 --ledger=/home/ada/l.json", "--ledger l.json --insecure-seed 86420"]
    )
    def test_the_command_tells_neither_seed_nor_ledger(self, leakbound, protecting, flags: str) -> None:
        leakbound(f"{PROTECT} {flags} --unit person")
        assert protecting.asked[0][1]["command"] == f"leakbound {PROTECT} --unit person"

    def test_what_is_written(self, leakbound, protecting) -> None:
        before = os.umask(0o077)
        try:
            left = leakbound(PROTECT)
        finally:
            os.umask(before)
        assert left == (0, published().table() + "\n", WROTE)
        check_release(Path("leakbound-release"))

    def test_json_and_nothing_else(self, leakbound, protecting) -> None:
        assert leakbound(f"{PROTECT} --json --out a/b").out == published().to_json()
        check_release(Path("a/b"))

    @pytest.mark.parametrize("there", ["release.json", "release.html", "release.csv", "owner/private.json"])
    @pytest.mark.parametrize("kind", ["file", "folder", "link to nothing"])
    def test_a_release_is_never_written_over(self, leakbound, protecting, there: str, kind: str) -> None:
        makes = {"file": lambda path: path.write_text("old"), "folder": Path.mkdir}
        file = Path("leakbound-release") / there
        file.parent.mkdir(parents=True)
        makes.get(kind, lambda path: path.symlink_to("nowhere"))(file)
        line = f"{file} exists already, and a release is never written over; choose another --out"
        refused(leakbound(PROTECT), line)
        assert protecting.asked == []
        assert [path.name for path in file.parent.iterdir()] == [file.name]

    @pytest.mark.parametrize(
        ("flags", "line"),
        [
            ("--out taken", "--out taken: taken is a file; give a folder"),
            ("--out taken/deep/er", "--out taken/deep/er: taken is a file; give a folder"),
            (
                "--out new/a.json",
                "--out new/a.json: a release is a folder with release.json, release.html and release.csv for "
                "publication and owner/ for you alone; write --out new/a\n",
            ),
            ("--out a.html", "--out a.html: a release is a folder with release.json"),
            (
                "--out r --ledger ./r/l.json",
                "--out r: --ledger ./r/l.json would lie in it; a release is public, and that is not",
            ),
            ("--out '' --ledger l.json", "--out .: --ledger l.json would lie in it"),
            ("--out r --signals r/s.npz", "--out r: --signals r/s.npz would lie in it"),
            ("--declare", "protect: declare needs a ledger"),
            ("--declare --ledger l.json --out r", "protect --declare releases nothing; it takes no --out"),
            ("--insecure-seed -1", "protect: insecure_seed: Input should be greater than or equal to 0, got -1"),
            ("--eta 0", "protect: eta must be > 0 and < 0.5, got 0"),
            ("--n-jobs -2", "n_jobs must be >= 1, got -2"),
        ],
    )
    def test_one_line_for_what_cannot_be(self, leakbound, protecting, flags: str, line: str) -> None:
        Path("taken").touch()
        refused(leakbound(f"{PROTECT} {flags}"), line)
        assert protecting.asked == []
        assert [path.name for path in Path().iterdir()] == ["taken"]

    def test_a_name_that_is_too_long(self, leakbound, protecting) -> None:
        left = leakbound(f"{PROTECT} --out {'a' * 260}")
        assert left.code == 1
        assert left.err.endswith("a/release.json cannot be written: File name too long\n")
        assert protecting.asked == []

    def test_data_are_needed(self, leakbound, protecting) -> None:
        refused(
            leakbound("protect"),
            "protect needs --data FILE, --promise and --eta, as --data people.csv --promise file --eta 0.05\n",
        )

    def test_a_query_is_announced(self, leakbound, protecting) -> None:
        left = leakbound(f"{PROTECT} --ledger l.json --declare")
        assert left == (0, "announced: mean, eta = 0.05\n", "")
        words = {"data": "people.csv", "promise": "drawn", "eta": 0.05, "ledger": "l.json", "declare": True}
        assert protecting.asked == [("declare", words)]
        assert json.loads(leakbound(f"{PROTECT} --ledger l.json --declare --json").out) == "announced: mean, eta = 0.05"
        assert list(Path().iterdir()) == []

    @pytest.mark.slow
    def test_what_protecting_refuses_is_one_line(self, leakbound, protecting) -> None:
        def refuses() -> None:
            raise ValueError("k must be from 1 to n - 1 = 29, got 30")

        protecting.happens = refuses
        refused(leakbound(PROTECT), "k must be from 1 to n - 1 = 29, got 30\n")
        assert list(Path().iterdir()) == []


class TestNothingIsLost:
    """Once drawn a value is in the ledger: it reaches a file, or standard output."""

    def test_a_file_that_came_during_the_calibration(self, leakbound, protecting) -> None:
        def comes() -> None:
            Path("leakbound-release").mkdir()
            Path("leakbound-release/release.html").write_text("old")

        protecting.happens = comes
        line = "leakbound-release/release.html exists already, and a release is never written over"
        refused(leakbound(PROTECT), line)
        assert protecting.drawn == 0

    @pytest.mark.parametrize("came", ["release.json", "release.html", "owner/private.json"])
    @pytest.mark.parametrize("ledger", ["", " --ledger l.json"])
    def test_a_file_that_came_during_the_release(self, leakbound, protecting, came: str, ledger: str) -> None:
        file = Path("leakbound-release") / came
        protecting.meanwhile = lambda: file.write_text("old")
        left = leakbound(PROTECT + ledger)
        line = f"leakbound-release/release.json cannot be written: {file} exists by now"
        assert left == (1, published().to_json(), f"{KEEP}leakbound: error: {line}\n")
        assert [path for path in Path().rglob("*") if path.is_file()] == [file]
        assert file.read_text() == "old"

    def test_a_folder_that_went_during_the_calibration(self, leakbound, protecting) -> None:
        Path("there").mkdir()
        protecting.happens = lambda: Path("there").rmdir()
        assert leakbound(f"{PROTECT} --out there").code == 0
        check_release(Path("there"))

    @pytest.mark.parametrize(
        ("error", "code", "said"),
        [
            (LookupError("lost"), 1, "leakbound: error: unexpected LookupError: lost; set LEAKBOUND_TRACEBACK=1 for"),
            (KeyboardInterrupt(), 130, "leakbound: interrupted; "),
        ],
    )
    def test_a_page_that_cannot_be_drawn(self, leakbound, protecting, monkeypatch, error, code: int, said) -> None:
        def breaks(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setattr(Report, "to_html", breaks)
        left = leakbound(PROTECT)
        assert (left.code, left.out) == (code, published().to_json())
        assert left.err.startswith(KEEP + said)
        assert list(Path().iterdir()) == []

    def test_ctrl_c_before_the_draw(self, leakbound, protecting) -> None:
        protecting.happens = lambda: signal.raise_signal(signal.SIGINT)
        left = leakbound(PROTECT)
        assert (left.code, left.out, protecting.drawn) == (130, "", 0)
        assert list(Path().iterdir()) == []


@pytest.mark.kills
class TestRoughTreatment:
    def test_a_read_only_folder_is_noticed_before_anything_is_drawn(self, leakbound, protecting, disk) -> None:
        disk.mount("size=1m")
        disk.mount("remount,ro")
        line = "cannot be written: Read-only file system\n"
        refused(leakbound(f"{PROTECT} --out disk/new/r"), f"disk/new/r/release.json {line}")
        assert protecting.asked == []
        disk.mount("remount,rw")
        protecting.happens = lambda: disk.mount("remount,ro")
        refused(leakbound(f"{PROTECT} --out disk/r"), f"disk/r/release.json {line}")
        disk.mount("remount,rw")
        refused(leakbound(f"{PROTECT} --out disk/new/r"), f"disk/new/r/release.json {line}")
        assert protecting.drawn == 0
        assert list(Path("disk").iterdir()) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("room", slow_but([8, 64], 64))  # kilobytes: not for the first JSON, for it but not for all
    def test_a_full_disk(self, leakbound, protecting, disk, room: int) -> None:
        disk.mount("size=1m")
        protecting.meanwhile = lambda: disk.mount(f"remount,size={room}k")
        left = leakbound(f"{PROTECT} --out disk/r")
        line = "disk/r/release.json cannot be written: No space left on device"
        assert left == (1, published().to_json(), f"{KEEP}leakbound: error: {line}\n")
        assert list(Path("disk").iterdir()) == []

    @pytest.mark.slow
    def test_a_kill_leaves_no_release_or_a_whole_one(self, leakbound, protecting, monkeypatch, tmp_path) -> None:
        """Five files are flushed (calls 1 to 5), then renamed (6 to 10), the released value last."""
        n_placed = {1: 0, 5: 0, 6: 0, 7: 1, 8: 2, 9: 3, 10: 4, 11: 5}  # files in their places at the end, by the call
        commands = {"fresh": PROTECT, "repeatable": f"{PROTECT} --ledger l.json"}
        cases = [(call, f"{noise}-{call}", commands[noise]) for noise in commands for call in n_placed]
        words = json.dumps([(call, folder, shlex.split(command)) for call, folder, command in cases])
        quick = {"PYTHONPATH": f"{KILLED.parents[2]}{os.pathsep}{SOURCES}", "OMP_NUM_THREADS": "1"}
        run = subprocess.run(
            [sys.executable, str(KILLED), words], env=os.environ | quick, capture_output=True, text=True, timeout=200
        )
        assert run.returncode == 0, run.stderr
        ended = json.loads(run.stdout)
        monkeypatch.setattr(Report, "to_html", lambda report: "a page")
        for (call, case, command), code in zip(cases, ended, strict=True):
            monkeypatch.chdir(tmp_path / case)
            assert code == -signal.SIGKILL, case
            said = Path("said")
            assert said.read_text() == "", case
            said.unlink()
            folder = Path("leakbound-release")
            names = ["owner/private.json", "owner/private.html", "release.html", "release.csv", "release.json"]
            assert [name for name in names if (folder / name).exists()] == names[: n_placed[call]], case
            unfinished = list(folder.rglob(".*"))
            assert all(path.parent.name == "owner" for path in unfinished), case  # none beside what is published
            assert folder.joinpath("owner").stat().st_mode & 0o777 == 0o700, case
            again = leakbound(command)
            if n_placed[call] == len(names) or (n_placed[call] and command == PROTECT):
                there = names[0] if command == PROTECT else names[-1]
                refused(again, f"{folder / there} exists already, and a release is never written over")
            else:
                assert again.code == 0, case
                check_release(folder)


def check_release(folder: Path) -> None:
    """Three files for everybody to read, two for their owner, and nothing beside them."""
    modes = {
        "release.json": 0o644, "release.html": 0o644, "release.csv": 0o644, "owner": 0o700,
        "owner/private.json": 0o600, "owner/private.html": 0o600,
    }  # fmt: skip
    assert {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in folder.rglob("*")} == modes
    for half, name in ((published(), "release"), (means(), "owner/private")):
        assert (folder / f"{name}.json").read_text(encoding="utf-8") == half.to_json()
        assert (folder / f"{name}.html").read_text(encoding="utf-8") == half.to_html()
    assert (folder / "release.csv").read_text(encoding="utf-8") == released_csv(published())
