"""What a reader must know of a statistic, in sentences: the response, the scale of the columns, a penalty."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from leakbound.reports.about import ColumnScale, StatisticParameters
from leakbound.reports.numbers import parameter, significant
from leakbound.reports.sections.words import joined, say

WHAT: Mapping[str, str] = {
    "mean": "Each mean is a noisy sum divided by a noisy count.",
    "sum": "Each total is of the records that have a value.",
    "second_moment": "Mean products of the columns as they are.",
    "covariance": "Covariances have the number of the records that they are of as divisor.",
    "correlation": "Correlations are those of Pearson.",
    "ratio": "Each ratio is a total divided by the total of {denominator}.",
    "histogram": "A bin holds its left edge and not its right one, the last bin both.",
    "quantiles": "Quantiles are interpolated linearly between the two nearest records.",
    "ols": "Least squares of {response}, on the columns as they are.",
    "standard_errors": (
        "Standard errors of the coefficients of least squares of {response}, for independent records and errors of "
        "equal variance."
    ),
    "ridge": (
        "Least squares of {response}, with {penalty} times the sum of squared slopes added to that of squared "
        "residuals."
    ),
    "poisson": "A Poisson regression: the coefficients are those of the logarithm of the mean of {response}.",
    "huber": "A regression of {response} by the pseudo-Huber loss, with the threshold {threshold} in its unit.",
    "logistic": (
        "The coefficients are those of the log odds of {response} = {modelled_class}: a positive one says that this "
        "class is more frequent where its column is larger."
    ),
}
OF_VALUES = (
    "A record without a value is in no count and no sum. Whether it has one is a secret, so that counts have noise, "
    "too. Values outside of the declared range were moved to its nearer end, and all numbers and intervals are about "
    "the values so moved."
)
INTERVALS = {
    "mean": (
        "The intervals of the means are exact (Fieller): over all releases they miss the mean in at most 5 of 100. A "
        "mean is left out where its noisy count is not above {least}: where fewer records than that have a value, the "
        "noise decides whether a mean is printed, and as few as 67 of 100 of the printed intervals may hold it."
    ),
    "second_moment": (
        "The intervals are exact (Fieller): over all releases they miss the number in at most 5 of 100. The numbers "
        "are left out where the noisy count of complete records is not above {least}; with fewer records than that, of "
        "the printed intervals as few as 82 of 100 may hold."
    ),
    "covariance": (
        "They are made of a noisy count, noisy sums and noisy sums of products; their intervals are to first order in "
        "this noise. They are left out where the noisy count of complete records is not above {least}."
    ),
}
RESPONSE = "the response"  # of arrays, which have no names
SCALED = (
    "Before the fit each column is standardised: its centre is subtracted, and the rest divided by its spread, so that "
    "a coefficient is per spread. Column (centre, spread):"
)
CENTRED = "Before the products are taken, a public centre is subtracted from each column:"
SCALED_BY_DATA = (
    "The coefficients are those of the columns as they are. The penalty is of slopes per standard deviation of all "
    "records, which is not published."
)
AS_THEY_ARE = "The columns are used as they are."
PENALTY: Mapping[str, str] = {
    "logistic": "Penalty: 1/(2C) times the sum of squared slopes, C = {penalty}.",
    "poisson": "Penalty: {penalty}/2 times the sum of squared slopes.",
    "huber": "Penalty: {penalty}/2 times the sum of squared slopes.",
}
MOST_SCALES = 12  # columns whose centre and spread are shown


def parameters_note(facts: StatisticParameters | None) -> Markup:
    """Say what a reader must know of a statistic; nothing where the names of its numbers say all.

    >>> print(parameters_note(StatisticParameters(kind="ratio", denominator="hours")))
    Each ratio is a total divided by the total of hours.
    """
    if facts is None:
        return Markup("")
    if facts.kind == "second_moment" and facts.scales:
        return joined([_scales(facts), _of_values(facts)])
    first = say(
        WHAT[facts.kind],
        response=facts.response or RESPONSE,
        modelled_class=facts.modelled_class,
        denominator=facts.denominator,
        penalty="" if facts.penalty is None else parameter(facts.penalty),
        threshold="" if facts.threshold is None else parameter(facts.threshold),
    )
    return joined([first, _scales(facts), _penalty(facts), _of_values(facts)])


def _of_values(facts: StatisticParameters) -> Markup:
    """Say what a missing value is in differential privacy, and what the intervals are."""
    if not facts.of_values:
        return Markup("")
    intervals = Markup("")
    if facts.least_count is not None:
        intervals = say(INTERVALS[facts.kind], least=significant(facts.least_count))
    return joined([say(OF_VALUES), intervals])


def _scales(facts: StatisticParameters) -> Markup:
    """Say by which numbers the columns are moved and scaled."""
    if facts.scales_of_data:
        return say(SCALED_BY_DATA)
    if not facts.scales:
        return say(AS_THEY_ARE) if facts.kind in ("ridge", "poisson", "huber", "logistic") else Markup("")
    named = [_scale(facts, scale) for scale in facts.scales[:MOST_SCALES]]
    n_more = len(facts.scales) - len(named)
    more = f", and {n_more:,} more, which the JSON has" if n_more else ""
    intro = CENTRED if facts.kind == "second_moment" else SCALED
    return say("{intro} {named}{more}.", intro=say(intro), named=Markup("; ").join(named), more=more)


def _scale(facts: StatisticParameters, scale: ColumnScale) -> Markup:
    if facts.kind == "second_moment":
        return say("{column} {centre}", column=scale.column, centre=parameter(scale.centre))
    return say(
        "{column} ({centre}, {spread})",
        column=scale.column,
        centre=parameter(scale.centre),
        spread=parameter(scale.spread),
    )


def _penalty(facts: StatisticParameters) -> Markup:
    """State the penalty, unless there is none, or the first sentence has it."""
    if not facts.penalty or facts.kind not in PENALTY:
        return Markup("")
    return say(PENALTY[facts.kind], penalty=parameter(facts.penalty))
