"""What is the same whoever is left out is refused, also where rounding makes its last digits differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakbound.plans.promises import File
from tests.promising import calibrate, protect

pytestmark = pytest.mark.usefixtures("as_users_run_it")
SAME = "^the same whoever is left out, so that it would be released exactly, outside of the promise: "
FILE: dict[str, Any] = {"promise": File(games=0), "eta": 0.1}


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("value", [0.0, 0.1])
def test_a_group_of_equal_values(seed, value) -> None:
    """Two of 16 seeds were released as 1e-14 +- 4e-15, because the mean of all was subtracted."""
    wages = np.random.default_rng(seed).lognormal(3, 0.5, 100)
    frame = pd.DataFrame({"sector": np.repeat(["a", "b"], 100), "wage": np.r_[np.full(100, value), wages]})
    with pytest.raises(ValueError, match=f"{SAME}mean of wage in a;"):
        calibrate("mean", frame, by="sector", levels={"sector": ["a", "b"]}, **FILE)


@pytest.mark.parametrize("statistic", ["ols", "ridge", "poisson", "huber", "standard_errors", "correlation", "ratio"])
def test_an_exact_fit(statistic) -> None:
    """Residuals of 1e-17 are no reason for noise of 1e-17."""
    x = 3 + np.random.default_rng(0).normal(size=(50, 1))
    y = 0.1 * x[:, 0] if statistic in ("standard_errors", "correlation", "ratio") else np.full(50, 0.1)
    records = (np.c_[x, y], None) if statistic in ("correlation", "ratio") else (x, y)
    settings = {"set": {"threshold": 1.0}} if statistic == "huber" else {}
    with pytest.raises(ValueError, match=SAME):
        calibrate(statistic, *records, **settings, **FILE)


def test_the_one_left_out_is_not_told_by_the_last_digits(tmp_path) -> None:
    """Where it is released exactly on demand, it is the same number for every ledger."""
    x = 3 + np.random.default_rng(0).normal(size=(50, 1))
    released = set()
    for seed in range(8):
        made = protect(
            "correlation",
            np.c_[x, 0.1 * x],
            allow_exact=True,
            ledger=str(tmp_path / f"{seed}"),
            insecure_seed=seed,
            **FILE,
        )
        released.add(made.value[0])
    assert len(released) == 1


def test_what_differs_is_released_all_the_same() -> None:
    """A slope that is small beside its column, a mean near 0 and a group of whole numbers."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 1))
    x -= x.mean()
    assert calibrate("mean", x, **FILE).noise is not None
    assert calibrate("ols", 1e9 * x, 1e-9 * rng.normal(size=400), **FILE).noise is not None
    frame = pd.DataFrame({"sector": np.repeat(["a", "b"], 200), "wage": 1e4 + rng.integers(0, 2, 400)})
    assert calibrate("mean", frame, by="sector", levels={"sector": ["a", "b"]}, **FILE).noise is not None
