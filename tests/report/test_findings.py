import pytest

from leakscope.findings import Finding
from leakscope.report.findings import groups, row
from leakscope.report.results import results
from tests.report.made import made


def printed(finding, **about):
    result = results(made(about=about or None))[0]
    shown = row(result, finding)
    return (str(shown.quantity), shown.value, shown.interval, shown.side, shown.status)


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (
            Finding(
                "epsilon",
                5.769,
                5.769,
                float("inf"),
                at={"delta": 1e-5},
                side="lower",
                attack="lira",
                confidence=0.95,
            ),
            (
                "ε of any guarantee, δ = 10<sup>\u22125</sup>",
                "≥\u202f5.76",
                "5.76 or more",
                "lower bound",
                "measured, LiRA",
            ),
        ),
        (
            Finding(
                "success",
                0.913,
                0.9112,
                0.9148,
                at={"prior": 0.5},
                side="lower",
                attack="lira",
                confidence=0.95,
            ),
            ("Success of LiRA, prior\u00a0½", "91.3 of 100", "91.1 to 91.5", "lower bound", "measured"),
        ),
        (
            Finding(
                "tpr",
                0.654,
                0.643,
                0.668,
                at={"fpr": 0.01},
                attack="lira",
                detail={"fpr": 0.0096},
                confidence=0.99,
            ),
            (
                "TPR of LiRA at FPR\u00a01\u202f%",
                "65\u202f%",
                "64 to 67\u202f%",
                "estimate",
                "measured, at 99\u202f%, realised FPR 0.96\u202f%",
            ),
        ),
        (
            Finding(
                "most_exposed",
                1.0,
                0.85123,
                1.0,
                detail={"won": 64, "games": 64},
                side="lower",
                confidence=0.95,
            ),
            (
                "Success, most exposed record",
                "64 of 64 games",
                "85 to 100 of 100",
                "lower bound",
                "measured, all records at once",
            ),
        ),
        (
            Finding("average_precision", 0.7, None, None, at={"inside": 0.0}, attack="gap"),
            ("Average precision of gap, non-members", "0.7000", "none", "estimate", "measured"),
        ),
        (
            Finding("eta", 0.2, side="upper", status="certified", confidence=0.95, attack="gap"),
            ("Gain over guessing of gap", "0.2000", "exact", "upper bound", "certified at 95\u202f%"),
        ),
        (
            Finding("tpr", None, at={"fpr": 1e-5}, reason="48,000 games reach FPR 0.021 %", attack="lira"),
            (
                "TPR of LiRA at FPR\u00a00.001\u202f%",
                "—",
                "—",
                "not resolvable",
                "48,000 games reach FPR 0.021\u202f%",
            ),
        ),
        (
            Finding("auc", None, reason="needs at least 2 references in and out", attack="lira"),
            (
                "Area under the curve, LiRA",
                "—",
                "—",
                "not applicable",
                "needs at least 2 references in and out",
            ),
        ),
    ],
)
def test_rows(finding, expected):
    assert printed(finding) == expected


def test_the_source_is_that_of_the_finding_or_of_its_attack():
    result = results(made())[0]
    assert row(result, Finding("auc", 0.5, attack="lira")).source == "Carlini et al. 2022"
    assert row(result, Finding("auc", 0.5, attack="lira", source="DeLong et al. 1988")).source == "DeLong et al. 1988"


def test_keys_of_the_bibliography_are_read_as_names():
    result = results(made())[0]
    assert row(result, Finding("auc", 0.5, source="yeom2018, eq. 2; song2021")).source == "Yeom 2018, eq. 2; Song 2021"


def test_order_of_a_release():
    def found(quantity, attack, low, **at):
        return Finding(quantity, low, low, low, at=at, release="forest", attack=attack)

    report = made(
        findings=(
            found("tpr", "gap", 0.1, fpr=0.001),
            found("tpr", "gap", 0.1, fpr=0.01),
            found("auc", "gap", 0.95),
            found("success", "gap", 0.95, prior=0.5),
            found("epsilon", "gap", 1.0, delta=0.0),
        )
    )
    names = [str(row.quantity) for row in groups(results(report))[0].rows]
    assert names == [
        "ε of any guarantee, δ = 0",
        "Success of gap, prior\u00a0½",
        "Area under the curve, gap",
        "TPR of gap at FPR\u00a01\u202f%",
        "TPR of gap at FPR\u00a00.1\u202f%",
        "Success of LiRA, prior\u00a0½",
    ]


def test_rates_without_a_value_for_one_reason_share_a_row():
    def refused(quantity, fpr, reason="one point, at FPR 95 %", **at):
        return Finding(quantity, None, at={"fpr": fpr} | at, reason=reason, release="forest", attack="gap")

    found = (
        refused("tpr", 0.01),
        refused("tpr", 0.001),
        refused("ppv", 0.01, prior=0.5),
        refused("ppv", 0.001, reason="other", prior=0.5),
    )
    names = [str(row.quantity) for row in groups(results(made(findings=found)))[0].rows[1:]]
    assert names == [
        "TPR of gap at FPR\u00a01\u202f% and 0.1\u202f%",
        "PPV of gap at FPR\u00a01\u202f%, prior\u00a0½",
        "PPV of gap at FPR\u00a00.1\u202f%, prior\u00a0½",
    ]
