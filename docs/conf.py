"""Settings of the documentation; build it with ``python -m sphinx -W -b html docs docs/_build/html``."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from importlib.metadata import distribution
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parents[1]))
from docs import statements

from leakbound.cli.main import main as leakbound

project = "leakbound"
author = "The leakbound developers"
copyright = "2026, the leakbound developers"
release = version = installed_version("leakbound")

extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc", "sphinx_design", "sphinx_gallery.gen_gallery"]
templates_path = ["_templates"]
exclude_patterns = ["_build", "plans", "results", "papers/*", "notebooks/*", "examples"]
exclude_patterns += ["gallery/index.rst", "gallery/*.ipynb"]  # gallery.md is the page; the notebooks are for download
myst_enable_extensions = ["colon_fence", "deflist", "attrs_block", "dollarmath"]
myst_dmath_allow_space = False  # "$2 and $3" is an amount of money
myst_dmath_allow_digits = False
myst_heading_anchors = 3
nb_execution_mode = "off"  # the notebooks hold their outputs: python docs/tutorials.py
nitpicky = False

autodoc_typehints = "none"  # the docstrings say it with axes and units
autodoc_member_order = "bysource"
add_module_names = False
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

autosummary_generate = True  # a page in reference/objects for each object that a table of the reference names
mathjax_path = "mathjax/tex-chtml.js"  # copied by serve_mathjax
mathjax3_config = {"options": {"enableMenu": False}}
html_theme = "pydata_sphinx_theme"
html_title = "leakbound"
html_static_path = ["_static"]
html_css_files = ["docs.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "navbar_center": [],  # all pages are on the left
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"**": ["all-pages.html"]}

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="leakbound-state-")  # not the list of ledgers of a user
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")  # the small models of the figures are fitted in this process
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("leakbound",),
    "reference_url": {"leakbound": None},  # names in the code are links to the reference
    "capture_repr": (),  # what is printed, and not what the last line returns
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
    "show_memory": False,
    "show_signature": False,
    "image_srcset": ["2x"],
    "thumbnail_size": (400, 300),
}


class CommandHelp(SphinxDirective):
    """What a command of leakbound says of itself: ``{command-help} bound dp``."""

    required_arguments: ClassVar[int] = 1
    final_argument_whitespace: ClassVar[bool] = True

    def run(self) -> list[nodes.Node]:
        """The help as it is printed on a terminal of 84 columns, which fit beside the menus."""
        said = io.StringIO()
        plain = {"COLUMNS": "84", "TERM": "dumb", "NO_COLOR": "1"}
        flag = "--help-all" if self.arguments[0].startswith("audit") else "--help"
        typed = ["leakbound", *self.arguments[0].split(), flag]
        terminal, line = patch.dict(os.environ, plain), patch.object(sys, "argv", typed)
        with terminal, line, redirect_stdout(said), suppress(SystemExit):
            leakbound()
        text = said.getvalue()
        return [nodes.literal_block(text, text, language="text")]


def describe_figure(app: Sphinx, page: nodes.document) -> None:
    """Give the figure of a page of the gallery the title of the page, for readers who do not see it."""
    if app.env.docname.startswith("gallery/"):
        (title,) = list(page.findall(nodes.title))[:1]
        for figure in page.findall(lambda node: node.tagname == "imgsgnode"):
            figure["alt"] = title.astext()


def serve_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Put MathJax and its fonts beside the pages, so that they ask no other server for anything."""
    if error is None and app.builder.format == "html":
        source = Path(str(distribution("django-static-mathjax").locate_file("mathjax/static/mathjax/es5")))
        target = app.outdir / "_static" / "mathjax"
        fonts = Path("output/chtml/fonts")
        shutil.copytree(source / fonts, target / fonts, dirs_exist_ok=True)
        shutil.copy2(source / "tex-chtml.js", target)


def mended(text: str) -> str:
    """Mend what the theme, MathJax and pandas leave out, for readers who hear a page or use no mouse.

    The fold of a menu has no text, the first cell of the head of a table of pandas is empty, and a formula that is
    wider than the screen could not be scrolled by keys.
    """
    named = '<summary aria-label="Pages below"><span class="toctree-toggle"'
    text = text.replace('<summary><span class="toctree-toggle"', named)
    text = text.replace('<div class="math notranslate', '<div tabindex="0" class="math notranslate')
    return text.replace("<th></th>", "<td></td>")


def mend_pages(app: Sphinx, error: Exception | None) -> None:
    """Mend every page that was built."""
    if error is None and app.builder.format == "html":
        for page in app.outdir.rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            if mended(text) != text:
                page.write_text(mended(text), encoding="utf-8")


def absolute_values(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Bars outside of literals and examples are absolute values, not substitutions of reStructuredText."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[number] = re.sub(r"(``.*?``)|\|", lambda found: found[1] or r"\|", line)


def summarise(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the summary of a paper on its page, which is made again if a part of the summary changes."""
    if page in statements.PAPERS:
        for file in statements.SUMMARISED:
            app.env.note_dependency(str(statements.HERE / file))
        source[0] = source[0].replace(statements.SUMMARY, statements.summary(page))


def link_statements(app: Sphinx, page: nodes.document) -> None:
    """Give each row of the lists of statements its anchor, and its names their links."""
    linked: set[Path] = app.env.__dict__.setdefault("linked_code", set())
    for table in page.findall(nodes.table):
        head, *rows = table.findall(nodes.row)
        if [cell.astext() for cell in head] != statements.HEADS:
            continue
        table["classes"].append("statements")
        for row in rows:
            name = statements.anchor(app.env.docname, row[0].astext())
            row["ids"].append(name)
            pilcrow = nodes.reference("", "¶", refuri=f"#{name}", internal=True, classes=["headerlink"])
            next(row[0].findall(nodes.paragraph)).extend([nodes.Text(" "), pilcrow])
            for literal in [each for cell in row[2:4] for each in cell.findall(nodes.literal)]:
                link_name(literal, linked)


def link_name(literal: nodes.literal, linked: set[Path]) -> None:
    """Make a link of a name in a row, and note the file of code that it leads to."""
    full = literal.astext()
    target = statements.link(full)
    if target is None:
        return
    if isinstance(target, tuple):
        file, line = target
        linked.add(file)
        target = f"code/{statements.written_as(file)}.html#L-{line}"
    words = statements.shown_as(full)
    shown = nodes.Text(words) if " " in words else nodes.literal(words, words)
    literal.replace_self(nodes.reference("", "", shown, refuri=target, internal=True, reftitle=full))


def pages_of_code(app: Sphinx) -> Iterator[tuple[str, dict[str, str], str]]:
    """Make the page of each file that is linked."""
    look = HtmlFormatter(lineanchors="L", wrapcode=True)
    for file in sorted(app.env.__dict__.get("linked_code", ())):
        title = statements.written_as(file)
        code = highlight(file.read_text(encoding="utf-8"), PythonLexer(), look)
        yield f"code/{title}", {"title": title, "body": f"<h1>{title}</h1>\n{code}"}, "page.html"


def setup(app: Sphinx) -> None:
    """Register the directive, and what is done before and after pages are read and written."""
    app.add_directive("command-help", CommandHelp)
    app.connect("doctree-read", describe_figure)
    app.connect("autodoc-process-docstring", absolute_values, priority=900)
    app.connect("build-finished", serve_mathjax)
    app.connect("build-finished", mend_pages)
    app.connect("source-read", summarise)
    app.connect("doctree-read", link_statements)
    app.connect("html-collect-pages", pages_of_code)
