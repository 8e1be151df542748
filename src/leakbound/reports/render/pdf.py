"""A page as PDF, printed by a browser that is installed, or by WeasyPrint."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from leakbound.core.checks import one_line
from leakbound.files.system import is_root

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
OFFLINE = (  # the page needs no network, and the browser must not look for updates
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-pdf-header-footer",
)
LONGEST = 120  # seconds that a browser may take
NOTHING_PRINTS = (
    "a PDF needs Chromium (or Chrome, or Edge) on the path, or WeasyPrint: pip install weasyprint; the page itself can "
    "be printed from any browser"
)


def print_page(text: str) -> bytes:
    """Print a page."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name)) is not None), None)
    if browser is not None:
        return _by_browser(browser, text)
    try:
        weasyprint = import_module("weasyprint")
    except (ModuleNotFoundError, OSError):  # OSError: it is installed, and a library of the system is not
        raise RuntimeError(NOTHING_PRINTS) from None
    return weasyprint.HTML(string=text).write_pdf()


def _by_browser(browser: str, text: str) -> bytes:
    """Print by a browser without a window, in a folder that is readable by the owner alone."""
    with TemporaryDirectory(prefix="leakbound-") as folder:
        page, pdf = Path(folder) / "report.html", Path(folder) / "report.pdf"
        page.write_text(text, encoding="utf-8")
        sandbox = ["--no-sandbox"] if is_root() else []  # as root, Chromium refuses to start with one
        command = [
            browser,
            *OFFLINE,
            *sandbox,
            f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={pdf}",
            page.as_uri(),
        ]
        environment = {**os.environ, "TZ": "UTC"}
        try:
            done = subprocess.run(command, capture_output=True, timeout=LONGEST, check=False, env=environment)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(f"{Path(browser).name} did not print the page: {one_line(str(error), 200)}") from error
        if done.returncode or not pdf.is_file():
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise RuntimeError(f"{Path(browser).name} did not print the page: {one_line(' '.join(said[-1:]), 200)}")
        return pdf.read_bytes()
