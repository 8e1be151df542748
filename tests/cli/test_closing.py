"""The loop is closed: what ``protect`` promises is audited by ``audit signals``, on releases that are simulated."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leakbound.data import from_arrays
from leakbound.protection.attack.games import AttackConfig
from leakbound.protection.attack.release import signals
from leakbound.protection.promises.drawn.noise_search import search_noise
from leakbound.protection.promises.drawn.target import PrivacyTarget
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.statistic import named
from leakbound.reports import Report
from leakbound.runtime.observe import Execution
from tests.cli.calling import Left, caller, refused
from tests.marks import nightly

pytestmark = pytest.mark.usefixtures("without_pages")
AUDIT = "audit signals s.npz --attack likelihood_ratio --out audit"
MEAN = "--data people.csv --promise drawn --eta 0.05"
MIDDLE = "--data people.csv --statistic own:middle --promise drawn,fits=200 --eta 0.2 --n-jobs 1"
OWN = """import time

import numpy as np


def middle(x):
    return np.median(np.asarray(x), axis=0)


def rests(x):
    time.sleep(0.01)
    return middle(x)
"""


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd, as_users_run_it) -> Callable[[str], Left]:
    """A command beside a table of people, one of whom is paid far more, and a function of the user's."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"pay": rng.normal(20, 5, 60).round(1), "hours": rng.integers(1, 60, 60)})
    frame.loc[7, "pay"] = 90.0
    frame.to_csv("people.csv", index=False)
    Path("own.py").write_text(OWN, encoding="utf-8")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "own", raising=False)
    return caller(monkeypatch, capfd)


def verdict() -> str:
    """What the audit says of the claim."""
    (curve,) = (each for each in Report.from_json("audit/report.json").curves if each.verdict is not None)
    assert curve.verdict is not None
    return curve.verdict.word


class TestTheLoop:
    @pytest.mark.parametrize(
        ("words", "eta"),
        [
            (f"protect {MEAN}", 0.05),
            (f"calibrate {MEAN} --promise drawn,k=20", 0.05),
            nightly(f"calibrate {MIDDLE}", 0.2),
            nightly(f"calibrate {MEAN} --statistic covariance --eta 0.2", 0.2),
        ],
    )
    def test_a_protected_release_keeps_its_promise(self, leakbound, words: str, eta: float) -> None:
        """A true claim is refuted with a probability of at most one in a thousand."""
        left = leakbound(f"{words} --signals s.npz")
        line = f"wrote s.npz; audit it with: leakbound audit signals s.npz --attack likelihood_ratio --claim eta={eta}"
        assert left.code == 0
        assert left.err.endswith(f"leakbound: {line}\n")
        assert leakbound(f"{AUDIT} --claim eta={eta}").code == 0
        assert verdict() == "not_refuted"

    @pytest.mark.slow
    @pytest.mark.parametrize(("name", "n_games"), [("mean", 2000), nightly("covariance", 2000)])
    def test_a_tenth_of_the_noise_is_refuted(self, leakbound, name: str, n_games: int) -> None:
        table = pd.read_csv("people.csv").to_numpy(float)
        mechanism = Mechanism.of(named(name), from_arrays(table), 30, 0, Execution(n_jobs=1))
        found = search_noise(mechanism, PrivacyTarget(0.1, fits=400))
        for share, code, word in ((1.0, 0, "not_refuted"), (0.1, 2, "refuted")):
            noise = replace(found.noise, scale=share * found.noise.scale)
            seen = signals(mechanism, noise, AttackConfig(n_games, grid=found.grid, noisy_coords=found.noisy_coords))
            np.savez("s.npz", member=seen.game.member, is_target_point=np.arange(4) == 0, **seen.arrays)
            assert leakbound(f"{AUDIT} --claim eta=0.1").code == code
            assert verdict() == word

    def test_a_promise_that_was_not_made_is_refuted(self, leakbound) -> None:
        """The file that the command writes: noise for eta = .3 does not keep .05."""
        assert leakbound("calibrate --data people.csv --promise drawn --eta 0.3 --signals s.npz").code == 0
        assert leakbound(f"{AUDIT} --claim eta=0.05").code == 2
        assert verdict() == "refuted"


class TestTheFile:
    def test_what_it_holds(self, leakbound) -> None:
        """The most exposed record, the one paid most, is the target point; three others stand beside it."""
        assert leakbound(f"protect {MEAN} --promise drawn,games=500 --signals s.npz").code == 0
        with np.load("s.npz", allow_pickle=False) as file:
            held = {name: (file[name].dtype.kind, file[name].shape) for name in file.files}
            is_target_point, share = file["is_target_point"].tolist(), file["member"].mean()
        assert held == {
            "member": ("b", (500, 4)),
            "is_target_point": ("b", (4,)),
            "n_targets": ("i", ()),
            "step_dot": ("f", (500, 4, 1)),
            "step_norm": ("f", (500, 4, 1)),
        }
        assert is_target_point == [True, False, False, False]
        assert 0.4 < share < 0.6
        assert Path("s.npz").stat().st_mode & 0o777 == 0o600
        assert list(Path().glob(".*")) == []

    @pytest.mark.slow
    def test_it_is_simulated(self, leakbound) -> None:
        """Two releases, two draws, and one set of signals, which a calibration writes as well."""
        words = f"{MEAN} --promise drawn,games=300 --signals"
        for command in (
            f"calibrate {words} c.npz",
            *(f"protect {words} {name}.npz --out {name}" for name in "ab"),
        ):
            assert leakbound(command).code == 0
        made = {path.name: path.read_bytes() for path in Path().glob("*.npz")}
        assert len(made) == 3
        assert len(set(made.values())) == 1
        values = [json.loads(Path(f"{name}/release.json").read_text("utf-8"))["about"]["values"] for name in "ab"]
        assert values[0] != values[1]

    def test_without_the_flag_the_page_is_the_same(self, leakbound) -> None:
        release = f"protect {MEAN} --promise drawn,games=300 --insecure-seed 1"
        assert leakbound(f"{release} --out a --signals s.npz").code == 0
        assert leakbound(f"{release} --out b").code == 0
        with_flag, without = (json.loads(Path(f"{name}/owner/private.json").read_text("utf-8")) for name in "ab")
        assert with_flag["about"].pop("command").removesuffix(" --signals s.npz") == without["about"].pop("command")
        assert with_flag == without

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            (f"protect {MEAN} --signals there.npz", "--signals there.npz exists already; choose another name"),
            (f"calibrate {MEAN} --signals there.npz", "--signals there.npz exists already; choose another name"),
            (f"protect {MEAN} --signals link.npz", "--signals link.npz exists already; choose another name"),
            (f"protect {MEAN} --signals s.json", "--signals s.json: signals are a file whose name ends in .npz"),
            (f"protect {MEAN} --signals new/s.npz", "--signals new/s.npz: no such folder new"),
            (
                f"protect {MEAN} --signals l.npz --ledger ./l.npz",
                "--signals l.npz: the ledger would be written there",
            ),
            (
                f"protect {MEAN} --signals s.npz --promise drawn,games=0",
                "signals are of simulated releases: games must be >= 1, got 0",
            ),
            (
                f"calibrate {MEAN} --signals s.npz --promise drawn,about=average",
                "signals are of the most exposed record, to whom about = average promises nothing",
            ),
            (
                f"protect {MEAN} --signals s.npz --ledger l.json --declare",
                "protect --declare releases nothing; it takes no --signals",
            ),
            (
                "calibrate --signals s.npz dpsgd --sample-rate 0.1 --steps 9 --advantage 0.1",
                "calibrate dpsgd takes no --signals before it",
            ),
        ],
    )
    def test_one_line_for_what_cannot_be(self, leakbound, words: str, line: str) -> None:
        Path("there.npz").write_text("kept")
        Path("link.npz").symlink_to("nowhere")
        before = sorted(Path().iterdir())
        refused(leakbound(words), line)
        assert sorted(Path().iterdir()) == before
        assert Path("there.npz").read_text() == "kept"

    def test_a_release_that_is_refused_leaves_no_signals(self, leakbound) -> None:
        words = f"protect {MEAN} --promise drawn,games=100 --ledger l.json"
        assert leakbound(f"{words} --declare").code == 0
        before = sorted(Path().iterdir())
        left = leakbound(f"{words} --statistic sum --signals s.npz")
        refused(left, "")
        assert "declared" in left.err
        assert sorted(Path().iterdir()) == before

    def test_one_that_came_meanwhile_is_not_written_over(self, leakbound, monkeypatch) -> None:
        monkeypatch.setattr(Report, "table", lambda report: "")
        drawn = Report.to_html

        def meanwhile(report: Report) -> str:
            Path("s.npz").write_text("theirs")
            return drawn(report)

        monkeypatch.setattr(Report, "to_html", meanwhile)
        refused(
            leakbound(f"protect {MEAN} --promise drawn,games=100 --signals s.npz"), "--signals s.npz exists already"
        )
        assert Path("s.npz").read_text() == "theirs"
        assert Path("leakbound-release/release.json").exists()  # once drawn, a value is never lost
        assert list(Path().glob(".*")) == []


@pytest.mark.slow
@pytest.mark.kills
def test_a_full_disk_is_noticed_before_anything_is_drawn(leakbound, disk) -> None:
    disk.mount("size=8k")
    line = "disk/s.npz cannot be written: No space left on device\n"
    refused(leakbound(f"protect {MEAN} --ledger l.json --signals disk/s.npz"), line)
    assert list(Path("disk").iterdir()) == []
    assert sorted(path.name for path in Path().glob("l*")) == []


@pytest.mark.nightly
@pytest.mark.slow
def test_the_bar_goes_to_standard_error(leakbound) -> None:
    """At a terminal; standard output is the report alone."""
    words = f"{MIDDLE} --promise drawn,fits=200,games=0 --out r --json".replace("middle", "rests").split()
    ours, theirs = pty.openpty()
    quick = {"OMP_NUM_THREADS": "1", "TERM": "xterm", "COLUMNS": "100"}
    run = subprocess.Popen(
        [sys.executable, "-m", "leakbound", "protect", *words],
        stdout=subprocess.PIPE,
        stderr=theirs,
        stdin=theirs,
        env=os.environ | quick,
    )
    os.close(theirs)
    said = bytearray()
    while piece := _piece(ours):
        said += piece
    out = run.communicate(timeout=60)[0].decode()
    os.close(ours)
    assert run.returncode == 0
    assert out == Path("r/release.json").read_text(encoding="utf-8")
    text = said.decode()
    assert re.search(r"fits of rests\S* .*\d+/160", text)
    assert text.rstrip().endswith(
        "wrote r: release.json, release.html and release.csv for publication, owner/ for you alone"
    )


def _piece(terminal: int) -> bytes:
    """What was said; nothing when the other end is closed."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
