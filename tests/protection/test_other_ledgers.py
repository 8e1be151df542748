"""A second design on the same data: refused without a word, and named in the certificate with one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakbound.files import private_file
from leakbound.plans.promises import NAME_OF, Anyone, Drawn, File
from leakbound.protection import Protected
from leakbound.protection.ledger.budget import BudgetLedger as ReleaseLedger
from tests.promising import calibrate_file, declare_file, protect, protect_file

pytestmark = pytest.mark.usefixtures("as_users_run_it")
DATA = "people.csv"
LEDGER = Path("people.csv.ledger")
WORDS: Mapping[str, dict[str, Any]] = {
    "dp": {"promise": Anyone(ranges={"a": (-9, 9), "b": (-9, 9)})},
    "leave-one-out": {"promise": File(games=0)},
    "half": {"promise": Drawn(games=0)},
}
PAIRS = [(first, second) for first in WORDS for second in WORDS if first not in (second, "half")]
DATE = "2027-01-04"


@pytest.fixture(autouse=True)
def people(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["a", "b"]).to_csv(DATA, index=False)


def release(design: str, **more: Any) -> Protected:
    words: dict[str, Any] = {"data": DATA, "eta": 0.05, "date": DATE, "n_jobs": 1, **WORDS[design], **more}
    return protect_file(**words)


def ledgers() -> list[str]:
    return sorted(path.name for path in Path().iterdir() if path.name.endswith(".ledger") and path.name[0] != ".")


def named(made: Protected) -> list[dict[str, Any]]:
    public, owner = (
        [other.model_dump() for other in half.about.certificate.others] for half in (made.certificate, made.owner)
    )
    assert public == owner
    return public


def entry_of(path: Path, design: str, place: int = 0) -> str:
    return ReleaseLedger.open(path, design).entry_digest(place)


def refusal(first: str, second: str, where: str = "people.csv.ledger", releases: str = f"release 1 of {DATE}") -> str:
    return (
        f"these data were released under promise {NAME_OF[first]} ({releases} of {where}), and no joint number is "
        f"promised over two promises: choose promise {NAME_OF[first]}, or say another_promise "
        f"(--another-promise) to release under promise {NAME_OF[second]} all the same, in a ledger of its own"
    )


def assert_refused(line: str, call: Any) -> None:
    before = {path: path.read_bytes() for path in Path().iterdir()}
    with pytest.raises(ValueError, match="promise") as caught:
        call()
    assert str(caught.value) == line
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize(("first", "second"), PAIRS)
class TestSecondDesign:
    def test_is_refused_in_one_line(self, first, second) -> None:
        release(first)
        assert_refused(refusal(first, second), lambda: release(second))

    def test_a_ledger_elsewhere_is_no_way_around(self, first, second) -> None:
        release(first)
        assert_refused(refusal(first, second), lambda: release(second, ledger="elsewhere"))

    @pytest.mark.by_day("dp-leave-one-out")
    def test_is_allowed_where_it_is_said_and_names_the_first(self, first, second) -> None:
        made = release(first, budget=0.2)
        assert named(made) == []
        other = release(second, another_promise=True)
        digest = entry_of(LEDGER, first)
        assert named(other) == [{"design": first, "date": DATE, "number": 1, "digest": digest}]
        own = [] if second == "half" else [f"people.csv.{second}.ledger"]
        assert ledgers() == sorted(["people.csv.ledger", *own])
        text = " ".join(other.certificate.table(full=True).split())
        assert "Other promises The same data were released under another promise. " in text
        assert f"release 1 of {DATE}, entry {digest[:12]}. No joint number is promised over releases of two" in text


class TestBothWays:
    def test_the_first_design_names_the_second_one_too(self) -> None:
        release("dp", budget=0.2)
        release("leave-one-out", another_promise=True)
        beside = Path("people.csv.leave-one-out.ledger")
        more = {"statistic": "covariance"}
        assert_refused(refusal("leave-one-out", "dp", beside.name), lambda: release("dp", **more))
        made = release("dp", another_promise=True, **more)
        digest = entry_of(beside, "leave-one-out")
        assert named(made) == [{"design": "leave-one-out", "date": DATE, "number": 1, "digest": digest}]
        assert made.certificate.about.certificate.entry.number == 2

    def test_a_certificate_stays_the_same_after_later_releases_of_the_other_design(self) -> None:
        release("dp", budget=0.3)
        made = release("leave-one-out", another_promise=True, budget=0.1)
        release("dp", another_promise=True, statistic="covariance")
        again = release("leave-one-out", another_promise=True, budget=0.1)
        assert (again.to_json(), len(named(again))) == (made.to_json(), 1)
        later = release("leave-one-out", another_promise=True, eta=0.01, statistic="sum")
        assert [other["number"] for other in named(later)] == [1, 2]

    @pytest.mark.by_day("leave-one-out")
    @pytest.mark.parametrize("first", ["dp", "leave-one-out"])
    def test_the_first_release_is_made_again_without_a_word(self, first) -> None:
        """It is in its ledger and tells nothing new; its certificate names what came before it alone."""
        made = release(first, budget=0.2)
        second = "dp" if first == "leave-one-out" else "leave-one-out"
        release(second, another_promise=True)
        before = {path: path.read_bytes() for path in Path().iterdir()}
        again = release(first, budget=0.2)
        assert (again.to_json(), named(again)) == (made.to_json(), [])
        np.testing.assert_array_equal(again.value, made.value)
        assert {path: path.read_bytes() for path in Path().iterdir()} == before
        # the second one is known in its ledger, which is beside that of the first
        assert len(named(release(second))) == 1
        line = refusal(first, second)
        assert_refused(line, lambda: release(second, statistic="sum"))

    def test_a_declaration_is_refused_where_the_ledger_has_releases(self) -> None:
        release("leave-one-out", budget=0.2)
        release("dp", another_promise=True)
        words: dict[str, Any] = {"data": DATA, "eta": 0.02, "statistic": "sum", **WORDS["leave-one-out"]}
        line = refusal("dp", "leave-one-out", "people.csv.dp.ledger")
        assert_refused(line, lambda: declare_file(**words))

    def test_a_ledger_beside_one_that_is_gone_goes_on(self) -> None:
        """Another one would leave another record out."""
        release("dp")
        release("leave-one-out", another_promise=True, budget=0.2)
        LEDGER.unlink()
        made = release("leave-one-out", statistic="covariance", eta=0.01)
        assert made.certificate.about.certificate.entry.number == 2
        assert ledgers() == ["people.csv.leave-one-out.ledger"]

    def test_a_third_design(self) -> None:
        release("half", ledger=LEDGER)
        release("dp", another_promise=True)
        made = release("leave-one-out", another_promise=True)
        assert [other["design"] for other in named(made)] == ["half", "dp"]
        assert len(ledgers()) == 3

    def test_the_same_design_needs_no_word(self) -> None:
        release("leave-one-out", budget=0.2)
        assert named(release("leave-one-out", statistic="covariance", eta=0.01)) == []


class TestHalf:
    def test_its_ledger_is_noticed_and_its_releases_are_named(self) -> None:
        release("half", ledger=LEDGER)
        line = refusal("half", "leave-one-out", releases="release 1")
        assert_refused(line, lambda: release("leave-one-out"))
        (other,) = named(release("leave-one-out", another_promise=True))
        assert (other["design"], other["date"], other["number"]) == ("half", "", 1)

    @pytest.mark.slow
    def test_its_own_ledger_is_beside_that_of_another_promise(self) -> None:
        release("dp")
        made = release("half", ledger=LEDGER, another_promise=True)
        assert ledgers() == ["people.csv.half.ledger", "people.csv.ledger"]
        again = release("half", ledger=LEDGER, another_promise=True)
        np.testing.assert_array_equal(again.value, made.value)


class TestOtherCalls:
    def test_a_declaration_is_refused_as_well(self) -> None:
        release("dp")
        words = {"data": DATA, "eta": 0.05, **WORDS["leave-one-out"]}
        assert_refused(refusal("dp", "leave-one-out"), lambda: declare_file(**words))
        line = declare_file(**words, another_promise=True)
        assert line == "people.csv.leave-one-out.ledger: 1 declared, 0 released"

    def test_a_calibration_releases_nothing_and_is_not(self) -> None:
        release("dp")
        assert calibrate_file(data=DATA, eta=0.05, **WORDS["leave-one-out"]).noise is not None

    def test_a_ledger_that_was_begun_alone(self) -> None:
        declare_file(data=DATA, eta=0.05, **WORDS["leave-one-out"])
        line = (
            "people.csv.ledger was begun for promise file, under which nothing is released yet: name another "
            "ledger for promise anyone, or say another_promise (--another-promise), which begins one beside it"
        )
        assert_refused(line, lambda: release("dp"))
        assert named(release("dp", another_promise=True)) == []
        assert ledgers() == ["people.csv.dp.ledger", "people.csv.ledger"]

    def test_arrays(self, tmp_path) -> None:
        """There the ledger is named."""
        rows, ledger = np.random.default_rng(0).normal(size=(30, 2)), tmp_path / "rows"
        words: dict[str, Any] = {"eta": 0.05, "date": DATE, "ledger": ledger}
        private: dict[str, Any] = {"promise": Anyone(ranges={"x0": (-9, 9), "x1": (-9, 9)})}
        protect("mean", rows, promise=File(games=0), **words)
        assert_refused(
            refusal("leave-one-out", "dp", str(ledger)),
            lambda: protect("mean", rows, **private, **words),
        )
        made = protect("mean", rows, another_promise=True, **private, **words)
        assert [other["design"] for other in named(made)] == ["leave-one-out"]
        assert (tmp_path / "rows.dp.ledger").exists()

    def test_many_releases_are_counted_in_the_refusal(self) -> None:
        for eta in (0.01, 0.02, 0.03, 0.04, 0.05):
            release("dp", eta=eta, budget=0.3)
        releases = ", ".join(f"release {number} of {DATE}" for number in (1, 2, 3)) + " and 2 more"
        assert_refused(refusal("dp", "leave-one-out", releases=releases), lambda: release("leave-one-out"))


class TestDamage:
    def test_a_file_in_the_place_of_a_ledger(self) -> None:
        Path("people.csv.dp.ledger").write_text("notes")
        with pytest.raises(ValueError, match=r"^people\.csv\.dp\.ledger "):
            release("leave-one-out")

    def test_a_ledger_of_no_design(self) -> None:
        private_file.write(LEDGER, {"format": "leakbound ledger 9", "design": "best"}, None)
        with pytest.raises(ValueError, match=r"^people\.csv\.ledger is no ledger of this version: "):
            release("leave-one-out")

    @pytest.mark.parametrize("releases", [[{"release": 3}], [3], [{}], 3])
    def test_a_ledger_of_half_draws_that_was_made_up(self, releases) -> None:
        content = {"format": "leakscope ledger 2", "key": "00" * 32, "releases": releases}
        private_file.write(LEDGER, content, None)
        with pytest.raises(ValueError, match=r"^people\.csv\.ledger is no ledger of this version"):
            release("leave-one-out", another_promise=True)
