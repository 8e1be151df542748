"""The ledger: what it remembers, the joint bound, everything that it refuses, kills and two writers."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import leakbound
from leakbound.bounds.exact import exact_eta
from leakbound.files import private_file
from leakbound.noise import GaussianNoise, LaplaceNoise, Lp, Shifts, complement, eta_bound, moment, swap, swap_linear
from leakbound.protection.ledger.drawn import Draw, Entry
from leakbound.protection.ledger.drawn import DrawnLedger as Ledger
from leakbound.protection.ledger.ledger import Query
from tests.noise.games import all_subsets

N, K = 6, 3
X = np.array([[0.0, 1.0], [1.0, -1.0], [3.0, 0.5], [7.0, 2.0], [2.0, 2.5], [4.0, -3.0]])
MEMBER = np.array([True, False, True, False, False, True])
DRAW = Draw("data", MEMBER, "swap")
QUERIES = [Query({"statistic": name}, 0.1) for name in ("mean", "squares", "spread")]
FEATURES = [X[:, :1], X**2, np.abs(X[:, 1:])]
NOISES = [GaussianNoise(4.0), GaussianNoise(3.0, np.array([[9.0, 1.0], [1.0, 4.0]])), GaussianNoise(1.5)]
MEANWHILE = "another release was made meanwhile; the same command again counts this one beside it"


def entries() -> list[Entry]:
    """Three releases of means, under the exact swap."""
    rows = zip(QUERIES, FEATURES, NOISES, strict=True)
    return [Entry(query, noise, swap_linear(features, K, norm=noise.norm)) for query, features, noise in rows]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.json"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger.create(path, DRAW, QUERIES)


def refused(line: str) -> AbstractContextManager[object]:
    """The whole line."""
    return pytest.raises(ValueError, match=f"^{re.escape(line)}$")


def test_it_remembers(path, ledger):
    for entry in entries():
        ledger = ledger.append(entry)
    again = Ledger.open(path, "data")
    assert again.digest == ledger.digest
    assert (again.draw.member == MEMBER).all()
    assert (again.draw.coupling, again.draw.promise, again.draw.seed) == ("swap", "every", None)
    assert [query.digest for query in again.queries] == [query.digest for query in QUERIES]
    for kept, entry in zip(again.releases, entries(), strict=True):
        assert (kept.lengths == entry.shifts.values).all()
        assert (kept.query, kept.scale, kept.d) == (entry.query.digest, entry.noise.scale, entry.shifts.d)
    assert path.stat().st_mode & 0o777 == 0o600
    assert {each.name for each in path.parent.iterdir()} == {"ledger.json", ".ledger.json.lock"}
    assert path.with_name(".ledger.json.lock").stat().st_mode & 0o777 == 0o600


def test_infinite_lengths_come_back(path):
    draw = replace(DRAW, seed=5, coupling="sampled swap")
    shifts = Shifts(np.array([[1.0, np.nan, 2.0]] * N), "sampled swap", 1, exact=False)
    ledger = Ledger.create(path, draw, QUERIES[:1]).append(Entry(QUERIES[0], NOISES[0], shifts, seed=5, scale_seed=5))
    assert np.isinf(Ledger.open(path, "data").releases[0].lengths).sum(axis=1).tolist() == [1] * N
    assert not ledger.joint_shifts().exact


def test_the_joint_shift_is_that_of_the_whitened_statistics_together(ledger):
    """Independent path: all means stacked, divided by scale and square root of the shape, one exact swap."""
    for entry in entries():
        ledger = ledger.append(entry)
    white = [features / noise.scale for features, noise in zip(FEATURES, NOISES, strict=True)]
    shape = NOISES[1].shape
    assert shape is not None
    white[1] = np.linalg.solve(np.linalg.cholesky(shape), white[1].T).T
    together = swap_linear(np.hstack(white), K)
    joint = ledger.joint_shifts()
    np.testing.assert_allclose(joint.values, together.values, rtol=1e-12)
    assert (joint.d, joint.prior, joint.promise, joint.exact) == (4, 0.5, "every", True)


def test_the_joint_bound_is_between_the_exact_game_and_the_sum_of_the_bounds(ledger):
    """Two means of the first column, as one release of the mean with the precision of both together."""
    ledger = ledger.append(entries()[0])
    again = replace(entries()[0], query=QUERIES[1], noise=GaussianNoise(3.0))
    joint = eta_bound(ledger.append(again).joint_shifts(), GaussianNoise(1.0))
    member = all_subsets(N, K)
    outputs = member @ X[:, :1] / K
    exact = exact_eta(outputs, member, GaussianNoise((4.0**-2 + 3.0**-2) ** -0.5))
    single = [eta_bound(entries()[0].shifts, GaussianNoise(scale)) for scale in (4.0, 3.0)]
    assert (exact <= joint).all()
    assert (joint < sum(single)).all()
    assert (joint > np.maximum(*single)).all()


def test_queries_are_declared_before_the_first_release(ledger):
    late = Query({"statistic": "another"}, 0.1)
    ledger = ledger.declare([late])
    assert len(Ledger.open(ledger.path, "data").queries) == 4
    ledger = ledger.append(entries()[0])
    with refused(
        f"1 of 4 queries of {ledger.path} were released: a query chosen after an output is outside of the joint "
        "certificate; draw the data anew"
    ):
        ledger.declare([late])
    for undeclared in (Query({"statistic": "yet another"}, 0.1), Query({"statistic": "squares"}, 0.2)):
        with refused(
            f"the query was not declared in {ledger.path} before the first release: chosen after an output it is "
            "outside of the joint certificate"
        ):
            ledger.append(replace(entries()[1], query=undeclared))


def test_queries_are_released_in_their_order_and_once(ledger):
    with refused("0 of 3 declared queries were released, and this is not the next one"):
        ledger.append(entries()[1])
    ledger = ledger.append(entries()[0])
    with refused("1 of 3 declared queries were released, and this is not the next one"):
        ledger.append(entries()[0])
    for entry in entries()[1:]:
        ledger = ledger.append(entry)
    with refused("3 of 3 declared queries were released, and this is not the next one"):
        ledger.append(entries()[2])


def test_what_does_not_add_up_is_refused(ledger):
    first = entries()[0]
    member = all_subsets(N, K)
    outputs = member @ X[:, :1] / K
    cases = [
        (replace(first, noise=LaplaceNoise(4.0)), "only Gaussian releases add up pair by pair, got LaplaceNoise"),
        (
            replace(first, shifts=complement(outputs, member)),
            "the shifts have the coupling complement, the ledger and its noise need swap",
        ),
        (
            replace(first, shifts=swap_linear(X[:, :1], 2)),
            "the shifts have the fraction k/n 0.3333333333333333, the ledger and its noise need 0.5",
        ),
        (
            replace(first, shifts=replace(first.shifts, separating_fraction=0.5)),
            "the shifts have the fraction of separating pairs 0.5, the ledger and its noise need 1.0",
        ),
        (
            replace(first, shifts=first.shifts.average()),
            "the shifts have the promise average, the ledger and its noise need every",
        ),
        (
            replace(first, shifts=swap_linear(X[:, :1], K, norm=Lp(1))),
            f"the shifts have the norm {Lp(1)}, the ledger and its noise need {NOISES[0].norm}",
        ),
        (
            replace(first, shifts=replace(moment(1.0, 1), coupling="swap")),
            "a mean length has no pairs; only shifts measured pair by pair add up",
        ),
        (
            replace(first, shifts=swap_linear(X[:, :1], K, n_values=2)),
            "the lengths were put into 2 groups and are no pairs any more; keep all 5: swap_linear(..., n_values=5)",
        ),
        (replace(first, seed=3), "the shifts are of the pairs of seed 3, the ledger of seed None"),
        (
            replace(first, shifts=Shifts(np.ones((N, 5)), "swap", 1, exact=False)),
            "the shifts are of the pairs of seed None, the ledger of seed None",
        ),
    ]
    for entry, line in cases:
        with refused(line):
            ledger.append(entry)
    ledger = ledger.append(first)
    with refused("the shifts have (6, 30) pairs, the ledger (6, 5)"):
        ledger.append(replace(entries()[1], shifts=swap(member @ X**2 / K, member, NOISES[1].norm)))


def test_an_average_promise_adds_up_too(path):
    """The average of the rows' mean divergences, from all the pairs of all the rows."""
    ledger = Ledger.create(path, replace(DRAW, promise="average"), QUERIES[:2])
    for entry in entries()[:2]:
        ledger = ledger.append(replace(entry, shifts=entry.shifts.average()))
    of_each = Ledger.create(path.with_name("each"), DRAW, QUERIES)
    for entry in entries()[:2]:
        of_each = of_each.append(entry)
    average = eta_bound(Ledger.open(path, "data").joint_shifts(), GaussianNoise(1.0))
    np.testing.assert_allclose(average, [eta_bound(of_each.joint_shifts(), GaussianNoise(1.0)).mean()], rtol=1e-12)
    grouped = swap_linear(FEATURES[2], K, n_values=2).average()
    with refused("the lengths were put into 12 groups and are no pairs any more; keep all 5: "
                 "swap_linear(..., n_values=5)"):  # fmt: skip
        Ledger.create(path.with_name("other"), replace(DRAW, promise="average"), QUERIES[2:]).append(
            replace(entries()[2], shifts=grouped)
        )


def test_the_fraction_of_separating_pairs_is_kept(path):
    shifts = Shifts(np.ones((1, 20)), "sampled disjoint", 1, exact=False, separating_fraction=0.4)
    draw = replace(DRAW, seed=5, coupling="sampled disjoint", separating_fraction=0.4)
    ledger = Ledger.create(path, draw, QUERIES[:1]).append(Entry(QUERIES[0], NOISES[0], shifts, seed=5))
    assert Ledger.open(path, "data").joint_shifts().separating_fraction == ledger.draw.separating_fraction == 0.4


def test_scales_chosen_on_the_joint_pairs_are_refused(path):
    shifts = Shifts(np.ones((N, 20)), "sampled swap", 1, exact=False)
    ledger = Ledger.create(path, replace(DRAW, seed=5, coupling="sampled swap"), QUERIES[:2])
    with refused("the shifts are of the pairs of seed 4, the ledger of seed 5"):
        ledger.append(Entry(QUERIES[0], NOISES[0], shifts, seed=4))
    with refused(
        "the scale was chosen on the pairs of seed 5 that certify 2 releases jointly; choose it on other pairs"
    ):
        ledger.append(Entry(QUERIES[0], NOISES[0], shifts, seed=5, scale_seed=5))
    assert len(ledger.append(Entry(QUERIES[0], NOISES[0], shifts, seed=5, scale_seed=6)).releases) == 1


def test_nothing_released_has_no_joint_bound(ledger):
    with refused(f"nothing was released under {ledger.path}"):
        ledger.joint_shifts()


def test_other_data_and_existing_files_are_refused(path, ledger):
    with refused(f"{path} belongs to other data: digest data, not 0123456789ab"):
        Ledger.open(path, "0123456789abcdef")
    with refused(f"{path} exists already: {MEANWHILE}"):
        Ledger.create(path, DRAW, QUERIES)
    with refused(f"{path.parent / 'none'} cannot be read: No such file or directory"):
        Ledger.open(path.parent / "none", "data")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_can_read_is_refused(path, ledger, mode):
    path.chmod(mode)
    line = f"{path} is open to others (mode {mode:o}); only its owner may read it: chmod 600"
    with refused(line):
        Ledger.open(path, "data")
    with refused(line):
        ledger.append(entries()[0])


def test_every_damage_is_noticed(path, ledger):
    """Every byte of the file changed or missing, one at a time."""
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[place] ^= 1
        for text in (bytes(changed), whole[:place]):
            path.write_bytes(text)
            with pytest.raises(ValueError, match=f"^{path} is (damaged|no ledger)"):
                Ledger.open(path, "data")
    path.write_bytes(whole)
    Ledger.open(path, "data")


def test_another_version_is_refused(path, ledger):
    content = dict(json.loads(path.read_text())["content"], format="leakscope ledger 1")
    private_file.write(path, content, ledger.digest)
    with refused(
        f"{path} is a ledger of an older version, which kept no key for its noise: start another ledger, which draws "
        "the data anew"
    ):
        Ledger.open(path, "data")
    digest = private_file.read(path)[1]
    private_file.write(path, content | {"format": "leakbound ledger 0"}, digest)
    with refused(f"{path} is no ledger of this version: format: Input should be 'leakscope ledger 2'"):
        Ledger.open(path, "data")


def test_bad_draws_and_queries():
    with refused("a ledger needs the digest of the data"):
        Draw("", MEMBER, "swap")
    with refused("D must hold from 1 to n - 1 = 5 records, got 6"):
        Draw("data", np.ones(6, dtype=bool), "swap")
    with refused("a statistic without a description (a lambda) cannot be entered in a ledger"):
        Query({}, 0.1)
    with refused("eta must be > 0, got 0"):
        Query({"statistic": "mean"}, 0.0)


def test_who_opened_it_before_a_change_cannot_write(path, ledger):
    other = Ledger.open(path, "data")
    ledger.append(entries()[0])
    with refused(f"{path} was changed since it was opened: {MEANWHILE}"):
        other.append(entries()[0])
    assert len(Ledger.open(path, "data").releases) == 1


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another writer's lock."""
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    yield
    os.close(lock)


def test_two_writers_at_once(path, ledger):
    with locked(path), refused(f"{path} is being written by another process"):
        ledger.append(entries()[0])
    assert len(ledger.append(entries()[0]).releases) == 1


@pytest.mark.slow
@pytest.mark.kills
def test_a_kill_between_write_and_rename_leaves_the_old_ledger(path, ledger):
    ledger = ledger.append(entries()[0])
    before, root = path.read_bytes(), Path(__file__).parents[3]
    script = root / "tests" / "kills" / "killed_while_noting.py"
    sources = Path(leakbound.__file__).parents[1]
    alone = os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{sources}"}
    run = subprocess.run([sys.executable, str(script), str(path)], env=alone, capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL, run.stderr
    (part,) = path.parent.glob(".ledger.json.*.part")
    assert part.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() == before
    again = Ledger.open(path, "data")
    assert len(again.append(entries()[1]).releases) == 2  # the lock died with its holder
    assert not part.exists()


def test_a_folder_that_cannot_be_written(path, ledger, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    before = path.read_bytes()
    with pytest.raises(OSError, match=f"^{path} cannot be written: No space left on device$"):
        ledger.append(entries()[0])
    assert path.read_bytes() == before
    assert list(path.parent.glob("*.part")) == []
