"""Generators as releases: what is fitted and sampled, with which seeds, what is stored, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound import data
from leakbound.attacks import ATTACKS
from leakbound.releases.factory import release_from, release_of
from leakbound.releases.generators.distances import Encoding
from leakbound.releases.generators.generator import Generator, SyntheticFiles, generates, takes_seed
from leakbound.releases.generators.scores import scores

RECORDS = np.random.default_rng(0).normal(size=(40, 3)).round(3)
MEMBER = np.random.default_rng(1).random((4, 40)) < 0.5


def bootstrap(X, seed):
    """Draw the rows again."""
    return lambda n, seed: X[np.random.default_rng(seed).integers(len(X), size=n)]


def labelled_fit(X, y):
    """Fit as ever."""


def everything(X):
    """Publish all rows, in order; without a seed."""
    return lambda n: X[:n]


class Bootstrap:
    """The same as an object, which remembers what it was fitted on."""

    n_fits = 0

    def fit(self, X):
        self.n_fits += 1
        self.X = X

    def sample(self, n, seed=0):
        assert self.n_fits == 1, "a copy is fitted"
        return self.X[np.random.default_rng(seed).integers(len(self.X), size=n)]


def observed(generator, want=("nearest", "matches"), **keywords):
    points = data.from_arrays(RECORDS, **keywords)
    return release_of(generator, has_labels=False).observe(points, MEMBER, np.arange(4), want)


def test_every_member_matches_where_all_rows_are_published():
    signals = observed(everything)
    np.testing.assert_array_equal(signals["matches"], MEMBER)
    np.testing.assert_array_equal(signals["nearest"] == 0, MEMBER)


@pytest.mark.parametrize("generator", [bootstrap, Bootstrap(), Generator(bootstrap)])
def test_each_row_has_as_many_rows_as_the_generator_learned_and_seeds_of_its_own(generator):
    seen = []

    def watched(X, seed):
        sample = bootstrap(X, seed)

        def sample_and_note(n, seed_of_file):
            seen.append((len(X), n, seed, seed_of_file))
            return sample(n, seed_of_file)

        return sample_and_note

    observed(watched)
    assert [(n, n_rows) for n, n_rows, _, _ in seen] == [(n, n) for n in MEMBER.sum(axis=1)]
    seeds = [seed for row in seen for seed in row[2:]]
    assert len(set(seeds)) == 8  # no seed is used twice, of fits or files
    again = [observed(generator)["nearest"] for _ in range(2)]
    np.testing.assert_array_equal(*again)
    assert not observed(generator)["matches"][~MEMBER].any()


def test_an_object_is_copied_before_each_fit():
    generator = Bootstrap()
    observed(generator)
    assert generator.n_fits == 0


def test_the_attacker_sees_all_files_and_rows_of_a_file_are_those_asked_for():
    seen = []

    def fit(X, seed):
        def sample(n, seed):
            seen.append(X[np.random.default_rng(seed).integers(len(X), size=n)])
            return seen[-1]

        return sample

    signals = observed(Generator(fit, rows=7, files=3))
    assert [len(rows) for rows in seen] == [7] * 12
    for model in range(4):
        rows = np.concatenate(seen[3 * model : 3 * model + 3])
        is_published = (RECORDS[:, None] == rows).all(axis=2).any(axis=1)
        np.testing.assert_array_equal(signals["matches"][model], is_published)


def test_a_reference_gives_two_more_scores(tmp_path):
    reference = np.random.default_rng(5).normal(size=(60, 3))
    want = ("nearest", "density_ratio", "gen_lra")
    assert set(observed(bootstrap, want)) == {"nearest"}
    with_reference = release_of(Generator(bootstrap, reference=reference))
    assert with_reference.signals == ("nearest", "nearest5", "matches", "density_ratio", "gen_lra")
    points = data.from_arrays(RECORDS)
    signals = with_reference.for_points(points).observe(points, MEMBER, np.arange(4), want)
    assert set(signals) == set(want)
    # of a file: columns are found by name
    frame = pd.DataFrame(RECORDS, columns=["a", "b", "c"])
    pd.DataFrame(reference, columns=["c", "b", "a"]).to_csv(tmp_path / "r.csv", index=False)
    release = release_of(Generator(everybody, rows=40, reference=tmp_path / "r.csv"))
    signals = release.observe(data.from_arrays(frame), MEMBER, np.arange(4), want)
    encoding = Encoding.of(frame)
    expected = scores(
        encoding.encode(frame),
        encoding.encode(frame),
        ["density_ratio"],
        encoding.encode(pd.DataFrame(reference, columns=["c", "b", "a"])),
    )
    np.testing.assert_allclose(signals["density_ratio"][0], expected["density_ratio"])


def everybody(X, seed):
    """Publish all 40 records of the audit, whoever is in."""
    return lambda n, seed: pd.DataFrame(RECORDS, columns=["a", "b", "c"])


def test_units_are_scored_by_their_nearest_row():
    group = np.repeat(np.arange(10), 4)
    signals = observed(everything, group=group)
    member = MEMBER.reshape(4, 10, 4).any(axis=2)
    np.testing.assert_array_equal(signals["matches"], np.repeat(member, 4, axis=1))


def test_ranges_are_those_of_all_records_whoever_is_in():
    encoding = release_of(everything, has_labels=False).for_points(data.from_arrays(RECORDS)).encoding
    assert [width for _, width in encoding.numbers.values()] == np.ptp(RECORDS, axis=0).tolist()


def test_what_is_stored_depends_on_all_that_is_said():
    described = release_of(Generator(bootstrap, rows=5, files=2, reference=RECORDS)).describe()
    assert described["rows"] == 5
    assert described["files"] == 2
    others = [Generator(bootstrap, rows=5, files=2), Generator(bootstrap, rows=5), Generator(bootstrap)]
    texts = {repr(release_of(other).describe()) for other in others} | {repr(described)}
    assert len(texts) == 4
    changed = release_of(Generator(bootstrap, rows=5, files=2, reference=RECORDS + 1)).describe()
    assert changed != described


def test_without_a_seed_nothing_is_stored_and_the_report_says_so():
    release = release_of(everything, has_labels=False)
    assert release.describe() is None
    assert release.not_stored == (
        "it takes no seed, so that its files cannot be made again: they differ from run to run"
    )
    assert release.prepared(data.from_arrays(RECORDS)) == f"everything: {release.not_stored}"
    assert release_of(bootstrap, has_labels=False).prepared(data.from_arrays(RECORDS)) == ""
    assert release_of(Bootstrap(), has_labels=False).is_seeded  # its sample takes one
    assert not takes_seed(Bootstrap().fit)


def test_identifiers_are_named_in_the_report():
    frame = pd.DataFrame({"customer": [f"C-{i}" for i in range(40)], "age": np.arange(40.0)})
    release = release_of(everything, has_labels=False)
    assert "customer: another value in each record, which is not compared" in release.prepared(data.from_arrays(frame))


@pytest.mark.parametrize(
    ("generator", "message"),
    [
        (lambda X: None, "returns nothing; return a generator, sample"),
        (lambda X: lambda n: [1, 2], "sample returns a list; return a frame or an array with a row for each record"),
        (lambda X: lambda n: X[: n - 1], "rows, asked for"),
        (lambda X: lambda n: X[:n, :2], "lacks the columns 2"),
        (lambda X: 1 / 0, "training function: fit fails: division by zero"),
    ],
)
def test_what_a_generator_returns_is_checked_in_one_line(generator, message):
    with pytest.raises((ValueError, RuntimeError), match=message) as error:
        observed(generator)
    assert "\n" not in str(error.value)


def test_what_is_no_generator_is_refused_in_one_line():
    assert [generates(each) for each in (bootstrap, everything, Bootstrap(), Bootstrap, 3, lambda X, y: X)] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    with pytest.raises(ValueError, match=r"a generator is a function fit\(X, seed\) .*; got a Bootstrap \(a class\)"):
        Generator(Bootstrap)
    with pytest.raises(ValueError, match="rows"):
        Generator(bootstrap, rows=0)
    with pytest.raises(ValueError, match="files"):
        Generator(bootstrap, files=0)
    labelled = data.from_arrays(RECORDS, np.arange(40) % 2)
    with pytest.raises(ValueError, match=r"a generator learns a table as it is: leave the label \(y, --label\) out"):
        release_of(Generator(bootstrap)).for_points(labelled)
    narrow = Generator(bootstrap, reference=RECORDS[:, :2])
    with pytest.raises(ValueError, match="the reference lacks the columns 2, which the records have"):
        release_of(narrow).for_points(data.from_arrays(RECORDS))
    with pytest.raises(ValueError, match="train says how a network is trained"):
        release_of(Generator(bootstrap), train={"epochs": 3})
    with pytest.raises(ValueError, match="is an object: set its parameters where it is made"):
        release_of(Generator(Bootstrap()), settings={"a": 1})


def test_an_import_path_leads_to_a_generator_where_there_is_no_label():
    path = f"{__name__}:bootstrap"
    assert isinstance(release_from(path, {}, has_labels=False), SyntheticFiles)
    labelled = release_from(path, {})  # takes a seed in the place of y
    with pytest.raises(ValueError, match="bootstrap: a generator learns a table as it is: leave the label"):
        labelled.for_points(data.from_arrays(RECORDS, np.arange(40) % 2))
    assert not isinstance(release_from(f"{__name__}:labelled_fit", {}), SyntheticFiles)
    assert isinstance(release_from(f"{__name__}:Bootstrap", {}, has_labels=False), SyntheticFiles)


def test_an_audit_runs_thresholds_and_references_by_default():
    report = ls.audit(bootstrap, RECORDS, n_models=8, n_jobs=1)
    attacks = {finding.attack for finding in report.findings if finding.quantity == "auc"}
    assert attacks == {
        "matches",
        "nearest",
        "nearest5",
        *(f"{name}(signal={signal})" for name in ("mast", "rmia", "lira") for signal in ("nearest", "nearest5")),
    }
    assert ATTACKS["mast"].with_parameters(signal="nearest5").title == "MAST, five nearest rows"
