"""Experiments as they are run, written and shown."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import PAPERS, data, figures, reproduction
from leakbound.papers.lab import Lab, Outcome, Parameter, mean_of
from leakbound.papers.lowy2024 import clipped_mean
from leakbound.papers.lowy2024.ratios import Runs
from leakbound.papers.printed import Ours, Printed, Setting
from leakbound.papers.reproduction import Reproduction, checked_values, find, lacking, parameters_of
from tests.marks import nightly

SMALL = "delgrosso2021/section33"


@pytest.fixture(scope="module")
def found() -> Reproduction:
    return ls.reproduce(SMALL, quick=True)


@pytest.mark.slow
def test_what_is_written_can_be_read(found, tmp_path):
    found.write(tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == [
        "claims.csv", "claims.json", "figure.png", "figure.svg", "numbers.csv",
    ]  # fmt: skip
    assert json.loads((tmp_path / "out" / "claims.json").read_text()) == found.document()
    assert len(pd.read_csv(tmp_path / "out" / "numbers.csv")) == len(found.numbers)
    assert list(pd.read_csv(tmp_path / "out" / "claims.csv")["verdict"]) == [claim.verdict for claim in found.claims]
    assert (tmp_path / "out" / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(found, tmp_path):
    found.write(tmp_path / "one")
    ls.reproduce(SMALL, quick=True, out=tmp_path / "two")
    for file in os.listdir(tmp_path / "one"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


def test_a_folder_that_exists_is_not_written_over(found, tmp_path):
    with pytest.raises(ValueError, match=r"exists already; remove it, or give another folder \(out, --out\)"):
        found.write(tmp_path)
    with pytest.raises(ValueError, match=r"exists already"):
        ls.reproduce(SMALL, quick=True, out=tmp_path)


def test_a_disk_that_cannot_be_written_leaves_nothing(found, disk):
    disk.mount("size=40k")
    with pytest.raises(OSError, match=r"the folder .* cannot be written: No space left on device"):
        found.write(disk.folder / "out")
    assert os.listdir(disk.folder) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [("izo2022/figure1", "izzo2022/figure1"), ("lowy", "lowy2024"), ("azize2024/canary", "azize2024/canaries")],
)
def test_an_unknown_name_is_met_with_the_nearest(name, meant):
    with pytest.raises(ValueError, match=rf"no experiment '{name}' \(did you mean '{meant}'\?\); .*--list names all"):
        find(name)
    with pytest.raises(ValueError, match="no experiment"):
        ls.reproduce(name)


def test_a_paper_means_all_its_experiments():
    assert [each.name for each in find("izzo2022")] == [name for name in PAPERS if name.startswith("izzo2022/")]
    assert find() == list(PAPERS.values())


def test_missing_data_say_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(reproduction, "find_spec", lambda name: object())
    monkeypatch.delenv(data.FOLDER, raising=False)
    monkeypatch.delenv(data.FETCH, raising=False)
    assert lacking(PAPERS["azize2024/canaries"]) == (
        "MNIST is not there (LEAKBOUND_DATA is not set); set LEAKBOUND_DATA to a folder with mnist_train60k.npz and "
        "mnist_t10k.npz, or fetch it: --download (in Python set LEAKBOUND_FETCH=1)"
    )
    monkeypatch.setenv(data.FOLDER, str(tmp_path))
    with pytest.raises(ValueError, match=rf"PenDigits .* \(no pendigits.npz in LEAKBOUND_DATA={tmp_path}\); set "):
        ls.reproduce("delgrosso2021/figure5")


def test_missing_libraries_say_what_to_install(monkeypatch):
    monkeypatch.setattr(reproduction, "find_spec", lambda name: None)
    monkeypatch.setattr(data, "missing", lambda name: None)
    with pytest.raises(ValueError, match=r"it needs torch: pip install 'leakbound\[torch\]'"):
        ls.reproduce("sablayrolles2019/table2")


def test_an_experiment_that_was_not_run_is_on_the_page_with_its_reason():
    gone = Reproduction(PAPERS["sablayrolles2019/table2"], Lab(), None, "it needs torch")
    assert {claim.verdict for claim in gone.claims} == {"not run"}
    assert gone.numbers.empty
    with pytest.raises(ValueError, match="was not run: it needs torch"):
        gone.figure()
    assert "not run: it needs torch" in ls.reports.claims_page([gone.document()], {})


def test_a_claim_that_nothing_prints_is_an_error():
    wrong = Reproduction(PAPERS[SMALL], Lab(), Outcome(pd.DataFrame(), {"no_such": Ours(1.0)}, ""))
    with pytest.raises(ValueError, match=r"delgrosso2021/section33: no printed claim no_such"):
        _ = wrong.claims


def test_the_page_shows_claims_and_figures_and_escapes(found):
    document = found.document() | {"run": "<script>alert(1)</script>"}
    shown = ls.reports.claims_page([document], {SMALL: b"<svg/>"})
    assert "<script>alert" not in shown
    assert "data:image/svg+xml;base64,PHN2Zy8+" in shown
    for claim in found.claims:
        assert claim.printed.where in shown


def test_the_table_fits_100_columns(found):
    assert max(map(len, found.table().splitlines())) <= 100
    assert "Of 4 claims: 4 identities." in found.table().splitlines()


@pytest.fixture
def two_settings(monkeypatch) -> Reproduction:
    """An experiment whose text gives 2.0 where 1.0 is printed, and whose other setting gives 1.0."""
    claim = Printed(SMALL, "key", "The number", "Figure 1", "about", 1.0, 0.1, because="rounding")
    setting = Setting(SMALL, "code", "a <b>third</b> less", "the public code does this")
    monkeypatch.setattr(reproduction, "printed", lambda paper: {"section33": {"key": claim}})
    monkeypatch.setattr(reproduction, "settings", lambda paper: {"section33": {"code": setting}})
    outcome = Outcome(
        pd.DataFrame({"x": [1]}), {"key": Ours(2.0)}, "Two runs.", {"code": {"key": Ours(1.0, detail="as <i>run</i>")}}
    )
    return Reproduction(PAPERS[SMALL], Lab(), outcome)


def test_what_explains_a_difference_is_in_the_table_and_on_the_page(two_settings):
    assert "Of 1 claims: 1 differs (1 explained by another setting)." in two_settings.table(100).splitlines()
    full = " ".join(two_settings.table(100, full=True).split())
    assert "so" not in full.split()
    for words in ("differs, by 1; with code it agrees", "with code as <i>run</i>", "the public code does this"):
        assert words in full
    page = ls.reports.claims_page([two_settings.document()], {})
    assert "<b>third" not in page
    assert "<i>run" not in page
    for words in ("with code", "a &lt;b&gt;third", "1 differs (1 explained by another setting)"):
        assert words in page


def test_a_run_of_one_setting_alone_says_which_it_is(two_settings):
    alone = Reproduction(
        two_settings.experiment, Lab(setting="code"), Outcome(pd.DataFrame(), {"key": Ours(1.0)}, "Two.")
    )
    assert "run as code: a <b>third</b> less (the public code does this)" in alone.table(100, full=True)
    assert "run as code: a &lt;b&gt;third" in ls.reports.claims_page([alone.document()], {})


def test_a_setting_that_was_not_run_is_not_explained(two_settings):
    text = Reproduction(
        two_settings.experiment, Lab(setting="text"), Outcome(pd.DataFrame(), {"key": Ours(1.0)}, "Two.")
    )
    assert "code" not in text.table(100, full=True)
    assert text.document()["settings"] == []


def test_the_file_of_claims_has_a_row_for_each_setting(two_settings, monkeypatch, tmp_path):
    monkeypatch.setattr(Reproduction, "figure", lambda self: Figure())
    two_settings.write(tmp_path / "out")
    rows = pd.read_csv(tmp_path / "out" / "claims.csv", keep_default_na=False)
    assert list(zip(rows["key"], rows["setting"], rows["verdict"], strict=True)) == [
        ("key", "", "differs"), ("key", "code", "agrees"),
    ]  # fmt: skip


def test_one_setting_alone_is_run_in_place_of_the_text():
    assert Lab().settings("code", "trained") == ("text", "code", "trained")
    assert Lab(setting="code").settings("code", "trained") == ("code",)
    assert Lab(setting="text").settings("code", "trained") == ("text",)


def test_a_setting_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match="izzo2022/figure2 has no setting 'code'; it has text and undivided"):
        ls.reproduce("izzo2022/figure2", as_="code")
    with pytest.raises(ValueError, match=f"{SMALL} has no setting 'code'; it has text$"):
        ls.reproduce(SMALL, as_="code")


def test_another_setting_is_another_run(found):
    alone = Reproduction(found.experiment, Lab(quick=True, setting="text"), None)
    assert not alone.same_run(found.document())


def test_runs_are_the_same_only_at_one_scale_and_seed(found):
    assert found.same_run(found.document())
    assert not Reproduction(found.experiment, Lab(quick=False), None).same_run(found.document())
    assert not Reproduction(found.experiment, Lab(quick=True, seed=1), None).same_run(found.document())


def test_a_run_on_other_data_is_another_run(monkeypatch):
    monkeypatch.setattr(data, "missing", lambda name: None)
    monkeypatch.setattr(data, "source", lambda name: f"{name} as it is")
    own = Reproduction(PAPERS["azize2024/canaries"], Lab(), None)
    document = own.document()
    assert document["data"] == {"mnist": "mnist as it is"}
    assert own.same_run(document)
    assert not own.same_run(document | {"data": {"mnist": "another"}})
    monkeypatch.setattr(data, "missing", lambda name: "it is gone")
    assert own.same_run(document)


def test_a_file_of_claims_has_no_infinite_numbers(found, tmp_path, monkeypatch):
    monkeypatch.setattr(Reproduction, "document", lambda self: {"error": float("inf")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        found.write(tmp_path / "out")
    assert os.listdir(tmp_path) == []


def test_the_error_of_a_mean_is_that_of_independent_runs():
    assert mean_of([1.0, 2.0, 3.0, 6.0]) == Ours(3.0, (14 / 3 / 4) ** 0.5)
    with pytest.raises(ValueError, match="a mean with an error needs at least 2 runs, got 1"):
        mean_of([1.0])


def test_streams_have_names():
    assert Lab(seed=1).stream("a", 2).random() == ls.seeds.stream(1, "a", 2).random()


# Each with parameters small enough to be quick.
SMALLER = [
    nightly("izzo2022/figure1", {"n": 6}),
    ("sablayrolles2019/figure1", {"n": 20, "d": 40}),
    nightly("izzo2022/figure2", {"n": 2000}),
    nightly("azize2024/figure2", {"n": 50, "d": 80}),
    nightly("delgrosso2021/figure3", {"d": 3}),
    nightly("lowy2024/figure1", {"n": 3, "C": 5, "epsilon": 1}),
    nightly("lowy2024/figure2", {"n": 3, "d": 2, "m": 4}),
    nightly("lowy2024/figure3", {"n": 3, "sigma": 0.5}),
    nightly("lowy2024/figure4", {"n": 20, "d": 3, "C": 20}),
    nightly("lowy2024/figure5", {"n": 20, "epsilon": 2}),
    nightly("lowy2024/figure6", {"n": 20, "C": 10}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "values"), SMALLER)
def test_parameters_can_be_set_and_nothing_is_compared_then(name, values, tmp_path):
    found = ls.reproduce(name, quick=True, set=values, n_jobs=1, out=tmp_path / "out")
    assert found.claims == []
    assert "nothing in print to compare with." in " ".join(found.table().split())
    document = json.loads((tmp_path / "out" / "claims.json").read_text())
    assert document["set"] == values
    assert document["run"].endswith(": nothing in print to compare with.")
    assert all(
        f"{parameter} = {value:g} in place of the paper's" in document["run"] for parameter, value in values.items()
    )
    assert not Reproduction(PAPERS[name], Lab(quick=True), None).same_run(document)
    assert found.figure().get_suptitle().endswith("what is printed is for the latter")


def test_every_experiment_without_networks_has_its_parameters_tested():
    with_parameters = [each.name for each in PAPERS.values() if "torch" not in each.needs and parameters_of(each)]
    assert sorted(with_parameters) == sorted(values_of(case)[0] for case in SMALLER)


def values_of(case):
    return getattr(case, "values", case)


def test_the_papers_own_values_are_none_that_were_set():
    assert checked_values(PAPERS["lowy2024/figure1"], {"C": 10, "n": 4}) == {"n": 4}


@pytest.mark.parametrize(
    ("name", "values", "line"),
    [
        ("lowy2024/figure1", {"c": 1}, "lowy2024/figure1 has no parameter 'c'; it has epsilon, n, m, d, C"),
        ("izzo2022/theorem5", {"n": 1}, "izzo2022/theorem5 has no parameter 'n'; it has none that can be set"),
        (
            "lowy2024/figure1",
            {"n": 9},
            "n, the number of records in D, half of those of X, must be a whole number >= 2 and <= 8, got 9",
        ),
        (
            "lowy2024/figure1",
            {"n": 2.5},
            "n, the number of records in D, half of those of X, must be a whole number >= 2 and <= 8, got 2.5",
        ),
        (
            "lowy2024/figure1",
            {"C": float("nan")},
            "C must be finite, got nan",
        ),
        (
            "izzo2022/figure1",
            {"n": 7},
            "n, the number of records, the smallest of four, must be an even number >= 6 and ",
        ),
    ],
)
def test_what_cannot_be_set(name, values, line):
    with pytest.raises(ValueError, match=f"^{re.escape(line)}"):
        ls.reproduce(name, quick=True, set=values)


def test_a_parameter_keeps_its_type():
    assert isinstance(Parameter("n", 6, "n", least=1).of(Lab(set={"n": 4.0})), int)
    assert isinstance(Parameter("C", 6.0, "C", least=1).of(Lab(set={"C": 4})), float)


@pytest.mark.parametrize(
    ("values", "wanted"), [({"n": np.int64(8)}, 8), ({"n": np.float32(8.0)}, 8), ({"n": np.array(8)}, 8)]
)
def test_numbers_of_other_types_are_numbers(values, wanted):
    checked = checked_values(PAPERS["lowy2024/figure1"], values)
    assert checked == {"n": wanted}
    assert type(checked["n"]) is int


@pytest.mark.parametrize("given", ["eight", None, [8]])
def test_what_is_no_number_is_refused_before_the_run(given):
    with pytest.raises(ValueError, match=r"^n must be a number, got "):
        checked_values(PAPERS["lowy2024/figure1"], {"n": given})


def test_a_document_from_before_parameters_is_the_same_run(found):
    document = found.document()
    del document["set"]
    assert found.same_run(document)


@pytest.mark.slow
def test_claims_of_a_run_with_other_values_are_an_empty_table(tmp_path):
    ls.reproduce("izzo2022/figure1", quick=True, set={"n": 6}, out=tmp_path / "out")
    assert len(pd.read_csv(tmp_path / "out" / "claims.csv")) == 0


@pytest.mark.by_day("lowy2024/figure4")
@pytest.mark.parametrize("name", ["lowy2024/figure4", "lowy2024/figure5", "lowy2024/figure6"])
def test_data_whose_subset_epsilon_is_zero_can_be_drawn(name):
    """Two records far below the clip: no half is told from another, and the ratio to epsilon(X) is 0."""
    module = PAPERS[name].module
    zero = np.zeros((3, 4))
    runs = Runs(np.ones((3, 4)), zero, zero)
    assert (runs.to_subset == 0).all()
    numbers = clipped_mean.table({"exact": (runs, zero)}, [1.0, 2.0, 3.0])
    assert figures.as_bytes(module.draw(numbers), "png")
