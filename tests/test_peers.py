"""The comparison with other packages, on fake ones: nothing is installed, and the network is not used."""

from __future__ import annotations

import ast
import json
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
from benchmarks.peers import __main__ as command
from benchmarks.peers import arrays, measured, packages
from benchmarks.peers.packages import PEERS, Peer

from leakbound.core.tradeoff import Gaussian
from tests.marks import nightly

HEAD = "import os, sys, time\nimport numpy as np\nPACKAGES = ['numpy', 'no-such-package']\n"
PERFECT = """
def perfect(timed, arrays):
    return timed(lambda: arrays["member"][0, : int(arrays["n_points"])] * 1.0)
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few models, points and repetitions."""
    for name, size in {"N_REFERENCES": 16, "N_POINTS": 400, "N_POPULATION": 50}.items():
        monkeypatch.setattr(arrays, name, size)
    for name, size in {"N_SCORES": 60, "REPETITIONS": 3, "NULL_REPETITIONS": 4}.items():
        monkeypatch.setattr(arrays, name, size)


@pytest.fixture
def table(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Runs the command on one fake package; returns what it prints and its JSON."""

    def run(script: str, *options: str, **fields: object) -> tuple[str, dict]:
        runner, written = tmp_path / "fake.py", tmp_path / "out.json"
        runner.write_text(HEAD + script, encoding="utf-8")
        peer = Peer("fake", "Fake", runner=runner, **fields)  # type: ignore[arg-type]
        arguments = ["--environments", str(tmp_path / "environments"), "--json", str(written), *options]
        assert command.main(arguments, [peer]) == 0
        return capsys.readouterr().out, json.loads(written.read_text(encoding="utf-8"))

    return run


def test_arrays_are_the_same_every_time():
    first, again = (arrays.of_models(4, 30, 10, seed=1) for _ in range(2))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["log_odds"], arrays.of_models(4, 30, 10, seed=2)["log_odds"])
    assert first["log_odds"].shape == first["member"].shape == (5, 40)
    assert not first["member"][:, 30:].any()
    scores, same = (arrays.of_scores(2, 3, 5, seed=2) for _ in range(2))
    assert all(np.array_equal(scores[name], same[name]) for name in scores)
    assert scores["members"].shape == (2, 5)
    assert scores["null_others"].shape == (3, 5)


def test_members_have_larger_log_odds_and_the_truth_is_that_of_the_scores():
    made = arrays.of_models(2, 20_000, 0, seed=1)
    log_odds, member = made["log_odds"], made["member"]
    assert 0.2 < log_odds[member].mean() - log_odds[~member].mean() < 0.6  # the mean shift is .35 exp(.08) = .38
    assert Gaussian(1.0).epsilon(measured.DELTA) == pytest.approx(arrays.TRUE_EPSILON, abs=5e-4)


def test_rates_of_scores():
    member = np.array([True, True, False, False])
    assert command.rates([4, 2, 3, 1], member) == {"auc": 0.75, "tpr_at_0.001": 0.5, "tpr_at_0.01": 0.5}
    # ties: no threshold lies between them
    assert command.rates([1, 1, 1, 1], member) == {"auc": 0.5, "tpr_at_0.001": 0.0, "tpr_at_0.01": 0.0}
    with pytest.raises(ValueError, match="3 scores for 4 points"):
        command.rates([1, 2, 3], member)
    with pytest.raises(ValueError, match="2 scores are not finite"):
        command.rates([np.nan, np.inf, 0, 1], member)


def test_the_median_of_bounds_and_the_level():
    row = {"measure": "epsilon, one run", "call": "f", "note": "n", "seconds": 0.5}
    bounds = row | {"bounds": [1, 9, 2, 0, 3], "null_above": 1, "null_repetitions": 4}
    found = command.summary(bounds, np.array([True]))
    assert (found["value"], found["level"], found["above_truth"], found["repetitions"]) == (2, 0.25, 1, 5)
    assert command.cells(found | {"package": "P"})[-4:] == [
        "2.0000",
        "1 of 4",
        "0.5",
        "n; median of 5; above the truth in 1 of 5",
    ]
    for nonsense in ({"bounds": ["x"]}, {"value": np.nan}, {}, {"value": 1.0, "setting": ["x"]}, {"bounds": []}):
        assert "reason" in command.summary(row | {"null_above": 0, "null_repetitions": 1} | nonsense, np.array([True]))


def test_time_of_the_call_alone_and_repetitions():
    def slow_preparation(timed, value):
        sum(range(2_000_000))
        return timed(lambda: value + 1)

    result, seconds = measured.repeated(slow_preparation, 1)
    assert result == 2
    assert seconds < 0.005


def test_no_more_bounds_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measured, "LIMIT_SECONDS", -1.0)
    assert measured.bounds_of(lambda timed, inside, outside, delta: 1.0, np.zeros((3, 1)), np.zeros((3, 1))) == ([], [])
    monkeypatch.setattr(measured, "LIMIT_SECONDS", 1e9)
    bounds, times = measured.bounds_of(lambda timed, *_: timed(lambda: 2.0), np.zeros((3, 1)), np.zeros((3, 1)))
    assert bounds == [2.0] * 3
    assert len(times) == 3


@pytest.mark.usefixtures("small")
def test_a_fake_package_is_a_table(table):
    script = (
        PERFECT
        + """
def fails(timed, arrays):
    raise KeyError("no such attack")
def bound(timed, members, others, delta):
    return timed(lambda: float(members.mean() - others.mean() > 0.5))
def epsilon(timed, noise, sample_rate, steps, delta):
    return timed(lambda: noise * steps)
def noise(timed, advantage, sample_rate, steps):
    return timed(lambda: steps * advantage)
ROWS = [
    ("noise of DP-SGD", "noise", noise, ""),
    ("epsilon of DP-SGD", "epsilon", epsilon, ""),
    ("LiRA online", "perfect", perfect, "a | note"),
    ("loss attack", "fails", fails, ""),
    ("epsilon, one run", "bound", bound, ""),
]
"""
    )
    printed, written = table(script)
    rows = {(row["measure"], *row.get("setting", [])[:1]): row for row in written["rows"]}
    assert [row["measure"] for row in written["rows"]] == sorted(
        (row["measure"] for row in written["rows"]), key=measured.MEASURES.index
    )
    assert rows["LiRA online",]["auc"] == rows["LiRA online",]["tpr_at_0.001"] == 1
    assert rows["loss attack",]["reason"] == "KeyError: 'no such attack'"
    assert (rows["epsilon, one run",]["value"], rows["epsilon, one run",]["level"]) == (1, 0)
    assert [rows["epsilon of DP-SGD", noise]["value"] for noise in (1, 0.7)] == [1000, 7000]
    assert rows["noise of DP-SGD", 0.1]["value"] == 100
    assert written["packages"][0]["versions"] == {"numpy": np.__version__, "no-such-package": None}
    lines = [line for line in printed.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 6
    assert "| 1.0000 | 100.00 %" in printed
    assert "* Fake: " in printed
    assert f"numpy {np.__version__}" in printed
    assert all(
        fact in printed for fact in ("date: ", "machine: ", "leakbound: ", "command: python -m benchmarks.peers")
    )


@pytest.mark.by_day("no JSON")
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param("raise RuntimeError('of\\nthe import')", "RuntimeError: of the import", id="import"),
        pytest.param("print('last words'); os._exit(7)", "ended with exit code 7: last words", id="exit"),
        pytest.param("open(sys.argv[4], 'w').write('nonsense'); os._exit(0)", "cannot be read", id="no JSON"),
        pytest.param("open(sys.argv[4], 'w').write('[1, 2]'); os._exit(0)", "cannot be read", id="a list"),
        pytest.param(
            """open(sys.argv[4], 'w').write('{"python": "", "versions": {}, "rows": [{"x": 1}]}'); os._exit(0)""",
            "cannot be read",
            id="rows without names",
        ),
        pytest.param("os._exit(0)", "its runner wrote nothing", id="nothing"),
    ],
)
def test_a_package_without_rows_is_a_row_with_the_reason(table, script: str, reason: str):
    printed, written = table(script)
    (row,) = written["rows"]
    assert reason in row["reason"]
    assert "\n" not in row["reason"]
    assert reason in printed.split("value: epsilon")[0]


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("ending", "reason", "options"),
    [
        pytest.param("os._exit(3)", "ended with exit code 3", (), id="crash"),
        nightly("time.sleep(600)", "not finished after 8 s (--timeout)", ("--timeout", "8"), id="time is over"),
    ],
)
def test_rows_before_the_end_are_kept(table, ending: str, reason: str, options: tuple[str, ...]):
    script = (
        PERFECT
        + f"""
def ends(timed, arrays):
    {ending}
ROWS = [("loss attack", "a", perfect, ""), ("LiRA online", "b", ends, ""), ("RMIA online", "c", perfect, "")]
"""
    )
    _, written = table(script, *options)
    first, second, third = written["rows"]
    assert first["auc"] == 1
    assert second["reason"].startswith(reason)
    assert third["reason"].startswith(reason)


@pytest.mark.usefixtures("small")
def test_scores_that_are_no_scores_are_one_row_with_a_reason(table):
    script = (
        PERFECT
        + """
def short(timed, arrays):
    return [1.0, 2.0]
def not_numbers(timed, arrays):
    return perfect(timed, arrays) * np.nan
ROWS = [("loss attack", "a", short, ""), ("LiRA online", "b", not_numbers, ""), ("RMIA online", "c", perfect, "")]
"""
    )
    _, written = table(script)
    first, second, third = written["rows"]
    assert first["reason"] == "ValueError: 2 scores for 400 points"
    assert second["reason"] == "ValueError: 400 scores are not finite"
    assert third["auc"] == 1


def make_without_pip(folder: Path) -> None:
    """An environment in which every installation fails, without a network."""
    venv.EnvBuilder(clear=True, with_pip=False).create(folder)


@pytest.mark.usefixtures("small")
def test_an_installation_that_fails_is_a_reason(table, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(packages, "make_environment", make_without_pip)
    printed, written = table("ROWS = []", requirements=("no-such-package==1",))
    assert written["rows"][0]["reason"].startswith("not installed: ")
    assert "No module named pip" in printed
    assert not (tmp_path / "environments" / "fake" / packages.MARK).exists()


@pytest.mark.usefixtures("small")
def test_a_package_that_is_not_on_pypi_needs_a_checkout(table, tmp_path: Path):
    repository = "https://example.org/owner/Name"
    _, written = table("ROWS = []", repository=repository)
    assert written["rows"][0]["reason"] == (
        f"read from a checkout: git clone {repository}, and give its folder with --checkouts"
    )
    _, written = table("ROWS = []", "--checkouts", str(tmp_path), repository=repository)
    assert written["rows"][0]["reason"] == f"{tmp_path / 'Name'} is not there: git clone {repository}"


def test_an_environment_is_used_again_until_other_versions_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    made: list[Path] = []
    commands: list[list[str]] = []

    def make(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "pyvenv.cfg").touch()
        made.append(folder)

    def run(command: list[str], *_: object) -> int:
        commands.append(command)
        return 0

    monkeypatch.setattr(packages, "make_environment", make)
    monkeypatch.setattr(packages, "run", run)
    peer = Peer("fake", "Fake", ("one==1",), without_dependencies=("two==2",))
    python = packages.installed_environment(peer, tmp_path, 1.0)
    assert packages.installed_environment(peer, tmp_path, 1.0) == python == packages.python_of(tmp_path / "fake")
    assert made == [tmp_path / "fake"]
    install = [str(python), "-m", "pip", "install", "--no-input"]
    assert commands == [[*install, "one==1"], [*install, "--no-deps", "two==2"]]
    packages.installed_environment(Peer("fake", "Fake", ("one==2",)), tmp_path, 1.0)
    assert len(made) == 2


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path: Path):
    precious = tmp_path / "fake" / "thesis.txt"
    precious.parent.mkdir()
    precious.touch()
    with pytest.raises(packages.NotRun, match="is no environment"):
        packages.installed_environment(Peer("fake", "Fake", ("one==1",)), tmp_path, 1.0)
    assert precious.exists()


def test_environments_do_not_see_this_one(monkeypatch: pytest.MonkeyPatch):
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
        monkeypatch.setenv(name, "/somewhere")
    variables = packages.clean_environment()
    assert not {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"} & set(variables)
    assert variables["OMP_NUM_THREADS"] == variables["PYTHONNOUSERSITE"] == "1"


def test_the_default_folder_belongs_to_this_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(packages.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = packages.default_environments()
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o077 == 0
    if hasattr(packages.os, "getuid"):
        monkeypatch.setattr(packages.os, "getuid", lambda: folder.stat().st_uid + 1)
        (tmp_path / f"leakbound-peers-{folder.stat().st_uid + 1}").mkdir()
        with pytest.raises(SystemExit, match="belongs to another user"):
            packages.default_environments()


def imported(script: Path) -> set[str]:
    """Names of the packages that a script imports."""
    names = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


def test_what_runs_in_other_environments_imports_nothing_of_leakbound():
    assert imported(Path(measured.__file__)) - set(sys.stdlib_module_names) == {"numpy"}
    for peer in PEERS:
        names = imported(peer.script)
        assert "benchmarks" not in names
        assert ("leakbound" in names) == (peer.name == "leakbound")


def test_every_row_of_a_runner_is_a_measure():
    for peer in PEERS:
        tree = ast.parse(peer.script.read_text(encoding="utf-8"))
        (rows,) = [
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "ROWS"
        ]
        assert isinstance(rows, ast.List)
        for row in rows.elts:
            assert isinstance(row, ast.Tuple)
            assert ast.literal_eval(row.elts[0]) in measured.MEASURES
            assert len(row.elts) == 4


def test_versions_are_pinned_and_names_of_others_are_not_installed():
    for peer in PEERS:
        asked = [*peer.requirements, *peer.without_dependencies]
        assert peer.name == "leakbound" or asked
        assert not {"leakpro", "privacy-guard", "privacyguard"} & {name.split("==")[0] for name in asked}
        if not peer.repository and asked:
            assert any("==" in name for name in asked)


@pytest.mark.nightly
@pytest.mark.usefixtures("small")
def test_leakbound_takes_the_same_way(tmp_path: Path):
    """Its AUC is that of LiRA computed here, plainly."""
    written = tmp_path / "out.json"
    options = ["--environments", str(tmp_path), "--json", str(written), "--only", "leakbound"]
    assert command.main(options) == 0
    rows = json.loads(written.read_text(encoding="utf-8"))["rows"]
    assert {row["measure"] for row in rows} == set(measured.MEASURES)
    assert not [row for row in rows if "reason" in row]
    made = arrays.of_models(16, 400, 50, seed=1)
    log_odds, member = made["log_odds"][:, :400], made["member"][:, :400]
    scores = np.zeros(400)
    for i in range(400):
        inside, outside = log_odds[1:, i][member[1:, i]], log_odds[1:, i][~member[1:, i]]
        for side, sign in ((inside, 1), (outside, -1)):
            scores[i] -= sign * (np.log(side.std()) + (log_odds[0, i] - side.mean()) ** 2 / side.var() / 2)
    (point,) = [row for row in rows if row["call"] == "lira, variance=point"]
    assert point["auc"] == pytest.approx(command.rates(scores.tolist(), member[0])["auc"], abs=0.003)
