"""The curve of a certificate: computed again by loops, what of it is published, limits that are declared beforehand."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import ndtr

import leakbound as ls
from leakbound.core.tradeoff import Piecewise
from leakbound.plans.protects import ProtectionPlan
from leakbound.protection.certificate.curves import ceiling_of, rounded_up_to_1_2_5
from leakbound.protection.certificate.release_command import command_of_plan
from leakbound.protection.ledger.budget import BudgetLedger as ReleaseLedger
from leakbound.reports import Report
from tests.cli.calling import caller
from tests.promising import calibrate, declare, protect

FPR = (0.01, 0.001)
WAGES = np.random.default_rng(0).lognormal(3, 0.5, 200)
FRAME = pd.DataFrame({"person": [f"p{place}" for place in range(200)], "wage": WAGES})
LIMITED = ls.File(games=0, at_most="tpr@0.001=0.003")


def rates(report: Report, release: str = "") -> dict[float, float]:
    """True positive rates of any attacker by false positive rate."""
    found = [each for each in report.findings if each.quantity == "tpr" and each.release == release]
    return {each.operating_point["fpr"]: each.value for each in found}


def brute_force(table: np.ndarray, fpr: float, reserve: float = 0.0) -> float:
    """Largest power over all records of the attacker who is told the other record, by the root of its closed form."""
    powers = []
    for record in range(len(table)):
        u = np.sqrt(np.square(np.delete(table, record, axis=0) - table[record]).sum(axis=1) + reserve**2)
        low, high = -20.0, 20.0
        for _ in range(60):
            t = (low + high) / 2
            low, high = (t, high) if ndtr(-u / 2 - t / u).mean() > fpr else (low, t)
        powers.append(float(ndtr(u / 2 - low / u).mean()))
    return max(powers)


def whitened(values: np.ndarray, scale: float) -> np.ndarray:
    return (values.sum() - values)[:, None] / (len(values) - 1) / scale


class TestAnyone:
    def test_it_is_that_of_gaussian_differential_privacy(self) -> None:
        made = ls.calibrate("mean", FRAME[["wage"]], promise=ls.Anyone(ranges={"wage": (0, 80)}), eta=0.05)
        mu = 2 * stats.norm.ppf(0.55)
        expected = {fpr: pytest.approx(stats.norm.cdf(stats.norm.ppf(fpr) + mu), rel=1e-9) for fpr in FPR}
        assert rates(made.certificate) == expected
        assert rates(made.certificate)[0.001] == pytest.approx(0.0023, abs=5e-5)
        assert made.certificate.curves[0].tradeoff.mu == pytest.approx(mu)

    def test_that_of_the_whole_ledger(self, tmp_path) -> None:
        made = ls.protect(
            "mean",
            FRAME[["wage"]],
            promise=ls.Anyone(ranges={"wage": (0, 80)}),
            eta=0.05,
            budget=0.08,
            ledger=tmp_path / "l",
        )
        mu = 2 * stats.norm.ppf(0.58)
        content = json.loads(made.to_json())
        for report in (made.certificate, made.owner):
            joint = {each.quantity: each for each in report.findings if each.release == "joint_of_one"}
            expected = {fpr: pytest.approx(stats.norm.cdf(stats.norm.ppf(fpr) + mu), rel=1e-9) for fpr in FPR}
            assert rates(report, "joint_of_one") == expected
            assert joint["mu"].value == pytest.approx(mu)
            epsilon = joint["epsilon"].value
            delta = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
            assert delta == pytest.approx(1e-5, rel=1e-6)
        assert [each["tradeoff"]["kind"] for each in content["curves"]] == ["gaussian", "gaussian"]
        assert "On seeing all releases of this ledger: at 1 % false alarms in no more than 2.8 % of cases." in in_words(
            made.certificate
        )


def in_words(report: Report) -> str:
    return " ".join(report.table(full=True).replace("\u2009", " ").split())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A released mean under the promise to a file."""
    path = tmp_path_factory.mktemp("file") / "ledger.json"
    return ls.protect("mean", FRAME[["wage"]], promise=ls.File(games=0), eta=0.05, ledger=path)


class TestFile:
    def test_the_owner_has_all_of_it_at_the_printed_scale(self, made) -> None:
        table = whitened(WAGES, made.noise.scale)
        for fpr, rate in rates(made.owner).items():
            exact = brute_force(table, fpr)
            assert exact * (1 - 1e-3) <= rate <= exact * 1.005  # on the grid, and lengths are rounded up
            assert rate == pytest.approx(float(made.owner.curves[0].tradeoff.tpr_at(fpr)))
        fpr = np.geomspace(1e-5, 1, 200)
        assert (made.owner.curves[0].tradeoff.tpr_at(fpr) <= np.minimum(fpr + 0.1, 1) + 1e-12).all()

    def test_steps_of_it_are_published(self, made) -> None:
        steps = [digit * 10.0**power for power in (-4, -3, -2, -1) for digit in (1, 2, 5)]
        exact = {fpr: brute_force(whitened(WAGES, made.noise.scale), fpr) for fpr in FPR}
        expected = {fpr: pytest.approx(min(step for step in steps if step >= exact[fpr])) for fpr in FPR}
        assert rates(made.certificate) == expected
        owner, public = made.owner.curves[0].tradeoff, made.certificate.curves[0].tradeoff
        fpr = np.geomspace(1e-5, 1, 500)
        assert (owner.tpr_at(fpr) <= public.tpr_at(fpr) + 1e-12).all()
        assert (public.tpr_at(fpr) <= np.minimum(fpr + 0.1, 1) + 1e-12).all()
        assert "rounded up to 1, 2 or 5 times a power of ten" in in_words(made.certificate)
        exact = next(each.value for each in made.owner.findings if each.quantity == "tpr")
        assert f"{exact:.5f}"[1:] not in made.to_json()

    def test_declared_noise_publishes_nothing_of_it(self, tmp_path) -> None:
        scale = 2.0
        made = ls.protect(
            "mean", FRAME[["wage"]], promise=ls.File(games=0, scale=scale), eta=0.05, ledger=tmp_path / "l"
        )
        assert rates(made.certificate) == {fpr: pytest.approx(fpr + 0.1) for fpr in FPR}
        assert rates(made.owner)[0.001] < 0.003
        assert "power of ten" not in in_words(made.certificate)

    def test_several_statistics_together(self, tmp_path) -> None:
        frame = pd.DataFrame({"wage": WAGES, "age": np.random.default_rng(1).normal(40, 9, 200)})
        made = protect(
            [{"statistic": "mean", "drop": ["age"]}, {"statistic": "mean", "name": "of ages", "drop": ["wage"]}],
            frame, promise=ls.File(games=0, at_most="tpr@0.001=0.0022"), eta=0.05, ledger=tmp_path / "l",
        )  # fmt: skip
        scales = [made.statistics[name].noise.scale for name in ("mean", "of ages")]
        table = np.hstack([whitened(frame[name].to_numpy(), s) for name, s in zip(frame, scales, strict=True)])
        exact = brute_force(table, 0.001)
        assert exact * (1 - 1e-3) <= rates(made.owner)[0.001] <= min(exact * 1.005, 0.0022)


class TestTogether:
    def test_declared_releases_and_the_reserve_for_others(self, tmp_path) -> None:
        path = tmp_path / "ledger.json"
        first, second = (
            ls.protect("mean", frame, promise=ls.File(games=0), eta=eta, budget=0.08, ledger=path, fpr=[0.001])
            for frame, eta in ((FRAME[["wage"]], 0.05), (np.sqrt(FRAME[["wage"]]), 0.01))
        )
        reserve = ReleaseLedger.open(path, "leave-one-out").reserve
        exact = brute_force(whitened(WAGES, first.noise.scale), 0.001, reserve)
        assert reserve > 0.1
        for made, release in ((first, "joint_of_one"), (second, "joint")):
            assert exact * (1 - 1e-3) <= rates(made.owner, release)[0.001] <= exact * 1.005
            assert rates(made.certificate, release) == {0.001: rounded_up_to_1_2_5(exact)}
            assert rates(made.owner, release)[0.001] > rates(made.owner)[0.001]

    def test_a_declared_query_counts_before_its_release(self, tmp_path) -> None:
        path = tmp_path / "ledger.json"
        asked = [("mean", FRAME[["wage"]]), ("second_moment", FRAME[["wage"]])]
        words = {"promise": ls.File(games=0), "eta": 0.04, "budget": 0.09, "ledger": path, "fpr": [0.001]}
        for statistic, x in asked:
            declare(statistic, x, **words)
        made = [protect(statistic, x, **words) for statistic, x in asked]
        again = protect(*asked[0], **words)
        tables = [release.table for release in ReleaseLedger.open(path, "leave-one-out").releases]
        exact = brute_force(np.hstack([np.asarray(each) for each in tables]), 0.001, _reserve(path))
        for each, release in ((made[0], "joint_of_one"), (made[1], "joint"), (again, "joint_of_one")):
            assert exact * (1 - 1e-3) <= rates(each.owner, release)[0.001] <= exact * 1.005
        assert again.to_json() == made[0].to_json()

    @pytest.mark.parametrize(("n_later", "factor"), [(20, (1 - 1 / 200) / (1 - 1 / 20)), (240, 1.0)])
    def test_a_later_version_of_the_data(self, tmp_path, n_later, factor) -> None:
        """Those of a smaller version are told a little better than the budget of the first one says."""
        later = pd.DataFrame({"person": [f"p{place}" for place in range(n_later)], "wage": np.full(n_later, 20.0)})
        later.loc[:9, "wage"] = 21.0
        words = {"promise": ls.File(games=0), "id": "person", "budget": 0.2, "ledger": tmp_path / "l", "fpr": [0.001]}
        first = protect("mean", FRAME, eta=0.03, **words)
        second = protect("mean", later, eta=0.05, **words)
        budgets = [each.certificate.about.certificate.entry.budget for each in (first, second)]
        assert budgets == [0.2, pytest.approx(0.2 * factor, rel=1e-12)]
        curves = [rates(made.owner, release)[0.001] for made, release in ((first, "joint_of_one"), (second, "joint"))]
        if factor == 1:
            assert curves[0] == pytest.approx(curves[1])
        else:
            assert curves[0] < curves[1] <= factor * curves[0]


def _reserve(path) -> float:
    return ReleaseLedger.open(path, "leave-one-out").reserve or 0.0


class TestLimits:
    def test_the_least_printed_scale_that_keeps_them_and_eta(self) -> None:
        plain = ls.calibrate("mean", FRAME[["wage"]], promise=ls.File(games=0), eta=0.05)
        limited = ls.calibrate(
            "mean", FRAME[["wage"]], promise=ls.File(games=0, at_most=["tpr@0.001=0.002", "tpr@0.01=0.5"]), eta=0.05
        )
        scale = limited.noise.scale
        assert scale > plain.noise.scale
        assert brute_force(whitened(WAGES, scale), 0.001) <= 0.002
        step = 10.0 ** (math.floor(math.log10(scale)) - 1)
        assert brute_force(whitened(WAGES, scale - step), 0.001) > 0.002
        kept = ls.calibrate("mean", FRAME[["wage"]], promise=ls.File(games=0, at_most="tpr@0.001=0.01"), eta=0.05)
        assert kept.noise.scale == plain.noise.scale  # eta needs as much

    def test_they_are_published_and_nothing_else_of_the_curve(self, tmp_path) -> None:
        made = ls.protect("mean", FRAME[["wage"]], promise=LIMITED, eta=0.05, ledger=tmp_path / "l", fpr=[0.01])
        for release in ("", "joint_of_one"):  # nothing else follows in this ledger
            assert rates(made.certificate, release) == {0.01: pytest.approx(0.03), 0.001: pytest.approx(0.003)}
        assert ReleaseLedger.open(tmp_path / "l", "leave-one-out").reserve == 0
        words = in_words(made.certificate)
        assert "The limit tpr@0.001=0.003 was declared before anybody looked at these data." in words
        assert "power of ten" not in words

    def test_a_ledger_with_room_keeps_them_for_this_release_alone(self, tmp_path) -> None:
        made = ls.protect(
            "mean", FRAME[["wage"]], promise=LIMITED, eta=0.05, budget=0.1, ledger=tmp_path / "l", fpr=[0.001]
        )
        assert rates(made.certificate) == {0.001: pytest.approx(0.003)}
        assert rates(made.certificate, "joint_of_one") == {0.001: pytest.approx(0.201)}  # of the budget alone

    def test_declared_noise_that_breaks_one_is_refused(self) -> None:
        words = {"promise": ls.File(games=0, scale=0.5, at_most="tpr@0.001=0.003"), "eta": 0.2}
        with pytest.raises(ValueError, match=r"^this noise is proved to keep tpr@0.001=0.0\d+ only, asked for 0.003"):
            calibrate("mean", FRAME[["wage"]], **words)
        with pytest.raises(ValueError, match=r"proved to keep tpr@0.001=0.0\d+ only"):
            calibrate(["mean", {"statistic": "mean", "name": "again"}], FRAME[["wage"]], **words)

    def test_values_that_are_equal_enough_for_eta_and_not_for_a_limit(self) -> None:
        votes = pd.DataFrame({"vote": np.repeat([0.0, 1.0], [100, 100])})
        words = {"promise": ls.File(games=0, allow_exact=True), "eta": 0.3}
        plain = calibrate("mean", votes, **words)
        assert plain.noise is None
        assert rates(plain.certificate)[0.001] == pytest.approx(0.001 + 100 / 199)
        with pytest.raises(ValueError, match=r"kept without noise, and the limit tpr@0.001=0.01 is not: ask for a sm"):
            calibrate("mean", votes, at_most="tpr@0.001=0.01", **words)

    @pytest.mark.parametrize(
        ("at_most", "words", "line"),
        [
            ("tpr@0.01=0.01", {"promise": "file"}, "a guess by chance is right as often at 0.01 false positives"),
            ("tpr=0.01", {"promise": "file"}, "tpr needs a false-alarm rate"),
            ("auc=0.6", {"promise": "file"}, "at_most takes QUANTITY"),
            (["tpr@0.01=0.1", "tpr@0.01=0.2"], {"promise": "file"}, "at_most has two limits at one rate"),
        ],
    )
    def test_bad_ones_are_one_line(self, at_most, words, line) -> None:
        with pytest.raises(ValueError, match=line) as refused:
            calibrate("mean", FRAME[["wage"]], eta=0.05, at_most=at_most, **words)
        assert "\n" not in str(refused.value)

    def test_flag_and_toml_key(self, tmp_path, monkeypatch, capfd) -> None:
        monkeypatch.chdir(tmp_path)
        leakbound = caller(monkeypatch, capfd)
        FRAME.to_csv(tmp_path / "wages.csv", index=False)
        plan = 'data = "wages.csv"\ndrop = ["person"]\neta = 0.05\n[promise.file]\ngames = 0\n'
        plan += 'at_most = ["tpr@0.001=0.002"]\n'
        (tmp_path / "plan.toml").write_text(plan)
        made = leakbound("calibrate --plan plan.toml")
        assert made.code == 0, made.err
        made = leakbound(
            "calibrate --data wages.csv --drop person --eta 0.05 "
            "--promise file,games=0,at_most=[tpr@0.001=0.002,tpr@0.01=0.5]"
        )
        assert made.code == 0, made.err
        plan = ProtectionPlan(data="w.csv", eta=0.05, promise=ls.File(at_most=("tpr@0.001=0.002", "tpr@0.01=0.5")))
        assert "at_most=[tpr@0.001=0.002,tpr@0.01=0.5]" in command_of_plan(plan)


class TestCeiling:
    def test_of_concave_curves(self) -> None:
        """Each concave curve below the limits is below the ceiling, and some curve attains it."""
        ceiling = ceiling_of(0.05, {0.001: 0.005, 0.01: 0.02})
        assert isinstance(ceiling, Piecewise)
        fpr = np.linspace(0, 1, 20_001)
        expected = np.minimum.reduce(
            [fpr + 0.1, np.ones_like(fpr), np.maximum(0.005, 5 * fpr), np.maximum(0.02, 2 * fpr)]
        )
        np.testing.assert_allclose(ceiling.tpr_at(fpr), expected, atol=1e-12)
        for mu in np.linspace(0, 0.25, 26):
            power = stats.norm.cdf(stats.norm.ppf(fpr) + mu)
            if np.interp(0.001, fpr, power) <= 0.005 and np.interp(0.01, fpr, power) <= 0.02:
                assert (power <= ceiling.tpr_at(fpr) + 1e-12).all()

    @pytest.mark.parametrize("eta", [0.0001, 0.05, 0.49])
    def test_of_eta_alone(self, eta) -> None:
        fpr = np.linspace(0, 1, 1001)
        np.testing.assert_allclose(ceiling_of(eta, {}).tpr_at(fpr), np.minimum(fpr + 2 * eta, 1), atol=1e-12)

    @pytest.mark.parametrize(
        ("rate", "step"), [(0.001, 0.001), (0.0010001, 0.002), (0.3, 0.5), (0.51, 1.0), (1.0, 1.0)]
    )
    def test_steps(self, rate, step) -> None:
        assert rounded_up_to_1_2_5(rate) == step
