"""Temporary files and folders: private, of their own, and swept when their owner is gone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from leakbound.files import temporary

WEEK = 7 * 24 * 3600


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def owned_by(path: Path, host: str | None = None, process: int | None = None) -> Path:
    """The same name with another owner."""
    *start, own_host, own_process, random, end = path.name.split(".")
    return path.with_name(".".join([*start, host or own_host, str(process or own_process), random, end]))


@pytest.fixture(scope="module")
def dead() -> int:
    """The number of a process that has ended."""
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    return int(ended.stdout)


class TestParts:
    def test_stand_beside_their_target_and_are_hidden(self, tmp_path):
        part = temporary.part_of(tmp_path / "report.json")
        assert part.parent == tmp_path
        assert part.name.startswith(".report.json.")
        assert f".{os.getpid()}." in part.name
        assert part.name.endswith(".part")

    def test_differ_in_every_call_of_every_thread(self, tmp_path):
        with ThreadPoolExecutor(8) as threads:
            names = set(threads.map(lambda _: temporary.part_of(tmp_path / "a"), range(400)))
        assert len(names) == 400

    @pytest.mark.parametrize("name", ["a" * 250, "[x]*?.json"])
    def test_of_a_long_or_odd_name_can_be_written_and_swept(self, tmp_path, dead, name):
        target = tmp_path / name
        part = owned_by(temporary.part_of(target), process=dead)
        part.touch()
        other = tmp_path / ".x.json.part"
        other.touch()
        temporary.sweep(tmp_path, temporary.parts_of(target))
        assert list(tmp_path.iterdir()) == [other]


class TestAbandoned:
    @pytest.mark.parametrize("days", [0, 6.9])
    def test_what_a_living_process_or_another_host_has_is_left(self, tmp_path, dead, days):
        mine = temporary.part_of(tmp_path / "chunk")
        for path in (mine, owned_by(mine, host="elsewhere", process=dead), tmp_path / ".chunk.part"):
            path.touch()
            age(path, days * WEEK / 7)
            assert not temporary.abandoned(path)

    def test_what_a_dead_process_of_this_host_left_is_at_once(self, tmp_path, dead):
        path = owned_by(temporary.part_of(tmp_path / "chunk"), process=dead)
        path.touch()
        assert temporary.abandoned(path)

    def test_what_nobody_touched_for_a_week_is(self, tmp_path, dead):
        mine = temporary.part_of(tmp_path / "chunk")
        for path in (mine, owned_by(mine, host="elsewhere", process=dead), tmp_path / ".chunk.part"):
            path.touch()
            age(path, 1.01 * WEEK)
            assert temporary.abandoned(path)

    def test_what_is_gone_is_nobodys(self, tmp_path):
        assert not temporary.abandoned(temporary.part_of(tmp_path / "chunk"))


class TestFolder:
    def test_is_for_its_owner_alone_and_gone_afterwards(self, tmp_path):
        place = tmp_path / "place"
        with temporary.folder(place) as lent:
            assert lent.parent == place
            assert lent.stat().st_mode & 0o777 == 0o700
            assert place.stat().st_mode & 0o777 == 0o700
            assert f".{os.getpid()}." in lent.name
        assert not place.exists()  # it was made for that folder alone

    def test_a_place_that_was_there_stays(self, tmp_path):
        with temporary.folder(tmp_path):
            pass
        assert list(tmp_path.iterdir()) == []

    def test_is_the_same_one_as_long_as_the_process_lives(self, tmp_path):
        with temporary.folder(tmp_path) as first, temporary.folder(tmp_path) as second:
            assert first == second
        assert not first.exists()
        with temporary.folder(tmp_path) as again:
            assert again == first

    def test_stays_while_somebody_uses_it(self, tmp_path):
        with temporary.folder(tmp_path) as lent:
            with temporary.folder(tmp_path):
                pass
            assert lent.is_dir()

    def test_is_removed_with_all_that_is_in_it_when_the_process_ends(self, tmp_path):
        code = (
            "import sys; from leakbound.files.temporary import folder\n"
            "with folder(sys.argv[1]) as lent: (lent / 'rows').write_text('secret')\n"
            "assert (lent / 'rows').exists()"
        )
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
        assert list(tmp_path.iterdir()) == []

    def test_of_a_killed_process_goes_when_the_next_one_comes(self, tmp_path):
        code = (
            "import os, signal, sys; from leakbound.files.temporary import folder\n"
            "with folder(sys.argv[1]) as lent:\n"
            "    (lent / 'rows').write_text('secret')\n"
            "    os.kill(os.getpid(), signal.SIGKILL)"
        )
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
        (left,) = tmp_path.iterdir()
        assert (left / "rows").exists()
        with temporary.folder(tmp_path) as lent:
            assert list(tmp_path.iterdir()) == [lent]

    def test_a_forked_process_has_one_of_its_own(self, tmp_path):
        with temporary.folder(tmp_path) as lent:
            process = os.fork()
            if process == 0:
                with temporary.folder(tmp_path) as own:
                    os._exit(0 if own != lent and lent.exists() else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
            assert lent.exists()

    def test_a_file_is_no_place(self, tmp_path):
        file = tmp_path / "file"
        file.touch()
        line = f"the place for temporary files {file} is a file; give a folder"
        with pytest.raises(ValueError, match=re.escape(line)), temporary.folder(file):
            pass

    def test_a_place_that_cannot_be_written(self, tmp_path):
        (tmp_path / "file").touch()
        place = tmp_path / "file" / "place"
        line = f"no temporary folder can be made in {place}: Not a directory; name another place"
        with pytest.raises(OSError, match=re.escape(line)), temporary.folder(place):
            pass
