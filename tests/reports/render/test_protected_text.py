import pytest

from leakbound.reports.render.text import WIDTH
from tests.reports import made_protected
from tests.reports.made_protected import protected

SAMPLES = ("means", "compared", "average", "insecure", "no_noise", "uneven", "nothing")


@pytest.mark.parametrize("name", SAMPLES)
def test_lines_fit_a_terminal(name):
    text = getattr(made_protected, name)().table()
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.endswith("\n")
    assert text.isascii()
    assert all(char.isprintable() for line in text.splitlines() for char in line)


def test_promise_values_certificate_and_costs_in_order():
    lines = made_protected.means().table().splitlines()
    assert lines[0] == "Three means of a survey"
    heads = ("Protected release", "Nobody is right in", "Statistic", "Certificate: For every", "Game: ", "quantity")
    places = [next(n for n, line in enumerate(lines) if line.startswith(head)) for head in heads]
    assert places == sorted(places)
    rows = [" ".join(line.split()) for line in lines]
    assert "mean of age 43.2 +- 1.1 years" in rows
    assert "Accuracy of any attacker, prior 1/2 55.0 of 100 exact upper bound certified" in rows
    assert "Noise in a coordinate, root mean square, 0.5600 exact exact value certified" in rows


def test_calibrate_prints_one_table_of_the_methods():
    rows = [" ".join(line.split()) for line in made_protected.compared().table().splitlines()]
    start = rows.index("Method Noise Times ours Promise Certificate")
    assert rows[start + 1 : start + 7] == [
        "This calibration 0.036 1 every person certified",
        "DP Laplace (clipped) 0.21 5.9 every person certified",
        "PAC privacy 0.55 15 every person certified",
        "averaged information 0.0061 0.17 a random person certified",
        "Algorithm 1 as printed 0.51 14 every person estimated",
        "DP Gaussian - - every person the statistic has no bound to clip to",
    ]
    assert sum("PAC privacy" in row for row in rows) == 1  # the findings do not say it again
    assert not any(row.startswith("Method") for row in made_protected.means().table().splitlines())


def test_very_many_values_are_counted():
    assert made_protected.average().table().count("and 260 more") == 2


def test_control_characters_do_not_reach_the_terminal():
    report = protected([], title="a\x1b[31m", notes=["n\x00"], values=made_protected.values([("\x07", "", 1, 1, None)]))
    assert "\x1b" not in report.table()
    assert r"n\x00" in report.table()
