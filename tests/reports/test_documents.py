"""Documents: what they may be made of, and that what a user wrote is shown as it is and is never structure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib import resources
from itertools import count, cycle
from typing import Any

import pytest
from matplotlib.figure import Figure

from leakbound.reports.comparison import compare
from leakbound.reports.render import document
from leakbound.reports.render.gaps import environment, escape, fill
from leakbound.reports.results.attribute_page import attribute_page
from leakbound.reports.results.audit.page import audit_page
from leakbound.reports.results.bound_page import bound_page
from leakbound.reports.results.comparison import comparison_page
from leakbound.reports.results.papers import papers_page
from leakbound.reports.results.release.page import release_page
from leakbound.reports.sentences import Sentence, sentences
from tests.reports import made_audits, made_bounds, made_designs, made_guesses, made_protected, samples
from tests.reports.nasty import NASTY, with_texts
from tests.reports.render import test_claims
from tests.reports.rules import offences

FOLDER = resources.files("leakbound.reports").joinpath("documents")
DOCUMENTS = [name for name in environment().list_templates() if name.endswith(".md.jinja")]
# Results that fill every gap of a document, among them.
RESULTS: dict[str, Callable[[], tuple[str, Any]]] = {
    "attribute": lambda: ("attribute.md.jinja", attribute_page(made_guesses.two())),
    "audit of one model": lambda: ("audit.md.jinja", audit_page(made_audits.full())),
    "audit of three models": lambda: ("audit.md.jinja", audit_page(samples.judged())),
    "audit of few records": lambda: ("audit.md.jinja", audit_page(samples.tiny())),
    "bound of records": lambda: ("bound.md.jinja", bound_page(made_bounds.leakage())),
    "bound of cells": lambda: ("bound.md.jinja", bound_page(made_bounds.many_cells())),
    "comparison": lambda: ("comparison.md.jinja", comparison_page(compare(samples.two_models(), samples.no_leak()))),
    "comparison of ceilings": lambda: (
        "comparison.md.jinja",
        comparison_page(compare(made_bounds.dp(1.0), made_bounds.dp(2.0), title="A title")),
    ),
    "papers": lambda: ("papers.md.jinja", papers_page([test_claims.DOCUMENT, test_claims.DOCUMENT])),
    "one paper": lambda: ("papers.md.jinja", papers_page([test_claims.DOCUMENT], ["a/b"])),
    "bound without a number": lambda: ("bound.md.jinja", bound_page(made_bounds.empty())),
    "file": lambda: ("promises/file.md.jinja", release_page(made_designs.several(owner=True))),
    "anyone": lambda: ("promises/anyone.md.jinja", release_page(made_designs.design_report("dp"))),
    "drawn": lambda: ("promises/drawn.md.jinja", release_page(made_protected.means())),
    "drawn, calibrated": lambda: ("promises/drawn.md.jinja", release_page(made_protected.calibrated())),
}
STEERS = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufeff\\ud800-\\uf8ff\\uffff]"
)


class Charts(dict):
    """A chart of any name."""

    def __missing__(self, name: str) -> Figure | str:
        return "data:," if name.startswith(("picture", "strip", "scale")) else Figure(figsize=(1, 1))


CHARTS = Charts()


class Elements(HTMLParser):
    """The elements of a page in their order with their classes, and its text outside of the style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(re.sub("<style>.*?</style>", "", page, flags=re.DOTALL))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs).get("class")))

    def handle_data(self, data):
        self.text += data


def without_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw a chart as its label alone: what is in it is none of a document."""
    monkeypatch.setattr(
        document.svg, "labelled", lambda figure, prefix, label: f"<svg>{document.html.escape(label)}</svg>"
    )


def seen(text: str) -> str:
    """A text as a reader sees it: signs that steer by their number, and no white space."""
    signs = [f"⟨U+{ord(char):04X}⟩" if STEERS.match(char) else char for char in text]
    return "".join("".join(signs).split())


def read(text: str) -> str:
    """What was written, without white space, signs that keep Hebrew and Arabic apart, and the rules of tables."""
    return "".join(re.sub("[\u2068\u2069─]", "", text).split())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_has_gaps_loops_conditions_on_one_name_and_inclusions_alone(name: str) -> None:
    assert offences(name, FOLDER.joinpath(name).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{{ name | upper }}", "Filter"),
        ("{% set a = name %}", "Assign"),
        ("{{ name + other }}", "Add"),
        ("{{ name ~ other }}", "Concat"),
        ("{{ name.upper() }}", "Call"),
        ("{{ rows[0] }}", "Getitem"),
        ("{{ 3 }}", "Const"),
        ("{{ 'text' }}", "Const"),
        ("{{ a if b else c }}", "CondExpr"),
        ("{{ loop.index }}", "Getattr"),
        ("{% macro m() %}{% endmacro %}", "Macro"),
        ("{% if a and b %}{% endif %}", "If"),
        ("{% if not a %}{% endif %}", "If"),
        ("{% if a == b %}{% endif %}", "If"),
        ("{% if a %}{% elif b > 1 %}{% endif %}", "If"),
        ("{% for a in rows[:3] %}{% endfor %}", "For"),
        ("{% for a in rows if a.b %}{% endfor %}", "For"),
        ("{% for a in rows %}{{ a | e }}{% endfor %}", "Filter"),
        ("{% filter upper %}a{% endfilter %}", "FilterBlock"),
        ("{% import 'a' as b %}", "Import"),
        ("{% with a = b %}{% endwith %}", "With"),
    ],
)
def test_a_document_that_breaks_a_rule_is_named_with_its_line(line: str, what: str) -> None:
    assert offences("a.md.jinja", f"# A title\n\n{line}\n") == [f"a.md.jinja, line 3: {what}"]


def test_a_sentence_has_gaps_alone_and_none_is_left_over() -> None:
    for name, text in sentences().items():
        assert re.fullmatch(r"(?:[^{}]|\{\{ \w+ \}\})*", text), name
    texts = [path.read_text(encoding="utf-8") for path in resources.files("leakbound").rglob("*.py")]
    assert all(f"{name.partition('.')[0]}." in "".join(texts) for name in sentences())


@dataclass(frozen=True)
class Title:
    """What a document of one gap is handed."""

    title: Any


@pytest.mark.parametrize("value", [1, 0.5, None, True, ["a"], b"a"])
def test_a_gap_takes_finished_text_and_the_error_names_the_line(value: Any, tmp_path, monkeypatch) -> None:
    (tmp_path / "a.md.jinja").write_text("# A\n\nof {{ title }}\n")
    monkeypatch.setattr(environment(), "loader", type(environment().loader)("leakbound.reports", "documents"))
    monkeypatch.setattr(environment().loader, "_template_root", str(tmp_path))
    with pytest.raises(TypeError, match=r"a\.md\.jinja, line 3: a gap takes finished text, not"):
        fill("a.md.jinja", Title(value))


def turned(first: int) -> Iterator[str]:
    """All nasty texts over and over, from one of them on."""
    return cycle(NASTY[first:] + NASTY[:first])


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(25, 200, 25))])
@pytest.mark.parametrize("name", RESULTS)
def test_what_a_user_wrote_makes_no_element_and_is_shown_as_it_is(
    name: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gap of a page has another text: the page is that with a plain text in each gap, but for these texts."""
    without_charts(monkeypatch)
    source, result = RESULTS[name]()
    plain = with_texts(result, (f"p{number}q" for number in count()))
    filled = with_texts(result, turned(first))

    def replaced(text: str) -> str:
        texts = NASTY[first:] + NASTY[:first]
        return re.sub(r"p(\d+)q", lambda found: seen(texts[int(found[1]) % len(texts)]), read(text))

    for form in (document.page, document.notebook):
        expected, written = (Elements(form(source, each, CHARTS, "c")) for each in (plain, filled))
        assert written.elements == expected.elements
        assert read(written.text) == replaced(expected.text)
    printed = document.terminal(source, filled, 400)
    assert not STEERS.search(printed.replace("\u2068", "").replace("\u2069", ""))
    assert read(printed) == replaced(document.terminal(source, plain, 400))


def test_a_sentence_of_another_version_is_shown_by_its_id() -> None:
    assert str(escape(Sentence("remark.not_<known>"))) == "not&#32;&#60;known&#62;"


def test_words_choose_what_is_shown_where() -> None:
    tokens = document._parser().parse(
        "::: a terminal\nx\n:::\n\n::: terminal only\ny\n:::\n\n::: fold terminal z\nw\n:::\n"
    )
    shown = {token.content: words for token, words in document.with_words(tokens) if token.content}
    assert shown == {"x": {"a", "terminal"}, "y": {"terminal", "only"}, "w": set()}


def test_the_full_text_has_titles_lists_of_terms_and_no_charts() -> None:
    text = document.terminal("bound.md.jinja", bound_page(made_bounds.dp()), 80, full=True)
    assert "\n## The ceiling\n" in text
    assert "\nThe words on this page\n" in text
    assert re.search(r" • Ceiling\n +The curve that no attacker exceeds", text)
    assert "chart" not in text
    assert max(map(len, text.splitlines())) <= 80
