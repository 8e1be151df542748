"""The strip of a record and its scale."""

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from leakbound.reports.charts.strips import strip, strip_axis


def ticks(path: ET.Element) -> list[float]:
    return [float(x) for x in re.findall(r"M([\d.]+)", str(path.get("d")))]


def test_members_stand_above_the_line_in_the_colour_of_the_attack():
    root = ET.fromstring(strip(np.array([-4.0, 0.0, 4.0]), np.array([False, True, True]), -4.0, 4.0))
    above, below = root.findall("path")
    assert ticks(above) == [95.0, 188.0]
    assert ticks(below) == [2.0]
    assert "--attack" in str(above.get("stroke"))
    assert "--ink" in str(below.get("stroke"))
    assert "v-9" in str(above.get("d"))
    assert "v-9" not in str(below.get("d"))
    assert root.get("aria-hidden") == "true"


def test_values_outside_the_scale_stand_at_its_ends():
    root = ET.fromstring(strip(np.array([-99.0, 99.0]), np.array([True, True]), -1.0, 1.0))
    assert ticks(root.findall("path")[0]) == [2.0, 188.0]


def test_equal_signals_and_an_empty_side_are_drawn():
    root = ET.fromstring(strip(np.array([1.5, 1.5]), np.array([True, True]), 1.5, 1.5))
    assert ticks(root.findall("path")[0]) == [2.0, 2.0]


@pytest.mark.parametrize(("low", "high"), [(-8.0, 14.0), (-3.0, 3.0), (-0.5, 0.5), (2.0, 9.0), (-20.0, 20.0)])
def test_scale_shows_probabilities_at_their_log_odds(low, high):
    root = ET.fromstring(strip_axis(low, high))
    labels = root.findall("text")
    assert labels
    places = []
    for label in labels:
        share = float(str(label.text).rstrip("%\u202f")) / 100
        odds = np.log(share / (1 - share))
        place = float(str(label.get("x")).removesuffix("%")) / 100
        assert place == pytest.approx((2 + 186 * (odds - low) / (high - low)) / 190, abs=0.0006)
        places.append(place)
    assert np.diff(sorted(places)).min(initial=np.inf) * 125 > 24  # pixels of a narrow strip


@pytest.mark.parametrize(
    ("end", "labels"), [(1.2, ["30%", "50%", "70%"]), (1.94, ["20%", "50%", "80%"]), (3.0, ["10%", "50%", "90%"])]
)
def test_a_narrow_scale_has_labels_too(end, labels):
    texts = ET.fromstring(strip_axis(-end, end)).findall("text")
    texts.sort(key=lambda text: float(str(text.get("x")).removesuffix("%")))
    assert [str(text.text).replace("\u202f", "") for text in texts] == labels
