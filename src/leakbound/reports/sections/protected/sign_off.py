"""What somebody who signs for a release needs, before it is made: what, under which promise, with how much noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from leakbound.reports.about import DesignsCompared
from leakbound.reports.numbers import powers, significant
from leakbound.reports.sections.protected.designs import name_of
from leakbound.reports.sections.protected.result import ProtectedResult
from leakbound.reports.sections.protected.words import right
from leakbound.reports.sections.words import say, several

WHAT = "{n} ({statistic}) of {data}, {size}"
PROMISE = "{promise} (design {design}), eta = {eta}: any attacker is right in at most {right} of 100 cases"
NOISE = "standard deviation {noise}, {ratio} of the standard error without noise"
NO_RATIO = "standard deviation {noise}; the standard error without noise is not known"
NO_NOISE = "none is needed"
NOT_CHOSEN = "Would be released: {n}. Nothing is chosen yet; recommended: promise {promise} (design {design})."
ITS_ERROR = "Its noise: {ratio} of the standard error without noise."
PROMISES: Mapping[str, str] = {"dp": "anyone", "leave-one-out": "file", "half": "drawn"}


def rows(result: ProtectedResult) -> list[tuple[str, Markup]]:
    """List what would be released, the promise and the noise; nothing once it is released."""
    about = result.about
    if result.values or result.public:
        return []
    certificate = result.certificate
    n_numbers = len(certificate.noise.rms)
    return [
        (
            "Would be released",
            say(
                WHAT,
                n=several(n_numbers, "number"),
                data=about.data.name,
                size=several(about.data.records, "row" if about.data.records > certificate.n else result.unit),
                statistic=_statistic(result),
            ),
        ),
        (
            "Promise",
            say(
                PROMISE,
                promise=certificate.promise,
                design=name_of(result),
                eta=f"{certificate.eta:g}",
                right=right(result),
            ),
        ),
        ("Noise", _noise(result)),
    ]


def _statistic(result: ProtectedResult) -> str:
    """Name the statistic with its columns, or the names of several."""
    if result.about.statistics:
        return ", ".join(statistic.name for statistic in result.about.statistics)
    return statistic_by(result.about.plan["statistic"], result.about.plan.get("by") or ())


def _noise(result: ProtectedResult) -> Markup:
    """State the noise, and its ratio to the standard error of each number, margins of a table left out."""
    if result.certificate.no_noise:
        return say(NO_NOISE)
    planned = result.about.planned
    sizes = [row.noise_std for row in planned if row.noise_std]
    noise = _range(sizes or [size for size in result.certificate.noise.rms if size])
    ratios = [row.noise_std / row.sampling_std for row in planned if row.noise_std and row.sampling_std]
    if not ratios:
        return say(NO_RATIO, noise=noise)
    return say(NOISE, noise=noise, ratio=_range(ratios))


def of_designs(facts: DesignsCompared, command: str) -> list[Markup]:
    """Say the same before a design is chosen: how many numbers, what is recommended, its noise, and the command."""
    n = several(len(facts.labels), "number")
    lines = [say(NOT_CHOSEN, n=n, promise=PROMISES[facts.recommended], design=facts.recommended)]
    errors = next((row.errors for row in facts.designs if row.name == facts.recommended and not row.method), None)
    if errors is not None:
        pairs = zip(errors, facts.standard_errors, strict=True)
        ratios = [error / unit for error, unit in pairs if error and unit]
        if ratios:
            lines.append(say(ITS_ERROR, ratio=_range(ratios)))
    if command:
        lines.append(say("Release it with: {command}", command=command))
    return lines


def statistic_by(statistic: str, by: Sequence[str]) -> str:
    """Name a statistic with the columns whose levels it counts, as ``"table by sector, region"``."""
    return f"{statistic}{' by ' if by else ''}{', '.join(by)}"


def _range(values: list[float]) -> Markup:
    """Write one number, or the smallest and the largest."""
    low, high = powers(significant(min(values))), powers(significant(max(values)))
    return low if low == high else say("{low} to {high}", low=low, high=high)
