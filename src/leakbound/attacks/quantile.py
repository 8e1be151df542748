"""Quantile regression on public scores: the log-odds of a point against those of unseen points that are as hard.

Axes: T targets, J target points, Z population, R references of a target.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from leakbound.attacks.blocks import empty_scores
from leakbound.attacks.queries import one_by_one
from leakbound.core.checks import count
from leakbound.core.types import NotApplicable, Signals

Array = np.ndarray
_RIDGE = 1e-3  # as a fraction of the sum of squares of a standardised column
_LOG_CHI = -1.2703628454614782  # E log of chi-squared with one degree of freedom: -gamma - log 2
_FEWEST = 6  # points to fit 3 coefficients to
_LEAST = 1e-3  # least scale, as a fraction of that of all residuals


def quantile(signals: Signals, *, references: int | None = None) -> Float[Array, "T J"]:
    """Compare the point's log-odds with those of unseen points that other models find equally hard.

    On points of the population the target's log-odds phi are regressed on m, the mean log-odds of the reference
    models: a Gaussian with mean a + b m + c m^2, and log-variance of the same form. The score of a point is
    ``(phi - mean(m))/scale(m)``, the normal quantile of phi under it, one threshold for all points.

    The population are the points that are in no model and are no target points; without any, the target points of the
    target, half of which are members. Then the scores of members are smaller, but keep their order at one m. Both
    regressions are least squares on standardised columns with a small ridge; the mean of the logarithm of a squared
    residual is that of the variance less 1.27. Beyond the range of the population, m is replaced by the nearest end.

    Source: Bertran, Tang, Roth, Kearns, Morgenstern & Wu (2023), the Gaussian form; they regress on the features of
    the point. The log-odds of a reference model are one feature, which measures how hard a point is.

    >>> from leakbound.core.types import Game
    >>> hard = np.linspace(-3, 3, 60)
    >>> member = np.zeros((2, 60), dtype=bool)
    >>> member[:, 5] = True
    >>> log_odds = np.stack([hard + np.resize([0.2, -0.2], 60) + 2 * member[0], hard])
    >>> target_points = np.arange(60) < 10
    >>> score = quantile(Signals(Game("one_model", member, target_points, 1), None, {"log_odds": log_odds}))
    >>> int(score.argmax()), bool((np.delete(score, 5) < 1.5).all())
    (5, True)
    """
    if references is not None:
        count("references", references)
    signals = _mean_over_queries(signals)
    # of several queries the mean log-odds; without log-odds -log(loss + 1e-12) takes their place
    game, phi = signals.game, signals.array("log_odds", "loss")
    if game.n_references < 1:
        raise NotApplicable("no_reference", n=0)
    scores = empty_scores(game, phi, phi.dtype)
    # with all references the mean of the others is the sum of all less the own
    use_all = references is None or references >= game.n_references
    total = np.zeros(phi.shape[1])
    if use_all:
        for row in range(0 if game.leave_one_out else game.n_targets, game.n_models):
            total += _log_odds(signals, phi[row])
    for target in range(game.n_targets):
        # the points of which the regression is made
        target_points = np.broadcast_to(game.target_points, (game.n_targets, game.n_target_points))[target]
        training_points = game.population if len(game.population) else target_points
        if len(training_points) < _FEWEST:
            n_points = len(training_points)
            raise NotApplicable("few_points", fewest=_FEWEST, n=n_points)
        # the mean log-odds of the reference models: how hard each point is
        if use_all:
            own = _log_odds(signals, phi[target]) if game.leave_one_out else 0.0
            mean_log_odds = (total - own) / game.n_references
        else:
            models = np.arange(game.n_models)
            others = np.delete(models, target) if game.leave_one_out else models[game.n_targets :]
            rows = others[:references]
            mean_log_odds = _log_odds(signals, phi[rows]).mean(axis=0)
        hardness, target_hardness = mean_log_odds[training_points], mean_log_odds[target_points]
        mean, scale = _regress(hardness, _log_odds(signals, phi[target, training_points]), target_hardness)
        scores[target] = (_log_odds(signals, phi[target, target_points]) - mean) / scale
    return scores


def _mean_over_queries(signals: Signals) -> Signals:
    """Take the mean log-odds over the queries; the signals themselves without several queries."""
    queries = one_by_one(signals, "log_odds", "loss")
    if len(queries) == 1:
        return queries[0]
    values = [_log_odds(query, query.array("log_odds", "loss")) for query in queries]
    mean = np.mean(values, axis=0).astype(queries[0].array("log_odds", "loss").dtype)
    return replace(signals, arrays={"log_odds": mean}, labels=None, checked=True)


def _log_odds(signals: Signals, values: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    values = values.astype(np.float64)
    return values if "log_odds" in signals.arrays else -np.log(values + 1e-12)


def _regress(
    x: Float[Array, " Z"], y: Float[Array, " Z"], x_new: Float[Array, " J"]
) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
    """Predict the mean and the scale of y at other values of x: quadratic mean, quadratic log-variance."""
    low, high, centre = x.min(), x.max(), x.mean()
    width = max(float(x.std()), 1e-12)

    def design(values: Float[Array, " n"]) -> Float[Array, "n 3"]:
        standardised = (np.clip(values, low, high) - centre) / width
        return np.column_stack([np.ones_like(standardised), standardised, standardised**2])

    columns, new_columns = design(x), design(x_new)
    normal_matrix = columns.T @ columns + np.diag([0.0, _RIDGE, _RIDGE]) * len(columns)
    mean = np.linalg.solve(normal_matrix, columns.T @ y)
    residual = y - columns @ mean
    overall_scale = max(float(np.sqrt(np.mean(residual**2))), 1e-12)
    # E log residual^2 = log variance + E log chi-squared: so the logarithm of the variance is regressed in its turn.
    log_squares = np.log(residual**2 + (_LEAST * overall_scale) ** 2)
    log_variance = np.linalg.solve(normal_matrix, columns.T @ (log_squares - _LOG_CHI))
    scale = np.exp(new_columns @ log_variance / 2)
    return new_columns @ mean, np.clip(scale, _LEAST * overall_scale, overall_scale / _LEAST)
