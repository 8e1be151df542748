"""Claims put to the test: what the scores of all attacks together say of a promise, at family-wise level 1e-3."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from leakscope.claims import Claim
from leakscope.findings import Finding
from leakscope.intervals import Interval
from leakscope.metrics import epsilon as counting
from leakscope.metrics.records import games_won
from leakscope.report import Verdict
from leakscope.tradeoff import Gaussian
from leakscope.types import Attack, Game, NotApplicable, Scores, Signals

LEVEL = 1e-3  # probability that any true claim of a release is refuted by any of its attacks
GRID = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)  # epsilons at which a claim of mu is tested


@dataclass(frozen=True)
class Trial:
    """Evidence of each attack against claims of one release.

    Parameters
    ----------
    method : str
        A key of ``metrics.epsilon.METHODS``: what is counted.
    evidence : mapping of str to Evidence
        From the first half of the models as targets and the second half as references, so that no
        reference is a target. Attacks that do not apply have none.
    success : mapping of str to float
        Lower limit of the success against the most exposed record, at the level of this trial.
    """

    method: str
    evidence: Mapping[str, counting.Evidence]
    success: Mapping[str, float]
    reason: str = ""

    @classmethod
    def of(cls, signals: Signals, attacks: Sequence[Attack], by_unit: Callable[[Scores], Scores]) -> Trial:
        """Let every attack play against targets that are no references."""
        game = signals.game.split()
        apart = Signals(game, signals.points, signals.arrays)
        method = "many_runs" if game.n_judged == 1 else "coins" if game.sampling == "poisson" else "pairs"
        if signals.game.n_targets > 1 and game.n_targets < 2:
            reason = f"{signals.game.n_models} models leave no second target beside the references; needs at least 4"
            return cls(method, {}, {}, reason)
        evidence: dict[str, counting.Evidence] = {}
        success: dict[str, float] = {}
        reasons: list[str] = []
        for attack in attacks:
            try:
                scores = by_unit(attack(apart))
                won = games_won(scores, 1 - LEVEL / len(attacks), independent=True)
                success[attack.name] = float(won.low.max())
                evidence[attack.name] = counting.evidence(scores, method, independent=True)
            except NotApplicable as reason:
                reasons.append(str(reason))
        return cls(method, evidence, success, reasons[0] if reasons else "no attack applies")

    def epsilon(self, delta: float, confidence: float) -> tuple[str, Interval | NotApplicable]:
        """The largest lower bound over the attacks, corrected for their number, and the attack that gave it."""
        if not self.evidence:
            return "", NotApplicable(self.reason)
        n_tests = len(self.evidence)
        bounds = {
            name: counting.bound(evidence, delta, confidence, n_tests) for name, evidence in self.evidence.items()
        }
        best = max(bounds, key=lambda name: bounds[name].value)
        return best, bounds[best]

    def p_value(self, played: Claim) -> float:
        """P-value of a claim of epsilon or mu in the game that was played, over all attacks."""
        points = [(played.value, played.delta)]
        if played.quantity == "mu":
            points = [(each, Gaussian(played.value).delta(each)) for each in GRID]
        values = [each.p_value(*point) for each in self.evidence.values() for point in points]
        return min(1.0, len(values) * min(values))


def verdict(claim: Claim, game: Game, trial: Trial, findings: Sequence[Finding]) -> Verdict:
    """What the trial says of a claim.

    Parameters
    ----------
    claim : Claim
    game : Game
        That was played.
    trial : Trial
    findings : sequence of Finding
        Of the release; the operating point that shows the verdict best is taken from its TPRs.

    Returns
    -------
    Verdict
        Refuted only if the test at ``LEVEL`` rejects the claim; ``measured`` is the bound at that level.
    """
    try:
        claim.in_game(game)
        measured = _success(claim, game, trial) if claim.quantity == "eta" else _lower(claim, game, trial)
    except NotApplicable as reason:
        return Verdict(claim.text, "cannot_be_tested", claim.quantity, claim.value, reason=str(reason))
    word = "refuted" if measured > claim.value else "not_refuted"
    attack, at = _operating_point(claim, game, findings)
    return Verdict(claim.text, word, claim.quantity, claim.value, measured, 1 - LEVEL, attack, at)


def _lower(claim: Claim, game: Game, trial: Trial) -> float:
    """The largest value of the claim's own quantity that is rejected, 0 if none is."""
    if not trial.evidence:
        raise NotApplicable(trial.reason)

    def rejected(value: float) -> bool:
        return trial.p_value(replace(claim, value=value).in_game(game)) < LEVEL

    if not rejected(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while rejected(high):  # ends: no finite evidence rejects an infinite value
        low, high = high, 2 * high
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


def _success(claim: Claim, game: Game, trial: Trial) -> float:
    """Lower limit of eta: success against the most exposed record above the better prior guess."""
    if not trial.success:
        raise NotApplicable(trial.reason)
    return max(0.0, max(trial.success.values()) - max(game.prior, 1 - game.prior))


def _operating_point(claim: Claim, game: Game, findings: Sequence[Finding]) -> tuple[str, dict[str, float]]:
    """The measured TPR that lies farthest above the ceiling, or nearest below it."""
    ceiling = claim.ceiling(game)
    rates = [each for each in findings if each.quantity == "tpr" and each.value is not None]
    if not rates:
        return "", {}
    best = max(rates, key=lambda each: (each.low or 0.0) - float(ceiling.tpr(each.at["fpr"])))
    return best.attack, {
        "fpr": best.at["fpr"],
        "tpr": best.value or 0.0,
        "low": best.low or 0.0,
        "high": best.high or 0.0,
        "ceiling": float(ceiling.tpr(best.at["fpr"])),
        "false_alarms": best.detail["false_alarms"],
    }
