"""Statistics as releases: naive twins, failures that are rows of NaN, public shapes, canonical descriptions."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge

from leakbound.core.seeds import stream, subsets
from leakbound.core.types import Points, Release
from leakbound.releases.statistics.algorithms import Function
from leakbound.releases.statistics.features import Cells
from leakbound.releases.statistics.logistic import Logistic
from leakbound.releases.statistics.statistic import STATISTICS, Covariance, Fit, Linear, named
from leakbound.runtime import pool

HERE = "tests.releases.user_functions"
EXACT = {"tol": 1e-13, "solver": "newton-cholesky"}
N, D = 200, 3
X = np.random.default_rng(0).normal(size=(N, D)) * [1.0, 20.0, 0.1] + [5.0, 40.0, 0.0]
Y = (X[:, 0] + np.random.default_rng(1).normal(size=N) > 5).astype(int)
PLAIN, LABELLED = Points(X, digest="x"), Points(X, Y, digest="xy")
MEMBER = subsets(N, 80, 6, stream(0, "calibrate"))
SEEDS = np.arange(6)


def output(statistic: Linear | Covariance | Fit, points: Points = PLAIN, member: np.ndarray = MEMBER) -> np.ndarray:
    return statistic.observe(points, member, np.arange(len(member)))["output"]


def each(function, x=X, member=MEMBER) -> np.ndarray:
    return np.array([np.ravel(function(x[row])) for row in member])


EDGES = tuple(np.linspace(0, 10, 6).tolist())
TWINS = {
    "mean": (named("mean"), lambda x: x.mean(axis=0)),
    "sum": (named("sum"), lambda x: x.sum(axis=0)),
    "second_moment": (named("second_moment"), lambda x: (x.T @ x / len(x))[np.triu_indices(D)]),
    "covariance": (named("covariance"), lambda x: np.cov(x.T, bias=True)[np.triu_indices(D)]),
    "histogram": (named("histogram", columns=("x0",), edges=(EDGES,)), lambda x: np.histogram(x[:, 0], EDGES)[0]),
    "table": (
        Linear("table", Cells(("x3",), ((0, 1),)), "sum"),
        lambda x: [(x[:, 3] == 0).sum(), (x[:, 3] == 1).sum()],
    ),
    "quantiles": (
        named("quantiles", probabilities=(0.1, 0.5)),
        lambda x: [np.percentile(x[:, j], p) for p in (10, 50) for j in range(D)],
    ),
    "ols": (named("ols"), lambda x: least_squares(x[:, :-1], x[:, -1])),
    "standard_errors": (named("standard_errors"), lambda x: standard_errors(x[:, :-1], x[:, -1])),
    "logistic": (
        named("logistic", penalty=0.3),
        lambda x: logistic(x[:, :-1], x[:, -1]),
    ),
    "correlation": (named("correlation"), lambda x: np.corrcoef(x.T)[np.triu_indices(D, 1)]),
    "ratio": (named("ratio", denominator="x1"), lambda x: np.delete(x, 1, axis=1).sum(axis=0) / x[:, 1].sum()),
    "ridge": (named("ridge", penalty=7.0), lambda x: coefficients(Ridge(7.0), x)),
    "poisson": (named("poisson"), lambda x: coefficients(PoissonRegressor(alpha=0, **EXACT), x)),
    "huber": (named("huber", threshold=0.5), lambda x: soft_l1(x[:, :-1], x[:, -1], 0.5)),
}
COUNTED = np.column_stack([X[:, [0, 2]], np.random.default_rng(4).poisson(np.exp(X[:, 0] - 4))])
OF_OWN = {"table": np.column_stack([X, Y]), "logistic": np.column_stack([X[:, [0, 2]], Y]), "poisson": COUNTED}


def least_squares(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    model = LinearRegression().fit(x, y)
    return np.r_[model.intercept_, model.coef_]


def standard_errors(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """As textbooks print them."""
    rows = np.column_stack([np.ones(len(x)), x])
    residual = y - rows @ least_squares(x, y)
    variance = residual @ residual / (len(x) - rows.shape[1])
    return np.sqrt(variance * np.diag(np.linalg.inv(rows.T @ rows)))


def coefficients(model, x: np.ndarray) -> np.ndarray:
    model.fit(x[:, :-1], x[:, -1])
    return np.r_[model.intercept_, model.coef_]


def soft_l1(x: np.ndarray, y: np.ndarray, threshold: float) -> np.ndarray:
    """The pseudo-Huber loss by its name in scipy."""
    rows, start = np.column_stack([np.ones(len(x)), x]), least_squares(x, y)
    words = {"loss": "soft_l1", "f_scale": threshold, "x_scale": "jac", "xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    return optimize.least_squares(lambda theta: rows @ theta - y, start, lambda theta: rows, **words).x


def logistic(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    model = LogisticRegression(C=0.3, **EXACT).fit(x, y)
    return np.r_[model.intercept_, model.coef_[0]]


@pytest.mark.parametrize("name", STATISTICS)
def test_each_row_is_the_statistic_of_its_members(name):
    statistic, twin = TWINS[name]
    x = OF_OWN.get(name, X)
    points = Points(x)
    assert isinstance(statistic, Release)
    made = output(statistic, points)
    np.testing.assert_allclose(made, each(twin, x), rtol=1e-6 if name == "huber" else 1e-9)
    assert len(statistic.labels(points)) == len(set(statistic.labels(points))) == made.shape[1]
    assert statistic.name == name
    assert json.loads(json.dumps(statistic.describe())) == json.loads(json.dumps(statistic.describe()))
    np.testing.assert_allclose(output(statistic, points, np.asfortranarray(MEMBER)), made, rtol=1e-12)
    assert statistic.observe(points, MEMBER, SEEDS, ("loss",)) == {}


def test_descriptions_tell_statistics_apart():
    statistics = [twin[0] for twin in TWINS.values()] + [named("quantiles"), named(f"{HERE}:range_of")]
    texts = [json.dumps(statistic.describe(), sort_keys=True) for statistic in statistics]
    assert len(set(texts)) == len(texts)
    assert all('"numpy"' in text for text in texts)


def test_labels_are_for_people():
    frame = pd.DataFrame(X, columns=["age", "pay", "days"])
    assert named("mean").labels(Points(frame)) == ["mean of age", "mean of pay", "mean of days"]
    assert named("covariance").labels(Points(frame))[1] == "covariance of age pay"
    assert named("quantiles", probabilities=(0.5,)).labels(Points(frame))[2] == "quantile 0.5 of days"
    assert named("correlation").labels(Points(frame))[1] == "correlation of age days"
    for name, settings in (("ols", {}), ("ridge", {}), ("poisson", {}), ("huber", {"threshold": 1.0})):
        assert named(name, **settings).labels(Points(frame)) == ["intercept", "age", "pay"]
    assert named("logistic").labels(Points(frame, Y)) == ["intercept", "age", "pay", "days"]
    assert named(f"{HERE}:range_of", shape=(2,)).labels(PLAIN) == ["range_of[0]", "range_of[1]"]
    assert named(f"{HERE}:slope", shape=()).labels(LABELLED) == ["slope"]


def test_a_frame_gives_what_its_array_gives():
    frame = pd.DataFrame(X, columns=["age", "pay", "days"])
    for name in ("mean", "covariance", "quantiles", "ols"):
        np.testing.assert_allclose(output(named(name), Points(frame)), output(named(name)), rtol=1e-12)


def test_regressions_on_labels():
    noisy = X @ [1.0, 0.5, -2.0] + np.random.default_rng(2).normal(size=N)
    made = output(named("ols"), Points(X, noisy))
    np.testing.assert_allclose(made, [least_squares(X[row], noisy[row]) for row in MEMBER], rtol=1e-8)
    words = np.where(Y == 1, "yes", "no")
    regression = Fit("logistic", Logistic.standardised(Points(X, words)))
    centre, spread = X.mean(axis=0), X.std(axis=0)
    expected = []
    for row in MEMBER:  # fitted to standardised columns, in units of the columns as they are
        twin = LogisticRegression(**EXACT).fit(((X - centre) / spread)[row], Y[row])
        slopes = twin.coef_[0] / spread
        expected.append(np.r_[twin.intercept_ - slopes @ centre, slopes])
    np.testing.assert_allclose(output(regression, Points(X, words)), expected, rtol=1e-6)


def test_dependent_columns_have_no_coefficients():
    doubled = np.column_stack([X[:, :1], X[:, :1], X[:, 1:2]])
    assert np.isnan(output(named("ols"), Points(doubled))).all()


def test_covariances_keep_their_digits_far_from_zero():
    far = np.random.default_rng(5).normal(size=(N, 2)) + 1e6
    twin = each(lambda x: np.cov((x - 1e6).T, bias=True)[np.triu_indices(2)], far)
    np.testing.assert_allclose(output(named("covariance"), Points(far)), twin, rtol=1e-8)


def test_failures_are_rows_of_nan():
    empty = np.array([[False] * N, [True] * N])
    for name in ("mean", "covariance"):
        assert np.isnan(output(named(name), member=empty)).all(axis=1).tolist() == [True, False]
    assert output(named("sum"), member=empty)[0].tolist() == [0, 0, 0]
    assert np.isnan(output(named("quantiles"), member=empty)).all(axis=1).tolist() == [True, False]
    huge = Points(np.array([[1e308], [1e308], [1.0], [2.0]]))
    pairs = np.array([[True, True, False, False], [False, False, True, True]])
    assert np.isnan(output(named("mean"), huge, pairs)[:, 0]).tolist() == [True, False]
    assert np.isnan(output(named("covariance"), huge, pairs)[0, 0])
    one_class = np.stack([Y == 1, np.ones(N, dtype=bool)])
    regression = Fit("logistic", Logistic.standardised(LABELLED))
    assert np.isnan(output(regression, LABELLED, one_class)).all(axis=1).tolist() == [True, False]


def test_a_function_that_fails_in_every_way():
    """Seven failures, then two runs that work: the others are never stopped, and the shape is the public one."""
    points = Points(np.arange(9.0)[:, None])
    member = np.triu(np.ones((9, 9), dtype=bool))  # the smallest record of row i is i
    made = output(named(f"{HERE}:moody", shape=(2,)), points, member)
    assert np.isnan(made).all(axis=1).tolist() == [True] * 7 + [False] * 2
    assert made[7:].tolist() == [[1, 7], [1, 8]]


def test_a_shape_of_as_many_numbers_is_another_shape():
    assert np.isnan(output(named(f"{HERE}:range_of", shape=(1, 3)))).all()


def test_the_shape_comes_from_a_calibration():
    fit = named(f"{HERE}:moody")
    points, member = Points(np.arange(9.0)[:, None]), np.triu(np.ones((9, 9), dtype=bool))
    line = r"^moody: give the shape of its output, as shape=\(3,\), or settle it on a public fit$"
    with pytest.raises(ValueError, match=line):
        output(fit, points, member)
    assert fit.settled(points, member[[0, 8]]).shape == (2,)
    assert fit.settled(points, member[[3, 8]]).shape == (1,)  # a list of one is a shape too
    assert named(f"{HERE}:moody", shape=(5,)).settled(points, member[[8]]).shape == (5,)
    with pytest.raises(ValueError, match=r"^moody cannot be computed on any of 2 data sets: will not$"):
        fit.settled(points, member[:2])
    with pytest.raises(ValueError, match=r"^quantiles cannot be .*: column x0 holds no numbers; leave it out, or enco"):
        named("quantiles").settled(Points(np.array([["a"], ["b"]])), np.ones((1, 2), dtype=bool))


def test_functions_get_labels_and_a_generator_if_they_take_them():
    slopes = output(named(f"{HERE}:slope", shape=()), LABELLED)
    np.testing.assert_allclose(slopes[:, 0], [np.cov(X[row, 0], Y[row])[0, 1] for row in MEMBER])
    bootstrap = named(f"{HERE}:bootstrap", shape=(D,))
    made = output(bootstrap)
    assert (made == output(bootstrap)).all()
    assert not np.isclose(made, each(lambda x: x.mean(axis=0))).any()
    again = bootstrap.observe(PLAIN, MEMBER[:1], SEEDS[3:4])["output"]
    assert not (again == made[:1]).any()  # another seed


def test_a_function_that_works_in_place_leaves_the_data_alone():
    before = X.copy()
    made = output(named(f"{HERE}:alters_its_data", shape=(D,)))
    np.testing.assert_allclose(made, each(lambda x: x.std(axis=0)))
    assert (before == X).all()


def test_functions_are_known_by_path_and_source():
    described = named(f"{HERE}:range_of", shape=(D,)).describe()
    assert described["statistic"] == f"{HERE}:range_of"
    assert len(described["source"]) == 64
    assert described["shape"] == [D]
    assert Function(np.median).path == "numpy:median"
    assert Fit("mine", Function(lambda x: x.mean()), ()).describe() is None

    def local(x):
        return x.mean()

    assert Fit("mine", Function(local), ()).describe() is None


@pytest.mark.slow
def test_workers_give_the_same():
    statistic = named(f"{HERE}:bootstrap", shape=(D,))
    tasks = [(PLAIN, MEMBER[rows], SEEDS[rows]) for rows in (slice(0, 3), slice(3, 6))]
    made = dict(pool.run(statistic.observe, tasks, 2))
    np.testing.assert_array_equal(np.concatenate([made[row]["output"] for row in range(2)]), output(statistic))


@pytest.mark.parametrize(
    ("act", "line"),
    [
        (lambda: named("meen"), f"unknown statistic 'meen' (did you mean 'mean'?); known: {', '.join(STATISTICS)}"),
        (lambda: named("mean", centre=1), "unknown parameter of mean 'centre'; known: none"),
        (
            lambda: named("quantiles", probabilites=(0.5,)),
            "unknown parameter of quantiles 'probabilites' (did you mean 'probabilities'?); known: probabilities",
        ),
        (lambda: named("histogram"), "histogram needs columns, edges; got nothing"),
        (lambda: named("mean", shape=(3,)), "the shape of mean follows from its columns; shape is for functions"),
        (
            lambda: named("quantiles", probabilities=(1.5,)),
            "a quantile's probability is a fraction: 1.5 is out of range; did you mean 0.015? It must be >= 0 and <= 1",
        ),
        (lambda: named("quantiles", probabilities=()), "probabilities must be at least one number in [0, 1]"),
        (lambda: named("logistic", penalty=0.0), "penalty must be > 0, got 0"),
        (lambda: named("ridge", penalty=-1.0), "penalty must be >= 0, got -1"),
        (lambda: named("huber"), "huber needs threshold, penalty; got nothing"),
        (lambda: named("huber", threshold=0.0), "threshold must be > 0, got 0"),
        (
            lambda: named(f"{HERE}:NOT_A_FUNCTION"),
            f"{HERE}:NOT_A_FUNCTION must be a function of the records alone; got 3",
        ),
        (
            lambda: output(named("mean"), Points(X[:, 0])),
            "x must have a row for each record and a column for each number, got shape (200,)",
        ),
    ],
)
def test_bad_input(act, line):
    with pytest.raises(ValueError) as error:
        act()
    assert str(error.value) == line


def test_regressions_refuse_what_they_cannot_explain():
    everyone = np.ones((1, N), dtype=bool)
    with pytest.raises(ValueError, match=r"^ols cannot .*: a regression needs a column besides its response, got x0$"):
        named("ols").settled(Points(X[:, :1]), everyone)
    three = Points(X, np.arange(N) % 3)
    with pytest.raises(ValueError, match=r"a logistic regression needs 2 classes, got 3$"):
        named("logistic").settled(three, everyone)
    with pytest.raises(ValueError, match=r"^poisson cannot .*: the response of a Poisson regression must be >= 0"):
        named("poisson").settled(Points(X, np.arange(N) - 1.0), everyone)
    with pytest.raises(ValueError, match=r"^correlation cannot .*: a correlation needs two columns, got x0$"):
        named("correlation").settled(Points(X[:, :1]), everyone)
    with pytest.raises(ValueError, match=r"^correlation cannot .*: column x1 is constant: it has no correlation$"):
        named("correlation").settled(Points(X * [1, 0, 1]), everyone)
    short = named("logistic", centre=(0.0,))
    with pytest.raises(ValueError, match=r"centre has 1 numbers, the data 3 explanatory columns$"):
        short.settled(LABELLED, everyone)
