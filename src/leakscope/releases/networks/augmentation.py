"""Images mirrored and shifted at random while a network is trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from leakscope.releases.networks.recipe import Recipe

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Moves:
    """What happens to each image of an epoch, in the order in which they are seen.

    Parameters
    ----------
    flip : bool array of shape (K, n)
        Mirrored left to right, for each of K models.
    shift : int array of shape (K, n, 2)
        Pixels downwards and to the right, negative ones upwards and to the left.
    """

    flip: Bool[Array, "K n"]
    shift: Int[Array, "K n 2"]

    @classmethod
    def none(cls, n_models: int, n_points: int) -> Moves:
        """Every image as it is."""
        return cls(np.zeros((n_models, n_points), dtype=bool), np.zeros((n_models, n_points, 2), dtype=np.int64))

    def draw(self, model: int, n_points: int, recipe: Recipe, rng: np.random.Generator) -> None:
        """Fill in the moves of a model."""
        if "flip" in recipe.augment:
            self.flip[model, :n_points] = rng.random(n_points) < 0.5
        if recipe.shift is not None:  # crops
            self.shift[model, :n_points] = rng.integers(-recipe.shift, recipe.shift + 1, size=(n_points, 2))

    def __getitem__(self, batch: slice) -> Moves:
        return Moves(self.flip[:, batch], self.shift[:, batch])


def moved(x: Float[Tensor, "K b C H W"], moves: Moves) -> Float[Tensor, "K b C H W"]:
    """The images mirrored, then shifted with zeros where nothing was.

    Parameters
    ----------
    x : tensor of shape (K, b, C, H, W)
    moves : Moves
        Of these images.

    Returns
    -------
    tensor of the same shape
    """
    images = x.flatten(0, 1)
    if moves.flip.any():
        flip = torch.as_tensor(moves.flip.reshape(-1), device=x.device)
        images = torch.where(flip[:, None, None, None], images.flip(3), images)
    if moves.shift.any():
        furthest = int(np.abs(moves.shift).max())
        images = _shifted(images, torch.as_tensor(moves.shift.reshape(-1, 2), device=x.device), furthest)
    return images.unflatten(0, x.shape[:2])


def _shifted(images: Float[Tensor, "n C H W"], shift: Int[Tensor, "n 2"], furthest: int) -> Float[Tensor, "n C H W"]:
    n_images, _, height, width = images.shape
    padded = pad(images, [furthest] * 4)
    rows = torch.arange(height, device=images.device) + furthest - shift[:, :1]
    columns = torch.arange(width, device=images.device) + furthest - shift[:, 1:]
    image = torch.arange(n_images, device=images.device)[:, None, None]
    return padded[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
