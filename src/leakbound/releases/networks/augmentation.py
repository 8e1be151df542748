"""Images mirrored and shifted at random while a network is trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from leakbound.releases.networks.recipe import Recipe

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Augmentation:
    """The random flip and shift of each image of an epoch, in the order in which the images are read."""

    flip: Bool[Array, "K n"]
    shift: Int[Array, "K n 2"]

    @classmethod
    def none(cls, n_models: int, n_points: int) -> Augmentation:
        """Leave every image as it is."""
        return cls(np.zeros((n_models, n_points), dtype=bool), np.zeros((n_models, n_points, 2), dtype=np.int64))

    def draw(self, model: int, n_points: int, recipe: Recipe, rng: np.random.Generator) -> None:
        """Draw the flips and shifts of a model."""
        if "flip" in recipe.augment:
            self.flip[model, :n_points] = rng.random(n_points) < 0.5
        if recipe.shift is not None:  # crops
            self.shift[model, :n_points] = rng.integers(-recipe.shift, recipe.shift + 1, size=(n_points, 2))

    def __getitem__(self, batch: slice) -> Augmentation:
        return Augmentation(self.flip[:, batch], self.shift[:, batch])


def augment(x: Float[Tensor, "K b C H W"], augmentation: Augmentation) -> Float[Tensor, "K b C H W"]:
    """Mirror the images, then shift them, with zeros where nothing was."""
    images = x.flatten(0, 1)
    if augmentation.flip.any():
        flip = torch.as_tensor(augmentation.flip.reshape(-1), device=x.device)
        images = torch.where(flip[:, None, None, None], images.flip(3), images)
    if augmentation.shift.any():
        largest = int(np.abs(augmentation.shift).max())
        images = _shifted(images, torch.as_tensor(augmentation.shift.reshape(-1, 2), device=x.device), largest)
    return images.unflatten(0, x.shape[:2])


def _shifted(images: Float[Tensor, "n C H W"], shift: Int[Tensor, "n 2"], largest: int) -> Float[Tensor, "n C H W"]:
    n_images, _, height, width = images.shape
    padded = pad(images, [largest] * 4)
    rows = torch.arange(height, device=images.device) + largest - shift[:, :1]
    columns = torch.arange(width, device=images.device) + largest - shift[:, 1:]
    image = torch.arange(n_images, device=images.device)[:, None, None]
    return padded[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
