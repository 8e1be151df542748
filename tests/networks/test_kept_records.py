"""Records that a network keeps in a buffer, in the numbers of its 16 bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from leakbound.core.types import Points
from leakbound.releases.structure import structure_of


class Attention(nn.Module):
    """Softmax attention to records that it standardises, as networks for tables do."""

    def __init__(self, x, y, kind):
        super().__init__()
        self.register_buffer("mean", x.mean(0))
        self.register_buffer("deviation", x.std(0))
        self.register_buffer("keys", ((x - self.mean) / self.deviation).to(kind)[None])  # a batch of one
        self.register_buffer("labels", nn.functional.one_hot(y).to(kind))

    def forward(self, x):
        queries = (x - self.mean) / self.deviation
        weights = torch.softmax(-torch.cdist(queries, self.keys[0].float()), dim=1)
        return torch.log(weights @ self.labels.float() + 1e-6)


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_rows_in_a_buffer_are_found(kind):
    generator = torch.Generator().manual_seed(0)
    x = torch.exp(torch.randn(200, 6, generator=generator))
    y = torch.arange(200) % 2
    members = Points(x.numpy(), y.numpy())
    found = structure_of(Attention(x, y, kind), members)
    assert found.stores_records is True
    assert [(held.kind, held.n) for held in found.kept.held if held.where == "keys"] == [("rows", 200)]
    part = structure_of(Attention(x[torch.randperm(200, generator=generator)], y, kind), members)
    assert part.kept.n_rows == 200
    others = Points(np.exp(np.random.default_rng(1).normal(size=(200, 6))), y.numpy())
    assert structure_of(Attention(x, y, kind), others).kept.n_rows == 0
