from dataclasses import replace

import pytest

from leakbound.core.findings import Finding, Term
from leakbound.reports.results.audit import answer as words
from leakbound.reports.results.audit.advice import advice
from leakbound.reports.results.audit.page import audit_page
from leakbound.reports.results.audit.result import results
from leakbound.reports.results.words import article, listed, several
from tests.reports import samples
from tests.reports.abouts import changed
from tests.reports.made import made, spread
from tests.reports.page_reading import said as text_of


def lede(report):
    (result,) = results(report)
    return text_of(words.warnings([result]), words.answer(result) if words.has_verdict(result) else "")


def summary(report):
    return text_of(words.summary(results(report)[0]))


@pytest.mark.parametrize(
    ("low", "said"),  # of an interval of 2 of 100; one that crosses a border has the word of its upper end
    [
        (0.90, "From Random forest, membership can be inferred almost perfectly."),
        (0.8999, "From Random forest, membership can be inferred almost perfectly."),
        (0.8799, "From Random forest, membership can be inferred with high accuracy."),
        (0.75, "From Random forest, membership can be inferred with high accuracy."),
        (0.60, "From Random forest, membership can be inferred clearly better than by guessing."),
        (0.5999, "From Random forest, membership can be inferred clearly better than by guessing."),
        (0.5799, "On average Random forest leaks a little; no single record is shown to be exposed."),
        (0.5001, "On average Random forest leaks a little; no single record is shown to be exposed."),
    ],
)
def test_lede_follows_both_ends(low, said):
    assert lede(made((low + 0.01, low, low + 0.02), won=spread(64, w32=100))) == said


def test_lede_does_not_speak_of_records_that_nobody_played_against():
    untested = "On average Random forest leaks a little; no record could be tested by itself."
    assert lede(made((0.56, 0.55, 0.57))) == untested
    few = made((0.56, 0.55, 0.57), won=spread(8, w8=100))
    assert lede(few) == untested


def test_lede_names_the_exposed_where_the_average_hides_them():
    report = made((0.52, 0.51, 0.53), won=spread(64, w32=97, w60=2, w64=1))
    assert lede(report) == "About a typical record Random forest leaks little, but it exposes 3 of 100."


def test_lede_of_no_leak_says_what_is_excluded():
    said = lede(made((0.502, 0.4951, 0.5083)))
    assert said == (
        "In Random forest these attacks found no leak. A leak larger than 50.9 of 100 by these attacks is excluded at "
        "95 %; a better attack may exist."
    )


def test_lede_at_another_prior_starts_from_the_better_guess():
    facts = {"prior": 0.2}
    assert "no leak" in lede(made((0.81, 0.80, 0.82), facts=facts))
    assert lede(made((0.97, 0.96, 0.98), facts=facts)).endswith("inferred almost perfectly.")  # .8 of the way


def test_of_several_releases_each_has_its_own_answer():
    pages = audit_page(samples.two_models()).releases
    assert [text_of(release.answer).count(release.heading) for release in pages] == [1, 1]


def test_summary_is_the_pattern():
    said = summary(made(won=spread(64, w32=90, w64=10)))
    assert said == (
        "An attacker who guesses whether a random record was used for training is right in 91.3 of 100 cases "
        "(95 %: 91.1 to 91.5); guessing from the prior alone gives 50. For the most exposed record the attacker "
        "was right in 64 of 64 games, that is in at least 88 of 100 cases (95 %, all records at once). Exposed "
        "beyond chance: 10 of 100 records."
    )


def test_summary_uses_the_unit_and_the_prior():
    said = summary(made(won=spread(64, w32=99, w64=1), about={"unit": "person"}, facts={"prior": 0.25}))
    assert "whether a random person was used" in said
    assert "guessing from the prior alone gives 75." in said
    assert "all people at once" in said
    assert "Exposed beyond chance: 1 of 100 people." in said


def test_summary_when_nobody_is_exposed_says_what_would_have_shown():
    said = summary(made(won=spread(64, w32=100)))
    assert said.endswith(
        "Although membership is inferred on average, no single record is shown to be exposed beyond chance: 64 games "
        "would show a record that is guessed right in at least 46 of them."
    )


def test_summary_of_few_models_says_how_many_it_takes():
    # (0.05/1500)^(1/M) > 1/2 from M = 15 on: log2(30,000) = 14.87
    said = summary(made(won=spread(8, w8=1500), facts={"models": 8, "targets": 8}))
    assert said.endswith("With 8 models no record can be tested by itself; 15 would do.")


def test_summary_of_a_handful_is_a_count():
    said = summary(made((0.5, 0.013, 0.987), facts={"target_points": 2, "targets": 1}))
    assert "right in 1 of 2 cases" in said
    assert said.endswith("too few for a curve.")


def test_nothing_could_be_played():
    reason = Finding("accuracy", None, reason=Term("needs references"), release="forest", attack="lira")
    report = made(facts={"best": ""})
    nothing = type(report)(report.about, (reason,), (), {})
    assert lede(nothing) == "None of the attacks could be played against Random forest."
    assert summary(nothing) == "None of the attacks could be played; the findings below say why."


def test_titles_and_facts():
    assert str(audit_page(made()).title) == "How much does Random forest reveal about who is in its training data?"
    assert str(audit_page(made(about={"title": "Why?"})).title) == "Why?"
    assert str(audit_page(made(facts={"game": "scores"})).title).startswith("How much do these scores reveal")
    both = "How much do Random forest and Logistic regression reveal about who is in their training data?"
    assert str(audit_page(samples.two_models()).title) == both
    written = audit_page(made(about={"date": "20 November 2026"}))
    assert [str(fact) for fact in (written.records, written.trained, written.n_attacks, written.date)] == [
        "100 records",
        "1 model trained 64 times on a random half",
        "1 attack",
        "20 November 2026",
    ]


def test_small_words():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert several(1, "record") == "1 record"
    assert several(1500, "person") == "1,500 people"
    assert words.least_of_100(0.29) == "29"  # 100 * 0.29 is 28.999999999999996


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            {"value": 0.5317, "bound_type": "lower", "source": "delgrosso2021, Theorem 2"},
            "Some attacker is right in at least 53.1 of 100 cases, by the gap between training and test error alone.",
        ),
        (
            {"value": 0.5317, "bound_type": "lower", "source": "delgrosso2021, Theorem 2", "confidence": 0.9},
            "Some attacker is right in at least 53.1 of 100 cases (90 %), by the gap between training and test error "
            "alone.",
        ),
        (
            {
                "value": 0.58,
                "low": 0.5317,
                "bound_type": "lower",
                "source": "delgrosso2021, Theorem 2",
                "confidence": 0.95,
            },
            "Some attacker is right in at least 53.1 of 100 cases (95 %), by the gap between training and test error "
            "alone.",
        ),
        ({"value": 0.54, "low": 0.5, "bound_type": "lower", "confidence": 0.95}, ""),  # a gap that chance may have made
        (
            {"value": 0.7310586, "bound_type": "upper", "source": "kairouz2015, Theorem 2.1"},
            "No attacker is right in more than 73.2 of 100 cases, by Kairouz 2015, Theorem 2.1.",
        ),
        (
            {"value": 0.7, "bound_type": "point", "status": "asymptotic"},
            "For large n, the best possible attacker is right in 70.0 of 100 cases, by a theorem.",
        ),
        ({"value": 0.5, "bound_type": "lower"}, ""),  # no more than guessing
        ({"value": 1.0, "bound_type": "upper"}, ""),
        ({"value": None, "reason": "no test data"}, ""),
    ],
)
def test_a_theorem_about_any_attacker_has_a_sentence(words, said):
    given = {"status": "certified", "operating_point": {"prior": 0.5}, "release": "forest"} | words
    report = made(findings=(Finding("accuracy", **given),))
    assert words_of(report) == said
    assert summary(report).endswith(said or "guessing from the prior alone gives 50.")
    assert lede(report) == lede(made())


def words_of(report):
    return text_of(list(words.theorems(results(report)[0])))


def test_planted_canaries_say_little_of_the_records():
    """Gradients that were made to be found give no training data away."""
    report = made((0.78, 0.75, 0.81))
    (facts,) = report.about.releases
    planted = replace(report, about=changed(report.about, releases=[facts.model_dump() | {"game": "canaries"}]))
    assert (
        lede(planted)
        == "Whether a canary was planted in the data of Random forest is guessed right in 78 of 100 cases."
    )
    assert summary(planted).startswith("An attacker who guesses whether a random planted canary was used for training")


def no_references(*attacks):
    """A trained model without references: some attacks did not run."""
    missing = [
        Finding(quantity, None, release="forest", attack=attack, reason=Term("no_reference", n=0))
        for attack in attacks
        for quantity in ("accuracy", "auc")
    ]
    report = made((0.502, 0.4951, 0.5083), facts={"game": "one_model", "references": 0, "targets": 1, "models": 1})
    return replace(report, findings=(*report.findings, *missing))


def test_no_reason_to_change_is_not_said_where_the_strongest_attacks_did_not_run():
    said = text_of(advice(results(no_references("lira", "rmia"))))
    assert "no reason to change" not in said
    assert "The strongest attacks did not run: LiRA and rmia compare with reference models" in said
    assert "no reason to change" in text_of(advice(results(no_references())))


def test_only_attacks_that_ran_are_counted():
    assert audit_page(no_references()).n_attacks == "1 attack"
    assert audit_page(no_references("rmia", "mast")).n_attacks == "1 attack"


def test_advice_for_a_model_that_leaks_is_for_networks_too():
    said = str(advice(results(made((0.91, 0.90, 0.92))))[0])
    for part in ("fewer epochs, augmentation, weight decay", "leakbound calibrate dpsgd", "shallower trees"):
        assert part in said


@pytest.mark.parametrize(
    ("family", "said", "not_said"),
    [
        ("trees", ["shallower trees", "which leakbound does not have for such models"], ["epochs", "dpsgd"]),
        ("neighbours", ["more neighbours", "does not have for such models"], ["trees", "epochs", "dpsgd"]),
        ("regularised", ["stronger regularisation", "leakbound protect computes"], ["trees", "epochs", "dpsgd"]),
        ("network", ["fewer epochs", "leakbound calibrate dpsgd"], ["trees", "protect"]),
        ("dpsgd", ["more noise", "follows from its accountant"], ["trees", "weight decay"]),
    ],
)
def test_advice_knows_the_class_of_the_model(family, said, not_said):
    sentence = str(advice(results(made((0.91, 0.90, 0.92), facts={"family": family})))[0])
    assert all(part in sentence for part in said)
    assert not any(part in sentence for part in not_said)


@pytest.mark.parametrize(("unit", "said"), [("record", "a"), ("image", "an"), ("user", "a")])
def test_the_article_fits_the_unit(unit, said):
    assert article(unit) == said
