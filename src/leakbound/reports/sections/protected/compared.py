"""The designs side by side, for the owner: what each would cost for the same accuracy, and which is recommended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from leakbound.reports.about import DesignErrors, DesignsCompared
from leakbound.reports.numbers import powers, significant
from leakbound.reports.sections.words import say

MOST_COLUMNS = 6  # numbers that are shown next to each other
MOST_ROWS = 40  # numbers that a text shows below each other
HEADS = {"design": "Design", "promise": "Promise", "number": "Statistic"}
ONE_ERROR = "Standard error"
METHODS: Mapping[str, str] = {  # of others, on the same design
    "": "",
    "discrete_gaussian": ", discrete noise",
    "pac_least_noise": ", PAC privacy",
    "izzo_gamma": ", Izzo et al.",
}
SOURCES: Mapping[str, str] = {  # of the methods of others
    "discrete_gaussian": "Discrete noise: a discrete Gaussian of the least scale within the limit on total variation.",
    "pac_least_noise": "PAC privacy: the least noise for the limit on mutual information (xiao2023).",
    "izzo_gamma": "Izzo et al.: Algorithm 1 with the Gamma radius (izzo2022, Theorem 7 and Corollary 8).",
}
ESTIMATED = "Estimated from draws of half of the records, and not certified: {names}. All other errors are computed."
RECOMMENDED: Mapping[str, str] = {
    "counts": (
        "Recommended: promise = anyone. It is a table of counts, for which differential privacy promises the most. It "
        "needs more noise than leaving one record out: at eta = 0.05 about half more at most for three or more levels, "
        "about twice as much for two."
    ),
    "ranges": (
        "Recommended: promise = anyone. The ranges of the columns are declared, so that differential privacy can be "
        "promised, also to people who are not in the file."
    ),
    "no_ranges": (
        "Recommended: promise = file. Nothing was declared that bounds what one record changes, and leaving one record "
        "out needs no such bound. If you know ranges from a codebook, declare them (--range; in Python "
        "Anyone(ranges=...)) and compare again."
    ),
    "no_levels": (
        "Recommended: promise = file. The levels of the groups are not declared, and differential privacy must not "
        "take them from the file. If you know them from a codebook, declare them (levels, --levels) and compare again."
    ),
    "drop_missing": (
        "Recommended: promise = file. Rows with missing values are left out, which differential privacy does not "
        "allow: n is public there, and would tell whose row is complete."
    ),
    "quantiles": (
        "Recommended: promise = file. Quantiles under differential privacy are refused here: what one record changes "
        "in a quantile is bounded by nothing but its whole range; other tools have better ones."
    ),
    "no_bound": (
        "Recommended: promise = file. No bound is known here on what one record changes in this statistic, and leaving "
        "one record out needs no such bound."
    ),
}
FOR_THE_OWNER = (
    "These errors are exact functions of the data, for their owner alone. The recommendation follows from the kind of "
    "statistic and from what was declared, and tells nothing."
)


def title(facts: DesignsCompared) -> str:
    """Say what the table is of, and in which unit."""
    in_errors = ", in standard errors of the statistic of all records" if _has_unit(facts) else ""
    return f"Total error of each design at the same accuracy of its own attacker{in_errors}:"


def rows(facts: DesignsCompared) -> list[Mapping[str, Markup]]:
    """List the errors of each design that has any: a row a design, or a row a number where there are many."""
    known = [design for design in facts.designs if design.errors is not None]
    if not known:
        return []
    if len(facts.labels) > MOST_COLUMNS:
        return [_row_of_number(facts, known, place) for place in range(len(facts.labels))]
    of_designs = [_row_of_design(facts, design) for design in known]
    return [*of_designs, _row_of_units(facts)] if _has_unit(facts) else of_designs


def too_many(facts: DesignsCompared) -> Markup:
    """Say where all numbers are, if a text does not show them."""
    n = len(facts.labels)
    if n <= MOST_ROWS:
        return Markup("")
    return say(
        "The first {most} of {n} numbers are shown; designs.csv in the folder of --out has all, and in Python "
        "to_json().",
        most=MOST_ROWS,
        n=f"{n:,}",
    )


def reasons(facts: DesignsCompared) -> list[Markup]:
    """Say why a design has no errors."""
    return [say("{design}: {reason}.", design=_name(row), reason=row.reason) for row in facts.designs if row.reason]


def notes(facts: DesignsCompared) -> list[Markup]:
    """Say whose noise other rows have, and which errors are estimated."""
    known = [design for design in facts.designs if design.errors is not None]
    lines = [Markup.escape(SOURCES[design.method]) for design in known if design.method]
    estimated = [_name(design) for design in known if design.is_estimated]
    if estimated:
        lines.append(say(ESTIMATED, names="; ".join(estimated)))
    return lines


def named(design: DesignErrors) -> str:
    """Name a design with its promise, for the head of a column."""
    return f"{_name(design)} ({design.promise})"


def _name(design: DesignErrors) -> str:
    """Name the design, and the method of others that it is shown with."""
    return design.name + METHODS[design.method]


def _row_of_design(facts: DesignsCompared, design: DesignErrors) -> Mapping[str, Markup]:
    row = {HEADS["design"]: Markup.escape(_name(design)), HEADS["promise"]: Markup.escape(design.promise)}
    errors = design.errors or ()
    return row | {label: _error(facts, place, errors[place]) for place, label in enumerate(facts.labels)}


def _row_of_units(facts: DesignsCompared) -> Mapping[str, Markup]:
    """Write the standard errors in the units of the numbers."""
    row = {HEADS["design"]: Markup(ONE_ERROR), HEADS["promise"]: Markup("")}
    units = zip(facts.labels, facts.standard_errors, strict=True)
    return row | {label: powers(significant(error or 0.0)) for label, error in units}


def _row_of_number(facts: DesignsCompared, designs: Sequence[DesignErrors], place: int) -> Mapping[str, Markup]:
    row = {HEADS["number"]: Markup.escape(facts.labels[place])}
    for design in designs:
        errors = design.errors or ()
        row[named(design)] = _error(facts, place, errors[place])
    unit = facts.standard_errors[place]
    return row | ({ONE_ERROR: powers(significant(unit))} if _has_unit(facts) and unit else {})


def _error(facts: DesignsCompared, place: int, error: float) -> Markup:
    """Write an error in units of the standard error, if all of these are known."""
    unit = facts.standard_errors[place]
    return powers(significant(error / unit if _has_unit(facts) and unit else error))


def _has_unit(facts: DesignsCompared) -> bool:
    """Whether all standard errors are known."""
    return all(facts.standard_errors)
