"""A network in a module that is the same in every process: pytest changes its own files while it imports them."""

from __future__ import annotations

import torch
from torch import nn


class Branches(nn.Module):
    """A network that is no sequence."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.side, self.last = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(8, 3)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.drop(torch.relu(self.first(x)) * torch.sigmoid(self.side(x))))
