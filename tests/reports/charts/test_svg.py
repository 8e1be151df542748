"""A figure as inline SVG: well formed, in the page's colours and type, and closed against what users write."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from leakbound.reports.charts import roc as plots
from leakbound.reports.charts import svg
from leakbound.reports.charts.canvas import ATTACK, CLAIM, PALETTE, Size, clear, figure_of, write
from tests.reports import samples


def drawn(prefix: str = "roc", label: str = "label") -> str:
    axes = plots.roc(samples.two_models(), ax=plots.ROC.axes())
    return svg.labelled(figure_of(axes), prefix, label)


@pytest.fixture(scope="module")
def chart() -> str:
    return drawn()


def test_names_itself_and_has_a_view_box_instead_of_a_size(chart):
    root = ET.fromstring(chart)
    assert root.tag == "svg"
    assert str(root.get("viewBox")).startswith("0 0 440 ")
    assert root.get("role") == "img"
    assert "width" not in root.attrib
    assert "height" not in root.attrib
    assert root.get("aria-label") == "label"


def test_every_reference_resolves_within_the_chart_and_every_id_has_the_prefix(chart):
    ids = re.findall(r' id="([^"]+)"', chart)
    assert len(ids) == len(set(ids)) > 2
    assert all(name.startswith("roc-") for name in ids)
    used = re.findall(r"url\(#([^)]+)\)", chart) + re.findall(r'href="#([^"]+)"', chart)
    assert used
    assert set(used) <= set(ids)


def test_two_charts_on_a_page_share_no_id(chart):
    other = drawn(prefix="gain")
    assert not set(re.findall(r' id="([^"]+)"', chart)) & set(re.findall(r' id="([^"]+)"', other))


def test_colours_are_variables_with_the_light_palette_behind_them(chart):
    assert f"var(--attack,{ATTACK})" in chart
    assert f"var(--claim,{CLAIM})" in chart
    outside = re.sub(r"var\(--\w+,#[0-9a-f]{6}\)", "", chart)
    assert not re.search(r"#[0-9a-f]{6}\b", outside)
    assert not re.search(r"\b(black|white)\b", outside)
    assert set(re.findall(r"var\(--(\w+)", chart)) <= set(PALETTE)


def test_text_is_text_in_the_family_of_the_page(chart):
    texts = [element.text for element in ET.fromstring(chart).iter("text")]
    assert any(text and text.endswith(": LiRA") for text in texts)
    assert "members found (TPR)" in texts
    assert "font-family" not in chart
    assert "DejaVu" not in chart


def test_carries_no_style_sheet_metadata_date_or_foreign_namespace(chart):
    tags = {element.tag for element in ET.fromstring(chart).iter()}
    assert not tags & {"style", "metadata", "script"}
    assert "xlink" not in chart


def test_lengths_have_two_decimals(chart):
    for path in re.findall(r' d="([^"]+)"', chart):
        assert not re.search(r"\.\d\d\d", path)


def test_same_figure_same_bytes(chart):
    assert drawn() == chart


def test_what_users_write_stays_text():
    class Tags(HTMLParser):
        seen: tuple[str, ...] = ()

        def handle_starttag(self, tag, attrs):
            self.seen += (tag,)

    axes = Size(100, 50, 0, 0, 0, 0).axes()
    clear(axes)
    hostile = "</title></text></svg><script>alert(1)</script>&$x_1$ 名"
    write(axes, (0, 0), hostile)
    chart = svg.labelled(figure_of(axes), "x", hostile)
    parser = Tags()
    parser.feed(chart)
    assert "script" not in parser.seen
    root = ET.fromstring(chart)
    assert [element.text for element in root.iter() if element.text] == [hostile]
    assert root.get("aria-label") == hostile


@pytest.mark.parametrize(
    "text",
    ["#0b5cad", "fill: #0b5cad", "0.123456", ' id="a"', "url(#a)", "font: 700 13px 'DejaVu Sans'", "<!-- a -->"],
)
def test_what_users_write_is_not_taken_for_a_part_of_the_drawing(text):
    axes = Size(100, 50, 0, 0, 0, 0).axes()
    clear(axes)
    write(axes, (0, 0), text)
    assert [element.text for element in ET.fromstring(svg.labelled(figure_of(axes), "x", "y")).iter("text")] == [text]
