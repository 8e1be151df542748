"""The largest exact game: all 9,075,135,300 halves of 36 records."""

from __future__ import annotations

import numpy as np
import pytest

from leakbound.bounds import pmp_exponential
from leakbound.bounds.exponential import geometric_median_loss, geometric_median_sensitivity


@pytest.mark.nightly
def test_36_records_exactly_and_sampled() -> None:
    """Two ways that share no code: the interval at 99.9 % holds the exact value."""
    rng = np.random.default_rng(0)
    outputs = rng.normal(size=(32, 5))
    outputs /= np.linalg.norm(outputs, axis=1, keepdims=True)
    records = outputs[0] + rng.normal(size=(36, 5))
    records[:2] *= 3
    loss, sensitivity = geometric_median_loss(outputs, records), geometric_median_sensitivity(20.0, 18)
    exact = pmp_exponential(loss, 5.0, sensitivity)
    sampled = pmp_exponential(loss, 5.0, sensitivity, "sampled", confidence=0.999)
    assert 0 < sampled.low <= exact <= sampled.high
