"""Check pages for accessibility by axe-core: ``python -m docs.accessibility axe.min.js PAGE...``, at the clone's root.

Pages are reports or pages of the built documentation. ``axe.min.js`` is in the package ``axe-core`` of npm (``npm pack
axe-core``); it is no part of leakbound. Each page is opened in Chromium on a light and on a dark screen, 1,280 and 400
pixels wide, with everything unfolded that is folded. A line is printed for each page, screen and rule that is broken;
the exit code is 1 if there is one.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMES = {"light": 1, "dark": 0}  # as Chromium numbers what a page finds as prefers-color-scheme
WIDTHS = (1280, 400)
HEIGHT = 1600
NARROWEST = 500  # a window of Chromium: a narrower page is in a frame
BUDGET = 30_000  # milliseconds of the page's own clock
# run in the window of the page, after its own scripts; the result replaces it
RUN = """
addEventListener("load", () => setTimeout(function () {
  for (const closed of document.querySelectorAll("details")) closed.open = true;
  axe.run(document, {resultTypes: ["violations"]}).then(function (found) {
    const broken = found.violations.map(rule => ({
      id: rule.id, impact: rule.impact, help: rule.help,
      nodes: rule.nodes.map(node => node.target.join(" ") + " | " + node.failureSummary.split("\\n")[1])
    }));
    const result = document.createElement("pre");
    result.id = "axe-result";
    result.textContent = JSON.stringify({broken: broken, width: innerWidth});
    top.document.documentElement.replaceChildren(result);
  });
}, 500));
"""
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
RESULT = re.compile(r'<pre id="axe-result">(.*?)</pre>', re.DOTALL)


@dataclass(frozen=True)
class Broken:
    """A rule that a page breaks on a screen.

    Parameters
    ----------
    page : str
    scheme : {"light", "dark"}
    width : int
    rule : str
        The id of axe's rule.
    impact, help : str
        How much it matters, and what is asked for.
    nodes : sequence of str
        Where, and why.
    """

    page: str
    scheme: str
    width: int
    rule: str
    impact: str
    help: str
    nodes: Sequence[str]


def with_axe(page: Path, axe: str) -> str:
    """Return a copy of a page that checks itself: with its own links, without the policy that forbids other scripts."""
    text = POLICY.sub("", page.read_text(encoding="utf-8"))
    base = f'<base href="{html.escape(page.resolve().as_uri())}">'
    text = text.replace("<head>", f"<head>{base}", 1)
    return text.replace("</head>", f"<script>{axe}</script><script>{RUN}</script></head>", 1)


def broken_rules(page: Path, axe: str) -> Iterator[Broken]:
    """Run axe on a page, on every screen."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "page.html").write_text(with_axe(page, axe), encoding="utf-8")
        for scheme in SCHEMES:
            for width in WIDTHS:
                for rule in _result(folder, scheme, width)["broken"]:
                    yield Broken(
                        str(page), scheme, width, rule["id"], rule["impact"] or "", rule["help"], rule["nodes"]
                    )


def _result(folder: Path, scheme: str, width: int) -> dict[str, Any]:
    """Return what axe finds on one screen."""
    start = folder / "page.html"
    if width < NARROWEST:
        start = folder / "narrow.html"
        frame = f'<iframe title="page" src="page.html" style="border:0;width:{width}px;height:{HEIGHT}px"></iframe>'
        start.write_text(f"<!doctype html><title>narrow</title>{frame}", encoding="utf-8")
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--allow-file-access-from-files",
        "--disable-web-security",
        f"--user-data-dir={folder / 'profile'}",
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
        f"--window-size={max(width, NARROWEST)},{HEIGHT}",
        f"--virtual-time-budget={BUDGET}",
        "--dump-dom",
        start.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    found = RESULT.search(done.stdout)
    if found is None:
        raise RuntimeError(f"axe said nothing: {done.stderr[-500:]}")
    result = json.loads(html.unescape(found[1]))
    if result["width"] != width:
        raise RuntimeError(f"the page was {result['width']} pixels wide, not {width}")
    return result


def main(arguments: Sequence[str]) -> int:
    """Check the pages and print what is broken."""
    axe = Path(arguments[0]).read_text(encoding="utf-8")
    n_rules = n_nodes = 0
    for page in arguments[1:]:
        found = list(broken_rules(Path(page), axe))
        for rule in found:
            print(f"{page} ({rule.scheme}, {rule.width}): {rule.rule} ({rule.impact}): {rule.help}, {len(rule.nodes)}")
            for node in rule.nodes[:3]:
                print(f"    {node}")
        if not found:
            print(f"{page}: nothing")
        n_rules += len(found)
        n_nodes += sum(len(rule.nodes) for rule in found)
    print(f"{len(arguments) - 1} pages, {n_rules} rules broken, in {n_nodes} places")
    return 1 if n_rules else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
