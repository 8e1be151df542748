"""The report: findings, curves and records as one JSON value, from which page and plots are drawn."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from leakscope.checks import nearest, one_of
from leakscope.findings import Finding
from leakscope.tradeoff import TradeOff, from_dict

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SCHEMA = 1
SHOWN_BY: Mapping[str, Mapping[str, str]] = {  # kinds of report, and the functions that show them
    "audit": {
        "table": "audit_text:table",
        "page": "audit_page:page",
        "notebook": "audit_page:notebook",
        "plot": "plots:roc",
    },
    "bound": {
        "table": "bound_text:table",
        "page": "bound_page:page",
        "notebook": "bound_page:notebook",
        "plot": "plots:roc",
    },
    "protected": {
        "table": "protected_text:table",
        "page": "protected_page:page",
        "notebook": "protected_page:notebook",
        "plot": "plots:roc",
    },
    "attribute": {
        "table": "attribute_text:table",
        "page": "attribute_page:page",
        "notebook": "attribute_page:notebook",
        "plot": "guesses:guesses",
    },
}
Table = Mapping[str, Sequence[Any] | np.ndarray]  # columns by name
Word = Literal["refuted", "not_refuted", "cannot_be_tested", "proved"]


@dataclass(frozen=True)
class Verdict:
    """What an audit says of a claim.

    Parameters
    ----------
    claim : str
        The claim in words, as ``"epsilon = 4, delta = 1e-05, add/remove"``.
    word : {"refuted", "not_refuted", "cannot_be_tested", "proved"}
    quantity, allowed, measured : str, float, float
        The quantity that the test bounds (epsilon, mu, eta), what the claim allows and the lower bound.
    confidence : float
        Of ``measured``.
    attack : str
        The attack that gave the bound.
    at : mapping
        Operating point that shows it: fpr, tpr, low, high, ceiling, false_alarms.
    reason : str
        Why it cannot be tested, or what else refutes it.
    """

    claim: str
    word: Word
    quantity: str = ""
    allowed: float | None = None
    measured: float | None = None
    confidence: float | None = None
    attack: str = ""
    at: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Curve:
    """A trade-off with what it is of.

    Parameters
    ----------
    name : str
        The attack's name, or the claim in words.
    release : str
    role : {"measured", "claimed", "certified", "asymptotic"}
    tradeoff : TradeOff
    at, low, high : sequences of float
        A band: TPR from ``low`` to ``high`` at the false-positive rates ``at``.
    confidence : float or None
        Of the band, pointwise.
    n_nonmember : int
        Games behind the false-alarm rate (0 for a ceiling).
    verdict : Verdict or None
        Of a claim.
    """

    name: str
    release: str
    role: Literal["measured", "claimed", "certified", "asymptotic"]
    tradeoff: TradeOff
    at: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    confidence: float | None = None
    n_nonmember: int = 0
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Report:
    """The result of an audit, a bound or a protected release.

    Parameters
    ----------
    about : mapping
        Plan, versions, digests, seed, and the facts of each release.
    findings : sequence of Finding
    curves : sequence of Curve
    record_table : mapping of str to list or array
        One table by columns, a row a record.
    """

    about: Mapping[str, Any]
    findings: Sequence[Finding] = ()
    curves: Sequence[Curve] = ()
    record_table: Table = field(default_factory=dict)

    def curve(self, name: str, release: str | None = None) -> TradeOff:
        """The trade-off of an attack or of a claim, of the first release that has it."""
        for curve in self.curves:
            if curve.name == name and release in (None, curve.release):
                return curve.tradeoff
        names = sorted({curve.name for curve in self.curves})
        raise KeyError(f"no curve {name!r}{nearest(name, names)}; this report has: {', '.join(names) or 'none'}")

    def records(self) -> pd.DataFrame:
        """The records as a frame, a row a record."""
        return import_module("pandas").DataFrame(dict(self.record_table))

    def to_frame(self) -> pd.DataFrame:
        """The findings as a frame, a row a finding."""
        return import_module("pandas").DataFrame([asdict(finding) for finding in self.findings])

    def table(self) -> str:
        """What was found, as text at most 100 columns wide."""
        return self._as("table")

    def plot(self, ax: Axes | None = None, release: str | None = None) -> Axes:
        """Attacks and ceilings on one log-log axis (of an attribute: right guesses), on ``ax`` or on a new figure."""
        return self._as("plot", ax=ax, release=release)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Canonical JSON; written to a path if one is given (beside it first, then renamed)."""
        text = _layout(self._content())
        if path is not None:
            write(path, text)
        return text

    def to_html(self, path: str | os.PathLike[str] | None = None, records: bool = True) -> str:
        """The page, one file without network or scripts to load; ``records=False`` leaves single records out."""
        text = self._as("page", records=records)
        if path is not None:
            write(path, text)
        return text

    def digest(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of the JSON."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def _repr_html_(self) -> str:
        return self._as("notebook")

    def _as(self, form: str, **options: Any) -> Any:
        """This kind of report in a form of ``SHOWN_BY``."""
        kind = one_of("kind of report", self.about.get("kind"), SHOWN_BY)
        module, function = SHOWN_BY[kind][form].split(":")
        return getattr(import_module(f"leakscope.report.{module}"), function)(self, **options)

    def _content(self) -> dict[str, Any]:
        curves = [
            {item.name: getattr(curve, item.name) for item in fields(curve)}
            | {
                "tradeoff": curve.tradeoff.to_dict(),
                "verdict": None if curve.verdict is None else asdict(curve.verdict),
            }
            for curve in self.curves
        ]
        return plain(
            {
                "schema": SCHEMA,
                "about": self.about,
                "findings": [asdict(finding) for finding in self.findings],
                "curves": curves,
                "records": self.record_table,
            }
        )

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Report:
        """Read what ``to_json`` wrote.

        Raises
        ------
        ValueError
            If the file is not a report of this schema.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is not JSON: {error}") from None
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise ValueError(f"{path} is not a leakscope report of schema {SCHEMA}")
        try:
            return cls._of(_revive(content))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a whole report: {error!r}") from None

    @classmethod
    def _of(cls, content: Mapping[str, Any]) -> Report:
        curves = tuple(
            Curve(
                **{
                    **curve,
                    "tradeoff": from_dict(curve["tradeoff"]),
                    "verdict": None if curve["verdict"] is None else Verdict(**curve["verdict"]),
                }
            )
            for curve in content["curves"]
        )
        findings = tuple(Finding(**finding) for finding in content["findings"])
        return cls(content["about"], findings, curves, content["records"])


def _layout(content: Mapping[str, Any]) -> str:
    """The JSON with an indent of one; long columns by the encoder that is written in C, which knows no indent."""
    columns = ",\n".join(f"  {_dumps(name)}: {_column(values)}" for name, values in content["records"].items())
    records = f"{{\n{columns}\n }}" if columns else "{}"
    rest = _dumps({name: value for name, value in content.items() if name != "records"}, indent=1)
    return f'{rest.removesuffix("}").rstrip()},\n "records": {records}\n}}\n'


def _column(values: list[Any]) -> str:
    """A column as it stands two levels deep."""
    if not values or any(isinstance(value, (list, dict)) for value in values):
        return _dumps(values, indent=1).replace("\n", "\n  ")
    inside = _dumps(values, separators=(",\n   ", ": ")).removeprefix("[").removesuffix("]")
    return f"[\n   {inside}\n  ]"


def _dumps(value: Any, **layout: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, **layout)


def claims_table(documents: Sequence[Mapping[str, Any]]) -> str:
    """Claims of papers beside our numbers, as text: `leakscope.report.claims.claims_table`."""
    return import_module("leakscope.report.claims").claims_table(documents)


def claims_page(documents: Sequence[Mapping[str, Any]], figures: Mapping[str, bytes]) -> str:
    """Claims of papers beside our numbers, as a page: `leakscope.report.claims.claims_page`."""
    return import_module("leakscope.report.claims").claims_page(documents, figures)


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new one, never half of one."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def plain(value: Any) -> Any:
    """JSON without numpy: infinities as "inf" and "-inf", NaN refused."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and np.isfinite(value).all():
        return value.tolist()  # a column of a million numbers, without a look at each
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueError("NaN cannot stand in a report")
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    return plain(value.tolist())  # numpy scalars and arrays


def _revive(value: Any) -> Any:
    """The numbers that ``plain`` wrote as words."""
    if isinstance(value, dict):
        return {key: _revive(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_revive(item) for item in value]
    return {"inf": math.inf, "-inf": -math.inf}.get(value, value) if isinstance(value, str) else value
