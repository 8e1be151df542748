"""PDF: by a browser, by WeasyPrint, or an error of one line."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from leakbound.reports.render import pdf
from tests.reports import samples

BROWSER = """#!/bin/sh
for word in "$@"; do
  case "$word" in
    --print-to-pdf=*) printf '%%PDF-1.7 printed' > "${word#--print-to-pdf=}" ;;
  esac
done
"""


@pytest.fixture
def only(tmp_path, monkeypatch):
    """A path on which there is this browser alone, and no WeasyPrint."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setitem(sys.modules, "weasyprint", None)

    def install(script: str | None) -> None:
        if script is not None:
            file = folder / "chromium"
            file.write_text(script, encoding="utf-8")
            file.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
        found = shutil.which("chromium", path=str(folder))
        monkeypatch.setattr(pdf.shutil, "which", lambda name: found if name == "chromium" else None)

    return install


@pytest.mark.slow
def test_a_browser_prints_the_page(only, tmp_path):
    only(BROWSER)
    report = samples.no_leak()
    report.to_pdf(tmp_path / "out" / "report.pdf")
    file = tmp_path / "out" / "report.pdf"
    assert file.read_bytes() == b"%PDF-1.7 printed"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    report.to_pdf(tmp_path / "public.pdf", publish=True)
    assert stat.S_IMODE((tmp_path / "public.pdf").stat().st_mode) & 0o044


@pytest.mark.by_day("no program-chromium did not print the page")
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("#!/bin/sh\necho broken >&2\nexit 3\n", "chromium did not print the page: broken"),
        ("#!/bin/sh\nexit 0\n", "chromium did not print the page"),
        ("no program", "chromium did not print the page"),
    ],
)
def test_a_browser_that_fails_is_one_line(only, tmp_path, script, message):
    only(script)
    with pytest.raises(RuntimeError) as error:
        samples.no_leak().to_pdf(tmp_path / "report.pdf")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "report.pdf").exists()


def test_weasyprint_comes_second(only, monkeypatch):
    only(None)
    made = SimpleNamespace(HTML=lambda string: SimpleNamespace(write_pdf=lambda: f"%PDF of {len(string)}".encode()))
    monkeypatch.setitem(sys.modules, "weasyprint", made)
    assert pdf.print_page("<p>a page</p>") == b"%PDF of 13"


def test_with_neither_there_is_one_line(only):
    only(None)
    with pytest.raises(RuntimeError, match=r"a PDF needs Chromium .* or WeasyPrint: pip install weasyprint"):
        pdf.print_page("<p>a page</p>")


@pytest.mark.browser
@pytest.mark.slow
def test_chromium_prints_a_whole_report(tmp_path: Path):
    if shutil.which("chromium") is None and os.environ.get("LEAKBOUND_NO_BROWSER") == "1":
        pytest.skip("LEAKBOUND_NO_BROWSER=1")
    samples.judged().to_pdf(tmp_path / "report.pdf")
    content = (tmp_path / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert content.rstrip().endswith(b"%%EOF")


@pytest.mark.browser
@pytest.mark.slow
def test_what_is_folded_is_printed_in_full():
    if shutil.which("chromium") is None and os.environ.get("LEAKBOUND_NO_BROWSER") == "1":
        pytest.skip("LEAKBOUND_NO_BROWSER=1")
    text = samples.no_leak().to_html()
    assert text.count("<details>") >= 3
    opened = text.replace("<details>", "<details open>")
    sheets = [len(re.findall(rb"/Type\s*/Page\b", pdf.print_page(page))) for page in (text, opened)]
    assert sheets[0] == sheets[1] > 2
