"""What an audit would cost: models, time, disk, and what a fit warns of."""

from __future__ import annotations

import re
from time import perf_counter, sleep

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from leakscope import data
from leakscope.attacks import find
from leakscope.auditing import costs
from leakscope.auditing.api import run
from leakscope.auditing.costs import cost
from leakscope.auditing.setup import draw, wanted
from leakscope.plans import AuditPlan, ModelPlan
from leakscope.releases.estimator import Estimator, from_spec
from leakscope.runtime.observe import Execution, observe
from tests.marks import nightly

TREE = ModelPlan(spec="sklearn.tree:DecisionTreeClassifier", name="tree")
SHORT = ModelPlan(spec="sklearn.linear_model:LogisticRegression", name="short", set={"max_iter": 2})


def plan(*models: ModelPlan, n: int = 64, attacks: tuple[str, ...] = ("loss", "gap")) -> AuditPlan:
    return AuditPlan(dataset="wine", n_models=n, attacks=attacks, model=models)


def test_a_line_for_the_data_and_one_for_each_release():
    lines = list(cost(plan(TREE, TREE.model_copy(update={"name": "other"})), n_jobs=2))
    assert lines[0] == "wine: 178 points, 178 target points, 0 set aside"
    assert lines[1] == (
        "to find out what this costs, one model of each of 2 kinds is fitted now, and stopped after 20 s in all"
    )
    assert [line.split(":")[0] for line in lines[2:]] == ["tree", "other"]
    assert all(" 64 models, " in line and " with 2 workers, " in line for line in lines[2:])


def test_a_population_is_set_aside_where_an_attack_needs_it():
    first = next(cost(plan(TREE, attacks=("rmia",))))
    assert first == "wine: 178 points, 161 target points, 17 set aside"


@pytest.fixture(autouse=True)
def idle_machine(monkeypatch) -> None:
    """Nothing else wants to run."""
    monkeypatch.setattr(costs.os, "getloadavg", lambda: (0.5, 0.5, 0.5), raising=False)


def of_fit(monkeypatch, seconds: float, n: int = 100, n_jobs: int = 2) -> list[str]:
    """The lines of a release whose fit takes so long."""
    clock = iter([0.0, seconds])
    monkeypatch.setattr("leakscope.core.stopwatch.time.perf_counter", lambda: next(clock))
    return list(cost(plan(TREE, n=n), n_jobs=n_jobs))[2:]


def test_time_is_shared_by_the_workers(monkeypatch):
    """A tree is fitted in chunks of 4, so 4 workers make 28, 24, 24 and 24 of 100."""
    one, four = (of_fit(monkeypatch, 2.0, n_jobs=n_jobs)[0] for n_jobs in (1, 4))
    assert "100 models, 2 s each, between 2.2 and 6.7 min in all with 1 worker, " in one
    assert "100 models, 2 s each, between 37 and 112 s in all with 4 workers, " in four


@pytest.mark.parametrize(("n", "n_workers"), [(2, "1 worker"), (8, "2 workers"), (64, "3 workers")])
def test_only_workers_that_have_something_to_do_are_counted(monkeypatch, n, n_workers):
    line = of_fit(monkeypatch, 2.0, n=n, n_jobs=3)[0]
    assert f" in all with {n_workers}, " in line


def test_a_busy_machine_is_said_and_makes_the_least_time_smaller(monkeypatch):
    monkeypatch.setattr(costs.os, "getloadavg", lambda: (5.0, 0.5, 0.5), raising=False)
    monkeypatch.setattr("leakscope.auditing.costs.pool.workers", lambda n_jobs=None: 2)
    lines = of_fit(monkeypatch, 3.0)
    assert "between 0.69 and 5.2 min in all with 2 workers" in lines[0]  # 156 s / 1.5 / 2.5 and 156 s x 2
    assert lines[-1] == "the machine is busy: 5.0 processes want to run on 2 cores; without them the fits take less"


def test_what_is_too_long_is_no_number_of_days(monkeypatch):
    lines = of_fit(monkeypatch, 20_000.0, n=10_000)
    assert lines[0].startswith(
        "tree: 10,000 models, 5.6 h each, too long to be useful: more than 30 days with 2 workers, nearly all of it "
        "fits; shorter with fewer models (n_models, --n-models), more workers (cluster, --cluster) or a part of the "
        "records, "
    )


def slow(X, y, seed):
    """Take 2 ms a record, and come back to Python all the time."""
    for _ in range(len(X)):
        sleep(0.002)
    return DecisionTreeClassifier().fit(X, y)


def much_slower(X, y, seed):
    for _ in range(100 * len(X)):
        sleep(0.002)


def of_function(monkeypatch, function: str, seconds: float) -> str:
    """The line of a function that trains, if all fits may take so long together."""
    monkeypatch.setattr(costs, "MOST_SECONDS", seconds)
    model = ModelPlan(spec=f"{__name__}:{function}", name="own")
    return list(cost(plan(model, n=8), n_jobs=2))[2]


def test_a_fit_that_takes_long_is_stopped_and_a_part_stands_for_it(monkeypatch):
    """A fit takes at least 178 ms, of which 120 may pass; of a quarter, with half of 45 records, 44 ms of the rest."""
    line = of_function(monkeypatch, "slow", 0.2)
    assert re.match(r"own: 8 models, 0\.\d+ s to \d+\.?\d* s each, between .* in all with 2 workers, ", line)
    assert re.search(r"a fit that was stopped after 0\.\d+ s and one of a quarter of the records \(0\.\d+ s\)", line)


def test_a_fit_of_which_nothing_is_known_is_said_to_take_longer(monkeypatch):
    started = perf_counter()
    line = of_function(monkeypatch, "much_slower", 0.2)
    assert perf_counter() - started < 5
    words = r"own: 8 models, more than 0\.\d+ s each, more than \d\.?\d* s in all with 2 workers, and nobody"
    assert re.match(words, line)


def test_the_disk_is_that_of_the_store(tmp_path):
    one = plan(TREE, n=400)
    line = list(cost(one))[2]
    points = data.load("wine").points
    chosen = find(one.attacks)
    arrays = observe(
        Estimator(from_spec(TREE.spec)),
        points,
        draw(one, points, chosen).member[:4],
        wanted(chosen),
        execution=Execution(n_jobs=1),
    )
    kilobytes = sum(array.nbytes for array in arrays.values()) / 4 * 400 / 1e3
    assert f" {kilobytes:,.0f} kB in the store; measured on one fit" in line
    assert kilobytes >= 100


def test_warnings_of_a_fit_are_said_once_each():
    lines = list(cost(plan(SHORT)))
    warned = [line for line in lines if "a fit warns" in line]
    assert len(warned) == 1
    assert warned[0].startswith("short: a fit warns: lbfgs failed to converge")


def test_the_fit_that_is_timed_is_the_first_of_the_audit(monkeypatch):
    fits, real = [], Estimator.observe

    def spy(self, points, member, row_seeds, want):
        fits.append((member[0].tolist(), int(row_seeds[0]), list(want)))
        return real(self, points, member, row_seeds, want)

    monkeypatch.setattr(Estimator, "observe", spy)
    list(cost(plan(TREE, n=4)))
    of_the_dry_run = fits[0]
    fits.clear()
    run(plan(TREE, n=4), n_jobs=1)
    trial, first = fits[:2]  # before its first fit the audit tries every model on a few points
    assert of_the_dry_run == first != trial


@pytest.mark.parametrize("n_jobs", [0, -1])
def test_workers_are_counted(n_jobs):
    with pytest.raises(ValueError, match=f"n_jobs must be >= 1, got {n_jobs}"):
        list(cost(plan(TREE), n_jobs=n_jobs))


class TestAttacksThatCannotRun:
    """What the audit refuses after its trial fits, the dry run refuses by the fit that it makes anyway."""

    MARGINS = ModelPlan(spec="sklearn.svm:LinearSVC", name="svc")

    def test_a_named_attack_without_its_signal(self, monkeypatch):
        asked = plan(self.MARGINS, n=4, attacks=("loss", "gap"))
        with pytest.raises(ValueError, match=r"^attack 'loss' cannot run: needs the signal loss") as of_the_run:
            run(asked, n_jobs=1)
        fits, real = [], Estimator.observe

        def spy(self, *words):
            fits.append(words)
            return real(self, *words)

        monkeypatch.setattr(Estimator, "observe", spy)
        with pytest.raises(ValueError) as of_the_dry_run:
            list(cost(asked))
        assert str(of_the_dry_run.value) == str(of_the_run.value)
        assert len(fits) == 1

    def test_one_release_that_can_is_enough(self):
        lines = cost(plan(self.MARGINS, TREE, n=4, attacks=("loss",)))
        assert sum(" 4 models, " in line for line in lines) == 2

    def test_attacks_that_were_not_named_are_left_out(self):
        assert len(list(cost(plan(self.MARGINS, n=4, attacks=("default",))))) >= 2

    @pytest.mark.parametrize(
        ("attack", "model"), [("lira", TREE), nightly("loss", MARGINS), nightly("gradient_norm", TREE)]
    )
    def test_the_same_where_an_attribute_is_guessed(self, tmp_path, attack, model):
        x = np.random.default_rng(0).integers(3, size=(60, 3))
        frame = pd.DataFrame(x, columns=["a", "b", "secret"]).assign(label=x.sum(axis=1) % 2)
        frame.to_csv(tmp_path / "people.csv", index=False)
        asked = AuditPlan(
            data=tmp_path / "people.csv",
            label="label",
            attribute="secret",
            n_models=4,
            attacks=(attack,),
            model=(model,),
        )
        with pytest.raises(ValueError, match=rf"^attack '{attack}' cannot run: ") as of_the_run:
            run(asked, n_jobs=1)
        with pytest.raises(ValueError) as of_the_dry_run:
            list(cost(asked))
        assert str(of_the_dry_run.value) == str(of_the_run.value)
