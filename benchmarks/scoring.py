"""Scoring attacks against the loops that they replace: CPU time, one thread, both sides in one process.

Run as ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/scoring.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from leakbound.attacks.lira import lira
from leakbound.attacks.rmia import rank_fraction, rmia, rmia_offline
from leakbound.core.types import Game, Signals

Array = np.ndarray
N_MODELS, N_POINTS, N_POPULATION = 256, 50_000, 10_000


class Row(NamedTuple):
    """A comparison; the naive side is timed on a fraction of the work and scaled."""

    name: str
    ours_seconds: float
    naive_seconds: float
    wanted: float

    @property
    def ratio(self) -> float:
        return self.naive_seconds / self.ours_seconds


def cpu_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the median CPU time of a piece of work, after one run to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return median(times)


def cpu_seconds_by_turns(
    first: Callable[[], object], second: Callable[[], object], repeats: int = 5
) -> tuple[float, float]:
    """Return the median CPU times of two pieces of work that take turns: a slow moment of the machine meets both.

    For work whose limit is the memory, which a shared machine shares too.
    """
    pairs = [(cpu_seconds(first, repeats=1), cpu_seconds(second, repeats=1)) for _ in range(repeats)]
    ours, theirs = zip(*pairs, strict=True)
    return median(ours), median(theirs)


def noise(n_models: int, n_targets: int) -> Signals:
    """Log-odds of noise in float32, point-major as all signals are."""
    rng = np.random.default_rng(0)
    log_odds = rng.standard_normal((N_POINTS, n_models), dtype=np.float32).T
    member = (rng.random((N_POINTS, n_models)) < 0.5).T
    is_target_point = np.ones(N_POINTS, dtype=bool)
    return Signals(Game("half_split", member, is_target_point, n_targets), None, {"log_odds": log_odds})


def losses(n_models: int, n_targets: int) -> Signals:
    """Losses of noise in float32, with a population, point-major as all signals are."""
    rng = np.random.default_rng(0)
    loss = rng.exponential(size=(N_POINTS, n_models)).astype(np.float32).T
    member = (rng.random((N_POINTS, n_models)) < 0.5).T
    is_target_point = np.arange(N_POINTS) >= N_POINTS // 10
    member[:, ~is_target_point] = False
    return Signals(Game("half_split", member, is_target_point, n_targets), None, {"loss": loss})


def lira_per_point(signals: Signals, n_points: int) -> list[float]:
    """LiRA as its authors' code has it: a loop over the points with ``scipy.stats``."""
    log_odds, member = signals.array("log_odds"), signals.game.member
    scores = []
    for i in range(n_points):
        values, inside = log_odds[1:, i], member[1:, i]
        with_it, without = values[inside], values[~inside]
        log_in = norm.logpdf(log_odds[0, i], np.mean(with_it), np.std(with_it) + 1e-30)
        scores.append(log_in - norm.logpdf(log_odds[0, i], np.mean(without), np.std(without) + 1e-30))
    return scores


def lira_nan_pass(signals: Signals, target: int) -> Array:
    """LiRA of one of many targets with numpy: its own row and the other side as NaN."""
    log_odds, member = signals.array("log_odds").T, signals.game.member.T
    known = np.arange(member.shape[1]) != target
    scores = np.zeros(len(log_odds))
    for side, sign in ((member, 1), (~member, -1)):
        seen = np.where(side & known, log_odds, np.nan)
        mean, deviation = np.nanmean(seen, axis=1), np.nanstd(seen, axis=1)
        scores -= sign * (np.log(deviation) + ((log_odds[:, target] - mean) / deviation) ** 2 / 2)
    return scores


def pairwise_fraction(targets: Array, population: Array) -> Array:
    """RMIA by the matrix of all pairs."""
    return (targets[:, None] / population[None, :] >= 2).mean(axis=1)


def rows() -> list[Row]:
    """LiRA of one target, LiRA of every model (leave one out), RMIA of one target."""
    one, every = noise(N_MODELS + 1, 1), noise(N_MODELS, N_MODELS)
    ratios = np.random.default_rng(1).lognormal(size=N_POINTS + N_POPULATION)
    targets, population = ratios[:N_POINTS], ratios[N_POINTS:]
    logs = np.log(targets), np.log(population)
    part = N_POINTS // 50
    return [
        Row(
            f"LiRA, 1 target, K={N_MODELS}, N={N_POINTS:,}, against a loop over points",
            cpu_seconds(lambda: lira(one)),
            cpu_seconds(lambda: lira_per_point(one, part)) * 50,
            150,
        ),
        Row(
            f"LiRA, {N_MODELS} targets, leave one out, against a pass for each",
            cpu_seconds(lambda: lira(every)),
            cpu_seconds(lambda: lira_nan_pass(every, 0)) * N_MODELS,
            1000,
        ),
        Row(
            f"RMIA, {N_POINTS:,} x {N_POPULATION:,}, against the matrix of pairs",
            cpu_seconds(lambda: rank_fraction(*logs)),
            cpu_seconds(lambda: pairwise_fraction(targets[:part], population)) * 50,
            250,
        ),
    ]


def offline_against_online() -> list[str]:
    """Tell how many times as long as RMIA its offline form takes, with a slope that is given and with a chosen one."""
    lines = []
    for n_models, n_targets in ((N_MODELS + 1, 1), (64, 64)):
        signals = losses(n_models, n_targets)
        online = cpu_seconds(lambda signals=signals: rmia(signals))
        given = cpu_seconds(lambda signals=signals: rmia_offline(signals, a=0.3))
        chosen = cpu_seconds(lambda signals=signals: rmia_offline(signals))
        work = f"offline RMIA, {n_models} models, targets: {n_targets}, N={N_POINTS:,}, against RMIA"
        times = f"{online * 1e3:.0f} ms; a = .3 {given / online:.2f} times, a chosen {chosen / online:.2f} times"
        lines.append(f"{work}: {times}")
    return lines


if __name__ == "__main__":
    for row in rows():
        print(
            f"{row.name:70} {row.ours_seconds * 1e3:8.1f} ms {row.naive_seconds * 1e3:10.0f} ms "
            f"{row.ratio:7.0f}x (wanted {row.wanted:g}x)"
        )
    for line in offline_against_online():
        print(line)
