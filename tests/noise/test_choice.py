import math
from functools import partial

import numpy as np
import pytest

from leakscope.core.seeds import stream
from leakscope.core.types import NotApplicable
from leakscope.noise import LaplaceNoise, Shifts, calibrate, choose, eta_bound, moment, most_promising, swap_linear

DATA = np.array([[0.0], [1.0], [3.0], [7.0]])


def drawn(coupling, n_rows, n_pairs, size=1.0, promise="every"):
    values = size * stream(0, coupling).exponential(size=(n_rows, n_pairs))
    return Shifts(values, coupling, 1, exact=False, promise=promise)


def test_the_least_noise_is_taken_and_sampled_candidates_share_the_level():
    tried = [drawn("complement", 1, 400, 2.0), drawn("swap", 4, 300), moment(9.0, 1)]
    choice = choose(tried, 0.1, LaplaceNoise, confidence=0.95)
    each = [
        calibrate(tried[0], 0.1, LaplaceNoise, confidence=0.975).scale,
        calibrate(tried[1], 0.1, LaplaceNoise, confidence=0.975).scale,
        calibrate(tried[2], 0.1, LaplaceNoise).scale,
    ]
    assert (choice.index, choice.noise.scale, choice.confidence) == (1, min(each), pytest.approx(0.975))
    assert choice.shifts is tried[1]


def test_exact_candidates_cost_no_confidence():
    tried = [drawn("swap", 4, 300), swap_linear(DATA / 100, 2)]
    choice = choose(tried, 0.1, confidence=0.95)
    assert (choice.index, choice.confidence) == (1, None)
    assert choice.noise.scale == calibrate(tried[1], 0.1).scale


def test_only_candidates_that_keep_the_promise_are_taken():
    tried = [drawn("average swap", 1, 300, 0.1, "average"), drawn("swap", 4, 300)]
    assert choose(tried, 0.1, confidence=0.95).index == 1
    assert choose(tried, 0.1, promise="average", confidence=0.95).index == 0


def test_exact_shifts_of_every_record_are_averaged_for_the_average():
    every, average = (choose([swap_linear(DATA, 2)], 0.1, promise=promise) for promise in ("every", "average"))
    assert average.noise.scale < every.noise.scale
    assert average.shifts.promise == "average"
    bounds = eta_bound(swap_linear(DATA, 2), average.noise)
    assert bounds.mean() == pytest.approx(0.1, abs=1e-8)


def test_candidates_that_fail_are_passed_over():
    failed = Shifts(np.full((1, 300), math.inf), "complement", 1, exact=False)
    assert choose([failed, drawn("swap", 4, 300)], 0.1, confidence=0.95).index == 1
    line = (
        r"no coupling keeps the promise; complement: 100.0% of the pairs failed: eta must be > 0.5, got 0.1; "
        r"swap: eta = 0.1 needs more than 16 pairs a row, got 5"
    )
    with pytest.raises(ValueError, match=f"^{line}$"):
        choose([failed, drawn("swap", 4, 5)], 0.1, confidence=0.95)


def test_no_noise_is_passed_on():
    with pytest.raises(NotApplicable, match=r"^no noise is needed for eta = 0.1: "):
        choose([Shifts(np.zeros((1, 9)), "swap", 1)], 0.1)


def test_a_pilot_is_read_as_if_it_went_on():
    """With 20 pairs alone eta = .05 is out of reach; 500 such pairs a row are enough."""
    pilots = [drawn("complement", 1, 20, 3.0), drawn("swap", 4, 20), swap_linear(DATA * 50, 2)]
    ask = partial(most_promising, pilots, eta=0.05, confidence=0.95)
    assert ask(n_pairs=[500, 500, 0]) == 1
    assert ask(n_pairs=[5000, 66, 0]) == 0  # too few pairs cost more than a worse coupling
    with pytest.raises(ValueError, match=r"^no coupling keeps the promise; complement: eta = 0.05 needs more than 28 "):
        most_promising(pilots[:1], [20], 0.05, confidence=0.95)


def test_a_pilot_without_differences_promises_no_noise():
    pilots = [drawn("swap", 4, 20), Shifts(np.zeros((1, 9)), "table", 1)]
    assert most_promising(pilots, [500, 0], 0.1, confidence=0.95) == 1


SAMPLED = drawn("swap", 4, 300)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: choose([], 0.1), "candidates must not be empty"),
        (lambda: choose([SAMPLED], 0.1), "sampled pairs need a confidence, as confidence=0.95"),
        (lambda: choose([SAMPLED], 0.1, promise="all"), "unknown promise 'all'.*; known: every, average"),
        (
            lambda: choose([SAMPLED, swap_linear(np.zeros((4, 2)), 2)], 0.1, confidence=0.95),
            "candidates must be of one statistic and game: their d, norm or prior differ",
        ),
        (
            lambda: choose([drawn("average swap", 1, 300, promise="average"), moment(1.0, 1, exact=False)], 0.1),
            r"no candidate promises 'every' with a certificate; got average swap \(average\), moment \(every\)",
        ),
        (lambda: most_promising([SAMPLED], [1, 2], 0.1), "lengths differ: pilots has 1, n_pairs has 2"),
        (lambda: most_promising([SAMPLED], [0], 0.1, confidence=0.95), "n_pairs must be >= 1, got 0"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_choices(make, line):
    with pytest.raises(ValueError, match=f"^{line}$"):
        make()
