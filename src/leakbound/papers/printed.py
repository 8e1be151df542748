"""What a paper prints compared with what we measure, and whether the two agree.

The printed values and the tolerances are in ``printed.toml`` of each paper. They were fixed before the first run; every
later change of one of them is listed there under ``change``, with its reason.
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

Kind = Literal["about", "at_most", "at_least", "holds"]
Verdict = Literal["agrees", "identity", "cannot tell", "differs", "erratum", "smaller", "not run"]
ERRORS = 3.0  # standard errors on each side of an interval


@dataclass(frozen=True)
class Ours:
    """What we measure for a printed number or statement.

    >>> Ours(7.77, error=0.01).error
    0.01
    """

    value: float | bool
    error: float = 0.0
    smaller: str = ""
    detail: str = ""
    unclear: bool = False
    at_least: bool = False  # a lower bound of what is compared: its interval has no upper end

    @classmethod
    def stated(cls, holds: bool | None, smaller: str = "", detail: str = "") -> Ours:
        """Make the result of a tested statement; None if the errors are too large to tell."""
        return cls(bool(holds), smaller=smaller, detail=detail, unclear=holds is None)


@dataclass(frozen=True)
class Change:
    """A change of a claim after its tolerance was committed."""

    experiment: str
    keys: tuple[str, ...]
    what: str
    why: str
    after_results: bool


@dataclass(frozen=True)
class Printed:
    """A number or a statement of a paper."""

    experiment: str
    key: str
    says: str
    where: str
    kind: Kind
    value: float | None = None
    tolerance: float = 0.0  # of the true value: the rounding of what is printed, or the paper's own error bars
    error: float = 0.0
    because: str = ""
    erratum: int | None = None
    identity: str = ""
    since: str = ""
    changed: tuple[Change, ...] = ()

    def compared(self, ours: Ours) -> Literal["agrees", "cannot tell", "differs"]:
        """Compare the interval of ours, three standard errors on each side, with what is printed.

        Ours agrees only if the whole interval is within the tolerance and three standard errors of the printed
        number, and differs only if the whole interval is outside. A wide interval can do neither.
        """
        if ours.unclear:
            return "cannot tell"
        if self.kind == "holds":
            return "agrees" if ours.value else "differs"
        assert self.value is not None
        allowed = self._allowed()
        least = -math.inf if self.kind == "at_most" else -allowed
        most = math.inf if self.kind == "at_least" else allowed
        low = float(ours.value) - self.value - ERRORS * ours.error
        high = math.inf if ours.at_least else float(ours.value) - self.value + ERRORS * ours.error
        if low >= least and high <= most:
            return "agrees"
        if high < least or low > most:
            return "differs"
        return "cannot tell"

    def can_agree(self, ours: Ours | None) -> bool:
        """Whether the interval of ours is narrow enough to be within what is printed, wherever it lies."""
        if ours is None or ours.smaller or self.kind != "about":
            return True
        return ERRORS * ours.error <= self._allowed()

    def difference(self, ours: Ours | None) -> float | None:
        """Ours less the printed number."""
        if ours is None or self.value is None or isinstance(ours.value, bool):
            return None
        return float(ours.value) - self.value

    def _allowed(self) -> float:
        """How far the whole interval of ours may be from the printed number."""
        rounding = 1e-12 * abs(self.value or 0.0)  # that of our own arithmetic is no difference
        return self.tolerance + ERRORS * self.error + rounding

    def verdict(self, ours: Ours | None) -> Verdict:
        """Say how ours compares; a difference that an erratum explains is the paper's."""
        if ours is None:
            return "not run"
        if ours.smaller:
            return "smaller"
        verdict = self.compared(ours)
        if verdict == "differs" and self.erratum is not None:
            return "erratum"
        return "identity" if verdict == "agrees" and self.identity else verdict

    def compared_with(self, ours: Ours | None, tried: Mapping[str, Ours] | None = None) -> Claim:
        """Compare ours, and what comes out with other settings than the text's, by the same rule.

        A setting that agrees explains a difference before an erratum does.
        """
        others = tuple(Tried(name, one, self.verdict(one)) for name, one in (tried or {}).items())
        verdict = self.verdict(ours)
        if verdict == "erratum" and any(one.verdict == "agrees" for one in others):
            verdict = "differs"
        return Claim(self, ours, verdict, others)


@dataclass(frozen=True)
class Setting:
    """A setting other than that of the paper's text, under which an experiment is run too."""

    experiment: str
    name: str
    says: str
    why: str


@dataclass(frozen=True)
class Tried:
    """What comes out of one changed setting, judged by the same rule."""

    setting: str
    ours: Ours
    verdict: Verdict


@dataclass(frozen=True)
class Claim:
    """What is printed, what we measured, and the verdict."""

    printed: Printed
    ours: Ours | None
    # identity: it agrees, and could not have failed. cannot tell: our interval is neither inside nor outside of what is
    # printed. erratum: the paper is wrong there, no other setting agrees, and the errata say how. smaller: at another
    # scale than the paper's, not compared.
    verdict: Verdict
    tried: tuple[Tried, ...] = ()

    @property
    def explained_by(self) -> str:
        """Name the first setting under which a claim that differs agrees; empty if there is none.

        The verdict stays: the paper's text leads to another number than it prints.
        """
        if self.verdict != "differs":
            return ""
        return next((one.setting for one in self.tried if one.verdict == "agrees"), "")

    @property
    def difference(self) -> float | None:
        """Ours less the printed number."""
        return self.printed.difference(self.ours)

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
            "printed_error": printed.error,
            "because": printed.because,
            "since": printed.since,
            "changed": [{"what": change.what, "why": change.why} for change in printed.changed],
            # from here on what was computed; above what the paper prints
            **_measured(ours),
            "difference": self.difference,
            "can_agree": printed.can_agree(ours),
            "verdict": self.verdict,
            "erratum": printed.erratum,
            "identity": printed.identity,
            "explained_by": self.explained_by,
            "tried": [
                {
                    "setting": one.setting,
                    **_measured(one.ours),
                    "difference": printed.difference(one.ours),
                    "can_agree": printed.can_agree(one.ours),
                    "verdict": one.verdict,
                }
                for one in self.tried
            ],
        }


def _measured(ours: Ours | None) -> dict[str, Any]:
    """Our number as plain values by name."""
    if ours is None:
        return {"ours": None, "error": None, "note": "", "at_least": False}
    value = None if ours.unclear else ours.value
    note = "; ".join(filter(None, (ours.smaller, ours.detail)))
    return {"ours": value, "error": ours.error, "note": note, "at_least": ours.at_least}


def judged_again(experiment: str, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Judge the claims of a run that is kept by what is printed as it is known today."""
    paper, _, figure = experiment.partition("/")
    by_key = {row["key"]: row for row in rows}
    judged = []
    for key, claim in printed(paper)[figure].items():
        row = by_key.get(key, {"verdict": "not run", "tried": ()})
        tried = {one["setting"]: ours for one in row["tried"] if (ours := _kept(one)) is not None}
        judged.append(claim.compared_with(_kept(row), tried).row())
    return judged


def _kept(row: Mapping[str, Any]) -> Ours | None:
    """Read what was measured from a row of `Claim.row`; None where nothing was."""
    if row["verdict"] == "not run":
        return None
    is_smaller = row["verdict"] == "smaller"
    return Ours(
        value=False if row["ours"] is None else row["ours"],
        error=row["error"],
        smaller=row["note"] if is_smaller else "",
        detail="" if is_smaller else row["note"],
        unclear=row["ours"] is None,
        at_least=row.get("at_least", False),
    )


def all_above(differences: Iterable[Ours]) -> bool | None:
    """Tell whether all differences are at or above zero, as far as three standard errors can tell.

    >>> all_above([Ours(0.5, 0.1)]), all_above([Ours(0.5, 0.1), Ours(0.1, 0.1)]), all_above([Ours(-0.5, 0.1)])
    (True, None, False)
    """
    ends = [(float(one.value), ERRORS * one.error) for one in differences]
    if any(value + margin < 0 for value, margin in ends):
        return False
    return True if all(value - margin >= 0 for value, margin in ends) else None


@cache
def changes(paper: str) -> tuple[Change, ...]:
    """List what was changed in the claims of a paper after their tolerances were committed, oldest first.

    >>> changes("sablayrolles2019")[0].experiment
    'sablayrolles2019/table3'
    """
    rows = _content(paper).get("change", [])
    return tuple(
        Change(**row | {"experiment": f"{paper}/{row['experiment']}", "keys": tuple(row["keys"])}) for row in rows
    )


@cache
def settings(paper: str) -> Mapping[str, Mapping[str, Setting]]:
    """Read the settings other than those of the text, by figure and name.

    >>> list(settings("izzo2022")["figure2"])
    ['undivided']
    """
    by_figure: dict[str, dict[str, Setting]] = {}
    for row in _content(paper).get("setting", []):
        figure = row["experiment"]
        by_figure.setdefault(figure, {})[row["name"]] = Setting(**row | {"experiment": f"{paper}/{figure}"})
    return by_figure


@cache
def printed(paper: str) -> Mapping[str, Mapping[str, Printed]]:
    """All that a paper prints, by figure and key."""
    content = _content(paper)
    by_figure: dict[str, dict[str, Printed]] = {}
    for table in content["claim"]:
        figure = table.pop("experiment")
        for claim in unfolded(table):
            claims = by_figure.setdefault(figure, {})
            if claim["key"] in claims:
                raise ValueError(f"{paper}/{figure}: {claim['key']} is there twice")
            name = f"{paper}/{figure}"
            of_claim = (
                change for change in changes(paper) if change.experiment == name and claim["key"] in change.keys
            )
            row = {"since": content["since"], **claim}
            claims[claim["key"]] = Printed(name, changed=tuple(of_claim), **row)
    return by_figure


def _content(paper: str) -> dict[str, Any]:
    text = resources.files("leakbound.papers").joinpath(paper, "printed.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def unfolded(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One row, or one for each combination of the names under ``each``, in their order.

    ``values`` and ``errors`` list the printed value and its standard error for each of them.
    """
    alternatives = table.pop("each", {})
    combinations = list(itertools.product(*alternatives.values()))
    listed = {"value": table.pop("values", None), "error": table.pop("errors", None)}
    for word, values in listed.items():
        if values is not None and len(values) != len(combinations):
            raise ValueError(f"{table['key']}: {len(values)} {word}s for {len(combinations)} rows")
    for number, combination in enumerate(combinations):
        names = dict(zip(alternatives, combination, strict=True))
        row = table | {word: table[word].format(**names) for word in ("key", "says")}
        row |= {word: values[number] for word, values in listed.items() if values is not None}
        yield row
