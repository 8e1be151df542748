"""Places for labels: the field of distances, and labels that touch nothing."""

import matplotlib as mpl
import numpy as np
import pytest

from leakbound.reports.charts.labels import Box, Field, around, beside, densify, shared, text_width

PANEL = (200.0, 150.0)
NOTHING = Field.of(np.empty((0, 2)), PANEL)


def curve(slope: float, start: float) -> np.ndarray:
    return densify(np.array([[0.0, start], [200.0, start + 200 * slope]]))


def naive_distance(points: np.ndarray, others: np.ndarray) -> float:
    return min(float(np.hypot(*(point - other))) for point in points for other in others)


def helvetica() -> dict[str, float]:
    """Widths in ems from the metrics of Helvetica that matplotlib carries."""
    path = mpl.get_data_path() + "/fonts/afm/phvr8a.afm"
    with open(path, encoding="latin-1") as file:
        rows = [line.split(";") for line in file if line.startswith("C ")]
    return {chr(int(code.split()[1])): float(wide.split()[1]) / 1000 for code, wide, *_ in rows if "-1" not in code}


def test_field_is_the_distance_to_the_nearest_point():
    rng = np.random.default_rng(0)
    points, places = rng.uniform(0, 150, (40, 2)), rng.uniform(0, 150, (60, 2))
    found = Field.of(points, PANEL).at(places)
    exact = np.array([naive_distance(place[None], points) for place in places])
    assert np.abs(found - exact).max() <= 2 * np.sqrt(2)  # both ends are rounded to cells of two pixels
    assert NOTHING.at(places).min() == np.inf


def test_the_field_of_all_points_is_the_nearest_of_the_fields_of_each():
    points = np.random.default_rng(1).uniform(0, 150, (30, 2))
    together = Field.of(points, PANEL)
    parts = NOTHING.nearer(*(Field.of(points[start : start + 10], PANEL) for start in (0, 10, 20)))
    assert np.array_equal(parts.values, together.values)


def test_width_is_near_that_of_helvetica():
    metrics = helvetica()
    for text in (
        "loss threshold",
        "LiRA",
        "under 10 false alarms",
        "guessing",
        "RMIA",
        "most exposed record",
    ):
        exact = 12.5 * sum(metrics[letter] for letter in text)
        assert text_width(text, 12.5) == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("slope", [0.0, 0.1, 0.7, -0.7])
def test_label_follows_its_curve_without_touching_it(slope):
    path = curve(slope, 75 - 100 * slope)
    box = beside(path, (40.0, 10.0), PANEL, Field.of(path, PANEL), NOTHING, NOTHING)
    assert box is not None
    degrees = np.degrees(np.arctan(slope))
    assert box.angle == pytest.approx(degrees if abs(degrees) > 10 else 0.0)
    assert 2 <= naive_distance(box.points(), path) <= 8


def test_label_stands_level_beside_a_very_steep_curve():
    path = densify(np.array([[100.0, 0.0], [101.0, 150.0]]))
    box = beside(path, (40.0, 10.0), PANEL, Field.of(path, PANEL), NOTHING, NOTHING)
    assert box is not None
    assert box.angle == 0
    assert naive_distance(box.points(), path) >= 2


def test_label_avoids_neighbours_and_texts():
    path, neighbour, text = curve(0.3, 40), curve(0.3, 55), Box(60, 40, 60, 40)
    others, texts = Field.of(neighbour, PANEL), Field.of(text.points(), PANEL)
    box = beside(path, (40.0, 10.0), PANEL, Field.of(path, PANEL), others, texts)
    assert box is not None
    assert naive_distance(box.points(), neighbour) >= 2
    assert naive_distance(box.points(), text.points()) >= 2


def test_no_place_between_curves_that_are_too_near():
    lines = [curve(0.0, float(height)) for height in range(5, 150, 12)]
    others = Field.of(np.concatenate([line for line in lines if line is not lines[6]]), PANEL)
    assert beside(lines[6], (40.0, 10.0), PANEL, Field.of(lines[6], PANEL), others, NOTHING) is None


def test_no_label_where_a_curve_runs_within_another():
    path = curve(0.0, 75.0)
    others = Field.of(path + np.array([0.0, 2.0]), PANEL)
    assert beside(path, (40.0, 10.0), PANEL, Field.of(path, PANEL), others, NOTHING) is None


def test_value_goes_to_the_free_side_of_its_dot():
    above = Field.of(curve(0.0, 85.0), PANEL)
    box = around((100.0, 75.0), (24.0, 10.0), PANEL, above, NOTHING)
    assert box is not None
    assert box.y < 75
    everywhere = Field.of(Box(100, 75, 200, 150).points(), PANEL)
    assert around((100.0, 75.0), (24.0, 10.0), PANEL, NOTHING, everywhere) is None


def test_curves_share_a_label_where_most_of_them_coincide():
    one = curve(0.5, 10)
    mostly = one + np.column_stack([np.zeros(len(one)), np.where(np.arange(len(one)) < len(one) / 6, 20.0, 0.0)])
    partly = one + np.column_stack([np.zeros(len(one)), np.where(np.arange(len(one)) < len(one) / 2, 20.0, 0.0)])
    assert shared([one, curve(0.5, 14), mostly, partly]) == [[0, 2], [1], [3]]
    assert shared([one[:20], one[40:]]) == [[0], [1]]


def test_text_begins_at_the_left_end_of_its_box():
    flat, turned = Box(50, 50, 40, 10), Box(50, 50, 40, 10, angle=90.0)
    assert flat.start == pytest.approx((30, 45.5))
    assert turned.start == pytest.approx((54.5, 30))
