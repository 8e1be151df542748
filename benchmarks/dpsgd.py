"""Noise of DP-SGD for an advantage, against riskcal's search: CPU time, one thread, both sides in one process.

Run as ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.dpsgd``.
"""

from __future__ import annotations

import importlib.util

from benchmarks.scoring import Row, cpu_seconds
from leakbound.dpsgd import dpsgd_multiplier

ADVANTAGE, RATE, STEPS = 0.1, 0.01, 1000
N_ADVANTAGES = 20  # riskcal's search takes 36, of which 26 cost as much as that of the least noise or nearly so


def left_out() -> list[str]:
    """Reasons of the rows that cannot be measured here."""
    installed = importlib.util.find_spec("riskcal") is not None
    return [] if installed else ["noise of DP-SGD for an advantage: riskcal is not installed"]


def rows() -> list[Row]:
    """The game of riskcal, add/remove, with its own tolerance of 1e-3; nothing where it is not installed."""
    if left_out():
        return []
    from riskcal.calibration.dpsgd import find_noise_multiplier_for_advantage

    return [
        Row(
            f"noise of DP-SGD, advantage {ADVANTAGE}, q={RATE}, T={STEPS:,}, against riskcal",
            cpu_seconds(lambda: dpsgd_multiplier(RATE, STEPS, advantage=ADVANTAGE, adjacency="add_remove")),
            cpu_seconds(lambda: find_noise_multiplier_for_advantage(ADVANTAGE, RATE, STEPS), repeats=1),
            20,
        )
    ]


def part() -> list[Row]:
    """The same, but riskcal is timed on the advantage of one noise, the least, and its search taken for 20 of them."""
    if left_out():
        return []
    from riskcal.calibration.dpsgd import get_advantage_for_dpsgd

    noise = float(dpsgd_multiplier(RATE, STEPS, advantage=ADVANTAGE, adjacency="add_remove"))
    return [
        Row(
            f"noise of DP-SGD, advantage {ADVANTAGE}, q={RATE}, T={STEPS:,}, against {N_ADVANTAGES} of riskcal",
            cpu_seconds(lambda: dpsgd_multiplier(RATE, STEPS, advantage=ADVANTAGE, adjacency="add_remove"), repeats=3),
            cpu_seconds(lambda: get_advantage_for_dpsgd(noise, RATE, STEPS), repeats=3) * N_ADVANTAGES,
            20,
        )
    ]


if __name__ == "__main__":
    for row in rows():
        print(
            f"{row.name:70} {row.ours_seconds * 1e3:8.1f} ms {row.naive_seconds * 1e3:10.0f} ms "
            f"{row.ratio:7.0f}x (wanted {row.wanted:g}x)"
        )
    for reason in left_out():
        print(f"left out: {reason}")
