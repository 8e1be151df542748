"""What a paper prints beside what we measure, and whether the two agree.

The printed values and the tolerances stand in ``printed.toml`` of each paper; they were fixed before the first run.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

Kind = Literal["about", "at_most", "at_least", "holds"]
Verdict = Literal["agrees", "differs", "erratum", "smaller", "not run"]
ERRORS = 3.0  # standard errors of ours that are added to a tolerance


@dataclass(frozen=True)
class Ours:
    """What we measure for a printed number or statement.

    Parameters
    ----------
    value : float or bool
        A truth value where a statement is tested.
    error : float
        Standard error of the value; 0 where it is exact.
    smaller : str
        Where the run was smaller than the paper's, so that the numbers cannot be compared: how.
    detail : str
        What a reader should see beside the value.

    Examples
    --------
    >>> Ours(7.77, error=0.01).error
    0.01
    """

    value: float | bool
    error: float = 0.0
    smaller: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Printed:
    """A number or a statement of a paper.

    Parameters
    ----------
    experiment : str
        As ``"izzo2022/figure1"``.
    key : str
        Its name in the experiment.
    says : str
        The statement, in our words.
    where : str
        Section, figure or equation.
    kind : {"about", "at_most", "at_least", "holds"}
        How ours is compared with it.
    value : float, optional
        The printed number; none where a statement holds or not.
    tolerance : float
        How far ours may be from it, before three standard errors of ours are added.
    because : str
        Where the tolerance comes from.
    erratum : int, optional
        The entry of the errata that explains a difference.
    """

    experiment: str
    key: str
    says: str
    where: str
    kind: Kind
    value: float | None = None
    tolerance: float = 0.0
    because: str = ""
    erratum: int | None = None

    def agrees(self, ours: Ours) -> bool:
        """Whether ours is what is printed, to the tolerance and three standard errors of ours."""
        if self.kind == "holds":
            return bool(ours.value)
        assert self.value is not None
        slack, above = self.tolerance + ERRORS * ours.error, float(ours.value) - self.value
        slack += 1e-12 * abs(self.value)  # rounding alone is no difference
        return {"about": abs(above) <= slack, "at_most": above <= slack, "at_least": above >= -slack}[self.kind]

    def judged(self, ours: Ours | None) -> Claim:
        """Beside ours; a difference that an erratum explains is the paper's."""
        if ours is None:
            return Claim(self, None, "not run")
        if ours.smaller:
            return Claim(self, ours, "smaller")
        return Claim(self, ours, "agrees" if self.agrees(ours) else "erratum" if self.erratum else "differs")


@dataclass(frozen=True)
class Claim:
    """What is printed, what we have, and the verdict.

    Parameters
    ----------
    printed : Printed
    ours : Ours, optional
        None where it was not run.
    verdict : {"agrees", "differs", "erratum", "smaller", "not run"}
        erratum: the paper is wrong there, and the errata say how; smaller: measured at another scale than the
        paper's, not compared.
    """

    printed: Printed
    ours: Ours | None
    verdict: Verdict

    @property
    def difference(self) -> float | None:
        """Ours less the printed number."""
        if self.ours is None or self.printed.value is None or isinstance(self.ours.value, bool):
            return None
        return float(self.ours.value) - self.printed.value

    def row(self) -> dict[str, Any]:
        """For a file: plain values by name."""
        printed, ours = self.printed, self.ours
        return {
            "experiment": printed.experiment,
            "key": printed.key,
            "says": printed.says,
            "where": printed.where,
            "kind": printed.kind,
            "printed": printed.value,
            "tolerance": printed.tolerance,
            "because": printed.because,
            "ours": None if ours is None else ours.value,
            "error": None if ours is None else ours.error,
            "difference": self.difference,
            "verdict": self.verdict,
            "erratum": printed.erratum,
            "note": "" if ours is None else ours.smaller or ours.detail,
        }


@cache
def printed(paper: str) -> Mapping[str, Mapping[str, Printed]]:
    """All that a paper prints, by figure and key.

    Parameters
    ----------
    paper : str

    Raises
    ------
    ValueError
        If a key appears twice.
    """
    text = resources.files("leakscope.papers").joinpath(paper, "printed.toml").read_text(encoding="utf-8")
    found: dict[str, dict[str, Printed]] = {}
    for table in tomllib.loads(text)["claim"]:
        figure = table.pop("experiment")
        for each in _rows(table):
            claims = found.setdefault(figure, {})
            if each["key"] in claims:
                raise ValueError(f"{paper}/{figure}: {each['key']} is there twice")
            claims[each["key"]] = Printed(f"{paper}/{figure}", **each)
    return found


def _rows(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One row, or one for each combination of the names under ``each``, in their order."""
    each, values = table.pop("each", {}), table.pop("values", None)
    combinations = list(itertools.product(*each.values()))
    if values is not None and len(values) != len(combinations):
        raise ValueError(f"{table['key']}: {len(values)} values for {len(combinations)} rows")
    for number, combination in enumerate(combinations):
        names = dict(zip(each, combination, strict=True))
        said = {word: table[word].format(**names) for word in ("key", "says")}
        yield table | said | ({} if values is None else {"value": values[number]})
