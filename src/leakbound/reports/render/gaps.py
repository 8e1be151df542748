"""Documents with their gaps filled: Markdown in which nothing that a user wrote is structure."""

from __future__ import annotations

import base64
import hashlib
import traceback
import unicodedata
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined

from leakbound.reports.sentences import Sentence

LEFT_ALONE = "\n\t\u200c\u200d"  # the last two join letters of Persian and Hindi, and emoji
ISOLATED = "\u2068{}\u2069"


class Markdown(str):
    """Text that is Markdown already; every other text in a gap is shown sign by sign, as it is."""


def escape(value: object) -> Markdown:
    """Write text such that Markdown and HTML show it as it is: each sign becomes a character reference.

    A character reference is never structure (CommonMark 0.31, section 2.5). Signs that steer a terminal or a browser
    are shown by their number. Numbers are refused: who knows which direction is safe has rounded them.

    >>> print(escape("a*b"))
    a&#42;b
    """
    if isinstance(value, Markdown):
        return value
    if isinstance(value, Sentence):
        return Markdown(value.filled(escape))
    if not isinstance(value, str):
        raise TypeError(f"a gap takes finished text, not {value!r}")
    text = visible(value).replace("\t", " ")  # a tab is as wide as what stands before it, and no column measures that
    if any(unicodedata.bidirectional(char) in ("R", "AL") for char in text):
        text = ISOLATED.format(text)  # keeps Hebrew and Arabic from turning what comes after them
    return Markdown("".join(char if char.isalnum() else f"&#{ord(char)};" for char in text))


def visible(text: str) -> str:
    """Show by its number what steers a terminal or a browser: control and direction signs, lone surrogates."""
    return "".join(f"⟨U+{ord(char):04X}⟩" if _steers(char) else char for char in text)


def _steers(char: str) -> bool:
    return unicodedata.category(char).startswith("C") and char not in LEFT_ALONE


def fill(document: str, result: object) -> str:
    """Fill the gaps of a document, by its name in ``documents/``, with the fields of a result.

    A gap that is given a number raises an error with the line of the document.
    """
    try:
        return environment().get_template(document).render(vars(result))
    except TypeError as error:
        places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(".jinja")]
        if not places:
            raise
        raise TypeError(f"{places[-1].filename}, line {places[-1].lineno}: {error}") from None


@cache
def environment() -> Environment:
    """Make the environment of all documents, which escapes every gap so that nobody can forget it."""
    return Environment(
        loader=PackageLoader("leakbound.reports", "documents"),
        undefined=StrictUndefined,
        finalize=escape,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page_frame(title: str, body: str, version: str) -> str:
    """Put the HTML of a document into the frame of a page, whose policy allows no script but ours, and no network."""
    script, style = asset("sort.js"), asset("style.css")
    frame = Environment(loader=PackageLoader("leakbound.reports", "documents"), autoescape=True)
    content = {"title": title, "body": body, "version": version, "script": script, "style": style}
    return frame.get_template("frame.html.jinja").render(content, policy=policy(script))


def asset(name: str) -> str:
    """Read a file of the documents."""
    return resources.files("leakbound.reports").joinpath("documents", name).read_text(encoding="utf-8").strip()


def policy(script: str) -> str:
    """Content security policy: nothing from the network, and no script but ours."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
