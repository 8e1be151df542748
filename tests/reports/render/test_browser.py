"""The page in a browser: no error, no sideways scrolling on a phone, and a print."""

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from docs.picture import screen
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.reports.comparison import compare
from tests.marks import nightly, nightly_but
from tests.reports import made_bounds, made_designs, made_protected, samples
from tests.reports.abouts import changed
from tests.reports.test_every_page import reproduced

pytestmark = [pytest.mark.browser, pytest.mark.slow]
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--allow-file-access-from-files",
    "--enable-logging=stderr",
    "--virtual-time-budget=4000",
)
# the function is there before the first frame is loaded
PROBE = """<!doctype html><meta charset="utf-8"><title>probe</title><script>
function look(frame) {{
  var page = frame.contentDocument, root = page.documentElement;
  var handle = page.querySelector(".sort");
  if (handle) handle.click();
  frame.nextElementSibling.textContent = JSON.stringify([root.scrollWidth, root.clientWidth,
    page.scripts.length, page.querySelectorAll("th[aria-sort]").length]);
}}
</script>{frames}"""
FRAME = (
    '<iframe src="page.html" onload="look(this)" style="border:0;width:{width}px;height:800px"></iframe>'
    '<pre class="seen"></pre>'
)
WIDTHS = (1280, 400)


@pytest.fixture(scope="module")
def chromium():
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None and os.environ.get("LEAKBOUND_NO_BROWSER") == "1":
        pytest.skip("LEAKBOUND_NO_BROWSER=1")
    assert found is not None, "no Chromium found; LEAKBOUND_NO_BROWSER=1 leaves these tests out"
    return found


def run(chromium: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [chromium, *QUIET, profile, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def console(finished: subprocess.CompletedProcess[str]) -> list[str]:
    """What the page itself wrote: errors, warnings, refusals of its policy."""
    return [line for line in finished.stderr.splitlines() if "CONSOLE" in line]


RENDERED = (
    samples.two_models,
    samples.judged,
    samples.no_leak,
    samples.tiny,
    made_bounds.leakage,
    made_bounds.odd_cells,
    made_protected.means,
    made_protected.calibrated,
    made_protected.average,
    made_designs.exact,
)


@pytest.fixture(scope="module")
def seen(chromium, tmp_path_factory):
    """What the probe sees of each sample at each width, and what the pages wrote: all in one browser."""
    folder = tmp_path_factory.mktemp("pages")
    frames = ""
    for sample in RENDERED:
        name = f"{sample.__name__}.html"
        sample().to_html(folder / name)
        frames += "".join(FRAME.format(width=width).replace("page.html", name) for width in WIDTHS)
    (folder / "probe.html").write_text(PROBE.format(frames=frames), encoding="utf-8")
    finished = run(chromium, folder, "--window-size=1400,1000", "--dump-dom", f"file://{folder}/probe.html")
    found = re.findall(r'<pre class="seen">\[(\d+),(\d+),(\d+),(\d+)\]', finished.stdout)
    assert len(found) == len(RENDERED) * len(WIDTHS), finished.stdout[-500:]
    numbers = [tuple(map(int, each)) for each in found]
    of_samples = {sample: numbers[len(WIDTHS) * n :][: len(WIDTHS)] for n, sample in enumerate(RENDERED)}
    return of_samples, console(finished)


def test_renders_without_errors(seen):
    _, written = seen
    assert written == []


@pytest.mark.parametrize("sample", RENDERED)
def test_renders_without_sideways_scrolling(seen, sample):
    of_samples, _ = seen
    for width, (scroll, client, scripts, sorted_columns) in zip(WIDTHS, of_samples[sample], strict=True):
        assert client == width
        assert scroll <= client
        assert scripts == 1  # nothing that a user wrote became a script
        documents = (made_bounds.__name__, made_protected.__name__, made_designs.__name__)
        # tables of at most ten rows have nothing to sort
        if sample.__module__ not in documents and sample is not samples.tiny:
            assert sorted_columns == 1  # the script ran: the policy admits it


@pytest.mark.parametrize(
    "pair", [(samples.two_models, samples.no_leak), (made_bounds.dp, made_protected.means)], ids=["audits", "ceilings"]
)
def test_a_comparison_fits_a_phone(chromium, tmp_path, pair):
    compare(*(sample() for sample in pair)).to_html(tmp_path / "page.html")
    frames = "".join(FRAME.format(width=width) for width in WIDTHS)
    (tmp_path / "probe.html").write_text(PROBE.format(frames=frames), encoding="utf-8")
    finished = run(chromium, tmp_path, "--window-size=1400,1000", "--dump-dom", f"file://{tmp_path}/probe.html")
    assert console(finished) == []
    seen = re.findall(r'<pre class="seen">\[(\d+),(\d+),(\d+),(\d+)\]', finished.stdout)
    assert [int(client) for _, client, *_ in seen] == list(WIDTHS)
    assert all(int(scroll) <= int(client) and int(scripts) == 1 for scroll, client, scripts, _ in seen)


def test_the_table_of_models_fits_between_a_phone_and_a_desk(chromium, tmp_path):
    """With the worst group and the word of a policy it has nine columns; below 821 pixels it is a list."""
    x, y = load_wine(return_X_y=True)
    models = {name: DecisionTreeClassifier(max_depth=3) for name in ("logistic regression", "tree", "min_leaf=" * 4)}
    report = ls.audit(models, x, y, n_models=8, attacks="loss", policy="research", n_jobs=1)
    widths = (900, 821, 400)
    report.to_html(tmp_path / "page.html")
    assert "Worst group" in (tmp_path / "page.html").read_text(encoding="utf-8")
    frames = "".join(FRAME.format(width=width) for width in widths)
    (tmp_path / "probe.html").write_text(PROBE.format(frames=frames), encoding="utf-8")
    finished = run(chromium, tmp_path, "--window-size=1400,1000", "--dump-dom", f"file://{tmp_path}/probe.html")
    seen = re.findall(r'<pre class="seen">\[(\d+),(\d+),(\d+),(\d+)\]', finished.stdout)
    assert [(int(scroll), int(client)) for scroll, client, *_ in seen] == [(width, width) for width in widths]


@pytest.mark.parametrize("names", [["paper/figure"], ["paper/figure", "paper/table"]], ids=["one", "several"])
def test_the_page_of_papers_fits_a_phone(chromium, tmp_path, names):
    """A figure that is wider than a phone scrolls in itself."""
    (tmp_path / "page.html").write_text(reproduced(*names), encoding="utf-8")
    frames = "".join(FRAME.format(width=width) for width in WIDTHS)
    (tmp_path / "probe.html").write_text(PROBE.format(frames=frames), encoding="utf-8")
    finished = run(chromium, tmp_path, "--window-size=1400,1000", "--dump-dom", f"file://{tmp_path}/probe.html")
    assert console(finished) == []
    seen = re.findall(r'<pre class="seen">\[(\d+),(\d+),(\d+),(\d+)\]', finished.stdout)
    assert [int(client) for _, client, *_ in seen] == list(WIDTHS)
    assert all(int(scroll) <= int(client) for scroll, client, *_ in seen)


OVERPRINTED = """<!doctype html><meta charset="utf-8"><title>probe</title><script>
function look(frame) {{
  var page = frame.contentDocument;
  for (const closed of page.querySelectorAll("details")) closed.open = true;
  var wide = [...page.querySelectorAll("td, th")].filter(cell => cell.scrollWidth > cell.clientWidth + 1);
  frame.nextElementSibling.textContent = JSON.stringify(wide.map(cell => cell.textContent));
}}
</script>{frames}"""


@pytest.mark.parametrize("width", nightly_but([1280, 840, 400], 400))
def test_no_cell_of_a_policy_prints_over_the_next(chromium, tmp_path, width):
    report = samples.judged()
    tpr = {"check": "tpr", "fpr": 0.01, "limit": 0.05, "value": 0.014, "low": 0.01, "high": 0.151}
    names = ("loss", "likelihood_ratio(rate=0.1)", "my_attack_with_a_name_that_nobody_would_want_to_read")
    for outcome in ("open", "kept"):
        checks = [{**tpr, "attack": name, "outcome": outcome} for name in names]
        decision = {"release": "forest", "verdict": "ask", "checks": checks}
        about = changed(report.about, decisions=[decision])
        replace(report, about=about).to_html(tmp_path / "page.html")
        probe = OVERPRINTED.format(frames=FRAME.format(width=width))
        (tmp_path / "probe.html").write_text(probe, encoding="utf-8")
        finished = run(chromium, tmp_path, "--window-size=1400,1000", "--dump-dom", f"file://{tmp_path}/probe.html")
        assert re.findall(r'<pre class="seen">(.*?)</pre>', finished.stdout, re.DOTALL) == ["[]"]


PRINTED = [samples.two_models, made_bounds.leakage, made_protected.means, made_designs.exact]


@pytest.mark.parametrize("sample", nightly_but(PRINTED, samples.two_models, made_designs.exact))
def test_prints(chromium, tmp_path, sample):
    sample().to_html(tmp_path / "page.html")
    pdf = tmp_path / "page.pdf"
    options = (f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
    finished = run(chromium, tmp_path, *options, f"file://{tmp_path}/page.html")
    assert console(finished) == []
    content = pdf.read_bytes()
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 1


@pytest.mark.parametrize(("scheme", "is_light"), [("light", True), nightly("dark", False)])
def test_the_pictures_of_the_docs_are_of_a_light_and_a_dark_screen(chromium, tmp_path, scheme, is_light):
    samples.judged().to_html(tmp_path / "page.html")
    image = screen(tmp_path / "page.html", 400, 300, scheme)
    assert image.size == (400, 300)
    corner = image.getpixel((1, 1))
    assert (min(corner) > 240) if is_light else (max(corner) < 50)


STATUSES = OVERPRINTED.replace(
    '[...page.querySelectorAll("td, th")].filter(cell => cell.scrollWidth > cell.clientWidth + 1)',
    '[...page.querySelectorAll("td[data-label=Status]")].filter(cell => cell.clientWidth < 70)',
)


@pytest.mark.parametrize("sample", [samples.two_models, made_bounds.leakage], ids=["audit", "bound"])
def test_the_words_of_a_status_stay_whole_on_the_narrowest_table(chromium, tmp_path, sample):
    """The column that has no width of its own gets what the others leave; "measured" takes 62 pixels."""
    sample().to_html(tmp_path / "page.html")
    assert 'data-label="Status"' in (tmp_path / "page.html").read_text(encoding="utf-8")
    (tmp_path / "probe.html").write_text(STATUSES.format(frames=FRAME.format(width=821)), encoding="utf-8")
    finished = run(chromium, tmp_path, "--window-size=1400,1000", "--dump-dom", f"file://{tmp_path}/probe.html")
    assert re.findall(r'<pre class="seen">(.*?)</pre>', finished.stdout, re.DOTALL) == ["[]"]
