"""Every erratum is fair: a label, the printed line, and the kindest reading.

The quotations are compared with the texts of the papers, which lie beside the real data (``LEAKBOUND_DATA``) and are
not part of the repository. These texts hold each formula once or more in other letters, run words together and
interleave columns, so that words may have up to `GAP` characters between them. The text of azize2024, taken from a PDF,
has lost its formulas: there only the words are compared.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
ERRATA = (DOCS / "errata.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^### (\d+)\. .*?\n(.*?)(?=^\(erratum|^## )", ERRATA, re.MULTILINE | re.DOTALL))
ROWS = {
    number: (place, label)
    for number, place, label in re.findall(
        r"^\| \[(\d+)\]\(#erratum-\d+\) \| (.*?) \| (.*?) \| .* \|$", ERRATA, re.MULTILINE
    )
}
PARTS = ("Printed", "Charitable reading")
GAP, LEFT_OUT = 160, 2500  # characters between two words of a quotation, and where it has three dots


def parts(entry: str) -> dict[str, str]:
    """The points at the head of an entry, by their names."""
    head = entry.strip().split("\n\n")[0]
    points = re.split(r"^\* \*(.+?)\*[:,] ", head, flags=re.MULTILINE)[1:]
    return {name: " ".join(text.split()) for name, text in zip(points[::2], points[1::2], strict=True)}


def plain(text: str) -> str:
    """Letters, digits and signs, without what differs between a text and its quotation."""
    text = unicodedata.normalize("NFKC", text.replace(r"\displaystyle", ""))
    return re.sub(r"[\s$*\-]", "", text)


def words(quotation: str, with_formulas: bool) -> list[tuple[str, int]]:
    """Words and formulas of a quotation, each with the number of characters that may lie before it."""
    found: list[tuple[str, int]] = []
    gap = GAP
    for number, piece in enumerate(quotation.split("$")):
        if number % 2 and not with_formulas:
            continue
        for word in [piece] if number % 2 else piece.split():
            if word == "…":
                gap = LEFT_OUT
            elif re.search(r"\w", word):
                found.append((plain(word), gap))
                gap = GAP
    return found


def is_in(quotation: str, text: str, with_formulas: bool = True) -> bool:
    """Whether a text has the words of a quotation in their order, near each other."""
    ends: list[int] | None = None
    for word, gap in words(quotation, with_formulas):
        starts = [match.start() for match in re.finditer(re.escape(word), text)]
        if ends is not None:
            starts = [start for start in starts if any(0 <= start - end <= gap for end in ends)]
        ends = [start + len(word) for start in starts]
    return bool(ends)


def test_every_erratum_has_a_label_a_quotation_and_a_reading():
    assert len(ENTRIES) >= 33
    assert list(ENTRIES) == list(ROWS)
    for number, entry in ENTRIES.items():
        points = parts(entry)
        assert tuple(points) == PARTS, number
        assert re.match(r"(wrong|loose|misprint)\b", ROWS[number][1]), number
        assert re.search(r"“[^”]{8,}”", points["Printed"]), number
        assert len(points["Charitable reading"].split()) >= 8, number


def test_every_quotation_is_in_the_text_of_its_paper(real_data):
    folder = real_data.parent / "papers"
    texts = {path.name.split("_")[0]: plain(path.read_text(encoding="utf-8")) for path in folder.glob("*.txt")}
    if not texts:
        pytest.skip("the texts of the papers are not beside the real data")
    missing = []
    for number, entry in ENTRIES.items():
        paper = ROWS[number][0].split(",")[0]
        quotations = re.findall(r"“([^”]+)”", parts(entry)["Printed"])
        missing += [
            (number, each) for each in quotations if not is_in(each, texts[paper], with_formulas=paper != "azize2024")
        ]
    assert missing == []


@pytest.mark.parametrize(
    ("quotation", "found"),
    [
        ("any attacker with $x^{2}$ of it", True),
        ("any attacker with … of it", True),
        ("every attacker with", False),
        ("attacker any", False),
        ("any attacker with $x^{3}$ of it", False),
    ],
)
def test_a_quotation_that_is_not_in_a_text_is_seen(quotation, found):
    assert is_in(quotation, plain("for any at-\ntacker with x2x^{2} of  it")) is found


def statements() -> list[tuple[str, str]]:
    """Item and verdict of every row of the lists of statements."""
    found = []
    for path in sorted((DOCS / "papers").glob("items-*.md")):
        for line in path.read_text(encoding="utf-8").strip().splitlines()[2:]:
            item, *_, verdict = line.strip().strip("|").split(" | ")
            found.append((item.strip(), verdict.strip()))
    return found


def test_a_misprint_is_a_verdict_of_its_own():
    """No row that is called wrong names a misprint, and the list and the errata use the same word."""
    assert [item for item, verdict in statements() if "wrong" in verdict and "misprint" in verdict] == []
    for item, verdict in statements():
        for word, number in re.findall(r"(wrong|loose|misprint): \[erratum (\d+)\]", verdict):
            assert word in ROWS[number][1], item
