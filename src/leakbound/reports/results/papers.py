"""What ``papers.md.jinja`` is handed: claims of papers, compared with our numbers.

A document is what ``claims.json`` of a reproduction holds: ``name``, ``title``, ``scale``, ``run``, ``reason``,
``setting``, ``settings`` and ``claims``, each with ``says``, ``where``, ``kind``, ``printed``, ``tolerance``,
``because``, ``ours``, ``error``, ``difference``, ``can_agree``, ``verdict``, ``erratum``, ``note``, ``explained_by``
and ``tried``: ``ours``, ``error``, ``difference``, ``can_agree``, ``verdict`` and ``note`` with each other setting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from leakbound.reports.numbers import count
from leakbound.reports.results.findings import Text
from leakbound.reports.results.made import ChartName, program
from leakbound.reports.sentences import Sentence, Texts

Document = Mapping[str, Any]
VERDICTS = ("agrees", "identity", "cannot tell", "differs", "erratum", "smaller", "not run")
MOST_SHORT = 3  # claims of an experiment that a terminal shows
OFF = ("differs", "erratum")
SETTLED = ("agrees", "identity")  # verdicts that a terminal shows last


def papers_page(documents: Sequence[Document], figures: Collection[str] = ()) -> Texts:
    """Write experiments down, of which some have a figure."""
    experiments = [
        _experiment(document, place, document["name"] in figures) for place, document in enumerate(documents, start=1)
    ]
    alone = experiments[0] if len(experiments) == 1 else None
    return Texts(alone=alone, experiments=experiments, tally=counted(documents), made=program())


def _experiment(document: Document, place: int, has_figure: bool) -> Texts:
    rows = []
    for claim in document["claims"]:
        rows.append(_row(claim, claim["says"], stated(claim), verdict(claim)))
        for tried in claim["tried"]:
            says = Sentence("papers.with_setting", {"setting": tried["setting"]})
            rows.append(_row(tried, says, "", compared(tried)))
    open_first = sorted(document["claims"], key=lambda claim: claim["verdict"] in SETTLED)
    short = [_row(claim, claim["says"], stated(claim), verdict(claim)) for claim in open_first[:MOST_SHORT]]
    return Texts(
        name=document["name"],
        title=document["title"],
        anchor=ChartName(f"h{place}"),
        scale=document["scale"],
        run=document["run"],
        reason=document["reason"],
        answer=answer(document) if document["claims"] else None,
        tally=counted([document]),
        figure=ChartName(document["name"]) if has_figure else None,
        rows=rows,
        short=short,
        settings=[_setting(document, setting) for setting in document["settings"]],
        tolerances=list(dict.fromkeys(claim["because"] for claim in document["claims"] if claim.get("because"))),
    )


def _row(row: Mapping[str, Any], says: Text, printed: Text, judged: Sentence) -> Texts:
    return Texts(
        says=says,
        where=row.get("where", ""),
        note=row.get("note", ""),
        stated=printed,
        measured=measured(row),
        verdict=judged,
        is_off=row["verdict"] in OFF,
    )


def _setting(document: Document, setting: Mapping[str, str]) -> Sentence:
    """Say what a setting changes, that was run beside the text's, or alone."""
    gaps = {name: setting[name] for name in ("name", "says", "why")}
    return Sentence("papers.run_as" if setting["name"] == document["setting"] else "papers.with", gaps)


def answer(document: Document) -> Sentence:
    """Say in one sentence whether an experiment comes out as its paper prints it.

    >>> str(answer({"claims": [{"verdict": "agrees", "explained_by": ""}]}))
    'The one claim agrees with what the paper prints.'
    """
    claims = document["claims"]
    n_agree = sum(claim["verdict"] == "agrees" for claim in claims)
    if claims and n_agree == len(claims):
        return Sentence("papers.one_agrees" if n_agree == 1 else "papers.all_agree", {"n": count(n_agree)})
    return Sentence("papers.of_claims", {"n": count(len(claims)), "tally": counted([document])})


def stated(claim: Mapping[str, Any]) -> Text:
    """Write the printed number with its sense."""
    if claim["printed"] is None:
        return Sentence("papers.so")
    return Sentence(f"papers.{claim['kind']}", {"number": number(claim["printed"])})


def measured(claim: Mapping[str, Any]) -> Text:
    """Our number with its standard error."""
    ours, error = claim["ours"], claim["error"]
    if ours is None:
        return "" if claim["verdict"] == "not run" else Sentence("papers.not_clear")
    if isinstance(ours, bool):
        return Sentence("papers.so" if ours else "papers.not_so")
    written: Text = number(ours)
    if claim.get("at_least"):
        written = Sentence("papers.at_least", {"number": written})
    return Sentence("papers.with_error", {"number": written, "error": f"{error:.2g}"}) if error else written


def verdict(claim: Mapping[str, Any]) -> Sentence:
    """Write the verdict in words, with the size of a difference and what explains it."""
    said = compared(claim)
    if claim["verdict"] == "erratum":
        return Sentence("papers.erratum", {"verdict": said, "n": str(claim["erratum"])})
    if claim["explained_by"]:
        return Sentence("papers.explained", {"verdict": said, "setting": claim["explained_by"]})
    return said


def compared(row: Mapping[str, Any]) -> Sentence:
    """Write the verdict on a claim or another setting, with the size of a difference.

    >>> str(compared({"verdict": "differs", "difference": 0.003}))
    'differs, by 0.003'
    >>> str(compared({"verdict": "cannot tell", "difference": 0.003, "can_agree": False}))
    'cannot tell, cannot agree at these digits'
    """
    said = Sentence(f"verdict.{row['verdict'].replace(' ', '_')}")
    if row["verdict"] in ("differs", "erratum") and row.get("difference") is not None:
        by = "by_at_least" if row.get("at_least") else "by"
        said = Sentence(f"papers.{by}", {"verdict": said, "difference": number(row["difference"])})
    return said if row.get("can_agree", True) else Sentence("papers.cannot_agree", {"verdict": said})


def counted(documents: Sequence[Document]) -> Text:
    """How many of each verdict, in words."""
    claims = [claim for document in documents for claim in document["claims"]]
    counts = Counter(claim["verdict"] for claim in claims)
    n_explained = sum(bool(claim["explained_by"]) for claim in claims)
    n_impossible = sum(not claim.get("can_agree", True) for claim in claims)
    parts = []
    for name in VERDICTS:
        if counts[name]:
            verdict, gaps = name.replace(" ", "_"), {"n": count(counts[name])}
            part = Sentence(f"verdicts.{verdict}" if counts[name] > 1 else f"one_verdict.{verdict}", gaps)
            if name == "differs" and n_explained:
                part = Sentence("papers.some_explained", {"part": part, "n": count(n_explained)})
            parts.append(part)
    if n_impossible:
        parts.append(Sentence("papers.n_cannot_agree", {"n": count(n_impossible)}))
    tally: Text = parts[0] if parts else ""
    for part in parts[1:]:
        tally = Sentence("papers.and", {"first": tally, "second": part})
    return tally


def number(value: float) -> str:
    """Four digits, whole numbers whole.

    >>> number(376714), number(0.0123), number(7.771)
    ('376,714', '0.0123', '7.771')
    """
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.4g}"
