"""Dirac canaries for a user-supplied training loop: records with a layer, and so a gradient, that only they use.

Axes: N points, B of a batch, C canaries, K classes.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from leakbound.releases.networks.tensors import Inputs

Array = np.ndarray


class Marked(nn.Module):
    """A network with an additional linear layer that only canaries reach.

    The output of the layer is added to that of the network and subtracted again as a constant: the output stays as it
    is, but the gradient of a canary's cross-entropy has ``length (p - 1)``, p the probability of its class, at a
    parameter of its own, where the gradients of all other records are 0. Clipping leaves about the clipping norm there.

    The canaries test what is done to gradients in this layer, and nothing else: a training that clips it but not the
    layers of the network itself passes.

    >>> marked = Marked(nn.Linear(3, 2), (3,), n_canaries=4, n_classes=2, length=10.0)
    >>> marked(torch.tensor([[0.0, 0.0, 0.0, 2.0]])).shape  # the features, all 0, and the number of the canary
    torch.Size([1, 2])
    """

    def __init__(
        self, network: nn.Module, shape: tuple[int, ...], n_canaries: int, n_classes: int, length: float
    ) -> None:
        super().__init__()
        self.network = network
        self.canaries = nn.Linear(n_canaries, 1, bias=False)
        nn.init.zeros_(self.canaries.weight)
        self._shape, self._n_classes, self._length = shape, n_classes, length

    def forward(self, x: Float[Tensor, "B features"]) -> Float[Tensor, "B K"]:
        """Compute the output for flattened features, followed by the number of a canary, from 1; 0 of other records."""
        features, number = x[:, :-1].unflatten(1, self._shape), x[:, -1:]
        numbers = torch.arange(1, self.canaries.in_features + 1, device=x.device)
        classes = torch.arange(self._n_classes, device=x.device)
        own = self.canaries(self._length * (number == numbers).to(x.dtype))
        return self.network(features) + ((number - 1) % self._n_classes == classes) * (own - own.detach())


def marked(
    network: nn.Module, inputs: Inputs, label: Int[Tensor, " N"], canaries: Int[Array, " C"], length: float
) -> tuple[Marked, Inputs, Int[Tensor, " N"]]:
    """Extend the network, its points and their labels, so that some of the points are canaries."""
    features, labels = inputs.batch(np.arange(len(inputs)), label.device).flatten(1), label.clone()
    with torch.no_grad():
        n_classes = network(features[:1].unflatten(1, inputs.shape)).shape[1]
    # canaries have features of 0, and all classes in turn, so that none is learned
    where = torch.from_numpy(canaries).to(label.device)
    number = features.new_zeros(len(features), 1)
    number[where, 0] = torch.arange(1, len(where) + 1).to(features)
    labels[where] = (torch.arange(len(where)) % n_classes).to(labels)
    columns = torch.cat([features * (number == 0), number], dim=1)
    module = Marked(network, inputs.shape, len(where), n_classes, length).to(label.device)
    return module, Inputs(columns, tuple(columns.shape[1:])), labels
