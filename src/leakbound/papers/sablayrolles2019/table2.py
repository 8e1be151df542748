"""Table 2: a small convolutional network, attacked with 30 shadow models.

The paper attacks one network, of half of 30,000 images, with 30 others. Here ten are attacked, each with 30 references
of its own, so that the ten accuracies are independent. MALT and the shadow models have one threshold for each attacked
network, the best in hindsight; MAST has one for each image, which best separates the references with and without it,
and needs no further one. The batch of 50 is ours: none is printed (10 in quick mode).

A network that is right about fewer than nine of ten of its own images failed to train, and is left out. Of the others
the median is compared with what is printed, because a few networks may be far from the rest; each of them is drawn.

What we add: LiRA and RMIA on the same networks, and for all attacks how many members they find at a false positive
rate of 1 %, where accuracies say little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.lab import Lab, Outcome, mean_of, median_of, trials_of
from leakbound.papers.printed import Ours, printed
from leakbound.papers.sablayrolles2019.setting import above, accuracy_by_target, cifar

SEEN = ("loss", "correct", "log_odds", "log_prob")
FPR = 0.01
TRAINED = 0.9  # accuracy on a network's own images below which it failed to train
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
PRINTED_ATTACKS = ("zero_one", "shadow", "malt", "mast")
ORDER = (("mast", "malt"), ("malt", "zero_one"))


@dataclass(frozen=True)
class Scale:
    """Images a network, epochs, attacked networks, references of each, and images a step."""

    n: int
    epochs: int
    attacked: int
    references: int
    batch: int = 50

    def smaller(self) -> str:
        """How much smaller than the paper's; empty if it is not."""
        if self == PAPER:
            return ""
        sizes = f"n = {self.n:,} of 15,000 images, {self.epochs} of 50 epochs"
        return f"{sizes}, {self.references} of 30 shadow models"


PAPER, ON_CPU = Scale(15_000, 50, 10, 30), Scale(2000, 50, 4, 10)
QUICK = Scale(100, 10, 2, 3, batch=10)  # smaller steps, for in ten of 50 images no network learns its images


def measure(lab: Lab) -> Outcome:
    """Run at the paper's sizes on a GPU; with 2,000 images a network without one."""
    import torch

    if lab.quick:
        scale = QUICK
    else:
        scale = PAPER if torch.cuda.is_available() else ON_CPU
    points = cifar(2 * scale.n, lab.stream("table2", "images"))
    networks = pd.DataFrame([attacked(points, scale, number, lab) for number in range(scale.attacked)])
    trained = networks["train"] >= TRAINED
    run = f"{scale.attacked} attacked networks of {scale.n:,} of {len(points):,} images, {scale.epochs} epochs, each "
    run += f"with {scale.references} references of its own; {np.count_nonzero(~trained)} failed to train; right about "
    run += f"{networks['train'].mean():.1%} of their images and {networks['validation'].mean():.1%} of the others."
    each = [
        row
        for name in ("train", *ATTACKS)
        for failed, part in networks.groupby(~trained)
        for row in trials_of(np.asarray(part[name]), attack=name, failed=failed)
    ]
    claims = claimed(pd.DataFrame(networks[trained]), scale.smaller())
    return Outcome(pd.DataFrame(rows_of(networks)), claims, run, trials=pd.DataFrame(each))


def attacked(points: ls.Points, scale: Scale, number: int, lab: Lab) -> dict[str, float]:
    """Train a network and its references, all on random halves, and attack it."""
    from leakbound.papers.sablayrolles2019.networks import tanh_cnn

    seed = ls.seeds.integer(lab.seed, "table2", "network", number)
    halves = ls.games.half_split(len(points), 1 + scale.references, seed=seed)
    game = ls.Game("one network", halves.member, halves.is_target_point, n_targets=1)
    release = ls.releases.Network(
        tanh_cnn, ls.releases.Recipe(epochs=scale.epochs, lr=0.001, batch=scale.batch, device="auto")
    )
    signals = ls.signals_of(release, points, game, SEEN, seed=seed, **lab.execution)
    correct, member = signals.targets("correct"), game.target_member
    found = {"network": number, "train": correct[member].mean(), "validation": correct[~member].mean()}
    scores = {name: ls.attacks.ATTACKS[row](signals) for name, row in ATTACKS.items()}
    found |= {name: accuracy_by_target(each, AT.get(name))[0] for name, each in scores.items()}
    found |= {f"tpr_{name}": tpr(each) for name, each in scores.items()}
    loss = signals.targets("loss")
    return found | spread_of(scores["mast"].value + loss, loss)  # the score is the threshold less the loss


def spread_of(thresholds: np.ndarray, losses: np.ndarray) -> dict[str, float]:
    """Compute the deviation of the images' thresholds relative to that of their losses, and their quartiles."""
    low, high = np.quantile(thresholds, [0.25, 0.75])
    return {"spread": float(np.std(thresholds) / np.std(losses)), "low": float(low), "high": float(high)}


def tpr(scores: ls.Scores) -> float:
    """Members found at a false positive rate of 1 %; none where an answer is yes or no, or of too few others."""
    is_yes_or_no = len(np.unique(scores.value)) == 2
    if is_yes_or_no or np.count_nonzero(~scores.member) < 1 / FPR:
        return np.nan
    return ls.metrics.tpr_at_fpr(scores, FPR).value


def rows_of(networks: pd.DataFrame) -> list[dict[str, Any]]:
    """Make a row of each attack on each network: accuracy, members found, and the printed accuracy."""
    theirs = printed("sablayrolles2019")["table2"]
    return [
        {
            "attack": name,
            "network": network["network"],
            "failed": network["train"] < TRAINED,
            "accuracy": network[name],
            "tpr": network[f"tpr_{name}"],
            "printed": theirs[name].value if name in theirs else np.nan,
        }
        for name in ATTACKS
        for network in networks.to_dict("records")
    ]


def claimed(networks: pd.DataFrame, smaller: str) -> dict[str, Ours]:
    """Compute the printed accuracies, their order and the spread of the thresholds, of networks that trained."""
    if len(networks) < 2:
        unknown = Ours.stated(None, smaller, "fewer than two networks trained")
        return dict.fromkeys([*PRINTED_ATTACKS, "order", "thresholds"], unknown)
    columns = {str(name): np.asarray(column) for name, column in networks.items()}
    claims = {name: median_of(columns[name], smaller) for name in PRINTED_ATTACKS}
    leads = {f"{a} less {b}": median_of(columns[a] - columns[b]) for a, b in ORDER}
    detail = f"half of the thresholds are from {columns['low'].mean():.2g} to {columns['high'].mean():.2g} nats"
    spread = mean_of(columns["spread"], smaller, detail)
    return claims | {"order": above(leads, smaller), "thresholds": spread}


def draw(numbers: pd.DataFrame) -> Figure:
    """Accuracy on each network, compared with what is printed; members found at a false positive rate of 1 %."""
    figure, (left, right) = figures.panels(2, width=3.6, height=2.6)
    attacks = list(numbers.groupby("attack", sort=False))
    for place, (_, part) in enumerate(reversed(attacks)):
        trained, failed = part.query("not failed"), part.query("failed")
        is_added = bool(part["printed"].isna().all())
        shade = figures.OURS if is_added else figures.MUTE
        beside = place + np.linspace(-0.25, 0.25, len(part))  # so that equal values can be told apart
        left.plot(trained["accuracy"] * 100, beside[: len(trained)], ".", color=shade, label="a network")
        left.plot(failed["accuracy"] * 100, beside[len(trained) :], "x", color=shade, label="failed to train")
        left.plot(trained["accuracy"].median() * 100, place, "|", color=figures.INK, markersize=16, label="median")
        left.plot(part["printed"].iloc[0] * 100, place, "D", color=figures.THEIRS, fillstyle="none", label="printed")
        found = part["tpr"].median()
        right.barh(place, np.nan_to_num(found) * 100, height=0.6, color=shade, alpha=0.75)
        text = "  says yes or no" if np.isnan(found) else f"  {found * 100:.1f} %"
        right.annotate(text, (np.nan_to_num(found) * 100, place), va="center", fontsize=8)
    for ax in (left, right):
        ax.set_yticks(range(len(attacks)), [TITLES[str(name)] for name, _ in reversed(attacks)])
        ax.grid(visible=False, axis="y")
    left.set(title="Half of the images are members", xlabel="accuracy, %", xlim=(48, None))
    right.set(title="False positive rate 1 %", xlabel="members found, %", xlim=(0, 100))
    handles, labels = left.get_legend_handles_labels()
    one_of_each = dict(zip(labels, handles, strict=True))
    figure.legend(one_of_each.values(), one_of_each.keys(), loc="outside lower center", ncols=4)
    return figure
