import math

import pytest

from leakbound.core.findings import Finding, Scope
from leakbound.reports.numbers import HALF_OF_95_PERCENT
from leakbound.reports.sections.protected import certificate as protected_certificate
from leakbound.reports.sections.protected import costs as protected_costs
from leakbound.reports.sections.protected import words as protected_words
from leakbound.reports.sections.protected.costs import worth
from leakbound.reports.sections.protected.result import protected_result
from tests.reports import made_protected
from tests.reports.made_protected import attack, ceiling, protected, values, without


def of(*findings, certificate=None, noise=None, curves=(), **about):
    return protected_result(protected(findings, curves, certificate, noise, **about))


def row(result, head):
    return dict(protected_certificate.rows(result))[head].striptags()


@pytest.mark.parametrize(
    ("eta", "said"),
    [
        (0.025, "Nobody can tell with any confidence whether a given person is among the 500."),
        (0.026, "Nobody is right in more than 52.6 of 100 cases about whether a given person is among the 500."),
        (0.1, "Nobody is right in more than 60.0 of 100 cases about whether a given person is among the 500."),
        (
            0.11,
            "Nobody can be sure whether a given person is among the 500, but a guess may be a good deal better than "
            "one from the prior alone.",
        ),
        (0.3, "This promise is weak: whether a given person is among the 500 may be guessed in 80.0 of 100 cases."),
    ],
)
def test_the_lede_follows_the_promise(eta, said):
    assert protected_words.lede(of(certificate={"eta": eta}, values=[])).striptags() == said


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", "", 1.0, 0.5, 0.5)], "The price is noise of 1.0 times the sampling error."),
        (
            [("a", "", 1.0, 0.5, 0.5), ("b", "", 1.0, 3.0, 0.5), ("c", "", 1.0, 3.0, None)],
            "The price is noise of 1.0 to 6.0 times the sampling error.",
        ),
        ([("a", "", 1.0, 0.5, None)], ""),
        ([("a", "", 1.0, 0.5, 0.0)], ""),
    ],
)
def test_the_price_is_the_noise_beside_the_sampling_error(rows, said):
    assert protected_words.price(of(values=values(rows))).striptags() == said


def test_the_promise_is_rounded_up():
    assert protected_words.right(of(certificate={"eta": 0.05001})) == "55.1"
    assert protected_words.right(of(certificate={"eta": 0.05})) == "55.0"
    assert protected_words.right(of(certificate={"eta": 0.05, "prior": 0.3, "k": 300})) == "75.0"
    said = protected_certificate.promised(of(certificate={"eta": 0.050001})).striptags()
    assert said.endswith("is right with probability at most 0.5501.")


def test_a_sampled_certificate_says_where_it_fails():
    result = of(certificate={"confidence": 0.99, "exact": False, "pairs": 500, "fits": 1000, "failures": 1})
    assert "except with probability 1 % over the calibration" in protected_words.promise(result).striptags()
    assert protected_certificate.promised(result).striptags().endswith("over the calibration.")
    assert (
        row(result, "Confidence")
        == "99 %. The pairs of the calibration are a sample; with probability 1 % it misleads."
    )
    assert row(result, "Coupling").endswith(
        "Sampled: 500 pairs from 1,000 fits; 1 of them failed and counts against the certificate."
    )
    assert protected_certificate.verdict(result) == "Proved at 99\u202f%"


def test_without_an_attack_or_noise_the_sentences_say_so():
    found = without()[0]
    said = protected_words.promise(of(*found)).striptags()
    assert said.endswith("No attack was run against it. Without noise the best attacker would be right in about 57.3.")
    exact = Finding("accuracy", 0.6, operating_point={"prior": 0.5}, release="without_noise", status="certified")
    assert protected_words.without_noise(of(exact)).striptags() == (
        "Without noise the best attacker would be right in 60.0."
    )
    assert protected_words.without_noise(of(exact, certificate={"no_noise": True})) == ""


def test_attacks_on_a_random_record_are_said_to_be():
    words = {"operating_point": {"prior": 0.5}, "attack": "bayes", "bound_type": "lower"}
    average = {"about": "average"}
    for scope, certificate, who in [
        (Scope(), None, "the most exposed person"),
        (Scope("worst"), average, "the most exposed person"),
        (Scope("average"), None, "a randomly chosen person"),
        (Scope(), average, "a randomly chosen person"),
    ]:
        said = protected_words.best(of(Finding("accuracy", 0.54, scope=scope, **words), certificate=certificate))
        assert said.striptags() == f"The best attack that we know is right in 54.0 of 100 for {who}."


@pytest.mark.parametrize(
    ("rms", "rows", "said"),
    [
        ([0.5], [("a", "EUR", 1, 1, 1)], "standard deviation 0.50 EUR;"),
        ([0.5, 0.5], [("a", "EUR", 1, 1, 1), ("b", "m", 1, 1, 1)], "standard deviation 0.50 in each of 2 coordinates;"),
        ([0.5, 2.0], [("a", "EUR", 1, 1, 1), ("b", "", 1, 1, 1)], "standard deviation 0.50 EUR, 2.0;"),
        ([0.5, 2.0], [("a", "EUR", 1, 1, 1)], "standard deviation 0.50, 2.0;"),
        ([float(n) for n in range(1, 9)], [("a", "", 1, 1, 1)], "standard deviation 1.0 to 8.0 over 8 coordinates;"),
    ],
)
def test_the_noise_is_said_by_coordinate_as_far_as_it_can_be(rms, rows, said):
    assert said in row(of(noise={"rms": rms}, values=values(rows)), "Noise")


def test_where_the_noise_came_from():
    assert "drawn once, from the operating system\u2019s entropy, on a grid of step" in row(of(), "Noise")
    assert row(of(noise={"grid": None}), "Noise").endswith("entropy.")
    assert "drawn from a seed that was given" in row(of(insecure_seed=True), "Noise")
    assert "not drawn yet" in row(of(values=[]), "Noise")
    assert row(of(certificate={"no_noise": True}), "Noise") == "None: the draw alone keeps the promise."


def test_couplings_in_words():
    assert row(of(), "Coupling") == "Swap: the person is exchanged for another one that is out. Nothing is sampled."
    assert row(of(certificate={"coupling": "complement"}), "Coupling").startswith("Complement: the data are exchanged")
    assert row(of(certificate={"coupling": "a new one"}), "Coupling").startswith("A new one. Nothing")
    assert "Coupling" not in dict(protected_certificate.rows(of(certificate={"coupling": ""})))


def test_rows_without_content_are_left_out():
    assert [head for head, _ in protected_certificate.rows(of(certificate={"assumptions": []}))] == [
        "Game",
        "Noise",
        "Coupling",
        "Confidence",
        "Does not promise",
        "Other designs",
    ]


def test_the_charts_are_introduced_by_what_is_there():
    curves = [ceiling()[1], attack()[1], without()[1]]
    for drawn, heading in [
        (curves, "The ceiling, the best attack, and no noise at all"),
        (curves[:2], "The ceiling and the best attack"),
        (curves[1:], "The best attack and no noise at all"),
        (curves[:1], "The ceiling"),
    ]:
        assert protected_words.curves_heading(of(curves=drawn)) == heading
    assert "hatched" not in protected_words.curves_intro(of(curves=curves[1:])).striptags()
    assert "Lower limits of 95 % intervals, at each rate by itself, from 20,000 games without the person: " in (
        protected_words.curves_note(of(curves=curves)).striptags().replace("\u202f", " ")
    )


def test_a_sample_of_equal_error():
    """The variance of a mean of m records is v/m: v/m = v/k + noise^2."""
    for k, noise, sampling in [(500, 0.37, 0.39), (90, 2.0, 0.5), (1000, 0.001, 1.0)]:
        m = worth(noise, sampling, k)
        v = k * sampling**2
        assert v / (m + 1) < sampling**2 + noise**2 <= v / m
    assert worth(1.0, 1e-9, 500) == 0


def test_values_are_printed_to_the_second_digit_of_their_noise():
    def released(value, noise, family="gaussian"):
        (cells,) = protected_costs.values(of(values=values([("a", "", value, noise, None)]), noise={"family": family}))
        return [cell.striptags().replace("\u202f", " ") for cell in list(cells.values())[1:]]

    assert released(3.14159, 0.1) == ["3.14", "± 0.20"]
    assert released(3.14159, 100.0) == ["3", "± 200"]
    assert released(1234567.0, 1000.0) == ["1,234,600", "± 2,000"]
    assert released(0.0, 0.01) == ["0.000", "± 0.020"]
    assert released(-2.5, 0.0) == ["\u22122.5", "none"]
    # 95 % of a Laplace law of standard deviation 1 lies within ln(20)/sqrt(2)
    assert released(0.5, 1.0, "laplace") == ["0.5", "± 2.1"]
    assert released(0.5, 1.0, "uniform ball") == ["0.5", "± 1.0"]
    heads = protected_costs.values(of(noise={"family": "uniform ball"}))[0]
    assert "noise_std" in heads
    inside = 1 - math.exp(-math.sqrt(2) * HALF_OF_95_PERCENT["laplace"])  # a Laplace law of standard deviation 1
    assert math.isclose(inside, 0.95)


def test_columns_that_say_nothing_are_left_out():
    (cells,) = protected_costs.costs(of(values=values([("a", "", 1.0, 0.5, None)])))
    assert list(cells) == ["statistic", "noise"]
    assert protected_costs.cost(of(values=values([("a", "", 1.0, 0.5, None)]))) == ""
    assert protected_costs.costs(protected_result(made_protected.no_noise())) == []


def test_a_baseline_with_a_level_says_it():
    found = Finding("noise_rms", 1.0, release="sampled", status="certified", confidence=0.95)
    ours, other = protected_costs.comparison(of(found, certificate={"confidence": 0.9}, noise={"rms": [0.3, 0.4]}))
    assert ours["certificate"] == "certified at 90\u202f%"
    assert other["certificate"] == "certified at 95\u202f%"
    assert ours["noise"] == "0.35"  # sqrt((.09 + .16)/2)
    assert other["times_ours"] == "2.8"
