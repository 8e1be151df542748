"""How the numbers of each quantity are printed: in cases of 100, in percent, or as they are."""

from __future__ import annotations

from leakbound.core.findings import Finding
from leakbound.reports.numbers import Digits, digits, down, fractions, near, settled, up

FRACTIONS = ("tpr", "tpr_these_models", "ppv", "posterior", "mean_posterior")  # quantities that are printed in percent
SCALES = {  # power of ten by which a quantity is shown, and its largest number of decimals
    "accuracy": (2, 1),
    "baseline_accuracy": (2, 1),
    "most_exposed": (2, 0),
    "named_right": (2, 1),
    "attribute_accuracy": (2, 1),
    "attribute_gain": (2, 1),
    "excess_matches": (2, 1),
    "disclosed_fraction": (2, 1),
    "excess_singled_out": (2, 1),
    "excess_linked": (2, 1),
    "excess_inferred": (2, 1),
    "epsilon": (0, 2),
    "pmp_epsilon": (0, 4),
    "largest_epsilon": (0, 4),
    "largest_mu": (0, 4),
    "smallest_cell": (0, 0),
    "degrees_of_freedom": (0, 0),
    "smallest_leaf": (0, 0),
    "smallest_group": (0, 0),
    "one_label_groups": (0, 0),
    "stores_records": (0, 0),
}


GAINS = ("eta", "advantage")  # differences of probabilities
NO_DIFFERENCE = 1e-6  # smaller ones are rounding errors, or nothing that anybody could see


def shown(finding: Finding) -> Digits:
    """Write a finding's numbers in the unit of its quantity: cases of 100, percent, or none."""
    value = settled(finding.value or 0.0)
    low, high = (None if end is None else settled(end) for end in (finding.low, finding.high))
    if finding.quantity in GAINS and 0 < value < NO_DIFFERENCE:  # no attacker does so much better than guessing
        value = NO_DIFFERENCE if finding.bound_type == "upper" else 0.0
    if low == high == value:  # exact: no interval
        low = high = None
    if finding.quantity in FRACTIONS:
        return fractions(value, low, high, finding.bound_type)
    scale, most = SCALES.get(finding.quantity, (0, 4))
    text = digits(value, low, high, scale=scale, most=most, bound_type=finding.bound_type)
    if finding.quantity == "accuracy" and low is not None and high is not None:
        prior = finding.operating_point.get("prior", 0.5)
        baseline = settled(100 * max(prior, 1 - prior))
        if 100 * low > baseline and float(text.low) <= baseline:  # rounding would hide that it is above a guess
            return one_decimal(value, low, high)
    return text


def one_decimal(value: float, low: float, high: float) -> Digits:
    """Write an accuracy and its interval with one decimal, the ends outward."""
    return Digits(near(100 * value, 1), down(settled(100 * low), 1), up(settled(100 * high), 1))
