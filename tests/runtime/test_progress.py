"""How far work is: what a terminal shows, and that nothing else shows it."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from leakbound.runtime import progress as room
from leakbound.runtime.progress import Work, progress
from tests.marks import nightly

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def test_the_rest_is_estimated_by_the_pace_of_what_was_computed():
    clock = Clock()
    work = Work("models", 10, clock)
    assert (work.count, work.times, work.remaining) == ("0/10", "0:00", None)
    clock.now = 5.0
    work.advance(4, stored=True)  # from a store: it tells nothing of the pace
    assert (work.count, work.remaining) == ("4/10", None)
    clock.now = 25.0
    work.advance(2)  # two in twenty seconds
    assert (work.count, work.remaining) == ("6/10", 40.0)
    clock.now = 35.0  # time moves while the next one is computed
    assert work.remaining == 30.0
    assert work.times == "0:35, 0:30 left"
    clock.now = 3725.0  # what takes longer than expected is due at any moment
    assert work.times == "1:02:05, 0:00 left"


def test_work_of_unknown_amount_has_a_time_alone():
    clock = Clock()
    work = Work("bound pmp\x1b[2J", clock=clock)
    work.advance()
    clock.now = 61.0
    assert (work.name, work.count, work.times) == ("bound pmp\\x1b[2J", "", "1:01")


def test_nothing_is_shown_in_a_file(capfd):
    with progress("models", 2) as advance:
        advance()
    assert capfd.readouterr() == ("", "")


def test_an_error_ends_the_work():
    with pytest.raises(KeyboardInterrupt), progress("models", 2):
        raise KeyboardInterrupt
    assert room._under_way == []


class Shown:
    """A script with standard error on a terminal and standard output through a pipe."""

    def __init__(self, script: str, folder: Path, **environment: str) -> None:
        self.ours, theirs = pty.openpty()
        folder.mkdir(exist_ok=True)
        file = folder / "script.py"
        file.write_text(textwrap.dedent(script))
        self.process = subprocess.Popen(
            [sys.executable, str(file)],
            stdout=subprocess.PIPE,
            stderr=theirs,
            cwd=folder,
            env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "80"} | environment,
            text=True,
        )
        os.close(theirs)
        self.said = ""

    def until(self, word: str) -> None:
        """Read standard error until a word comes."""
        while word not in self.said:
            self.said += os.read(self.ours, 65536).decode()

    def end(self) -> tuple[str, str]:
        """Read the rest."""
        while True:
            try:
                part = os.read(self.ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            self.said += part.decode()
        os.close(self.ours)
        out, _ = self.process.communicate(timeout=60)
        return out, self.said


SLOW_MODELS = """
    import sys, time
    from leakbound.runtime.progress import progress
    with progress("models of Ridge", 4) as advance:
        time.sleep(2.6)
        advance()
        print("a model prints", flush=True)
        time.sleep(0.6)
    print("done")
"""
SHORTER = SLOW_MODELS.replace("2.6", "1.1")


@pytest.mark.slow
def test_time_moves_within_a_part_and_the_rest_is_estimated_after_the_first(tmp_path):
    out, said = Shown(SLOW_MODELS, tmp_path).end()
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", said)
    for words in ("models of Ridge", "0/4 0:01", "0/4 0:02", r"1/4 0:0\d, 0:\d\d left"):
        assert re.search(words, plain), words
    assert "left" not in plain[: plain.index("1/4")]
    assert out == "a model prints\ndone\n"  # standard output has what models print, and no progress
    assert said.rindex(SHOW) > said.rindex(HIDE)


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["60", nightly("80")])
def test_a_long_name_gives_way_in_narrow_terminals(tmp_path, columns):
    _, said = Shown(SHORTER.replace("Ridge", "R" * 90), tmp_path, COLUMNS=columns).end()
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", said)
    assert max(len(line) for line in re.split(r"[\r\n]+", plain)) <= int(columns)
    assert re.search(r"models of R+… [━╸╺]+ 1/4 0:0\d, 0:\d\d left", plain)


@pytest.mark.slow
def test_the_cursor_is_shown_however_the_run_ends(tmp_path):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
    script = SLOW_MODELS.replace("2.6", "60")
    runs = [Shown(script, tmp_path / number.name) for number in numbers]  # side by side: they sleep
    for number, shown in zip(numbers, runs, strict=True):
        shown.until("0:01")
        shown.process.send_signal(number)
        _, said = shown.end()
        assert said.rindex(SHOW) > said.rindex(HIDE), number


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, nightly({"CI": "true"})])
def test_nothing_is_shown_where_nothing_can_be_redrawn(tmp_path, environment):
    out, said = Shown(SHORTER, tmp_path, **environment).end()
    assert (out, said) == ("a model prints\ndone\n", "")


@pytest.mark.slow
def test_work_within_work_is_shown_below_it_and_short_work_of_unknown_amount_is_not(tmp_path):
    script = """
        import sys, time
        from leakbound.runtime.progress import progress
        with progress("experiments", 2) as advance:
            print("note", file=sys.stderr)
            with progress("runs", 3) as inner:
                time.sleep(0.6)
            with progress("too short to be shown"):
                time.sleep(0.2)
            with progress("a long search"):
                time.sleep(1.8)
    """
    _, said = Shown(script, tmp_path).end()
    assert re.search(r"experiments.*\n.*runs", said)
    assert "too short" not in said
    assert "a long search" in said
    assert "note\r\n" in said


@pytest.mark.slow
def test_workers_draw_nothing(tmp_path):
    (tmp_path / "tasks.py").write_text(
        "import time\n"
        "from leakbound.runtime.progress import progress\n"
        "def task(number):\n"
        "    with progress('of a worker', 2) as advance:\n"
        "        time.sleep(0.5)\n"
        "    return {'number': number}\n"
    )
    script = """
        import leakbound as ls
        from tasks import task
        ls.repeat(task, [(0,), (1,)], what="runs", n_jobs=JOBS)
    """
    _, said = Shown(script.replace("JOBS", "2"), tmp_path).end()
    assert "of a worker" not in said
    assert "runs" in said
    _, said = Shown(script.replace("JOBS", "1"), tmp_path).end()
    assert "of a worker" in said  # in this process it is shown below


@pytest.mark.slow
def test_a_run_within_a_store_goes_on_from_there(tmp_path):
    script = """
        import time
        import leakbound as ls
        from tasks import task
        ls.repeat(task, [(n,) for n in range(3)], store="store", n_jobs=1)
        ls.repeat(task, [(n,) for n in range(6)], store="store", n_jobs=1, what="more")
    """
    (tmp_path / "tasks.py").write_text(
        "import time\ndef task(number):\n    time.sleep(0.5)\n    return {'number': number}\n"
    )
    _, said = Shown(script, tmp_path).end()
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", said)
    assert re.search(r"more.*3/6 0:0\d\s", plain)  # no estimate from what the store had
    assert re.search(r"more.*4/6 0:0\d, 0:0\d left", plain)
