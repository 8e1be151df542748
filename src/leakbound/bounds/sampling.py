"""How the data D of a release is drawn from n records, for the bounds that are exact."""

from __future__ import annotations

from typing import Literal

from leakbound.core.checks import count, one_of, probability

Sampling = Literal["fixed", "poisson"]


def inclusion(n: int, k: int | None, sampling: str, prior: float | None) -> tuple[int, float]:
    """Size of D (0 where it is random) and the probability that a given record is in it.

    >>> inclusion(9, None, "fixed", None)
    (4, 0.4444444444444444)
    """
    if one_of("sampling", sampling, ("fixed", "poisson")) == "poisson":
        if k is not None:
            raise ValueError(f"k = {k} belongs to sampling='fixed'; sampling='poisson' takes a prior")
        return 0, 0.5 if prior is None else probability("prior", prior, open_ends=True)
    if prior is not None:
        raise ValueError(f"prior = {prior} belongs to sampling='poisson'; sampling='fixed' takes k")
    n = count("number of records", n, least=2)
    k = n // 2 if k is None else count("k", k)
    if k >= n:
        raise ValueError(f"k must be < the {n:,} records, got {k:,}")
    return k, k / n
