"""The published scale, and how much smaller a scale proves the same."""

from __future__ import annotations

import numpy as np
import pytest

from leakbound.noise import LaplaceNoise, calibrate, eta_bound, izzo, moment

PRINTED = {(2, 0.05): 15178.24, (2, 0.1): 3794.56, (2, 0.25): 607.1296}
PRINTED |= {(6, 0.05): 613.028893, (6, 0.1): 243.280677, (6, 0.25): 71.700294}


@pytest.mark.parametrize(("order", "eta"), PRINTED)
def test_scale_over_sigma(order: int, eta: float) -> None:
    assert izzo(1.0, eta, order).scale == pytest.approx(PRINTED[order, eta], rel=1e-8)


def test_the_norm_of_corollary_8() -> None:
    noise = izzo([1.0, 2.0, 4.0], 0.1, moment=4)
    z = np.array([0.5, -3.0, 7.0])
    expected = (((z / [1.0, 2.0, 4.0]) ** 4).mean()) ** 0.25
    assert float(noise.norm(z)) == pytest.approx(expected)


@pytest.mark.parametrize(("order", "times"), [(6, 54), (2, 847)])
def test_the_theorem_holds_with_room(order: int, times: int) -> None:
    """(6.16/eta)^(1 + 2/M) against sigma/(2 eta) or better, at eta = .1 in one dimension (Laplace noise)."""
    printed = LaplaceNoise(izzo(1.0, 0.1, order).scale)
    least = calibrate(moment(1.0, 1), 0.1, LaplaceNoise)
    assert eta_bound(moment(1.0, 1), printed) < 0.1 / 10
    assert isinstance(least, LaplaceNoise)
    assert printed.scale / least.scale == pytest.approx(times, rel=0.01)


@pytest.mark.filterwarnings("ignore:laplace-literal")
def test_the_literal_radius_is_kept_for_reproduction() -> None:
    assert izzo([1.0, 1.0], 0.1, radius="laplace-literal").radius == "laplace-literal"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ({"sigma": 0.0, "eta": 0.1}, "sigma must be > 0, got 0"),
        ({"sigma": [1.0, np.nan], "eta": 0.1}, "sigma must be finite, got nan"),
        ({"sigma": [[1.0]], "eta": 0.1}, "sigma must have shape (d,), got (1, 1)"),
        ({"sigma": 1.0, "eta": 0.5}, "eta must be > 0 and < 0.5, got 0.5"),
        ({"sigma": 1.0, "eta": 0.0}, "eta must be > 0 and < 0.5, got 0"),
        ({"sigma": 1.0, "eta": 0.1, "moment": 0.5}, "moment must be >= 1, got 0.5"),
    ],
)
def test_bad_values(words: dict, line: str) -> None:
    with pytest.raises(ValueError) as caught:
        izzo(**words)
    assert str(caught.value) == line
