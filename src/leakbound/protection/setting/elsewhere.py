"""Other ledgers of the same people: under another design, or of a copy, a second name or a later version of their file.

A ledger has one design, because a release on all records has no effect in the game of the record left out, and the
other way round: no sum over both would mean anything. So a release under a second design is refused unless the plan
says ``another_promise``; it is then counted in a ledger of its own. A ledger beside the data is of the same data.

All other ledgers of the folder, and those of the user's list, are asked whether they hold the people of the file. If
one of the same design does, a release is refused unless the plan says ``allow_known_people``. A certificate names what
the other ledgers hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from leakbound.files import private_file
from leakbound.plans.promises import NAME_OF, File
from leakbound.plans.protects import ProtectionPlan
from leakbound.protection.ledger.budget import RETIRED
from leakbound.protection.ledger.files import opened
from leakbound.protection.ledger.ledger import Ledger, OtherRelease
from leakbound.protection.ledger.listed import list_file, listed_ledgers, note_ledger
from leakbound.protection.ledger.people import IDENTIFIERS, Overlap, PeopleNames
from leakbound.protection.setting.request import Request
from leakbound.protection.setting.units import Units

_SUFFIX = ".ledger"
_MOST_NAMED = 3  # releases that a refusal names, ledgers that a note names
_N_DRAWN = 2000  # records that are looked up first in a ledger of another folder
_KNOWN = 1 / 2  # of the smaller file, from which on two files are of the same people
_RETIRED = "design {other} is retired, and nothing more is released under it"
_ALL_THE_SAME = (
    "say another_promise (--another-promise) to release under promise {promise} all the same, with no joint number "
    "over both"
)
NamePeople = Callable[[], PeopleNames]


@dataclass(frozen=True)
class Elsewhere:
    """What other ledgers hold of the people of a request."""

    releases: tuple[OtherRelease, ...] = ()
    refusal: str = ""
    knows_people: bool = False
    notes: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()

    def with_(self, other: Elsewhere) -> Elsewhere:
        """Put the findings of two searches together."""
        return Elsewhere(
            self.releases + other.releases,
            self.refusal or other.refusal,
            self.knows_people or other.knows_people,
            self.notes + other.notes,
            self.paths + other.paths,
        )

    def refuse(self) -> None:
        """Refuse a new release where there is a reason."""
        if self.refusal:
            raise ValueError(self.refusal)


NOWHERE = Elsewhere()


def own_ledger(request: Request) -> Path:
    """Find the ledger of a request: that of its plan, or the one beside it if that is of another design."""
    path, design = request.ledger_path, request.plan.chosen or ""
    if path is None:
        raise ValueError("a request without a ledger has none of another design beside it")
    private_file.behind_link(path)  # refuses one to nothing
    beside = _beside(path, design)
    is_of_another = path.exists() and opened(path).design != design
    # one that was begun beside a ledger of another design goes on when that is there no longer
    return beside if is_of_another or (not path.exists() and beside.exists()) else path


def beside_the_data(request: Request, own: Path | None) -> Elsewhere:
    """Find what was released of the same data under other designs, by the places of their ledgers."""
    found = NOWHERE
    for path in _places_of(request):
        is_own = own is not None and path.resolve() == own.resolve()
        if is_own or not path.exists():
            continue
        ledger = opened(path)
        if ledger.design == request.plan.chosen:
            continue
        releases = ledger.others
        is_named = path == request.ledger_path
        refusal = ""
        if (releases or is_named) and not _plan(request).another_promise:
            refusal = _refusal_of_design(path, ledger.design, releases, request.plan.chosen or "")
        found = found.with_(Elsewhere(releases, refusal, paths=(path.resolve(),)))
    return found


def of_the_same_people(
    request: Request,
    own: Path | None,
    name_people: NamePeople,
    ledger: Ledger | None = None,
    units: Units | None = None,
    known: Sequence[Path] = (),
) -> Elsewhere:
    """Find the ledgers, in the folders of ledger and data and on the user's list, that hold the people of a request."""
    if request.insecure_seed is not None:  # for tests: nothing of it is published
        return NOWHERE
    near, far = _ledgers_to_ask(request, own, known)
    found, unknown = NOWHERE, []
    names: PeopleNames | None = None
    for path in (*near, *far):
        try:
            other = opened(path)
        except (OSError, ValueError) as reason:
            found = found.with_(Elsewhere(notes=(f"whether these people are in a ledger is not known: {reason}",)))
            continue
        # a release without a ledger, under design half, is a draw of its own: no ledger of that design is asked
        if other.for_tests or (own is None and other.design == "half") or _is_copy(other, ledger):
            continue
        if not other.people.contents and other.design in ("dp", "half"):
            note = f"whether these people are in {path} is not known: it is of an older version, which kept no hashes"
            found = found.with_(Elsewhere(notes=(note,)))
            continue
        names = name_people() if names is None else names
        n_drawn = None if path in near else _N_DRAWN
        overlap = _same_people(request, other.overlaps(names, None if units is None else units.names, n_drawn))
        if overlap is not None:
            found = found.with_(_known_in(request, path, other, overlap))
        elif path in near:
            unknown.append(path.name)
    if unknown and own is not None and not own.exists():
        found = found.with_(Elsewhere(notes=(_note_of_others(unknown),)))
    return found


def note_begun(request: Request, ledger: Path) -> None:
    """Put the ledger of a release on the list before it is written, so that none is outside of it."""
    plan = request.plan
    if isinstance(plan, ProtectionPlan) and request.insecure_seed is None:
        note_ledger(list_file(plan.known_ledgers), ledger, plan.promise_name, request.date)


def _plan(request: Request) -> ProtectionPlan:
    if not isinstance(request.plan, ProtectionPlan):
        raise TypeError(f"expected the plan of a release, got {type(request.plan).__name__}")
    return request.plan


def _places_of(request: Request) -> list[Path]:
    """List where ledgers of the same data are looked for: each with those of other designs beside it."""
    first = [request.ledger_path] if request.ledger_path is not None else []
    if request.of_a_file:
        first.append(Path(f"{request.plan.data}{_SUFFIX}"))
    places = [place for path in first for place in (path, *(_beside(path, design) for design in (*NAME_OF, *RETIRED)))]
    return list(dict.fromkeys(places))


def _beside(path: Path, design: str) -> Path:
    """Name the ledger of another design beside one: ``people.csv.leave-one-out.ledger`` beside ``people.csv.ledger``.

    >>> _beside(Path("people.csv.ledger"), "dp").name, _beside(Path("people.models"), "dp").name
    ('people.csv.dp.ledger', 'people.models.dp.ledger')
    """
    return path.with_name(f"{path.name.removesuffix(_SUFFIX)}.{design}{_SUFFIX}")


def _ledgers_to_ask(request: Request, own: Path | None, known: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """List the ledgers in the folders of ledger and data, and those of the list that are elsewhere."""
    folders = [] if own is None else [own.parent, own.resolve().parent]
    if request.of_a_file:
        data = Path(request.plan.data)
        folders += [data.parent, data.resolve().parent]
    done = {*known, *([] if own is None else [own.resolve()])}
    near: list[Path] = []
    for folder in folders:
        for path in sorted(folder.glob(f"*{_SUFFIX}")):
            if path.resolve() not in done:
                near.append(path)
                done.add(path.resolve())
    far: list[Path] = []
    for path in (Path(listed.path) for listed in listed_ledgers(list_file(_plan(request).known_ledgers))):
        if path not in done:
            is_near = path.parent in [folder.resolve() for folder in folders]
            (near if is_near else far).append(path)
            done.add(path)
    return near, far


def _is_copy(other: Ledger, ledger: Ledger | None) -> bool:
    """Tell whether a ledger is a copy of another one that did not go on by itself."""
    if ledger is None or other.key != ledger.key:
        return False
    return {each.release for each in other.releases} <= {each.release for each in ledger.releases}


def _same_people(request: Request, overlaps: Sequence[Overlap]) -> Overlap | None:
    """Return the overlap that says that two files are of the same people; None where none does.

    It is that of half of the smaller file. Under the promise for a file one identifier is enough: somebody left out of
    one of two files is in the other one.
    """
    for overlap in sorted(overlaps, key=lambda overlap: -overlap.fraction):
        is_one_enough = overlap.what == IDENTIFIERS and isinstance(request.plan.promise, File)
        if overlap.fraction >= _KNOWN or (is_one_enough and overlap.n_known > 0):
            return overlap
    return None


def _known_in(request: Request, path: Path, ledger: Ledger, overlap: Overlap) -> Elsewhere:
    """Refuse a release of people whom another ledger holds, or note that the owner has said that they are known."""
    plan, design = _plan(request), ledger.design
    is_allowed = plan.allow_known_people or (plan.another_promise and design != plan.chosen)
    refusal = ""
    if not is_allowed:
        about = "about " if overlap.is_drawn else ""
        known = f"{about}{overlap.n_known:,} of the {overlap.n_file:,} {overlap.what} are in {path} too"
        refusal = f"{known}, {ledger.state}: {_ways_on(path, design, plan.chosen or '')}"
    is_passed = is_allowed and design == plan.chosen
    return Elsewhere(ledger.others, refusal, is_passed, paths=(path.resolve(),))


def _ways_on(path: Path, other: str, design: str) -> str:
    """Say what to do where another ledger holds the same people."""
    if other in RETIRED:
        return f"{_RETIRED.format(other=other)}; {_ALL_THE_SAME.format(promise=NAME_OF[design])}"
    if other != design:
        all_the_same = _ALL_THE_SAME.format(promise=NAME_OF[design])
        return f"choose promise {NAME_OF[other]} and ledger (--ledger) {path}, or {all_the_same}"
    return (
        f"join it by ledger (--ledger) {path}; if these are other people or stay apart, say allow_known_people "
        "(--allow-known-people), which the certificate names"
    )


def _called(design: str) -> str:
    """Name how a ledger keeps its promise, as a user knows it."""
    return f"design {design}" if design in RETIRED else f"promise {NAME_OF[design]}"


def _note_of_others(names: Sequence[str]) -> str:
    return (
        f"the folder of the ledger has others, {', '.join(names[:_MOST_NAMED])}, without these records: if one of them "
        "is of the same people with other columns, nothing adds up its releases and these; name it by ledger"
    )


def _refusal_of_design(path: Path, other: str, releases: Sequence[OtherRelease], design: str) -> str:
    """Say what was released under another design."""
    if not releases:
        return (
            f"{path} was begun for {_called(other)}, under which nothing is released yet: name another ledger for "
            f"promise {NAME_OF[design]}, or say another_promise (--another-promise), which begins one beside it"
        )
    dated = [f"release {each.number}{f' of {each.date}' if each.date else ''}" for each in releases[:_MOST_NAMED]]
    more = f" and {len(releases) - _MOST_NAMED} more" if len(releases) > _MOST_NAMED else ""
    if other in RETIRED:
        way_on = f"{_RETIRED.format(other=other)};"
    else:
        way_on = f"choose promise {NAME_OF[other]}, or"
    return (
        f"these data were released under {_called(other)} ({', '.join(dated)}{more} of {path}), and no joint number is "
        f"promised over two promises: {way_on} say another_promise (--another-promise) to release under promise "
        f"{NAME_OF[design]} all the same, in a ledger of its own"
    )
