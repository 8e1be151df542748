from fractions import Fraction
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakbound.reports.numbers import (
    count,
    digits,
    down,
    fraction_places,
    fractions,
    near,
    parameter,
    percent,
    percent_at_most,
    places,
    powers,
    settled,
    significant,
    up,
)

SHARE = st.floats(0, 1, allow_subnormal=False)


@pytest.mark.parametrize(
    ("value", "low", "high", "scale", "most", "printed"),
    [
        (0.91304, 0.91123, 0.91488, 2, 1, ("91.3", "91.1", "91.5")),  # ends outward
        (0.82608, 0.82246, 0.82976, 0, 4, ("0.826", "0.822", "0.830")),
        (0.97471, 0.97382, 0.97559, 0, 4, ("0.9747", "0.9738", "0.9756")),
        (0.5, 0.1, 0.9, 2, 1, ("50", "10", "90")),
        (0.5, 0.46, 0.54, 2, 1, ("50", "46", "54")),
        (5.769, 5.769, inf, 0, 2, ("5.76", "5.76", "")),  # a lower bound moves down
        (0.231, None, 0.231, 0, 2, ("0.24", "", "0.24")),  # an upper bound moves up
        (0.29, 0.29, None, 2, 0, ("29", "29", "")),  # 100 * 0.29 is 28.999999999999996
        (0.7, None, None, 0, 2, ("0.70", "", "")),
    ],
)
def test_digits(value, low, high, scale, most, printed):
    text = digits(value, low, high, scale=scale, most=most)
    assert (text.value, text.low, text.high) == printed


def test_intervals_in_words():
    assert digits(0.6, 0.5, 0.7).interval == "0.5 to 0.7"
    assert digits(5.769, 5.769, most=2).interval == "5.76 or more"
    assert digits(0.2, high=0.21, most=2).interval == "0.21 or less"
    assert digits(0.2).interval == ""


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0.65, "65"),
        (0.0694, "6.9"),
        (0.0094, "0.94"),
        (0.00081, "0.081"),
        (0.9995, "99.95"),
        (0.99, "99"),
        (0.0, "0"),
    ],
)
def test_shares_have_two_significant_digits_and_one_of_the_distance_to_100(value, printed):
    assert fractions(value).value == printed


@given(SHARE, SHARE, SHARE)
def test_what_is_printed_contains_the_interval(a, b, c):
    low, value, high = sorted((a, b, c))
    for text, scale in [(digits(value, low, high, scale=2, most=1), 100), (fractions(value, low, high), 100)]:
        assert Fraction(text.low) <= Fraction(repr(low)) * scale
        assert Fraction(text.high) >= Fraction(repr(high)) * scale
        assert Fraction(text.low) <= Fraction(text.value) <= Fraction(text.high)


@given(st.floats(-1e6, 1e6, allow_subnormal=False), st.integers(0, 6))
def test_roundings_bracket_the_number_within_one_digit(value, n):
    below, above, closest = (Fraction(f(value, n).replace(",", "").replace("\u2212", "-")) for f in (down, up, near))
    exact = Fraction(repr(value))
    assert below <= exact <= above
    assert above - below in {0, Fraction(1, 10**n)}
    assert abs(closest - exact) * 2 <= Fraction(1, 10**n)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.9738, 0.9756, 4), (91.1, 91.5, 1), (3, 40, 0), (0.1, 0.1 + 1e-9, 4), (1, 1, 4)],
)
def test_decimals_follow_half_the_interval(low, high, expected):
    assert places(low, high) == expected


@pytest.mark.parametrize(
    ("fraction", "printed"),
    [
        (0.001, "0.1"),
        (0.01, "1"),
        (0.05516, "5.5"),
        (0.95, "95"),
        (0.999, "99.9"),
        (1.0, "100"),
        (0.0, "0"),
        (1e-5, "0.001"),
    ],
)
def test_percent_drops_zeros_and_keeps_a_thin_space(fraction, printed):
    assert percent(fraction) == f"{printed}\u202f%"


def test_signs_and_thousands():
    assert count(1234567) == "1,234,567"
    assert near(-1234.5, 0) == "\u22121,234"
    assert near(-0.0001, 2) == "0.00"
    assert down(inf) == "infinity"
    assert up(-inf) == "\u2212infinity"


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (4.0, "4"), (0.5, "0.5"), (1e-5, "10⁻⁵"), (2.5e-6, "2.5 \u00d7 10⁻⁶"),
        (0.0, "0"), (inf, "infinity"), (-0.25, "\u22120.25"),
    ],
)  # fmt: skip
def test_parameters(value, printed):
    assert parameter(value) == printed


@given(st.floats(1e-9, 1 - 1e-9))
def test_decimals_of_a_share_keep_it_away_from_0_and_100(fraction):
    text = near(100 * fraction, fraction_places(fraction))
    assert 0 < Fraction(text) < 100


@pytest.mark.parametrize(
    ("value", "side", "scale", "most", "printed"),
    [
        (0.7310586, "upper", 2, 1, "73.2"),
        (0.7310586, "lower", 2, 1, "73.1"),
        (0.7310586, "point", 2, 1, "73.1"),
        (0.02667, "upper", 0, 2, "0.027"),  # two decimals would leave one digit
        (0.0266, "lower", 0, 2, "0.026"),
        (1.8282, "upper", 0, 2, "1.83"),
        (1.3061e-5, "upper", 0, 4, "1.31e\u221205"),
        (1.3069e-5, "lower", 0, 4, "1.30e\u221205"),
        (9.999e-4, "upper", 0, 4, "1.00e\u22123"),
        (123456.789, "point", 0, 4, "123,457"),
        (0.0, "upper", 0, 4, "0.0000"),
        (64.0, "point", 0, 0, "64"),
        (inf, "upper", 0, 2, "infinity"),
    ],
)
def test_a_bound_without_an_interval_is_rounded_to_its_own_side(value, side, scale, most, printed):
    assert digits(value, scale=scale, most=most, bound_type=side).value == printed.replace("e\u221205", "e\u22125")


def test_intervals_of_small_numbers():
    text = digits(1.5e-6, 1.234e-6, 2.345e-6)
    assert (text.value, text.low, text.high) == ("1.50e\u22126", "1.23e\u22126", "2.35e\u22126")
    assert digits(0.0, 0.0, 3e-5).interval == "0 to 3.00e\u22125"


@given(SHARE, st.sampled_from(["upper", "lower"]))
def test_a_bound_is_never_printed_as_stronger_than_it_is(value, side):
    for text, scale in [
        (digits(value, scale=2, most=1, bound_type=side), 100),
        (fractions(value, bound_type=side), 100),
    ]:
        printed, exact = Fraction(text.value), Fraction(repr(value)) * scale
        assert printed >= exact if side == "upper" else printed <= exact


@given(st.floats(1e-12, 1 - 1e-9))
def test_what_a_ceiling_allows_is_rounded_up(fraction):
    printed = Fraction(percent_at_most(fraction).removesuffix("\u202f%"))
    assert Fraction(repr(settled(fraction))) * 100 <= printed
    assert printed <= Fraction(repr(settled(fraction))) * 100 * Fraction(11, 10) + Fraction(1, 10**8)


def test_rounding_noise_is_no_reason_to_round_up():
    assert settled(0.1 + 0.2) == 0.3
    assert percent_at_most(1 - 0.99) == "1\u202f%"
    assert settled(-inf) == -inf


@pytest.mark.parametrize(
    ("text", "printed"),
    [("1.31e\u22125", "1.31 \u00d7 10⁻⁵"), ("<b>", "<b>"), ("0.25", "0.25"), ("true", "true")],
)
def test_powers_are_set_as_such(text, printed):
    assert powers(text) == printed


@pytest.mark.parametrize(
    ("value", "n", "said"),
    [
        (0.0, 2, "0"),
        (0.996, 2, "1.0"),
        (9.96, 2, "10"),
        (99.6, 2, "100"),
        (1250.0, 2, "1,200"),
        (-0.0345, 1, "\u22120.03"),
        (123456.0, 4, "123,500"),
        (3.0e-6, 2, "3.0e\u22126"),
        (9.99e8, 2, "1.0e9"),
        (inf, 2, "infinity"),
    ],
)
def test_significant_digits(value, n, said):
    assert significant(value, n) == said
