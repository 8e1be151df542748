"""Versions of records, and releases that are asked about them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from leakbound.core.types import Points
from leakbound.data import from_arrays
from leakbound.releases.estimator import Estimator
from leakbound.releases.pretrained_model import PretrainedModel
from leakbound.releases.queries import GROWING, NOISE, Queried, Versions, image_shape, shifts
from leakbound.releases.training_function import TrainingFunction

WANT = ["loss", "log_odds", "correct", "log_prob"]
SEEDS = np.array([3, 4])


def table(n: int = 40) -> Points:
    rng = np.random.default_rng(0)
    return from_arrays(rng.normal(size=(n, 3)) * [1, 10, 100], np.arange(n) % 2)


def doubled(x, number):
    """A version of the user's own."""
    return x * (number + 1)


class TestShifts:
    def test_the_smallest_ones_come_first_each_with_its_mirror_image(self):
        listed = shifts(50)
        assert listed[0] == (False, 0, 0)
        assert len(set(listed)) == 50
        assert {shift[1:] for shift in listed[:18]} == {(d, r) for d in (-1, 0, 1) for r in (-1, 0, 1)}
        assert {shift[1:] for shift in listed} == {(d, r) for d in range(-2, 3) for r in range(-2, 3)}
        assert all(
            (*first, True) == (False, *second[1:], second[0])
            for first, second in zip(listed[::2], listed[1::2], strict=True)
        )

    @pytest.mark.parametrize("layout", ["grey", "channels last", "channels first"])
    def test_images_are_moved_and_reflected_at_the_edge(self, layout):
        grey = np.random.default_rng(0).integers(256, size=(3, 6, 7)).astype(np.uint8)
        images = {
            "grey": grey,
            "channels last": np.stack([grey, grey // 2, grey // 3], axis=3),
            "channels first": np.stack([grey, grey // 2, grey // 3], axis=1),
        }[layout]
        versions = Versions(50, "shifts").of(from_arrays(images, [0, 1, 0])).x
        assert versions.dtype == np.uint8
        rows = 2 if layout == "channels first" else 1
        for number, (mirrored, down, right) in enumerate(shifts(50)):
            expected = np.flip(images, rows + 1) if mirrored else images
            pads = [(0, 0)] * images.ndim
            pads[rows] = pads[rows + 1] = (2, 2)
            padded = np.moveaxis(np.pad(expected, pads, mode="reflect"), (rows, rows + 1), (0, 1))
            moved = padded[2 - down : 8 - down, 2 - right : 9 - right]
            expected = np.moveaxis(moved, (0, 1), (rows, rows + 1))
            np.testing.assert_array_equal(versions[3 * number : 3 * number + 3], expected)

    def test_labels_are_those_of_the_points(self):
        images = np.zeros((2, 4, 4), dtype=np.uint8)
        assert Versions(3, "shifts").of(from_arrays(images, [5, 7])).y.tolist() == [5, 7] * 3


class TestNoise:
    def test_each_column_has_noise_of_its_own_size(self):
        points = table(2000)
        versions = Versions(4, "noise").of(points).x.reshape(4, 2000, 3)
        np.testing.assert_array_equal(versions[0], points.x)
        change = versions[1:] - points.x
        np.testing.assert_allclose(change.std(axis=1), [NOISE * points.x.std(axis=0)] * 3, rtol=0.1)
        assert abs(np.corrcoef(change[0, :, 0], change[1, :, 0])[0, 1]) < 0.1  # another draw in each version

    def test_growing_noise_grows(self):
        versions = Versions(9, "growing_noise").of(table(500)).x.reshape(9, 500, 3)
        sizes = (versions[1:] - versions[0]).std(axis=1) / versions[0].std(axis=0)
        np.testing.assert_allclose(sizes.mean(axis=1), np.geomspace(*GROWING, 8), rtol=0.1)

    def test_the_same_seed_gives_the_same_noise_and_another_one_another(self):
        first, same, other = (Versions(3, "noise", seed).of(table()).x for seed in (0, 0, 1))
        np.testing.assert_array_equal(first, same)
        assert (first[40:] != other[40:]).all()

    def test_words_and_missing_values_of_a_frame_stay(self):
        frame = pd.DataFrame({"town": ["Chur", "Bern"] * 4, "age": [20, 30] * 4, "pay": [np.nan, 5.0] * 4})
        versions = Versions(3, "noise").of(from_arrays(frame, [0, 1] * 4)).x
        assert versions["town"].tolist() == ["Chur", "Bern"] * 12
        assert versions["age"][:8].tolist() == frame["age"].tolist()
        assert (versions["age"][8:] != [20, 30] * 8).all()
        assert versions["pay"].isna().tolist() == [True, False] * 12

    def test_pixels_stay_pixels(self):
        images = np.random.default_rng(0).integers(256, size=(5, 4, 4)).astype(np.uint8)
        versions = Versions(3, "noise").of(from_arrays(images)).x
        assert versions.dtype == np.uint8
        assert (versions[5:] != np.concatenate([images, images])).mean() > 0.5


class TestChoice:
    def test_shifts_of_images_and_noise_in_tables(self):
        images = from_arrays(np.zeros((4, 8, 8), dtype=np.uint8), [0, 1, 0, 1])
        assert Versions.for_points(images, 2, None).how == "shifts"
        assert Versions.for_points(table(), 2, None).how == "noise"

    def test_what_are_images(self):
        assert image_shape(np.zeros((2, 3, 8, 9))) == (8, 9)
        assert image_shape(np.zeros((2, 8, 9, 3))) == (8, 9)
        assert image_shape(np.zeros((2, 8, 9))) == (8, 9)
        assert image_shape(np.zeros((2, 8, 9), dtype=int)) is None  # token ids
        assert image_shape(np.zeros((2, 8, 9, 5))) is None
        assert image_shape(np.zeros((2, 8))) is None

    @pytest.mark.parametrize(
        ("x", "n_queries", "how", "line"),
        [
            (np.zeros((9, 3)), 1, None, "n_queries must be >= 2, got 1"),
            (
                np.zeros((9, 3)),
                4,
                "shifts",
                "versions='shifts' moves images, arrays of shape (N, H, W), (N, H, W, 3) or (N, 3, H, W), and these "
                "records are none; give versions='noise' or a function",
            ),
            (
                np.zeros((9, 4, 4), dtype=np.uint8),
                19,
                "shifts",
                "queries must be at most 18 for images of 4 x 4 pixels, whose shifts are at most a quarter of a "
                "side; got 19",
            ),
            (
                ["a", "b"] * 3,
                4,
                None,
                "noise is added to numbers, and x holds texts; give versions=, a function of the records and a number",
            ),
            (
                sparse.csr_matrix(np.eye(6)),
                4,
                "noise",
                "noise is added to numbers, and x holds sparse; give versions=, a function of the records and a number",
            ),
            (
                pd.DataFrame({"town": ["Chur", "Bern"] * 3}),
                4,
                None,
                "noise is added to numbers, and x has no column of numbers; give versions=, a function of the records "
                "and a number",
            ),
            (
                np.zeros((9, 3)),
                4,
                "blur",
                "versions must be shifts, noise, growing_noise, module:function or a function of the features and a "
                "number; got 'blur'",
            ),
        ],
    )
    def test_what_does_not_fit_is_refused_in_one_line(self, x, n_queries, how, line):
        with pytest.raises(ValueError) as caught:
            Versions.for_points(from_arrays(x), n_queries, how)
        assert str(caught.value) == line


class TestFunctions:
    def test_a_function_gets_the_records_and_the_number_of_the_version(self):
        points = table()
        versions = Versions.for_points(points, 3, doubled).of(points).x
        np.testing.assert_array_equal(versions, np.concatenate([points.x, 2 * points.x, 3 * points.x]))

    def test_of_texts(self):
        points = from_arrays(["a fine day", "rain"], [0, 1])

        def shouted(texts, number):
            return [text.upper() + "!" * number for text in texts]

        assert Versions.for_points(points, 3, shouted).of(points).x.as_given == [
            "a fine day", "rain", "A FINE DAY!", "RAIN!", "A FINE DAY!!", "RAIN!!",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("function", "line"),
        [
            (lambda x, number: x[:5], "versions: <lambda> returned 5 records for 40; return as many"),
            (
                lambda x, number: x[:, :2],
                "versions: <lambda> must return records of the kind that it gets: members have features of shape (3,), "
                "others (2,)",
            ),
            (lambda x, number: 1 / 0, "versions: <lambda> fails on 40 records: division by zero"),
        ],
    )
    def test_a_function_that_fails_gets_one_line(self, function, line):
        with pytest.raises(ValueError) as caught:
            Versions.for_points(table(), 3, function).of(table())
        assert str(caught.value) == line


class TestReleases:
    member = np.random.default_rng(1).random((2, 40)) < 0.5

    def test_the_models_are_those_without_versions(self):
        points, plain = table(), Estimator(LogisticRegression())
        asked = Queried(plain, Versions(4, "noise")).observe(points, self.member, SEEDS, WANT)
        alone = plain.observe(points, self.member, SEEDS, WANT)
        assert asked.keys() == {*alone, "query_loss", "query_log_odds", "query_correct"}
        for name in WANT:
            np.testing.assert_array_equal(asked[name], alone[name])

    def test_each_query_is_what_the_model_says_of_that_version(self):
        points = table()
        release = Queried(Estimator(LogisticRegression()), Versions(4, "noise", seed=7))
        seen = release.observe(points, self.member, SEEDS, ["loss", "correct"])
        assert seen["query_loss"].shape == (2, 40, 4)
        versions = Versions(4, "noise", seed=7).of(points).x.reshape(4, 40, 3)
        for row, inside in enumerate(self.member):
            model = LogisticRegression().fit(points.x[inside], points.y[inside])
            for query in range(4):
                p = model.predict_proba(versions[query])[np.arange(40), points.y]
                np.testing.assert_allclose(seen["query_loss"][row, :, query], -np.log(p), rtol=1e-6)
                np.testing.assert_array_equal(seen["query_correct"][row, :, query], p > 0.5)

    def test_a_frame_that_is_encoded(self):
        frame = pd.DataFrame({"town": ["Chur", "Bern", "Thun", "Bern"] * 10, "age": np.arange(40) % 13})
        points = from_arrays(frame, (np.arange(40) // 2) % 2)
        release = Queried(Estimator(LogisticRegression()), Versions(3, "noise")).for_points(points)
        assert "town is one-hot encoded" in release.prepared(points)
        assert release.observe(points, self.member, SEEDS, ["loss"])["query_loss"].shape == (2, 40, 3)

    def test_a_training_function_and_a_trained_model(self):
        points = table()

        def fit(x, y, seed):
            return DecisionTreeClassifier(max_depth=2, random_state=seed).fit(x, y)

        seen = Queried(TrainingFunction(fit), Versions(3, "noise")).observe(points, self.member, SEEDS, ["correct"])
        assert seen["query_correct"].shape == (2, 40, 3)
        model = fit(points.x, points.y, 0)
        trained = Queried(PretrainedModel(model.predict_proba), Versions(3, "noise"))
        one = trained.observe(points, np.ones((1, 40), dtype=bool), SEEDS[:1], ["correct"])
        predicted = model.predict(Versions(3, "noise").of(points).x).reshape(3, 40).T
        np.testing.assert_array_equal(one["query_correct"][0], predicted == points.y[:, None])

    def test_refits_that_know_nothing_of_the_game_are_not_made_of_versions(self):
        release = Queried(Estimator(LogisticRegression()), Versions(3, "noise"))
        assert release.observe(table(), self.member, SEEDS, ["loss", "taylor"]).keys() == {"loss", "query_loss"}

    def test_the_store_tells_versions_apart(self):
        plain = Estimator(LogisticRegression())
        descriptions = [
            Queried(plain, versions).describe()
            for versions in (
                Versions(3, "noise"),
                Versions(4, "noise"),
                Versions(3, "growing_noise"),
                Versions(3, "noise", seed=1),
                Versions(3, doubled),
            )
        ]
        assert None not in descriptions
        assert len({str(description) for description in descriptions}) == 5
        assert plain.describe() not in descriptions

    def test_a_lambda_has_no_name_in_the_store(self):
        release = Queried(Estimator(LogisticRegression()), Versions(3, lambda x, number: x))
        assert release.describe() is None
        assert "lambda" in release.not_stored
