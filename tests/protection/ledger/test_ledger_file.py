"""Ledgers that are damaged or made up: no flipped bit gives another number, and every wrong type is one line."""

import base64
import copy
import hashlib
import json
import os
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import leakbound as ls
from leakbound.files import private_file
from leakbound.protection.ledger.drawn import DrawnLedger as Ledger
from leakbound.protection.ledger.keyed import text_names
from leakbound.protection.ledger.people import PeopleNames
from leakbound.reports import write as write_report
from tests.protection.ledger.test_ledger import DRAW, QUERIES, entries

LONGEST = 300  # letters of an error
MEMORY = 30e6  # bytes: a few times the size of the largest file here
NUMBERS = [True, -1, 0, 1.5, 10**400, 2**70, 1e308]
WRONG = [None, *NUMBERS, "", "x", "0" * 64, [], [1], [[1]], {}, {"a": 1}, "\ud800", "\x1b[31m"]


@pytest.fixture
def path(tmp_path):
    """Two of three declared queries are released, one of them with a declared noise."""
    path = tmp_path / "ledger.json"
    first, second = entries()[:2]
    noise = {"family": "GaussianNoise", "scale": 3.0, "shape": second.noise.shape.tolist()}
    declared = replace(second.query, noise=noise)
    names = PeopleNames(text_names(["a", "b", "c"]), text_names(["Ada", "Ben"]))
    ledger = Ledger.create(path, DRAW, [QUERIES[0], declared, QUERIES[2]], names=names)
    ledger = ledger.append(replace(first, subject="a" * 64, release="b" * 64)).published(0)
    ledger.append(replace(second, query=declared))
    return path


def content(ledger):
    """Everything that a ledger holds, as it is written."""
    return json.dumps(ledger.content, sort_keys=True, default=in_base_64)


def in_base_64(array):
    """As a ledger writes an array."""
    return base64.b64encode(array.tobytes()).decode()


def sealed(content):
    """As a file is written: compact JSON with sorted keys, and the SHA-256 of its bytes."""
    return seal(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def seal(text):
    """With the digest that fits."""
    return b'{"content":' + text + b',"sha256":"' + hashlib.sha256(text).hexdigest().encode() + b'"}'


def refused(path, text):
    """Write a text, open it: the line of the refusal, or nothing."""
    path.write_bytes(text)
    line = ""
    try:
        Ledger.open(path, "data")
    except ValueError as error:
        line = str(error)
    assert "\n" not in line
    assert line.isprintable()
    assert len(line) - len(str(path)) <= LONGEST
    return line


def check_flips(path, n_flips, seed):
    """One random bit at a time: how many are refused as damaged; with the others every number must be as it was."""
    whole, before = path.read_bytes(), content(Ledger.open(path, "data"))
    rng = np.random.default_rng(seed)
    n_refused = 0
    for bit in rng.integers(8 * len(whole), size=n_flips).tolist():
        text = bytearray(whole)
        text[bit // 8] ^= 1 << (bit % 8)
        line = refused(path, bytes(text))
        if line:
            n_refused += 1
            assert line.startswith(f"{path} is damaged: ")
        else:
            assert content(Ledger.open(path, "data")) == before
    return n_refused


@pytest.mark.slow
def test_no_flipped_bit_gives_another_number(path):
    assert check_flips(path, 1000, seed=0) == 1000


@pytest.mark.nightly
def test_ten_thousand_flipped_bits(path):
    assert check_flips(path, 10_000, seed=1) == 10_000


@pytest.mark.slow
def test_neither_does_a_missing_or_doubled_part(path):
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for start, end in np.sort(rng.integers(len(whole), size=(300, 2)), axis=1).tolist():
        for text in (whole[:start] + whole[end:], whole[:end] + whole[start:]):
            assert text == whole or refused(path, text)


def places(value, here=()):
    """All places of a nested JSON value."""
    yield here
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from places(each, (*here, key))


def mutated(value, place, wrong):
    """A copy with another value at a place; ``...`` takes it out."""
    made = {"": copy.deepcopy(value)}
    *path, last = ("", *place)
    holder = made
    for key in path:
        holder = holder[key]
    if wrong is ...:
        del holder[last]
    else:
        holder[last] = wrong
    return made.get("")


def of_this_version(content):
    """With what a file of an earlier version has not: it knows nobody."""
    return {"people": {"identifiers": [], "contents": []}, **content}


def check_mutations(path, n_mutations, seed):
    """With a digest that fits: a line, or a ledger whose content is the one that was written."""
    kept = json.loads(path.read_text())["content"]
    everywhere = list(places(kept))
    rng = np.random.default_rng(seed)
    cases = [(place, wrong) for place in everywhere for wrong in [*WRONG, ...]]
    n_refused = 0
    for number in rng.permutation(len(cases))[:n_mutations].tolist():
        place, wrong = cases[number]
        made = mutated(kept, place, wrong)
        line = refused(path, sealed(made))
        if line:
            n_refused += 1
            assert line.startswith(str(path))
        else:
            assert json.loads(content(Ledger.open(path, "data"))) == of_this_version(made)
    return n_refused


@pytest.mark.slow
def test_wrong_types_are_one_line(path):
    tracemalloc.start()
    assert check_mutations(path, 600, seed=0) > 400
    assert tracemalloc.get_traced_memory()[1] < MEMORY
    tracemalloc.stop()


@pytest.mark.nightly
def test_all_wrong_types_at_all_places(path):
    assert check_mutations(path, 10**6, seed=0) > 500


@pytest.mark.parametrize(
    ("place", "wrong", "line"),
    [
        ((), [], "is damaged: not the JSON that was written"),
        (("key",), "ab", "is no ledger of this version: key: String should match pattern '^[0-9a-f]{64}$'"),
        (("n",), 10**15, "is no ledger of this version: member must be 125,000,000,000,000 bytes, as 250,0"),
        (("n",), 5, "is no ledger of this version: member names records beyond the 5 that there are"),
        (("seed",), "0", "is no ledger of this version: seed: Input should be a valid integer"),
        (("queries",), {}, "is no ledger of this version: queries: Input should be a valid list"),
        (("queries", 0, "eta"), None, "is no ledger of this version: queries[0].eta: Input should be a valid number"),
        (
            ("releases", 1, "pairs"),
            [6, 10**12],
            "is no ledger of this version: releases[1].lengths must be 6 x 1,000,000,000,000 numbers",
        ),
        (
            ("releases", 1, "lengths"),
            in_base_64(np.full((6, 5), -0.5)),
            "is no ledger of this version: releases[1].lengths must be >= 0",
        ),
        (
            ("releases", 1, "scale"),
            True,
            "is no ledger of this version: releases[1].scale: Input should be a valid number",
        ),
        (("releases", 0, "query"), "x", "is no ledger of this version: its releases are not the first of its queries"),
        (
            ("releases", 0, "published"),
            1,
            "is no ledger of this version: releases[0].published: Input should be a valid boolean",
        ),
        (("data",), "x" * 5000, "is no ledger of this version: data: it must be a text of 1 to 100 printable letters"),
        (("promise",), ["every"], "is no ledger of this version: promise: Input should be 'every' or 'average'"),
        (("member",), ..., "is no ledger of this version: member: Field required"),
    ],
)
def test_the_line_names_what_is_wrong(path, place, wrong, line):
    made = mutated(json.loads(path.read_text())["content"], place, wrong)
    assert refused(path, sealed(made)).startswith(f"{path} {line}")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"content": ' * 50_000,
        sealed({"a": float("nan")}),
        sealed({"a": float("inf")}),
        sealed({"a": 10**4000}).replace(b"0" * 100, b"0" * 2000),
        seal(b'{"a":1,"a":1}'),
        seal(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        seal(b'{"a":' + b"9" * 10_000 + b"}"),
        seal(b'{"a":1}}{'),
        seal(b'{"a":\xff}'),
        seal(b"[{}]"),
        seal(b"{}").replace(b'"}', b'","more":1}'),
    ],
)
def test_what_is_no_ledger_at_all(path, text):
    assert refused(path, text).startswith(f"{path} is damaged: ")


def test_a_large_file_is_refused_before_it_is_read(path):
    with path.open("r+b") as file:
        file.truncate(2**30 + 1)  # sparse: it takes no room on the disk
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"has 1,073,741,825 bytes, allowed are 1,073,741,824$"):
        Ledger.open(path, "data")
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


def test_what_is_no_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ValueError, match=r"pipe cannot be read: it is not a regular file$"):
        Ledger.open(tmp_path / "pipe", "data")
    with pytest.raises(ValueError, match=r"cannot be read: Is a directory$"):
        Ledger.open(tmp_path, "data")


def test_parts_of_the_dead_are_swept_and_those_of_the_living_are_not(path):
    """A process that is gone, this one, and another host: its part stays until it is a week old."""
    host = private_file.temporary.part_of(path).name.split(".")[3]
    owners = {"dead": f"{host}.999999999", "living": f"{host}.{os.getpid()}"}
    owners |= {"elsewhere": "another.1", "old": "another.2"}
    parts = {name: path.with_name(f".ledger.json.{owner}.{'0' * 16}.part") for name, owner in owners.items()}
    for part in parts.values():
        part.write_bytes(b"{")
    os.utime(parts["old"], (0, 0))
    Ledger.open(path, "data").published(1)
    assert {name for name, part in parts.items() if part.exists()} == {"living", "elsewhere"}


def test_links(tmp_path):
    """Of every private file: a link to nothing is refused, and the file behind any other one is written."""
    for write in (
        lambda path: private_file.write(path, {"a": 1}, None),
        lambda path: ls.canaries(np.eye(4), [0, 1, 0, 1], n=2, file=path),
        lambda path: write_report(path, "text", private=True),
    ):
        link = tmp_path / "link"
        link.symlink_to("gone")
        with pytest.raises(ValueError, match=r"link is a link to a file that is not there: gone$"):
            write(link)
        assert link.is_symlink()
        assert not (tmp_path / "gone").exists()
        link.unlink()
    (tmp_path / "there").write_text("old")
    link.symlink_to("there")
    write_report(link, "new", private=True)
    digest = private_file.write(tmp_path / "file", {"a": 1}, None)
    (tmp_path / "to file").symlink_to("file")
    private_file.write(tmp_path / "to file", {"a": 2}, digest)
    assert link.is_symlink()
    assert (tmp_path / "there").read_text() == "new"
    assert (tmp_path / "to file").is_symlink()
    assert private_file.read(tmp_path / "file")[0] == {"a": 2}
