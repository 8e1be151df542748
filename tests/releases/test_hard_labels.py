"""Models that answer with labels, text or numbers, are audited alike wherever they are given."""

import numpy as np
import pytest
from sklearn.ensemble import VotingClassifier
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
WHOLE = (X[:, 0] + RNG.normal(size=80) > 0).astype(int)
LABELS = [WHOLE, np.where(WHOLE, "yes", "no"), WHOLE.astype(bool)]


class Answers:
    """What a library without scikit-learn's interface returns: an object with predict and nothing else."""

    def __init__(self, model):
        self.inner = model

    def predict(self, rows):
        return self.inner.predict(rows)


def tree(X, y, seed):
    return DecisionTreeClassifier(random_state=seed).fit(X, y)


def right(report):
    of_all = [finding for finding in report.findings if not finding.scope.is_part]
    (gap,) = [finding for finding in of_all if (finding.quantity, finding.attack) == ("accuracy", "gap")]
    return gap.value


FORMS = {
    "object": Answers,
    "method": lambda model: model.predict,
    "function": lambda model: lambda rows: model.predict(rows),
    "labels only": ls.releases.LabelsOnly,
    "labels of an object": lambda model: ls.releases.LabelsOnly(Answers(model)),
}


@pytest.mark.parametrize("y", LABELS, ids=["numbers", "text", "truth values"])
@pytest.mark.parametrize("form", FORMS)
class TestEveryForm:
    @pytest.mark.by_day("labels of an object-numbers", "labels of an object-truth values")
    def test_what_a_training_function_returns(self, form, y):
        """The gap attack is right as often as of the same trees with probabilities, whose labels are these."""
        seen = right(
            ls.audit(lambda X, y, seed: FORMS[form](tree(X, y, seed)), X, y, n_models=4, attacks=["gap"], n_jobs=1)
        )
        known = ls.audit(tree, X, y, n_models=4, attacks=["gap"], n_jobs=1)
        assert seen == right(known)

    @pytest.mark.by_day("method-numbers", "function-text")
    def test_a_trained_model(self, form, y):
        model = tree(X[:40], y[:40], 0)
        halves = {"members": (X[:40], y[:40]), "others": (X[40:], y[40:])}
        seen = right(ls.audit_model(FORMS[form](model), **halves, attacks=["gap"], n_jobs=1))
        assert seen == right(ls.audit_model(model, **halves, attacks=["gap"], n_jobs=1))


@pytest.mark.parametrize("y", LABELS[:2])
def test_a_vote_of_labels_has_no_probabilities(y):
    vote = VotingClassifier([("tree", DecisionTreeClassifier(random_state=0))])
    report = ls.audit(vote, X, y, n_models=4, n_jobs=1)
    assert right(report) > 0.5
    assert {finding.attack for finding in report.findings if finding.value is not None and finding.attack} == {"gap"}
    assert "Not run: Loss (MALT), MAST and RMIA: needs the signal loss" in " ".join(report.table(full=True).split())


def test_probabilities_that_happen_to_be_0_and_1_stay_probabilities():
    model = tree(X[:40], WHOLE[:40], 0)
    report = ls.audit_model(lambda rows: model.predict_proba(rows)[:, 1], (X[:40], WHOLE[:40]), (X[40:], WHOLE[40:]))
    assert any(f.attack == "loss" and f.value is not None for f in report.findings)
