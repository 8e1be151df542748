"""Sorting on disk against sorting in memory."""

import numpy as np
import pytest

from leakbound.core.external_sort import float_of_key, key_of_float, sort_words


@pytest.mark.parametrize("n", [0, 1, 4096, 50_001])
@pytest.mark.parametrize("n_distinct", [1, 3, 1000, 2**63])
def test_words_come_out_in_order(tmp_path, n, n_distinct):
    rng = np.random.default_rng(n)
    words = rng.integers(0, n_distinct, n, dtype=np.uint64)
    cuts = np.sort(rng.integers(0, n + 1, 5))
    found = sort_words(np.split(words, cuts), tmp_path, run=4096, piece=1000)
    pieces = list(found.stream(700))
    expected = np.sort(words)
    assert np.array_equal(np.concatenate([np.empty(0, np.uint64), *pieces]), expected)
    assert all(len(piece) == 700 for piece in pieces[:-1])
    for word in [0, 1, *words[:5].tolist(), 2**64 - 1, 2**64]:
        assert found.below(word) == np.count_nonzero(expected < np.float64(word)) if word == 2**64 else True
        if word < 2**64:
            assert found.below(word) == np.searchsorted(expected, np.uint64(word), "left")
    found.close()
    assert not list(tmp_path.iterdir())


def test_a_range_is_never_much_larger_than_a_run(tmp_path, monkeypatch):
    from leakbound.core import external_sort

    sizes = []
    write = external_sort._write

    def watched(blocks, file, piece):
        def seen():
            for block in blocks:
                sizes.append(len(block))
                yield block

        return write(seen(), file, piece)

    monkeypatch.setattr(external_sort, "_write", watched)
    rng = np.random.default_rng(0)
    skewed = np.where(rng.random(200_000) < 0.7, 7, rng.integers(0, 10, 200_000) ** 9).astype(np.uint64)
    sort_words([skewed], tmp_path, run=16_384, piece=1000).close()
    n_runs = 200_000 // 16_384 + 1
    assert max(sizes) <= 16_384 + 1024 * (n_runs + 1)


def test_an_error_in_the_blocks_leaves_nothing(tmp_path):
    def blocks():
        yield np.arange(5000, dtype=np.uint64)
        raise KeyError("broken")

    with pytest.raises(KeyError):
        sort_words(blocks(), tmp_path, run=1000)
    assert not list(tmp_path.iterdir())


def test_keys_are_ordered_like_floats():
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        value = np.concatenate([rng.normal(size=1000) * 10.0 ** rng.integers(-30, 30, 1000), [0.0, -0.0]]).astype(dtype)
        order = np.argsort(value, kind="stable")
        assert (np.diff(key_of_float(value)[order].astype(object)) >= 0).all()
        assert key_of_float(dtype([0.0])) == key_of_float(dtype([-0.0]))
    assert np.array_equal(float_of_key(key_of_float(value.astype(np.float32))), value.astype(np.float32))
