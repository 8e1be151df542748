"""From releases and a plan to a report: the game of each, its claims, and what stands in the notes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound import data
from leakbound.attacks import find
from leakbound.auditing.private_training import promise
from leakbound.auditing.run import claims_of, play, setting
from leakbound.auditing.setup import draw
from leakbound.cli.gates import exit_code
from leakbound.core import games
from leakbound.core.tradeoff.claims import Claim
from leakbound.data import Data, from_arrays
from leakbound.plans import AuditPlan, ClaimPlan
from leakbound.releases.factory import release_of
from leakbound.releases.preparation import Preparation
from leakbound.reports.about import ExecutionFacts
from leakbound.runtime.observe import Execution

HERE = Execution(n_jobs=1)
TREE = release_of(DecisionTreeClassifier(), "tree")
STUMP = release_of(DecisionTreeClassifier(max_depth=1), "stump")
HALF = games.half_split(20, 4)


def claiming(*claims: ClaimPlan) -> AuditPlan:
    return AuditPlan(n_models=4, claim=claims)


@pytest.fixture(scope="module")
def wine() -> Data:
    return data.load("wine")


class TestClaims:
    def test_each_kind_is_read_as_what_it_is(self):
        plan = claiming(
            ClaimPlan(epsilon=2.0, delta=1e-5, adjacency="replace_one"), ClaimPlan(mu=0.5, adjacency="add_remove")
        )
        assert claims_of(plan.claim, "tree", HALF) == [
            Claim("epsilon", 2.0, 1e-5, "replace_one"),
            Claim("mu", 0.5, 0.0, "add_remove"),
        ]

    def test_a_success_is_an_eta_above_the_better_blind_guess(self):
        """With 30 members of 40 the baseline accuracy is three quarters."""
        uneven = games.one_model(30, 10)
        plan = claiming(ClaimPlan(accuracy=0.875), ClaimPlan(eta=0.0625))
        assert claims_of(plan.claim, "tree", uneven) == [Claim("eta", 0.125), Claim("eta", 0.0625)]
        assert claims_of(claiming(ClaimPlan(accuracy=0.625)).claim, "tree", HALF) == [Claim("eta", 0.125)]

    def test_a_claim_is_of_the_release_that_it_names(self):
        plan = claiming(ClaimPlan(eta=0.1, model="tree"), ClaimPlan(eta=0.2))
        assert claims_of(plan.claim, "tree", HALF) == [Claim("eta", 0.1), Claim("eta", 0.2)]
        assert claims_of(plan.claim, "stump", HALF) == [Claim("eta", 0.2)]

    @pytest.mark.parametrize("claim", [ClaimPlan(eta=0.3), ClaimPlan(accuracy=0.7)])
    def test_what_the_prior_makes_impossible_is_refused(self, claim):
        line = r"not possible where the baseline accuracy is 0\.75; eta is from 0 to 0\.25, accuracy from 0\.75"
        with pytest.raises(ValueError, match=line):
            claims_of(claiming(claim).claim, "tree", games.one_model(30, 10))


class TestSetting:
    def test_without_canaries_the_game_is_that_of_the_plan(self, wine):
        plan = AuditPlan(n_models=6, seed=4)
        made = setting(plan.game, plan.models, find("rmia"), TREE, wine, plan.seed)
        np.testing.assert_array_equal(made.game.member, draw(plan.game, 6, wine.points, find("rmia"), 4).member)
        assert len(made.game.population) == 17
        assert made.release == replace(TREE, preparation=Preparation())  # it takes the data as they are
        assert (made.data, made.planted) == (wine, "")

    def test_with_canaries_they_are_planted(self, wine):
        plan = AuditPlan(game=ls.Canaries("random", n=9))
        made = setting(plan.game, plan.models, find("loss"), TREE, wine, plan.seed)
        assert (made.planted, made.game.n_target_points, made.game.n_models) == ("random", 9, 1)

    def test_named_canaries_are_drawn_as_any_game(self, wine):
        made = setting(ls.Canaries(targets=(3, 5)), 4, find("loss"), TREE, wine)
        assert (made.planted, made.game.target_points.tolist()) == ("", [3, 5])

    def test_an_estimator_has_no_accountant(self, wine):
        assert promise(setting(ls.HalfSplit(), 4, find("loss"), TREE, wine)) is None


class TestPlay:
    def test_all_releases_stand_in_the_report_in_the_same_game(self, wine):
        attacks = find(["loss", "gap"])
        report = play(AuditPlan(n_models=4), attacks, [TREE, STUMP], wine, HERE, "leakbound audit plan.toml")
        assert [each.name for each in report.about.releases] == ["tree", "stump"]
        assert {each.release for each in report.findings} == {"tree", "stump"}
        assert report.about.command == "leakbound audit plan.toml"
        alone = play(AuditPlan(n_models=4), attacks, [STUMP], wine, HERE)
        assert [each for each in report.findings if each.release == "stump"] == list(alone.findings)

    def test_a_claim_that_is_far_too_good_is_refuted(self, wine):
        """A tree that is grown to the end knows its members by heart where labels are random: 2 in 100 by chance."""
        points = from_arrays(
            np.random.default_rng(0).normal(size=(200, 3)), np.random.default_rng(1).integers(2, size=200)
        )
        plan = AuditPlan(
            n_models=16, claim=(ClaimPlan(epsilon=0.01, adjacency="replace_one", model="tree"), ClaimPlan(eta=0.49))
        )
        report = play(plan, find("loss"), [TREE], Data(points, "noise"), HERE)
        words = {curve.name: curve.verdict.word for curve in report.curves if curve.verdict is not None}
        assert list(words.values()) == ["refuted", "not_refuted"]
        assert exit_code(report) == 2

    def test_two_releases_of_one_name_are_refused(self, wine):
        with pytest.raises(ValueError, match="two models have the same name; names: tree, tree"):
            play(AuditPlan(n_models=4), find("loss"), [TREE, release_of(DecisionTreeClassifier(), "tree")], wine, HERE)

    def test_a_claim_about_nobody_is_refused_before_anything_is_fitted(self, wine, monkeypatch):
        monkeypatch.setattr(type(TREE), "observe", lambda *_: pytest.fail("a model was fitted"))
        plan = claiming(ClaimPlan(eta=0.1, model="trees"))
        with pytest.raises(ValueError, match="a claim is about 'trees', which is no model here: tree"):
            play(plan, find("loss"), [TREE], wine, HERE)

    def test_repeated_points_are_noted(self):
        x = np.random.default_rng(0).normal(size=(20, 2))
        points = from_arrays(np.concatenate([x, x[:3]]), np.r_[np.arange(20) % 2, 0, 1, 0])
        report = play(AuditPlan(n_models=4), find("loss"), [TREE], Data(points, "d"), HERE)
        (note,) = report.about.notes
        assert note == (
            "3 of 23 points repeat an earlier one in all features and the label; if they are rows of the same unit, "
            "name its column as group (--group), else remove the repeats"
        )

    def test_rows_and_their_units_are_counted(self):
        x = np.random.default_rng(0).normal(size=(24, 2))
        points = from_arrays(x, np.arange(24) % 2, np.arange(24) % 20)
        (release,) = play(AuditPlan(n_models=4), find("loss"), [TREE], Data(points, "d"), HERE).about.releases
        assert (release.data.records, release.units) == (24, 20)

    def test_what_cannot_be_stored_is_noted_where_there_is_a_store(self, wine, tmp_path):
        bare = release_of(make_pipeline(FunctionTransformer(lambda x: x), DecisionTreeClassifier()), "bare")
        stored = play(AuditPlan(n_models=4), find("loss"), [bare], wine, Execution(tmp_path, 1))
        assert stored.about.notes == ("bare is not stored: a lambda has no name to find it by",)
        assert play(AuditPlan(n_models=4), find("loss"), [bare], wine, HERE).about.notes == ()

    @pytest.mark.slow
    def test_the_same_report_from_the_store(self, wine, tmp_path):
        first, again = (
            play(AuditPlan(n_models=4), find("loss"), [TREE], wine, Execution(tmp_path, 1)) for _ in range(2)
        )
        assert first.about.execution == ExecutionFacts(reused=0, made=4)
        written, last = again.about.execution.first_written, again.about.execution.last_written
        assert again.about.execution == ExecutionFacts(reused=4, made=0, first_written=written, last_written=last)
        day, clock, zone = written.split()
        seconds = datetime.now(UTC) - datetime.fromisoformat(f"{day}T{clock}+00:00")
        assert zone == "UTC"
        assert -timedelta(seconds=1) < seconds < timedelta(minutes=10)
        when = written if written == last else f"{written} to {last}"  # to the minute
        line = f"Models: 4 came from the store (written {when}), 0 were made in this run."
        assert line in " ".join(again.table(full=True).split())
        assert line in " ".join(again.table().split())
        assert line in again.to_html()
        plain = play(AuditPlan(n_models=4), find("loss"), [TREE], wine, HERE)
        assert plain.about.execution is None
        for each in (first, again):
            about = each.about.model_copy(update={"execution": None})
            assert replace(each, about=about).to_json() == plain.to_json()


class TestSample:
    """A random sample of the records is attacked, in models of all of them."""

    def test_the_models_are_those_of_an_audit_of_all(self, wine, tmp_path):
        execution = Execution(tmp_path, 1)
        plan = AuditPlan(n_models=8, attacks=("loss",))
        play(plan, find(("loss",)), [TREE], wine, execution)
        sampled = plan.model_copy(update={"game": ls.HalfSplit(sample=40)})
        report = play(sampled, find(("loss",)), [TREE], wine, Execution(tmp_path, 1))
        assert (report.about.execution.reused, report.about.execution.made) == (8, 0)
        facts = report.about.releases[0]
        assert (facts.target_points, facts.sampled_from, facts.data.records) == (40, 178, 178)
        assert set(report.records()["record"]) == set(
            draw(sampled.game, 8, wine.points, find(("loss",)), 0).target_points
        )

    def test_the_report_says_so(self, wine):
        plan = AuditPlan(n_models=8, attacks=("loss",), game=ls.HalfSplit(sample=40))
        report = play(plan, find(("loss",)), [TREE], wine, HERE)
        text = " ".join(report.table().split())
        assert "Membership audit · a random sample of 40 of 178 records · 1 model trained 8 times" in text
        assert round(np.sqrt((1 - 39 / 178) * np.log(40) / 80), 2) == 0.19
        assert "differs from that of the sample by at most 0.19 (confidence 0.95; Serfling 1974)" in text
        assert "a random sample of 40 of 178 records" in report.to_html()

    def test_persons_are_drawn(self):
        x, y = data.load("wine").points.x, data.load("wine").points.y
        persons = from_arrays(x, y, group=np.arange(178) // 2)
        plan = AuditPlan(n_models=8, attacks=("loss",), game=ls.HalfSplit(sample=30), unit="person")
        report = play(plan, find(("loss",)), [TREE], Data(persons, "arrays"), HERE)
        assert (report.about.releases[0].target_points, report.about.releases[0].sampled_from) == (30, 89)
        assert "a random sample of 30 of 89 people" in " ".join(report.table().split())
