"""Promise drawn, step by step: k of the n records are drawn in secret, and their statistic is released with noise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.seeds import subsets
from leakbound.protection.promises.drawn.in_ledger import LedgerQuery, randomness
from leakbound.protection.promises.drawn.jobs import Job
from leakbound.protection.promises.drawn.noise_search import NoiseSearchResult
from leakbound.protection.promises.drawn.prepare import ENOUGH, least_noise, prepared_of
from leakbound.protection.setting.elsewhere import (
    Elsewhere,
    NamePeople,
    beside_the_data,
    note_begun,
    of_the_same_people,
    own_ledger,
)
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.protection.setting.prepared import Counted, Prepared, Ready
from leakbound.protection.setting.request import Request
from leakbound.protection.setting.results import rounded_to_rms
from leakbound.protection.setting.units import people_of

Array = np.ndarray


def prepare(request: Request) -> Prepared:
    """Find the noise and what it proves; nothing is drawn, and no ledger is asked."""
    job = Job.of(request)
    return prepared_of(job, least_noise(job))


def declared(request: Request) -> str:
    """Announce the query; the first one begins the ledger, and draws."""
    query, elsewhere = _in_its_ledger(request)
    if query is None:
        raise ValueError("declare needs a ledger")
    elsewhere.refuse()
    note_begun(request, query.path)
    return query.declare()


def ready(request: Request) -> Ready:
    """Find the noise, and refuse what would be published exactly."""
    # The ledger, if there is one, says which coupling adds up with its earlier releases.
    query, elsewhere = _in_its_ledger(request)
    if query is None or query.is_new:
        elsewhere.refuse()
    job = Job.of(request) if query is None else query.job
    calibration = least_noise(job)
    prepared = prepared_of(job, calibration)
    return Ready(prepared, partial(_counted, job.mechanism, calibration, prepared, query, elsewhere))


def _in_its_ledger(request: Request) -> tuple[LedgerQuery | None, Elsewhere]:
    """Find the place of a request in its ledger, if it has one, and its people in other ledgers."""
    names: NamePeople = cache(partial(people_of, request))
    path = None if request.ledger_path is None else own_ledger(request)
    elsewhere = beside_the_data(request, path)
    elsewhere.refuse()
    query = None
    if path is not None:
        query = LedgerQuery.of(Job.of(request), str(path), names() if request.insecure_seed is None else None)
    ledger = None if query is None else query.ledger
    elsewhere = elsewhere.with_(of_the_same_people(request, path, names, ledger, known=elsewhere.paths))
    for note in elsewhere.notes:
        request.tell_owner(note)
    return query, elsewhere


def _counted(
    mechanism: Mechanism,
    calibration: NoiseSearchResult,
    prepared: Prepared,
    query: LedgerQuery | None,
    elsewhere: Elsewhere,
) -> Counted:
    """Draw the records in use, unless a ledger holds the draw, and add the noise to their statistic."""
    if query is None:
        seed = prepared.request.insecure_seed
        member = subsets(mechanism.n, mechanism.k, 1, randomness(seed, "draw"))[0]
        value = _released(mechanism, calibration, member, randomness(seed, "noise"))
        counted = Counted(prepared, value, public_notes=[ENOUGH] if calibration.noise is None else [])
    else:
        note_begun(prepared.request, query.path)
        counted = query.release(prepared, calibration)
    return replace(
        counted,
        value=rounded_to_rms(counted.value, calibration.rms),
        owner_notes=elsewhere.notes,
        others=elsewhere.releases,
        knows_people=elsewhere.knows_people,
    )


def _released(
    mechanism: Mechanism, calibration: NoiseSearchResult, member: Bool[Array, " n"], rng: np.random.Generator
) -> Float[Array, " d"]:
    """Add a draw of the noise to the statistic of the members."""
    noise = np.zeros(mechanism.d)
    if calibration.noise is not None:
        n_noised = int(calibration.noisy_coords.sum())
        noise[calibration.noisy_coords] = calibration.noise.sample(np.zeros(n_noised), rng)
    return mechanism.release(member, noise, calibration.grid, rng)
