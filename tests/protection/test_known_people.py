"""Ledgers follow the people: a copy of their file, and the next wave, get no second budget in silence."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from leakbound.cli import main as cli
from leakbound.files import private_file
from leakbound.plans.promises import Anyone, Drawn, File
from leakbound.protection import Protected
from leakbound.protection.ledger.budget import BudgetLedger as ReleaseLedger
from leakbound.protection.ledger.drawn import DrawnLedger as Ledger
from leakbound.protection.ledger.files import opened
from leakbound.protection.ledger.listed import list_file, listed_ledgers, note_ledger
from tests.promising import declare, declare_file, protect_file

pytestmark = pytest.mark.usefixtures("as_users_run_it", "without_bands")
WORDS: dict[str, dict[str, Any]] = {
    "anyone": {"promise": Anyone(ranges={"wage": (0, 80), "age": (18, 99)}), "drop": ["town"]},
    "file": {"promise": File(games=0), "drop": ["town"]},
    "drawn": {"promise": Drawn(games=0), "drop": ["town"], "ledger": "people.csv.ledger"},
}
PROMISES = list(WORDS)
N = 40


def people(first: int = 100, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    towns = rng.choice(["Bern", "Biel", "7"], N)
    wages, ages = rng.normal(40, 9, N).round(2), rng.integers(18, 80, N)
    return pd.DataFrame({"wage": wages, "age": ages, "town": towns, "person": np.arange(first, first + N)})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    people().drop(columns="person").to_csv("people.csv", index=False)


def release(promise: str, data: str = "people.csv", **more: Any) -> Protected:
    words = {"data": data, "eta": 0.05, "budget": None if promise == "drawn" else 0.2, "n_jobs": 1}
    return protect_file(**{**words, **WORDS[promise], **more})


def other_name() -> tuple[str, dict[str, Any]]:
    shutil.copy("people.csv", "copy.csv")
    return "copy.csv", {"ledger": "copy.csv.ledger"}


def as_parquet() -> tuple[str, dict[str, Any]]:
    pd.read_csv("people.csv").to_parquet("people.parquet")
    return "people.parquet", {"ledger": "people.parquet.ledger"}


def by_link() -> tuple[str, dict[str, Any]]:
    Path("../links").mkdir()
    os.symlink(Path("people.csv").resolve(), "../links/link.csv")
    return "../links/link.csv", {"ledger": "../links/link.csv.ledger"}


def in_another_folder() -> tuple[str, dict[str, Any]]:
    Path("../there").mkdir()
    shutil.copy("people.csv", "../there/people.csv")
    return "../there/people.csv", {"ledger": "../there/people.csv.ledger"}


def under_another_ledger() -> tuple[str, dict[str, Any]]:
    return "people.csv", {"ledger": "other.ledger"}


def with_other_rows_and_types() -> tuple[str, dict[str, Any]]:
    """In another order, of rows and of columns, and with one text in a column of numbers: all others stay known."""
    frame = pd.read_csv("people.csv").sample(frac=1, random_state=1).astype({"age": object})
    frame.iloc[0, 1] = "old"
    frame[["town", "age", "wage"]].to_csv("shuffled.csv", index=False)
    return "shuffled.csv", {"ledger": "shuffled.ledger", "drop": ["town", "age"], "ranges": ["wage=0:80"]}


COPIES = [other_name, as_parquet, by_link, in_another_folder, under_another_ledger, with_other_rows_and_types]


class TestCopies:
    @pytest.mark.by_day("other_name-anyone", "by_link-anyone", "under_another_ledger-anyone")
    @pytest.mark.parametrize("promise", PROMISES)
    @pytest.mark.parametrize("copied", COPIES)
    def test_a_copy_is_refused_and_no_ledger_is_begun(self, promise, copied) -> None:
        release(promise)
        data, more = copied()
        if promise != "anyone":
            more.pop("ranges", None)
        with pytest.raises(ValueError, match=r"^(39|40) of the 40 records are in .*people\.csv\.ledger too") as caught:
            release(promise, data, **more)
        assert "--ledger" in str(caught.value)
        assert "--allow-known-people" in str(caught.value)
        assert not Path(more["ledger"]).exists()

    @pytest.mark.parametrize("promise", PROMISES)
    def test_the_flag_passes_it_and_stands_in_the_certificate(self, promise) -> None:
        release(promise)
        made = release(promise, ledger="other.ledger", allow_known_people=True)
        for half in (made.certificate, made.owner):
            certificate = half.about.certificate
            assert "known_people" in [term.id for term in certificate.assumptions]
            assert [other.number for other in certificate.others] == [1]
        assert "Other ledgers Another ledger holds people of these data. " in " ".join(
            made.certificate.table(full=True).split()
        )

    def test_the_certificate_stays_the_same_when_it_is_made_again(self) -> None:
        release("anyone")
        made = release("anyone", ledger="other.ledger", allow_known_people=True)
        again = release("anyone", ledger="other.ledger", allow_known_people=True)
        assert again.to_json() == made.to_json()
        np.testing.assert_array_equal(release("anyone", ledger="other.ledger").value, made.value)

    def test_a_flag_that_passes_nothing_stands_nowhere(self) -> None:
        made = release("anyone", allow_known_people=True)
        assert "known_people" not in [term.id for term in made.certificate.about.certificate.assumptions]

    def test_later_releases_of_the_first_ledger_are_refused_too(self) -> None:
        """Nothing adds up the two, whichever is asked."""
        release("anyone")
        release("anyone", ledger="other.ledger", allow_known_people=True)
        with pytest.raises(ValueError, match=r"^40 of the 40 records are in other\.ledger too"):
            release("anyone", eta=0.01)
        again = release("anyone", allow_known_people=True, eta=0.01)
        assert again.certificate.about.certificate.entry.number == 2

    def test_other_people_are_not_refused(self) -> None:
        release("anyone")
        people(seed=1).drop(columns="person").to_csv("others.csv", index=False)
        made = release("anyone", "others.csv")
        text = " ".join(made.owner.table(full=True).split())
        assert "folder of the ledger has others, people.csv.ledger, without these records: if one of them" in text

    def test_half_of_the_smaller_file(self) -> None:
        release("anyone")
        frame, more = pd.read_csv("people.csv"), people(seed=1).drop(columns="person")
        pd.concat([frame[:19], more[:21]]).to_csv("fewer.csv", index=False)
        assert release("anyone", "fewer.csv") is not None
        pd.concat([frame[:20], more[21:], people(seed=2)[:3].drop(columns="person")]).to_csv("half.csv", index=False)
        with pytest.raises(ValueError, match=r"^20 of the 42 records are in people\.csv\.ledger too"):
            release("anyone", "half.csv")

    def test_a_column_more_is_not_recognised_without_identifiers(self) -> None:
        """As the documentation says."""
        release("anyone")
        pd.read_csv("people.csv").assign(more=1).to_csv("more.csv", index=False)
        assert release("anyone", "more.csv", drop=["town", "more"]) is not None

    def test_declarations_and_arrays(self) -> None:
        frame = pd.read_csv("people.csv")[["wage", "age"]]
        words: dict[str, Any] = {"eta": 0.05, "promise": "drawn"}
        declare("mean", frame, ledger="a.ledger", **words)
        with pytest.raises(ValueError, match=r"^40 of the 40 records are in a\.ledger too"):
            declare("mean", frame, ledger="b.ledger", **words)
        declare("mean", frame, ledger="b.ledger", allow_known_people=True, **words)
        release("file")
        with pytest.raises(ValueError, match=r"^40 of the 40 records are in people\.csv\.ledger too"):
            declare_file(data="people.csv", eta=0.05, ledger="c.ledger", **WORDS["file"])

    def test_releases_for_tests_are_left_alone(self) -> None:
        for seed in (1, 2):
            release("file", ledger=f"{seed}.ledger", insecure_seed=seed)
        assert release("file") is not None
        assert [Path(ledger.path).name for ledger in listed_ledgers(list_file(None))] == ["people.csv.ledger"]

    def test_a_backup_is_no_other_ledger_until_it_goes_on(self) -> None:
        release("anyone")
        shutil.copy2("people.csv.ledger", "backup.ledger")
        assert release("anyone", eta=0.01) is not None
        with pytest.raises(ValueError, match=r"^40 of the 40 records are in people\.csv\.ledger too"):
            release("anyone", eta=0.02, ledger="backup.ledger")

    def test_a_draw_without_a_ledger_is_a_draw_of_its_own(self) -> None:
        release("drawn")
        assert release("drawn", ledger=None) is not None

    def test_another_promise_of_a_copy(self) -> None:
        release("anyone")
        shutil.copy("people.csv", "copy.csv")
        with pytest.raises(
            ValueError, match=r"people\.csv\.ledger too, .* or say another_promise \(--another-promise\) to rel"
        ):
            release("file", "copy.csv")
        with pytest.raises(
            ValueError, match=r"say another_promise \(--another-promise\) to release under promise drawn"
        ):
            release("drawn", "copy.csv", ledger=None)
        made = release("file", "copy.csv", another_promise=True)
        assert [other.design for other in made.certificate.about.certificate.others] == ["dp"]


class TestIdentifiers:
    """The next wave: other answers of the same people."""

    @pytest.fixture(autouse=True)
    def waves(self) -> None:
        people().to_csv("first.csv", index=False)
        people(104, seed=1).to_csv("second.csv", index=False)  # 36 of 40 are the same
        people(139, seed=2).to_csv("third.csv", index=False)  # one is

    @pytest.mark.parametrize("promise", PROMISES)
    def test_the_next_wave_is_refused(self, promise) -> None:
        more = {"id": "person", "drop": ["town"]}
        release(promise, "first.csv", **more | {"ledger": "first.ledger"})
        with pytest.raises(ValueError, match=r"^36 of the 40 identifiers are in first\.ledger too"):
            release(promise, "second.csv", **more | {"ledger": "second.ledger"})
        assert not Path("second.ledger").exists()

    @pytest.mark.parametrize("promise", ["anyone", "file"])
    def test_the_ledger_of_the_first_wave_counts_both(self, promise) -> None:
        release(promise, "first.csv", id="person")
        made = release(promise, "second.csv", id="person", ledger="first.csv.ledger", eta=0.01)
        assert made.certificate.about.certificate.entry.number == 2
        # and now it knows the people of both
        people(139, seed=3).to_csv("fourth.csv", index=False)
        with pytest.raises(ValueError, match=r"^5 of the 40 identifiers are in first\.csv\.ledger too"):
            release("file", "fourth.csv", id="person")

    def test_for_a_file_one_identifier_is_enough(self) -> None:
        release("file", "first.csv", id="person")
        with pytest.raises(ValueError, match=r"^1 of the 40 identifiers are in first\.csv\.ledger too"):
            release("file", "third.csv", id="person")
        release("anyone", "third.csv", id="person")

    def test_a_group_is_an_identifier(self) -> None:
        release("file", "first.csv", id="person")
        with pytest.raises(ValueError, match=r"^36 of the 40 identifiers are in first\.csv\.ledger too"):
            release("file", "second.csv", group="person")

    def test_contents_are_known_whether_identifiers_are_given_or_not(self) -> None:
        release("anyone", "first.csv", id="person")
        shutil.copy("first.csv", "copy.csv")
        with pytest.raises(ValueError, match=r"^40 of the 40 records are in first\.csv\.ledger too"):
            release("anyone", "copy.csv", drop=["town", "person"])

    def test_the_ledger_holds_no_identifier_but_by_its_key(self) -> None:
        """SipHash-2-4 under a hash of the key, as the documentation says: here of numbers that nobody else has."""
        release("anyone", "first.csv", id="person")
        ledger = ReleaseLedger.open("first.csv.ledger", "dp")
        key = hashlib.blake2b(key=ledger.key, person=b"identifiers", digest_size=16).digest()
        expected = sorted(
            mixed(siphash(key, hashlib.blake2b(str(person).encode(), digest_size=16).digest()))
            for person in range(100, 140)
        )
        (numbers,) = ledger.people.identifiers
        assert numbers.tolist() == expected
        text = Path("first.csv.ledger").read_text()
        assert not any(f'"{person}"' in text for person in range(100, 140))


def siphash(key: bytes, message: bytes) -> int:
    """SipHash-2-4 (Aumasson and Bernstein, 2012), from its definition."""
    mask = 2**64 - 1
    first, second = (int.from_bytes(half, "little") for half in (key[:8], key[8:]))
    v = [
        first ^ 0x736F6D6570736575,
        second ^ 0x646F72616E646F6D,
        first ^ 0x6C7967656E657261,
        second ^ 0x7465646279746573,
    ]

    def turned(number: int, bits: int) -> int:
        return ((number << bits) | (number >> (64 - bits))) & mask

    def sipround() -> None:
        v[0] = (v[0] + v[1]) & mask
        v[2] = (v[2] + v[3]) & mask
        v[1], v[3] = turned(v[1], 13) ^ v[0], turned(v[3], 16) ^ v[2]
        v[0] = turned(v[0], 32)
        v[2] = (v[2] + v[1]) & mask
        v[0] = (v[0] + v[3]) & mask
        v[1], v[3] = turned(v[1], 17) ^ v[2], turned(v[3], 21) ^ v[0]
        v[2] = turned(v[2], 32)

    padded = message + bytes(7 - len(message) % 8) + bytes([len(message)])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        sipround()
        sipround()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        sipround()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def mixed(number: int) -> int:
    """The bijection by which pandas goes on: the end of SplitMix64 (Steele, Lea and Flood, 2014)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        number = ((number ^ (number >> shift)) * factor) % 2**64
    return number ^ (number >> 31)


def run(*words: str) -> int:
    """The exit code of the command in this process."""
    sys.argv = ["leakbound", *words]
    with pytest.raises(SystemExit) as left:
        cli.main()
    return int(left.value.code or 0)


class TestLargeFiles:
    """Of files of more than 2,000 people, 2,000 are looked up first in the ledger of another folder."""

    N_PEOPLE = 3000

    def people(self, first: int) -> pd.DataFrame:
        rng = np.random.default_rng(first)
        persons = np.arange(first, first + self.N_PEOPLE)
        return pd.DataFrame({"wage": rng.normal(40, 9, self.N_PEOPLE).round(2), "person": persons})

    @pytest.mark.parametrize("n_common", [1000, 600])
    def test_a_part_in_common_is_found(self, n_common: int) -> None:
        """A third, and a fifth, of which about as many are named.

        None of them is among the 2,000 with probability less than 1e-600. The number that is estimated from the 2,000
        has a standard deviation of 18 at most, so that it is more than 120 away less often than once in 10^10.
        """
        Path("../there").mkdir()
        self.people(0).to_csv("../there/first.csv", index=False)
        self.people(self.N_PEOPLE - n_common).to_csv("second.csv", index=False)
        words = {"drop": [], "id": "person", "budget": 0.2}
        release("file", "../there/first.csv", ledger="../there/first.csv.ledger", **words)
        with pytest.raises(ValueError, match=r"identifiers are in .*first\.csv\.ledger too") as caught:
            release("file", "second.csv", ledger="second.csv.ledger", **words)
        said = re.match(r"(about )?([\d,]+) of the 3,000 identifiers", str(caught.value))
        assert said is not None
        assert abs(int(said[2].replace(",", "")) - n_common) <= 120
        assert not Path("second.csv.ledger").exists()

    def test_other_people_are_not_found(self) -> None:
        Path("../there").mkdir()
        self.people(0).to_csv("../there/first.csv", index=False)
        self.people(self.N_PEOPLE).to_csv("second.csv", index=False)
        words = {"drop": [], "id": "person", "budget": 0.2}
        release("file", "../there/first.csv", ledger="../there/first.csv.ledger", **words)
        assert release("file", "second.csv", ledger="second.csv.ledger", **words) is not None


class TestList:
    def test_it_holds_paths_dates_and_promises_for_its_owner_alone(self) -> None:
        release("anyone", date="2027-01-04")
        file = list_file(None)
        assert file == Path(os.environ["XDG_STATE_HOME"]) / "leakbound" / "ledgers"
        assert file.stat().st_mode & 0o777 == 0o600
        path = str(Path("people.csv.ledger").resolve())
        content = json.loads(file.read_text())["content"]
        expected = [{"path": path, "date": "2027-01-04", "promise": "anyone"}]
        assert content == {"format": "leakbound ledgers 1", "ledgers": expected}

    def test_without_the_variable_it_is_in_the_home(self, monkeypatch) -> None:
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.setenv("HOME", "/somewhere")
        assert list_file(None) == Path("/somewhere/.local/state/leakbound/ledgers")
        assert list_file("none") is None

    def test_none_and_another_list(self) -> None:
        release("anyone", known_ledgers="none")
        assert listed_ledgers(list_file(None)) == []
        data, more = in_another_folder()
        release("anyone", data, **more, known_ledgers="../list")
        assert len(listed_ledgers(Path("../list"))) == 1
        with pytest.raises(ValueError, match=r"^40 of the 40 records are in people\.csv\.ledger too"):
            release("anyone", ledger="other.ledger", known_ledgers="none")  # the folder is asked all the same

    def test_a_listed_ledger_that_cannot_be_read_is_named_to_the_owner(self) -> None:
        note_ledger(list_file(None), Path("../gone.ledger"), "file", "2027-01-04")
        told: list[str] = []
        made = release("anyone", tell_owner=told.append)
        gone = Path("../gone.ledger").resolve()
        assert told == [
            f"whether these people are in a ledger is not known: {gone} cannot be read: No such file or directory"
        ]
        assert "hether these people are in a ledger is not known" in " ".join(made.owner.table(full=True).split())
        assert "not known" not in made.certificate.to_json()

    def test_a_list_that_cannot_be_written_refuses_before_anything_is_counted(self) -> None:
        Path("full").write_text("no folder")
        with pytest.raises(
            OSError,
            match=r"^the list of ledgers full/list cannot be written: .*known_ledgers \(--known-ledgers FILE\), or "
            r"say none$",
        ):
            release("anyone", known_ledgers="full/list")
        assert not Path("people.csv.ledger").exists()

    @pytest.mark.parametrize("content", [{"format": "x"}, {"format": "leakbound ledgers 1", "ledgers": [{"path": 3}]}])
    def test_a_list_that_was_made_up(self, content) -> None:
        private_file.write(Path("list"), content, None)
        with pytest.raises(ValueError, match=r"^list is no list of ledgers: "):
            release("anyone", known_ledgers="list")

    def test_the_command_lists_and_forgets(self, capsys) -> None:
        data, more = in_another_folder()
        release("anyone", data, **more, date="2027-01-04")
        path = Path(more["ledger"]).resolve()
        assert run("ledgers") == 0
        state = "which has spent 0.05 of its budget of 0.2 (promise anyone)"
        assert capsys.readouterr().out == f"2027-01-04  anyone  {path}, {state}\n"
        assert run("ledgers", "forget", more["ledger"]) == 0
        assert capsys.readouterr().out == (
            f"{path} is no longer asked, but by releases into its folder: a release of its people elsewhere begins a "
            "new budget without a word\n"
        )
        assert path.exists()
        assert release("anyone") is not None
        assert run("ledgers", "forget", more["ledger"]) == 1
        assert "is not on the list of ledgers" in capsys.readouterr().err

    def test_several_write_it_at_the_same_time(self) -> None:
        children = []
        for number in range(4):
            child = os.fork()
            if child == 0:
                note_ledger(Path("list"), Path(f"{number}.ledger"), "file", "2027-01-04")
                os._exit(0)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
        assert sorted(Path(known.path).name for known in listed_ledgers(Path("list"))) == [
            f"{n}.ledger" for n in range(4)
        ]


class TestLinks:
    @pytest.mark.parametrize("promise", PROMISES)
    def test_a_link_to_nothing_is_refused_and_stays(self, promise) -> None:
        os.symlink("../gone.ledger", "link.ledger")
        with pytest.raises(
            ValueError, match=r"^link\.ledger is a link to a file that is not there: \.\./gone\.ledger$"
        ):
            release(promise, ledger="link.ledger")
        assert os.readlink("link.ledger") == "../gone.ledger"
        assert not Path("../gone.ledger").exists()

    @pytest.mark.parametrize("promise", ["anyone", "file"])
    def test_the_file_behind_a_link_is_written_and_the_link_stays(self, promise) -> None:
        release(promise, ledger="../real.ledger")
        os.symlink("../real.ledger", "link.ledger")
        made = release(promise, ledger="link.ledger", eta=0.01)
        assert made.certificate.about.certificate.entry.number == 2
        assert os.readlink("link.ledger") == "../real.ledger"
        assert len(listed_ledgers(list_file(None))) == 1


class TestEarlierLedgers:
    """Made under our former name, before ledgers knew their people; with the values that were released."""

    FOLDER = Path(__file__).parent / "earlier_ledgers"
    ASKED: ClassVar[dict[str, dict[str, Any]]] = {
        "anyone": {"promise": "anyone", "statistic": "table", "by": ["age"], "levels": {"age": ["25", "43", "60"]}},
        "file": {"promise": File(games=0), "id": "person"},
        "drawn": {"promise": Drawn(games=0), "id": "person"},
    }

    @pytest.fixture(autouse=True)
    def copied(self) -> None:
        Path("people.csv").unlink()
        for file in self.FOLDER.iterdir():
            shutil.copy(file, file.name)
            os.chmod(file.name, 0o600)

    def again(self, promise: str, **more: Any) -> Protected:
        words = {"data": "people.csv", "eta": 0.05, "n_jobs": 1, "date": "2026-11-20", "another_promise": True}
        return protect_file(**{**words, **self.ASKED[promise], **more})

    @pytest.mark.parametrize("promise", PROMISES)
    def test_the_same_release_has_the_same_noise(self, promise) -> None:
        before = Path(f"{promise}.ledger").read_bytes()
        made = self.again(promise, ledger=f"{promise}.ledger")
        released = np.array(json.loads(Path("released.json").read_text())[promise])
        # values are now rounded to a hundredth of their noise; the digest of the release in the ledger is the same
        noise = np.array([row.noise_std for row in made.certificate.about.values])
        assert (abs(made.value - released) <= noise / 100).all()
        assert Path(f"{promise}.ledger").read_bytes() == before

    @pytest.mark.parametrize(
        ("promise", "line"),
        [
            ("anyone", "nothing is left of the budget of 0.05"),
            ("file", "the whole budget was given to the first query: this one is refused"),
            ("drawn", "the query was not declared in drawn.ledger before the first release"),
        ],
    )
    def test_another_release_is_counted_on_top(self, promise, line) -> None:
        with pytest.raises(ValueError, match=line):
            self.again(promise, ledger=f"{promise}.ledger", eta=0.01)

    def test_identifiers_of_a_file_are_known(self) -> None:
        with pytest.raises(ValueError, match=r"^30 of the 30 identifiers are in file\.ledger too"):
            self.again("file")

    def test_of_others_it_is_said_that_nobody_knows(self) -> None:
        told: list[str] = []
        self.again("anyone", tell_owner=told.append)
        assert any(line.startswith("whether these people are in anyone.ledger is not known: ") for line in told)

    @pytest.fixture
    def retired(self) -> Path:
        """The ledger of a design that is no longer there, alone with its data."""
        for name in ("anyone.ledger", "file.ledger", "drawn.ledger"):
            Path(name).unlink()
        return Path("retired.ledger")

    def test_a_retired_design_is_named_where_its_people_are_known(self, retired) -> None:
        assert opened(retired).state == "which is of the retired design per-instance (releases: 1)"
        ways = (
            "say another_promise (--another-promise) to release under promise file all the same, with no joint number "
            "over both"
        )
        line = (
            "30 of the 30 records are in retired.ledger too, which is of the retired design per-instance "
            f"(releases: 1): design per-instance is retired, and nothing more is released under it; {ways}"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
            self.again("file", another_promise=False)
        made = self.again("file")
        (other,) = made.certificate.about.certificate.others
        assert (other.design, other.date, other.number) == ("per-instance", "2026-11-20", 1)
        assert "under another promise. Promise per instance, release 1 of 2026-11-20" in " ".join(
            made.certificate.table(full=True).split()
        )

    def test_a_retired_design_is_named_by_the_place_of_its_ledger(self, retired) -> None:
        for name in ("people.csv.ledger", "people.csv.per-instance.ledger"):
            shutil.copy(retired, name)
            line = (
                f"these data were released under design per-instance (release 1 of 2026-11-20 of {name}), and no joint "
                "number is promised over two promises: design per-instance is retired, and nothing more is released "
                "under it; say another_promise (--another-promise)"
            )
            with pytest.raises(ValueError, match=f"^{re.escape(line)}"):
                self.again("anyone", another_promise=False)
            Path(name).unlink()

    def test_nothing_is_added_to_the_ledger_of_a_retired_design(self, retired) -> None:
        before = retired.read_bytes()
        with pytest.raises(ValueError, match=r"ledger of design per-instance: a release of another design"):
            ReleaseLedger.open(retired, "leave-one-out")
        self.again("file", ledger="retired.ledger")
        assert retired.read_bytes() == before
        assert Path("retired.leave-one-out.ledger").exists()


def test_a_driver_that_loses_is_told_that_another_release_was_made(monkeypatch) -> None:
    """Both begin the ledger of the same data; the second one wins while the first one computes."""

    def meanwhile() -> None:
        release("anyone", eta=0.01)

    with pytest.raises(ValueError, match="exists already") as caught:
        release("anyone", before=meanwhile)
    assert str(caught.value) == (
        "people.csv.ledger exists already: another release was made meanwhile; the same command again counts this one "
        "beside it"
    )
    assert release("anyone").certificate.about.certificate.entry.number == 2


def test_half_draws_know_their_people() -> None:
    release("drawn")
    ledger = Ledger.of_content(Path("people.csv.ledger"), *private_file.read(Path("people.csv.ledger")))
    assert [len(numbers) for numbers in ledger.people.contents] == [N]
