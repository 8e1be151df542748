"""What an audit would do: its game, time and disk of a model, and what a fit warns of."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound import data
from leakbound.attacks import find
from leakbound.auditing.api import run
from leakbound.auditing.dry_run import dry_run
from leakbound.auditing.setup import draw, wanted
from leakbound.plans import AuditPlan, ModelPlan
from leakbound.releases.estimator import Estimator, from_spec
from leakbound.runtime.observe import Execution, observe
from tests.marks import nightly

TREE = ModelPlan(spec="sklearn.tree:DecisionTreeClassifier", name="tree")
SHORT = ModelPlan(spec="sklearn.linear_model:LogisticRegression", name="short", set={"max_iter": 2})


def plan(*models: ModelPlan, n: int = 64, attacks: tuple[str, ...] = ("loss", "gap")) -> AuditPlan:
    return AuditPlan(dataset="wine", n_models=n, attacks=attacks, model=models)


def test_a_line_for_the_data_and_one_for_each_release():
    lines = list(dry_run(plan(TREE, TREE.model_copy(update={"name": "other"}))))
    assert lines[0] == "wine: 178 points, 178 target points, 0 set aside"
    assert lines[1] == "one model of each of 2 kinds is fitted now, to measure what it takes"
    assert [line.split(":")[0] for line in lines[2:]] == ["tree", "other"]
    assert all(re.search(r": 64 models, \d+\.\d\d s for the first, \d", line) for line in lines[2:])


def test_a_population_is_set_aside_where_an_attack_needs_it():
    first = next(dry_run(plan(TREE, attacks=("rmia",))))
    assert first == "wine: 178 points, 161 target points, 17 set aside"


def test_the_disk_is_that_of_the_store(tmp_path):
    one = plan(TREE, n=4000)
    line = list(dry_run(one))[2]
    points = data.load("wine").points
    chosen = find(one.attacks)
    arrays = observe(
        Estimator(from_spec(TREE.spec)),
        points,
        draw(one.game, 4000, points, chosen, 0).member[:4],
        wanted(chosen),
        execution=Execution(n_jobs=1),
    )
    megabytes = sum(array.nbytes for array in arrays.values()) / 4 * 4000 / 1e6
    assert line.endswith(f", {megabytes:,.1f} MB in the store for all")
    assert megabytes >= 1


def test_warnings_of_a_fit_are_said_once_each():
    lines = list(dry_run(plan(SHORT)))
    warned = [line for line in lines if "a fit warns" in line]
    assert len(warned) == 1
    assert warned[0].startswith("short: a fit warns: lbfgs failed to converge")


def test_the_fit_that_is_measured_is_the_first_of_the_audit(monkeypatch):
    fits, real = [], Estimator.observe

    def spy(self, points, member, row_seeds, want):
        fits.append((member[0].tolist(), int(row_seeds[0]), list(want)))
        return real(self, points, member, row_seeds, want)

    monkeypatch.setattr(Estimator, "observe", spy)
    list(dry_run(plan(TREE, n=4)))
    of_the_dry_run = fits[0]
    fits.clear()
    run(plan(TREE, n=4), n_jobs=1)
    trial, first = fits[:2]  # before its first fit the audit tries every model on a few points
    assert of_the_dry_run == first != trial


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
            list(dry_run(asked))
        assert str(of_the_dry_run.value) == str(of_the_run.value)
        assert len(fits) == 1

    def test_one_release_that_can_is_enough(self):
        lines = dry_run(plan(self.MARGINS, TREE, n=4, attacks=("loss",)))
        assert sum(" 4 models, " in line for line in lines) == 2

    def test_attacks_that_were_not_named_are_left_out(self):
        assert len(list(dry_run(plan(self.MARGINS, n=4, attacks=("default",))))) >= 2

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
            game=ls.Attribute("secret"),
            n_models=4,
            attacks=(attack,),
            model=(model,),
        )
        with pytest.raises(ValueError, match=rf"^attack '{attack}' cannot run: ") as of_the_run:
            run(asked, n_jobs=1)
        with pytest.raises(ValueError) as of_the_dry_run:
            list(dry_run(asked))
        assert str(of_the_dry_run.value) == str(of_the_run.value)
