"""Claims of papers compared with our numbers: as text, and as one page with the figures.

A document is what ``claims.json`` of a reproduction holds: ``name``, ``title``, ``scale``, ``run``, ``reason``,
``setting``, ``settings`` and ``claims``, each with ``says``, ``where``, ``kind``, ``printed``, ``tolerance``,
``because``, ``ours``, ``error``, ``difference``, ``can_agree``, ``verdict``, ``erratum``, ``note``, ``explained_by``
and ``tried``: ``ours``, ``error``, ``difference``, ``can_agree``, ``verdict`` and ``note`` with each other setting.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from leakbound.reports.render.html import fragment, frame
from leakbound.reports.render.text import WIDTH, clean, columns, wrapped
from leakbound.version import __version__

VERDICTS = {
    "agrees": "agrees",
    "identity": "identity",
    "cannot tell": "cannot tell",
    "differs": "differs",
    "erratum": "the paper errs",
    "smaller": "smaller run",
    "not run": "not run",
}
OF_SEVERAL = {"agrees": "agree", "identity": "identities", "differs": "differ"}
CANNOT_AGREE = "cannot agree at these digits"
TOLERANCE = (
    "A claim agrees within a tolerance that was fixed before the first run, the paper's own error or rounding, and "
    "three standard errors of ours."
)
SIGNS = {"about": "", "at_most": "at most ", "at_least": "at least "}


def claims_table(documents: Sequence[Mapping[str, Any]], width: int = WIDTH) -> str:
    """Write the claims of experiments as lines of text.

    >>> claim = {"says": "Accuracy", "kind": "about", "printed": 1.0, "ours": 1.0, "error": 0.0, "difference": 0.0,
    ...     "verdict": "agrees", "erratum": None, "note": "", "explained_by": "", "tried": []}
    >>> document = {"name": "a/b", "title": "A title", "scale": "full", "run": "1,000 games.", "reason": "",
    ...     "setting": "", "settings": [], "claims": [claim]}
    >>> print(claims_table([document]))
    a/b: A title
    1,000 games.
    <BLANKLINE>
    claim     printed  ours  verdict
    Accuracy  1        1     agrees
    <BLANKLINE>
    1 agrees
    """
    blocks = []
    for document in documents:
        head = wrapped(f"{document['name']}: {document['title']}", width)
        head += wrapped(document["run"] or document["reason"], width)
        rows = []
        for claim in document["claims"]:
            rows.append(_row(claim["says"], stated(claim), measured(claim), verdict(claim)))
            rows += [_row(f"- with {one['setting']}", "", measured(one), compared(one)) for one in claim["tried"]]
        blocks += ["\n".join(head), columns(rows, width)]
        if document["settings"]:
            blocks.append("\n".join(_settings(document, width)))
    blocks.append("\n".join(wrapped(counted(documents), width)))
    return "\n\n".join(block for block in blocks if block)


def _row(says: str, printed: str, ours: str, verdict: str) -> dict[str, str]:
    return {"claim": clean(says), "printed": printed, "ours": ours, "verdict": clean(verdict)}


def _settings(document: Mapping[str, Any], width: int) -> list[str]:
    """Say what the other settings change, and where they come from."""
    lines = []
    for setting in document["settings"]:
        lines += wrapped(setting_line(document, setting), width)
    return lines


def setting_line(document: Mapping[str, Any], setting: Mapping[str, Any]) -> str:
    """Say what a setting changes, that was run beside the text's, or alone."""
    how = "run as" if setting["name"] == document["setting"] else "with"
    return f"{how} {setting['name']}: {setting['says']} ({setting['why']})"


def claims_page(documents: Sequence[Mapping[str, Any]], figures: Mapping[str, bytes]) -> str:
    """One page of claims and figures, without network or script."""
    parts = [
        {
            "document": document,
            "anchor": document["name"].replace("/", "-"),
            "figure": base64.b64encode(figures[document["name"]]).decode() if document["name"] in figures else "",
            "rows": [
                {
                    "claim": claim,
                    "stated": stated(claim),
                    "measured": measured(claim),
                    "verdict": verdict(claim),
                    "tried": [(one, measured(one), compared(one)) for one in claim["tried"]],
                }
                for claim in document["claims"]
            ],
            "settings": [setting_line(document, setting) for setting in document["settings"]],
            "tally": counted([document]),
            "answer": answer(document),
        }
        for document in documents
    ]
    alone = len(documents) == 1
    facts = ["" if alone else counted(documents), documents[0]["name"] if alone else "", f"leakbound {__version__}"]
    return frame(
        title=documents[0]["title"] if alone else "What five papers print, repeated",
        facts=[fact for fact in facts if fact],
        about={"leakbound": __version__},
        sections=[Markup(fragment("papers", parts=parts, tolerance=TOLERANCE))],
        digest="",
        command="leakbound reproduce",
    )


def answer(document: Mapping[str, Any]) -> str:
    """Say in one sentence whether an experiment comes out as its paper prints it.

    >>> answer({"claims": [{"verdict": "agrees", "explained_by": ""}]})
    'The one claim agrees with what the paper prints.'
    """
    claims = document["claims"]
    n_agree = sum(claim["verdict"] == "agrees" for claim in claims)
    if claims and n_agree == len(claims):
        if n_agree == 1:
            return "The one claim agrees with what the paper prints."
        return f"All {n_agree} claims agree with what the paper prints."
    return f"Of {len(claims)} claims: {counted([document])}."


def stated(claim: Mapping[str, Any]) -> str:
    """Write the printed number with its sense."""
    return "so" if claim["printed"] is None else SIGNS[claim["kind"]] + number(claim["printed"])


def measured(claim: Mapping[str, Any]) -> str:
    """Our number with its standard error."""
    ours, error = claim["ours"], claim["error"]
    if ours is None:
        return "" if claim["verdict"] == "not run" else "not clear"
    if isinstance(ours, bool):
        return "so" if ours else "not so"
    least = "at least " if claim.get("at_least") else ""
    return least + number(ours) + (f" +- {error:.2g}" if error else "")


def verdict(claim: Mapping[str, Any]) -> str:
    """Write the verdict in words, with the size of a difference and what explains it."""
    text = compared(claim)
    if claim["verdict"] == "erratum":
        return f"{text}: erratum {claim['erratum']}"
    explained = f"; with {claim['explained_by']} it agrees" if claim["explained_by"] else ""
    return f"{text}{explained}"


def compared(row: Mapping[str, Any]) -> str:
    """Write the verdict on a claim or another setting, with the size of a difference.

    >>> compared({"verdict": "differs", "difference": 0.003})
    'differs, by 0.003'
    >>> compared({"verdict": "cannot tell", "difference": 0.003, "can_agree": False})
    'cannot tell, cannot agree at these digits'
    """
    text = VERDICTS[row["verdict"]]
    if row["verdict"] in ("differs", "erratum") and row.get("difference") is not None:
        least = "at least " if row.get("at_least") else ""
        text += f", by {least}{number(row['difference'])}"
    return text if row.get("can_agree", True) else f"{text}, {CANNOT_AGREE}"


def counted(documents: Sequence[Mapping[str, Any]]) -> str:
    """How many of each verdict, in words."""
    claims = [claim for document in documents for claim in document["claims"]]
    counts = Counter(claim["verdict"] for claim in claims)
    n_explained = sum(bool(claim["explained_by"]) for claim in claims)
    parts = []
    for verdict, text in VERDICTS.items():
        if counts[verdict] > 1:
            parts.append(f"{counts[verdict]} {OF_SEVERAL.get(verdict, text)}")
        elif counts[verdict]:
            parts.append(f"{counts[verdict]} {text}")
        if verdict == "differs" and n_explained:
            parts[-1] += f" ({n_explained} explained by another setting)"
    n_impossible = sum(not claim.get("can_agree", True) for claim in claims)
    if n_impossible:
        parts.append(f"{n_impossible} {CANNOT_AGREE}")
    return ", ".join(parts)


def number(value: float) -> str:
    """Four digits, whole numbers whole.

    >>> number(376714), number(0.0123), number(7.771)
    ('376,714', '0.0123', '7.771')
    """
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.4g}"
