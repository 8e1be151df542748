"""One model that cannot be fitted does not stop the audit of the others."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.cli import gates
from leakbound.reports import Report

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


class Fails(DecisionTreeClassifier):
    """A classifier that fails as a whole, or only in the audit itself: on more points than a trial has."""

    def __init__(self, at_most=0):
        super().__init__()
        self.at_most = at_most

    def fit(self, X, y):
        if len(X) > self.at_most:
            raise RuntimeError("the value 'Ann' is wrong")
        return super().fit(X, y)


def audited(models, **options):
    return ls.audit(models, X, Y, n_models=4, attacks=["loss"], n_jobs=1, **options)


TREES = {"first": DecisionTreeClassifier(max_depth=1), "last": DecisionTreeClassifier()}


@pytest.mark.by_day("in the audit")
@pytest.mark.parametrize("at_most", [0, 25], ids=["in its trial", "in the audit"])
def test_the_others_are_reported_and_it_is_named(at_most, tmp_path):
    models = {"first": TREES["first"], "middle": Fails(at_most), "last": TREES["last"]}
    report, alone = audited(models), audited(TREES)
    assert [release.name for release in report.about.releases] == ["first", "last"]
    assert report.findings == alone.findings
    ((name, why),) = report.about.failed.items()
    assert name == "middle"
    assert "the value 'Ann' is wrong" in why
    for text in (report.table(), report.to_html()):
        assert "middle could not be audited" in text
    assert gates.exit_code(report) == 1
    report.to_json(tmp_path / "report.json")
    assert Report.from_json(tmp_path / "report.json").about.failed == report.about.failed
    assert "middle could not be audited" in report.without_records().table()
    assert "Ann" not in report.to_html(publish=True) + report.to_json(publish=True)


def test_a_claim_about_it_and_a_policy_are_not_forgotten():
    models = {"middle": Fails(), **TREES}
    report = audited(models, claims=[{"model": "middle", "eta": 0.1}])
    assert report.about.failed.keys() == {"middle"}
    judged = audited(models, policy={"limits": ["auc=0.9"], "attacks": ["loss"]})
    assert "middle: the policy has no verdict: it could not be audited" in gates.failures(judged)


@pytest.mark.parametrize("models", [Fails(), {"a": Fails(), "b": Fails()}], ids=["one", "all"])
def test_without_another_model_it_is_an_error(models):
    with pytest.raises((RuntimeError, ValueError), match="the value 'Ann' is wrong"):
        audited(models)
