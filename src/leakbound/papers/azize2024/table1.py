"""Table 1: the leakage score of each setting, and what an attacker gets.

A leakage score m stands for a likelihood ratio that is N(-m/2, m) without the target and N(m/2, m) with it (Theorem
3.1): its means are m apart, and its best threshold has the advantage 2 Phi(sqrt(m)/2) - 1. Both are measured here for
the rows of the table,

    empirical mean   |z* - mu|^2/n                          similar point   (z_targ - mu)(z* - mu)/n
    Gaussian noise   that times sigma^2/(sigma^2 + gamma^2)  sub-sampling    rho |z* - mu|^2/n

in the geometry of the covariance; the row of the noise is read column by column, as eq. 12. After sub-sampling the
means of the printed ratio (eq. 15, a sum over columns) are as printed, but with the target it is a mixture of two
distributions (erratum 9). And the score of a similar point is the separation of the means but not the variance: by
Theorem 4.5 its advantage is that of m_scal^2/m_targ.

Remarks 3.3, 4.2 and 4.4 and the comparison with GLiR (Appendix D) are tested on the same games. GLiR measures the
squared Mahalanobis distance of the release from the target; Appendix D writes its distance from the mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtri

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.azize2024.mean_game import (
    TARGETS,
    Games,
    Sizes,
    World,
    compared,
    moments,
    ratio,
    relative_variance,
    separation,
)
from leakbound.papers.lab import Lab, Outcome, mean_of, trials_of
from leakbound.papers.printed import Ours, all_above

Array = np.ndarray
NOISES, FRACTIONS = (0.1, 0.5, 1.0), (0.1, 0.5)
SIMILAR = ("easy", "hard")
ANGLE = 60  # of a similar point, in degrees
NOISE_EPSILON, SUBSAMPLING_EPSILON = 1.0, 3.0  # of the claims on delta
EPSILONS = np.linspace(0, 4, 17)
AVERAGED = 50  # targets of the game with a new target in each round
BLOCK = 1000  # rounds that are played together where all columns are needed
A = 0.30  # p is uniform on [a, 1 - a]


@dataclass(frozen=True, eq=False)
class Row:
    """A setting as it was played."""

    key: str
    label: str
    printed: float
    values: Array
    called: Array
    member: Array
    right: float

    @classmethod
    def of_scores(cls, key: str, label: str, m: float, scores: ls.Scores) -> Row:
        """Make the row of a log-likelihood ratio with its best threshold, 0."""
        values, member = scores.value[:, 0].astype(float), scores.member[:, 0]
        return cls(key, label, m, values, values > 0, member, ls.bounds.leakage_tradeoff(m).advantage())

    @property
    def separation(self) -> Ours:
        """Mean with the target less the mean without it, in units of the printed score."""
        apart = separation(self.values, self.member)
        return Ours(float(apart.value) / self.printed, apart.error / abs(self.printed), detail=apart.detail)

    @property
    def advantage(self) -> Ours:
        """TPR - FPR at the best threshold."""
        return separation(self.called, self.member)

    @property
    def claims(self) -> dict[str, Ours]:
        """The two numbers of every row."""
        limit = ls.bounds.leakage_tradeoff(self.printed).advantage()
        return {f"{self.key}_separation": self.separation, f"{self.key}_advantage": compared(self.advantage, limit)}

    def numbers(self) -> Iterator[dict[str, Any]]:
        """Yield what the figure shows of it: scores in units of the printed one."""
        variances = {side: self.values[self.member == (side == "in")].var(ddof=1) for side in ("out", "in")}
        measured = {"separation": self.separation.value}
        measured |= {f"variance {side}": variance / self.printed for side, variance in variances.items()}
        measured["advantage"] = score_of(float(self.advantage.value)) / self.printed
        for measure, value in measured.items():
            yield {"panel": "rows", "line": self.label, "kind": measure, "x": float(value), "printed": self.printed}
        right = score_of(self.right) / self.printed
        yield {"panel": "rows", "line": self.label, "kind": "ours", "x": right, "printed": self.printed}


def measure(lab: Lab) -> Outcome:
    """Run at the paper's n and d."""
    return measured(lab, Sizes(rounds=lab.size(full=100_000, quick=1200), draws=lab.size(full=1000, quick=200)))


def measured(lab: Lab, sizes: Sizes) -> Outcome:
    """Play every row of the table, the game of Remark 3.3 and GLiR."""
    world_seed = ls.seeds.integer(lab.seed, "table1", "world")
    world = drawn_world(sizes.n, sizes.d, world_seed)
    games = Games(lab, world, sizes.rounds, name="table1")
    mean, similar = mean_rows(games)
    noisy = noisy_rows(games)
    # Only in a fraction rho of the rounds with the target it is averaged.
    subsampled = {}
    for rho in FRACTIONS:
        rounds = played_columns(lab, replace(sizes, rounds=round(sizes.rounds / rho)), world_seed, rho)
        subsampled[rho] = subsampled_row(world, rounds, rho)
    rounds_of_glir = played_columns(lab, replace(sizes, rounds=sizes.rounds // 5), world_seed, 1.0)
    table = (*mean.values(), *noisy.values(), *subsampled.values(), *similar)

    ours: dict[str, Ours] = {}
    for row in table:
        ours |= row.claims
    of_average, scores = averages(lab, sizes, world)
    ours |= of_average
    ours |= noise_claims(mean["easy"], noisy)
    ours |= subsampling_claims(mean["easy"], subsampled)
    ours |= glir_claims(world, rounds_of_glir)
    rows = [
        *(number for row in table for number in row.numbers()),
        *densities(subsampled[0.5], 0.5),
        *deltas(noisy[0.5], subsampled),
    ]
    run = (
        f"{sizes.rounds:,} rounds of each game, 1/rho times as many of the sub-sampled ones, a fifth for GLiR; "
        f"{sizes.draws:,} draws of a target for its average score; n = {sizes.n:,}, d = {sizes.d:,}, a = .30."
    )
    return Outcome(pd.DataFrame(rows), ours, run, trials=pd.DataFrame(trials_of(scores, quantity="average score")))


def drawn_world(n: int, d: int, seed: int) -> World:
    """Draw the distribution of the data and the three targets."""
    return World.drawn(A, "coins", Sizes(n, d), ls.seeds.stream(seed, "world"))


def score_of(advantage: float) -> float:
    """Leakage score with this advantage, by Corollary 3.2."""
    return float(4 * ndtri((1 + advantage) / 2) ** 2)


def mean_rows(games: Games) -> tuple[dict[str, Row], list[Row]]:
    """Play for the three targets without a defence: rows of attackers who test for them, and for similar points."""
    world, right, similar = games.world, {}, []
    for target in TARGETS:
        records = [world.targets[target]]
        if target in SIMILAR:
            records.append(world.record_at(ANGLE, target, games.lab.stream("table1", "similar", target)))
        scores = games.play_tested(target, records)
        right[target] = Row.of_scores(f"mean_{target}", f"mean, {target}", world.score(target), scores[0])
        similar += [similar_row(world, target, *pair) for pair in zip(records[1:], scores[1:], strict=True)]
    return right, similar


def similar_row(world: World, target: str, record: Array, scores: ls.Scores) -> Row:
    """Make the row of an attacker who tests for another record than the target."""
    z, values, member = world.targets[target], scores.value[:, 0].astype(float), scores.member[:, 0]
    best = ls.bounds.wrong_target(record, z, world.p, world.variance, world.n)
    called = best.sign * (values - best.threshold) > 0
    right = ls.bounds.leakage_tradeoff(best.score).advantage()
    return Row(f"similar_{target}", f"similar, {target}", world.product(record, z), values, called, member, right)


def noisy_rows(games: Games) -> dict[float, Row]:
    """Play for the easy target with noise on the mean."""
    rows = {}
    for gamma in NOISES:
        m, scores = games.world.score("easy", gamma), ratio(games.play("easy", gamma=gamma))
        rows[gamma] = Row.of_scores(f"noise_{gamma}", rf"noise, $\gamma$ = {gamma:g}", m, scores)
    return rows


def subsampled_row(world: World, rounds: Mapping[str, Array], rho: float) -> Row:
    """Make the row of eq. 15; its best threshold is that of the ratio of the mixture, of which it is a function.

    In the limit eq. 15 is ``rho l + (1 - rho) m/2`` with l the ratio for a mean of rho n records with the target. The
    ratio of the mixture, ``log(1 - rho + rho e^l)``, is 0 where l is.
    """
    m = world.score("easy")
    values, member = rounds["by_column"], rounds["member"].astype(bool)
    called = values > (1 - rho) * m / 2
    right = ls.bounds.leakage_tradeoff(m, rho).advantage()
    return Row(f"subsampled_{rho}", rf"sub-sampled, $\rho$ = {rho:g}", rho * m, values, called, member, right)


def played_columns(lab: Lab, sizes: Sizes, world_seed: int, rho: float) -> dict[str, Array]:
    """Play for the easy target where every column of the release is needed."""
    n_blocks = -(-sizes.rounds // BLOCK)
    lengths = [min(BLOCK, sizes.rounds - BLOCK * block) for block in range(n_blocks)]
    seeds = [ls.seeds.integer(lab.seed, "table1", "columns", str(rho), block) for block in range(n_blocks)]
    arguments = [(sizes.n, sizes.d, world_seed, rho, length, seed) for length, seed in zip(lengths, seeds, strict=True)]
    results = lab.repeat(column_rounds, arguments, f"blocks of rounds, rho = {rho:g}")
    return {name: np.concatenate([result[name] for result in results]) for name in results[0]}


def column_rounds(n: int, d: int, world_seed: int, rho: float, n_rounds: int, seed: int) -> dict[str, Array]:
    """Play rounds for the easy target, and sum over the columns of the release (azize2024, equations 15 and 76)."""
    world, rng = drawn_world(n, d, world_seed), ls.seeds.stream(seed, "rounds")
    distribution, k = ls.releases.Bernoulli(world.p), round(rho * n)
    deviation = world.targets["easy"] - world.p
    weight = deviation / world.variance
    square = float(deviation @ weight)
    member, averaged = rng.random(n_rounds) < 0.5, rng.random(n_rounds) < k / n
    results = {name: np.empty(n_rounds) for name in ("by_column", "linear", "from_mean", "from_target")}
    for number in range(n_rounds):
        included = bool(member[number] and averaged[number])
        mean = (included * deviation + distribution.deviation(k - included, rng)) / k  # less that of the distribution
        product = float(weight @ mean)
        from_mean = float((mean**2 / world.variance).sum())
        # eq. 15, exact for bits: the ratio in a column is 1 + (z - p)(mean - p)/variance if the target is averaged
        results["by_column"][number] = np.log1p(rho * weight * mean).sum()
        # the ratio of eq. 10; then k times the squared Mahalanobis distances of the release from mean and target
        results["linear"][number] = product - square / (2 * k)
        results["from_mean"][number] = k * from_mean
        results["from_target"][number] = k * (from_mean - 2 * product + square)
    return {"member": member, **results}


def averages(lab: Lab, sizes: Sizes, world: World) -> tuple[dict[str, Ours], Array]:
    """Remark 3.3: the score of a random target on average, and the game with a new target in each round."""
    rng = lab.stream("table1", "average score")
    drawn = 1.0 * (rng.random((sizes.draws, sizes.d)) < world.p)
    scores = np.asarray(ls.bounds.leakage_score(drawn, world.p, world.variance, sizes.n))
    ours = {"average_score": mean_of(scores, detail=f"{sizes.draws} targets")}

    seed = ls.seeds.integer(lab.seed, "table1", "average game")
    candidates = 1.0 * (rng.random((AVERAGED, sizes.d)) < world.p)
    release = ls.releases.FreshMean(ls.releases.Bernoulli(world.p), sizes.n, name="the mean, a random target")
    game = ls.games.average_datum(AVERAGED, sizes.rounds, seed=seed, others="fresh")
    points = ls.Points(candidates, digest=hashlib.sha256(candidates.tobytes()).hexdigest())
    signals = ls.signals_of(release, points, game, ["step_dot", "step_norm"], seed=seed, **lab.execution)
    of_game = moments(ratio(signals), sizes.d / sizes.n)
    return ours | {f"average_{name}": of_game[name] for name in ("out_mean", "in_mean", "variance")}, scores


def noise_claims(plain: Row, noisy: Mapping[float, Row]) -> dict[str, Ours]:
    """Remark 4.2: less leaks, and Gaussian differential privacy with respect to the target."""
    less = [
        difference(separation(plain.values, plain.member), separation(row.values, row.member)) for row in noisy.values()
    ]
    ours = {"noise_leaks_less": Ours.stated(all_above(less), detail=f"gamma of {', '.join(map(str, noisy))}")}
    for gamma, row in noisy.items():
        reached = delta(row.values > NOISE_EPSILON, row.member, NOISE_EPSILON)
        printed = ls.bounds.leakage_tradeoff(row.printed).delta(NOISE_EPSILON)
        ours[f"noise_{gamma}_dp"] = described(compared(reached, float(printed)), reached, float(printed))
    return ours


def subsampling_claims(plain: Row, subsampled: Mapping[float, Row]) -> dict[str, Ours]:
    """Theorem 4.3 and Remark 4.4: variances, less that leaks, and Gaussian differential privacy."""
    less = [difference(plain.advantage, row.advantage) for row in subsampled.values()]
    ours = {"subsampling_leaks_less": Ours.stated(all_above(less), detail=f"rho of {', '.join(map(str, subsampled))}")}
    for rho, row in subsampled.items():
        ours[f"subsampled_{rho}_variance_out"] = relative_variance(row.values[~row.member], row.printed)
        ours[f"subsampled_{rho}_variance_in"] = relative_variance(row.values[row.member], row.printed)
        called = row.values > threshold_of(row, rho, SUBSAMPLING_EPSILON)
        reached = delta(called, row.member, SUBSAMPLING_EPSILON)
        printed = float(ls.bounds.leakage_tradeoff(row.printed).delta(SUBSAMPLING_EPSILON))
        ours[f"subsampled_{rho}_dp"] = described(compared(reached, printed), reached, printed)
    return ours


def threshold_of(row: Row, rho: float, epsilon: float) -> float:
    """Value of eq. 15 where the log ratio of the mixture is epsilon."""
    present = np.log((np.exp(epsilon) - 1 + rho) / rho)
    return float(rho * present + (1 - rho) * row.printed / (2 * rho))


def delta(called: Array, member: Array, epsilon: float) -> Ours:
    """TPR - e^epsilon FPR: no (epsilon, delta) with a smaller delta holds."""
    return separation(np.where(member, 1.0, np.exp(epsilon)) * called, member)


def difference(one: Ours, other: Ours) -> Ours:
    """Difference of two independent results."""
    return Ours(float(one.value) - float(other.value), float(np.hypot(one.error, other.error)))


def described(ours: Ours, reached: Ours, printed: float) -> Ours:
    """Say which two values a difference is of."""
    return Ours(ours.value, ours.error, detail=f"{reached.value:.4f} and {printed:.4f}")


def glir_claims(world: World, rounds: Mapping[str, Array]) -> dict[str, Ours]:
    """Compare eq. 10 with GLiR's statistics, in the same rounds.

    The squared distance from the mean of the distribution is close to normal, with the same variance in both cases; its
    best threshold is halfway between its means, d and d (1 - 1/n) + m.
    """
    n, d, m = world.n, len(world.p), world.score("easy")
    member = rounds["member"].astype(bool)
    by_eq10 = rounds["linear"] > 0
    halfway = d + (m - d / n) / 2
    called = {"target": normal_ratio(world, rounds["from_target"]) > 0, "mean": rounds["from_mean"] > halfway}
    ours = {}
    for statistic, by_glir in called.items():
        apart, theirs = separation(by_eq10 * 1.0 - by_glir, member), separation(by_glir, member)
        detail = f"{separation(by_eq10, member).value:.3f} and {theirs.value:.3f}, {len(member):,} rounds"
        ours[f"glir_{statistic}"] = Ours(apart.value, apart.error, detail=detail)
    return ours


def normal_ratio(world: World, from_target: Array) -> Array:
    """Log-likelihood ratio for the easy target if the mean was exactly normal (eq. 110 and 111).

    The covariance is C/n without the target and (n - 1) C/n^2 with it, so that all terms but constants add up to the
    squared distance from the target: this is the ratio behind GLiR.
    """
    n, d, m = world.n, len(world.p), world.score("easy")
    return d / 2 * np.log(n / (n - 1)) + n * m / 2 - from_target / (2 * (n - 1))


def densities(row: Row, rho: float) -> Iterator[dict[str, Any]]:
    """(b): eq. 15 with the target and without it, as measured, as printed and as a mixture."""
    m = row.printed / rho
    cells = np.linspace(row.values.min(), row.values.max(), 61)
    middle = (cells[1:] + cells[:-1]) / 2
    absent = normal_density(middle, -row.printed / 2, row.printed)
    present = normal_density(middle, m * (1 - rho / 2), row.printed)
    curves = {
        ("out", "printed"): absent,
        ("in", "printed"): normal_density(middle, row.printed / 2, row.printed),
        ("in", "ours"): (1 - rho) * absent + rho * present,
    }
    for side in ("out", "in"):
        curves[side, "measured"] = np.histogram(row.values[row.member == (side == "in")], cells, density=True)[0]
    for (side, kind), curve in curves.items():
        for x, y in zip(middle, curve, strict=True):
            yield {"panel": "densities", "line": side, "kind": kind, "x": x, "y": y, "rho": rho}


def normal_density(x: Array, mean: float, variance: float) -> Array:
    """Density of N(mean, variance)."""
    return np.exp(-((x - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


def deltas(noisy: Row, subsampled: Mapping[float, Row]) -> Iterator[dict[str, Any]]:
    """(c): the delta that an attack reaches at every epsilon, and the printed one."""
    for epsilon in EPSILONS:
        printed = ls.bounds.leakage_tradeoff(noisy.printed)
        reached = delta(noisy.values > epsilon, noisy.member, epsilon)
        yield from deltas_at(epsilon, noisy.label, reached, {"printed": printed})
        for rho, row in subsampled.items():
            printed, right = ls.bounds.leakage_tradeoff(row.printed), ls.bounds.leakage_tradeoff(row.printed / rho, rho)
            reached = delta(row.values > threshold_of(row, rho, epsilon), row.member, epsilon)
            yield from deltas_at(epsilon, row.label, reached, {"printed": printed, "ours": right})


def deltas_at(
    epsilon: float, label: str, reached: Ours, curves: Mapping[str, ls.tradeoff.TradeOff]
) -> Iterator[dict[str, Any]]:
    """Yield the points of one line of (c) at one epsilon."""
    place = {"panel": "deltas", "line": label, "x": epsilon}
    yield {**place, "kind": "measured", "y": float(reached.value), "error": reached.error}
    for kind, curve in curves.items():
        yield {**place, "kind": kind, "y": float(curve.delta(epsilon))}


def draw(numbers: pd.DataFrame) -> Figure:
    """Rows of the table in units of the printed score; eq. 15 after sub-sampling; what is promised as privacy."""
    figure, axes = figures.panels(3, 1, width=3.9, height=3.6)
    _rows(axes[0], numbers.query("panel == 'rows'"))
    _densities(axes[1], numbers.query("panel == 'densities'"))
    _deltas(axes[2], numbers.query("panel == 'deltas'"))
    return figure


def _rows(ax: Axes, part: pd.DataFrame) -> None:
    """Draw (a): four measures of a score; where one is not 1 the ratio is not N(-+m/2, m) with the printed m."""
    labels = list(dict.fromkeys(part["line"]))
    marks = {
        "separation": ("separation of the means", "o", 0.24, figures.OURS),
        "variance out": ("variance, out", "s", 0.08, "#3f7d20"),
        "variance in": ("variance, in", "^", -0.08, "#8a6d00"),
        "advantage": ("score by the advantage", "D", -0.24, figures.INK),
        "ours": ("the same, by our formula", "o", -0.24, figures.INK),
    }
    # a row for each line of the table, its marks above each other
    for kind, (name, marker, lift, color) in marks.items():
        one = part.query("kind == @kind")
        places = [len(labels) - 1 - labels.index(line) + lift for line in one["line"]]
        hollow = {"markerfacecolor": "none", "markersize": 9} if kind == "ours" else {}
        ax.plot(one["x"], places, marker, color=color, label=name, **hollow)
    # everything is divided by the printed score: what agrees lies on this line
    ax.plot([1, 1], [-0.6, len(labels) - 0.5], "--", color=figures.THEIRS, linewidth=1, label="as printed", zorder=0)
    ax.set(xscale="log", xlabel="in units of the printed score", title="(a) rows of the table, with their scores")
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    scores = part.drop_duplicates("line").set_index("line")["printed"]
    names = [f"{line}: {scores[line]:.2f}" for line in reversed(labels)]
    ax.set_yticks(range(len(labels)), names, fontsize=8)
    ax.set_ylim(-0.6, len(labels) + 2.6)
    ax.legend(loc="upper left", ncols=2, columnspacing=0.8, handlelength=1.4)


def _densities(ax: Axes, part: pd.DataFrame) -> None:
    """Draw (b): bars are measured."""
    shades = {"out": (figures.MUTE, "///"), "in": (figures.OURS, "")}
    for side, (color, hatch) in shades.items():
        one = part.query("line == @side and kind == 'measured'")
        width = one["x"].diff().median()
        ax.bar(one["x"], one["y"], width, color=color, alpha=0.35, hatch=hatch, label=f"measured, {side}")
    for side, dash in (("out", ":"), ("in", "--")):
        one = part.query("line == @side and kind == 'printed'")
        ax.plot(one["x"], one["y"], dash, color=figures.THEIRS, label=f"as printed, {side}")
    mixture = part.query("kind == 'ours'")
    ax.plot(mixture["x"], mixture["y"], color=figures.OURS, label="mixture (ours), in")
    rho = part["rho"].iloc[0]
    ax.set(title=rf"(b) sub-sampled, $\rho$ = {rho:g}", xlabel="log-likelihood ratio of eq. 15 (nats)")
    ax.set(ylabel="density (per nat)")
    ax.set_ylim(0, 1.45 * max(part["y"]))
    ax.legend(loc="upper left", ncols=2, columnspacing=0.8, handlelength=1.5)


def _deltas(ax: Axes, part: pd.DataFrame) -> None:
    """Draw (c): Remarks 4.2 and 4.4."""
    for style, (name, one) in zip(figures.STYLES, part.groupby("line", sort=False), strict=False):
        measured = one.query("kind == 'measured'")
        marker, color = style["marker"], style["color"]
        errors = 3 * measured["error"]
        ax.errorbar(measured["x"], measured["y"], errors, fmt=marker, color=color, elinewidth=1, label=name)
        for kind, dash, width in (("printed", "--", 1.0), ("ours", "-", 1.6)):
            curve = one[one["kind"] == kind]
            ax.plot(curve["x"], curve["y"], dash, color=color, linewidth=width)
    ax.plot([], [], "--", color=figures.INK, linewidth=1, label="Gaussian DP, as printed")
    ax.plot([], [], "-", color=figures.INK, label="mixture (ours)")
    ax.set(title=r"(c) privacy of the easy target", xlabel=r"$\varepsilon$", ylabel=r"$\delta$")
    ax.set_ylim(0, 1.3 * max(part["y"]))
    ax.legend(loc="upper right")
