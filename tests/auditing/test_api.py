"""Audits from end to end, on data small enough to see through."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.attacks import ATTACKS
from leakbound.core.reasons import words
from leakbound.core.signals import SCORES
from tests.results import of_the_result


def _value(report: ls.Report, attack: str, quantity: str = "auc") -> float:
    found = [each.value for each in report.findings if each.attack == attack and each.quantity == quantity]
    assert found[0] is not None
    return found[0]


@pytest.fixture(scope="module")
def noisy() -> tuple[np.ndarray, np.ndarray]:
    """Labels that only memory can get right: a nearest neighbour gives its members away."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(240, 8)), rng.integers(0, 2, size=240)


@pytest.fixture(scope="module")
def memorised(noisy) -> ls.Report:
    return ls.audit(DecisionTreeClassifier(), *noisy, n_models=16, attacks="all", n_jobs=1)


def test_memorised_labels_are_found_by_every_attack_that_can_see_them(memorised) -> None:
    # a tree is as sure of itself on points that it has never seen, and has no gradients; three attack statistics, and
    # two count the labels of several queries
    blind = {"confidence", "gradient_norm", "matt", "likelihood_ratio", "glir", "scalar_product"}
    blind |= {"label_only", "label_only_lira", *SCORES}
    for name in ATTACKS.keys() - blind:
        assert _value(memorised, name) > 0.6, name


@pytest.mark.slow
def test_planted_leak_in_the_data_of_a_real_release() -> None:
    """Mislabelled and duplicated points: the mislabelled ones are exposed, the duplicated ones are not."""
    X, y = make_classification(300, 6, n_informative=4, class_sep=2.0, random_state=0)
    flipped = np.arange(20)
    y = y.copy()
    y[flipped] = 1 - y[flipped]
    report = ls.audit(
        KNeighborsClassifier(1), X, y, n_models=24, n_jobs=1, attacks=["lira", "rmia", "mast", "loss", "gap"]
    )
    records = report.records().set_index("record")
    won = records["won"]
    played = won.index.isin(flipped)
    assert won[played].mean() > 0.9 * 24
    assert won[played].mean() > won[~played].mean() + 5
    twice = np.r_[np.arange(300), np.arange(300)]
    copied = ls.audit(KNeighborsClassifier(1), X[twice], y[twice], n_models=24, n_jobs=1, attacks=["lira", "loss"])
    assert _value(copied, "lira", "accuracy") < _value(report, "lira", "accuracy")
    repeated = "300 of 600 points repeat an earlier one in all features and the label"
    assert any(note.startswith(repeated) for note in copied.about.notes)


@pytest.mark.slow
def test_same_plan_and_seed_same_bytes(noisy, tmp_path) -> None:
    few = tuple(each[:80] for each in noisy)

    def audited(**words) -> str:
        return of_the_result(ls.audit(DecisionTreeClassifier(), *few, n_models=4, **words).to_json())

    one, two, stored, again = (
        audited(n_jobs=n_jobs, store=store) for n_jobs, store in ((1, None), (2, None), (1, tmp_path), (1, tmp_path))
    )
    assert one == two == stored == again
    assert audited(n_jobs=1, seed=1) != one


def test_report_survives_its_json(memorised, tmp_path) -> None:
    memorised.to_json(tmp_path / "report.json")
    again = ls.Report.from_json(tmp_path / "report.json")
    assert again.to_json() == memorised.to_json()
    assert again.digest() == memorised.digest()
    assert again.curve("lira").fnr(0.1) == memorised.curve("lira").fnr(0.1)


@pytest.mark.by_day("margins")
@pytest.mark.parametrize(
    ("estimator", "silent"),
    [
        (RandomForestClassifier(5), set()),
        (HistGradientBoostingClassifier(max_iter=5), set()),
        (make_pipeline(StandardScaler(), LogisticRegression()), set()),
        (LinearSVC(), {"loss", "confidence", "entropy", "mast", "rmia"}),
        (Ridge(), {"gap", "confidence", "entropy"}),
    ],
    ids=["forest", "boosting", "pipeline", "margins", "regressor"],
)
def test_what_a_release_cannot_give_becomes_a_reason(estimator, silent, noisy) -> None:
    X, y = noisy
    report = ls.audit(estimator, X, y + X[:, 0] if isinstance(estimator, Ridge) else y, n_models=4, n_jobs=1)
    quiet = {
        each.attack for each in report.findings if each.quantity == "accuracy" and each.value is None and each.attack
    }
    assert quiet == silent
    assert all(each.reason for each in report.findings if each.value is None)
    assert report.table()


@pytest.mark.slow
def test_text_labels_and_mixed_tables() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 120).astype(float), "town": rng.choice(list("abc"), 120)})
    frame.loc[3, "age"] = np.nan
    y = np.where(rng.random(120) < 0.5, "yes", "no")
    report = ls.audit(HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2), frame, y, n_models=8, n_jobs=1)
    assert set(report.records()["label"]) == {"yes", "no"}
    previews = [each for each in report.records(details=True)["preview"] if each]
    assert not {"preview", "member", "log_odds"} & set(report.records())
    assert set(previews[0]["fields"]) == {"age", "town"}


@pytest.mark.slow
def test_groups_are_the_unit(noisy) -> None:
    X, y = noisy
    person = np.repeat(np.arange(80), 3)
    report = ls.audit(DecisionTreeClassifier(), X, y, n_models=16, n_jobs=1, groups=person, page=ls.Page(unit="person"))
    facts = report.about.releases[0]
    assert facts.target_points == len(report.records()) == 72  # a tenth of the persons is set aside
    single = ls.audit(DecisionTreeClassifier(), X, y, n_models=16, n_jobs=1)
    assert _value(report, "lira") > _value(single, "lira")  # three rows say more than one


@pytest.mark.slow
def test_several_releases_share_one_page(noisy) -> None:
    named = {"tree": DecisionTreeClassifier(), "line": LogisticRegression()}
    report = ls.audit(named, *noisy, n_models=8, n_jobs=1, claims="epsilon=1,adjacency=replace_one")
    assert [each.name for each in report.about.releases] == ["tree", "line"]
    assert {each.release for each in report.curves if each.verdict} == {"tree", "line"}
    assert set(report.records()["release"]) == {"tree", "line"}


@pytest.mark.slow
def test_one_trained_model(noisy) -> None:
    X, y = noisy
    model = DecisionTreeClassifier(random_state=0).fit(X[:120], y[:120])
    alone = ls.audit_model(model.predict_proba, (X[:120], y[:120]), (X[120:], y[120:]))
    assert {each.interval_over for each in alone.findings if each.value is not None} <= {"points", "none"}
    assert [each.reason for each in alone.findings if each.attack == "lira"] != [None]
    helped = ls.audit_model(
        model.predict_proba, (X[:120], y[:120]), (X[120:], y[120:]), references=DecisionTreeClassifier(), n_jobs=1
    )
    for name in ("lira", "rmia", "mast"):
        assert _value(helped, name) > 0.6, name
    facts = helped.about.releases[0]
    assert (facts.targets, facts.references, facts.population) == (1, 16, 12)


@pytest.mark.slow
def test_records_on_both_sides_are_counted() -> None:
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    model = DecisionTreeClassifier(random_state=0).fit(X[:100], y[:100])
    report = ls.audit_model(model.predict_proba, (X[:100], y[:100]), (X[90:], y[90:]))
    assert report.about.notes == ("10 of the others are among the members too",)
    assert "10 of the others are among the members too.\n" in report.table()


def test_scores_from_anywhere() -> None:
    rng = np.random.default_rng(0)
    member = rng.random((12, 300)) < 0.5
    report = ls.audit_scores(rng.normal(2.0 * member), member, claims="epsilon=0.1,adjacency=replace_one")
    assert _value(report, "scores") == pytest.approx(0.921, abs=0.02)  # Phi(2 / sqrt 2)
    assert next(each.verdict.word for each in report.curves if each.verdict) == "refuted"
    assert len(report.records()) == 300


def test_per_datum_game_gives_an_epsilon_from_independent_models() -> None:
    X, y = make_classification(200, 4, n_informative=4, n_redundant=0, class_sep=3.0, random_state=0)
    y = y.copy()
    y[5] = 1 - y[5]  # only a model that has seen it gets it right
    game = ls.PerDatum(5, references=16)
    report = ls.audit(DecisionTreeClassifier(), X, y, n_models=60, n_jobs=1, attacks=["loss", "lira"], game=game)
    bound = next(each for each in report.findings if each.quantity == "epsilon")
    assert bound.source.startswith("kairouz2015")
    assert bound.detail["unit"] == "target models"
    assert bound.value is not None
    assert bound.value > 0.3
    facts = report.about.releases[0]
    assert (facts.targets, facts.references, facts.target_points) == (60, 16, 1)


def test_average_datum_and_canaries(noisy) -> None:
    average = ls.audit(
        DecisionTreeClassifier(), *noisy, n_models=40, n_jobs=1, attacks=["loss"], game=ls.AverageDatum()
    )
    assert _value(average, "loss") > 0.6
    planted = ls.Canaries(targets=tuple(range(40)))
    report = ls.audit(DecisionTreeClassifier(), *noisy, n_models=8, n_jobs=1, attacks=["loss", "lira"], game=planted)
    bound = next(each for each in report.findings if each.quantity == "epsilon")
    assert bound.detail["unit"] == "coins_of_records"
    assert report.about.releases[0].sampling == "poisson"


def test_given_attack_with_parameters(noisy) -> None:
    report = ls.audit(
        DecisionTreeClassifier(),
        *noisy,
        n_models=8,
        n_jobs=1,
        attacks=["loss", ATTACKS["lira"].with_parameters(variance="pooled")],
    )
    assert "lira(variance=pooled)" in report.about.attacks
    assert _value(report, "lira(variance=pooled)") > 0.6


def test_words_are_checked(noisy) -> None:
    with pytest.raises(TypeError, match="audit: unknown keyword 'atacks' \\(did you mean 'attacks'"):
        ls.audit(DecisionTreeClassifier(), *noisy, atacks="loss")  # pyright: ignore[reportCallIssue] -- the point of the test
    with pytest.raises(TypeError, match=r"^audit takes no n_canaries; use game=Canaries\(n=\.\.\.\)$"):
        ls.audit(DecisionTreeClassifier(), *noisy, n_canaries=9)  # pyright: ignore[reportCallIssue] -- an old word
    with pytest.raises(ValueError, match="which is no model here"):
        ls.audit(
            DecisionTreeClassifier(), *noisy, n_models=4, n_jobs=1, claims=ls.plans.ClaimPlan(eta=0.1, model="forest")
        )


def test_words_that_a_call_would_not_read_are_refused(noisy) -> None:
    with pytest.raises(TypeError, match="audit: unknown keyword 'dataset'"):
        ls.audit(DecisionTreeClassifier(), *noisy, dataset="wine", label="foo")
    with pytest.raises(TypeError, match="audit_scores: unknown keyword 'game'"):
        ls.audit_scores(np.zeros((2, 8)), np.tile(np.arange(8) < 4, (2, 1)), game="canaries")


def test_scores_and_memberships_of_different_shapes(as_users_run_it) -> None:
    with pytest.raises(ValueError, match="value has shape \\(2, 50\\), member \\(1, 50\\)"):
        ls.audit_scores(np.zeros((2, 50)), np.arange(50) < 25)


def test_rare_members_are_compared_with_the_prior_guess() -> None:
    """Noise at a prior of .1: calling nobody wins 90 of 100 games, and exposes nobody."""
    rng = np.random.default_rng(0)
    member = rng.random((40, 50)) < 0.1
    report = ls.audit_scores(rng.normal(size=member.shape), member, claims="accuracy=0.95", references_are="none")
    assert report.about.releases[0].games.exposed == 0
    claimed = next(curve for curve in report.curves if curve.verdict)
    assert claimed.verdict.allowed == pytest.approx(0.95 - (1 - member.mean()))
    with pytest.raises(ValueError, match=r"accuracy from 0\.89"):
        ls.audit_scores(rng.normal(size=member.shape), member, claims="accuracy=0.6")


def test_two_models_leave_nothing_to_test_a_claim_with(noisy) -> None:
    report = ls.audit(DecisionTreeClassifier(), *noisy, n_models=2, n_jobs=1, attacks=["loss"], claims="eta=0.1")
    verdict = next(curve.verdict for curve in report.curves if curve.verdict)
    assert verdict.word == "cannot_be_tested"
    assert "needs at least 4" in words(verdict.reason)


def test_references_of_another_size_are_said() -> None:
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    model = DecisionTreeClassifier(random_state=0).fit(X[:150], y[:150])
    sides = (X[:150], y[:150]), (X[150:], y[150:])
    report = ls.audit_model(model.predict_proba, *sides, references=ls.Fitted(DecisionTreeClassifier(), n=4), n_jobs=1)
    assert any(
        "The references are fitted on 88 points, the audited model on 150" in note for note in report.about.notes
    )
