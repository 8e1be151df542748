"""Networks that are asked about several versions of each image."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import leakbound as ls
from leakbound.data import from_arrays
from leakbound.releases.networks.network import Network, Trained
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.queries import Queried, Versions, shifts


def small_cnn() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 8 * 8, 3))


def images(n: int = 60) -> ls.Points:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    return from_arrays((rng.random((n, 8, 8)) * 60 + 60 * y[:, None, None]).astype(np.uint8), y)


def test_a_trained_network_is_asked_about_mirrored_and_shifted_images():
    torch.manual_seed(0)
    points, module = images(), small_cnn().eval()
    release = Queried(Trained(module), Versions.for_points(points, 18, None))
    seen = release.observe(points, np.ones((1, 60), dtype=bool), np.zeros(1, dtype=int), ["loss", "correct"])
    for query, (mirrored, down, right) in enumerate(shifts(18)):
        image = torch.from_numpy(points.x / 255).float()[:, None]
        image = image.flip(3) if mirrored else image
        padded = nn.functional.pad(image, (1, 1, 1, 1), mode="reflect")
        moved = padded[:, :, 1 - down : 9 - down, 1 - right : 9 - right]
        with torch.no_grad():
            log_p = torch.log_softmax(module(moved), dim=1).numpy()[np.arange(60), points.y]
        np.testing.assert_allclose(seen["query_loss"][0, :, query], -log_p, rtol=1e-4, atol=1e-5)


def test_networks_are_trained_on_the_images_alone():
    points, plain = images(), Network(small_cnn, Recipe(epochs=2, lr=0.01, augment="flip_crop"))
    member = np.random.default_rng(1).random((2, 60)) < 0.5
    asked = Queried(plain, Versions.for_points(points, 3, None)).observe(points, member, np.array([1, 2]), ["loss"])
    alone = plain.observe(points, member, np.array([1, 2]), ["loss"])
    np.testing.assert_allclose(asked["loss"], alone["loss"], rtol=1e-5)
    assert (asked["query_loss"][:, :, 1] != asked["query_loss"][:, :, 0]).any()


def test_an_audit_of_labels_of_networks():
    points = images()
    report = ls.audit(
        ls.releases.LabelsOnly(small_cnn),
        points.x,
        points.y,
        train=Recipe(epochs=1),
        n_models=4,
        game=ls.HalfSplit(queries=3),
        attacks=["gap", "label_only", "label_only_lira"],
        n_jobs=1,
    )
    assert {each.attack for each in report.findings if each.quantity == "auc"} == {
        "gap",
        "label_only",
        "label_only_lira",
    }
    assert any(
        "3 versions of each record: itself, and others mirrored and shifted" in note for note in report.about.notes
    )
