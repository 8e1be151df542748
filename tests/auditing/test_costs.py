"""What an audit would cost: models, time, disk, and what a fit warns of."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leakscope import data
from leakscope.attacks import find
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
    names = ["tree", "tree on a cluster", "other", "other on a cluster"]
    more = [f"{name} with 10 and 1,000 times the records" for name in ("tree", "other")]
    assert [line.split(":")[0] for line in lines[1:]] == [*names, *more]
    assert all(" 64 models, " in line and " with 2 workers, " in line for line in lines[1:4:2])


def test_a_population_is_set_aside_where_an_attack_needs_it():
    first = next(cost(plan(TREE, attacks=("rmia",))))
    assert first == "wine: 178 points, 161 target points, 17 set aside"


def test_time_is_shared_by_the_workers(monkeypatch):
    clock = iter([10.0, 12.0] * 4)
    monkeypatch.setattr("leakscope.auditing.costs.time.perf_counter", lambda: next(clock))
    one, four = (list(cost(plan(TREE, n=100), n_jobs=n_jobs))[1] for n_jobs in (1, 4))
    assert "100 models, 2 s each, about 200 s with 1 workers" in one
    assert "100 models, 2 s each, about 50 s with 4 workers" in four


def of_fits(monkeypatch, *seconds: float) -> list[str]:
    """The lines of a release whose fits take so long: the first with all records, the next with a quarter."""
    clock = iter([time for length in seconds for time in (0.0, length)])
    monkeypatch.setattr("leakscope.auditing.costs.time.perf_counter", lambda: next(clock))
    return list(cost(plan(TREE, n=100), n_jobs=2))[1:]


def test_clusters_and_the_network(monkeypatch):
    """13 numbers of 8 bytes and a label a record; three signals of 4 bytes a record and model."""
    _, line, _ = of_fits(monkeypatch, 60.0, 20.0)
    assert line == (
        "tree on a cluster: about 10 min with 10 workers, about 60 s with 100 workers, 19.9 kB of data to each worker, "
        "214 kB of signals to the store"
    )
    assert 178 * (13 + 1) * 8 == 19_936
    assert 178 * 100 * 3 * 4 == 213_600


def test_more_records_are_taken_to_cost_what_was_measured(monkeypatch):
    """45 records take a sixteenth of the time of 178: n^2.02, so 10 times as many take 104 times as long."""
    *_, line = of_fits(monkeypatch, 16.0, 1.0)
    slope = np.log(16) / np.log(178 / 45)
    assert round(16 * 10**slope * 50 / 3600, 1) == 23.1
    assert round(16 * 1000**slope * 50 / 86_400) == 10_359
    assert line == (
        "tree with 10 and 1,000 times the records: about 23.1 h and 10,359 days with 2 workers, 2.14 MB and 214 MB in "
        "the store; the time of a fit grew like n^2.02 from 45 to 178 records"
    )


def test_what_does_not_grow_yet_is_taken_to_grow(monkeypatch):
    *_, line = of_fits(monkeypatch, 2.0, 2.0)
    assert "about 16.7 min and 27.8 h with 2 workers" in line  # 2 s x 10 and 1,000, 100 models, 2 workers
    assert line.endswith("grew like n^0.00 from 45 to 178 records and is taken to grow like n from there")


def test_short_fits_are_measured_again_and_the_shortest_counts(monkeypatch):
    """The first fit includes what is done once in a process."""
    *_, line = of_fits(monkeypatch, 0.04, 0.03, 0.01, 0.01, 0.01, 0.01, 0.02, 0.02, 0.02, 0.02)
    slope = np.log(2) / np.log(178 / 45)
    assert f"grew like n^{slope:.2f} " in line


def test_growth_is_not_told_where_a_quarter_cannot_be_fitted(monkeypatch):
    real = Estimator.observe

    def refuse(self, points, member, row_seeds, want):
        if len(points) < 178:
            raise ValueError("too few")
        return real(self, points, member, row_seeds, want)

    monkeypatch.setattr(Estimator, "observe", refuse)
    lines = list(cost(plan(TREE), n_jobs=2))
    assert [line.split(":")[0] for line in lines[1:]] == ["tree", "tree on a cluster"]


def test_the_disk_is_that_of_the_store(tmp_path):
    one = plan(TREE, n=400)
    line = list(cost(one))[1]
    points = data.load("wine").points
    chosen = find(one.attacks)
    arrays = observe(
        Estimator(from_spec(TREE.spec)),
        points,
        draw(one, points, chosen).member[:4],
        wanted(chosen),
        execution=Execution(n_jobs=1),
    )
    megabytes = sum(array.nbytes for array in arrays.values()) / 4 * 400 / 1e6
    assert line.endswith(f" {megabytes:,.0f} MB in the store")
    assert round(megabytes) >= 1


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
