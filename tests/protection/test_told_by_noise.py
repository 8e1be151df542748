"""What the printed noise of leave one out tells of the largest contributor, and the rules that are applied to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from leakbound.plans.promises import File
from tests.promising import calibrate, protect

pytestmark = pytest.mark.usefixtures("as_users_run_it")
REGIONS = ["a", "b", "c"]
MEANS: dict[str, Any] = {"by": "region", "levels": {"region": REGIONS}, "promise": File(games=0), "eta": 0.03}


def people(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"region": np.repeat(REGIONS, 120), "income": rng.lognormal(7.7, 0.6, 360)})


def told(report: Any) -> Any:
    return next(rule for rule in report.about.rules if rule.rule == "told_by_noise")


def test_the_noise_tells_the_largest_income_of_a_group(tmp_path) -> None:
    """By the formula of somebody who reads the release alone, in most of 6 groups; the owner is told of the same."""
    close = 0
    for seed in (0, 1):
        frame = people(seed)
        made = protect("mean", frame, ledger=str(tmp_path / f"ledger {seed}"), **MEANS)
        failing = []
        for value in made.certificate.about.values[3:]:
            group = value.name[-1]
            incomes = frame.income[frame.region == group]
            estimate = incomes.mean() + 2 * norm.ppf(0.53) * value.noise_std * len(incomes)
            if abs(estimate / incomes.max() - 1) < 0.1:
                failing.append(value.name)
        close += len(failing)
        rule = told(made.owner)
        assert list(rule.failing) == failing
        assert not made.certificate.about.rules
        first = made.owner.table(full=True).split("Not for publication")[0]
        assert ("The printed noise reveals the largest contribution to" in " ".join(first.split())) == bool(failing)
        assert "no anonymisation in the sense of the law" in " ".join(made.certificate.table(full=True).split())
    assert close >= 4


def test_a_rule_that_was_asked_for_is_a_refusal(tmp_path) -> None:
    ledger = tmp_path / "ledger"
    line = "^the printed noise would tell the largest contribution to mean of income in .* to within p = 0.3, which "
    with pytest.raises(ValueError, match=line):
        protect("mean", people(), ledger=str(ledger), rules={"p": 0.3}, **MEANS)
    assert not ledger.exists()
    assert told(calibrate("mean", people(), rules={"p": 0.3}, **MEANS).certificate).failing
    protect("mean", people(), ledger=str(ledger), rules={"p": 1e-6}, **MEANS)


def by_dominance(report: Any) -> Any:
    return next(rule for rule in report.about.rules if rule.rule == "dominance_by_noise")


def test_dominance_is_judged_with_what_the_noise_tells(tmp_path) -> None:
    """One income of 40,000 among 19 that add up to 9,500: by a reader's own formula it has four fifths of the total."""
    incomes = [40_000.0, *np.linspace(100, 900, 19)]
    frame = pd.DataFrame({"income": incomes})
    words: dict[str, Any] = {"promise": File(games=0), "eta": 0.03}
    made = protect("mean", frame, ledger=str(tmp_path / "ledger"), rules={"p": 1e-6}, **words)
    (value,) = made.certificate.about.values
    estimate = np.mean(incomes) + 2 * norm.ppf(0.53) * value.noise_std * 20
    fraction_told = (estimate + 900) / sum(incomes)
    assert 0.5 < fraction_told < 1.5

    below, above = 0.99 * fraction_told, 1.01 * fraction_told
    assert by_dominance(calibrate("mean", frame, rules={"dominance_k": below}, **words).certificate).failing == (
        "mean of income",
    )
    assert not by_dominance(calibrate("mean", frame, rules={"dominance_k": above}, **words).certificate).failing
    first = calibrate("mean", frame, rules={"dominance_k": below}, **words).certificate.table(full=True)
    assert "The printed noise reveals that the 2 largest contributions are more than" in " ".join(first.split())

    line = "^the printed noise would tell that the 2 largest contributions are more than dominance_k = .* of the total "
    with pytest.raises(ValueError, match=line):
        protect("mean", frame, ledger=str(tmp_path / "other"), rules={"dominance_k": below}, **words)
    assert not (tmp_path / "other").exists()


def test_a_declared_scale_tells_nothing(tmp_path) -> None:
    scales = [20.0] * 3 + [2000.0] * 3
    made = protect("mean", people(), ledger=str(tmp_path / "ledger"), rules={"p": 0.3}, scale=scales, **MEANS)
    assert not {"told_by_noise", "dominance_by_noise"} & {rule.rule for rule in made.owner.about.rules}


def test_one_scale_for_all_groups() -> None:
    """It is at least the largest of those of the groups, and the same number for each of them."""
    own, common = (
        calibrate("mean", people(), noise=noise, **MEANS).certificate.about.certificate.noise.rms
        for noise in ("gaussian", "gaussian_isotropic")
    )
    assert len(set(common[:3])) == len(set(common[3:])) == 1
    assert len(set(own[3:])) == 3
    assert common[3] > 0.8 * max(own[3:])
