"""A document, which is Markdown with Jinja gaps, as a page, as the text of a terminal and as part of a notebook."""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from matplotlib.figure import Figure
from mdit_py_plugins.container import container_plugin
from mdit_py_plugins.deflist import deflist_plugin
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.markdown import Heading, MarkdownElement, TableElement
from rich.markdown import Markdown as RichMarkdown
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from leakbound.reports.about import AnyAbout, ProtectedAbout
from leakbound.reports.charts import svg
from leakbound.reports.render.gaps import fill, page_frame

_WIDE = 100_000  # columns, in which no table wraps
# Charts are drawn figures; a picture of a record is the address of its data, and a strip is SVG.
Charts = Mapping[str, Figure | str]
_PLAIN_SPACES = str.maketrans("\u00a0\u202f", "  ")  # no terminal breaks a line at a space of its own accord


def document_name(about: AnyAbout) -> str:
    """Name the document of a kind of report; that of a release is the one of its promise."""
    name = f"promises/{about.certificate.promise}" if isinstance(about, ProtectedAbout) else about.kind
    return f"{name}.md.jinja"


def page(document: str, result: Any, charts: Charts, prefix: str) -> str:
    """Return the page of a result: one HTML file that needs neither a script nor the network."""
    tokens = parse(document, result)
    shown = [token for token, words in with_words(tokens) if "only" not in words]
    body = _html(shown, charts, prefix)
    return page_frame(plain(tokens[1]), body, result.made.version)


def notebook(document: str, result: Any, charts: Charts, prefix: str) -> str:
    """Return the blocks that are marked ``terminal`` or ``notebook``, and not ``only`` for the terminal, as HTML."""
    tokens = parse(document, result)
    title = f'<p class="title">{html.escape(plain(tokens[1]))}</p>\n'
    shown = [token for token, words in with_words(tokens) if {"terminal", "notebook"} & words and "only" not in words]
    return title + _html(shown, charts, prefix)


def terminal(document: str, result: Any, width: int = 80, full: bool = False) -> str:
    """Return what a person reads standing: the title and the blocks that are marked ``terminal``; or all of it."""
    tokens = parse(document, result)
    body = [
        token
        for token, words in with_words(tokens[3:])  # without the title
        if ("only" not in words if full else "terminal" in words)
    ]
    text = _Text("", hyperlinks=False)
    text.parsed = list(_for_terminal(body))
    written = io.StringIO()  # not standard output, on whose encoding the lines of tables would depend
    console = Console(  # in a notebook, too, where rich would show the text in the cell and return none
        file=written, width=width, color_system=None, legacy_windows=False, force_terminal=False, force_jupyter=False
    )
    console.print(Text(plain(tokens[1])), text, sep="\n")
    lines: list[str] = []
    for line in written.getvalue().translate(_PLAIN_SPACES).split("\n"):
        if line.strip() or lines[-1:] not in ([], [""]):  # one empty line is enough
            lines.append(line.rstrip())
    return "\n".join(lines).strip("\n") + "\n"


def table_of(rows: Sequence[Mapping[str, str]], width: int) -> str:
    """Write rows as a table of at most ``width`` columns, whose heads are the keys."""
    table = Table(*rows[0], box=None, pad_edge=False, header_style="")
    for row in rows:
        table.add_row(*row.values())
    written = io.StringIO()
    console = Console(file=written, width=width, color_system=None, markup=False, highlight=False)
    console.print(fitted(table, console, console.options))
    lines = [line.rstrip() for line in written.getvalue().split("\n")]
    return "\n".join(lines).strip("\n") + "\n"


def parse(document: str, result: Any) -> list[Token]:
    """Fill the gaps of a document and parse it."""
    tokens = _parser().parse(fill(document, result), {})
    children = [child for token in tokens for child in token.children or ()]
    for token in [*tokens, *children]:
        if token.type in ("code_inline", "fence"):
            token.content = html.unescape(token.content)  # code is shown as it is written, its gaps too
        elif token.type == "text":
            token.content = token.content.replace("\n", " ")
    _name_closing_marks(tokens)
    _free_charts(tokens)
    _label_cells(tokens)
    _number_headings(tokens)
    return tokens


def plain(inline: Token) -> str:
    """Return the text of an inline token without its marks."""
    if not inline.children:
        return " " if inline.type == "softbreak" else inline.content
    return "".join(map(plain, inline.children))


def with_words(tokens: Sequence[Token]) -> Iterator[tuple[Token, set[str]]]:
    """Pair each token with the words of the blocks around it; those of a fold's title are none."""
    opened: list[set[str]] = []
    for token in tokens:
        if token.type == "container_block_open":
            opened.append(set() if _is_fold(token) else set(token.info.split()))
        yield token, set().union(*opened)
        if token.type == "container_block_close":
            opened.pop()


def _is_fold(token: Token) -> bool:
    return token.info.split()[:1] == ["fold"]


def _title(token: Token) -> str:
    """Return the title of a fold, which is Markdown."""
    return token.info.strip().removeprefix("fold").strip()


def _name_closing_marks(tokens: Sequence[Token]) -> None:
    """Tell each closing mark which block it closes: the plugin does not."""
    opened = []
    for token in tokens:
        if token.type == "container_block_open":
            opened.append(token.info)
        elif token.type == "container_block_close":
            token.info = opened.pop()


def _is_chart(token: Token) -> bool:
    children = token.children or []
    return token.type == "inline" and len(children) == 1 and _source(children[0]).startswith("chart:")


def _source(token: Token) -> str:
    """Return what an image shows: its kind and its name, as ``chart:roc``."""
    return str(token.attrs.get("src", "")) if token.type == "image" else ""


def _free_charts(tokens: Sequence[Token]) -> None:
    """Take each chart out of its paragraph."""
    for place, token in enumerate(tokens):
        if _is_chart(token):
            tokens[place - 1].hidden = tokens[place + 1].hidden = True


def _label_cells(tokens: Sequence[Token]) -> None:
    """Name the column of each cell, for narrow pages that show a row as a list; the first cell heads its row."""
    heads: list[str] = []
    column = 0
    for place, token in enumerate(tokens):
        if token.type == "thead_open":
            heads = []
        elif token.type == "tr_open":
            column = 0
        elif token.type == "th_open":
            heads.append(plain(tokens[place + 1]))
            token.attrSet("scope", "col")
        elif token.type == "td_open":
            token.attrSet("data-label", heads[column])
            if column == 0:
                token.tag = tokens[place + 2].tag = "th"
                token.attrSet("scope", "row")
            column += 1


def _number_headings(tokens: Sequence[Token]) -> None:
    """Give the second-level headings the ids h1, h2, ..., to which a table of contents links."""
    headings = [token for token in tokens if token.type == "heading_open" and token.tag == "h2"]
    for number, token in enumerate(headings, start=1):
        token.attrSet("id", f"h{number}")


def _html(tokens: Sequence[Token], charts: Charts, prefix: str) -> str:
    parser = _parser()
    return parser.renderer.render(tokens, parser.options, {"charts": charts, "prefix": prefix})


def _block(renderer: Any, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    """Write ``::: words`` as a box of these classes, and ``::: fold A title`` as details that a click opens."""
    token = tokens[place]
    if token.nesting == -1:
        return "</details>\n" if _is_fold(token) else "</div>\n"
    if _is_fold(token):
        return f"<details><summary>{_parser().renderInline(_title(token))}</summary>\n"
    return f'<div class="{html.escape(token.info.strip())}">\n'


def _image(renderer: Any, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    """Write ``![what it shows](chart:name)`` as the chart of that name, in cells also ``picture:`` and ``strip:``.

    A chart that is a picture is wide, and can be scrolled.
    """
    kind, _, name = _source(tokens[place]).partition(":")
    drawn, label = env["charts"][name], html.escape(plain(tokens[place]))
    if kind == "picture":
        return f'<img class="picture" width="36" height="36" src="{html.escape(drawn)}" alt="{label}">'
    if kind == "strip":
        return drawn
    if isinstance(drawn, str):
        picture = f'<img alt="{label}" src="{html.escape(drawn)}">'
        return f'<figure class="scroll" tabindex="0" aria-label="{label}">{picture}</figure>\n'
    prefix = f"{env['prefix']}-{name}"
    return f"<figure>{svg.labelled(drawn, prefix, plain(tokens[place]))}</figure>\n"


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").use(deflist_plugin)
    parser.use(container_plugin, "block", validate=lambda *_: True, render=_block)
    parser.add_render_rule("image", _image)
    return parser


def _for_terminal(tokens: Sequence[Token]) -> Iterator[Token]:
    """Write what a terminal has no form for in other tokens: no charts, titles of folds and terms as lines of text."""
    for place, token in enumerate(tokens):
        is_beside_chart = any(map(_is_chart, tokens[max(place - 1, 0) : place + 2]))
        if token.type in AS_LIST:
            yield from AS_LIST[token.type](token)
        elif token.type == "container_block_open" and _is_fold(token):
            yield from _parser().parse(_title(token))
        elif token.type == "inline":
            if not is_beside_chart:
                token.children = [child for child in token.children or () if child.type != "image"]
                yield token
        elif "container" not in token.type and not is_beside_chart:
            if token.children:  # a terminal follows no link
                token.children = [child for child in token.children if not child.type.startswith("link_")]
            yield token


def _tokens(*types: str) -> Callable[[Token], list[Token]]:
    """Make the function that writes other tokens in the place of one."""
    return lambda _: [Token(name, "", 1 if name.endswith("_open") else -1) for name in types]


# A list of terms as a list: each term is followed by what it means.
AS_LIST = {
    "dl_open": _tokens("bullet_list_open"),
    "dl_close": _tokens("bullet_list_close"),
    "dt_open": _tokens("list_item_open", "paragraph_open"),
    "dt_close": _tokens("paragraph_close"),
    "dd_open": _tokens(),
    "dd_close": _tokens("list_item_close"),
}


class _LeftHeading(Heading):
    """A heading at the left, as it is written in Markdown."""

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        self.text.justify = "left"
        yield Text(f"{'#' * int(self.tag[1])} ") + self.text


class _Table(TableElement):
    """A table whose words stay whole."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        for table in super().__rich_console__(console, options):
            yield fitted(table, console, options) if isinstance(table, Table) else table


def fitted(table: Table, console: Console, options: ConsoleOptions) -> RenderableType:
    """Return a table that breaks no short word; one that does not fit as a list: a row's name, then its other cells."""
    columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    widths = [max(map(cell_len, cells)) for cells in columns]
    # a word of more than half a line, which only a user writes, may be broken
    longest = [max((cell_len(word) for cell in cells for word in cell.split()), default=0) for cells in columns]
    least = [min(length, options.max_width // 2) for length in longest]
    if widths[0] <= options.max_width // 4:
        least[0] = widths[0]  # short names of rows stay in one line
    around = Measurement.get(console, options.update_width(_WIDE), table).maximum - sum(widths)
    if sum(least) > options.max_width - around:
        return _as_list(columns)
    while sum(widths) > options.max_width - around:
        wide = [place for place, width in enumerate(widths) if width > least[place]]
        widths[max(wide, key=widths.__getitem__)] -= 1
    for column, width in zip(table.columns, widths, strict=True):
        column.width, column.overflow = width, "fold"
    return table


def _as_list(columns: Sequence[Sequence[str]]) -> RenderableType:
    """List the rows of a table, each cell after the head of its column, as a narrow page does."""
    (_, *names), *others = columns
    lines: list[RenderableType] = []
    for place, name in enumerate(names, start=1):
        lines.append(Text(name))
        cells = [f"{column[0]}: {column[place]}" for column in others if column[place]]
        lines += [Padding(Text(cell), (0, 0, 0, 2)) for cell in cells]
    return Padding(Group(*lines), (1, 0))


class _Text(RichMarkdown):
    """The text of a terminal."""

    elements: Mapping[str, type[MarkdownElement]] = {  # pyright: ignore
        **RichMarkdown.elements,
        "heading_open": _LeftHeading,
        "table_open": _Table,
    }
