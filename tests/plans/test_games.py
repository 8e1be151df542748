"""Games, queries, pages and stores: what they take, what they refuse, and that what is written is read again."""

from __future__ import annotations

import re

import numpy as np
import pytest

import leakbound as ls
from leakbound.plans.choices import flag_of
from leakbound.plans.games import game_of, in_words, queries_of
from leakbound.plans.page import store_of

GAMES = [
    ls.HalfSplit(),
    ls.HalfSplit(sampling="poisson", sample=9, slices=["town", "age"], queries=3, prior=0.2),
    ls.HalfSplit(queries=ls.Queries(3, versions="noise")),
    ls.Fresh(20, 200),
    ls.Fresh(
        targets=20, size=200, sample=9, slices=["town", "age"], queries=ls.Queries(3, versions="noise"), prior=0.2
    ),
    ls.Forgotten("my_package:unlearn", 20),
    ls.Forgotten("my_package:unlearn", 20, kept="all"),
    ls.PerDatum(3, references=2),
    ls.AverageDatum(prior=0.3),
    ls.Canaries(),
    ls.Canaries("random", 5, knowledge="others"),
    ls.Canaries(targets=[3, 4]),
    ls.Attribute("sex"),
    ls.Attribute("age", bins=[30, 60]),
]


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_what_is_written_is_read_again(game) -> None:
    assert game_of(flag_of(game)) == game
    assert game_of(in_words(game)) == game
    assert game_of(game) is game


@pytest.mark.parametrize("fields", ["canaries,kind=random,n=5", {"canaries": {"kind": "random", "n": 5}}])
def test_a_flag_a_table_and_an_object_are_one(fields) -> None:
    assert game_of(fields) == ls.Canaries("random", n=5)
    assert in_words(ls.Canaries()) == "canaries"


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("canaries,n=0", "canaries: n: Input should be greater than or equal to 1, got 0"),
        ("canaries,targets=[3,3]", "canaries: targets names a record twice: [3, 3]"),
        ("canaries,kind=random,targets=[1]", "canaries: kind, n and knowledge are of canaries that are planted; leave"),
        ("half_split,target=3", "game: half_split has no target; it has: sampling, sample, slices, queries, prior"),
        ("half_split,prior=2", "half_split: prior is a fraction: 2 is out of range; did you mean 0.02?"),
        ("half_split,queries=0", "half_split: queries: n: Input should be greater than or equal to 1, got 0"),
        ("attribute,column=sex,prior=0.3", "game: attribute has no prior; it has: column, bins"),
        ("per_datum", "per_datum: the key 'target' is missing"),
        ("fresh,targets=20", "fresh: the key 'size' is missing"),
        ("fresh,targets=20,size=10", "fresh: a data set of size=10 cannot hold 20 targets; give fewer"),
        ("fresh,targets=20,size=200,sample=21", "fresh: sample must be from 1 to the 20 targets, got 21"),
        ("forgotten,targets=3", "forgotten: the key 'unlearn' is missing"),
        (
            "forgotten,unlearn=retrain,targets=3",
            "forgotten: unlearn must be a function or module:function, got 'retr",
        ),
        ("forgotten,unlearn=a:b,targets=3,kept=few", "forgotten: kept: Input should be 'half' or 'all', got 'few'"),
        ("per_datum,target=-1", "per_datum: target: Input should be greater than or equal to 0, got -1"),
        (
            "canaris",
            "game must be one of half_split, per_datum, average_datum, canaries, attribute, fresh, ",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line(written, line) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(line)}"):
        game_of(written)


def test_queries_are_a_number_a_flag_or_a_table() -> None:
    several = ls.Queries(18, versions="noise")
    assert queries_of(18) == queries_of("18") == ls.Queries(18)
    assert queries_of("18,versions=noise") == queries_of({"n": 18, "versions": "noise"}) == several

    def blurred(x, number):
        return x

    own = ls.Queries(3, versions=blurred)
    assert own.words.versions == f"{__name__}:{blurred.__qualname__}"


def test_a_removal_is_a_function_or_its_import_path() -> None:
    def unlearn(*given):
        return given[0]

    game = ls.Forgotten(unlearn, 3, kept="all")
    assert (game.unlearn, game.prior, game.default_models) == (unlearn, 0.5, 16)
    assert game.words == ls.Forgotten(f"{__name__}:{unlearn.__qualname__}", 3, kept="all")
    with pytest.raises(ValueError, match="unlearn must be a function or module:function, got a int"):
        ls.Forgotten(3, 3)


def test_columns_are_taken_as_they_are() -> None:
    half = np.arange(6) % 2
    assert ls.HalfSplit(slices={"half": half}).slices["half"] is half
    assert ls.Attribute(half, bins=np.array([1, 2])).bins == (1.0, 2.0)


def test_a_page_and_a_store() -> None:
    assert ls.Page("Ours", "person").words == {"title": "Ours", "unit": "person", "date": "", "author": ""}
    assert store_of("kept") == ls.Store("kept")
    assert store_of(ls.Store("kept", depends_on=["a.sh", "b.sh"])).depends_on == ("a.sh", "b.sh")
    assert store_of(None).path is None
