"""Simulated audits with known truth: Gaussian scores, members shifted, each model with a shift of its own."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from leakbound.core.intervals import Interval
from leakbound.core.types import Scores


def gaussian_audits(
    runs: int, n_models: int, n_points: int, distance: float, spread: float = 0.0, seed: int = 0
) -> Iterator[Scores]:
    """Scores N(0, 1) of non-members and N(distance, 1) of members, plus N(0, spread^2) of the model."""
    rng = np.random.default_rng(seed)
    member = np.tile(np.arange(n_points) % 2 == 0, (n_models, 1))
    for _ in range(runs):
        noise = rng.normal(size=member.shape) + spread * rng.normal(size=(n_models, 1))
        yield Scores("gaussian", noise + distance * member, member)


@pytest.fixture
def audits() -> Callable[..., Iterator[Scores]]:
    return gaussian_audits


@pytest.fixture
def covered() -> Callable[..., int]:
    """How often the interval of a metric over audits has the truth inside."""

    def count(metric: Callable[[Scores], Interval], audits: Iterator[Scores], truth: float) -> int:
        intervals = [metric(scores) for scores in audits]
        assert all(interval.low <= interval.value <= interval.high for interval in intervals)
        return sum(interval.low <= truth <= interval.high for interval in intervals)

    return count
