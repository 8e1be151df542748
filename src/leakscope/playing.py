"""Play a game against releases: who is in is drawn, models are made and seen, and what they reveal is reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from leakscope import data as data_room
from leakscope.attacks import Attack
from leakscope.bounds import BOUNDS
from leakscope.claims import Claim
from leakscope.data import Data
from leakscope.drawing import draw
from leakscope.findings import Finding
from leakscope.intervals import Interval
from leakscope.judging import DEFAULT_DELTA
from leakscope.observing import Workshop, observe
from leakscope.plans.audits import AuditPlan, refuse_unknown
from leakscope.planting import Setting, is_private, plant
from leakscope.refuting import Accounted, Trial, accountant_verdict
from leakscope.releases.making import Described
from leakscope.report import Curve, Report
from leakscope.reporting import assemble
from leakscope.subjects import Asked, Subject
from leakscope.types import Game, NotApplicable, Points

AS_TOLD = ("the training does what is said of it", "each record is in a batch by a coin of its own")


def play(
    plan: AuditPlan,
    attacks: Sequence[Attack],
    releases: Sequence[Described],
    loaded: Data,
    workshop: Workshop,
    command: str = "",
) -> Report:
    """Draw the game, make the releases, attack them and report.

    A release that is trained by DP-SGD is held against its accountant: the curve stands in the report as certified,
    with a verdict, and its epsilon beside those that the attacks prove.

    Parameters
    ----------
    plan : AuditPlan
    attacks : sequence of Attack
    releases : sequence of Release
        With different names.
    loaded : Data
    workshop : Workshop
    command : str
        Printed on the page.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        If plan, releases and data do not fit, in one line.
    """
    names = [release.name for release in releases]
    if len(set(names)) < len(names):
        raise ValueError(f"two models have the same name; names: {', '.join(names)}")
    refuse_unknown(plan, names)
    settings = _settings(plan, attacks, releases, loaded)
    claims = [claims_of(plan, each.release.name, each.game) for each in settings]
    promises = [_promise(each, told) for each, told in zip(settings, claims, strict=True)]
    subjects = []
    for each, told in zip(settings, claims, strict=True):
        points, member = each.data.points, each.game.member
        arrays = observe(each.release, points, member, each.wanted(attacks), plan.seed, workshop)
        subjects.append(each.subject(arrays, told))
    report = assemble(plan, attacks, subjects, list(_notes(loaded.points, settings, workshop)), command)
    for subject, promise in zip(subjects, promises, strict=True):
        if promise is not None:
            report = _held_against(report, subject, promise, attacks, plan.confidence)
    return report


def claims_of(plan: AuditPlan, release: str, game: Game) -> list[Claim]:
    """The claims about a release, in the game that is played.

    Parameters
    ----------
    plan : AuditPlan
    release : str
        Its name.
    game : Game

    Returns
    -------
    list of Claim

    Raises
    ------
    ValueError
        For an eta or a success that the prior makes impossible.
    """
    made, blind = [], max(game.prior, 1 - game.prior)
    for claim in plan.claim:
        if claim.model not in ("", release):
            continue
        if claim.epsilon is not None:
            made.append(Claim("epsilon", claim.epsilon, claim.delta, claim.adjacency))
        elif claim.mu is not None:
            made.append(Claim("mu", claim.mu, 0.0, claim.adjacency))
        else:
            eta = claim.eta if claim.eta is not None else (claim.success or 0.0) - blind
            if not 0 <= eta <= 1 - blind:
                raise ValueError(
                    f"a claim of eta = {eta:g} is not possible where a blind guess is right in a share of {blind:.3g}; "
                    f"eta is from 0 to {1 - blind:.3g}, success from {blind:.3g} to 1"
                )
            made.append(Claim("eta", eta))
    return made


def _settings(plan: AuditPlan, attacks: Sequence[Attack], releases: Sequence[Described], loaded: Data) -> list[Setting]:
    """Each release with its data and game: one game for all, unless canaries are planted."""
    if plan.canaries is not None:
        return [plant(plan, release, loaded) for release in releases]
    game = draw(plan, loaded.points, attacks)
    return [Setting(release, loaded, game) for release in releases]


def _notes(points: Points, settings: Sequence[Setting], workshop: Workshop) -> Iterator[str]:
    """What a reader of the report should know of the data and of the run."""
    n_repeated = int(data_room.repeated(points).sum())
    if n_repeated:
        yield f"{n_repeated:,} of {len(points):,} points repeat an earlier one in all features and the label"
    for each in settings:
        if workshop.store is not None and each.release.describe() is None:
            yield f"{each.release.name} has a parameter without a canonical form (a lambda); its models are not stored"


def _promise(setting: Setting, claims: Sequence[Claim]) -> Accounted | None:
    """The accountant's curve for the neighbours of the game, looked at before anything is trained."""
    if not is_private(setting.release):
        return None
    if setting.release.dpsgd.noise_multiplier == 0:
        raise ValueError(f"{setting.release.name}: noise_multiplier must be > 0; without noise DP-SGD promises nothing")
    adjacency = "add_remove" if setting.game.sampling == "poisson" else "replace_one"
    delta = max([claim.delta for claim in claims], default=0.0) or DEFAULT_DELTA
    return Accounted(setting.release.dpsgd, adjacency, delta)


def _held_against(
    report: Report, subject: Subject, promise: Accounted, attacks: Sequence[Attack], confidence: float
) -> Report:
    """The report with the accountant's curve and epsilon, and the epsilon below which no noise explains the attacks."""
    at, source = {"delta": promise.delta}, BOUNDS["dpsgd"].source
    try:
        epsilon = promise.epsilon
    except NotApplicable as reason:
        unknown = subject.finding(Asked("epsilon", "upper", source=source, at=at), reason)
        return replace(report, findings=(*report.findings, unknown))
    certified = Finding(
        "epsilon", epsilon, at=at, side="upper", status="certified", release=subject.name,
        method="privacy loss distributions", assumptions=AS_TOLD, source=source,
    )  # fmt: skip
    trial = Trial.of(subject.signals, attacks, subject.by_unit)
    own = [each for each in report.findings if each.release == subject.name]
    findings = [certified, _by_the_curve(subject, promise, trial, confidence)]
    judged = accountant_verdict(promise, trial, own)
    curve = Curve(promise.text, subject.name, "certified", promise.ceiling, verdict=judged)
    return replace(report, findings=(*report.findings, *findings), curves=(*report.curves, curve))


def _by_the_curve(subject: Subject, promise: Accounted, trial: Trial, confidence: float) -> Finding:
    """The lower bound of epsilon if the noise alone is in doubt."""
    source, at = "mahloujifar2024", {"delta": promise.delta}
    if not trial.evidence:
        return subject.finding(Asked("epsilon", "lower", source=source, at=at), NotApplicable(trial.reason))
    value = promise.ruled_out(trial, 1 - confidence)
    attack = trial.strongest(promise.ceiling)
    method = f"{trial.evidence[attack].method}, whole curve"
    given = ["ε by the whole curve: the training is DP-SGD at its rate and number of steps, with more noise or less"]
    number = Interval(value, value, float("inf"), confidence, "none", method, {"delta": promise.delta})
    return subject.finding(Asked("epsilon", "lower", attack, source, at, given), number)
