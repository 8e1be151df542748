"""The checks of the built documentation: links, other servers, the weight of the home page; and the check by axe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from docs import accessibility, check_site

ROOT = Path(__file__).parents[1]
PAGE = '<!doctype html><html lang="en"><head><title>t</title></head><body><h1 id="top">t</h1>{}</body></html>'


def site_of(folder: Path, **bodies: str) -> Path:
    for name, body in {"index": "", **bodies}.items():
        (folder / f"{name}.html").write_text(PAGE.format(body), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("link", "error"),
    [
        ("other.html", ""),
        ("other.html#top", ""),
        ("#top", ""),
        (".", ""),
        ("https://example.org/gone", ""),
        ("mailto:nobody@example.org", ""),
        ("gone.html", "index.html: no file gone.html"),
        ("other.html#gone", "index.html: no anchor other.html#gone"),
        ("#gone", "index.html: no anchor #gone"),
        ("folder/gone.txt", "index.html: no file folder/gone.txt"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path, link, error):
    site = site_of(tmp_path, index=f'<a href="{link}">a link</a>', other="")
    assert list(check_site.broken_links(site)) == ([error] if error else [])


@pytest.mark.parametrize(
    "body",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        '<img alt="a" src="//example.org/a.png">',
        '<link rel="stylesheet" href="http://example.org/a.css">',
        "<p style=\"background: url('https://example.org/a.png')\">a</p>",
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(tmp_path, body):
    (found,) = check_site.from_elsewhere(site_of(tmp_path, index=body))
    assert found.startswith("index.html: loads ")
    assert "example.org/a." in found


def test_styles_may_not_load_from_elsewhere_and_links_may_lead_there(tmp_path):
    site = site_of(
        tmp_path, index='<a href="https://example.org/">elsewhere</a><link rel="canonical" href="https://a.b/">'
    )
    assert list(check_site.wrong(site)) == []
    (site / "a.css").write_text("p { background: url(https://example.org/a.png) }", encoding="utf-8")
    assert list(check_site.wrong(site)) == ["a.css: loads https://example.org/a.png"]


def test_the_home_page_is_weighed_with_its_pictures_styles_and_fonts(tmp_path):
    body = '<link rel="stylesheet" href="a.css?v=1"><img alt="a" src="a.png"><i class="icons-solid"></i>'
    site = site_of(tmp_path, index=body)
    (site / "a.css").write_text("p { src: url(icons-solid-900.woff2) } q { src: url(icons-brands-400.woff2) }")
    sizes = {"a.png": 300_000, "icons-solid-900.woff2": 150_000, "icons-brands-400.woff2": 90_000}
    for name, size in sizes.items():
        (site / name).write_bytes(bytes(size))
    weights = check_site.home_bytes(site)
    assert set(weights) == {"index.html", "a.css", "a.png", "icons-solid-900.woff2"}  # no icon of the brands is drawn
    assert weights["a.png"] == 300_000  # pictures are not compressed again
    assert list(check_site.wrong(site)) == []
    (site / "a.png").write_bytes(bytes(350_000))
    (heavy,) = check_site.wrong(site)
    assert heavy.startswith("index.html: 500,")


def test_the_exit_code_says_whether_something_is_wrong(tmp_path, capsys):
    assert check_site.main([str(site_of(tmp_path))]) == 0
    site_of(tmp_path, index='<a href="gone.html">a link</a>')
    check_site.read.cache_clear()
    assert check_site.main([str(tmp_path)]) == 1
    assert "index.html: no file gone.html" in capsys.readouterr().out


def test_a_page_is_checked_without_its_policy_and_with_its_own_links(tmp_path):
    page = tmp_path / "page.html"
    policy = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
    page.write_text(PAGE.format("").replace("<head>", f"<head>{policy}"), encoding="utf-8")
    text = accessibility.with_axe(page, "/* axe */")
    assert "Content-Security-Policy" not in text
    assert f'<base href="{page.resolve().as_uri()}">' in text
    assert "<script>/* axe */</script>" in text


# what the script asks of axe: it finds pictures without a text, as the real one does
AXE = """window.axe = {run: () => Promise.resolve({violations:
  [...document.querySelectorAll("img:not([alt])")].map(() =>
    ({id: "image-alt", impact: "critical", help: "a text",
      nodes: [{target: ["img"], failureSummary: "Fix:\\n none"}]}))})};"""


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(os.environ.get("LEAKBOUND_NO_BROWSER") == "1", reason="LEAKBOUND_NO_BROWSER=1")
def test_what_is_broken_is_found_on_every_screen_also_where_it_is_folded(tmp_path, capsys):
    (tmp_path / "axe.js").write_text(AXE, encoding="utf-8")
    good, bad = tmp_path / "good.html", tmp_path / "bad.html"
    good.write_text(PAGE.format('<img alt="a" src="data:,">'), encoding="utf-8")
    bad.write_text(PAGE.format("<details><summary>a</summary><img src='data:,'></details>"), encoding="utf-8")
    assert accessibility.main([str(tmp_path / "axe.js"), str(good)]) == 0
    assert accessibility.main([str(tmp_path / "axe.js"), str(bad)]) == 1
    said = capsys.readouterr().out
    assert "1 pages, 4 rules broken, in 4 places" in said
    for scheme in accessibility.SCHEMES:
        for width in accessibility.WIDTHS:
            assert f"bad.html ({scheme}, {width}): image-alt (critical)" in said


@pytest.mark.nightly
def test_the_site_has_no_broken_link_asks_no_other_server_and_its_home_page_is_light(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "docs", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert list(check_site.wrong(tmp_path)) == []
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert '<summary><span class="toctree-toggle"' not in text  # a fold without a name
        assert "<th></th>" not in text
