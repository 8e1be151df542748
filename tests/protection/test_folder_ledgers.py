"""Other ledgers in the folder of a new one: told to the owner, and refused where they hold the same identifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.core import private_file
from leakscope.plans.protects import ProtectionPlan
from leakscope.protection import Protected, declare_file, protect_file
from leakscope.protection.folder_ledgers import lines_of_other_ledgers

pytestmark = pytest.mark.usefixtures("as_users_run_it")
FILE: dict[str, Any] = {"promise": "file", "games": 0}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch) -> None:
    """Forty people, half of them again in another file, and people with other identifiers."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"person": np.arange(100, 140), "wage": np.random.default_rng(0).normal(size=40)})
    frame.to_csv("all.csv", index=False)
    frame[10:30].to_csv("half.csv", index=False)
    frame.assign(person=frame.person + 1000).to_csv("others.csv", index=False)


def release(data: str, **more: Any) -> Protected:
    words: dict[str, Any] = {"data": data, "id": "person", "eta": 0.05, "budget": 0.1, "n_jobs": 1, **FILE, **more}
    return protect_file(**words)


def lines(data: str, **more: Any) -> list[str]:
    return list(lines_of_other_ledgers(ProtectionPlan(data=data, eta=0.05, **FILE, **more)))


REFUSAL = (
    "20 of the 20 identifiers are in all.csv.ledger too, which has spent 0.0493 of its budget of 0.1 (design "
    "leave-one-out): join it by --ledger FILE, or name a new ledger if other people have the same identifiers"
)


class TestKnownPeople:
    def test_a_new_ledger_is_refused_and_not_begun(self) -> None:
        release("all.csv")
        with pytest.raises(ValueError, match="identifiers") as caught:
            release("half.csv")
        assert str(caught.value) == REFUSAL
        assert not Path("half.csv.ledger").exists()

    def test_as_the_group_and_in_a_declaration(self) -> None:
        release("all.csv")
        with pytest.raises(ValueError, match=r"^20 of the 20 identifiers"):
            release("half.csv", id=None, group="person")
        with pytest.raises(ValueError, match=r"^20 of the 20 identifiers"):
            declare_file(data="half.csv", id="person", eta=0.05, **FILE)

    def test_under_differential_privacy_too(self) -> None:
        """What is released of the people of the other ledger is of another design, and no number joins them."""
        release("all.csv")
        with pytest.raises(ValueError, match=r"^20 of the 20 identifiers"):
            protect_file(data="half.csv", id="person", eta=0.05, promise="anyone", ranges=["wage=-9:9"], n_jobs=1)

    def test_people_of_a_declared_query_are_known(self) -> None:
        declare_file(data="all.csv", id="person", eta=0.05, **FILE)
        with pytest.raises(ValueError, match=r"^20 of the 20 identifiers .*spent 0 of its budget of 0\.05 "):
            release("half.csv")

    def test_the_ledger_that_is_named_counts_both(self) -> None:
        release("all.csv")
        made = release("half.csv", ledger="all.csv.ledger", eta=0.01)
        assert made.certificate.about.certificate.entry.number == 2

    def test_a_new_one_is_begun_where_it_is_named(self) -> None:
        release("all.csv")
        made = release("half.csv", ledger="half.csv.ledger")
        assert made.certificate.about.certificate.entry.number == 1

    def test_other_people_are_not_refused(self) -> None:
        release("all.csv")
        assert release("others.csv").certificate.about.certificate.entry.number == 1

    def test_a_second_design_of_the_same_data_is_not(self) -> None:
        release("all.csv")
        words: dict[str, Any] = {"promise": "anyone", "ranges": ["wage=-9:9"], "another_design": True}
        made = protect_file(data="all.csv", id="person", eta=0.05, n_jobs=1, **words)
        assert Path("all.csv.dp.ledger").exists()
        assert "folder of the ledger has others" not in " ".join(made.owner.table().split())

    def test_other_ledgers_are_noted_for_the_owner(self) -> None:
        release("all.csv")
        made = release("others.csv")
        assert "folder of the ledger has others, all.csv.ledger: " in " ".join(made.owner.table().split())


class TestLines:
    def test_what_another_ledger_has_spent_and_how_to_join_it(self) -> None:
        release("all.csv")
        assert lines("half.csv") == [
            "all.csv.ledger is in the folder of the new ledger half.csv.ledger, which has spent 0.0493 of its budget "
            "of 0.1 (design leave-one-out): if it is of the same people, say --ledger all.csv.ledger, or nothing adds "
            "up its releases and this one"
        ]

    def test_nothing_where_a_ledger_goes_on_or_none_is_kept(self) -> None:
        release("all.csv")
        assert lines("all.csv") == lines("half.csv", ledger="all.csv.ledger") == []
        assert list(lines_of_other_ledgers(ProtectionPlan(data="half.csv", eta=0.05, promise="drawn"))) == []

    def test_of_half_draws_and_of_no_ledger(self) -> None:
        protect_file(data="all.csv", eta=0.05, promise="drawn", games=0, ledger="drawn.ledger", n_jobs=1)
        private_file.write(Path("old.ledger"), {"format": "leakscope ledger 9", "design": "best"}, None)
        first, second = lines("half.csv")
        where = "is in the folder of the new ledger half.csv.ledger"
        assert first.startswith(f"drawn.ledger {where}, which is of design half (releases: 1): if it is of the same ")
        assert second.startswith(f"old.ledger {where}, which cannot be read: if it is of the same people, ")

    def test_no_more_than_three_are_named(self) -> None:
        for name in "abcde":
            Path(f"{name}.ledger").write_text("notes")
        *named, more = lines("half.csv")
        assert [line[:8] for line in named] == ["a.ledger", "b.ledger", "c.ledger"]
        assert more == "2 more ledgers are in the folder of half.csv.ledger"
