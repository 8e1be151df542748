"""Noise from a key: the distribution of every family, canonical digests, and bits that nobody else can make."""

import hashlib
import struct

import numpy as np
import pytest
from scipy import stats

from leakbound.noise import BallNoise, GaussianNoise, LaplaceNoise, Lp, NormNoise
from leakbound.protection.ledger.keyed import KeyedGenerator, canonical_digest, new_key

KEY = bytes(range(32))
N = 20_000
# Level of each Kolmogorov-Smirnov test. All 15 reject a right sampler with 1.5 of 1,000 keys; this key is fixed.
LEVEL = 1e-4


def fits(values, distribution):
    return stats.kstest(np.asarray(values), distribution.cdf).pvalue > LEVEL


def drawn(noise, d):
    return noise.sample(np.zeros((N, d)), KeyedGenerator(KEY, "test of a family"))


@pytest.mark.statistics
class TestDistributions:
    def test_gaussian(self):
        z = drawn(GaussianNoise(3.0), 2)
        assert fits(z.ravel(), stats.norm(scale=3.0))
        assert abs(np.corrcoef(z.T)[0, 1]) < 5 / np.sqrt(N)

    def test_gaussian_with_a_shape(self):
        """Whitened by the inverse of the root of S it is standard normal, and its coordinates are uncorrelated."""
        shape = np.array([[4.0, 1.2], [1.2, 1.0]])
        z = drawn(GaussianNoise(2.0, shape), 2)
        white = np.linalg.solve(np.linalg.cholesky(4.0 * shape), z.T)
        assert fits(white[0], stats.norm)
        assert fits(white[1], stats.norm)
        assert abs(np.corrcoef(white)[0, 1]) < 5 / np.sqrt(N)

    def test_gaussian_diagonal(self):
        z = drawn(GaussianNoise(2.0, np.array([1.0, 9.0])), 2)
        assert fits(z[:, 0], stats.norm(scale=2.0))
        assert fits(z[:, 1], stats.norm(scale=6.0))

    def test_laplace(self):
        assert fits(drawn(LaplaceNoise(1.5), 1)[:, 0], stats.laplace(scale=1.5))

    def test_norm(self):
        """The length has the Gamma distribution; a coordinate of a direction in three dimensions is uniform."""
        z = drawn(NormNoise(2.0, Lp(2.0), d=3), 3)
        length = np.linalg.norm(z, axis=1)
        assert fits(length, stats.gamma(3, scale=2.0))
        assert fits(z[:, 0] / length, stats.uniform(-1, 2))
        assert fits(z[:, 2] / length, stats.uniform(-1, 2))

    def test_norm_of_the_absolute_values(self):
        """With p = 1 the coordinates are independent Laplace numbers."""
        z = drawn(NormNoise(2.0, Lp(1.0), d=2), 2)
        assert fits(z[:, 0], stats.laplace(scale=2.0))
        assert fits(z[:, 1], stats.laplace(scale=2.0))

    def test_ball(self):
        z = drawn(BallNoise(5.0, 3), 3)
        length = np.linalg.norm(z, axis=1)
        assert fits((length / 5.0) ** 3, stats.uniform)
        assert fits(z[:, 1] / length, stats.uniform(-1, 2))

    def test_gamma_of_many_degrees_of_freedom(self):
        draws = KeyedGenerator(KEY, "gamma").gamma(500.0, 0.25, N)
        assert fits(draws, stats.gamma(500, scale=0.25))

    def test_uniform(self):
        draws = KeyedGenerator(KEY, "uniform").uniform(-2, 3, N)
        assert fits(draws, stats.uniform(-2, 5))
        assert ((draws >= -2) & (draws < 3)).all()


def words_by_hand(subject, read, n):
    """Scheme, key, subject and the number of the read, with the lengths stated; SHAKE-256 gives 64 bits a number."""
    scheme, name = b"leakscope keyed noise 1", subject.encode()
    start = b"scheme:" + struct.pack("<Q", len(scheme)) + scheme + KEY
    start += b"subject:" + struct.pack("<Q", len(name)) + name
    return struct.unpack(f"<{n}Q", hashlib.shake_256(start + struct.pack("<Q", read)).digest(8 * n))


def tails_by_hand(subject, read, n):
    """The lowest bit is the sign, the rest a probability in (0, 1/2)."""
    return [((word // 2 + 0.5) / 2**64, word % 2 == 1) for word in words_by_hand(subject, read, n)]


def normal_by_hand(subject, read, n):
    return np.array([stats.norm.isf(tail) if sign else -stats.norm.isf(tail)
                     for tail, sign in tails_by_hand(subject, read, n)])  # fmt: skip


def test_the_bits_are_those_of_shake_256():
    """Read 0 makes the Philox generator, so that the first numbers are of read 1."""
    made = KeyedGenerator(KEY, "mean of wage").standard_normal(4)
    np.testing.assert_allclose(made, normal_by_hand("mean of wage", 1, 4), rtol=1e-12)


def uniform_by_hand(subject, read, n):
    """The upper 53 bits."""
    return np.array([(word >> 11) / 2**53 for word in words_by_hand(subject, read, n)])


def gamma_by_hand(subject, read, n, shape):
    return np.array([stats.gamma.isf(tail, shape) if is_upper else stats.gamma.ppf(tail, shape)
                     for tail, is_upper in tails_by_hand(subject, read, n)])  # fmt: skip


def test_gamma_numbers_are_quantiles_on_their_side_of_the_median():
    """With the sign bit the upper quantile of the tail, else the lower one; by the inverse of scipy's distribution."""
    made = KeyedGenerator(KEY, "sums").gamma(3.5, 2.0, size=6)
    np.testing.assert_allclose(made, 2.0 * gamma_by_hand("sums", 1, 6, 3.5), rtol=1e-9)
    assert {is_upper for _, is_upper in tails_by_hand("sums", 1, 6)} == {True, False}


def test_noise_in_a_ball_is_a_distance_and_a_direction():
    """The distance is R U^(1/d); a direction is ``+-V sqrt(Gamma(3/2))``, which is normal, over its length.

    The numbers are those of reads 1 to 4: U, V, the gamma numbers, and those whose half decides on the sign.
    """
    made = BallNoise(2.5, d=3).sample(np.zeros((4, 3)), KeyedGenerator(KEY, "ball"))
    distance = 2.5 * np.cbrt(uniform_by_hand("ball", 1, 4))
    size = uniform_by_hand("ball", 2, 12) * np.sqrt(gamma_by_hand("ball", 3, 12, 1.5))
    normal = np.where(uniform_by_hand("ball", 4, 12) < 0.5, -size, size).reshape(4, 3)
    directions = normal / np.sqrt((normal**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(made, distance[:, None] * directions, rtol=1e-9)


def test_the_same_key_and_subject_give_the_same_numbers_and_any_other_do_not():
    def numbers(key, subject):
        rng = KeyedGenerator(key, subject)
        return np.r_[rng.standard_normal(50), rng.laplace(size=50), rng.integers(2**32, size=50)]

    first = numbers(KEY, "a")
    assert (first == numbers(KEY, "a")).all()
    one_bit = bytes([KEY[0] ^ 1]) + KEY[1:]
    for other in (numbers(KEY, "b"), numbers(one_bit, "a"), numbers(new_key(), "a")):
        assert (first != other).all()


def test_reads_do_not_repeat():
    rng = KeyedGenerator(KEY, "a")
    made = np.concatenate([rng.standard_normal(100) for _ in range(20)])
    assert len(np.unique(made)) == 2000


def test_a_key_has_256_bits():
    assert len(new_key()) == 32
    with pytest.raises(ValueError, match=r"^a key has 32 bytes, got 16$"):
        KeyedGenerator(bytes(16), "a")


class TestCanonicalDigests:
    def test_equal_values_are_equal_however_they_are_stored(self):
        table = np.arange(6.0).reshape(2, 3)
        for other in (
            table.astype(np.float32),
            table.astype(int),
            table.astype(">f8"),
            np.asfortranarray(table),
            np.repeat(table, 2, axis=1)[:, ::2],
        ):
            assert canonical_digest({"a": table, "b": 1}) == canonical_digest({"b": np.float64(1.0), "a": other})
        assert canonical_digest(-0.0) == canonical_digest(0)
        assert canonical_digest((1, 2)) == canonical_digest([1.0, 2.0])

    def test_different_values_differ(self):
        values = [
            None,
            False,
            0,
            1e-300,
            "",
            "0",
            b"",
            b"0",
            [],
            [0],
            [[0]],
            [0, 0],
            {},
            {"0": 0},
            ["a", "bc"],
            ["ab", "c"],
            np.zeros(1),
            np.zeros((1, 1)),
            np.zeros((2, 3)),
            np.zeros((3, 2)),
            0.1,
            float(np.float32(0.1)),
            np.nextafter(0.1, 1),
            2**53 + 1,
            2**53 + 3,
            float("nan"),
            float("inf"),
        ]
        assert len({canonical_digest(value) for value in values}) == len(values)

    def test_what_has_no_canonical_bytes_is_refused(self):
        for value in (object(), np.array(["a"]), {1: 0, "1": 0}):
            with pytest.raises(TypeError):
                canonical_digest(value)
