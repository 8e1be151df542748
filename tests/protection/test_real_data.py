"""Real data: what the census costs to protect, against other methods, and what the best attack finds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.other_methods import compared

import leakbound as ls
from leakbound.data import from_arrays
from leakbound.protection import CalibratedNoise
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.statistic import named
from leakbound.runtime.observe import Execution

ETA = 0.05
COLUMNS = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
PAC = "pac_shape_of_sigma"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def adult(real_data) -> pd.DataFrame:
    return pd.read_parquet(real_data / "adult.parquet")[COLUMNS]


def noise_of(found: CalibratedNoise) -> float:
    """Root mean square of our noise."""
    (size,) = [each.value for each in found.certificate.findings if each.quantity == "noise_rms"]
    assert size is not None
    return size


def noise_of_pac(statistic: str, x: Any, y: Any = None, fits: int = 2000) -> dict[str, float]:
    """Root mean square of the noise that PAC privacy needs."""
    mechanism = Mechanism.of(named(statistic), from_arrays(x, y), execution=Execution(n_jobs=1))
    noise = compared(mechanism, ETA, fits // 2, 0)
    return {name: float(np.sqrt(np.square(noise[name]).mean())) for name in (PAC, "pac_least_noise")}


def lower_limit(found: CalibratedNoise) -> float:
    """What the best attack reaches at least, at 95 %."""
    return max(
        each.low
        for each in found.certificate.findings
        if each.quantity == "accuracy" and each.attack and each.release != "without_noise" and each.low is not None
    )


def check(found: CalibratedNoise, confidence: float, pac: float, below_pac: float) -> None:
    """A certificate of eta, noise so many times below that of PAC privacy, and no attack beyond the promise."""
    certificate = found.certificate.about.certificate
    assert (certificate.coupling, certificate.confidence) == ("swap", confidence)
    promised = [each for each in found.certificate.findings if each.quantity == "eta" and each.status == "certified"]
    assert [each.value <= ETA for each in promised] == [True]
    assert all(math.isfinite(each) and each > 0 for each in certificate.noise.rms)
    assert noise_of(found) * below_pac < pac
    assert lower_limit(found) < 0.5 + ETA


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("step", "below_pac", "below_least"),
    [pytest.param(50, 9, 4, id="977"), pytest.param(1, 30, 10, id="48842", marks=pytest.mark.nightly)],
)
def test_means(adult, step, below_pac, below_least):
    """Measured with all records: 53 times below, and 23 times below PAC privacy with the least noise.

    The advantage grows with the number of records: with every fiftieth of them it is 13 and 6 times.
    """
    found = ls.calibrate("mean", adult[::step], eta=ETA, promise=ls.Drawn(games=400), n_jobs=1)
    pac = noise_of_pac("mean", adult[::step])
    check(found, confidence=1.0, pac=pac[PAC], below_pac=below_pac)
    assert noise_of(found) * below_least < pac["pac_least_noise"]


@pytest.mark.nightly
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("step", "fits", "below_pac"),
    [pytest.param(8, 200, 1.7, id="6106"), pytest.param(1, 600, 10, id="48842")],
)
def test_covariance(adult, step, fits, below_pac):
    """Measured: 12 times below with all records and 600 fits, 2.4 times with every eighth record and 200 fits.

    The promise holds for the noise that was found but with probability 5 %; the seeds are fixed. The columns differ
    by 10^10 in their variances: each entry has a grid of its own.
    """
    found = ls.calibrate("covariance", adult[::step], eta=ETA, promise=ls.Drawn(fits=fits, games=200), n_jobs=1)
    pac = noise_of_pac("covariance", adult[::step], fits=fits)
    check(found, confidence=0.95, pac=pac[PAC], below_pac=below_pac)


@pytest.mark.nightly
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("step", "fits", "below_pac"),
    [pytest.param(8, 200, 2.4, id="6106"), pytest.param(1, 600, 6, id="48842")],
)
def test_least_squares(adult, step, fits, below_pac):
    """Measured: 8.4 times below with all records and 600 fits, 3.4 times with every eighth record and 200 fits.

    With 2,000 fits it is 12 times; the weight counts 10^-6 of the intercept.
    """
    some = adult[::step]
    x, y = some.drop(columns="hours-per-week"), some["hours-per-week"].to_numpy(float)
    found = ls.calibrate("ols", x, y, eta=ETA, promise=ls.Drawn(fits=fits, games=200), n_jobs=1)
    pac = noise_of_pac("ols", x, y, fits=fits)
    check(found, confidence=0.95, pac=pac[PAC], below_pac=below_pac)
