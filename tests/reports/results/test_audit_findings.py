import pytest

from leakbound.core.findings import QUANTITIES, Finding, Term
from leakbound.reports.results.audit.findings import audit_row, audit_tables
from leakbound.reports.results.audit.result import results
from leakbound.reports.sentences import sentences
from tests.reports.made import made
from tests.reports.page_reading import said


def printed(finding):
    shown = audit_row(results(made())[0], finding)
    return tuple(said(cell) for cell in (shown.quantity, shown.value, shown.interval, shown.bound_type, shown.status))


def names_of(report):
    return [said(row.quantity) for row in audit_tables(results(report))[0].rows]


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (
            Finding(
                "epsilon",
                5.769,
                5.769,
                float("inf"),
                operating_point={"delta": 1e-5},
                bound_type="lower",
                attack="lira",
                confidence=0.95,
            ),
            (
                "ε of any guarantee at δ = 10⁻⁵",
                "≥ 5.76",
                "5.76 or more",
                "lower bound",
                "measured, LiRA",
            ),
        ),
        (
            Finding(
                "accuracy",
                0.913,
                0.9112,
                0.9148,
                operating_point={"prior": 0.5},
                bound_type="lower",
                attack="lira",
                confidence=0.95,
            ),
            ("Accuracy of LiRA, prior ½", "91.3 of 100", "91.1 to 91.5", "lower bound", "measured"),
        ),
        (
            Finding(
                "tpr",
                0.654,
                0.643,
                0.668,
                operating_point={"fpr": 0.01},
                attack="lira",
                detail={"fpr": 0.0096},
                confidence=0.99,
            ),
            (
                "TPR of LiRA at FPR 1 %",
                "65 %",
                "64 to 67 %",
                "estimate",
                "measured at 99 %, realised FPR 0.96 %",
            ),
        ),
        (
            Finding(
                "most_exposed",
                1.0,
                0.85123,
                1.0,
                detail={"won": 64, "games": 64},
                bound_type="lower",
                confidence=0.95,
            ),
            (
                "Accuracy, most exposed record",
                "64 of 64 games",
                "85 to 100 of 100",
                "lower bound",
                "measured, all records at once",
            ),
        ),
        (
            Finding("average_precision", 0.7, None, None, operating_point={"inside": 0.0}, attack="gap"),
            ("Average precision of gap, non-members", "0.7000", "none", "estimate", "measured"),
        ),
        (
            Finding("eta", 0.2, bound_type="upper", status="certified", confidence=0.95, attack="gap"),
            ("Gain over guessing of gap", "0.2000", "one-sided", "upper bound", "certified at 95 %"),
        ),
        (
            Finding(
                "tpr",
                None,
                operating_point={"fpr": 1e-5},
                reason=Term("fpr_not_resolvable", games=48_000, reached=0.0208333),
                attack="lira",
            ),
            (
                "TPR of LiRA at FPR 0.001 %",
                "—",
                "—",
                "not resolvable",
                "48,000 games reach FPR 0.021 %",
            ),
        ),
        (
            Finding("auc", None, reason=Term("needs at least 2 references in and out"), attack="lira"),
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
    assert printed(finding) == tuple(map(said, expected))


def test_the_source_is_that_of_the_finding_or_of_its_attack():
    result = results(made())[0]
    assert audit_row(result, Finding("auc", 0.5, attack="lira")).source == "Carlini et al. 2022"
    assert (
        audit_row(result, Finding("auc", 0.5, attack="lira", source="DeLong et al. 1988")).source
        == "DeLong et al. 1988"
    )


def test_keys_of_the_bibliography_are_read_as_names():
    result = results(made())[0]
    assert (
        audit_row(result, Finding("auc", 0.5, source="yeom2018, eq. 2; song2021")).source
        == "Yeom 2018, eq. 2; Song 2021"
    )


def test_order_of_a_release():
    def found(quantity, attack, low, **at):
        return Finding(quantity, low, low, low, operating_point=at, release="forest", attack=attack)

    report = made(
        findings=(
            found("tpr", "gap", 0.1, fpr=0.001),
            found("tpr", "gap", 0.1, fpr=0.01),
            found("auc", "gap", 0.95),
            found("accuracy", "gap", 0.95, prior=0.5),
            found("epsilon", "gap", 1.0, delta=0.0),
        )
    )
    assert names_of(report) == [
        "ε of any guarantee at δ = 0",
        "Accuracy of gap, prior ½",
        "Area under the curve, gap",
        "TPR of gap at FPR 1 %",
        "TPR of gap at FPR 0.1 %",
        "Accuracy of LiRA, prior ½",
    ]


def test_a_rate_over_too_few_models():
    detail = {"fpr": 0.01, "between_model_spread": 1.234}
    finding = Finding(
        "tpr", 0.12, operating_point={"fpr": 0.01}, attack="lira", detail=detail, refused="too_few_models"
    )
    assert printed(finding) == (
        "TPR of LiRA at FPR 1 %",
        "12 %",
        "too few models for an interval",
        "estimate",
        "measured, between-model spread 1.2",
    )


def test_rates_without_a_value_for_one_reason_share_a_row():
    def refused(quantity, fpr, reason="one point, at FPR 95 %", **at):
        return Finding(
            quantity, None, operating_point={"fpr": fpr} | at, reason=Term(reason), release="forest", attack="gap"
        )

    found = (
        refused("tpr", 0.01),
        refused("tpr", 0.001),
        refused("ppv", 0.01, prior=0.5),
        refused("ppv", 0.001, reason="other", prior=0.5),
    )
    assert names_of(made(findings=found))[1:] == [
        "TPR of gap at FPR 1 % and 0.1 %",
        "PPV of gap at FPR 1 %, prior ½",
        "PPV of gap at FPR 0.1 %, prior ½",
    ]


ANY = {"bound_type": "upper", "status": "certified", "confidence": 1.0}


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (
            Finding("accuracy", 0.7310586, operating_point={"prior": 0.5}, **ANY),
            ("Accuracy of any attacker, prior ½", "73.2 of 100", "exact", "upper bound", "certified"),
        ),
        (
            Finding("advantage", 0.06249, bound_type="lower", status="certified"),
            ("Advantage of some attacker", "0.0624", "exact", "lower bound", "certified"),
        ),
        (
            Finding("eta", 0.23105858, bound_type="point", status="certified"),
            ("Gain over guessing of the best attacker", "0.2311", "exact", "exact value", "certified"),
        ),
        (
            Finding("tpr", 0.0271828, operating_point={"fpr": 0.01}, bound_type="upper", status="asymptotic"),
            ("TPR of any attacker at FPR 1 %", "2.8 %", "none", "upper bound", "asymptotic"),
        ),
        (
            Finding("epsilon", 1.8282, operating_point={"delta": 1e-5}, **ANY),
            ("ε at δ = 10⁻⁵", "1.83", "exact", "upper bound", "certified"),
        ),
        (
            Finding(
                "pmp_epsilon",
                0.02667,
                0.0261,
                0.0272,
                operating_point={"delta": 0.0},
                status="estimated",
                confidence=0.95,
            ),
            ("ε of practical membership privacy at δ = 0", "0.0267", "0.0261 to 0.0272", "estimate", "estimated"),
        ),
        (
            Finding("information", 1.3061e-5, bound_type="upper", status="certified"),
            (
                "Information about membership, nats",
                "1.31 \u00d7 10⁻⁵",
                "exact",
                "upper bound",
                "certified",
            ),
        ),
        (
            Finding("posterior", 0.2319693, operating_point={"prior": 0.1}, **ANY),
            ("Posterior of membership, prior 10 %", "24 %", "exact", "upper bound", "certified"),
        ),
        (
            Finding("smallest_cell", 64.0, operating_point={"eta": 0.05}, status="certified"),
            ("Records that every cell needs at η = 0.05", "64", "exact", "exact value", "certified"),
        ),
        (
            Finding("accuracy", 0.55, None, 0.55, bound_type="upper", status="certified", confidence=0.95),
            ("Accuracy of any attacker", "55.0 of 100", "55.0 or less", "upper bound", "certified at 95 %"),
        ),
        (
            Finding("accuracy", 0.55, 0.55, 0.55, bound_type="upper", status="certified"),
            ("Accuracy of any attacker", "55.0 of 100", "exact", "upper bound", "certified"),
        ),
    ],
)
def test_rows_of_theorems(finding, expected):
    assert printed(finding) == tuple(map(said, expected))


def test_every_quantity_has_a_name():
    assert not [name for name in QUANTITIES if f"quantity.{name}" not in sentences()]


def test_audits_put_bounds_before_attacks():
    proved = tuple(Finding(word, 0.6, release="forest", bound_type="lower") for word in ("mu", "accuracy"))
    names = ["Accuracy of some attacker", "μ of the trade-off", "Accuracy of LiRA, prior ½"]
    assert names_of(made(findings=proved)) == names
