"""Table 3: what augmentation hides.

The paper trains ResNet-101 and VGG-16 on half of ImageNet, with images as they are, mirrored and cropped by up to 5
pixels, or mirrored and cropped at random, and runs 0-1 and MALT. We have no ImageNet: its numbers are not compared.
The same study runs on CIFAR-10 with a small residual network, where 5 of 224 pixels are 1 of 32, and a random crop
moves an image by up to an eighth of its side. `study` runs it on any images with any network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.lab import Lab, Outcome, trials_of
from leakbound.papers.printed import Ours
from leakbound.papers.sablayrolles2019.setting import above, accuracy, accuracy_by_target, cifar, lead

TITLES = {"none": "none", "flip_crop5": "flip, crop ±5 of 224", "flip_crop": "flip, crop"}
ATTACKS = {"zero_one": "gap", "malt": "loss"}
AT = {"zero_one": 0.5}
# Section 6.4, of networks for ImageNet; the experiment on CIFAR-10 takes Adam.
PAPERS_RECIPE: dict[str, Any] = {
    "optimiser": "sgd", "lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4, "batch": 256, "epochs": 90,
    "schedule": "step", "decay_epochs": 30,
}  # fmt: skip


def measure(lab: Lab) -> Outcome:
    """Run the paper's 90 epochs on 15,000 images on a GPU; 40 on 2,000 without one."""
    import torch

    from leakbound.papers.sablayrolles2019.networks import small_resnet

    n, epochs, models = lab.size(
        full=(15_000, 90, 8) if torch.cuda.is_available() else (2000, 40, 8), quick=(200, 15, 4)
    )

    def release(words: Mapping[str, Any]) -> Any:
        return ls.releases.Network(small_resnet, ls.releases.Recipe(epochs=epochs, lr=0.001, device="auto", **words))

    numbers, each = study(cifar(2 * n, lab.stream("table3", "images")), release, models, lab)
    run = (
        f"CIFAR-10, {models} small residual networks for each augmentation, {n:,} of {2 * n:,} images, {epochs} epochs."
    )
    smaller = f"CIFAR-10 and a small residual network, {n:,} images, where the paper has ImageNet"
    # the paper's claims are about the order of augmentations and of attacks, not about numbers of ImageNet
    table = numbers.pivot(index="augment", columns="attack", values="accuracy").loc[list(TITLES)]
    first = numbers.drop_duplicates("augment")
    ends = zip(
        first["augment"].map(TITLES.get), first["lead"].astype(float), first["lead_error"].astype(float), strict=True
    )
    leads = {title: Ours(value, error) for title, value, error in ends}
    ours = {
        "malt_beats_zero_one": above(leads, smaller),
        "augmentation_helps": Ours(bool((np.diff(table, axis=0) < 0).all()), smaller=smaller),
    }
    return Outcome(numbers, ours, run, trials=each)


def study(
    points: ls.Points, release: Callable[[Mapping[str, Any]], Any], models: int, lab: Lab
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """0-1 and MALT under three augmentations."""
    game = ls.games.half_split(len(points), models, seed=lab.seed)
    rows: list[dict[str, Any]] = []
    each: list[dict[str, Any]] = []
    for name, words in augmentations(points.x.shape[1]).items():
        signals = ls.signals_of(release(words), points, game, ("loss", "correct"), seed=lab.seed, **lab.execution)
        correct, member = signals.targets("correct"), game.target_member
        model = {"train": correct[member].mean(), "validation": correct[~member].mean()}
        scores = {attack: ls.attacks.ATTACKS[row](signals) for attack, row in ATTACKS.items()}
        ahead = lead(scores["malt"], AT.get("malt"), scores["zero_one"], AT.get("zero_one"))
        model |= {"lead": ahead.value, "lead_error": ahead.error}
        for attack, attack_scores in scores.items():
            measured = accuracy(attack_scores, AT.get(attack))
            accuracy_of_attack = {"accuracy": measured.value, "error": measured.error}
            rows.append({"augment": name, "attack": attack} | accuracy_of_attack | model)
            each += trials_of(accuracy_by_target(attack_scores, AT.get(attack)), augment=name, attack=attack)
    return pd.DataFrame(rows), pd.DataFrame(each)


def augmentations(side: int) -> dict[str, dict[str, Any]]:
    """Words of a recipe for images of so many pixels a side: crops by 5 of 224 pixels, and by an eighth.

    >>> [words.get("shift") for words in augmentations(224).values()]
    [None, 5, 28]
    """
    return {
        "none": {"augment": "none"},
        "flip_crop5": {"augment": "flip_crop", "shift": max(1, round(side * 5 / 224))},
        "flip_crop": {"augment": "flip_crop", "shift": max(2, side // 8)},
    }


def draw(numbers: pd.DataFrame) -> Figure:
    """Accuracy of both attacks, and of the models, by augmentation."""
    figure, (left, right) = figures.panels(2, width=3.5, height=3.0)
    place = np.arange(len(TITLES))
    for attack, title, style in (("zero_one", "0-1", figures.STYLES[1]), ("malt", "MALT", figures.STYLES[2])):
        part = numbers[numbers["attack"] == attack].set_index("augment").loc[list(TITLES)]
        left.errorbar(place, part["accuracy"] * 100, part["error"] * 100, label=title, **style)
    for what, title, style in (
        ("train", "images that they learned", figures.STYLES[5]),
        ("validation", "other images", figures.STYLES[6]),
    ):
        model = numbers[numbers["attack"] == "malt"].set_index("augment").loc[list(TITLES)]
        right.plot(place, model[what] * 100, label=title, **style)
    left.set(title="Attacks", ylabel="accuracy, %")
    right.set(title="Models", ylabel="accuracy, %")
    for ax in (left, right):
        ax.set_xticks(place, [title.replace(", ", ",\n") for title in TITLES.values()])
        ax.set(xlabel="augmentation while training", xlim=(-0.4, 2.4))
        ax.legend()
    return figure
