"""What a command does where it is not trusted: with odd streams, odd names, other people's plans, and secrets."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import zipfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from leakbound.auditing.api import run
from leakbound.auditing.attribute import game
from leakbound.cli.options import leave_of
from leakbound.plans import from_toml
from leakbound.releases.specs import imported, only_from, refused_module
from leakbound.releases.user_modules import FolderFinder, for_workers, look_in
from leakbound.reports import Report
from tests.cli.calling import caller
from tests.marks import nightly

SMALL = "audit --data people.csv --label label --model sklearn.tree:DecisionTreeClassifier --n-models 8 --n-jobs 1"
REFUTED = f"{SMALL} --claim epsilon=0.001,adjacency=add_remove"
MODULE = """
open("imported", "w").close()
from importlib import import_module
class Forest: pass
def mean(x): return x.mean(axis=0)
"""


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd, as_users_run_it):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(40, 2)).round(3)
    pd.DataFrame(rows, columns=["a", "b"]).assign(label=np.arange(40) % 2).to_csv("people.csv", index=False)
    for name in ("evil", "sklearn_evil"):
        Path(f"{name}.py").write_text(MODULE)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return caller(monkeypatch, capfd)


def shell(command):
    """A command as a shell runs it."""
    quick = {"OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1", "PYTHON": sys.executable}
    line = command.replace("leakbound", "$PYTHON -m leakbound")
    return subprocess.run(["bash", "-c", line], env=os.environ | quick, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
class TestStreams:
    def test_who_reads_the_first_line_loses_no_report_and_no_exit_code(self, leakbound):
        done = shell(f"set -o pipefail; leakbound {REFUTED} | head -1")
        assert done.returncode == 2
        assert len(done.stdout.splitlines()) == 1
        assert "Traceback" not in done.stderr
        assert "BrokenPipe" not in done.stderr
        assert Report.from_json("leakbound-report/report.json").findings

    @pytest.mark.nightly
    @pytest.mark.parametrize("redirect", [">&- 2>&- <&-", ">/dev/full", ">&-", "2>&-"])
    def test_closed_and_full_streams(self, leakbound, redirect):
        done = shell(f"leakbound {REFUTED} {redirect}")
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert "unexpected" not in done.stderr
        assert Report.from_json("leakbound-report/report.json").findings

    def test_prose_never_goes_to_standard_output(self, leakbound):
        done = shell(f"leakbound {REFUTED} --json 2>&-")
        assert (done.returncode, done.stderr) == (2, "")
        assert done.stdout == Path("leakbound-report/report.json").read_text(encoding="utf-8")


class TestNames:
    ODD = "a\x1b[2Jb\u202egnp"

    def test_a_column_name_does_not_reach_the_terminal_in_an_error(self, leakbound):
        pd.read_csv("people.csv").rename(columns={"a": self.ODD}).to_csv("odd.csv", index=False)
        left = leakbound("audit --data odd.csv --label lable")
        assert left.code == 1
        assert r"a\x1b[2Jb\u202egnp" in left.err
        assert left.err.removesuffix("\n").isprintable()

    @pytest.mark.slow
    def test_nor_in_a_table_or_in_json(self, leakbound):
        pd.read_csv("people.csv").rename(columns={"a": self.ODD}).to_csv("odd.csv", index=False)
        Path("plan.toml").write_text(
            'data = "odd.csv"\nlabel = "label"\nn_models = 4\ntitle = "t\\u001b[31m\\u202e"\n'
            '[[model]]\nspec = "sklearn.tree:DecisionTreeClassifier"\nname = "m\\u001b[5m"\n'
        )
        for flag in ("", " --json"):
            left = leakbound(f"audit plan.toml --n-jobs 1{flag}")
            assert left.code == 0
            assert left.out.replace("\n", "").isprintable()
            assert left.err.replace("\n", "").isprintable()

    def test_a_long_error_is_one_line_of_300_letters(self, leakbound):
        left = leakbound(f"audit --data people.csv --label {'x' * 5000}")
        assert left.code == 1
        assert left.err.count("\n") == 1
        assert len(left.err.removeprefix("leakbound: error: ").removesuffix("\n")) <= 300


def plan(text: str) -> None:
    Path("plan.toml").write_text(text)


MODEL = 'dataset = "wine"\nn_models = 4\n[[model]]\nspec = "%s"\n'
HOOKS = 'dpsgd = {noise_multiplier = 1, clip = 1, sample_rate = 0.1, steps = 2, train = "evil:train"}\n'
STATISTIC = 'data = "people.csv"\npromise = "drawn"\neta = 0.1\n'
LEAVE = "a plan runs no code but scikit-learn's models; if you trust "


class TestPlans:
    @pytest.mark.parametrize(
        ("command", "text", "module"),
        [
            ("audit plan.toml", MODEL % "evil:Forest", "evil"),
            ("audit plan.toml --allow-modules lightgbm", MODEL % "evil:Forest", "evil"),
            ("audit plan.toml --allow-modules evil_twin", MODEL % "evil:Forest", "evil"),
            ("audit plan.toml", MODEL % "sklearn_evil:Forest", "sklearn_evil"),
            ("audit plan.toml --n-models 8", MODEL % "evil:Forest", "evil"),
            (
                "audit plan.toml",
                'dataset = "wine"\n[game.half_split.queries]\nn = 2\nversions = "evil:blurred"',
                "evil",
            ),
            ("fit plan.toml --store made", MODEL % "evil:Forest", "evil"),
            ("calibrate --plan plan.toml", STATISTIC + 'statistic = "evil:mean"\n', "evil"),
            ("protect --plan plan.toml", STATISTIC + 'statistic = "evil:mean"\n', "evil"),
            ("protect --plan plan.toml --allow-modules numpy", STATISTIC + 'statistic = "evil:mean"\n', "evil"),
            # functions of scikit-learn and of ours that remove folders, load pickles, or run commands
            ("audit plan.toml", MODEL % "sklearn.datasets:clear_data_home", "sklearn.datasets"),
            ("audit plan.toml", MODEL % "leakbound.releases.model_files:read_model", "leakbound.releases.model_files"),
            ("audit plan.toml", MODEL % "sklearn.base:warnings", "warnings"),
            ("protect --plan plan.toml", STATISTIC + 'statistic = "sklearn.datasets:clear_data_home"', "sklearn.datas"),
        ],
    )
    def test_a_plan_runs_no_code_of_its_own(self, leakbound, command, text, module):
        plan(text)
        left = leakbound(command)
        assert left.code == 1
        assert LEAVE + module in left.err
        assert "--allow-modules" in left.err
        assert left.err.count("\n") == 1
        assert not Path("imported").exists()
        assert not Path("leakbound-report/report.json").exists()

    def test_one_of_several_statistics_neither(self, leakbound):
        plan(
            'data = "people.csv"\npromise = "file"\neta = 0.1\n[[statistic]]\nstatistic = "mean"\n'
            '[[statistic]]\nstatistic = "evil:mean"\n'
        )
        for command in ("calibrate", "protect"):
            left = leakbound(f"{command} --plan plan.toml")
            assert (left.code, Path("imported").exists()) == (1, False)

    def test_a_model_that_is_trained_by_hooks_of_a_plan_neither(self, leakbound):
        plan(MODEL % "sklearn.tree:DecisionTreeClassifier" + HOOKS)
        assert leakbound("audit plan.toml").code == 1
        assert not Path("imported").exists()

    @pytest.mark.parametrize("command", ["audit plan.toml", "protect --plan plan.toml"])
    def test_a_plan_cannot_give_itself_leave(self, leakbound, command):
        plan('allow_modules = "evil"\n' + (MODEL % "evil:Forest" if "audit" in command else STATISTIC))
        left = leakbound(command)
        assert left.code == 1
        assert "unknown key 'allow_modules'" in left.err
        assert not Path("imported").exists()

    def test_a_plan_from_python_neither(self, leakbound, monkeypatch):
        monkeypatch.syspath_prepend(Path.cwd())
        plan(MODEL % "evil:Forest")
        with pytest.raises(ValueError, match="a plan runs no code"):
            run(from_toml("plan.toml"))
        assert not Path("imported").exists()
        with pytest.raises(ValueError, match="expected an estimator"):
            run(from_toml("plan.toml"), allow_modules=["evil"])
        assert Path("imported").exists()

    @pytest.mark.parametrize(
        "command",
        [
            "audit plan.toml --allow-modules evil",
            "audit plan.toml --model evil:Forest",  # as it is typed
            "audit --dataset wine --model evil:Forest",
        ],
    )
    def test_what_the_user_names_is_imported(self, leakbound, command):
        plan(MODEL % "evil:Forest")
        left = leakbound(command)
        assert "expected an estimator with fit and get_params, got an object of type Forest" in left.err
        assert Path("imported").exists()

    @pytest.mark.parametrize(
        "words",
        [
            "--dpsgd noise_multiplier=1,clip=1,sample_rate=0.1,steps=2,train=evil:train",
            "--game half_split,queries=[2,versions=evil:blurred]",
        ],
    )
    def test_import_paths_in_other_flags_too(self, leakbound, words):
        with leave_of(None, {"words": words.split()}):
            (path,) = re.findall(r"evil:\w+", words)
            assert refused_module(path) == ""
            assert refused_module("evil:other") == "evil"

    def test_what_an_allowed_module_passes_on_is_refused(self, leakbound, monkeypatch):
        monkeypatch.syspath_prepend(Path.cwd())
        with (
            only_from("evil"),
            pytest.raises(ValueError, match=r"if you trust importlib: allow_modules \(--allow-modules importlib\)"),
        ):
            imported("evil:import_module")

    @pytest.mark.parametrize("names", ["", ",", "sklearn,os.path;x", "../x"])
    def test_names_that_are_no_modules(self, leakbound, names):
        left = leakbound(f"audit --dataset wine --allow-modules '{names}'")
        assert left.code == 1
        assert left.err.startswith("leakbound: error: allow_modules names modules, as lightgbm,my_package.nets; got")

    def test_a_dry_run_lists_what_a_plan_would_import_and_imports_nothing(self, leakbound):
        plan(MODEL % "evil:Forest")
        left = leakbound("audit plan.toml --dry-run")
        assert left.code == 0
        assert left.out.splitlines()[0] == "imports evil:Forest"
        assert "--allow-modules evil" in left.out
        assert not Path("imported").exists()

    def test_a_dry_run_lists_the_hooks_of_dpsgd_too(self, leakbound):
        plan(MODEL % "evil:Forest" + HOOKS)
        left = leakbound("audit plan.toml --dry-run")
        assert left.out.splitlines()[0] == "imports evil:Forest, evil:train"
        assert not Path("imported").exists()


class TestTheCurrentFolder:
    """Files named like libraries lie in the folder of the command: nobody runs them but who names them."""

    @pytest.fixture(autouse=True)
    def shadows(self, leakbound):
        for name in ("skops", "onnxruntime", "surely_missing", "helper"):
            Path(f"{name}.py").write_text(f'open("ran_{name}", "w").close()\n')
        with zipfile.ZipFile("model.skops", "w") as archive:
            archive.writestr("schema.json", "{}")
        Path("model.onnx").write_bytes(b"a graph")
        yield
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, FolderFinder)]
        for name in ("surely_missing", "helper", "mine"):
            sys.modules.pop(name, None)

    @pytest.mark.parametrize("words", ["", "--allow-modules sklearn"])
    @pytest.mark.parametrize("file", ["model.skops", "model.onnx"])
    def test_a_missing_library_is_not_looked_for_there(self, leakbound, file, words):
        left = leakbound(f"audit {file} --members people.csv --others people.csv --label label {words}")
        assert (left.code, left.err.count("\n")) == (1, 1)
        assert list(Path().glob("ran_*")) == []

    @pytest.mark.parametrize("words", ["", "--model evil:Forest"])
    def test_nothing_that_a_library_looks_for(self, leakbound, words):
        leakbound(f"audit --dataset wine --n-jobs 0 {words}")
        assert os.getcwd() not in sys.path
        assert find_spec("surely_missing") is None
        with pytest.raises(ModuleNotFoundError):
            import_module("surely_missing")

    def test_what_a_named_module_imports_is_found_there_at_any_time(self, leakbound):
        Path("mine.py").write_text("def answer():\n    import helper\n    return helper\n")
        look_in(os.getcwd())
        with pytest.raises(ModuleNotFoundError):
            import_module("mine")
        imported("mine:answer")()
        assert Path("ran_helper").exists()
        assert for_workers() == (os.getcwd(), ("helper", "mine"))

    @pytest.mark.slow
    @pytest.mark.parametrize("command", ["python -m leakbound", "leakbound"])
    def test_workers_find_named_modules_and_run_no_others(self, leakbound, command):
        for name in ("joblib", "multiprocessing", "typer", "pickle"):
            Path(f"{name}.py").write_text(f'open("ran_{name}", "w").close()\n')
        Path("mine.py").write_text(
            "from sklearn.tree import DecisionTreeClassifier\nclass Tree(DecisionTreeClassifier):\n    pass\n"
        )
        start = f"{sys.executable} -m leakbound" if "-m" in command else str(Path(sys.executable).parent / "leakbound")
        line = f"{start} audit --data people.csv --label label --model mine:Tree --n-models 64 --n-jobs 2 --out made"
        done = subprocess.run(line.split(), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert list(Path().glob("ran_*")) == []


class TestOurOwn:
    @pytest.mark.slow
    def test_the_attacks_of_ours_need_no_leave(self, leakbound, monkeypatch):
        forest = game.IMPUTER[0], {"n_estimators": 5}
        monkeypatch.setattr(game, "IMPUTER", forest)
        words = "--data people.csv --label label --model sklearn.tree:DecisionTreeClassifier --n-models 4 --n-jobs 1"
        assert leakbound(f"audit {words} --game attribute,column=a,bins=3 --allow-modules numpy").code == 0
        words = "--data people.csv --drop label --eta 0.2 --statistic quantiles --n-jobs 1"
        assert leakbound(f"protect --promise drawn,fits=200,games=100 {words} --allow-modules numpy").code == 0


class TestSecrets:
    def mode(self, path):
        return stat.S_IMODE(Path(path).stat().st_mode)

    @pytest.fixture(autouse=True)
    def common_umask(self):
        before = os.umask(0o022)
        yield
        os.umask(before)

    def test_an_audit_is_for_its_owner_alone(self, leakbound):
        assert leakbound(f"{SMALL} --out one/two").code == 0
        assert self.mode("one/two") == 0o700
        assert {self.mode(file) for file in Path("one/two").iterdir() if file.is_file()} == {0o600}

    def test_a_failed_audit_leaves_a_folder_for_its_owner_alone_or_none(self, leakbound, monkeypatch):
        def observe(*words: object) -> None:
            Path("failed/store").mkdir()
            raise RuntimeError("no fit")

        monkeypatch.setattr("leakbound.auditing.api.run", lambda *words, **more: observe())
        assert leakbound(f"{SMALL} --out failed").code == 1
        assert self.mode("failed") == 0o700
        monkeypatch.undo()
        assert leakbound("audit --data gone.csv --label a --out empty").code == 1
        assert not Path("empty").exists()

    def test_a_bound_on_data_too(self, leakbound):
        assert leakbound("bound leakage --data people.csv --out bound").code == 0
        assert self.mode("bound") == 0o700
        assert self.mode("bound/report.json") == self.mode("bound/report.html") == 0o600

    def test_what_is_published_is_without_records_and_open(self, leakbound):
        left = leakbound(f"{SMALL} --publish --out there")
        assert left.code == 0
        assert self.mode("there") == 0o755
        assert self.mode("there/report.json") == self.mode("there/report.html") == 0o644
        assert self.mode("there/run.json") == 0o600
        report = Report.from_json("there/report.json")
        assert dict(report.record_table) == {}
        assert report.to_json() == report.to_json(publish=True)
        assert report.digest() in Path("there/report.html").read_text(encoding="utf-8")

    @pytest.mark.slow
    def test_a_published_bound_prints_no_record(self, leakbound):
        shown = leakbound("bound leakage --data people.csv --out bound").out
        published = leakbound("bound leakage --data people.csv --out bound2 --publish").out
        assert "most exposed records" in shown
        assert "most exposed records" not in published

    @pytest.mark.slow
    def test_a_folder_of_the_users_own_is_left_alone(self, leakbound):
        Path("out/.new").mkdir(parents=True)
        Path("out/.new/notes").write_text("mine")
        Path("out/report.json.part").write_text("mine")
        assert leakbound(f"{SMALL} --out out").code == 0
        assert Path("out/.new/notes").read_text() == "mine"
        names = {each.name for each in Path("out").iterdir()}
        assert names == {".new", "report.json.part", "report.json", "report.html", "run.json", "store"}


@pytest.mark.slow
def test_an_edited_report_is_compared_on_request_alone(leakbound):
    assert leakbound(f"{SMALL} --out out").code == 0
    file = Path("out/report.json")
    file.write_text(file.read_text(encoding="utf-8").replace('"auc"', '"advantage"', 1), encoding="utf-8")
    left = leakbound("compare out/report.json out/report.json")
    assert (left.code, left.out) == (1, "")
    assert "is not as it was written" in left.err
    assert leakbound("compare out/report.json out/report.json --unverified").code == 0


class TestPaths:
    """A report holds names of files and no folder of the machine."""

    @pytest.fixture
    def folder(self, tmp_path):
        """A trained model, its data, other data and a table of scores, in a folder with a telling name."""
        folder = tmp_path / "ada-lovelace" / "clinic"
        folder.mkdir(parents=True)
        frame = pd.read_csv("people.csv")
        frame[::2].to_csv(folder / "in.csv", index=False)
        frame[1::2].to_csv(folder / "out.csv", index=False)
        model = DecisionTreeClassifier(random_state=0).fit(frame[::4][["a", "b"]].to_numpy(), frame["a"][::4] > 0)
        joblib.dump(model, folder / "model.joblib")
        frame.assign(member=frame["label"], score=frame["a"])[["member", "score"]].to_csv(folder / "s.csv", index=False)
        Path("trained.py").write_text(
            "import numpy as np\n"
            "def answer(x):\n"
            "    p = 1 / (1 + np.exp(-np.asarray(x)[:, 0]))\n"
            "    return np.stack([1 - p, p], axis=1)\n"
        )
        return folder

    @pytest.mark.parametrize(
        "command",
        [
            "audit model {0}/model.joblib --unpickle-trusted --members {0}/in.csv --others {0}/out.csv --label truth",
            "audit model {0}/model.joblib --unpickle-trusted --members {0}/in.csv --others {0}/out.csv --label truth "
            "--model sklearn.tree:DecisionTreeClassifier --n-models 4 --n-jobs 1 --store {0}/store",
            nightly("audit model --predict trained:answer --members {0}/in.csv --others {0}/out.csv --label truth"),
            "audit scores {0}/s.csv",
        ],
    )
    @pytest.mark.slow
    def test_a_trained_model(self, leakbound, folder, command):
        for side in ("in.csv", "out.csv"):
            frame = pd.read_csv(folder / side)
            frame.assign(truth=frame["a"] > 0).drop(columns="label").to_csv(folder / side, index=False)
        left = leakbound(command.format(folder) + f" --out {folder}/report")
        assert left.code == 0, left.err
        shown = {"text": left.out}
        for file in ("report.json", "report.html"):
            shown[file] = (folder / "report" / file).read_text(encoding="utf-8")
        for name, text in shown.items():
            for part in (str(folder), "ada-lovelace", "clinic"):
                assert part not in text, (name, part)
        word = next(word for word in command.split()[1:] if "." in word or ":" in word)
        assert Path(word).name.removesuffix(".csv") in shown["report.json"]
