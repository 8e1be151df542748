"""Two hundred texts that a user may give, each of which is structure somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from leakbound.reports.results.made import ChartName
from leakbound.reports.sentences import Sentence, Texts

MARKDOWN = [
    "*a*", "**a**", "_a_", "__a__", "***a***", "a*", "*a", "**a", "a**", "*", "**", "_", "~~a~~", "`a`", "``a``", "`",
    "```", "```\na", "~~~\na", "# a", "## a", "a\n===", "a\n---", "---", "***", "___", "> a", ">", "- a", "+ a",
    "* a", "1. a", "1) a", "1", "12", "-", "+", "- [ ] a", "    a", "\ta", "a  \nb", "a\\\nb", "a\\", "\\", "\\*a\\*",
    "|", "a|b", "\\|", "||", "|a|b|", "|---|", ":---:", "|:--|--:|", "[a](b)", "[a](javascript:b)", "[a][b]",
    "[a]: b", "[a]", "![a](chart:roc)", "![a](b)", "![", "](", ")", "(", "[", "]", "<http://a.b>", "http://a.b",
    "a@b.c", "[^1]", "[^1]: a", ": a", "a\n: b", "a: b\n: c", ":::", "::: a", "::::", "::: fold a",
    ":::::::: terminal only", ":::\n", "a\n:::\nb", "\n:::\n", "$a$", "$$a$$", "^a^", "~a~", "==a==", "++a++", "{.a}",
    "{#a}", "[toc]", "*[a]: b", "a\n\nb", "\n", "\n\n", "\n# a", "\n- a", "\n    a", "\n|",
]  # fmt: skip
HTML = [
    "<b>a</b>", "<b>", "</b>", "</div>", "</details>", "</summary>", "</main>", "</body>", "<!--", "-->",
    "<!-- a -->", "<![CDATA[a]]>", "<?a?>", "<!doctype a>", "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>", "<svg onload=a>", "<style>*{display:none}</style>", "</style>", "</title>",
    "<a href='javascript:a'>b</a>", '"', "'", '" onload="a', "' b='", "\"><script>alert(1)</script>", "&", "&amp;",
    "&lt;a&gt;", "&#42;", "&#x2a;", "&amp;lt;", "&nbsp;", "&#0;", "&copy", "<", ">", "<a", "a<b", "a>b", "a&b",
    "<br>", "<br/>", "<iframe src=a>", "<base href=a>", "<meta http-equiv=refresh>", "<table>", "<td>", "</td>",
    "</table>", "<math>", "<textarea>", "<plaintext>", "`<b>`",
]  # fmt: skip
JINJA = [
    "{{ n }}", "{{", "}}", "{{ 7 * 7 }}", "{% raw %}", "{% endraw %}", "{% endif %}", "{% for a in b %}", "{# a #}",
    "{#", "#}", "{%", "%}", "{{ self }}", "{{ ''.__class__ }}", "{% include 'frame.html.jinja' %}", "{0}", "{a}", "{",
    "}", "%s", "%(a)s",
]  # fmt: skip
FORMULAS = ["=1+1", "+1", "-1", "@a", "=HYPERLINK(1)", "=cmd|' /C calc'!A0", "\t=1", "1e5", "1,000", "50 %", "0.5"]
SIGNS = [
    "\x1b[31ma\x1b[0m", "\x1b]0;a\x07", "\x00", "\x07", "\x08a", "\x7f", "\x9b31m", "\r", "a\rb", "\x0b", "\x0c",
    "\u202ea", "\u202d", "\u2066a\u2069", "\u200ea", "\u200fa", "\u200b", "\ufeff", "\u2028", "\u2029", "\ud800",
    "\ue000", "\uffff", "עברית", "العربية", "a עברית b", "字", "é", "e\u0301", "👩\u200d👩", "ﬁ", "١٢", "²", "\xa0",
    "\u3000",
]  # fmt: skip
NASTY = [*MARKDOWN, *HTML, *JINJA, *FORMULAS, *SIGNS]


def with_texts(value: Any, texts: Iterator[str]) -> Any:
    """What a document is handed, with the next text in each gap; ids, truth values and empty texts stay."""
    if isinstance(value, ChartName):
        return value
    if isinstance(value, str):
        return next(texts) if value else value
    if isinstance(value, Sentence):
        return Sentence(value.id, {name: with_texts(gap, texts) for name, gap in value.gaps.items()})
    if isinstance(value, Texts):
        return Texts(**{name: with_texts(each, texts) for name, each in vars(value).items()})
    if is_dataclass(value) and not isinstance(value, type):
        gaps = [field.name for field in fields(value) if field.name != "role"]  # what a chart draws it as is no text
        return replace(value, **{name: with_texts(getattr(value, name), texts) for name in gaps})
    if isinstance(value, list | tuple):
        return [with_texts(each, texts) for each in value]
    return value
