"""Table 2: a small convolutional network, attacked with 30 shadow models.

31 models are trained on halves of 30,000 images each; the paper attacks one with the other 30, we attack each of them
with all others. MALT has one threshold for all images, set on all models together; MAST has one for each image, which
best separates the models with and without it, and needs no further one. The batch of 50 is ours: none is printed.

What we add: LiRA and RMIA on the same models, and for all attacks how many members they find at a false positive
rate of 1 %, where accuracies say little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import leakscope as ls
from leakscope.papers import figures
from leakscope.papers.lab import Lab, Outcome, mean_of, trials_of
from leakscope.papers.printed import Ours, printed
from leakscope.papers.sablayrolles2019.setting import above, accuracy, accuracy_by_target, cifar, lead

SEEN = ("loss", "correct", "log_odds", "log_prob")
FPR = 0.01
ATTACKS = {
    "zero_one": "gap",
    "shadow": "shadow",
    "malt": "loss",
    "mast": "mast_threshold",
    "lira": "lira",
    "rmia": "rmia",
}
TITLES = {"zero_one": "0-1", "shadow": "Shadow models", "malt": "MALT", "mast": "MAST", "lira": "LiRA", "rmia": "RMIA"}
AT = {"zero_one": 0.5, "mast": 0.0}  # attacks that bring their threshold
ORDER = (("mast", "malt"), ("malt", "zero_one"))


@dataclass(frozen=True)
class Scale:
    """Images a model, epochs, and models."""

    n: int
    epochs: int
    models: int

    def smaller(self) -> str:
        """How much smaller than the paper's; empty if it is not."""
        sizes = f"n = {self.n:,} of 15,000 images, {self.epochs} of 50 epochs, {self.models - 1} of 30 shadow models"
        return "" if self == PAPER else sizes


PAPER, ON_CPU, QUICK = Scale(15_000, 50, 31), Scale(2000, 50, 31), Scale(250, 20, 8)


def measure(lab: Lab) -> Outcome:
    """Run at the paper's sizes on a GPU; with 2,000 images a model without one."""
    import torch

    from leakscope.papers.sablayrolles2019.networks import tanh_cnn

    if lab.quick:
        scale = QUICK
    else:
        scale = PAPER if torch.cuda.is_available() else ON_CPU
    recipe = ls.releases.Recipe(epochs=scale.epochs, lr=0.001, batch=50, device="auto")
    points = cifar(2 * scale.n, lab.stream("table2", "images"))
    game = ls.games.half_split(len(points), scale.models, seed=lab.seed)
    release = ls.releases.Network(tanh_cnn, recipe)
    signals = ls.signals_of(release, points, game, SEEN, seed=lab.seed, **lab.execution)
    scores = {name: ls.attacks.ATTACKS[row](signals) for name, row in ATTACKS.items()}
    accuracies = {name: accuracy(attack_scores, AT.get(name)) for name, attack_scores in scores.items()}
    numbers = pd.DataFrame([row_of(name, accuracies[name], tpr(scores[name])) for name in scores])
    run = f"{scale.models} models of {scale.n:,} of {len(points):,} images, {scale.epochs} epochs; right about "
    correct, member = signals.targets("correct"), game.target_member
    run += f"{correct[member].mean():.1%} of their images and {correct[~member].mean():.1%} of the others."
    leads = {f"{a} less {b}": lead(scores[a], AT.get(a), scores[b], AT.get(b)) for a, b in ORDER}
    loss = signals.targets("loss")
    spread = relative_spread(scores["mast"].value + loss, loss)  # the score is the threshold less the loss
    each = [row for name in scores for row in trials_of(accuracy_by_target(scores[name], AT.get(name)), attack=name)]
    return Outcome(numbers, claimed(accuracies, leads, spread, scale.smaller()), run, trials=pd.DataFrame(each))


def relative_spread(thresholds: np.ndarray, losses: np.ndarray) -> Ours:
    """Compute the standard deviation of the images' thresholds, relative to that of their losses.

    Parameters
    ----------
    thresholds, losses : arrays of shape (models, images)

    Returns
    -------
    Ours
        Mean over the models.
    """
    thresholds, losses = np.asarray(thresholds, dtype=float), np.asarray(losses, dtype=float)
    quartiles = np.quantile(thresholds, [0.25, 0.75]).round(2).tolist()
    found = mean_of(thresholds.std(axis=1) / losses.std(axis=1))
    return replace(found, detail=f"half of the thresholds are from {quartiles[0]:g} to {quartiles[1]:g} nats")


def row_of(name: str, measured: Ours, true_positive_rate: float) -> dict[str, Any]:
    """Make the row of an attack: the measured accuracy, and the printed one."""
    theirs = printed("sablayrolles2019")["table2"].get(name)
    value = {"accuracy": measured.value, "error": measured.error, "printed": theirs.value if theirs else np.nan}
    return {"attack": name} | value | {"tpr": true_positive_rate}


def tpr(scores: ls.Scores) -> float:
    """Members found at a false positive rate of 1 %; none where an answer is yes or no."""
    if len(np.unique(scores.value)) == 2:
        return np.nan
    return ls.metrics.tpr_at_fpr(scores, FPR).value


def claimed(accuracies: Mapping[str, Ours], leads: Mapping[str, Ours], spread: Ours, smaller: str) -> dict[str, Ours]:
    """Compute the printed accuracies, their order, and how concentrated the thresholds are."""
    claims = {name: replace(accuracies[name], smaller=smaller) for name in ("zero_one", "shadow", "malt", "mast")}
    note = f"{smaller}; {spread.detail}" if smaller else ""
    return claims | {"order": above(leads, smaller), "thresholds": replace(spread, smaller=note)}


def draw(numbers: pd.DataFrame) -> Figure:
    """Accuracies compared with those printed; members found at a false positive rate of 1 %."""
    figure, (left, right) = figures.panels(2, width=3.6, height=2.6)
    place = np.arange(len(numbers))[::-1]
    added = numbers["printed"].isna()
    for these, shade, hatch, label in (
        (~added, figures.MUTE, "", "attacks of the paper"),
        (added, figures.OURS, "///", "added"),
    ):
        look = {"color": shade, "alpha": 0.75, "hatch": hatch, "edgecolor": "white"}
        part, at = numbers[these], place[these]
        left.barh(at, part["accuracy"] * 100, xerr=part["error"] * 100, height=0.6, label=label, **look)
        right.barh(at, np.nan_to_num(part["tpr"]) * 100, height=0.6, **look)
    left.plot(numbers["printed"] * 100, place, "D", color=figures.THEIRS, fillstyle="none", label="printed")
    for at, value in zip(place, numbers["tpr"], strict=True):
        text = "  says yes or no" if np.isnan(value) else f"  {value * 100:.1f} %"
        right.annotate(text, (np.nan_to_num(value) * 100, at), va="center", fontsize=8)
    for ax in (left, right):
        ax.set_yticks(place, [TITLES[name] for name in numbers["attack"]])
        ax.grid(visible=False, axis="y")
    left.set(title="Half of the images are members", xlabel="accuracy, %", xlim=(50, None))
    right.set(title="False positive rate 1 %", xlabel="members found, %", xlim=(0, 100))
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
