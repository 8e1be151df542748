"""Attacks of a user's own: functions in the place of names, signals of any name, and the line that a mistake gets."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.attacks import ATTACKS, UNKNOWN_INFLATION, Attack, AttackFailed, from_function, in_moments, out_moments
from leakbound.core.types import Signals, WrongScores

GAME = ls.games.half_split(200, 16)
LOSS = np.random.default_rng(0).exponential(np.where(GAME.member, 0.5, 1.0))
SIGNALS = Signals(GAME, None, {"loss": LOSS})


def negative_loss(signals, *, power=1.0):
    """Minus the loss.

    Not in the summary.
    """
    return -(signals.targets("loss") ** power)


def gaussians(signals):
    own = signals.targets("log_odds")
    inside, outside = in_moments(signals, "log_odds"), out_moments(signals, "log_odds")
    return (((own - outside.mean) / outside.std) ** 2 - ((own - inside.mean) / inside.std) ** 2) / 2


def test_a_function_is_an_attack():
    (attack,) = ls.attacks.find(negative_loss)
    assert (attack.name, attack.title, attack.summary, attack.by_name) == (
        "negative_loss", "negative_loss", "Minus the loss.", True,
    )  # fmt: skip
    assert set(attack.signals) == {"loss", "log_odds", "correct", "log_prob"}
    scores = attack(SIGNALS)
    np.testing.assert_array_equal(scores.value, -LOSS)
    np.testing.assert_array_equal(scores.points, GAME.target_points)


def test_its_keywords_are_the_parameters_of_the_attack():
    attack = from_function(negative_loss).with_parameters(power=0.5)
    assert attack.name == "negative_loss(power=0.5)"
    np.testing.assert_array_equal(attack(SIGNALS).value, -np.sqrt(LOSS))


def test_functions_and_names_mix():
    assert [row.name for row in ls.attacks.find(["lira", negative_loss, ATTACKS["gap"]])] == [
        "lira", "negative_loss", "gap",
    ]  # fmt: skip
    assert [row.name for row in ls.attacks.find([negative_loss, negative_loss])] == ["negative_loss"]


@pytest.mark.slow
def test_an_audit_takes_a_function():
    X, y = load_wine(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    report = ls.audit(tree, X, y, n_models=16, n_jobs=1, attacks=["lira", gaussians])
    assert set(report.about.attacks) == {"lira", "gaussians"}
    assert report.about.plan["attacks"] == ["lira", "gaussians"]
    assert "gaussians" in report.table(full=True)
    # an attack that also reads log_prob gets it
    alone = ls.audit(tree, X, y, n_models=8, n_jobs=1, attacks=lambda_free)
    assert report.curve("gaussians").advantage() > 0
    assert alone.curve("lambda_free").advantage() >= 0


def lambda_free(signals):
    return signals.targets("log_prob").max(axis=-1)


def test_intervals_are_as_wide_as_those_of_any_attack_with_references():
    """A function may use references in any way, so that its intervals assume the worst that was measured."""
    with_references, without = from_function(negative_loss), from_function(negative_loss, needs_references=False)
    assert with_references(SIGNALS).variance_inflation == max(row.variance_inflation or 1.0 for row in ATTACKS.values())
    assert without(SIGNALS).variance_inflation == 1.0


def against_the_other_targets(signals):
    """Compare the loss with that of the other attacked models, whatever the game calls references."""
    loss = signals.targets("loss")
    return loss.mean(axis=0) - loss


def against_references(signals):
    """Compare the loss with its mean over the references without the record."""
    return out_moments(signals, "loss").mean - signals.targets("loss")


def test_a_function_that_compares_targets_gets_wide_intervals_in_every_game():
    """With separate references it is tried whether a target's scores change without the other targets."""
    separate = replace(SIGNALS, game=replace(GAME, n_targets=8))
    assert from_function(against_the_other_targets)(separate).variance_inflation == UNKNOWN_INFLATION
    assert from_function(against_references)(separate).variance_inflation == 1.0
    assert from_function(against_references)(SIGNALS).variance_inflation == UNKNOWN_INFLATION
    assert from_function(against_the_other_targets, variance_inflation=2.0)(SIGNALS).variance_inflation == 2.0
    report = ls.audit_signals(separate, attacks=[against_the_other_targets], claims="epsilon=1,adjacency=replace_one")
    (epsilon,) = (each for each in report.findings if each.quantity == "epsilon")
    assert epsilon.reason is not None
    assert epsilon.reason.id == "targets_not_independent"


def test_an_attack_of_ones_own_takes_the_allowance_unless_it_says_another():
    own = Attack("own", "Own", against_references, ("loss",), "", "", needs_references=True)
    assert own(SIGNALS).variance_inflation == UNKNOWN_INFLATION
    assert replace(own, variance_inflation=1.5)(SIGNALS).variance_inflation == 1.5


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda signals: 0, "an attack needs a name: define it by def, or use ls.attacks.from_function"),
        (functools.partial(negative_loss, power=2.0), "an attack needs a name: define it by def"),
        (3, "expected the name of an attack or a function of signals, got a int"),
    ],
)
def test_what_is_no_named_function_is_refused(given, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        ls.attacks.find([given])


def test_the_name_of_an_attack_of_the_table_is_taken():
    def loss(signals):
        return signals.targets("loss")

    with pytest.raises(ValueError, match=r"^'loss' is an attack of leakbound; give your own another name"):
        ls.attacks.find(["loss", loss])
    other = from_function(lambda_free, name="negative_loss")
    with pytest.raises(ValueError, match=r"^two attacks have the name 'negative_loss'"):
        ls.attacks.find([negative_loss, other])


EXPECTED = r"expected \(16, 200\): a score for each of 16 attacked models and 200 target points"


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda: LOSS[0], rf"attack 'mine' returned an array of shape \(200,\), {EXPECTED}, higher = member"),
        (lambda: LOSS.T, rf"attack 'mine' returned an array of shape \(200, 16\), {EXPECTED}, higher = member"),
        (lambda: None, rf"attack 'mine' returned a NoneType, {EXPECTED}, as an array of numbers"),
        (lambda: LOSS.tolist(), rf"attack 'mine' returned a list, {EXPECTED}, as an array of numbers"),
        (lambda: LOSS.astype(str), rf"attack 'mine' returned an array of <U32, {EXPECTED}, as numbers"),
        (
            lambda: np.where(np.median(LOSS) < LOSS, np.nan, LOSS),
            r"attack 'mine' returned 1,600 NaN or infinite scores of 3,200, in an array of shape \(16, 200\); expected "
            "finite numbers",
        ),
    ],
)
def test_the_line_that_wrong_scores_get(returned, message):
    def mine(signals):
        return returned()

    with pytest.raises(WrongScores, match=f"^{message}") as caught:
        ls.audit_signals(SIGNALS, attacks=[mine])
    assert "\n" not in str(caught.value)


def raises(error):
    raise error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("logits"), "KeyError: 'logits'"),
        (ValueError("operands could not be broadcast\ntogether"), "ValueError: operands could not be broadcast"),
        (AssertionError(), "AssertionError"),
    ],
)
def test_an_attack_that_fails_is_named_with_what_it_was_given(error, told):
    def mine(signals):
        raises(error)

    with pytest.raises(AttackFailed) as caught:
        ls.audit_signals(SIGNALS, attacks=["loss", mine])
    assert str(caught.value) == (
        f"attack 'mine' fails with {told}; it was given loss (16, 200), of 16 models and 200 points, and scores 16 "
        "attacked models at 200 target points"
    )
    assert caught.value.__cause__ is error


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(("error", "n_fits"), [(KeyError("los"), 1), (ValueError("no neighbours"), 9)])
def test_a_mistake_in_an_attack_is_found_before_the_first_fit_of_the_audit(error, n_fits):
    """Other errors may come from the random numbers of the trial: they are told after the fits."""
    fits = []

    class Counted(DecisionTreeClassifier):
        def fit(self, X, y):
            fits.append(len(X))
            return super().fit(X, y)

    def mine(signals):
        raises(error)

    with pytest.raises(AttackFailed, match=f"^attack 'mine' fails with {type(error).__name__}"):
        ls.audit(Counted(), *load_wine(return_X_y=True), n_models=8, n_jobs=1, attacks=[mine])
    assert len(fits) == n_fits


def test_whole_numbers_and_truths_are_scores():
    def small(signals):
        return signals.targets("loss") < 0.5

    assert from_function(small)(SIGNALS).value.dtype == np.float64


@pytest.mark.usefixtures("as_users_run_it")
def test_a_wrong_shape_is_found_before_the_first_fit_of_the_audit():
    fits = []

    class Counted(DecisionTreeClassifier):
        def fit(self, X, y):
            fits.append(len(X))
            return super().fit(X, y)

    def one_row(signals):
        return signals.targets("loss")[0]

    with pytest.raises(WrongScores, match=r"^attack 'one_row' returned an array of shape"):
        ls.audit(Counted(), *load_wine(return_X_y=True), n_models=8, n_jobs=1, attacks=[one_row])
    assert len(fits) == 1  # the trial on a few points


class TestSignalsOfAnyName:
    def test_an_attack_asks_for_them_by_name(self):
        logins = np.random.default_rng(1).integers(0, 3, GAME.member.shape) + GAME.member

        def often(signals):
            return signals.targets("logins")

        report = ls.audit_signals(Signals(GAME, None, {"logins": logins}), attacks=[often])
        assert report.curve("often").advantage() > 0.2

    def test_they_may_have_more_axes(self):
        waves = np.random.default_rng(1).normal(size=(*GAME.member.shape, 5, 2))
        assert Signals(GAME, None, {"waves": waves}).targets("waves").shape == (16, 200, 5, 2)

    def test_a_release_gives_them(self):
        class Mean:
            name, chunk = "mean", 4

            def describe(self):
                return None

            def observe(self, points, member, seeds, want):
                means = np.stack([points.x[inside].mean(axis=0) for inside in member])
                return {"distance": ((means[:, None] - points.x[None]) ** 2).sum(axis=2)}

        def near(signals):
            return -signals.targets("distance")

        points = ls.data.from_arrays(np.random.default_rng(0).normal(size=(40, 2000)))
        game = ls.games.half_split(40, 8)
        signals = ls.signals_of(Mean(), points, game, ["distance"], n_jobs=1)
        assert ls.metrics.auc(from_function(near)(signals)).value > 0.9

    @pytest.mark.parametrize(
        ("given", "asked", "message"),
        [
            ("los", "loss", "needs the signal loss, which is not given; is 'los' a misspelling of it?"),
            ("loss", "los", "needs the signal los, which this release does not give (did you mean 'loss'?)"),
            ("logins", "login", "needs the signal login, which this release does not give (did you mean 'logins'?)"),
            ("log_odds", "log_prob", "needs the signal log_prob, which this release does not give"),
            ("logins", "taylor", "needs the signal taylor, which this release does not give"),
        ],
    )
    def test_a_misspelt_name_gets_a_hint(self, given, asked, message):
        with pytest.raises(ls.NotApplicable) as caught:
            Signals(GAME, None, {given: LOSS}).array(asked)
        assert str(caught.value) == message

    def test_the_hint_is_in_the_error_of_an_audit(self):
        with pytest.raises(ValueError, match=r"^attack 'loss' cannot run: .* is 'los' a misspelling of it"):
            ls.audit_signals(Signals(GAME, None, {"los": LOSS}), attacks=["loss"])
