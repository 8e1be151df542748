"""Ledgers in use: the same release has the same bytes, any other one has independent noise, nothing is undeclared."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leakbound
from leakbound.core.grid import Grid
from leakbound.data import from_arrays
from leakbound.files import private_file
from leakbound.noise import GaussianNoise, LaplaceNoise
from leakbound.plans.plan import read
from leakbound.plans.promises import Anyone, Drawn
from leakbound.plans.protects import ProtectionPlan
from leakbound.protection.ledger.drawn import DrawnLedger as Ledger
from leakbound.protection.ledger.keyed import SCHEME
from leakbound.protection.promises.drawn.in_ledger import LedgerQuery, ReleaseSubject, describe_statistic
from leakbound.protection.promises.drawn.jobs import Job
from leakbound.protection.setting.request import file_request
from leakbound.releases.statistics.features import Cells
from leakbound.releases.statistics.statistic import Linear, named
from leakbound.runtime.observe import Execution
from tests.promising import declare, declare_file, promising, protect, protect_file

pytestmark = pytest.mark.usefixtures(
    "as_users_run_it", "without_bands"
)  # many releases; test_api.py executes the shapes
ROOT = Path(__file__).parents[2]
KEY = bytes(range(32))
D = 2000  # coordinates: noise that shares a hundredth of its variance with other noise is found
ROWS = np.random.default_rng(0).normal(size=(60, 2))
QUICK = {"promise": Drawn(games=0), "n_jobs": 1}
SUBJECT = ReleaseSubject(
    "digest of the data",
    np.arange(8) % 2 == 0,
    {"statistic": {"class": "Quantiles", "probabilities": [0.25, 0.5]}},
    GaussianNoise(2.0, np.linspace(1.0, 3.0, D)),
    np.ones(D, dtype=bool),
    Grid(2.0**-10),
)
EXACT = np.arange(D)


def shaped(change):
    return replace(SUBJECT, noise=GaussianNoise(2.0, np.linspace(1.0, 3.0, D) + change))


OTHERS = {
    "data": replace(SUBJECT, data="digest of other data"),
    "draw": replace(SUBJECT, member=np.arange(8) % 2 == 1),
    "another number of records": replace(SUBJECT, member=np.append(SUBJECT.member, False)),
    "statistic": replace(SUBJECT, statistic={"statistic": {"class": "Means", "probabilities": [0.25, 0.5]}}),
    "a parameter of it": replace(
        SUBJECT, statistic={"statistic": {"class": "Quantiles", "probabilities": [0.25, 0.6]}}
    ),
    "scale": replace(SUBJECT, noise=GaussianNoise(4.0, SUBJECT.noise.shape)),
    "last bit of the scale": replace(SUBJECT, noise=GaussianNoise(np.nextafter(2.0, 3.0), SUBJECT.noise.shape)),
    "shape": shaped(1e-12 * (np.arange(D) == 7)),
    "no shape": replace(SUBJECT, noise=GaussianNoise(2.0)),
    "grid": replace(SUBJECT, grid=Grid(2.0**-11)),
    "version of the scheme": replace(SUBJECT, scheme=SCHEME + "b"),
    "repetition": replace(SUBJECT, repeat=1),
}


def unit(subject, exact=EXACT, key=KEY):
    """The draw with variance 1 in each coordinate."""
    noise = subject.noise
    shape = 1.0 if noise.shape is None else noise.shape
    return subject.sample_noise(key, exact) / (noise.scale * np.sqrt(shape))


class TestNoiseIsAFunctionOfTheRelease:
    def test_the_same_release_has_the_same_bytes(self):
        again = replace(
            SUBJECT,
            member=SUBJECT.member.copy(),
            statistic={"statistic": {"probabilities": (0.25, 0.5), "class": "Quantiles"}},
            noise=GaussianNoise(2, np.array(SUBJECT.noise.shape)),
        )
        assert again.sample_noise(KEY, EXACT.copy()).tobytes() == SUBJECT.sample_noise(KEY, EXACT).tobytes()

    @pytest.mark.by_day("data", "no shape")
    @pytest.mark.statistics
    @pytest.mark.parametrize("name", OTHERS)
    def test_any_other_release_has_independent_noise(self, name):
        """Correlation of 2,000 coordinates: independent ones are beyond 5/sqrt(2,000) once in two million keys."""
        one, other = unit(SUBJECT), unit(OTHERS[name])
        assert (one != other).all()
        assert abs(one @ other) / D < 5 / np.sqrt(D)

    @pytest.mark.statistics
    def test_so_have_another_family_another_key_and_another_value(self):
        alone = replace(SUBJECT, noise=LaplaceNoise(2.0), noisy_coords=np.ones(1, dtype=bool))
        gaussian = replace(alone, noise=GaussianNoise(2.0))
        assert len({alone.digest, gaussian.digest}) == 2
        assert alone.sample_noise(KEY, EXACT[:1]) != gaussian.sample_noise(KEY, EXACT[:1])
        for other in (
            unit(SUBJECT, key=bytes(32)),
            unit(SUBJECT, exact=EXACT + (EXACT == 3)),
            unit(SUBJECT, exact=None),
        ):
            assert abs(unit(SUBJECT) @ other) / D < 5 / np.sqrt(D)

    def test_coordinates_without_noise_belong_to_the_release(self):
        few = replace(SUBJECT, noise=GaussianNoise(2.0), noisy_coords=EXACT < 1000)
        drawn = few.sample_noise(KEY, EXACT)
        assert (drawn[1000:] == 0).all()
        assert (drawn[:1000] != replace(SUBJECT, noise=GaussianNoise(2.0)).sample_noise(KEY, EXACT)[:1000]).all()

    @pytest.mark.statistics
    def test_two_scales_do_not_give_the_value_away(self):
        """Under one draw z of noise ``2 (v + z) - (v + 2 z) = v``. Here the same sum has noise of deviation sqrt(8)."""
        value = np.random.default_rng(1).normal(size=D)
        subjects = [replace(SUBJECT, noise=GaussianNoise(scale)) for scale in (1.0, 2.0)]
        naive = [value + scale * unit(subjects[0]) for scale in (1.0, 2.0)]
        np.testing.assert_allclose(2 * naive[0] - naive[1], value, atol=1e-12)
        seen = [value + subject.sample_noise(KEY, EXACT) for subject in subjects]
        error = 2 * seen[0] - seen[1] - value
        # the variance of 2,000 normal numbers: 6 standard errors are left once in 500 million
        assert abs(error.var() / 8 - 1) < 6 * np.sqrt(2 / D)


def released(path, statistic="mean", rows=ROWS, **more):
    return protect(statistic, rows, eta=more.pop("eta", 0.1), ledger=str(path), **QUICK, **more)


class TestLedgers:
    def test_a_restored_ledger_gives_the_same_bytes(self, tmp_path):
        path, copy = tmp_path / "l.json", tmp_path / "copy.json"
        declare("mean", ROWS, eta=0.1, promise="drawn", ledger=path)
        shutil.copy2(path, copy)
        first = released(path)
        for _ in range(3):
            shutil.copy2(copy, path)
            assert released(path).to_json() == first.to_json()
        assert released(path).value.tobytes() == first.value.tobytes()

    def test_other_promises_with_the_same_noise_are_the_same_release(self, tmp_path):
        """Put back, and declared with another eta: the bytes depend on the noise, not on what it was promised for."""
        path, copy = tmp_path / "l.json", tmp_path / "copy.json"
        noise = GaussianNoise(2.0)
        declare("mean", ROWS, eta=0.1, promise=Drawn(noise=noise), ledger=path)
        shutil.copy2(path, copy)
        first = released(path, noise=noise)
        shutil.copy2(copy, path)
        declare("mean", ROWS, eta=0.2, promise=Drawn(noise=noise), ledger=path)
        released(path, noise=noise)
        other = released(path, noise=noise, eta=0.2)
        # declared as two releases: each has noise of its own (one of two numbers is equal in a run of some 2,000)
        assert (other.value != first.value).any()
        fresh = Ledger.open(path, from_arrays(ROWS).digest)
        assert fresh.releases[0].subject == fresh.releases[1].subject
        assert fresh.releases[0].release != fresh.releases[1].release

    @pytest.mark.usefixtures("ledgers_apart")
    def test_two_ledgers_share_no_noise(self, tmp_path):
        values = [released(tmp_path / name).value for name in ("a.json", "b.json")]
        keys = {Ledger.open(tmp_path / name, from_arrays(ROWS).digest).key for name in ("a.json", "b.json")}
        assert (values[0] != values[1]).any()  # one of two is equal in a run of some 2,000: both lie on a grid
        assert len(keys) == 2

    def test_a_query_declared_twice_is_released_twice(self, tmp_path):
        path = tmp_path / "l.json"
        for _ in range(2):
            declare("mean", ROWS, eta=0.1, promise="drawn", ledger=path)
        first, second, again = (released(path).value for _ in range(3))
        assert (first != second).all()
        assert (second == again).all()

    def test_a_release_that_did_not_reach_its_place_is_made_again(self, tmp_path, people):
        """Also where the next query is the same one, and where another was released in between."""
        words = {"data": people, "eta": 0.1, "ledger": str(tmp_path / "l.json"), "drop": ("town", "side")}
        for statistic in ("mean", "mean", "sum"):
            assert "released" in declare_file(**words, statistic=statistic, promise="drawn")
        seen = []

        def fails(public, owner):
            seen.append(public.to_json())
            raise OSError("No space left on device")

        with pytest.raises(OSError, match="No space left"):
            protect_file(**words, statistic="mean", publish=fails, **QUICK)

        def states():
            return [each.published for each in Ledger.open(words["ledger"], digest(people)).releases]

        assert states() == [False]
        assert protect_file(**words, statistic="mean", **QUICK).to_json() == seen[0]
        assert states() == [True]
        second = protect_file(**words, statistic="mean", **QUICK)
        assert second.to_json() != seen[0]
        with pytest.raises(OSError, match="No space left"):
            protect_file(**words, statistic="sum", publish=fails, **QUICK)
        assert states() == [True, True, False]
        assert protect_file(**words, statistic="mean", **QUICK).value.tolist() == second.value.tolist()
        assert protect_file(**words, statistic="sum", **QUICK).to_json() == seen[1]

    def test_another_process_may_write_the_ledger_before_the_release_is_marked(self, tmp_path, people):
        words = {"data": people, "eta": 0.1, "ledger": str(tmp_path / "l.json"), "drop": ("town", "side")}
        for statistic in ("mean", "sum"):
            declare_file(**words, statistic=statistic, promise="drawn")

        def meanwhile(public, owner):
            protect_file(**words, statistic="sum", **QUICK)

        protect_file(**words, statistic="mean", publish=meanwhile, **QUICK)
        assert [each.published for each in Ledger.open(words["ledger"], digest(people)).releases] == [True, True]

    def test_a_ledger_that_cannot_be_marked_is_said(self, tmp_path, people, monkeypatch):
        words = {"data": people, "eta": 0.1, "ledger": str(tmp_path / "l.json"), "drop": ("town", "side")}
        monkeypatch.setattr(private_file, "_ATTEMPTS", 2)
        written = []

        def lost(public, owner):
            written.append(public)
            os.chmod(words["ledger"], 0o644)

        with pytest.raises(OSError, match=r"^the release is written, but its ledger could not note that: "):
            protect_file(**words, publish=lost, **QUICK)
        os.chmod(words["ledger"], 0o600)
        assert protect_file(**words, **QUICK).to_json() == written[0].to_json()

    def test_what_a_description_does_not_tell_gives_other_noise_all_the_same(self, tmp_path, monkeypatch):
        """The environment has changed, on which the value depends: the same noise would show by how much."""
        monkeypatch.syspath_prepend(str(tmp_path))
        code = "import os\n\n\ndef middle(x):\n    return float(os.environ['FACTOR']) * x.mean(axis=0)\n"
        (tmp_path / "middles.py").write_text(code)
        monkeypatch.setenv("FACTOR", "1.0")
        path, copy = tmp_path / "l.json", tmp_path / "copy.json"
        words = {"noise": GaussianNoise(3.0), "fits": 400, "seed": 3}
        declare("middles:middle", ROWS, eta=0.1, promise="drawn", ledger=path, **words)
        shutil.copy2(path, copy)
        first = released(path, "middles:middle", **words).value
        monkeypatch.setenv("FACTOR", "1.1")
        with pytest.raises(ValueError, match="holds this query as release 1 with another noise or value"):
            released(path, "middles:middle", **words)
        shutil.copy2(copy, path)
        second = released(path, "middles:middle", **words).value
        assert (abs(second - first) > 0.05).all()  # of a value that moved by less than 0.03

    @pytest.mark.slow
    def test_the_certificate_says_what_a_ledger_cannot_know(self, tmp_path):
        with_ledger = released(tmp_path / "l.json").certificate
        without = protect("mean", ROWS, eta=0.1, **QUICK).certificate
        only = "the only release of this draw that this ledger knows of"
        assert f"this is {only}" in with_ledger.about.notes
        assert only in " ".join(with_ledger.to_html().split())
        assert "knows of" not in " ".join(without.about.notes)
        assert "ledger_not_rolled_back" in [term.id for term in with_ledger.about.certificate.assumptions]
        assert "no_ledger" in [term.id for term in without.about.certificate.assumptions]
        assert (with_ledger.about.certificate.ledger, without.about.certificate.ledger) == (True, False)
        assert "made from a secret key in the ledger" in with_ledger.to_html()
        assert "made before the ledger was put back to an earlier copy" in " ".join(with_ledger.to_html().split())
        assert "operating system\u2019s entropy" in without.to_html()

    def test_key_and_draw_are_told_nowhere(self, tmp_path):
        path = tmp_path / "l.json"
        made = released(path)
        ledger = Ledger.open(path, from_arrays(ROWS).digest)
        assert len(ledger.key) == 32
        assert ledger.key.hex() in path.read_text()
        for text in (made.to_json(), made.certificate.to_html(), repr(ledger), repr(ledger.draw)):
            assert ledger.key.hex() not in text
            assert "array([" not in text
            assert repr(ledger.key) not in text

    def test_a_key_from_a_seed_belongs_to_that_seed(self, tmp_path):
        path = tmp_path / "l.json"
        values = [released(tmp_path / name, insecure_seed=5).value.tolist() for name in ("a.json", "b.json")]
        assert values[0] == values[1]
        released(path, insecure_seed=5)
        with pytest.raises(ValueError, match=r"was begun with another insecure seed, got 6: start another ledger"):
            released(path, insecure_seed=6)


class TestMadeUp:
    """Ledgers whose digest fits and whose content does not: one line, and nothing is written."""

    @pytest.mark.parametrize(
        ("more", "line"),
        [
            ({"coupling": "xyz"}, "is no ledger of this version: its draw is not one of these data"),
            ({"coupling": "average_swap"}, "coupling average_swap does not promise every"),
            ({"coupling": "complement"}, "not declared|the ledger and its noise need complement"),
            ({"promise": "average"}, "was begun with about average, got every"),
            ({"seed": 5}, "the ledger of seed 5"),
            ({"separating_fraction": 0.5}, "the ledger and its noise need 0.5"),
            ({"n": 13, "member": "5558"}, "its draw is not one of these data"),
            ({"member": "fff0"}, "D must hold from 1 to n - 1 = 11 records, got 12"),
            ({"member": "ff00"}, "was begun with k 8, got 6"),
            ({"queries": []}, "the query was not declared"),
            ({"data": "insecure:" + "0" * 64}, "belongs to other data: digest insecure:000"),
        ],
    )
    def test_it_is_refused(self, tmp_path, more, line):
        path = tmp_path / "l.json"
        rows = ROWS[:12]
        declare("mean", rows, eta=0.1, promise="drawn", ledger=path)
        content, digest = private_file.read(path)
        private_file.write(path, content | more, digest)
        before = path.read_bytes()
        with pytest.raises(ValueError, match=line) as refused:
            released(path, rows=rows)
        assert "\n" not in str(refused.value)
        assert path.read_bytes() == before


class TestDeclared:
    """What decides the bytes or the promise is part of the query, of the draw or of the data."""

    @pytest.mark.parametrize(
        "other",
        [
            GaussianNoise(3.0),
            GaussianNoise(2.5),
            GaussianNoise(3.0, np.array([1.0, 1.0 + 1e-12])),
            GaussianNoise(3.0, np.eye(2)),
            "gaussian",
            "gaussian_isotropic",
        ],
    )
    def test_another_noise_is_not_the_declared_one(self, tmp_path, other):
        path, declared = tmp_path / "l.json", GaussianNoise(3.0, np.array([1.0, 1.0]))
        declare("mean", ROWS, eta=0.1, promise=Drawn(noise=declared), ledger=path)
        before = path.read_bytes()
        with pytest.raises(ValueError, match="the query was not declared"):
            released(path, noise=other)
        assert path.read_bytes() == before
        again = GaussianNoise(3, np.array([1, 1]))  # the same numbers
        assert released(path, noise=again).value.shape == (2,)

    @pytest.mark.parametrize("noise", [lambda scale: GaussianNoise(scale), GaussianNoise])
    def test_functions_are_no_declared_noise(self, tmp_path, noise):
        path = tmp_path / "l.json"
        for call in (declare, protect):
            with pytest.raises(ValueError, match=r"^a ledger takes no function as its noise: nobody could tell"):
                call("mean", ROWS, eta=0.1, promise=Drawn(noise=noise, games=0), ledger=str(path))
        assert list(tmp_path.iterdir()) == []

    def test_noise_of_a_class_of_ones_own_is_no_declared_noise(self, tmp_path):
        class Louder(GaussianNoise):
            """Whatever it draws, its fields do not tell."""

        with pytest.raises(ValueError, match=r"^expected a noise of leakbound.noise .*, got Louder: its parameters"):
            declare("mean", ROWS, eta=0.1, promise=Drawn(noise=Louder(3.0)), ledger=str(tmp_path / "l.json"))

    def test_functions_without_a_path_are_no_declared_statistic(self, tmp_path):
        def local(x):
            return x.mean(axis=0)

        for statistic in (lambda x: x.mean(axis=0), local):
            with pytest.raises(ValueError, match=r"^a statistic without a description cannot be entered in a ledger: "):
                declare(statistic, ROWS, eta=0.1, promise="drawn", ledger=str(tmp_path / "l.json"))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("level", [pd.Timestamp("2026-01-01"), float("nan")])
    def test_a_parameter_that_cannot_be_written_down_is_refused(self, tmp_path, level):
        table = Linear("count", Cells(("x0",), ((0.0, level),)), "sum")
        with pytest.raises(
            ValueError, match=r"cannot be entered in a ledger: .* with numbers and texts as its parameters"
        ):
            declare(table, ROWS, eta=0.1, promise="drawn", ledger=str(tmp_path / "l.json"))

    def test_the_file_of_a_class_of_ones_own_is_part_of_the_query(self):
        assert len(describe_statistic(Linear("doubled", Doubled()))["code"]["code"]) == 64
        assert "code" not in describe_statistic(named("mean"))


@dataclass(frozen=True)
class Doubled:
    """Features of a user."""

    def labels(self, x):
        return [f"x{place}" for place in range(x.shape[1])]

    def __call__(self, x):
        return 2.0 * x


# Fields of the plan that the value does not depend on, nor its promise: docs/limit.md names them.
WITHOUT_INFLUENCE = {
    "title": "Wages",
    "unit": "person",
    "date": "2026-01-01",
    "fpr": (0.2,),
    "games": 40,
    "delta": 1e-3,
    "compare": Anyone(ranges={"wage": (0, 80)}),
    "rules": {"minimum": 5},
}
OF_TABLES = {"merge", "non_negative"}  # what is made of a released table
# the file itself, one beside it; what is done; compared with the key of the file
OF_THE_CALL = {
    "ledger",
    "another_promise",
    "allow_known_people",
    "known_ledgers",
    "declare",
    "insecure_seed",
    "depends_on",  # of the models that are stored
}
# which a ledger of draws is not for
OF_OTHER_DESIGNS = {"promise", "budget", "id", "group"}
OF_CSV = {
    "separator",
    "decimal",
    "encoding",
}  # how the file is read: its records are compared, however they are written
OF_SAMPLED_PAIRS = {"confidence": 0.9, "fits": 300, "seed": 3}
CHANGED = {
    "data": "other.csv",
    "label": None,
    "drop": ("town", "side"),
    "statistic": "covariance",
    "set": {"probabilities": [0.5]},
    "eta": 0.11,
    "scale": (0.5,),
    "k": 40,
    "about": "average",
    "noise": "gaussian_diagonal",
    "coupling": "swap",
    **OF_SAMPLED_PAIRS,
}


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"hours": rng.integers(10, 60, 60), "wage": rng.normal(20, 4, 60).round(2), "age": rng.integers(18, 70, 60)}
    )
    frame = frame.assign(town=["Bonn", "Ulm", "Ulm"] * 20, side=["left", "right"] * 30)
    frame.to_csv("people.csv", index=False)
    frame.assign(wage=frame.wage + 0.01 * (frame.index == 3)).to_csv("other.csv", index=False)
    return "people.csv"


def digest(people):
    return from_arrays(pd.read_csv(people).drop(columns=["town", "side"])).digest


def identity(**words):
    """What a ledger compares: digest of the data, k, promise and coupling of the draw, digest of the query."""
    plan = read(ProtectionPlan, promising({"promise": "drawn", "ledger": "none.json", **words}), "protect")
    query = LedgerQuery.of(Job.of(file_request(plan, Execution(n_jobs=1))), "none.json")
    return query.job.mechanism.points.digest, query._query.digest


class TestEveryFieldOfThePlan:
    def test_every_field_has_its_place(self):
        """A new field belongs to the query, or to those without influence: whoever adds it says which."""
        placed = (
            set(CHANGED)
            | set(WITHOUT_INFLUENCE)
            | OF_THE_CALL
            | OF_CSV
            | {"drop_missing"}  # it changes the records, which are compared
            | OF_OTHER_DESIGNS
            | OF_TABLES
            | {"by", "levels"}
        )
        assert placed == set(ProtectionPlan.model_fields) | {field.name for field in fields(Drawn)}

    @pytest.mark.by_day("coupling", "fits")
    @pytest.mark.parametrize("field", sorted(set(CHANGED) - {"label"}))
    def test_it_is_part_of_what_a_ledger_compares(self, people, field):
        base = {
            "data": people,
            "statistic": "quantiles",
            "eta": 0.1,
            "drop": ("age", "town", "side"),
            "about": "every",
        }
        assert identity(**base) == identity(**base)
        assert identity(**base | {field: CHANGED[field]}) != identity(**base)

    def test_how_a_file_is_written_is_not_compared_and_its_records_are(self, people):
        base = {"statistic": "mean", "eta": 0.1}
        frame = pd.read_csv(people)[["hours"]]
        frame["pay"] = [f"{number},{number + 200}" for number in range(1, 61)]
        frame.to_csv("colons.csv", index=False, sep=":")
        frame.to_csv("semicolons.csv", index=False, sep=";")
        read_as = [
            identity(**base, data=file, separator=sign, decimal=decimal)
            for file, sign in (("colons.csv", ":"), ("semicolons.csv", ";"))
            for decimal in (".", ",")
        ]
        assert read_as[:2] == read_as[2:]
        assert len(set(read_as)) == 2

    def test_so_is_the_label(self, people):
        base = {"data": people, "statistic": "ols", "eta": 0.1, "drop": ("town", "side")}
        assert identity(**base, label="wage") != identity(**base, label="hours") != identity(**base)

    def test_so_are_the_columns_that_are_counted(self, people):
        base = {"data": people, "statistic": "table", "eta": 0.1}
        levels = {"town": ("Bonn", "Ulm"), "side": ("left", "right")}
        made = []
        for by in (("town",), ("side",), ("town", "side"), ("side", "town")):
            made.append(identity(**base, by=by, levels={name: levels[name] for name in by}))  # noqa: PERF401
        made.append(identity(**base, by=("town",), levels={"town": ("Bonn", "Ulm", "Kiel")}))
        made.append(identity(**base, by=("town",), levels={"town": ("Ulm", "Bonn")}))
        assert len(set(made)) == 6
        base["statistic"] = "histogram"
        edges = ([10, 30], [10, 31], [10, 20, 30])
        made = [identity(**base, by=("wage",), set={"edges": each}) for each in edges]
        assert len(set(made)) == 3

    @pytest.mark.slow
    def test_the_others_change_no_bit(self, people):
        """Of a mean, whose pairs are not sampled: the ledger is put back, and the release made with all of them."""
        base = {"data": people, "statistic": "mean", "eta": 0.1, "drop": ("town", "side")}
        others = WITHOUT_INFLUENCE | OF_SAMPLED_PAIRS
        changed = [name for name, value in others.items() if identity(**base | {name: value}) != identity(**base)]
        assert changed == []
        declare_file(**base, promise="drawn", ledger="l.json")
        shutil.copy2("l.json", "copy.json")
        first = protect_file(**base, ledger="l.json", **QUICK)
        shutil.copy2("copy.json", "l.json")
        again = protect_file(**base | others, promise="drawn", ledger="l.json", n_jobs=1)
        assert again.value.tobytes() == first.value.tobytes()

    def test_the_docs_name_those_without_influence(self):
        text = (ROOT / "docs" / "limit.md").read_text(encoding="utf-8")
        sentence = text[text.index("These are not part of a query: ") :].split(".")[0]
        assert {word for word in sentence.split("`") if word.isidentifier()} >= set(WITHOUT_INFLUENCE)


@pytest.mark.kills
class TestKills:
    """Killed before each flush and each rename of a release with a ledger, and asked again: the same bytes."""

    SCRIPT = ROOT / "tests" / "kills" / "killed_with_a_ledger.py"
    WORDS = (
        "protect --data people.csv --drop town --drop side --promise drawn,games=0 --eta 0.1 --n-jobs 1 "
        "--store s --ledger l.json"
    )

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "numbers",
        [
            pytest.param([0, 2, 5, 7, 20], id="some"),  # the list of ledgers, the entry, a file, the entry again
            pytest.param(list(range(99)), id="each", marks=pytest.mark.nightly),
        ],
    )
    def test_the_same_bytes_again(self, people, tmp_path, numbers):
        template = tmp_path / "template"
        template.mkdir()
        shutil.copy2(people, template)
        declare_file(data=people, drop=("town", "side"), eta=0.1, promise="drawn", ledger=str(template / "l.json"))
        paths = os.pathsep.join([str(ROOT), str(Path(leakbound.__file__).parents[1])])
        words = [sys.executable, str(self.SCRIPT), str(template), json.dumps(numbers), *shlex.split(self.WORDS)]
        environment = os.environ | {"PYTHONPATH": paths}
        run = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=500)
        assert run.returncode == 0, run.stderr
        ended = dict(zip(numbers, json.loads(run.stdout), strict=False))
        killed = [number for number, codes in ended.items() if codes == [-signal.SIGKILL, 0]]
        assert all(codes in ([0, 0], [-signal.SIGKILL, 0]) for codes in ended.values())
        assert len(killed) >= min(len(numbers) - 1, 10)
        value = values(tmp_path / "0" / "first" / "release.json")
        for number in ended:
            folder = tmp_path / str(number)
            assert values(folder / "again" / "release.json") == value
            assert (
                not (folder / "first" / "release.json").exists() or values(folder / "first" / "release.json") == value
            )
            ledger = Ledger.open(folder / "l.json", digest(people))
            assert [each.published for each in ledger.releases] == [True]
            assert not list(folder.glob(".l.json.*.part"))


def values(release):
    """The released numbers, as they are written."""
    return [row["value"] for row in json.loads(release.read_text())["about"]["values"]]
