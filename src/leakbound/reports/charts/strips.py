"""The strip of a record: a tick a model at the probability that it gives the true label, as plain SVG."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from leakbound.reports.numbers import percent

Array = np.ndarray
_WIDTH, _HEIGHT, _LINE = 190, 26, 13
_PROBABILITIES = (
    0.5,
    0.1,
    0.9,
    0.01,
    0.99,
    0.001,
    0.999,
    1e-4,
    0.9999,
    1e-6,
    0.999999,
    0.2,
    0.8,
    0.3,
    0.7,
)  # those that matter most first
_LETTER = 6.0  # pixels of width, of text of 11 pixels
_APART, _NARROWEST = 8.0, 125.0  # pixels between two labels, where the strip is as narrow as on a telephone


def strip(signal: Float[Array, " M"], member: Bool[Array, " M"], low: float, high: float) -> str:
    """Ticks above the line where the record was in, below it where it was out.

    >>> strip(np.array([-2.0, 1.5]), np.array([False, True]), -3.0, 3.0).count("<path")
    2
    """
    at = _places(signal, low, high)
    above = _ticks(at[member], 11.5, -9, "--attack,#0b5cad", "1.5", ".75")
    below = _ticks(at[~member], 14.5, 9, "--ink,#1b1f24", "1.2", ".6")
    line = _rule("0", str(_WIDTH), str(_LINE), str(_LINE), "--rule,#d3d8de")
    start = f'<svg class="strip" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
    return f"{start}{line}{above}{below}</svg>"


def strip_axis(low: float, high: float) -> str:
    """Draw the scale under the last strip: probabilities of the true label, spaced by their log-odds."""
    parts = [_rule("0", "100%", "1", "1", "--mute,#5b6570")]
    occupied: list[tuple[float, float]] = []
    for fraction in _PROBABILITIES:
        odds = float(np.log(fraction / (1 - fraction)))
        place = float(_places(np.array([odds]), low, high)[0]) / _WIDTH
        label = percent(fraction)
        half = (_LETTER * len(label) + _APART) / (2 * _NARROWEST)
        if low <= odds <= high and all(abs(place - other) >= half + reach for other, reach in occupied):
            occupied.append((place, half))
            x = f"{100 * place:.1f}%"
            parts.append(_rule(x, x, "1", "5", "--mute,#5b6570"))
            parts.append(
                f'<text x="{x}" y="18" font-size="11" text-anchor="{_anchor(place)}" '
                f'fill="var(--mute,#5b6570)">{label}</text>'
            )
    named = 'role="img" aria-label="scale: probability of the true label"'
    return f'<svg class="axis" width="100%" style="height:{_HEIGHT}px" {named}>{"".join(parts)}</svg>'


def _places(signal: Float[Array, " M"], low: float, high: float) -> Float[Array, " M"]:
    """Pixels from the left, two pixels free at both ends."""
    width = high - low if high > low else 1.0
    return 2 + (_WIDTH - 4) * np.clip((signal - low) / width, 0, 1)


def _ticks(at: Array, start: float, length: int, color: str, width: str, opacity: str) -> str:
    if not len(at):
        return ""
    d = "".join(f"M{x:.1f} {start}v{length}" for x in np.sort(at))
    return f'<path d="{d}" stroke="var({color})" stroke-width="{width}" stroke-opacity="{opacity}"/>'


def _rule(x1: str, x2: str, y1: str, y2: str, color: str) -> str:
    return f'<line x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}" stroke="var({color})"/>'


def _anchor(place: float) -> str:
    """Align a label so that it stays inside the scale."""
    if place < 0.1:
        return "start"
    return "end" if place > 0.9 else "middle"
