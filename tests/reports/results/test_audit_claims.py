from dataclasses import replace

import pytest

from leakbound.core.findings import Finding, Term
from leakbound.core.tradeoff import Gaussian
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Curve, Report, Verdict
from leakbound.reports.results.audit import claims as verdicts
from leakbound.reports.results.audit.result import results
from tests.reports.made import made
from tests.reports.page_reading import said as text_of

CLAIM = Claim("epsilon", 4.0, 1e-5, "replace_one")
SEEN = {"fpr": 0.001, "tpr": 0.43, "low": 0.41, "high": 0.46, "ceiling": 0.0546, "false_alarms": 48}


def line(verdict, **facts):
    return verdicts.claims(results(made(verdict=verdict, facts=facts)))[0]


def said(verdict, **facts):
    return text_of(line(verdict, **facts).why)


def test_refuted_names_point_and_bound():
    reason = said(Verdict(CLAIM, "refuted", "epsilon", 4.0, 5.769, 0.999, "lira", SEEN))
    assert reason == (
        "At 0.1 % false alarms the claim allows any attacker 5.5 % of the members; LiRA finds 43 % "
        "(95 %: 41 to 46). Any true ε is at least 5.76 (99.9 %)."
    )


def test_refuted_without_a_point_above_the_ceiling_names_the_bound_alone():
    below = SEEN | {"low": 0.05}
    assert said(Verdict(CLAIM, "refuted", "epsilon", 4.0, 5.769, 0.999, "lira", below)).startswith("Any true ε")


def test_not_refuted_never_proves():
    reason = said(Verdict(CLAIM, "not_refuted", "epsilon", 4.0, 2.9667, 0.999, "lira", SEEN | {"low": 0.01}))
    assert reason == (
        "These attacks show that any true ε is at least 2.96 (99.9 %), which 4 allows. "
        "An audit can refute such a claim; it can never prove it."
    )
    nothing = said(Verdict(CLAIM, "not_refuted", "epsilon", 4.0, 0.0, 0.999))
    assert nothing.startswith("These attacks give no lower bound of ε above 0 (99.9 %). An audit can refute")


def test_not_refuted_although_the_band_is_above_says_how_thin_it_is():
    reason = said(Verdict(CLAIM, "not_refuted", "epsilon", 4.0, 2.96, 0.999, "lira", SEEN))
    assert reason.endswith("The curve lies above the ceiling at 0.1 %, but only 48 false alarms support that point.")


def test_eta_speaks_of_the_most_exposed_record():
    refuted = said(Verdict(Claim("eta", 0.1), "refuted", "eta", 0.1, 0.3512, 0.999))
    assert refuted == (
        "For the most exposed record the attacker is right in at least 85.1 of 100 cases (99.9 %), for all records at "
        "once."
    )
    standing = said(Verdict(Claim("eta", 0.1), "not_refuted", "eta", 0.1, 0.0, 0.999))
    assert "the test does not show a record that is guessed more often than the claim allows" in standing


PRIVATE = "Random forest is differentially private with ε = "
GAUSSIAN = "Random forest is Gaussian differentially private with μ = "


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (CLAIM, f"{PRIVATE}4 (δ = 10⁻⁵) for replacing one record"),
        (Claim("epsilon", 0.5, adjacency="add_remove"), f"{PRIVATE}0.5 for adding or removing one record"),
        (Claim("mu", 1.0, adjacency="add_remove"), f"{GAUSSIAN}1 for adding or removing one record"),
        (
            Claim("eta", 0.1),
            "No record of Random forest is guessed in more than 60 of 100 cases (η = 0.1)",
        ),
    ],
)
def test_claims_in_words(claim, words):
    assert text_of(line(Verdict(claim, "not_refuted", "epsilon", 4.0, 0.0)).says) == words


def test_other_words():
    tested = line(Verdict(CLAIM, "cannot_be_tested", reason=Term("one-run games need coins")))
    assert (str(tested.word), text_of(tested.why)) == ("Cannot be tested", "Reason: one-run games need coins.")


def test_a_refuted_certificate_is_a_contradiction_and_a_refuted_claim_is_not():
    verdict = Verdict(CLAIM, "refuted", "epsilon", 4.0, 5.0)
    claimed = made(verdict=verdict)
    assert verdicts.contradictions(results(claimed)) == []
    certified = Curve("proof", "forest", "certified", Gaussian(1.0), verdict=verdict)
    assert verdicts.contradictions(results(Report(claimed.about, (), (certified,), {}))) == ["forest: proof"]


class TestLeading:
    """One sentence before all the others: the claim, the largest lower bound, and whether they agree."""

    def said(self, verdict, findings=(), **facts):
        report = made(verdict=verdict, facts=facts)
        report = replace(report, findings=(*report.findings, *findings))
        return text_of(verdicts.leading(results(report)))

    def test_the_bound_of_the_test_where_there_is_no_other(self):
        assert self.said(Verdict(CLAIM, "not_refuted", "epsilon", 4.0, 2.9667, 0.999)) == (
            "Claimed ε = 4 at δ = 10⁻⁵; the strongest attack shows at least 2.96 (99.9 %); nothing contradicts "
            "the claim."
        )
        assert self.said(Verdict(CLAIM, "not_refuted", "epsilon", 4.0, 0.0, 0.999)) == (
            "Claimed ε = 4 at δ = 10⁻⁵; the attacks show no lower bound above 0; nothing contradicts the claim."
        )

    def test_the_largest_one_with_what_it_rests_on(self):
        name = made().about.releases[0].name
        rows = [
            Finding("epsilon", 3.1, 3.1, operating_point={"delta": 1e-5}, confidence=0.95, bound_type="lower",
                    status="measured", release=name, attack="lira"),
            Finding("epsilon", 3.521, 3.521, operating_point={"delta": 1e-5}, confidence=0.95, bound_type="lower",
                    status="measured", release=name, method=(Term("step_by_step"),)),
            Finding("epsilon", 3.9, 3.9, operating_point={"delta": 1e-3}, confidence=0.95, bound_type="lower",
                    status="measured", release=name, attack="lira"),
        ]  # fmt: skip
        said = self.said(Verdict(CLAIM, "not_refuted", "epsilon", 4.0, 2.9667, 0.999), rows)
        assert "shows at least 3.52 (95 %, if each step is a Gaussian mechanism); nothing contradicts" in said
        above = [replace(rows[0], value=4.2, low=4.2)]
        said = self.said(Verdict(CLAIM, "not_refuted", "epsilon", 4.0, 2.9667, 0.999), above)
        assert said.endswith("4.20 (95 %); that is more than claimed, but a claim is refuted only at 99.9 %.")

    def test_refuted(self):
        said = self.said(Verdict(CLAIM, "refuted", "epsilon", 4.0, 5.769, 0.999, "lira", SEEN))
        assert said.endswith("the strongest attack shows at least 5.76 (99.9 %); the claim is refuted.")

    def test_a_claim_of_accuracy_is_counted_instead(self):
        found = results(made(verdict=Verdict(Claim("eta", 0.1), "not_refuted", "eta", 0.1, 0.0, 0.999)))
        assert verdicts.leading(found) is None
        assert text_of(list(verdicts.counted(found))) == "The claim is not refuted."


@pytest.mark.parametrize(
    ("word", "reason", "name", "says", "counted"),
    [
        (
            "cannot_hold",
            Term("declared_gives_more", given=4.7659, least=4.7559, delta=1e-5),
            "Cannot hold",
            "Reason: the training as declared (noise, sampling rate, steps) gives epsilon = 4.766 at delta = 1e-05, "
            "and at least 4.756",
            "The training as declared gives more than 1 of 1 claims: they cannot hold.",
        ),
        (
            "not_supported",
            Term("accountant_gives_more", given=4.7659, delta=1e-5),
            "Not supported",
            "Reason: the accountant shows epsilon = 4.766 at delta = 1e-05",
            "Not supported by what the training declares: 1 of 1 claims.",
        ),
    ],
)
def test_a_claim_that_the_accountant_denies(word, reason, name, says, counted):
    """It is not called "not refuted", though no attack refutes it."""
    verdict = Verdict(CLAIM, word, "epsilon", 4.0, 0.5, 0.999, reason=reason)
    shown = line(verdict)
    assert str(shown.word) == name
    reason = text_of(shown.why)
    assert reason.startswith(says)
    assert "claim at least 4.766" in reason
    assert "allows" not in reason
    assert text_of(list(verdicts.counted(results(made(verdict=verdict))))) == counted
