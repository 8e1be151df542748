"""What synthetic files reveal of the records that a generator learned: ``python -m benchmarks.synthetic``.

Three generators, of which the truth is known or was measured by other code:

* ``bootstrap`` draws m of its n rows. A member is published with probability ``1 - (1 - 1/n)^m``, another record never,
  so that the attack ``matches`` has this true positive rate at a false positive rate of 0, and the area (1 + TPR) / 2.
* ``gaussian`` fits the mean of n records of N(0, I) in d dimensions and draws m rows of N(mean, I). The mean of the m
  rows is sufficient: N(x/n, ((n - 1)/n^2 + 1/m) I) with the record x, N(0, (1/n + 1/m) I) without it, in which another
  record takes its place. To first order these have one covariance and the distance D of their means, so that no attack
  exceeds the area ``Phi(D / sqrt 2)``, ``D^2 = |x|^2 / n^2 / (1/n + 1/m)``, the leakage score m* of
  `leakbound.bounds.noisy_score` in a mean with noise of standard deviation sqrt(1/m).
* ``cart`` draws the columns one after another, each from the leaf of a decision tree of the columns before it
  (sequential CART, as in the R package synthpop).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import leakbound as ls
from leakbound.bounds import noisy_score
from leakbound.core.findings import Finding
from leakbound.metrics.holdout import Counted, excess
from leakbound.releases.generators.distances import Encoding
from leakbound.releases.generators.scores import scores

Array = np.ndarray
Sample = Callable[[int, int], Any]
N_RECORDS, DIMENSION, N_ROWS = 100, 50, 100  # of the Gaussian generator
N_TARGETS = 10  # a tenth of the records of a data set
LEFT_OUT = ["split", "education-num", "income"]  # of adult; 13 columns are left


def bootstrap(X: Array, seed: int) -> Sample:
    """Learn the rows and publish some of them again."""
    return lambda n, seed: X[np.random.default_rng(seed).integers(len(X), size=n)]


def gaussian(X: Array, seed: int) -> Sample:
    """Learn the mean; the covariance is known."""
    mean = X.mean(axis=0)
    return lambda n, seed: mean + np.random.default_rng(seed).normal(size=(n, len(mean)))


def cart(X: pd.DataFrame, seed: int, min_leaf: int = 5) -> Sample:
    """Fit a tree of each column to the columns before it, and keep which rows are in each leaf."""
    columns, levels = [], []
    for name in X.columns:
        is_number = pd.api.types.is_numeric_dtype(X[name])
        code, values = (X[name].to_numpy(), None) if is_number else pd.factorize(X[name], sort=True)
        columns.append(code.astype(float))
        levels.append(values)
    table = np.column_stack(columns)
    trees, leaves = [], []
    for column in range(1, table.shape[1]):
        kind = DecisionTreeRegressor if levels[column] is None else DecisionTreeClassifier
        tree = kind(min_samples_leaf=min_leaf, random_state=seed).fit(table[:, :column], table[:, column])
        trees.append(tree)
        leaves.append(tree.apply(table[:, :column]))

    def sample(n: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        drawn = np.empty((n, table.shape[1]))
        drawn[:, 0] = rng.choice(table[:, 0], n)
        for column, (tree, leaf) in enumerate(zip(trees, leaves, strict=True), start=1):
            reached = tree.apply(drawn[:, :column])
            for number in np.unique(reached):
                rows = np.flatnonzero(reached == number)
                drawn[rows, column] = rng.choice(table[leaf == number, column], len(rows))
        return pd.DataFrame(
            {
                name: drawn[:, column] if known is None else np.asarray(known)[drawn[:, column].astype(int)]
                for column, (name, known) in enumerate(zip(X.columns, levels, strict=True))
            }
        )

    return sample


def adult(n: int, seed: int) -> pd.DataFrame:
    """Draw records of the census file."""
    frame = pd.read_parquet(Path(os.environ["LEAKBOUND_DATA"]) / "adult.parquet").drop(columns=LEFT_OUT)
    return frame.sample(n, random_state=seed).reset_index(drop=True)


def areas(report: ls.Report) -> dict[str, Finding]:
    """Return the finding of the area under the curve of each attack."""
    found = [finding for finding in report.findings if finding.quantity == "auc" and finding.value is not None]
    return {finding.attack: finding for finding in found}


def bootstrap_matches(n: int = 600, n_models: int = 32, seed: int = 0) -> tuple[Finding, Finding, float]:
    """Return TPR and area of ``matches``, and the fraction of members that is published.

    The TPR is at an FPR of 1 %; no other record is published, so that it is that at 0.
    """
    records = np.random.default_rng(seed).normal(size=(2 * n, 2))
    report = ls.audit(bootstrap, records, n_models=n_models, attacks=["matches"], fpr=0.01, seed=seed, n_jobs=1)
    (tpr,) = [finding for finding in report.findings if finding.quantity == "tpr"]
    return tpr, areas(report)["matches"], 1 - (1 - 1 / n) ** n


def exact_area(n_games: int = 40_000, seed: int = 0) -> float:
    """Play games against the Gaussian generator with the exact likelihood ratio, others new in each.

    The mean of the rows of S tells all: N(x/n, v_in I) with the record x, N(0, v_out I) without it.
    """
    rng = np.random.default_rng(seed)
    n, m = N_RECORDS, N_ROWS
    v_in, v_out = (n - 1) / n**2 + 1 / m, 1 / n + 1 / m
    x = rng.normal(size=(n_games, DIMENSION))
    ratios = []
    for is_in in (True, False):
        n_others = n - is_in
        mean_of_records = rng.normal(size=x.shape) * np.sqrt(n_others) / n + is_in * x / n
        mean = mean_of_records + rng.normal(size=x.shape) / np.sqrt(m)
        log_in = -((mean - x / n) ** 2).sum(axis=1) / (2 * v_in) - DIMENSION / 2 * np.log(v_in)
        log_out = -(mean**2).sum(axis=1) / (2 * v_out) - DIMENSION / 2 * np.log(v_out)
        ratios.append(log_in - log_out)
    inside, outside = ratios
    return float(np.searchsorted(np.sort(outside), inside).mean() / n_games)


def area_limit() -> float:
    """Compute the area that no attacker with fresh others exceeds, at a record of average length."""
    record = np.ones(DIMENSION)  # |x|^2 = d
    noise = 1 / np.sqrt(N_ROWS)  # a standard deviation, in each column of the mean
    score = noisy_score(record, 0 * record, np.eye(DIMENSION), N_RECORDS, gamma=np.sqrt(N_RECORDS) * noise)
    return float(ndtr(np.sqrt(score / 2)))


def pool_limit() -> float:
    """Compute the same in a half split of 2 n records that the attacker knows: 1/n becomes (1 - 1/2)/n."""
    d_squared = DIMENSION / N_RECORDS**2 / (0.5 / N_RECORDS + 1 / N_ROWS)
    return float(ndtr(np.sqrt(d_squared / 2)))


def gaussian_attacks(fresh: bool, n_models: int = 64, n_others: int = 2000, seed: int = 0) -> dict[str, Finding]:
    """Attack the Gaussian generator with every attack: in a half split, or with others that are new for each model."""
    rng = np.random.default_rng(seed)
    reference = rng.normal(size=(1000, DIMENSION))
    generator = ls.Generator(gaussian, rows=N_ROWS, reference=reference)
    game = ls.Fresh(targets=N_TARGETS, size=N_RECORDS) if fresh else ls.HalfSplit()
    records = rng.normal(size=(N_TARGETS + n_others if fresh else 2 * N_RECORDS, DIMENSION))
    return areas(ls.audit(generator, records, game=game, n_models=n_models, seed=seed, n_jobs=1))


def cart_attacks(min_leaf: int, n: int = 600, n_models: int = 32, seed: int = 0) -> dict[str, Finding]:
    """Attack sequential CART on the census file."""
    generator = partial(cart, min_leaf=min_leaf)
    report = ls.audit(generator, adult(n, seed), n_models=n_models, seed=seed, n_jobs=1)
    return areas(report)


def false_accusations(phantom: float, n_repeats: int = 400, n: int = 100, seed: int = 0) -> int:
    """Count how often members match more than controls, beyond chance, of a generator that learned neither.

    Its records are others of the same source, in which a fraction ``phantom`` of all people has a match by chance.
    """
    rng = np.random.default_rng(seed)
    n_levels = round(1 / (1 - (1 - phantom) ** (1 / n))) if phantom else 0
    n_found = 0
    for repeat in range(n_repeats):
        if n_levels:
            people = rng.integers(n_levels, size=(3 * n, 1)).astype(float)
        else:
            people = rng.normal(size=(3 * n, 2))
        candidates, hold_out = people[: 2 * n], people[2 * n :]
        encoding = Encoding.of(candidates)
        synthetic = encoding.encode(bootstrap(hold_out, repeat)(n, repeat) if not n_levels else hold_out)
        is_match = scores(encoding.encode(candidates), synthetic, ["matches"])["matches"] > 0
        interval = excess(Counted(int(is_match[:n].sum()), int(is_match[n:].sum()), n, n))
        n_found += interval.low is not None and (interval.low > 0 or interval.high < 0)
    return n_found


@dataclass(frozen=True)
class Row:
    """A line of what is printed."""

    what: str
    measured: str
    wanted: str


def rows() -> Iterator[Row]:
    """Yield each number beside what it must be."""
    tpr, area, published = bootstrap_matches()
    yield Row("bootstrap, TPR of matches at FPR 0", _shown(tpr), f"{published:.3f}")
    yield Row("bootstrap, area of matches", _shown(area), f"{(1 + published) / 2:.3f}")
    limit, pool = area_limit(), pool_limit()
    yield Row("Gaussian, exact ratio, fresh others", f"{exact_area():.3f}", f"{limit:.3f} +- .01")
    for name, finding in gaussian_attacks(fresh=True).items():
        yield Row(f"Gaussian, {name}, fresh others", _shown(finding), f"<= {limit:.3f}")
    for name, finding in gaussian_attacks(fresh=False).items():
        yield Row(f"Gaussian, {name}, half split", _shown(finding), f"<= {pool:.3f}")
    for min_leaf in (5, 40, 500):
        for name, finding in cart_attacks(min_leaf).items():
            wanted = {5: "mast, rmia > .61; nearest > .58", 40: "", 500: "<= .55"}[min_leaf]
            yield Row(f"CART, leaves of {min_leaf}, {name}", _shown(finding), wanted)
    for phantom in (0, 0.35, 0.75):
        n_found = false_accusations(phantom)
        yield Row(f"hold-out alone, {100 * phantom:g} % phantom matches", f"{n_found} of 400", "20, at most 33")


def _shown(finding: Finding) -> str:
    return f"{finding.value:.3f} ({finding.low:.3f} to {finding.high:.3f})"


def main() -> None:
    """Print the numbers as they are measured."""
    line = "{:52} {:>24}   {}".format
    print(line("what", "measured", "wanted"))
    for row in rows():
        print(line(row.what, row.measured, row.wanted), flush=True)


if __name__ == "__main__":
    main()
