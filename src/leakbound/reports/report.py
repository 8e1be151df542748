"""The report: findings, curves and records as one JSON value, from which page and plots are drawn."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike

from leakbound.core.checks import UNSEEN, nearest, one_of
from leakbound.core.findings import EVERY, Finding, Scope, Term
from leakbound.core.tradeoff import TradeOff
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.tradeoff.curve import Roc
from leakbound.core.types import Attack, Scores, Signals
from leakbound.files import private_file, temporary
from leakbound.files.system import OWNER_ALONE, OWNERS_FOLDER, open_new
from leakbound.files.untrusted import in_one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from leakbound.reports.about import AnyAbout

SCHEMA = 1
DIGEST = "sha256"  # key of the digest, next to the content that it is of
FORMS: Mapping[str, str] = {  # what shows a report of any kind, imported when it is asked for
    "table": "render.text:table",
    "page": "render.html:page",
    "notebook": "render.html:notebook",
    "plot": "charts.figures:plot",
}
Table = Mapping[str, Sequence[Any] | np.ndarray]  # columns by name
Word = Literal["refuted", "not_refuted", "cannot_be_tested", "cannot_hold", "not_supported"]


@dataclass(frozen=True)
class Verdict:
    """What an audit says of a claim.

    Parameters
    ----------
    claim : Claim
        What was promised; an accountant's epsilon is rounded up.
    word : {"refuted", "not_refuted", "cannot_be_tested", "cannot_hold", "not_supported"}
        By measurement, but for three: a claim cannot hold if the training as declared gives more by calculation, and is
        not supported if the accountant cannot show that it gives as little.
    quantity, allowed, measured : str, float, float
        The quantity that the test bounds (epsilon, mu, eta), what the claim allows and the lower bound.
    confidence : float
        Of ``measured``.
    attack : str
        The attack that gave the bound.
    operating_point : mapping
        Operating point that shows it: fpr, tpr, low, high, ceiling, false_alarms.
    reason : Term or None
        Why it cannot be tested, or what else refutes it.
    training : Term or None
        The DP-SGD training whose accountant makes the claim.

    Examples
    --------
    >>> from leakbound.core.tradeoff.claims import Claim
    >>> from leakbound.reports import Verdict
    >>> claim = Claim("epsilon", 1.0, adjacency="replace_one")
    >>> Verdict(claim, "refuted", "epsilon", allowed=1.0, measured=1.7, confidence=0.999).word
    'refuted'
    """

    claim: Claim
    word: Word
    quantity: str = ""
    allowed: float | None = None
    measured: float | None = None
    confidence: float | None = None
    attack: str = ""
    operating_point: Mapping[str, float] = field(default_factory=dict)
    reason: Term | None = None
    training: Term | None = None


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
    band_fpr, low, high : sequences of float
        A band: TPR from ``low`` to ``high`` at the false positive rates ``band_fpr``; empty where there is none. Then
        ``fpr`` are these rates, and ``tpr`` is the curve there. Without a band both draw the whole curve, as
        ``points()`` always does.
    confidence : float or None
        Of the band, pointwise.
    n_nonmember : int
        Games behind the false-alarm rate (0 for a ceiling).
    verdict : Verdict or None
        Of a claim.
    scope : Scope
        Whom the trade-off is about.

    Examples
    --------
    >>> from leakbound.core.tradeoff import Gaussian
    >>> from leakbound.reports import Curve
    >>> Curve("mu = 1", "", "certified", Gaussian(1.0)).role
    'certified'
    """

    name: str
    release: str
    role: Literal["measured", "claimed", "certified", "asymptotic"]
    tradeoff: TradeOff
    band_fpr: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    confidence: float | None = None
    n_nonmember: int = 0
    verdict: Verdict | None = None
    scope: Scope = EVERY

    @property
    def fpr(self) -> np.ndarray:
        """False positive rates of the band, in the order of ``low`` and ``high``; of all points where there is none."""
        return np.asarray(self.band_fpr, dtype=float) if len(self.band_fpr) else self.points().fpr

    @property
    def tpr(self) -> np.ndarray:
        """TPR of the curve at the rates ``fpr``.

        Examples
        --------
        >>> import leakbound as ls
        >>> curve = ls.bound("gaussian", mu=1.0).curves[0]
        >>> len(curve.tpr) == len(curve.fpr) > 2, len(curve.low)
        (True, 0)
        """
        return np.asarray(self.tradeoff.tpr_at(self.fpr)) if len(self.band_fpr) else self.points().tpr

    def tpr_at(self, fpr: ArrayLike) -> Any:
        """Compute the true positive rate at a false positive rate in [0, 1].

        Examples
        --------
        >>> import leakbound as ls
        >>> round(float(ls.bound("gaussian", mu=1.0).curves[0].tpr_at(0.01)), 4)
        0.0924
        """
        return self.tradeoff.tpr_at(fpr)

    def points(self) -> Roc:
        """Points that draw the curve: arrays ``fpr`` and ``tpr``.

        Examples
        --------
        >>> import leakbound as ls
        >>> fpr, tpr = ls.bound("dp", epsilon=1.0).curves[0].points()
        >>> len(fpr) == len(tpr)
        True
        """
        return self.tradeoff.points()

    def __repr__(self) -> str:
        """Say what it is of, in one line."""
        of = f" of {self.release!r}" if self.release else ""
        return f"Curve({self.name!r}{of}, {self.role}, {self.tradeoff!r})"

    def _repr_html_(self) -> str:
        return import_module("leakbound.reports.render.html").curve_fragment(self)


@final
@dataclass(frozen=True, eq=False, repr=False)
class NamedTradeOff(TradeOff):
    """The trade-off of a curve of a report: it converts, is plotted by its arrays, and is shown in notebooks.

    >>> import leakbound as ls
    >>> curve = ls.bound("gaussian", mu=1.0).curve("mu = 1, replace one")
    >>> round(curve.advantage(), 3), curve.fpr.shape == curve.tpr.shape
    (0.383, True)
    """

    curve: Curve

    @property
    def fpr(self) -> np.ndarray:
        """False positive rates of the points that draw the curve."""
        return self.points().fpr

    @property
    def tpr(self) -> np.ndarray:
        """True positive rates of these points; `tpr_at` is the rate at any false positive rate."""
        return self.points().tpr

    @property
    def knots(self) -> Sequence[float] | np.ndarray:
        """The corners of the curve."""
        return self.curve.tradeoff.knots

    def fnr(self, fpr: ArrayLike) -> Any:
        """Return the false negative rate at a false positive rate in [0, 1]."""
        return self.curve.tradeoff.fnr(fpr)

    def points(self) -> Roc:
        """Points that draw the curve."""
        return self.curve.tradeoff.points()

    def hockey_sticks(self, epsilon: float) -> tuple[float, float]:
        """As those of the curve."""
        return self.curve.tradeoff.hockey_sticks(epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Canonical JSON of the curve."""
        return self.curve.tradeoff.to_dict()

    def __getattr__(self, name: str) -> Any:
        """Read what only a curve of this kind has, as ``mu``."""
        if name.startswith("_") or name == "curve":
            raise AttributeError(name)
        return getattr(self.curve.tradeoff, name)

    def __repr__(self) -> str:
        """Say what it is of, in one line."""
        return repr(self.curve)

    def _repr_html_(self) -> str:
        return self.curve._repr_html_()


@dataclass(frozen=True, eq=False)
class Observation:
    """What an audit saw of a release, for as long as its report is in memory.

    Parameters
    ----------
    signals : Signals
        Of all models, by reference.
    attacks : sequence of Attack
        Those that were run.
    records : callable
        Returns a table of the most exposed records, so many as it is given, or of all: None. A report has 1,000.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> game = ls.games.half_split(100, 8)
    >>> report = ls.audit_signals(ls.Signals(game, None, {"loss": np.ones((8, 100))}), attacks=["loss"])
    >>> [attack.name for attack in report.observations["signals"].attacks]
    ['loss']
    """

    signals: Signals
    attacks: Sequence[Attack]
    records: Callable[[int | None], Table]


RECORD_DETAILS = ("log_odds", "member", "preview")  # of the most exposed records, a column each
MOST_RECORDS = 1000  # of each release in a report, so that its files stay small whatever the number of records


@dataclass(frozen=True)
class Report:
    """The result of an audit, a bound or a protected release.

    Parameters
    ----------
    about : AuditAbout, AttributeAbout, BoundAbout or ProtectedAbout
        Plan, versions, digests, seed, and the facts of each release: `leakbound.reports.about`.
    findings : sequence of Finding
    curves : sequence of Curve
    record_table : mapping of str to list or array
        One table by columns, a row a record: of each release the most exposed 1,000.
    observations : mapping of str to Observation
        By release, of an audit of membership that was made in this process. They are in memory alone: no file, no copy
        and no published report holds them.

    Examples
    --------
    >>> import leakbound as ls
    >>> report = ls.bound("dp", epsilon=1.0)
    >>> report.to_frame().columns[:3].tolist()
    ['quantity', 'value', 'low']
    """

    about: AnyAbout
    findings: Sequence[Finding] = ()
    curves: Sequence[Curve] = ()
    record_table: Table = field(default_factory=dict)
    observations: Mapping[str, Observation] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        """Show what was found: the text of `table`."""
        return self.table().rstrip("\n")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out of a copy and of a file what is for this process alone."""
        return {**self.__dict__, "observations": {}}

    def curve(self, name: str, release: str | None = None) -> NamedTradeOff:
        """Return the trade-off of an attack or of a claim, of the first release that has it.

        Its arrays ``fpr`` and ``tpr`` draw it, and ``tpr_at(0.01)`` is its true positive rate at another rate.

        Examples
        --------
        >>> import leakbound as ls
        >>> from matplotlib.figure import Figure
        >>> report = ls.bound("dp", epsilon=1.0)
        >>> curve = report.curve("epsilon = 1, replace one")
        >>> axes = Figure().subplots()
        >>> line, = axes.plot(curve.fpr, curve.tpr)
        """
        for curve in self.curves:
            if curve.name == name and release in (None, curve.release):
                return NamedTradeOff(curve)
        names = sorted({curve.name for curve in self.curves})
        raise KeyError(f"no curve {name!r}{nearest(name, names)}; this report has: {', '.join(names) or 'none'}")

    def signals(self, release: str | None = None) -> Signals:
        """Return what the attacks saw of a release: the signals of all models at all points.

        Parameters
        ----------
        release : str, optional
            The first one unless given.

        Returns
        -------
        Signals
            The same object that the audit used, not a copy.

        Raises
        ------
        ValueError
            In one line: for an unknown release, and where the report has none in memory, as one that was read from a
            file.

        Examples
        --------
        >>> import numpy as np
        >>> import leakbound as ls
        >>> game = ls.games.half_split(100, 8)
        >>> loss = np.random.default_rng(0).exponential(np.where(game.member, 0.5, 1.0))
        >>> report = ls.audit_signals(ls.Signals(game, None, {"loss": loss}))
        >>> report.signals().array("loss").shape
        (8, 100)
        """
        return self._observed(release).signals

    def scores(self, attack: str, release: str | None = None) -> Scores:
        """Compute the scores of an attack on a release once more, from the signals in memory.

        Parameters
        ----------
        attack : str
            Its name in the report, as ``"lira"``.
        release : str, optional
            The first one unless given.

        Returns
        -------
        Scores
            ``value`` and ``member``, arrays of shape (T, J), and ``points``, the indices of the target points. They
            are of single records, also where the unit of privacy has several.

        Raises
        ------
        ValueError
            As `signals`, and for an attack that was not run.
        NotApplicable
            If the attack cannot run on this release.

        Examples
        --------
        >>> import numpy as np
        >>> import leakbound as ls
        >>> game = ls.games.half_split(100, 8)
        >>> loss = np.random.default_rng(0).exponential(np.where(game.member, 0.5, 1.0))
        >>> scores = ls.audit_signals(ls.Signals(game, None, {"loss": loss})).scores("loss")
        >>> scores.value.shape, scores.member.shape, scores.points.shape
        ((8, 100), (8, 100), (100,))
        """
        observation = self._observed(release)
        attacks = {row.name: row for row in observation.attacks}
        return attacks[one_of("attack", attack, attacks)](observation.signals)

    def _observed(self, release: str | None) -> Observation:
        if not self.observations:
            raise ValueError(
                "this report has no signals in memory: only the one that an audit of membership returns has them, and "
                "no file; run the audit again (with a store no model is fitted again)"
            )
        name = next(iter(self.observations)) if release is None else one_of("release", release, self.observations)
        return self.observations[name]

    def records(self, *, details: bool = False) -> pd.DataFrame:
        """Return the records as a frame, a row a record.

        Of an audit that was made in this process with signals in memory they are all records, else of each release the
        most exposed 1,000, as in the files of a report.

        Parameters
        ----------
        details : bool
            Also what the models showed of the ten most exposed records of an audit: the log-odds of each model
            (``log_odds``), in which of them the record was (``member``), and its features (``preview``).

        Returns
        -------
        pandas.DataFrame
            Of an audit: ``release``, ``record`` (its row in the data, from 0), ``name`` if the records have names, and
            ``label``; ``won``, the correct guesses about it in ``games`` games; ``low``, a lower limit of that rate
            that holds for all records at once; ``exposed``, whether it is above guessing; ``margin``, by how much the
            attack was right on average, which breaks ties. Of a bound, a column for each of its numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import leakbound as ls
        >>> game = ls.games.half_split(100, 32)
        >>> loss = np.random.default_rng(0).exponential(np.where(game.member, 0.5, 1.0))
        >>> frame = ls.audit_signals(ls.Signals(game, None, {"loss": loss})).records()
        >>> frame.columns.tolist()
        ['release', 'record', 'label', 'games', 'won', 'low', 'exposed', 'margin']
        """
        tables = [observation.records(None) for observation in self.observations.values()]
        known = [table for table in tables if table]
        table = joined_tables(known) if known else dict(self.record_table)
        frame = import_module("pandas").DataFrame(table)
        return frame if details else frame.drop(columns=[name for name in RECORD_DETAILS if name in frame])

    def to_frame(self) -> pd.DataFrame:
        """Return the findings as a frame, a row a finding."""
        return import_module("pandas").DataFrame([asdict(finding) for finding in self.findings])

    def table(self, width: int = 100, full: bool = False) -> str:
        """Return what was found as text.

        Parameters
        ----------
        width : int
            Longest line, in columns; at least 40.
        full : bool
            Whether the text of a bound is all that its page says.

        Returns
        -------
        str
        """
        return self._as("table", width=width, full=full)

    def plot(
        self,
        ax: Axes | None = None,
        release: str | None = None,
        *,
        attacks: Sequence[str] | None = None,
        legend: bool = True,
    ) -> Axes:
        """Attacks and ceilings on one log-log axis (of an attribute: correct guesses), on ``ax`` or on a new figure.

        Without ``ax`` it is the chart of the page. On axes of your own it is a figure for a paper: lines with labels
        and dashes, which are told apart in grey, in the style of Matplotlib that is in force, with nothing outside of
        the axes but ticks and their names (make the figure with ``layout="constrained"``, so that they have room).

        Parameters
        ----------
        ax : Axes, optional
        release : str, optional
            The first one unless given.
        attacks : sequence of str, optional
            Which attacks are drawn; all unless given.
        legend : bool
            On axes of your own.

        Returns
        -------
        Axes

        Raises
        ------
        KeyError
            For a release or an attack that is not in the report.

        Examples
        --------
        >>> import numpy as np
        >>> import leakbound as ls
        >>> from matplotlib.figure import Figure
        >>> member = np.arange(400) < 200
        >>> report = ls.audit_scores(np.random.default_rng(0).normal(1.0 * member), member, name="mine")
        >>> ax = report.plot(Figure(figsize=(3.4, 2.6), layout="constrained").subplots())
        >>> [line.get_label() for line in ax.lines]
        ['given scores', 'guessing']
        """
        return self._as("plot", ax=ax, release=release, attacks=attacks, legend=legend)

    def to_json(
        self, path: str | os.PathLike[str] | None = None, *, records: bool = True, publish: bool = False
    ) -> str:
        """Canonical JSON, which carries a SHA-256 of its own content.

        Parameters
        ----------
        path : path, optional
            Where to write it: to a temporary file in the same folder, which is then renamed. A report on data is
            readable by its owner alone (0600, in a folder of 0700 if that is made here).
        records : bool
            Whether it may tell of single records; see `without_records`.
        publish : bool
            Without records, and with the permissions of any other file.

        Returns
        -------
        str
        """
        report = self if records and not publish else self.without_records()
        text = _layout(report._content())
        if path is not None:
            write(path, text, private=self.on_data and not publish)
        return text

    def to_html(
        self, path: str | os.PathLike[str] | None = None, records: bool = True, *, publish: bool = False
    ) -> str:
        """Render the page: one file without network or scripts to load.

        Parameters
        ----------
        path, records, publish
            As in `to_json`.

        Returns
        -------
        str
        """
        report = self if records and not publish else self.without_records()
        text = report._as("page")
        if path is not None:
            write(path, text, private=self.on_data and not publish)
        return text

    def to_pdf(self, path: str | os.PathLike[str], records: bool = True, *, publish: bool = False) -> None:
        """Print the page to a PDF file, by Chromium if it is installed, else by WeasyPrint.

        Parameters
        ----------
        path, records, publish
            As in `to_json`.

        Raises
        ------
        RuntimeError
            In one line, if neither is installed or the page cannot be printed.
        """
        content = import_module("leakbound.reports.render.pdf").print_page(
            self.to_html(records=records, publish=publish)
        )
        write(path, content, private=self.on_data and not publish)

    def without_records(self) -> Report:
        """Return the report without what tells of single records: `leakbound.reports.publication`.

        Returns
        -------
        Report
            Without the table of records, without findings about one record and without the numbers and names of
            records.
        """
        return import_module("leakbound.reports.publication").without_records(self)

    @property
    def on_data(self) -> bool:
        """Whether it is made from records: not from numbers alone as ``bound dp``, and no public certificate."""
        if self.about.kind == "protected":
            return self.about.audience == "owner"
        return self.about.kind != "bound" or self.about.data is not None

    def digest(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 that the JSON carries."""
        return self._digest[:16]

    @cached_property
    def _digest(self) -> str:
        return self._content()["sha256"]

    def _repr_html_(self) -> str:
        return self._as("notebook")

    def _as(self, form: str, **options: Any) -> Any:
        """Show this report in one of the ``FORMS``."""
        module, function = FORMS[form].split(":")
        return getattr(import_module(f"leakbound.reports.{module}"), function)(self, **options)

    def _content(self) -> dict[str, Any]:
        curves = [
            {item.name: getattr(curve, item.name) for item in fields(curve)}
            | {
                "tradeoff": curve.tradeoff.to_dict(),
                "verdict": None if curve.verdict is None else asdict(curve.verdict),
                "scope": asdict(curve.scope),
            }
            for curve in self.curves
        ]
        content = plain(
            {
                "schema": SCHEMA,
                "about": self.about.model_dump(),
                "findings": [asdict(finding) for finding in self.findings],
                "curves": curves,
                "records": self.record_table,
            }
        )
        return {"schema": SCHEMA, DIGEST: digest_of(content), **content}

    @classmethod
    @in_one_line
    def from_json(cls, path: str | os.PathLike[str], *, unverified: bool = False) -> Report:
        """Read what ``to_json`` wrote.

        Parameters
        ----------
        path : path
        unverified : bool
            Whether a report is read whose content is not what its SHA-256 says, because it was edited by hand.

        Raises
        ------
        ValueError
            In one line: if the file is not a report of this schema, or not as it was written.
        """
        return import_module("leakbound.reports.content").read(path, unverified)


def joined_tables(tables: Sequence[Table]) -> dict[str, list[Any]]:
    """Join tables of records, one below the other; one without names of records gets empty ones where another has some.

    >>> joined_tables([{"record": [0]}, {"record": [0], "name": ["a"]}])
    {'record': [0, 0], 'name': ['', 'a']}
    """
    columns = dict.fromkeys(name for table in tables for name in table)
    joined: dict[str, list[Any]] = {name: [] for name in columns}
    for table in tables:
        n_rows = len(table["record"])
        for name, values in joined.items():
            values += table.get(name, [""] * n_rows)
    return joined


def _layout(content: Mapping[str, Any]) -> str:
    """Write the JSON with an indent of one; long columns by the encoder in C, which knows no indent."""
    columns = ",\n".join(f"  {_dumps(name)}: {_column(values)}" for name, values in content["records"].items())
    records = f"{{\n{columns}\n }}" if columns else "{}"
    rest = _dumps({name: value for name, value in content.items() if name != "records"}, indent=1)
    return f'{rest.removesuffix("}").rstrip()},\n "records": {records}\n}}\n'


def _column(values: list[Any]) -> str:
    """Write a column as it is printed two levels deep."""
    if not values or any(isinstance(value, (list, dict)) for value in values):
        return _dumps(values, indent=1).replace("\n", "\n  ")
    inside = _dumps(values, separators=(",\n   ", ": ")).removeprefix("[").removesuffix("]")
    return f"[\n   {inside}\n  ]"


def _dumps(value: Any, **layout: Any) -> str:
    """JSON with the letters of all languages; what a terminal would obey, and lone surrogates, as escapes."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, **layout)
    return UNSEEN.sub(lambda match: "".join(f"\\u{ord(char):04x}" for char in match[0]), text)


def digest_of(content: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of the content of a report.

    It is that of the JSON of all keys but ``sha256``, with sorted keys, without spaces, every letter outside of ASCII
    written as an escape: ``json.dumps(content, sort_keys=True, separators=(",", ":"))`` in Python.

    Parameters
    ----------
    content : mapping
        The report as a JSON parser gives it.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> from leakbound.reports import digest_of
    >>> digest_of({"a": 1, "sha256": "?"}) == digest_of({"a": 1})
    True
    """
    rest = {key: value for key, value in content.items() if key != DIGEST}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def claims_table(documents: Sequence[Mapping[str, Any]], width: int = 100, full: bool = False) -> str:
    """Write claims of papers compared with our numbers as text.

    Parameters
    ----------
    documents : sequence of mapping of str to object
        As `leakbound.reports.results.papers` describes them.
    width : int
        Longest line, in columns.
    full : bool
        All of the page, not the answer and the claims that matter most.

    Returns
    -------
    str
        Lines without colour or control characters.

    Examples
    --------
    >>> from leakbound.reports import claims_table
    >>> print(claims_table([]).splitlines()[0])
    What five papers print, repeated
    """
    return import_module("leakbound.reports.render.papers").text(documents, width, full)


def claims_page(documents: Sequence[Mapping[str, Any]], figures: Mapping[str, bytes]) -> str:
    """Write claims of papers compared with our numbers as a page.

    Parameters
    ----------
    documents : sequence of mapping of str to object
        As `leakbound.reports.results.papers` describes them.
    figures : mapping of str to bytes
        SVG by the experiment's name.

    Returns
    -------
    str
        HTML, without network or script to load.

    Examples
    --------
    >>> from leakbound.reports import claims_page
    >>> claims_page([], {}).startswith("<!doctype html>")
    True
    """
    return import_module("leakbound.reports.render.papers").page(documents, figures)


def write(path: str | os.PathLike[str], content: str | bytes, private: bool = False) -> None:
    """Write to a temporary file in the same folder, then rename it.

    A reader sees the old file or the new one, never half of one. Of a link the file behind it is written.

    Parameters
    ----------
    path : path
    content : str or bytes
    private : bool
        For its owner alone: the file 0600, folders that are made for it 0700.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from leakbound.reports import write
    >>> with TemporaryDirectory() as folder:
    ...     write(Path(folder) / "new" / "report.txt", "all of it")
    ...     (Path(folder) / "new" / "report.txt").read_text()
    'all of it'
    """
    target = private_file.behind_link(Path(path))
    make_folder(target.parent, private)
    temporary.sweep(target.parent, temporary.parts_of(target))
    part = temporary.part_of(target)
    try:
        with os.fdopen(open_new(part, OWNER_ALONE if private else 0o666), "wb") as file:
            # a lone surrogate of a file name is no letter
            file.write(content.encode("utf-8", "replace") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def make_folder(folder: Path, private: bool = False) -> None:
    """Make a folder and those above it, readable by their owner alone if asked for; one that is there stays as it is.

    Parameters
    ----------
    folder : Path
    private : bool

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from leakbound.reports import make_folder
    >>> with TemporaryDirectory() as folder:
    ...     make_folder(Path(folder) / "a" / "b")
    ...     (Path(folder) / "a" / "b").is_dir()
    True
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):  # from the outermost on; mkdir(parents=True) would not give the mode to parents
        path.mkdir(mode=OWNERS_FOLDER if private else 0o777, exist_ok=True)
    if not folder.is_dir():
        folder.mkdir()  # raises an error that says what is there instead


def plain(value: Any) -> Any:
    """Return a value as JSON has it: without numpy, infinities as "inf" and "-inf".

    Parameters
    ----------
    value : object
        Text, numbers, arrays, sequences and mappings of these.

    Returns
    -------
    object
        Of None, bool, int, float, str, lists and dicts alone.

    Raises
    ------
    ValueError
        If a number is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.reports import plain
    >>> plain({"rates": np.array([0.5, np.inf])})
    {'rates': [0.5, 'inf']}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and np.isfinite(value).all():
        return value.tolist()  # a column of a million numbers, without a look at each
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueError("a report cannot hold NaN")
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return value
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    return plain(value.tolist())  # numpy scalars and arrays
