"""What an audit would cost, from one fit: said before hours are spent."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leakscope import data, pool, seeds
from leakscope.attacks import find
from leakscope.drawing import draw, wanted
from leakscope.plans.audits import AuditPlan
from leakscope.releases.estimator import Estimator
from leakscope.releases.making import release_from


def cost(plan: AuditPlan, jobs: int | None = None) -> Iterator[str]:
    """Models, time and disk of a plan, a line each; one model of each release is fitted to tell.

    Parameters
    ----------
    plan : AuditPlan
    jobs : int, optional
        Worker processes; all cores unless given.

    Yields
    ------
    str
    """
    chosen = find(plan.attacks)
    loaded = data.load(plan.data or plan.dataset or "digits", plan.label, plan.group, plan.drop)
    points, workers = loaded.points, pool.workers(jobs)
    game = draw(plan, points, chosen)
    yield f"{loaded.name}: {len(points):,} points, {game.n_judged:,} judged, {len(game.population):,} set aside"
    for model in plan.model:
        release = release_from(model.spec, model.set, model.name, model.train)
        if isinstance(release, Estimator):
            release = replace(release, quiet=False)
        first = np.array([seeds.integer(plan.seed, "train", 0)])
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            seen = release.observe(points, game.member[:1], first, wanted(chosen))
        seconds = time.perf_counter() - started
        n_bytes = 4 * sum(array.size for array in seen.values()) * game.n_models
        yield (
            f"{release.name}: {game.n_models} models, {seconds:.2g} s each, about "
            f"{seconds * game.n_models / workers:,.0f} s with {workers} workers, {n_bytes / 1e6:,.0f} MB in the store"
        )
        yield from sorted({f"{release.name}: a fit warns: {str(each.message).splitlines()[0]}" for each in said})
