"""Other ledgers of the same data: what was released under other designs, and where this one keeps its own.

A ledger has one design, because a release on all records has no effect in the game of the one left out, and the other
way round: no sum over both would mean anything. So a release under a second design is refused unless the plan says
``another_design``. It is then counted in a ledger of its own, and its certificate names what the other ones hold.

A ledger of the same data is looked for under the name that was given, and beside the data. Which ledgers elsewhere are
of the same people, nobody knows but their owner.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from leakscope.core import plain_json, private_file
from leakscope.noise.keyed import KEY_BYTES
from leakscope.noise.release_ledger import DESIGNS, OF_HALF_DRAWS, OtherRelease, ReleaseLedger
from leakscope.plans.protects import PROMISE_OF, ProtectionPlan
from leakscope.protection.request import Request
from leakscope.reports import Report
from leakscope.reports.about import OtherReleaseFacts, ProtectedAbout, about_as

_SUFFIX = ".ledger"
_MOST_NAMED = 3  # releases that a refusal names


class OtherDesignError(ValueError):
    """The data were released under another design, and the plan does not say ``another_design``."""


def ledger_of_design(request: Request, *, refuse: bool = True) -> tuple[Path, tuple[OtherRelease, ...]]:
    """Find the ledger of a request, and what was released of the same data under other designs.

    Parameters
    ----------
    request : Request
        With a ledger.
    refuse : bool
        False for a release that may be in the ledger already: nothing is refused.

    Returns
    -------
    path : Path
        The one that was named, or beside the data; if that is of another design, the one beside it for this design.
    others : tuple of OtherRelease

    Raises
    ------
    OtherDesignError
        In one line, unless the plan says ``another_design``: what was released, and under which design.
    """
    path = request.ledger_path
    if path is None:
        raise ValueError("a request without a ledger has none of another design beside it")
    design = request.plan.chosen or ""
    there = design_of(path)
    if there is not None and there != design:
        if refuse and not _is_allowed(request):
            raise OtherDesignError(_refusal(path, there, releases_of(path, there), design))
        path = _beside(path, design)
    elif not path.exists() and _beside(path, design).exists():
        path = _beside(path, design)  # begun beside one of another design, which is there no longer
    return path, others_of(request, path, refuse=refuse)


def others_of(request: Request, own: Path | None = None, *, refuse: bool = True) -> tuple[OtherRelease, ...]:
    """List the releases of the same data under other designs.

    Parameters
    ----------
    request : Request
    own : Path, optional
        The ledger of this request.
    refuse : bool
        As in `ledger_of_design`.

    Raises
    ------
    OtherDesignError
        As `ledger_of_design`.
    """
    found: list[OtherRelease] = []
    for path in places_of(request):
        if path == own:
            continue
        design = design_of(path)
        if design is None or design == request.plan.chosen:
            continue
        releases = releases_of(path, design)
        if releases and refuse and not _is_allowed(request):
            raise OtherDesignError(_refusal(path, design, releases, request.plan.chosen or ""))
        found += releases
    return tuple(found)


def with_others(report: Report, others: Sequence[OtherRelease]) -> Report:
    """Name releases under other designs in a certificate.

    Parameters
    ----------
    report : Report
        Either half.
    others : sequence of OtherRelease

    Returns
    -------
    Report
    """
    about = about_as(ProtectedAbout, report.about)
    facts = tuple(OtherReleaseFacts(**asdict(other)) for other in others)
    certificate = about.certificate.model_copy(update={"others": facts})
    return replace(report, about=about.model_copy(update={"certificate": certificate}))


def _is_allowed(request: Request) -> bool:
    return isinstance(request.plan, ProtectionPlan) and request.plan.another_design


def places_of(request: Request) -> list[Path]:
    """List where ledgers of the same data are looked for."""
    first = [request.ledger_path] if request.ledger_path is not None else []
    if request.of_a_file:
        first.append(Path(f"{request.plan.data}{_SUFFIX}"))
    return ledger_places(first)


def ledger_places(paths: Sequence[Path]) -> list[Path]:
    """List ledgers, and those of other designs beside each of them."""
    places = [place for path in paths for place in (path, *(_beside(path, design) for design in PROMISE_OF))]
    return list(dict.fromkeys(places))


def _beside(path: Path, design: str) -> Path:
    """Name the ledger of another design beside one: ``people.csv.leave-one-out.ledger`` beside ``people.csv.ledger``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from leakscope.protection.other_designs import _beside
    >>> _beside(Path("people.csv.ledger"), "dp").name, _beside(Path("people.models"), "dp").name
    ('people.csv.dp.ledger', 'people.models.dp.ledger')
    """
    return path.with_name(f"{path.name.removesuffix(_SUFFIX)}.{design}{_SUFFIX}")


def design_of(path: Path) -> str | None:
    """Read the design of a ledger; None where there is none."""
    if not path.exists():
        return None
    content, _ = private_file.read(path)
    if content.get("format") in OF_HALF_DRAWS:
        return "half"
    design = content.get("design")
    if design not in DESIGNS:
        raise ValueError(f"{path} is no ledger of this version: design must be {', '.join(DESIGNS)}")
    return str(design)


def releases_of(path: Path, design: str) -> list[OtherRelease]:
    """List the releases of a ledger."""
    if design == "half":
        return _releases_of_half(path)
    ledger = ReleaseLedger.open(path, design)
    return [
        OtherRelease(design, release.date, place + 1, ledger.entry_digest(place))
        for place, release in enumerate(ledger.releases)
    ]


def _releases_of_half(path: Path) -> list[OtherRelease]:
    """List the releases of half draws: their ledger keeps no dates, and its entries have no digest of their own."""
    content, _ = private_file.read(path)
    releases = []
    try:
        key = bytes.fromhex(plain_json.hexadecimal("key", content.get("key"), KEY_BYTES))
        for place, each in enumerate(plain_json.sequence("releases", content.get("releases"))):
            release = each.get("release") if isinstance(each, dict) else None
            entry = f"entry {place + 1} {plain_json.text(f'releases[{place}].release', release)}"
            digest = hmac.digest(key, entry.encode(), "sha256").hex()
            releases.append(OtherRelease("half", "", place + 1, digest))
    except ValueError as reason:
        raise ValueError(f"{path} is no ledger of this version: {reason}") from None
    return releases


def _refusal(path: Path, other: str, releases: Sequence[OtherRelease], design: str) -> str:
    """Say what was released under another design."""
    if not releases:
        return (
            f"{path} was begun for design {other}, under which nothing is released yet: name another ledger for design "
            f"{design}, or say --another-design, which begins one beside it"
        )
    dated = [f"release {each.number}{f' of {each.date}' if each.date else ''}" for each in releases[:_MOST_NAMED]]
    more = f" and {len(releases) - _MOST_NAMED} more" if len(releases) > _MOST_NAMED else ""
    return (
        f"these data were released under design {other} ({', '.join(dated)}{more} of {path}), and no joint number is "
        f"promised over two designs: choose design {other}, or say --another-design to release under design {design} "
        "all the same, in a ledger of its own"
    )
