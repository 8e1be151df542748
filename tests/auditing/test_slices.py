"""Slices: who is in which, what is measured of each, and how often nothing is found where there is nothing."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound import metrics
from leakbound.attacks import find
from leakbound.auditing.evaluate import judge
from leakbound.auditing.observed import ObservedRelease
from leakbound.auditing.slices import by_slice
from leakbound.core import games
from leakbound.core.findings import Term
from leakbound.core.types import Points, Scores, Signals
from leakbound.data.slices import SEVERAL
from tests.levels import allowed, sizes
from tests.marks import nightly

LOSS = find(["loss"])[0]
RATES = (0.1, 0.05)
N = 240


def observed(slices, n_models=16, leak=0.0, seed=0, group=None) -> ObservedRelease:
    """Losses of noise and of each record's difficulty; ``leak`` standard deviations lower for members."""
    rng = np.random.default_rng(seed)
    game = games.half_split(N, n_models, seed=seed, group=group) if n_models > 1 else games.one_model(N // 2, N // 2)
    log_odds = rng.normal(size=N) + leak * game.member + rng.normal(size=(n_models, N))
    points = None if group is None else Points(np.zeros((N, 1)), group=group)
    arrays = {"log_odds": log_odds, "loss": np.logaddexp(0, -log_odds)}
    return ObservedRelease("model", Signals(game, points, arrays), slices=slices)


def of(findings, name, quantity="accuracy", **at):
    (found,) = (
        each
        for each in findings
        if (each.scope.kind, each.scope.name, each.quantity) == ("slice", name, quantity)
        and at.items() <= dict(each.operating_point).items()
    )
    return found


TOWN = np.array(["Bern", "Chur", "Zug"])[np.r_[np.zeros(120, int), np.ones(105, int), np.full(15, 2)]]


@pytest.mark.parametrize("n_models", [1, 16])
def test_numbers_are_those_of_the_scores_of_the_slice(n_models) -> None:
    """By the metrics on scores that are cut here, at the level that is computed here."""
    town = np.random.default_rng(1).permutation(TOWN)
    release = observed({"town": town}, n_models, leak=1.0)
    found = by_slice(release, LOSS, RATES, 0.9)
    scores = LOSS(release.signals)
    level = 1 - 0.1 / (2 * (2 + len(RATES)))  # two slices are large enough; for each slice, rest and two rates
    for name in ("Bern", "Chur"):
        inside = town == name
        part, rest = (Scores("loss", scores.value[:, own], scores.member[:, own]) for own in (inside, ~inside))
        number, of_rest = metrics.accuracy(part, 0.5, level), metrics.accuracy(rest, 0.5, level)
        finding = of(found.findings, f"town = {name}")
        assert (finding.value, finding.low, finding.high) == (number.value, number.low, number.high)
        assert finding.detail["records"] == inside.sum()
        assert (finding.detail["rest_low"], finding.detail["rest_high"]) == (of_rest.low, of_rest.high)
        assert finding.confidence == 0.9
        assert finding.method[-1] == Term("all_slices_at_once", intervals=8)
        for rate in RATES:
            assert (
                of(found.findings, f"town = {name}", "tpr", fpr=rate).low == metrics.tpr_at_fpr(part, rate, level).low
            )
    small = of(found.findings, "town = Zug")
    assert (small.value, small.reason.id, small.detail["records"]) == (None, "few_of_each", 15)
    assert found.facts.model_dump() == {"attack": "loss", "columns": ("town",), "intervals": 8, "left_out": 0}


def test_a_leak_in_one_slice_is_found_there_alone() -> None:
    town = np.repeat(["Bern", "Chur", "Zug"], N // 3)
    found = judge(observed({"town": town}, 32, leak=3.0 * (town == "Zug")), find(["loss", "lira"]), RATES, 0.95)
    zug, bern = (of(found.findings, f"town = {name}") for name in ("Zug", "Bern"))
    assert zug.low > 0.8
    assert zug.low > zug.detail["rest_high"]
    assert bern.low < 0.5 < bern.high
    assert bern.high < bern.detail["rest_low"]
    assert zug.attack == found.facts.best


def test_columns_share_the_error() -> None:
    halves = np.arange(N) % 2
    one = by_slice(observed({"a": halves}, leak=1.0), LOSS, RATES, 0.95)
    two = by_slice(observed({"a": halves, "b": halves}, leak=1.0), LOSS, RATES, 0.95)
    assert (one.facts.intervals, two.facts.intervals) == (8, 16)
    first, second = (of(each.findings, "a = 0") for each in (one, two))
    assert first.value == second.value
    assert second.low < first.low


def test_a_unit_is_in_the_slice_of_its_records() -> None:
    group = np.repeat(np.arange(N // 3), 3)
    town = np.where(group < 30, "Bern", "Chur").astype(object)
    town[group == 79] = ["Bern", "Chur", "Chur"]
    found = by_slice(observed({"town": town}, group=group), LOSS, RATES, 0.95)
    sizes_of = {each.scope.name: each.detail["records"] for each in found.findings if each.quantity == "accuracy"}
    assert sizes_of == {"town = Bern": 30, "town = Chur": 49, f"town = {SEVERAL}": 1}


def test_quarters_have_their_ends() -> None:
    age = np.random.default_rng(0).permutation(N) + 10.0
    found = by_slice(observed({"age": age}), LOSS, RATES, 0.95)
    first = of(found.findings, "age = quarter 1 of 4")
    assert (first.detail["from"], first.detail["to"], first.detail["records"]) == (10.0, 69.0, 60)


def test_without_an_attack_every_slice_has_the_reason() -> None:
    found = by_slice(observed({"town": TOWN}), None, RATES, 0.95)
    assert [each.reason.id for each in found.findings] == ["no_attack"] * 3
    assert by_slice(observed({}), LOSS, RATES, 0.95).facts is None


def test_a_target_of_its_own_is_in_no_slice() -> None:
    game = games.average_datum(40, 8, references=8)
    loss = np.random.default_rng(0).exponential(size=game.member.shape)
    release = ObservedRelease("model", Signals(game, None, {"loss": loss}), slices={"town": np.arange(40) % 2})
    assert {each.reason.id for each in by_slice(release, LOSS, RATES, 0.95).findings} == {"target_of_its_own"}


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("n_models", "spread", "n_runs"),
    [*sizes(75, 1, 0.0, full=400), nightly(8, 1.0, 400), nightly(32, 0.0, 400)],
)
def test_no_slice_is_above_the_baseline_where_nothing_is_revealed(n_models, spread, n_runs) -> None:
    """Twelve slices of three columns, in no more games than `allowed` is any slice above the baseline.

    A true level of 5 % exceeds that with a probability of at most .22 %; levels of 20 % are found in 9 of 10 by 75
    games, of 10 % by 400. The same holds for slices that differ from the rest. The losses
    depend on the columns, and not on who is in; whole models shift theirs by ``spread``.
    """
    attacks = find(("loss", "mast", "lira")) if n_models > 1 else find(("loss",))
    n_above = n_apart = 0
    for run in range(n_runs):
        rng = np.random.default_rng(1000 * n_models + run)
        game = games.half_split(N, n_models, seed=run) if n_models > 1 else games.one_model(N // 2, N // 2)
        slices = {
            "town": rng.integers(0, 6, N),
            "hospital": rng.choice(["a", "b"], N, p=[0.85, 0.15]),
            "age": rng.normal(size=N),
        }
        difficulty = 2 * rng.normal(size=N) + slices["town"]
        log_odds = difficulty + spread * rng.normal(size=(n_models, 1)) + rng.normal(size=(n_models, N))
        arrays = {"log_odds": log_odds, "loss": np.logaddexp(0, -log_odds)}
        found = judge(ObservedRelease("null", Signals(game, None, arrays), slices=slices), attacks, RATES, 0.95)
        measured = [each for each in found.findings if each.scope.kind == "slice" and each.quantity == "accuracy"]
        numbers = [(each.low, each.high, each.detail) for each in measured if each.low is not None]
        assert len(numbers) >= 6
        n_above += any(low > 0.5 for low, _, _ in numbers)
        n_apart += any(
            low > detail["rest_high"] or high < detail["rest_low"] for low, high, detail in numbers if "rest" in detail
        )
    assert max(n_above, n_apart) <= allowed(n_runs)


class TestAudits:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(160, 2))
    y = rng.integers(0, 2, 160)
    names = np.array([f"P-{number}" for number in range(160)])

    @classmethod
    @cache
    def plain(cls):
        """The audit without names and slices."""
        return cls().audit()

    def audit(self, **words):
        return ls.audit(DecisionTreeClassifier(), self.X, self.y, n_models=40, n_jobs=1, **words)

    @pytest.mark.parametrize(
        ("column", "line"),
        [(["Bern"] * 160, "slice 'town' has the same value in every record"), (names, "another value in each record")],
    )
    def test_columns_without_groups_are_refused_before_any_fit(self, column, line) -> None:
        class Unfit(DecisionTreeClassifier):
            def fit(self, X, y):
                raise AssertionError("fitted")

        slices = {"town": column}
        with pytest.raises(ValueError, match=line):
            ls.audit(Unfit(), self.X, self.y, n_models=4, n_jobs=1, game=ls.HalfSplit(slices=slices))
        member = np.random.default_rng(0).random((12, 160)) < 0.5
        with pytest.raises(ValueError, match=line):
            ls.audit_scores(np.zeros(member.shape), member, n_jobs=1, slices=slices)

    @pytest.mark.slow
    def test_names_change_no_finding(self) -> None:
        """Byte for byte, and with the same seeds of the fits."""
        plain, named = self.plain(), self.audit(ids=self.names)
        assert named.findings == plain.findings
        table = dict(named.record_table)
        assert table.pop("name") == [f"P-{number}" for number in table["record"]]
        assert table == plain.record_table
        assert named.to_json(records=False) == plain.to_json(records=False)
        assert named.to_html(publish=True) == plain.to_html(publish=True)

    @pytest.mark.slow
    def test_the_most_exposed_record_is_named_to_its_owner_alone(self) -> None:
        report = self.audit(ids=self.names, page=ls.Page(unit="person"))
        frame = report.records().sort_values(["won", "margin"], ascending=False, kind="stable")
        worst = frame["name"].iloc[0]
        text = " ".join(report.table(full=True).split())
        assert f"For the most exposed person, {worst}, the attacker was right" in text
        assert f">{worst}</th>" in report.to_html()
        assert f"most exposed person, {worst}" in report.table()
        free = report.without_records()
        for text in (free.to_json(), free.table(full=True), free.to_html(), report.to_html(records=False)):
            assert not any(f"{name}<" in text or f"{name}," in text or f'{name}"' in text for name in self.names)

    def test_the_index_of_a_frame_names_the_records(self) -> None:
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(self.X, columns=["a", "b"], index=self.names)
        report = ls.audit(DecisionTreeClassifier(), frame, self.y, n_models=4, n_jobs=1)
        assert report.records()["name"].iloc[0] == f"P-{report.records()['record'].iloc[0]}"
        column = ls.audit(
            DecisionTreeClassifier(), frame.reset_index(names="who"), self.y, ids="who", n_models=4, n_jobs=1
        )
        assert column.findings == report.findings
        assert column.about.plan["id"] == "who"
        assert dict(column.record_table) == dict(report.record_table)

    def test_a_unit_is_named_by_its_group(self) -> None:
        report = self.audit(ids=self.names, groups=np.repeat([f"G-{number}" for number in range(80)], 2))
        assert "name" not in report.record_table
        assert str(report.record_table["record"][0]).startswith("G-")

    @pytest.mark.slow
    def test_slices_change_no_other_finding(self) -> None:
        plain, report = self.plain(), self.audit(game=ls.HalfSplit(slices={"half": np.arange(160) % 2}))
        own = [each for each in report.findings if each.scope.kind == "slice"]
        assert [each for each in report.findings if each.scope.kind != "slice"] == list(plain.findings)
        assert {each.attack for each in own} == {report.about.releases[0].best}
        assert report.about.plan["game"] == {"half_split": {"slices": ["half"]}}
        frame = report.to_frame()
        assert {each["name"] for each in frame["scope"] if each["kind"] == "slice"} == {"half = 0", "half = 1"}

    def test_trained_models_scores_and_signals(self) -> None:
        model = DecisionTreeClassifier(random_state=0).fit(self.X[:80], self.y[:80])
        sides = (self.X[:80], self.y[:80]), (self.X[80:], self.y[80:])
        report = ls.audit_model(model, *sides, slices="label", n_jobs=1)
        assert {each.scope.name for each in report.findings if each.scope.kind == "slice"} == {"label = 0", "label = 1"}
        member = np.random.default_rng(0).random((12, 160)) < 0.5
        scores = np.random.default_rng(1).normal(member * 3.0)
        report = ls.audit_scores(scores, member, ids=self.names, slices={"half": np.arange(160) % 2}, n_jobs=1)
        assert report.record_table["name"] == self.names.tolist()
        assert of(report.findings, "half = 1").low > 0.5
        game = games.half_split(160, 12)
        signals = Signals(game, None, {"loss": np.random.default_rng(2).exponential(2.0 - game.member)})
        report = ls.audit_signals(signals, ids=self.names, slices={"half": np.arange(160) % 2}, n_jobs=1)
        assert report.record_table["name"] == self.names.tolist()
        assert of(report.findings, "half = 0").attack == report.about.releases[0].best

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({"ids": "who"}, "id = 'who' names a column of a frame; give an array of names with other features"),
            ({"game": ls.HalfSplit(slices="x7")}, "slice: no column 'x7'"),
        ],
    )
    def test_what_is_refused(self, words, line) -> None:
        with pytest.raises(ValueError, match=line):
            self.audit(**words)


def test_limits_are_for_all_records() -> None:
    member = np.random.default_rng(0).random((12, 200)) < 0.5
    half = np.arange(200) % 2
    scores = np.random.default_rng(1).normal(member * 6.0 * half)
    report = ls.audit_scores(scores, member, slices={"half": half}, policy="accuracy=0.9", n_jobs=1)
    assert of(report.findings, "half = 1").value > 0.95
    assert report.about.decisions[0].verdict == "release"
