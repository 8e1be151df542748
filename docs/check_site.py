"""Check the built documentation: ``python -m docs.check_site docs/_build/html``, in the root of the clone.

A line is printed for each link within the site that leads nowhere, for each page that loads something from another
server, and for a home page of 500 kB or more as it is sent (texts compressed, pictures and fonts as they are). The exit
code is 1 if there is one.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

HOME = "index.html"
MOST_BYTES = 500_000
FONTS = {".woff2", ".woff", ".ttf"}
COMPRESSED = {".html", ".css", ".js", ".svg", ".json"}
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
LOADED_LINKS = {"stylesheet", "preload", "icon", "shortcut icon", "modulepreload"}  # other links are followed by people
IN_STYLES = re.compile(r"""url\(["']?([^"')]+)""")


class Links(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses and the names of an element."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag == "link" and values.get("rel", "") in LOADED_LINKS:
            self.loaded.append(values.get("href", ""))
        if LOADS.get(tag, "") in values:
            self.loaded.append(values[LOADS[tag]])
        self.loaded += IN_STYLES.findall(values.get("style", ""))


@cache
def read(page: Path) -> Links:
    """Read a page once."""
    return Links(page.read_text(encoding="utf-8"))


def broken_links(site: Path) -> Iterator[str]:
    """List the links of all pages to files and anchors of the site that are not there."""
    for page in sorted(site.rglob("*.html")):
        for link in dict.fromkeys(read(page).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= HOME
            if not target.is_file():
                yield f"{page.relative_to(site)}: no file {link}"
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in read(target).anchors:
                yield f"{page.relative_to(site)}: no anchor {link}"


def from_elsewhere(site: Path) -> Iterator[str]:
    """List what pages and their styles load from other servers."""
    for page in sorted(site.rglob("*.html")):
        for address in read(page).loaded:
            if urlsplit(address).netloc:
                yield f"{page.relative_to(site)}: loads {address}"
    for style in sorted(site.rglob("*.css")):
        for address in IN_STYLES.findall(style.read_text(encoding="utf-8")):
            if urlsplit(address).netloc:
                yield f"{style.relative_to(site)}: loads {address}"


def home_bytes(site: Path) -> dict[str, int]:
    """Return the bytes of all that the home page may load, by file, as they are sent.

    A font of icons is loaded if a class of the page names it.
    """
    page = site / HOME
    text = page.read_text(encoding="utf-8")
    files = {page}
    for address in read(page).loaded:
        if not urlsplit(address).scheme and not urlsplit(address).netloc:
            files.add((page.parent / unquote(urlsplit(address).path)).resolve())
    for style in [file for file in files if file.suffix == ".css"]:
        for address in IN_STYLES.findall(style.read_text(encoding="utf-8")):
            if not urlsplit(address).scheme and not urlsplit(address).netloc:
                file = (style.parent / unquote(urlsplit(address).path)).resolve()
                if file.suffix not in FONTS or file.stem.rpartition("-")[0] in text:
                    files.add(file)
    sizes = {}
    for file in sorted(files):
        if file.is_file():
            content = file.read_bytes()
            sent = gzip.compress(content, mtime=0) if file.suffix in COMPRESSED else content
            sizes[str(file.relative_to(site.resolve()) if file.is_relative_to(site.resolve()) else file.name)] = len(
                sent
            )
    return sizes


def wrong(site: Path) -> Iterator[str]:
    """List everything that is wrong."""
    yield from broken_links(site)
    yield from from_elsewhere(site)
    n_bytes = sum(home_bytes(site).values())
    if n_bytes >= MOST_BYTES:
        yield f"{HOME}: {n_bytes:,} bytes, at least {MOST_BYTES:,}"


def main(arguments: Sequence[str]) -> int:
    """Print what is wrong, and what the home page weighs."""
    site = Path(arguments[0]).resolve()
    found = list(wrong(site))
    for line in found:
        print(line)
    sizes = home_bytes(site)
    print(f"{HOME}: {sum(sizes.values()):,} bytes in {len(sizes)} files")
    print(f"{len(list(site.rglob('*.html')))} pages, {len(found)} errors")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
