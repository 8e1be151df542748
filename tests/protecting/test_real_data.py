"""Real data: what the census costs to protect, against other methods, and what the best attack finds."""

from __future__ import annotations

import math

import pandas as pd
import pytest

import leakscope as ls
from leakscope.protecting import CalibratedNoise

ETA = 0.05
COLUMNS = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
PAC = "PAC privacy, shape of Sigma"


@pytest.fixture(scope="module")
def adult(real_data) -> pd.DataFrame:
    return pd.read_parquet(real_data / "adult.parquet")[COLUMNS]


def noise_of(found: CalibratedNoise) -> dict[str, float]:
    """Root mean square of the noise of each method; ours by the name ""."""
    known = [each for each in found.certificate.findings if each.quantity == "noise_rms"]
    return {each.release: each.value for each in known if each.value is not None}


def lower_limit(found: CalibratedNoise) -> float:
    """What the best attack reaches at least, at 95 %."""
    return max(
        each.low
        for each in found.certificate.findings
        if each.quantity == "success" and each.attack and each.release != "without noise" and each.low is not None
    )


def check(found: CalibratedNoise, confidence: float, below_pac: float) -> None:
    """A certificate of eta, noise so many times below that of PAC privacy, and no attack beyond the promise."""
    certificate, noise = found.certificate.about["certificate"], noise_of(found)
    assert (certificate["coupling"], certificate["confidence"]) == ("swap", confidence)
    promised = [each for each in found.certificate.findings if each.quantity == "eta" and each.status == "certified"]
    assert [each.value <= ETA for each in promised] == [True]
    assert all(math.isfinite(each) and each > 0 for each in certificate["noise"]["rms"])
    assert noise[""] * below_pac < noise[PAC]
    assert lower_limit(found) < 0.5 + ETA


def test_means(adult):
    """Measured: 53 times below; 23 times below the variant of PAC privacy with the least noise."""
    found = ls.calibrate("mean", adult, eta=ETA, games=400, compare=True)
    check(found, confidence=1.0, below_pac=30)
    assert noise_of(found)[""] * 10 < noise_of(found)["PAC privacy, least noise"]


@pytest.mark.statistics
def test_covariance(adult):
    """Measured: 13 times below with 600 fits.

    The promise holds for the noise that was found but with probability 5 %; the seeds are fixed. The columns differ
    by 10^10 in their variances: each entry has a grid of its own.
    """
    found = ls.calibrate("covariance", adult, eta=ETA, fits=600, games=200, compare=True, jobs=1)
    check(found, confidence=0.95, below_pac=10)


@pytest.mark.statistics
def test_least_squares(adult):
    """Measured: 8.4 times below with 600 fits, 12 with 2,000; the weight counts 10^-6 of the intercept."""
    x, y = adult.drop(columns="hours-per-week"), adult["hours-per-week"].to_numpy(float)
    found = ls.calibrate("ols", x, y, eta=ETA, fits=600, games=200, compare=True, jobs=1)
    check(found, confidence=0.95, below_pac=6)
