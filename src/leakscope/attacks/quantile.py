"""Quantile regression on public scores: how high should the log-odds of a point be that nobody trained on?

Axes: T targets, J judged points, Z population, R references of a target.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from leakscope.core.checks import count
from leakscope.core.types import Game, NotApplicable, Signals

Array = np.ndarray
_RIDGE = 1e-3  # of the sum of squares of a standardised column
_LOG_CHI = -1.2703628454614782  # E log of chi-squared with one degree of freedom: -gamma - log 2
_FEWEST = 6  # points for 3 coefficients
_LEAST = 1e-3  # least scale, as a share of that of all residuals


def quantile(signals: Signals, *, references: int = 1) -> Float[Array, "T J"]:
    """The place of the point's log-odds among those of unseen points that other models find equally hard.

    On points of the population the target's log-odds phi are regressed on m, the mean log-odds of a few reference
    models: a Gaussian with mean a + b m + c m^2, and log-variance of the same form. The score of a point is
    ``(phi - mean(m))/scale(m)``, the normal quantile of phi under it, one threshold for all points.

    Parameters
    ----------
    signals : Signals
        With ``log_odds`` or ``loss``, then -log(loss + 1e-12) stands for the log-odds.
    references : int
        How many of the reference models are asked, the first that are not the target; all if there are fewer.

    Returns
    -------
    array of shape (T, J)
        In standard deviations; of non-members about N(0, 1) at every m.

    Raises
    ------
    NotApplicable
        If the signal is missing, there is no reference model, or fewer than 6 points to learn from.
    ValueError
        If references < 1.

    Notes
    -----
    The population are the points that are in no model and not judged; without any, the points that the target
    judges, half of which are members. Then the scores of members are smaller, not their order at one m. Both
    regressions are least squares on standardised columns with a small ridge; the mean of the logarithm of a squared
    residual is that of the variance less 1.27. Beyond the range of the population m counts as its end.

    References
    ----------
    Bertran, Tang, Roth, Kearns, Morgenstern & Wu (2023), the Gaussian form; they regress on the features of the point.
    The log-odds of a reference model are one feature that says nearly all of how hard a point is.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Game, Signals
    >>> hard = np.linspace(-3, 3, 60)
    >>> member = np.zeros((2, 60), dtype=bool)
    >>> member[:, 5] = True
    >>> log_odds = np.stack([hard + np.resize([0.2, -0.2], 60) + 2 * member[0], hard])
    >>> judged = np.arange(60) < 10
    >>> score = quantile(Signals(Game("one_model", member, judged, 1), None, {"log_odds": log_odds}))
    >>> int(score.argmax()), bool((np.delete(score, 5) < 1.5).all())
    (5, True)
    """
    references = count("references", references)
    game, phi = signals.game, signals.array("log_odds", "loss")
    if game.n_references < 1:
        raise NotApplicable("needs at least 1 reference model, and there are 0")
    out = np.empty((game.n_judged, game.n_targets), dtype=phi.dtype).T
    for target in range(game.n_targets):
        judged = np.broadcast_to(game.columns, (game.n_targets, game.n_judged))[target]
        learned = game.population if len(game.population) else judged
        if len(learned) < _FEWEST:
            raise NotApplicable(f"needs at least {_FEWEST} points to learn from, and there are {len(learned)}")
        others = _references(game, target)[:references]
        at, known = (_log_odds(signals, phi[others][:, each]).mean(axis=0) for each in (judged, learned))
        mean, scale = _regressed(known, _log_odds(signals, phi[target, learned]), at)
        out[target] = (_log_odds(signals, phi[target, judged]) - mean) / scale
    return out


def _references(game: Game, target: int) -> Int[Array, " R"]:
    rows = np.arange(game.n_models)
    return np.delete(rows, target) if game.leave_one_out else rows[game.n_targets :]


def _log_odds(signals: Signals, values: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    values = values.astype(np.float64)
    return values if "log_odds" in signals.arrays else -np.log(values + 1e-12)


def _regressed(
    known: Float[Array, " Z"], answer: Float[Array, " Z"], at: Float[Array, " J"]
) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
    """Mean and scale of the answer at other places."""
    low, high, centre = known.min(), known.max(), known.mean()
    width = max(float(known.std()), 1e-12)

    def design(m: Float[Array, " n"]) -> Float[Array, "n 3"]:
        standard = (np.clip(m, low, high) - centre) / width
        return np.column_stack([np.ones_like(standard), standard, standard**2])

    x = design(known)
    normal = x.T @ x + np.diag([0.0, _RIDGE, _RIDGE]) * len(x)
    mean = np.linalg.solve(normal, x.T @ answer)
    rest = answer - x @ mean
    everywhere = max(float(np.sqrt(np.mean(rest**2))), 1e-12)
    squares = np.log(rest**2 + (_LEAST * everywhere) ** 2)
    log_variance = np.linalg.solve(normal, x.T @ (squares - _LOG_CHI))
    wanted = design(at)
    scale = np.exp(wanted @ log_variance / 2)
    return wanted @ mean, np.clip(scale, _LEAST * everywhere, everywhere / _LEAST)
