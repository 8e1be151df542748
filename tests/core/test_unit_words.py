"""Words for one unit and for several."""

from __future__ import annotations

import copy
import pickle

import pandas as pd
import pytest

import leakbound as ls
from leakbound.core.unit_words import UnitWord
from leakbound.reports.phrases import plural


@pytest.mark.parametrize("text", ["a/", "/a", "a/b/c", "</title>"])
def test_what_is_not_two_words_is_one(text):
    assert (UnitWord(text), UnitWord(text).several) == (text, None)


def test_copies_know_the_second_word():
    word = UnitWord("Person / Personen")
    assert (word, word.several, word.text) == ("Person", "Personen", "Person/Personen")
    assert pickle.loads(pickle.dumps(word)).several == copy.deepcopy(word).several == "Personen"


def test_no_english_letter_is_added_to_words_of_other_languages():
    assert [plural(word) for word in ("Person", "élève", "person", "household")] == [
        "Person", "élève", "people", "households",
    ]  # fmt: skip


def test_a_report_keeps_both_words(tmp_path):
    pd.DataFrame({"stay": [1.0, 2.0, 3.0]}).to_csv(tmp_path / "stays.csv", index=False)
    report = ls.bound("leave-one-out", data=str(tmp_path / "stays.csv"), noise_scale=1.0, unit="Patient/Patienten")
    assert "3 Patienten" in report.table()
    assert "Patients" not in report.table()
    report.to_json(tmp_path / "report.json")
    again = ls.Report.from_json(tmp_path / "report.json")
    assert again.about.unit.several == "Patienten"
    assert again.to_html() == report.to_html()
