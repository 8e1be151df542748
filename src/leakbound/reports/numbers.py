"""Numbers as the report prints them: few digits, and every rounding to the safe side.

Interval ends move outward, lower bounds down, upper bounds up. The arithmetic is decimal, on the
shortest digits of the float, so that a limit of 0.29 prints as 29 % and not as 28 %.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from leakbound.core.findings import BoundType

THIN = "\u202f"  # narrow no-break space, before a percent sign
MINUS = "\u2212"
Number = float | Decimal
HALF_OF_95_PERCENT = {"gaussian": 1.959964, "laplace": math.log(20) / math.sqrt(2)}  # of noise, in its std
FINEST = 8  # decimals of a percentage
_ON_THE_GRID = 1e-3  # of the last decimal: an end that is nearer to a printed number than that is not moved outward
_SAME = 1e-6  # if it differs from it by less than this fraction, too
_MOST_DIGITS = 400  # of a number that is rounded, whatever its size
_SMALLEST = 1e-3  # numbers below it are printed as 1.31e-05
_SUPERSCRIPTS = str.maketrans(f"{MINUS}0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_POWER = re.compile(rf"(?<=\d)e({MINUS}?\d+)(?= |$)")


@dataclass(frozen=True)
class Digits:
    """A value and the ends of its interval as text; an end that does not exist is empty."""

    value: str
    low: str = ""
    high: str = ""

    @property
    def interval(self) -> str:
        """``91.1 to 91.5``; ``5.76 or more`` and ``0.3 or less`` where one end is open."""
        if self.low and self.high:
            return f"{self.low} to {self.high}"
        if self.low:
            return f"{self.low} or more"
        return f"{self.high} or less" if self.high else ""


def down(value: Number, places: int = 0) -> str:
    """Round towards minus infinity.

    >>> down(5.769, 2), down(1234.5)
    ('5.76', '1,234')
    """
    return _write(value, places, ROUND_FLOOR)


def up(value: Number, places: int = 0) -> str:
    """Round towards plus infinity."""
    return _write(value, places, ROUND_CEILING)


def near(value: Number, places: int = 0) -> str:
    """Round to the nearest, ties to even."""
    return _write(value, places, ROUND_HALF_EVEN)


def count(n: int) -> str:
    """Write a whole number with separators of thousands.

    >>> count(1500)
    '1,500'
    """
    return f"{n:,}"


def places(low: float, high: float, most: int = 4) -> int:
    """Decimals down to the first significant digit of half the interval, at most ``most``.

    >>> places(0.9738, 0.9756), places(0.783, 0.788), places(3, 40)
    (4, 3, 0)
    """
    half = (Decimal(repr(float(high))) - Decimal(repr(float(low)))) / 2
    if not 0 < half < math.inf:
        return most
    return min(max(0, -half.normalize().adjusted()), most)


def fraction_places(fraction: float) -> int:
    """Decimals of a percentage: two significant digits, one of the distance to 100 %.

    >>> [fraction_places(fraction) for fraction in (0.65, 0.07, 0.0094, 0.9995)]
    [0, 1, 2, 2]
    """
    if not 0 < fraction < 1:
        return 0
    needed = -1 - _exponent(fraction) if fraction <= 0.5 else -2 - _exponent(1 - fraction)
    return min(max(0, needed), FINEST)


def noise_places(noise_std: float) -> int | None:
    """Decimals down to a hundredth of a noise; negative for tens and hundreds, None without noise.

    >>> noise_places(0.047), noise_places(3000.0), noise_places(0.0)
    (4, -1, None)
    """
    if not 0 < noise_std < math.inf:
        return None
    return 2 - Decimal(repr(float(noise_std))).adjusted()


def rounded_to_noise(value: float, noise_std: float) -> float:
    """Round a released number to a hundredth of its noise: what is behind it says nothing.

    >>> rounded_to_noise(41.3171875, 0.047), rounded_to_noise(10000004.3, 3000.0), rounded_to_noise(2.5, 0.0)
    (41.3172, 10000000.0, 2.5)
    """
    decimals = noise_places(noise_std)
    return value if decimals is None or not math.isfinite(value) else round(value, decimals)


def noise_interval(value: float, noise_std: float, factor: float) -> tuple[float, float]:
    """Compute the interval of the noise around a released number, outward, with as many digits as that number.

    >>> noise_interval(10000004.0, 20.0, 1.96)
    (9999964.8, 10000043.2)
    """
    half = Decimal(repr(factor * noise_std))
    return outward(Decimal(repr(value)) - half, Decimal(repr(value)) + half, noise_std)


def outward(low: Number, high: Number, noise_std: float) -> tuple[float, float]:
    """Round the ends of an interval outward to a hundredth of the noise.

    >>> outward(41.23456, 41.71234, 0.12)
    (41.234, 41.713)
    """
    decimals = noise_places(noise_std)
    if decimals is None or not (math.isfinite(low) and math.isfinite(high)):
        return float(low), float(high)
    unit, digits_of_all = Decimal(1).scaleb(-decimals), Context(prec=_MOST_DIGITS)
    least = _decimal(low).quantize(unit, ROUND_FLOOR, digits_of_all)
    return float(least), float(_decimal(high).quantize(unit, ROUND_CEILING, digits_of_all))


def _decimal(number: Number) -> Decimal:
    return number if isinstance(number, Decimal) else Decimal(repr(float(number)))


def digits(
    value: float,
    low: float | None = None,
    high: float | None = None,
    *,
    scale: int = 0,
    most: int = 4,
    bound_type: BoundType = "point",
) -> Digits:
    """Write a value with its interval, ends outward; a value that is an end is rounded like that end.

    >>> digits(0.91304, 0.91123, 0.91488, scale=2, most=1)
    Digits(value='91.3', low='91.1', high='91.5')
    >>> digits(0.73106, scale=2, most=1, bound_type="upper").value
    '73.2'
    """
    ends = [end for end in (low, high) if end is not None and math.isfinite(end)]
    if scale == 0 and 0 < max(map(abs, (value, *ends))) < _SMALLEST:
        return _digits((value, low, high), _power, bound_type)
    n = places(min(ends) * 10**scale, max(ends) * 10**scale, most) if len(ends) == 2 else most
    if scale == 0 and len(ends) < 2 and value and math.isfinite(value):
        n = min(max(n, 1 - _exponent(value)), max(0, 5 - _exponent(value))) if most else 0
    return _digits((value, low, high), lambda end, way: _safe(_scaled(end, scale), n, way), bound_type)


def fractions(
    value: float, low: float | None = None, high: float | None = None, bound_type: BoundType = "point"
) -> Digits:
    """Write a fraction in percent, with two significant digits; the sign is left to the sentence.

    >>> fractions(0.0694, 0.0661, 0.0738)
    Digits(value='6.9', low='6.6', high='7.4')
    """
    n = fraction_places(value or high or 0.0)
    return _digits((value, low, high), lambda end, way: _safe(_scaled(end, 2), n, way), bound_type)


def significant(value: float, n: int = 2) -> str:
    """Write a size to so many significant digits, however small or large.

    >>> [significant(value) for value in (0.0518, 0.0996, 12.7, 1234.5, 1.5e-7)]
    ['0.052', '0.10', '13', '1,200', '1.5e\u22127']
    """
    if not value or not math.isfinite(value):
        return near(value)
    number = Decimal(repr(float(value)))
    rounded = number.quantize(Decimal(1).scaleb(number.adjusted() - n + 1), rounding=ROUND_HALF_EVEN)
    rounded = rounded.quantize(Decimal(1).scaleb(rounded.adjusted() - n + 1))  # 0.0996 has become 0.100
    if -5 <= rounded.adjusted() < 9:
        return f"{rounded:,f}".replace("-", MINUS)
    mantissa, exponent = f"{rounded:.{n - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}".replace("-", MINUS)


def settled(value: float) -> float:
    """Drop the last digits of a computed number: 1 - 0.99 is 0.01, and is not rounded up from there.

    >>> 1 - 0.99, settled(1 - 0.99)
    (0.010000000000000009, 0.01)
    """
    return float(f"{value:.12g}")


def percent(fraction: float) -> str:
    r"""Write a fraction to two significant digits, with its sign; digits that are zero are left out.

    >>> percent(0.001), percent(0.05516)
    ('0.1\u202f%', '5.5\u202f%')
    >>> percent(1e-300)
    '1e\u2212298\u202f%'
    """
    return _percent(fraction, near)


def percent_at_most(fraction: float) -> str:
    r"""Write what a ceiling allows: as `percent`, rounded up.

    >>> percent_at_most(0.0546), percent_at_most(1 - 0.99)
    ('5.5\u202f%', '1\u202f%')
    """
    return _percent(settled(fraction), up)


def plain_number(value: float) -> str:
    """Write a parameter as it was given: up to six significant digits, small powers of ten as ``1e-05``."""
    return "infinity" if value == math.inf else f"{value:g}".replace("-", MINUS)


def parameter(value: float) -> str:
    """Write a parameter, with powers of ten by signs of their own.

    >>> parameter(4.0), parameter(1e-5)
    ('4', '10⁻⁵')
    """
    if value and (abs(value) < 1e-3 or abs(value) >= 1e6) and math.isfinite(value):
        mantissa, exponent = f"{value:.3e}".split("e")
        factor = mantissa.rstrip("0").rstrip(".").replace("-", MINUS)
        times = "" if factor == "1" else f"{factor} \u00d7 "
        return f"{times}10{_raised(str(int(exponent)))}"
    return plain_number(value)


def powers(text: str) -> str:
    """Write a printed number with its power of ten by signs of their own.

    >>> powers(digits(1.306e-5).value), powers("0.25")
    ('1.31 × 10⁻⁵', '0.25')
    """
    return _POWER.sub(lambda match: f" \u00d7 10{_raised(match[1])}", text)


def _raised(power: str) -> str:
    return power.replace("-", MINUS).translate(_SUPERSCRIPTS)


def _percent(fraction: float, rounded: Callable[[Number, int], str]) -> str:
    text = rounded(_scaled(fraction, 2), fraction_places(fraction))
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    if text == "0" and fraction > 0:
        text = plain_number(float(f"{100 * fraction:.2g}"))
    return f"{text}{THIN}%"


def _digits(
    numbers: tuple[float, float | None, float | None], write: Callable[[float, str], str], bound_type: BoundType
) -> Digits:
    """Text of a value and its ends, each rounded its own way."""
    value = numbers[0]
    low, high = (None if end is None or not math.isfinite(end) else end for end in numbers[1:])
    one_sided = low is None or high is None
    # a value that is itself a bound is rounded to its safe side, any other one to the nearest
    way = ROUND_HALF_EVEN
    if (value == low and (one_sided or bound_type == "lower")) or (bound_type == "lower" and low is None):
        way = ROUND_FLOOR
    elif (value == high and (one_sided or bound_type == "upper")) or (bound_type == "upper" and high is None):
        way = ROUND_CEILING
    return Digits(
        write(value, way),
        "" if low is None else write(low, ROUND_FLOOR),
        "" if high is None else write(high, ROUND_CEILING),
    )


def _power(value: float, rounding: str) -> str:
    """Three significant digits and a power of ten."""
    if not value:
        return "0"
    number = Decimal(repr(float(value)))
    rounded = number.quantize(Decimal(1).scaleb(number.adjusted() - 2), rounding=rounding)
    return f"{rounded:.2e}".replace("-", MINUS)


def _scaled(value: float, scale: int) -> Number:
    """Value times a power of ten without the error of a float product."""
    return Decimal(repr(float(value))).scaleb(scale) if math.isfinite(value) else value


def _safe(value: Number, n: int, rounding: str) -> str:
    """Round to the safe side, unless that would show a difference where there is none: 99.0000000001 is 99.0."""
    if rounding != ROUND_HALF_EVEN and math.isfinite(value):
        number = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
        nearest = number.quantize(Decimal(1).scaleb(-n), rounding=ROUND_HALF_EVEN)
        if abs(nearest - number) <= min(Decimal(_SAME) * abs(number), Decimal(_ON_THE_GRID).scaleb(-n)):
            rounding = ROUND_HALF_EVEN
    return _write(value, n, rounding)


def _exponent(value: float) -> int:
    """Power of ten of the first significant digit."""
    return Decimal(repr(float(value))).normalize().adjusted()


def _write(value: Number, n: int, rounding: str) -> str:
    if not math.isfinite(value):
        return "infinity" if value > 0 else f"{MINUS}infinity"
    number = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    text = f"{number.quantize(Decimal(1).scaleb(-n), rounding=rounding):,f}"
    return text.lstrip("-") if not text.strip("-0.,") else text.replace("-", MINUS)
