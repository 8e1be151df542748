"""Probability of membership given a model and a record, and what limits it.

The game (sablayrolles2019): each record is a member with probability ``prior``, independently; the model
theta comes with probability proportional to exp(-sum of the members' losses / temperature).
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Num
from scipy.special import expit, logsumexp

from leakbound.core.checks import count, non_negative, positive, probability

Array = np.ndarray


def membership_posterior(
    log_in: Float[Array, "S ..."], log_out: Float[Array, "S ..."], prior: float = 0.5
) -> Float[Array, "*shape"] | float:
    """Probability that a record is a member, given the model: by Bayes over what else may be in the data.

    ``prior sum_s a_s / (prior sum_s a_s + (1 - prior) sum_s b_s)`` over sets s of other members drawn from
    their prior, with the LIKELIHOODS a_s = p(theta | record and s) and b_s = p(theta | s alone). A mean over s
    of sigmoid(ln(a_s/b_s) + logit(prior)), as printed, is right only for sets drawn from their posterior given
    theta; it is another number for sets from the prior.

    Parameters
    ----------
    log_in, log_out : arrays of shape (S, ...)
        ln a_s and ln b_s, in nats; -inf for an impossible model. One common constant may be left out (of a
        density, say). For sets of unequal probability add its logarithm to both.
    prior : float
        Probability of a member, in (0, 1).

    Returns
    -------
    array of shape (...), or float
        A float where the arrays have one axis.

    Raises
    ------
    ValueError
        If the shapes differ, there is no set, a value is NaN or +inf, or no set makes the model possible.

    References
    ----------
    sablayrolles2019, theorem 1 (eq. 5-10), with the expectation over prior-drawn sets.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.posterior import membership_posterior
    >>> round(float(membership_posterior(np.log([0.9, 0.1]), np.log([0.5, 0.1]))), 6)  # 1/(1 + .6)
    0.625
    """
    if log_in.shape != log_out.shape or log_in.ndim == 0 or len(log_in) == 0:
        raise ValueError(
            f"log_in has shape {log_in.shape}, log_out {log_out.shape}; both must be (S, ...), S >= 1 reference sets"
        )
    for name, values in (("log_in", log_in), ("log_out", log_out)):
        if not (values < math.inf).all():
            raise ValueError(f"{name} must be finite or -inf, got NaN or +inf")
    log_prior = _log_odds(prior)
    inside, outside = (np.asarray(logsumexp(log_likelihood, axis=0)) for log_likelihood in (log_in, log_out))
    if np.isneginf(np.maximum(inside, outside)).any():
        raise ValueError("each model needs a set with likelihood > 0; log_in and log_out are -inf in all of them")
    return expit(inside - outside + log_prior)


def posterior_bound(epsilon: float, delta: float = 0.0, temperature: float = 1.0, prior: float = 0.5) -> float:
    """Probability of membership that no model shows a record to exceed.

    ``delta + (1 - delta) sigmoid(epsilon/temperature + logit(prior))``. With delta = 0 and temperature = 1
    it is the ceiling of epsilon-DP under adding or removing a record, attained where the likelihood ratio is
    e^epsilon; ``prior + epsilon/4`` as printed is looser. Otherwise it is the ceiling of (epsilon,
    delta)-membership privacy: with probability 1 - delta over the other members, given the model and the
    record, the record's loss is at most epsilon below its mean over models trained without it (Jensen's
    inequality makes that at most epsilon/temperature of log-likelihood ratio). It is no ceiling for
    (epsilon, delta)-DP, under which a single model may show a member for certain.

    Parameters
    ----------
    epsilon : float
        >= 0, infinity allowed; nats for DP, the unit of the loss for membership privacy.
    delta : float
        In [0, 1].
    temperature : float
        > 0, in the unit of the loss.
    prior : float
        Probability of a member, in (0, 1).

    Returns
    -------
    float
        An upper bound.

    References
    ----------
    sablayrolles2019, properties 1 and 2, before the last step of their proofs.

    Examples
    --------
    >>> from leakbound.bounds.posterior import posterior_bound
    >>> round(posterior_bound(1.0, prior=0.1), 10)
    0.2319693167
    """
    epsilon, delta = non_negative("epsilon", epsilon, infinite=True), probability("delta", delta)
    likely = float(expit(epsilon / positive("temperature", temperature) + _log_odds(prior)))
    return delta + (1 - delta) * likely


def gaussian_mean_tau(
    z: Num[Array, "*shape d"], mean: Num[Array, " d"], temperature: float, n: int
) -> Float[Array, "*shape"] | float:
    """Compute the threshold of MAST for a Gaussian mean: the soft minimum of the losses of models without the record.

    With loss ``|z - theta|^2/2`` and models theta ~ N(mean, (temperature/n) I), as the mean of n members is,

        ``tau = -T ln E exp(-loss/T) = n |z - mean|^2/(2 (n + 1)) + (T d/2) ln(1 + 1/n)``,

    T the temperature; the last term is missing in print, and without it the scores (tau - loss)/T are all too
    small by d ln(1 + 1/n)/2.

    Parameters
    ----------
    z : array of shape (..., d)
        Records.
    mean : array of shape (d,)
        Mean of the population.
    temperature : float
        > 0; the variance of a coordinate of a record, if theta is the plain mean of n members.
    n : int
        Members of the reference models.

    Returns
    -------
    array of shape (...), or float
        In the unit of the loss; a record with a loss below it is a member at even prior odds.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    References
    ----------
    sablayrolles2019, eq. 33-35 and appendix A.2.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.posterior import gaussian_mean_tau
    >>> round(float(gaussian_mean_tau(np.ones(2), np.zeros(2), temperature=1.0, n=1)), 6)  # 1/2 + ln 2
    1.193147
    """
    n, temperature = count("n", n), positive("temperature", temperature)
    if mean.ndim != 1 or z.ndim == 0 or z.shape[-1] != len(mean):
        raise ValueError(f"z has shape {z.shape}, mean has {mean.shape}; they must be (..., d) and (d,)")
    squared = ((np.asarray(z, dtype=float) - mean) ** 2).sum(axis=-1)
    return n * squared / (2 * (n + 1)) + temperature * len(mean) * math.log1p(1 / n) / 2


def _log_odds(prior: float) -> float:
    prior = probability("prior", prior, open_ends=True)
    return math.log(prior) - math.log1p(-prior)
