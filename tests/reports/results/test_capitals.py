"""Names that a user gave stay as they are written, also where a sentence begins with them."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.reports.results import words
from tests.marks import nightly_but
from tests.reports.page_reading import Page

NAMES = ("pid", "town", "stump", "constant", "max_depth", "flipped_loss", "lowercase")


def flipped_loss(signals):
    """lowercase as its author wrote it"""
    return -signals.targets("loss")


@cache
def audits() -> dict[str, ls.Report]:
    """Audits whose models, columns, attacks and labels have small letters."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "pid": range(1000, 1120),
            "age": rng.integers(18, 80, 120),
            "town": rng.choice(["bern", "chur"], 120),
        }
    )
    labels = np.where(rng.random(120) < 0.5, "high", "low")
    words_of_all = {"n_models": 8, "n_jobs": 1, "attacks": ["loss", flipped_loss]}
    models = {"stump": DecisionTreeClassifier(max_depth=1), "constant": DummyClassifier()}
    frame_without_ids = frame[["age", "town"]]
    return {
        "several": ls.audit(models, frame, labels, game=ls.HalfSplit(slices="town"), policy="research", **words_of_all),
        "varied": ls.audit(
            DecisionTreeClassifier(), frame_without_ids, labels, vary={"max_depth": [1, None]}, **words_of_all
        ),
        "alone": ls.audit({"stump": models["stump"]}, frame, labels, **words_of_all),
        "trained": ls.audit_model(
            DecisionTreeClassifier().fit(frame[["age"]][:60], labels[:60]),
            (frame[["age"]][:60], labels[:60]),
            (frame[["age"]][60:], labels[60:]),
            name="stump",
            attacks=[flipped_loss],
            n_jobs=1,
        ),
        "attribute": ls.audit(
            {"stump": models["stump"]}, frame_without_ids, labels, game=ls.Attribute("town"), n_models=4, n_jobs=1
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", nightly_but(["several", "varied", "alone", "trained", "attribute"], "trained"))
def test_no_name_gets_a_capital(kind):
    report = audits()[kind]
    for text in (Page(report.to_html()).whole, report.table(), Page(report._repr_html_()).whole):
        for name in NAMES:
            found = re.search(rf".{{0,40}}\b{name.capitalize()}\b.{{0,40}}", text, re.DOTALL)
            assert not found, found[0]


@pytest.mark.slow
def test_every_note_begins_with_a_name_or_a_capital():
    notes = [note for report in audits().values() for note in (*report.about.notes, *report.about.owner_notes)]
    assert any(note.startswith("pid ") for note in notes)
    for note in notes:
        written = words.note(note)
        first = re.split(r"[ :=]", written)[0]
        assert first[0].isupper() or first[0].isdigit() or first in NAMES, written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("the file has 3 rows", "The file has 3 rows."),
        ("pid has another value in each record", "pid has another value in each record."),
        ("with fewer than 8 models", "With fewer than 8 models."),
        ("12 of 40 points repeat", "12 of 40 points repeat."),
        ("Attacks were left out!", "Attacks were left out!"),
        ("", "."),
    ],
)
def test_notes(text, written):
    assert words.note(text) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("noise multiplier 2.5 keeps it", "Noise multiplier 2.5 keeps it."),
        ("people.csv is read with ;", "people.csv is read with ;."),
        ("net_pay is constant", "net_pay is constant."),
    ],
)
def test_notes_of_bounds_begin_with_words_of_ours_or_with_a_file(text, written):
    assert words.note(text, of_names=False) == written
