"""``leakbound reproduce``."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from leakbound.papers import PAPERS, data, reproduction
from tests.cli.calling import caller, refused

SMALL = "delgrosso2021/section33"


@pytest.fixture
def run(monkeypatch, capfd, tmp_path, as_users_run_it):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(data, "missing", lambda name: None)  # the data are there, or are not asked for
    return caller(monkeypatch, capfd)


def test_all_are_listed(run):
    left = run("reproduce --list")
    assert left.code == 0
    lines = left.out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(PAPERS)
    (place,) = (number for number, line in enumerate(lines) if line.startswith("izzo2022/figure2"))
    assert lines[place + 1].strip() == "--as undivided"
    assert max(map(len, left.out.splitlines())) <= 100


@pytest.mark.slow
def test_one_is_run_written_and_shown_and_never_written_over(run, tmp_path):
    left = run(f"reproduce {SMALL} --quick --out out")
    assert left.code == 0
    assert "\n\nOf 4 claims" in left.out
    assert left.err.splitlines()[-1] == "leakbound: wrote out/papers.html"
    assert (tmp_path / "out" / "papers.html").read_text().count("<figure") == 1
    assert sorted(os.listdir(tmp_path / "out")) == ["delgrosso2021-section33", "papers.html"]
    refused(run(f"reproduce {SMALL} --quick --out out"), "out/delgrosso2021-section33 exists already; remove it, or")


@pytest.mark.slow
def test_json_is_alone_on_standard_output(run):
    left = run(f"reproduce {SMALL} --quick --out out --json")
    (document,) = json.loads(left.out)
    assert {claim["verdict"] for claim in document["claims"]} == {"identity"}


@pytest.mark.slow
def test_one_setting_is_run_and_named(run, tmp_path):
    assert run(f"reproduce {SMALL} --quick --as text --out out").code == 0
    folder = tmp_path / "out" / "delgrosso2021-section33"
    assert json.loads((folder / "run.json").read_text())["command"] == f"leakbound reproduce {SMALL} --quick --as text"
    assert json.loads((folder / "claims.json").read_text())["setting"] == "text"


def test_an_unknown_setting_is_refused_before_anything_is_run(run, tmp_path):
    refused(
        run("reproduce izzo2022 --as undivided --out out"), "izzo2022/figure1 has no setting 'undivided'; it has te"
    )
    assert os.listdir(tmp_path) == []


def test_an_unknown_name(run):
    refused(run("reproduce delgroso2021"), "no experiment 'delgroso2021' (did you mean 'delgrosso2021'?); leakbound re")


def test_a_file_in_the_place_of_the_folder(run, tmp_path):
    (tmp_path / "out").write_text("mine")
    refused(run(f"reproduce {SMALL} --quick --out out"), "--out out: ")


def test_without_torch_one_is_refused(run, monkeypatch, tmp_path):
    monkeypatch.setattr(reproduction, "find_spec", lambda name: None)
    left = run("reproduce sablayrolles2019/table2 --quick --out out")
    refused(left, "sablayrolles2019/table2: it needs torch: pip install 'leakbound[torch]'")
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_of_several_those_that_are_there_stay_and_those_that_cannot_be_run_say_why(run, monkeypatch, tmp_path):
    few = {name: PAPERS[name] for name in (SMALL, "sablayrolles2019/table2")}
    monkeypatch.setattr(reproduction, "PAPERS", few)
    monkeypatch.setattr(reproduction, "find_spec", lambda name: None)
    run(f"reproduce {SMALL} --quick --out out")
    before = (tmp_path / "out" / "delgrosso2021-section33" / "claims.json").stat().st_mtime_ns
    left = run("reproduce --out out")
    assert left.code == 0
    assert f"leakbound: {SMALL}: is there already" in left.err
    assert "leakbound: sablayrolles2019/table2: it needs torch" in left.err
    assert (tmp_path / "out" / "delgrosso2021-section33" / "claims.json").stat().st_mtime_ns == before
    assert (tmp_path / "out" / "papers.html").read_text().count("<figure") == 1


@pytest.mark.slow
def test_what_could_not_be_run_is_run_when_it_can(run, monkeypatch, tmp_path):
    monkeypatch.setattr(
        reproduction, "PAPERS", {SMALL: PAPERS[SMALL], "izzo2022/theorem5": PAPERS["izzo2022/theorem5"]}
    )
    with monkeypatch.context() as without:
        without.setattr(
            reproduction, "lacking", lambda experiment: "the data are not there" if experiment.needs else ""
        )
        without.setitem(reproduction.PAPERS, SMALL, replace(PAPERS[SMALL], needs=("mnist",)))
        without.setattr(data, "source", lambda name: "")
        assert "the data are not there" in run("reproduce --out out").err
    assert not (tmp_path / "out" / "delgrosso2021-section33" / "numbers.csv").exists()
    left = run("reproduce --out out")
    assert left.code == 0
    assert "izzo2022/theorem5: is there already" in left.err
    assert left.out.count("not run") == 0
    assert (tmp_path / "out" / "delgrosso2021-section33" / "numbers.csv").exists()


OLDER = json.dumps({"name": "a", "run": "", "reason": "", "claims": []})  # of a version without settings


@pytest.mark.parametrize("text", ["{", "[]", "{}", "\xff", "[" * 100_000, OLDER])
def test_a_damaged_file_is_named_before_anything_is_run(run, tmp_path, text):
    folder = tmp_path / "out" / "azize2024-figure2"
    folder.mkdir(parents=True)
    (folder / "claims.json").write_text(text, encoding="latin-1")
    refused(run(f"reproduce {SMALL} --quick --out out"), "out/azize2024-figure2/claims.json is damaged; remove the fol")
    assert os.listdir(tmp_path / "out") == ["azize2024-figure2"]


@pytest.mark.slow
def test_another_run_in_the_folder_is_refused_before_anything_is_run(run, monkeypatch, tmp_path):
    first = "izzo2022/theorem5"
    monkeypatch.setattr(reproduction, "PAPERS", {first: PAPERS[first], SMALL: PAPERS[SMALL]})
    run(f"reproduce {SMALL} --quick --seed 1 --out out")
    refused(run("reproduce --out out"), "out/delgrosso2021-section33 exists already")
    assert sorted(os.listdir(tmp_path / "out")) == ["delgrosso2021-section33", "papers.html"]


def test_of_a_paper_each_experiment_must_have_what_is_set(run):
    """Also where the value is the paper's own in the first of them: nothing is run, in silence or otherwise."""
    refused(
        run("reproduce izzo2022 --quick --set n=36 --out out"), "n, the number of records, half of which train, must be"
    )
    refused(run("reproduce lowy2024 --quick --set C=10 --out out"), "lowy2024/figure2 has no parameter 'C'; it has")


def test_what_is_set_twice_is_refused(run):
    refused(run(f"reproduce {SMALL} --set n=1 --set n=2"), "--set n is given twice")


def test_the_list_names_the_range_of_each_parameter(run):
    lines = run("reproduce --list").out.splitlines()
    (line,) = (line for line in lines if "--set n=36" in line)
    assert line.endswith("the smallest of four; 6 to 48, even")
