"""DP-SGD from the losses of final models alone: what initial weights of the auditor's choice bring."""

from __future__ import annotations

import pytest
from benchmarks.outside import audit, bounds, crafted_start, images, noise_multiplier, random_start

from leakbound.dpsgd.accountant import dpsgd


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 10.0])
def test_the_noise_is_that_of_the_accountant(epsilon) -> None:
    curve = dpsgd(noise_multiplier(epsilon), 1.0, 100, "add_remove")
    assert curve.epsilon(1e-5) == pytest.approx(epsilon, rel=1e-3)


def test_the_weights_fit_the_public_half_and_are_the_same_each_time() -> None:
    import torch

    x, y, private, _ = images()
    right = (crafted_start()(torch.from_numpy(x)).argmax(1).numpy() == y).mean()
    assert right > 0.99
    assert (private[-1] == 0).all()
    assert len(x) + len(private) == 1797 + 1
    first, second = crafted_start().state_dict(), crafted_start().state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert sum(value.numel() for value in random_start().state_dict().values()) == sum(map(torch.numel, first.values()))


@pytest.mark.nightly
def test_chosen_weights_show_what_random_ones_do_not() -> None:
    """At epsilon = 10, 400 models; the bounds hold with 95 % each, and the claim is refuted with .1 % at most."""
    random, crafted = (audit(start, 10.0, 400) for start in ("random", "crafted"))
    assert bounds(random)["whole curve"] < 4 < bounds(crafted)["whole curve"] < 10
    for report in (random, crafted):
        assert [curve.verdict.word for curve in report.curves if curve.verdict is not None] == ["not_refuted"]
