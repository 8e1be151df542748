"""A choice is checked by one class, whether it comes from Python, TOML or the command line."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, FrozenInstanceError
from typing import Annotated, Literal

import pytest
from pydantic import Field

from leakbound.plans.choices import choice, choose, flag_of, name_of, table_of


@choice
class PerDatum:
    target: int
    _: KW_ONLY
    references: Annotated[int, Field(ge=0)] = 0


@choice
class HalfSplit:
    _: KW_ONLY
    sampling: Literal["fixed", "poisson"] = "fixed"
    sizes: tuple[int, ...] = ()


KINDS = [HalfSplit, PerDatum]


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("half_split", HalfSplit()),
        ("half_split,sampling=poisson", HalfSplit(sampling="poisson")),
        ("half_split,sizes=[3,4]", HalfSplit(sizes=(3, 4))),
        ("per_datum,target=3,references=2", PerDatum(3, references=2)),
        ({"per_datum": {"target": 3}}, PerDatum(3)),
        (PerDatum(3), PerDatum(target=3)),
    ],
)
def test_it_is_read_from_a_text_a_table_or_an_object(written, made) -> None:
    assert choose(KINDS, written, "game") == made


@pytest.mark.parametrize("made", [HalfSplit(), HalfSplit(sampling="poisson", sizes=(3, 4)), PerDatum(3, references=2)])
def test_what_is_written_is_read_again(made) -> None:
    assert choose(KINDS, flag_of(made), "game") == made
    assert choose(KINDS, table_of(made), "game") == made


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("half_spilt", "game must be one of half_split, per_datum (did you mean 'half_split'?); got 'half_spilt'"),
        ("half_split,target=3", "game: half_split has no target; it has: sampling, sizes"),
        ("per_datum", "per_datum: the key 'target' is missing"),
        (
            "per_datum,target=3,references=-1",
            "per_datum: references: Input should be greater than or equal to 0, got -1",
        ),
        ({"a": {}, "b": {}}, "game must be one of half_split, per_datum, or a table of one of them; got"),
        ("half_split,sampling", "game: write NAME=VALUE, got 'sampling'"),
    ],
)
def test_what_is_wrong_is_one_line(written, line) -> None:
    with pytest.raises(ValueError, match=re.escape(line)):
        choose(KINDS, written, "game")


def test_from_python_it_is_as_strict() -> None:
    with pytest.raises(ValueError, match=r"^half_split: sampling: .*got 'coin'$"):
        HalfSplit(sampling="coin")  # pyright: ignore[reportArgumentType] -- the point of the test
    with pytest.raises(TypeError, match=r"^half_split has no sampleing \(did you mean 'sampling'"):
        HalfSplit(sampleing="fixed")  # pyright: ignore[reportCallIssue] -- the point of the test
    with pytest.raises(FrozenInstanceError):
        PerDatum(3).target = 4  # pyright: ignore[reportAttributeAccessIssue] -- the point of the test


def test_its_name_is_in_snake_case() -> None:
    assert [name_of(kind) for kind in KINDS] == ["half_split", "per_datum"]
