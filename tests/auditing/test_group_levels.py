"""How often a policy with limits on groups is wrong: without a leak, and with a leak in one small group.

The policy is ``worst_group_accuracy=0.6`` at 95 %, alone and with ``exposed=0`` (which asks). Scores are those of LiRA
and MAST on noise: of every model by all others, as in an audit, so that chance counts twice.
``python -m tests.auditing.test_group_levels`` prints all cases of ``docs/coverage.md``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

import numpy as np
import pytest

from leakbound.attacks import find
from leakbound.auditing.evaluate import judge
from leakbound.auditing.observed import ObservedRelease
from leakbound.auditing.policy import Levels, decision
from leakbound.core import games
from leakbound.core.types import Points, Signals
from leakbound.plans.policies import policy_of
from tests.levels import allowed
from tests.marks import nightly

GROUPS = policy_of({"limits": ["worst_group_accuracy=0.6"]})
POLICY = policy_of({"limits": ["worst_group_accuracy=0.6"], "exposed": {"most": 0, "then": "ask"}})
ATTACKS = find(["lira", "mast"])
SHIFT = 1.05  # of members' log-odds in standard deviations: the best threshold is right in .70 of cases
RARE = 40


def verdicts(sizes: list[int], n_models: int, seed: int, leak: float = 0.0) -> tuple[str, str]:
    """Judge models by the group limit and by both; of their last class members' log-odds are larger by ``leak``."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(len(sizes)), sizes)
    game = games.half_split(len(label), n_models, seed=seed)
    log_odds = 2 * rng.normal(size=len(label)) + rng.normal(size=game.member.shape)
    log_odds += leak * game.member * (label == len(sizes) - 1)
    arrays = {"log_odds": log_odds, "loss": np.logaddexp(0, -log_odds), "correct": (log_odds > 0).astype(float)}
    release = ObservedRelease("model", Signals(game, Points(np.zeros((len(label), 1)), label), arrays))
    levels = Levels.shared(POLICY.confidence, 1, len(ATTACKS), len(POLICY.parsed_limits))
    found = judge(release, ATTACKS, (0.1,), 0.95, 0.5, POLICY.parsed_limits, levels)
    alone, both = (decision(policy, release, found.ends, None, found.groups).verdict for policy in (GROUPS, POLICY))
    return alone, both


def counted(sizes: list[int], n_models: int, n_runs: int, leak: float = 0.0) -> tuple[Counter[str], Counter[str]]:
    """Count the verdicts of the group limit alone, and of both limits."""
    found = [verdicts(sizes, n_models, 1000 * n_models + run, leak) for run in range(n_runs)]
    return Counter(alone for alone, _ in found), Counter(both for _, both in found)


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("n_groups", "n_records", "n_models", "n_runs"),
    [
        (10, 80, 32, 10),
        nightly(2, 1250, 4, 400),
        nightly(10, 160, 16, 400),
        nightly(100, 640, 4, 40),
        nightly(100, 320, 8, 40),
        nightly(100, 40, 64, 100),
        nightly(100, 20, 64, 100),
    ],
)
def test_without_a_leak_models_are_released_and_seldom_refused(n_groups, n_records, n_models, n_runs) -> None:
    """Refused in no more runs than `allowed`; released in 8 of 10 where T n is 2,500.

    A true level of 5 % fails with a probability of at most .22 %. Of 10 runs that are each released with a probability
    of .95 or more, fewer than 8 are with a probability of at most 1.2 %.
    """
    alone, both = counted([n_records] * n_groups, n_models, n_runs)
    assert max(alone["do_not_release"], both["do_not_release"]) <= allowed(n_runs)
    if n_records * n_models >= 2500:
        assert alone["release"] >= 0.8 * n_runs
        if n_models >= 32:  # with fewer models single records cannot be tested
            assert both["release"] >= 0.8 * n_runs


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("n_others", "n_models", "n_runs"),
    [
        (400, 32, 10),
        nightly(2000, 8, 400),
        nightly(2000, 64, 400),
    ],
)
def test_a_leaking_class_of_40_is_seldom_released(n_others, n_models, n_runs) -> None:
    """Accuracy .7 in 40 records: released in no more runs than `allowed` (false alarm .22 %)."""
    alone, both = counted([n_others] * 3 + [RARE], n_models, n_runs, leak=SHIFT)
    assert max(alone["release"], both["release"]) <= allowed(n_runs)


def main() -> None:
    """Print how often each verdict is given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    n_runs = parser.parse_args().runs
    print("| groups | records of each | models | leak | release | ask | do not release | released by both limits |")
    print(f"|{'---|' * 8}")
    cases = [
        (2, 20, 64), (2, 40, 64), (2, 2000, 4), (2, 1250, 4), (2, 100, 32), (10, 40, 64), (10, 20, 64), (10, 160, 16),
        (10, 320, 8), (10, 625, 4), (100, 40, 64), (100, 20, 64), (100, 80, 32), (100, 160, 16), (100, 320, 8),
        (100, 640, 4),
    ]  # fmt: skip
    for n_groups, n_records, n_models in cases:
        show(
            counted([n_records] * n_groups, n_models, n_runs), f"{n_groups} | {n_records:,} | {n_models} | none", n_runs
        )
    for n_models in (4, 8, 16, 32, 64):
        found = counted([400] * 3 + [RARE], n_models, n_runs, SHIFT)
        show(found, f"3 and 1 | 400 and {RARE} | {n_models} | .70 in the {RARE}", n_runs)


def show(found: tuple[Counter[str], Counter[str]], case: str, n_runs: int) -> None:
    alone, both = found
    fractions = [f"{alone[name] / n_runs:.2f}" for name in ("release", "ask", "do_not_release")]
    fractions.append(f"{both['release'] / n_runs:.2f}")
    print(f"| {case} | {' | '.join(fractions)} |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
