"""The best attack that can be run against a protected release, and against the same release without its noise.

The attacker
    knows all n records, k, the statistic and the distribution of the noise, sees one release ``A(D) + Z``, and guesses
    whether a record is in D, a uniform k-subset.
The attack
    Where every data set can be tried it is the Bayes attacker, whom nobody beats (`attack_bayes`); otherwise the
    likelihood ratio of the Gaussian distribution with the mean and covariance of the statistic (`attack_gaussian`).
The games
    are simulated (`attack_games`), from seeds of their own: never a real draw, never a real noise.
The result
    is that of an audit of one observed release: true positive rates, ROC and band are those of any audit. The accuracy
    is the fraction of correct guesses, whose rule is the posterior, or was learned from other games.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from leakbound.auditing.evaluate import measured_curve
from leakbound.auditing.observed import ObservedRelease
from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.intervals import Interval, clopper_pearson
from leakbound.core.types import Game, Noise, NotApplicable, Signals
from leakbound.metrics import tpr_at_fpr
from leakbound.protection.attack.bayes import BayesAttacker
from leakbound.protection.attack.games import AttackConfig, AttackResult
from leakbound.protection.attack.gaussian import GaussianAttacker
from leakbound.protection.setting.mechanism import Mechanism, game_of
from leakbound.reports import Curve
from leakbound.reports.phrases import WITHOUT

Array = np.ndarray
_N_OTHERS = 3  # records drawn at random in addition to the most exposed one, in `signals`
_KNOWN = (Term("knows_records_and_noise"), Term("only_release_of_the_draw"))


def attack_release(
    mechanism: Mechanism, noise: Noise | None, config: AttackConfig
) -> tuple[list[Finding], list[Curve]]:
    """Attack a release as well as we can, with its noise and without it.

    >>> from leakbound.noise import LaplaceNoise
    >>> from leakbound.releases.statistics.statistic import named
    >>> from leakbound.core.types import Points
    >>> mean = Mechanism.of(named("mean"), Points(np.array([[0.0], [1.0], [3.0], [7.0]])))
    >>> findings, curves = attack_release(mean, LaplaceNoise(1.0), AttackConfig(n_games=1000))
    >>> for finding in findings:
    ...     if finding.quantity == "accuracy":
    ...         print(finding.scope.kind, finding.scope.index, finding.release or "-", round(finding.value, 6))
    worst 3 - 0.855955
    worst 0 without_noise 1.0
    """
    config = _checked(mechanism, noise, config)
    if not config.n_games:
        at = {"prior": mechanism.prior}
        reason = Term("no_games")
        attack = "likelihood_ratio"
        return [Finding("accuracy", None, operating_point=at, attack=attack, bound_type="lower", reason=reason)], []
    attacker = BayesAttacker.of(mechanism, config) or GaussianAttacker.of(mechanism, config)
    result = attacker.attack(noise)
    # An accuracy over all data sets and the distribution of the noise is certified: that of the best attacker, rounded
    # down. One from simulated releases has the interval of Clopper and Pearson, each release a game.
    findings = [accuracy(mechanism, result, config)]
    findings += [_tpr(mechanism, result, config, rate) for rate in config.fpr]
    curves = _curves(mechanism, result, config)
    if noise is not None:
        result = attacker.attack(None)
        findings.append(replace(accuracy(mechanism, result, config), release=WITHOUT))
        curves += [replace(curve, name=WITHOUT, release=WITHOUT) for curve in _curves(mechanism, result, config)]
    return findings, curves


def signals(mechanism: Mechanism, noise: Noise | None, config: AttackConfig) -> Signals:
    """Simulate releases for an audit of the certificate, as the likelihood ratio sees them.

    >>> from leakbound.noise import GaussianNoise
    >>> from leakbound.releases.statistics.statistic import named
    >>> from leakbound.core.types import Points
    >>> mean = Mechanism.of(named("mean"), Points(np.arange(30.0)[:, None]))
    >>> signals(mean, GaussianNoise(1.0), AttackConfig(n_games=200)).array("step_dot").shape
    (200, 4, 1)
    """
    config = _checked(mechanism, noise, config)
    if not config.n_games:
        raise ValueError("signals need simulated releases, got games = 0")
    # Column 0 is the most exposed record (or the one asked for), others are drawn. A failed release has signals of 0.
    return GaussianAttacker.of(mechanism, config).signals(noise, _N_OTHERS)


def accuracy(mechanism: Mechanism, result: AttackResult, config: AttackConfig) -> Finding:
    """Report the accuracy of an attack: of the best attacker exactly, else the fraction of correct guesses."""
    at = {"prior": mechanism.prior}
    if result.accuracy is not None:
        return _finding(mechanism, result, "accuracy", at, result.accuracy, "izzo2022, Definition 1")
    n_games = len(result.guess)
    n_correct = int((result.guess == result.scores.member[:, 0]).sum())
    interval = clopper_pearson(n_correct, n_games, config.confidence)
    interval = replace(
        interval,
        interval_over="models",
        method=(*interval.method, Term("simulated_releases", games=n_games)),
        detail={"won": n_correct, "games": n_games, "failed": result.n_failed},
    )
    return _finding(mechanism, result, "accuracy", at, interval)


def _checked(mechanism: Mechanism, noise: Noise | None, config: AttackConfig) -> AttackConfig:
    """Refuse a record that is not there; without noise all coordinates are attacked."""
    if config.record is not None and not 0 <= config.record < mechanism.n:
        raise ValueError(f"record must be from 0 to n - 1 = {mechanism.n - 1}, got {config.record}")
    return config if noise is not None else replace(config, noisy_coords=None)


def _tpr(mechanism: Mechanism, result: AttackResult, config: AttackConfig, rate: float) -> Finding:
    """Report the true positive rate at a false positive rate."""
    if result.tradeoff is not None:
        return _finding(mechanism, result, "tpr", {"fpr": rate}, float(result.tradeoff.tpr_at(rate)))
    try:
        interval = tpr_at_fpr(result.scores, rate, config.confidence)
    except NotApplicable as reason:
        return _finding(mechanism, result, "tpr", {"fpr": rate}, reason)
    return _finding(mechanism, result, "tpr", {"fpr": rate}, interval)


def _finding(
    mechanism: Mechanism,
    result: AttackResult,
    quantity: str,
    operating_point: Mapping[str, float],
    number: float | Interval | NotApplicable,
    source: str = "",
) -> Finding:
    """Make a finding of an exact number, of a measured one, or of the reason why there is none."""
    common: dict[str, Any] = {
        "operating_point": operating_point,
        "bound_type": "lower",
        "scope": Scope("average") if result.record is None else Scope("worst", result.record),
        "attack": result.scores.attack,
        "game": game_of(mechanism),
        "assumptions": _KNOWN,
        "source": source or result.scores.source,
    }
    # the reason why there is no number, a measured number, or an exact one
    if isinstance(number, NotApplicable):
        return Finding(quantity, None, method=result.method, reason=number.reason, **common)
    if isinstance(number, Interval):
        return Finding(
            quantity,
            number.value,
            number.low,
            number.high,
            confidence=number.confidence,
            interval_over=number.interval_over,
            method=(*result.method, *number.method),
            detail=number.detail,
            **common,
        )
    return Finding(quantity, number, method=result.method, status="certified", **common)


def _curves(mechanism: Mechanism, result: AttackResult, config: AttackConfig) -> list[Curve]:
    """Return the exact trade-off, or the measured one with its band; none if the record was in all games or in none."""
    if result.tradeoff is not None:
        return [Curve(result.scores.attack, "", "measured", result.tradeoff)]
    scores = result.scores
    game = Game("per_datum", scores.member, np.ones(1, dtype=bool), len(scores.member), mechanism.prior)
    release = ObservedRelease("", Signals(game, None, {}))
    try:
        return [measured_curve(release, scores.attack, scores, config.confidence)]
    except NotApplicable:
        return []
