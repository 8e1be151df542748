"""What the document of a report says, as one text without line breaks."""

from __future__ import annotations

from leakbound.reports import Report

WIDE = 4000  # where nothing wraps


def flat(text: str) -> str:
    """A text in one line, with plain spaces."""
    return " ".join(text.replace("\u202f", " ").replace("\u00a0", " ").split())


def said(report: Report) -> str:
    """All that the document says."""
    return flat(report.table(WIDE, full=True))


def terms(report: Report) -> dict[str, str]:
    """What each term of a list means: those of a certificate come first."""
    meanings: dict[str, str] = {}
    name = ""
    for line in report.table(WIDE, full=True).splitlines():
        if line.startswith(" • "):
            name = line.removeprefix(" • ")
            name = "" if name in meanings else name  # the words on a page explain some of the terms again
            meanings[name] = ""
        elif line.startswith("   "):
            meanings[name] = flat(f"{meanings[name]} {line}")
    return meanings


def term(report: Report, name: str) -> str:
    """What a term means."""
    return terms(report)[name]
