"""The tables of statements (docs/papers/items-*.md): what a row says of the claims that it names is what they show.

A verdict can be read by a program: ``agrees``, ``differs; cannot tell at n = 4,000 and 6,000``, ``cannot tell; agrees
with *code*``, ``explained by *promise*``. A part without a place is about all claims that no other part names. Where a
paper is wrong (``wrong: [erratum 9](...)``, ``misprint: [erratum 10](...)``) a claim may differ by this erratum, or
agree with what is right.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from docs import gallery

from leakbound.papers import PAPERS
from leakbound.papers.printed import unfolded

DOCS = Path(__file__).resolve().parents[2] / "docs" / "papers"
PAPERS_OF = sorted({each.paper for each in PAPERS.values()})
WORDS = {
    "agrees": "agrees",
    "identity": "identity",
    "cannot tell": "cannot tell",
    "smaller": "smaller run",
    "not run": "not run",
    "erratum": "wrong",
}
PART = re.compile(
    r"(?P<word>agrees|identity|differs|explained by \*\w+\*|cannot tell|smaller run|not run|wrong|misprint|holds)(?!\w)"
    r"(?: with \*(?P<setting>\w+)\*| (?P<where>at n =|for) (?P<places>[^;:()]+))?"
)


def rows(paper: str) -> Iterator[tuple[str, str, str]]:
    """Item, test and verdict of each statement."""
    for line in (DOCS / f"items-{paper}.md").read_text(encoding="utf-8").strip().splitlines()[2:]:
        item, _, _, test, verdict = (cell.strip() for cell in line.strip().strip("|").split(" | "))
        yield item, test, verdict


def claims_of_runs(paper: str) -> dict[str, dict[str, Any]]:
    """Claims of all runs that are kept, by ``paper/figure:key``."""
    found = {}
    for name, each in PAPERS.items():
        result = gallery.read(name) if each.paper == paper else None
        for claim in result["claims"]["claims"] if result else ():
            found[f"{name}:{claim['key']}"] = claim
    return found


def keys_of(paper: str) -> dict[str, dict[str, str]]:
    """By a key of printed.toml, as written there or filled in: the keys that it stands for, with what fills them."""
    keys: dict[str, dict[str, str]] = {}
    text = resources.files("leakbound.papers").joinpath(paper, "printed.toml").read_text(encoding="utf-8")
    for claim in tomllib.loads(text)["claim"]:
        name, written = f"{paper}/{claim['experiment']}", claim["key"]
        fills = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+)", re.escape(written)))
        for each in unfolded(dict(claim)):
            match = fills.fullmatch(each["key"])
            assert match
            place = " ".join(match.groupdict().values())
            for key in (written, each["key"]):
                keys.setdefault(f"{name}:{key}", {})[f"{name}:{each['key']}"] = place
    return keys


def word(claim: dict[str, Any]) -> str:
    """The word of a row for the verdict of a claim."""
    if claim["verdict"] == "differs":
        return f"explained by *{claim['explained_by']}*" if claim["explained_by"] else "differs"
    return WORDS[claim["verdict"]]


def places(text: str) -> list[str]:
    """``4,000 and 6,000`` as ``["4000", "6000"]``, ``MNIST and Fashion-MNIST`` as ``["mnist", "fashionmnist"]``."""
    return [re.sub(r"[^a-z0-9.]", "", part.lower()) for part in re.split(r", (?!\d{3})| and ", text.strip())]


def at(said: str, named: dict[str, str]) -> set[str]:
    """The keys at a place that a row names: 4000, or fashion for Fashion-MNIST."""
    return {
        key for key, place in named.items() if place and (said == place or (said.isalpha() and said.startswith(place)))
    }


def named_in(test: str, keys: dict[str, dict[str, str]]) -> dict[str, str]:
    """The keys of the claims that the test cell of a row names, with their places."""
    named: dict[str, str] = {}
    for written in re.findall(r"`(\w+/\w+:[\w{}.]+)`", test):
        named |= keys[written]
    return named


def against(test: str, verdict: str, keys: dict[str, dict[str, str]], runs: dict[str, dict[str, Any]]) -> list[str]:
    """What is wrong with a verdict, in words; nothing if its row names no claims."""
    named = named_in(test, keys)
    if not named:
        return []
    plain = re.sub(r"\[(erratum \d+)\]\([^)]*\)", r"\1", verdict)
    wrong: list[str] = []
    said: set[str] = set()
    placed: set[str] = set()
    for part in PART.finditer(plain):
        of_part = [at(place, named) for place in places(part["places"] or "")]
        if part["setting"]:
            tried = [one for key in named for one in runs[key]["tried"] if one["setting"] == part["setting"]]
            if not any(one["verdict"] == "agrees" for one in tried):
                wrong.append(f"nothing agrees with {part['setting']}")
        elif part["where"] == "at n =" or (part["where"] and all(of_part)):
            here = set().union(*of_part)
            wrong += [f"no claim at {part['places']}"] * (not all(of_part))
            wrong += [
                f"{key}: {word(runs[key])}, not {part['word']}" for key in here if word(runs[key]) != part["word"]
            ]
            placed |= here
        else:
            said.add(part["word"])
    if "erratum" in plain:
        said.add("wrong")
    left = named.keys() - placed
    found = {word(runs[key]) for key in left}
    wrong += [f"{key}: {word(runs[key])}" for key in sorted(left) if not is_said(word(runs[key]), said, plain)]
    wrong += [f"no claim {each}" for each in said - found - {"holds", "wrong", "misprint"}]
    for key in named:
        others = [one["setting"] for one in runs[key]["tried"] if one["verdict"] == "agrees"]
        judged = runs[key]["verdict"] in ("differs", "cannot tell")
        if judged and others and not any(f"*{one}*" in plain for one in others):
            wrong.append(f"{key} agrees with {', '.join(others)}, which is not said")
    return wrong


def is_said(what: str, said: set[str], plain: str) -> bool:
    """Whether a row has this word; what holds agrees, and a row that is wrong may have a claim that agrees."""
    return what in said or (
        what in ("agrees", "identity") and ("holds" in said or plain.startswith(("wrong", "misprint")))
    )


@pytest.mark.parametrize("paper", PAPERS_OF)
def test_a_verdict_is_that_of_the_claims_that_its_row_names(paper):
    keys, runs = keys_of(paper), claims_of_runs(paper)
    assert runs.keys() == {key for each in keys.values() for key in each}
    wrong = {item: against(test, verdict, keys, runs) for item, test, verdict in rows(paper)}
    assert {item: each for item, each in wrong.items() if each} == {}


def numbers_of(claim: dict[str, Any]) -> list[float]:
    """All numbers that a claim shows."""
    shown = [claim[name] for name in ("printed", "ours", "error", "difference")]
    noted = [float(number) for number in re.findall(r"\d*\.\d+", claim["note"])]
    return [abs(float(number)) for number in shown if isinstance(number, float)] + noted


@pytest.mark.parametrize("paper", PAPERS_OF)
def test_numbers_beside_a_verdict_are_those_of_the_claims(paper):
    """A number such as .572, in a row that names claims, is one of theirs, rounded; "a = .30" is a parameter."""
    keys, runs = keys_of(paper), claims_of_runs(paper)
    for item, test, verdict in rows(paper):
        named = named_in(test, keys)
        known = [number for key in named for number in numbers_of(runs[key])]
        for written in re.findall(r"(?<![\w.])(?<!= )\.\d+", verdict) if named else ():
            digits = len(written) - 1
            assert any(round(number, digits) == float(written) for number in known), f"{item}: {written}"


def claim(verdict, explained_by="", **tried):
    """A claim of a run, with verdicts under other settings."""
    others = [{"setting": setting, "verdict": each} for setting, each in tried.items()]
    return {"verdict": verdict, "explained_by": explained_by, "tried": others}


KEYS = {"p/f:x_{n}": {"p/f:x_400": "400", "p/f:x_6000": "6000"}, "p/f:y": {"p/f:y": ""}, "p/f:z": {"p/f:z": "fashion"}}
RUNS = {
    "p/f:x_400": claim("differs"),
    "p/f:x_6000": claim("cannot tell"),
    "p/f:y": claim("differs", "code", code="agrees"),
    "p/f:z": claim("erratum"),
}


@pytest.mark.parametrize(
    ("named", "verdict", "is_right"),
    [
        ("x_{n}", "differs; cannot tell at n = 6,000", True),
        ("x_{n}", "cannot tell; differs at n = 400 (other features)", True),
        ("x_{n}", "differs at n = 400; cannot tell at n = 6,000", True),
        ("x_{n}", "differs", False),
        ("x_{n}", "agrees", False),  # neither is, and no claim agrees
        ("x_{n}", "differs; cannot tell at n = 400", False),  # 400 is not, and 6,000 is left
        ("x_{n}", "differs; cannot tell at n = 6,000 and 7,000", False),
        ("y", "explained by *code*", True),
        ("y", "differs; agrees with *code*", False),  # it is explained
        ("y", "explained by *text*", False),
        ("z", "wrong: [erratum 9](errata.md#erratum-9)", True),
        ("z", "misprint: [erratum 10](errata.md#erratum-10)", True),
        ("z", "wrong for Fashion-MNIST", True),
        ("z", "differs for Fashion-MNIST", False),
        ("z", "agrees (though wrong elsewhere)", False),
        ("none", "differs", True),
    ],
)
def test_a_verdict_that_is_not_that_of_the_claims_is_found(named, verdict, is_right):
    test = f"`p/f:{named}`" if named != "none" else "`tests/a.py::test_b`"
    assert (not against(test, verdict, KEYS, RUNS)) == is_right
