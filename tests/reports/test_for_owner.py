"""Who may see what: a page with records says so on its top, and what is meant for others holds no name of a record."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import leakbound as ls

X, Y = load_wine(return_X_y=True)
CASES = np.array([f"case-{700_001 + i}" for i in range(len(Y))])
BANNER = "For the owner of the data."
POLICY = "research"


@pytest.fixture(scope="module")
def report():
    """Audit a model that exposes records by name."""
    tree = DecisionTreeRegressor(random_state=0)
    return ls.audit(tree, X[:, 1:], X[:, 0], ids=CASES, n_models=16, attacks="loss", policy=POLICY, n_jobs=1)


def test_the_page_for_the_owner_names_records_and_says_whose_it_is(report):
    page = report.to_html()
    assert "case-700" in page
    assert page.index(BANNER) < page.index('class="lede')


@pytest.mark.parametrize("write", ["to_html", "to_json"])
def test_nothing_that_is_published_names_a_record(report, write):
    content = getattr(report, write)(publish=True)
    assert "case-700" not in content
    assert "Internal" not in content
    assert BANNER not in content
    assert "Do not release" in content or "do_not_release" in content


def test_the_pdf_that_is_published_names_no_record(report, tmp_path, monkeypatch):
    pages = []
    monkeypatch.setattr("leakbound.reports.render.pdf.print_page", lambda page: pages.append(page) or b"%PDF")
    report.to_pdf(tmp_path / "owner.pdf")
    report.to_pdf(tmp_path / "researcher.pdf", publish=True)
    owner, researcher = pages
    assert BANNER in owner
    assert "case-700" in owner
    assert BANNER not in researcher
    assert "case-700" not in researcher


@pytest.mark.slow
def test_what_a_model_holds_is_not_published_by_its_place():
    rows = np.arange(0, len(Y), 2)
    others = np.arange(1, len(Y), 2)
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X[rows], Y[rows])
    model.copy_ = {"case-700001": X[rows]}
    sides = (X[rows], Y[rows]), (X[others], Y[others])
    report = ls.audit_model(model, *sides, attacks="loss", ids=CASES[np.r_[rows, others]], policy=POLICY)
    check = next(check for check in report.about.decisions[0].checks if check.check == "stores_records")
    assert (check.outcome, check.reason.id) == ("not_kept", "holds_rows")
    assert check.reason.values["n"] == len(rows)
    assert "89 rows of the training data are in copy_" in " ".join(report.to_html().split())
    published = json.loads(report.to_json(publish=True))
    checks = published["about"]["decisions"][0]["checks"]
    check = next(check for check in checks if check["check"] == "stores_records")
    assert (check["outcome"], check["reason"], check["value"]) == (
        "not_kept",
        {"id": "holds_records", "values": {}},
        None,
    )


@pytest.mark.slow
def test_a_search_that_finds_nothing_certifies_nothing():
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X[::2], Y[::2])
    report = ls.audit_model(model, (X[::2], Y[::2]), (X[1::2], Y[1::2]), attacks="loss", policy=POLICY)
    (finding,) = [finding for finding in report.findings if finding.quantity == "stores_records"]
    assert (finding.value, finding.status) == (0.0, "measured")
    page = report.to_html()
    assert "its class keeps none by construction, and nothing in it equals a row, a rare value or a name" in page
    assert "Out of reach of this search are records that are encrypted" in page
    model.notes_ = np.random.default_rng(0).normal(size=(20, 7))
    report = ls.audit_model(model, (X[::2], Y[::2]), (X[1::2], Y[1::2]), attacks="loss", policy=POLICY)
    check = next(check for check in report.about.decisions[0].checks if check.check == "stores_records")
    assert (check.outcome, check.reason.id, check.reason.values["names"]) == (
        "open",
        "unexplained_attributes",
        "notes_",
    )
