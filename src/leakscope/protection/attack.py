"""The best attack that can be run against a protected release, and against the same release without its noise.

The attacker knows all n records, k, the statistic and the distribution of the noise, sees one release ``A(D) + Z``, and
guesses whether a record is in D, a uniform k-subset. Where every data set can be tried it is the Bayes attacker, whom
nobody beats; otherwise the likelihood ratio of the Gaussian distribution with the mean and covariance of the statistic.
All that is attacked is simulated, from seeds of its own: never a real draw, never a real noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakscope.auditing.evaluate import measured_curve
from leakscope.auditing.observed import ObservedRelease
from leakscope.core.findings import Finding, Scope, Term
from leakscope.core.intervals import clopper_pearson
from leakscope.core.types import Game, Noise, NotApplicable, Scores, Signals
from leakscope.metrics import tpr_at_fpr
from leakscope.protection.attack_approximate import Simulation
from leakscope.protection.attack_enumerated import Enumeration
from leakscope.protection.attack_simulated import AttackConfig, Played
from leakscope.protection.mechanism import Mechanism
from leakscope.reports import Curve
from leakscope.reports.phrases import WITHOUT, plural

Array = np.ndarray
_OTHERS = 3  # records drawn at random beside the most exposed one, in `signals`
_KNOWN = (
    "the attacker knows every record, the statistic and the distribution of the noise",
    "nothing else of the same draw is released",
)


@dataclass(frozen=True)
class AttackFindings:
    """What the best attack found.

    Parameters
    ----------
    findings : tuple of Finding
        Accuracy, and members found at the rates of interest; of the release without noise the accuracy alone.
    curves : tuple of Curve
    """

    findings: tuple[Finding, ...]
    curves: tuple[Curve, ...] = ()


def attack_release(mechanism: Mechanism, noise: Noise | None, ask: AttackConfig) -> AttackFindings:
    """Attack a release as well as we can, with its noise and without it.

    Parameters
    ----------
    mechanism : Mechanism
    noise : Noise or None
        None: the statistic is released as it is; then it is attacked once.
    ask : AttackConfig

    Returns
    -------
    AttackFindings
        An accuracy over all data sets and the distribution of the noise is certified: it is the accuracy of the
        best attacker, rounded down. One from simulated releases has the interval of Clopper and Pearson, each release
        a game.
        Without games one finding, which says so.

    Raises
    ------
    ValueError
        If there is no such record, or if the statistic cannot be computed at all.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.protection.attack import AttackConfig, attack_release
    >>> from leakscope.protection.mechanism import Mechanism
    >>> from leakscope.noise import LaplaceNoise
    >>> from leakscope.releases.statistics.statistic import named
    >>> from leakscope.core.types import Points
    >>> mean = Mechanism.of(named("mean"), Points(np.array([[0.0], [1.0], [3.0], [7.0]])))
    >>> found = attack_release(mean, LaplaceNoise(1.0), AttackConfig(n_games=1000))
    >>> for each in found.findings:
    ...     if each.quantity == "accuracy":
    ...         print(each.scope.kind, each.scope.index, each.release or "-", round(each.value, 6))
    worst 3 - 0.855955
    worst 0 without_noise 1.0
    """
    ask = _checked(mechanism, noise, ask)
    at = {"prior": mechanism.prior}
    if not ask.n_games:
        reason = "no release was simulated: games = 0"
        return AttackFindings(
            (
                Finding(
                    "accuracy", None, operating_point=at, attack="likelihood_ratio", bound_type="lower", reason=reason
                ),
            )
        )
    attacker = Enumeration.of(mechanism, ask) or Simulation.of(mechanism, ask)
    played = attacker.played(noise)
    findings, curves = [*_findings(mechanism, played, ask)], [*_curves(mechanism, played, ask)]
    if noise is not None:
        bare = attacker.played(None)
        findings.append(replace(_accuracy(mechanism, bare, ask), release=WITHOUT))
        curves += [replace(curve, name=WITHOUT, release=WITHOUT) for curve in _curves(mechanism, bare, ask)]
    return AttackFindings(tuple(findings), tuple(curves))


def signals(mechanism: Mechanism, noise: Noise | None, ask: AttackConfig) -> Signals:
    """Simulated releases for an audit of the certificate, as the likelihood ratio sees them.

    Parameters
    ----------
    mechanism : Mechanism
    noise : Noise or None
    ask : AttackConfig
        With at least one game; of a statistic that is no sum or mean, half of the games teach the attacker and are
        not among the signals.

    Returns
    -------
    Signals
        ``step_dot`` and ``step_norm`` of one step; column 0 is the most exposed record (or the one asked for), three
        further ones are drawn at random. A release that failed says nothing: its signals are 0.

    Raises
    ------
    ValueError
        Without games, or if there is no such record.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.protection.attack import AttackConfig, signals
    >>> from leakscope.protection.mechanism import Mechanism
    >>> from leakscope.noise import GaussianNoise
    >>> from leakscope.releases.statistics.statistic import named
    >>> from leakscope.core.types import Points
    >>> mean = Mechanism.of(named("mean"), Points(np.arange(30.0)[:, None]))
    >>> signals(mean, GaussianNoise(1.0), AttackConfig(n_games=200)).array("step_dot").shape
    (200, 4, 1)
    """
    ask = _checked(mechanism, noise, ask)
    if not ask.n_games:
        raise ValueError("signals need simulated releases, got games = 0")
    return Simulation.of(mechanism, ask).signals(noise, _OTHERS)


def _checked(mechanism: Mechanism, noise: Noise | None, ask: AttackConfig) -> AttackConfig:
    """With all coordinates where none gets noise."""
    if ask.record is not None and not 0 <= ask.record < mechanism.n:
        raise ValueError(f"record must be from 0 to n - 1 = {mechanism.n - 1}, got {ask.record}")
    return ask if noise is not None else replace(ask, noised=None)


def _findings(mechanism: Mechanism, played: Played, ask: AttackConfig) -> Iterator[Finding]:
    """Accuracy, and members found at each rate."""
    yield _accuracy(mechanism, played, ask)
    for rate in ask.fpr:
        said = _said(mechanism, played, ask, fpr=rate)
        if played.curve is not None:
            yield Finding("tpr", float(played.curve.tpr(rate)), status="certified", **said)
            continue
        try:
            found = tpr_at_fpr(_scores(played), rate, ask.confidence)
        except NotApplicable as reason:
            yield Finding("tpr", None, reason=str(reason), **said)
            continue
        said["method"] = (*played.method, *found.method)
        ends = {name: getattr(found, name) for name in ("low", "high", "confidence", "interval_over", "detail")}
        yield Finding("tpr", found.value, **ends, **said)


def _accuracy(mechanism: Mechanism, played: Played, ask: AttackConfig) -> Finding:
    """Of the best attacker, exactly; else share of the simulated games that were won."""
    said = _said(mechanism, played, ask, prior=mechanism.prior)
    if played.exact is not None:
        said["source"] = "izzo2022, Definition 1"
        return Finding("accuracy", played.exact, status="certified", **said)
    n_games, n_won = len(played.guess), int((played.guess == played.member).sum())
    won = clopper_pearson(n_won, n_games, ask.confidence)
    said["method"] = (*played.method, *won.method, Term("simulated_releases", games=n_games))
    said["detail"] = {"won": n_won, "games": n_games, "failed": played.n_failed}
    return Finding("accuracy", won.value, won.low, won.high, confidence=ask.confidence, interval_over="models", **said)


def _said(mechanism: Mechanism, played: Played, ask: AttackConfig, **at: float) -> dict[str, Any]:
    """What every finding of an attack says."""
    return {
        "operating_point": at,
        "bound_type": "lower",
        "method": played.method,
        "scope": Scope("average") if played.record is None else Scope("worst", played.record),
        "attack": played.attack,
        "game": f"{mechanism.k:,} of {mechanism.n:,} {plural(ask.unit)}, drawn at random",
        "assumptions": _KNOWN,
        "source": played.source,
    }


def _curves(mechanism: Mechanism, played: Played, ask: AttackConfig) -> Iterator[Curve]:
    """The measured trade-off with its band, or the exact one; none if the record was in all releases or in none."""
    if played.curve is not None:
        yield Curve(played.attack, "", "measured", played.curve)
        return
    scores = _scores(played)
    game = Game("per_datum", scores.member, np.ones(1, dtype=bool), len(scores.member), mechanism.prior)
    try:
        yield measured_curve(ObservedRelease("", Signals(game, None, {})), played.attack, scores, ask.confidence)
    except NotApplicable:
        return


def _scores(played: Played) -> Scores:
    return Scores(played.attack, played.score[:, None], played.member[:, None], played.source)
