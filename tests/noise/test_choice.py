import math
from functools import partial

import numpy as np
import pytest

from leakbound.core.seeds import stream
from leakbound.noise import Shifts, moment, most_promising, swap_linear

DATA = np.array([[0.0], [1.0], [3.0], [7.0]])


def drawn(coupling, n_rows, n_pairs, size=1.0, promise="every"):
    values = size * stream(0, coupling).exponential(size=(n_rows, n_pairs))
    return Shifts(values, coupling, 1, exact=False, promise=promise)


def test_only_candidates_that_keep_the_promise_are_taken():
    pilots = [drawn("average_swap", 1, 300, 0.1, "average"), drawn("swap", 4, 300)]
    ask = partial(most_promising, pilots, [300, 300], 0.1, confidence=0.95)
    assert ask() == 1
    assert ask(promise="average") == 0


def test_exact_shifts_of_every_record_are_averaged_for_the_average():
    """The worst record needs more noise than the sampled coupling, the average record less."""
    exact, sampled = swap_linear(DATA, 2), drawn("swap", 4, 300, 1.9)
    ask = partial(most_promising, [sampled, exact], [300, 0], 0.1, confidence=0.95)
    assert (ask(), ask(promise="average")) == (0, 1)


def test_candidates_that_fail_are_passed_over():
    failed = Shifts(np.full((1, 300), math.inf), "complement", 1, exact=False)
    assert most_promising([failed, drawn("swap", 4, 300)], [300, 300], 0.1, confidence=0.95) == 1
    line = (
        r"no coupling keeps the promise; complement: 100.0% of the pairs failed: eta must be > 0.5, got 0.1; "
        r"swap: eta = 0.1 needs more than 13 pairs a row, got 5"
    )
    with pytest.raises(ValueError, match=f"^{line}$"):
        most_promising([failed, drawn("swap", 4, 5)], [300, 5], 0.1, confidence=0.95)


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
        (lambda: most_promising([], [], 0.1), "pilots must not be empty"),
        (lambda: most_promising([SAMPLED], [9], 0.1, promise="all"), "unknown promise 'all'.*; known: every, average"),
        (
            lambda: most_promising([SAMPLED, swap_linear(np.zeros((4, 2)), 2)], [9, 0], 0.1, confidence=0.95),
            "pilots must be of one statistic and game: their d, norm or prior differ",
        ),
        (
            lambda: most_promising(
                [drawn("average_swap", 1, 300, promise="average"), moment(1.0, 1, exact=False)], [9, 9], 0.1
            ),
            r"no pilot promises 'every' with a certificate; got average_swap \(average\), moment \(every\)",
        ),
        (lambda: most_promising([SAMPLED], [1, 2], 0.1), "lengths differ: pilots has 1, n_pairs has 2"),
        (lambda: most_promising([SAMPLED], [0], 0.1, confidence=0.95), "n_pairs must be >= 1, got 0"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_choices(make, line):
    with pytest.raises(ValueError, match=f"^{line}$"):
        make()
