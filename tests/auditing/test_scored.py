"""Audits of what a score sees: in every way in which a classifier is audited."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

import leakbound as ls
from leakbound.auditing.api import fill_store, run
from leakbound.auditing.dry_run import dry_run
from leakbound.core.reasons import REASONS
from leakbound.plans.audits import AuditPlan

X = np.random.default_rng(0).normal(size=(120, 12))
Y = np.arange(120) % 3
HERE = "tests.auditing.test_scored"


def train(X, seed):
    return PCA(6, random_state=seed).fit(X)


def closeness(pca, X):
    """Minus the squared error with which a record is restored."""
    return -np.square(pca.inverse_transform(pca.transform(X)) - X).sum(axis=1)


def distance(pca, X):
    return -closeness(pca, X)


def keep(X, y, seed):
    return X


def same_row(kept, X, y):
    return (X[:, None] == kept).all(axis=2).any(axis=1)


def values(report, quantity):
    return {f.attack: f.value for f in report.findings if f.quantity == quantity and f.attack and not f.scope.is_part}


@pytest.fixture(scope="module")
def report():
    return ls.audit(train, X, score=closeness, n_models=8, n_jobs=1)


@pytest.fixture
def plan(tmp_path: Path) -> AuditPlan:
    pd.DataFrame(X, columns=[f"c{k}" for k in range(12)]).to_csv(tmp_path / "t.csv", index=False)
    model = {"spec": f"{HERE}:train"}
    return AuditPlan(data=str(tmp_path / "t.csv"), model=[model], score=f"{HERE}:closeness", n_models=8)


def test_the_attacks_are_those_that_read_the_score(report):
    assert set(values(report, "auc")) == {"score", "mast", "lira", "rmia"}
    assert values(report, "auc")["rmia"] > 0.8
    assert report.about.releases[0].description == "train(X), seen by closeness"


def test_what_needs_predictions_says_so(report):
    (quality,) = [f for f in report.findings if f.quantity == "test_accuracy"]
    assert (quality.value, quality.reason.id) == (None, "needs_predictions")
    gap = ls.audit(train, X, score=closeness, n_models=4, attacks="all", n_jobs=1)
    assert {f.attack for f in gap.findings if f.attack} == {
        "score", "mast", "lira", "lira_offline", "rmia", "rmia_offline",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("game", "said"),
    [
        (ls.Attribute("x0", bins=2), "an audit of an attribute"),
        (ls.Canaries("mislabelled", 10), "mislabelled canaries"),
    ],
)
def test_games_about_predictions_are_refused_with_the_reason(game, said):
    with pytest.raises(ValueError, match=f"keep: {said}: {REASONS['needs_predictions']}"):
        ls.audit(keep, X, Y, score=same_row, game=game, n_models=4, n_jobs=1)


def test_queries_are_about_predictions():
    with pytest.raises(ValueError, match="queries asks what models predict"):
        ls.audit(train, X, score=closeness, game=ls.HalfSplit(queries=4), n_models=4)


def test_a_named_attack_that_reads_predictions_is_refused_before_the_models_are_trained():
    trained = []

    def counted(X, seed):
        trained.append(seed)
        return train(X, seed)

    with pytest.raises(ValueError, match="attack 'gap' cannot run: needs the signal correct"):
        ls.audit(counted, X, score=closeness, attacks=["gap"], n_models=8, n_jobs=1)
    assert len(trained) == 1


def test_workers_change_nothing(report):
    again = ls.audit(train, X, score=closeness, n_models=8, n_jobs=2)
    assert values(again, "auc") == values(report, "auc")


def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(plan, tmp_path):
    whole = run(plan, store=tmp_path / "whole", n_jobs=1, allow_modules=HERE)
    filled = fill_store(plan, store=tmp_path / "half", chunks=range(3), n_jobs=1, allow_modules=HERE)
    assert (filled.n_made, filled.n_missing) == (3, 5)
    resumed = run(plan, store=tmp_path / "half", n_jobs=1, allow_modules=HERE)
    texts = [json.loads(each.to_json()) for each in (whole, resumed)]
    for text in texts:
        text["about"].pop("execution")  # how many models came from the store
        text.pop("sha256")
    assert texts[0] == texts[1]


def test_another_score_is_another_training(plan, tmp_path):
    store = tmp_path / "store"
    fill_store(plan, store=store, n_jobs=1, allow_modules=HERE)
    for score, n_made in (("closeness", 0), ("distance", 8), ("LOSS", 8)):
        other = plan.model_copy(update={"score": f"{HERE}:{score}"})
        assert fill_store(other, store=store, n_jobs=1, allow_modules=HERE).n_made == n_made
    assert any("another score trains all models anew" in line for line in dry_run(plan))


LOSS = ls.Loss(distance)
CLAIM = "epsilon=1,delta=1e-5,adjacency=replace_one"


def test_a_function_that_cannot_be_followed_is_not_stored_with_the_reason(tmp_path):
    made = ls.audit(train, X, score=lambda pca, X: closeness(pca, X), n_models=4, n_jobs=1, store=tmp_path / "store")
    assert "train is not stored: a lambda has no name to find it by" in made.about.notes


def test_a_plan_runs_no_score_that_is_not_allowed(plan):
    assert f"{HERE}:closeness" in plan.import_paths
    with pytest.raises(ValueError, match="allow_modules"):
        run(plan, n_jobs=1)


def test_records_slices_and_groups():
    frame = pd.DataFrame(X).assign(town=np.where(np.arange(120) < 60, "Chur", "Bern"))

    def numbers(frame, y, seed):
        return train(frame.drop(columns="town").to_numpy(), seed)

    def score(pca, frame):
        return closeness(pca, frame.drop(columns="town").to_numpy())

    game = ls.HalfSplit(slices="town")
    made = ls.audit(numbers, frame, Y, score=score, game=game, n_models=16, n_jobs=1)
    assert {f.scope.name for f in made.findings if f.scope.kind == "slice"} >= {"town = Bern", "town = Chur"}
    assert len(made.records()) == 108
    people = ls.audit(numbers, frame, Y, score=score, groups=np.arange(120) // 2, n_models=8, n_jobs=1)
    assert people.about.releases[0].units == 60


def test_claims_and_policies():
    claimed = ls.audit(keep, X, Y, score=same_row, n_models=16, claims=CLAIM, policy="research", n_jobs=1)
    assert any(curve.verdict is not None and curve.verdict.word == "refuted" for curve in claimed.curves)
    assert claimed.about.decisions[0].verdict == "do_not_release"


def test_a_copy_is_told_in_every_game():
    assert values(ls.audit(keep, X, Y, score=same_row, n_models=8, n_jobs=1), "auc")["score"] == 1


def test_a_loss_is_read_as_a_loss():
    made = ls.audit(train, X, score=ls.Loss(distance), n_models=8, n_jobs=1)
    assert set(values(made, "auc")) == {"loss", "mast", "lira", "rmia"}
    assert not [f for f in made.findings if f.quantity == "test_r2" and f.value is not None]


def test_the_wrong_sign_is_said():
    made = ls.audit(train, X, score=distance, n_models=16, n_jobs=1)
    assert any("members have the lower scores, beyond chance" in note for note in made.about.notes)
    right = ls.audit(train, X, score=closeness, n_models=16, n_jobs=1)
    assert not any("lower scores" in note for note in right.about.notes)


def test_the_origin_of_a_score_takes_none_of_its_digits(report, tmp_path):
    def far(pca, X):
        return closeness(pca, X) - 1e10

    made = ls.audit(train, X, score=far, n_models=8, n_jobs=1, store=tmp_path / "store")
    assert values(made, "auc")["rmia"] == pytest.approx(values(report, "auc")["rmia"], abs=1e-3)


def test_a_score_that_is_the_same_everywhere_is_no_reassurance():
    made = ls.audit(train, X, score=lambda pca, X: np.zeros(len(X)), n_models=8, n_jobs=1)
    assert not values(made, "tpr")
    page = made.to_html()
    assert "tells nothing of who was in" in page
    assert "None of the attacks could be played" in page
    assert "found no leak" not in page


class TestOneModel:
    def test_records_without_labels(self):
        made = ls.audit_model(train(X[:60], 0), X[:60], X[60:], score=closeness)
        assert values(made, "auc")["score"] > 0.7
        assert made.about.releases[0].description == "model, seen by closeness"

    def test_references_of_its_recipe(self):
        fitted = ls.Fitted(train, 8)
        made = ls.audit_model(train(X[:60], 0), X[:60], X[60:], score=closeness, references=fitted)
        assert set(values(made, "auc")) == {"score", "mast", "lira", "rmia"}

    def test_a_pair_has_labels(self):
        made = ls.audit_model(X[:60], (X[:60], Y[:60]), (X[60:], Y[60:]), score=same_row)
        assert values(made, "auc")["score"] == 1

    def test_x_alone_needs_a_score(self):
        with pytest.raises(ValueError, match=r"members must be a pair \(X, y\).*X alone needs score=fn"):
            ls.audit_model(KMeans(2).fit(X), X[:60], X[60:])

    def test_what_is_about_predictions_is_refused(self):
        with pytest.raises(ValueError, match="classes, layers and collate are of predictions"):
            ls.audit_model(train(X, 0), X[:60], X[60:], score=closeness, classes=[0, 1])


@pytest.mark.parametrize("model", [train, KMeans(2), PCA(2), object()])
def test_without_predictions_and_labels_the_error_names_the_score(model):
    with pytest.raises(ValueError, match="score=fn"):
        ls.audit(model, X)


def test_a_model_that_returns_no_predictions_names_the_score():
    def returns_a_dictionary(X, y, seed):
        return {"X": X}

    with pytest.raises(ValueError, match="score=fn"):
        ls.audit(returns_a_dictionary, X, Y, n_models=4, n_jobs=1)
    with pytest.raises(ValueError, match="score=fn"):
        ls.audit_model({"X": X}, (X[:60], Y[:60]), (X[60:], Y[60:]))
