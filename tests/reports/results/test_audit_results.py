from leakbound.core.findings import Finding, Term
from leakbound.core.tradeoff import Piecewise
from leakbound.reports import Curve, Report
from leakbound.reports.about import GamesFacts
from leakbound.reports.results.audit.result import results
from leakbound.reports.results.quantities import shown
from tests.reports import samples
from tests.reports.made import games, lower_limit, made, spread


def one(report):
    return results(report)[0]


def test_attacks_are_ordered_by_the_lower_end():
    def accuracy(attack, value, low):
        return Finding("accuracy", value, low, 1.0, release="forest", attack=attack)

    refused = Finding("accuracy", None, reason=Term("no references"), release="forest", attack="rmia")
    found = (refused, accuracy("wide", 0.99, 0.6), accuracy("narrow", 0.93, 0.92))
    result = one(made(findings=found, facts={"best": ""}))
    assert result.attacks == ("narrow", "lira", "wide", "rmia")
    assert result.best == "narrow"
    assert result.strength == 0.92


def test_findings_are_found_by_quantity_attack_and_place():
    tpr = Finding("tpr", 0.3, operating_point={"fpr": 0.001}, release="forest", attack="lira")
    refused = Finding(
        "tpr", None, operating_point={"fpr": 1e-5}, reason=Term("too few"), release="forest", attack="lira"
    )
    result = one(made(findings=(refused, tpr)))
    assert result.find("tpr", "lira") is tpr
    assert result.find("tpr", "lira", fpr=0.001) is tpr
    assert result.find("tpr", "lira", fpr=1e-5) is None
    assert result.find("tpr", "gap") is None


def test_first_exposed_is_the_count_whose_limit_passes_one_half():
    for n, records in [(64, 1500), (16, 100), (32, 540)]:
        won = [0] * n + [records]
        first = one(made(won=won)).first_exposed
        assert lower_limit(first, n, 0.05 / records) > 0.5 >= lower_limit(first - 1, n, 0.05 / records)
    few = one(made(won=[0] * 8 + [1500]))
    assert few.first_exposed is None
    assert few.games == GamesFacts(**games([0] * 8 + [1500]))


def test_first_exposed_is_there_although_nobody_is():
    nobody = one(made(won=spread(64, w32=100)))
    assert nobody.n_exposed == 0
    assert nobody.first_exposed is not None


def test_constant_scores_are_seen_in_the_curve():
    base = made()
    flat = Curve("flat", "forest", "measured", Piecewise([1.0], [0.0]))
    perfect = Curve("perfect", "forest", "measured", Piecewise([0.0], [0.0]))
    result = one(Report(base.about, base.findings, (*base.curves, flat, perfect), {}))
    assert result.constant == {"flat"}


def test_rows_of_a_release_are_its_own():
    for result in results(samples.two_models()):
        assert set(result.records["release"]) == {result.name}
        assert len(result.records["won"]) == 1500


def test_units_of_the_numbers():
    assert shown(Finding("accuracy", 0.913, 0.9112, 0.9148)).interval == "91.1 to 91.5"
    assert shown(Finding("ppv", 0.654, 0.643, 0.668)).interval == "64 to 67"
    assert shown(Finding("epsilon", 2.9667, 2.9667)).value == "2.96"
    assert shown(Finding("auc", 0.9747, 0.9738, 0.9756)).value == "0.9747"
