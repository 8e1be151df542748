"""What bad input gets: one line that says what was given and what is allowed, exit code 1, nothing written."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from leakbound.cli.main import main
from tests.bad_files import FILES, FRAME
from tests.bad_protections import PROTECTION_FILES, PROTECTIONS
from tests.marks import nightly

TREE = "--model sklearn.tree:DecisionTreeClassifier"
LOGISTIC = "--model sklearn.linear_model:LogisticRegression"
RIDGE = "--model sklearn.linear_model:Ridge"
SIDES = "--members fine.csv --others fine.csv --label label"
WINE = "audit --dataset wine"
FOREST = "sklearn.ensemble:RandomForestClassifier"


@dataclass(frozen=True)
class Bad:
    """A command line and the line that it gets: the start of it, and the end where that is told apart."""

    command: str
    start: str
    end: str = ""


CASES = [
    # files
    Bad("audit --data empty.csv --label label", "empty.csv: the file is empty"),
    Bad("audit --data header.csv --label label", "header.csv: the table has no rows or no columns"),
    Bad(
        "audit --data ragged.csv --label label",
        "ragged.csv: line 3 has 5 fields where the header has 3",
        "; if another sign separates the columns, name it as separator (--separator)",
    ),
    Bad("audit --data prose.csv --label label", "prose.csv: column 2 has no name in the header"),
    Bad("audit --data no_text.csv --label label", "no_text.csv: it is not written in UTF-8: declare it as encoding"),
    Bad("audit --data garbage.csv --label label", "garbage.csv: line 1 holds a zero byte, as no text"),
    Bad("audit --data garbage.npz", "garbage.npz: cannot be read as npz without pickle: it is no .npz file"),
    Bad("audit --data cut.parquet --label label", "cut.parquet: cannot be read as parquet: "),
    Bad("audit --data folder.csv --label label", "folder.csv: no such file"),
    Bad("audit --data missing.csv --label label", "missing.csv: no such file"),
    Bad("audit --data fine.txt --label label", "fine.txt: cannot read '.txt' files; allowed: .csv, .parquet, .npz"),
    Bad("audit --data ''", "audit: data: String should have at least 1 character, got ''"),
    Bad(
        "audit --data objects.npz", "objects.npz: cannot be read as npz without pickle: Object arrays cannot be loaded"
    ),
    Bad("audit --data single.npz", "single.npz: holds a single array; an .npz file of named arrays is needed"),
    Bad(
        "audit --dataset digitss",
        "unknown data set 'digitss' (did you mean 'digits'?); known: digits, breast_cancer, wine",
    ),
    Bad(
        f"audit --data inf.csv --label label {TREE}", "DecisionTreeClassifier cannot be fitted on ", "dtype('float32')."
    ),
    Bad(
        f"audit --data huge.csv --label label {TREE}",
        "DecisionTreeClassifier cannot be fitted on ",
        "dtype('float32').",
    ),
    Bad(
        f"audit --data nan_array.npz {LOGISTIC}",
        "LogisticRegression cannot be fitted on ",
        "Input X contains NaN.",
    ),
    Bad(
        f"audit --data text_x.npz {TREE}",
        "DecisionTreeClassifier cannot be fitted on ",
        "convert string to float: np.str_('a')",
    ),
    # columns
    Bad(
        "audit --data fine.csv",
        "fine.csv: name the label column (label, --label), or the score by which a model without "
        "one is read (score, --score); columns: a, b, label",
    ),
    Bad("audit --data fine.csv --label lable", "fine.csv: no column 'lable' (did you mean 'label'?); ", "a, b, label"),
    Bad(
        "audit --data fine.csv --label label --group aa",
        "fine.csv: no column 'aa' (did you mean 'a'?); ",
        "a, b, label",
    ),
    Bad("audit --data only.csv --label label", "only.csv: no feature columns are left besides label"),
    Bad(f"{WINE} --label target", "wine comes with its own label; ", "are columns of files"),
    Bad(
        f"audit --data household.csv --label label --group household {TREE}",
        "a half split needs at least 2 units, got 1",
    ),
    Bad(
        "audit --data lost_household.csv --label label --group household",
        "group is missing at 1 points, first at point 4",
    ),
    Bad(
        "audit --data no_x.npz",
        "no_x.npz: the features are the array 'x', which is not there; arrays: X, y",
    ),
    Bad("audit --data no_y.npz", "no_y.npz: no array 'y'; arrays: x, labels"),
    # labels
    Bad(
        f"audit --data one_class.csv --label label {TREE}",
        "DecisionTreeClassifier needs at least 2 classes, got only 1",
    ),
    Bad("audit --data lost_label.csv --label label", "label is missing at 1 points, first at point 4"),
    Bad("audit --data infinite_label.csv --label label", "label has infinite values"),
    Bad(f"audit --data words.csv --label label {RIDGE}", "Ridge is a regressor and needs numbers as labels, got text"),
    Bad(
        f"audit --data floats.csv --label label {TREE}",
        "DecisionTreeClassifier is a classifier, but the label has 60 different numbers",
    ),
    Bad(f"audit --data level.csv --label label {RIDGE}", "Ridge: the response is the same at all 60 points"),
    # shapes
    Bad("audit --data one.csv --label label", "one.csv: a table needs at least 2 records, got 1"),
    Bad("audit --data line.npz", "x must have a row for each point and a column for each feature, got shape (10,)"),
    Bad("audit --data short.npz", "label must have shape (10,), one value a point; got (9,)"),
    Bad("audit --data deep_y.npz", "label must have shape (10,), one value a point; got (10, 3, 2)"),
    # numbers
    Bad(f"{WINE} --n-models 1", "audit: n_models must be >= 2, got 1; one is enough for the game canaries alone"),
    Bad(f"{WINE} --n-models 0", "audit: n_models must be >= 1, got 0"),
    Bad(f"{WINE} --n-models -3", "audit: n_models must be >= 1, got -3"),
    Bad(f"{WINE} --n-models abc", "Invalid value for '--n-models': Input should be a valid integer"),
    Bad(f"{WINE} --policy accuracy=60", "audit: policy: limits accuracy=60: accuracy is a fraction: 60"),
    Bad(f"{WINE} --policy auc=1", "audit: policy: limits auc=1: a limit of 1 can never be exceeded"),
    Bad(f"{WINE} --policy auc=0.6,", "audit: policy: limits takes QUANTITY[@AT]=VALUE, as tpr@0.01=0.05, got ''"),
    Bad(f"{WINE} --claim accuracy=60", "claim: accuracy is a fraction: 60 is out of range; did you mean 0.6?"),
    Bad(f"{WINE} --confidence 95", "audit: confidence is a fraction: 95 is out of range; did you mean 0.95?"),
    Bad(f"{WINE} --fpr 5", "audit: fpr is a fraction: 5 is out of range; did you mean 0.05? It must be > 0 and < 1"),
    Bad(f"{WINE} --fpr 0", "audit: fpr must be > 0 and < 1, got 0"),
    Bad(f"{WINE} --fpr nan", "audit: fpr must be finite, got nan"),
    Bad(f"{WINE} --confidence 0", "audit: confidence must be > 0 and < 1, got 0"),
    Bad(f"{WINE} --confidence 1", "audit: confidence must be > 0 and < 1, got 1"),
    Bad(
        f"{WINE} --confidence 2",
        "audit: confidence is a fraction: 2 is out of range; did you mean 0.02? It must be > 0 and < 1",
    ),
    Bad(f"{WINE} --seed -1", "audit: seed: Input should be greater than or equal to 0, got -1"),
    Bad(f"{WINE} --n-jobs 0", "n_jobs must be >= 1, got 0"),
    Bad(f"{WINE} --n-jobs 0 --dry-run", "n_jobs must be >= 1, got 0"),
    # plans
    Bad("audit missing.toml", "missing.toml: no such plan file"),
    Bad("audit syntax.toml", "syntax.toml: not TOML: Invalid value (at line 1, column 12)"),
    Bad("audit latin.toml", "latin.toml: not TOML: 'utf-8' codec can't decode"),
    Bad(
        "audit key.toml",
        "key.toml: unknown key 'modles' (did you mean 'n_models'?); known: title, unit, date, ",
    ),
    Bad(
        "audit deep_key.toml", "deep_key.toml: unknown key 'model.0.sett' (did you mean 'set'?); known: spec, name, set"
    ),
    Bad("audit type.toml", "type.toml: n_models must be a number, got", "got 'many'"),
    Bad(
        "audit game.toml",
        "game.toml: game must be one of half_split, per_datum, average_datum, canaries, attribute",
    ),
    Bad("audit no_spec.toml", "no_spec.toml: the key 'model.0.spec' is missing"),
    Bad("audit names.toml", "names.toml: two models have the same name; names: m, m"),
    Bad(
        "audit no_adjacency.toml",
        "no_adjacency.toml: claim.0: a claim of epsilon needs adjacency=add_remove or adjacency=",
    ),
    Bad(
        "audit two_promises.toml",
        "two_promises.toml: claim.0: a claim needs one of epsilon, mu, eta, accuracy; got epsilon, mu",
    ),
    Bad("audit negative.toml", "negative.toml: claim.0: epsilon must be >= 0, got -1"),
    Bad("audit infinite.toml", "infinite.toml: claim.0: epsilon must be finite, got inf"),
    Bad(
        "audit delta.toml",
        "delta.toml: claim.0: delta is a fraction: 2 is out of range; did you mean 0.02? It must be >= 0 and < 1",
    ),
    Bad("audit who.toml", "a claim is about 'forest', which is no model here: tree"),
    Bad("audit no_target.toml", "no_target.toml: game: per_datum: the key 'target' is missing"),
    Bad("audit far_target.toml", "target must be from 0 to 177, got 999"),
    Bad("audit twice.toml", "twice.toml: game: canaries: targets names a record twice: [1, 1]"),
    # options
    Bad(f"{WINE} --modles 8", "No such option: --modles (Possible options: --allow-modules, --model, --n-models"),
    Bad("adit", "No such command 'adit'. Did you mean 'audit'?"),
    Bad("store", "Missing command."),
    Bad(f"{WINE} --attack lirra", "unknown attack 'lirra' (did you mean 'lira'?); known: gap, confidence, loss"),
    Bad(f"{WINE} --claim epsilon", "claim: write NAME=VALUE, got 'epsilon'"),
    Bad(
        f"{WINE} --claim eps=3,adjacency=add_remove",
        "claim: unknown key 'eps' (did you mean 'epsilon'?); known: epsilon, delta",
    ),
    Bad(
        f"{WINE} --policy tpr=0.1",
        "audit: policy: limits: tpr needs a false-alarm rate, as tpr@0.01=0.05; got 'tpr=0.1'",
    ),
    Bad(
        f"{WINE} --policy auk=0.6",
        "audit: policy: limits takes QUANTITY[@AT]=VALUE, as tpr@0.01=0.05, got 'auk=0.6'",
    ),
    Bad(f"{WINE} --policy auc=big", "audit: policy: limits takes numbers, as tpr@0.01=0.05, got 'auc=big'"),
    Bad(f"{WINE} --fail-above auc=0.6", "audit has no --fail-above; use --policy tpr@0.01=0.05"),
    Bad(
        f"{WINE} --model {FOREST} --set n_estimator=3",
        f"{FOREST}: unknown parameter 'n_estimator' (did you mean 'n_estimators'?); known: ",
    ),
    Bad(
        f"{WINE} --model {FOREST} --set n_estimators=-3",
        "RandomForestClassifier cannot be fitted on ",
        "Got -3 instead.",
    ),
    Bad(f"{WINE} --set n_estimators=3", "--set needs a --model"),
    Bad(
        f"{WINE} --model Forest",
        "'Forest' is no import path; write module:name, as sklearn.ensemble:RandomForestClassifier",
    ),
    Bad(
        f"{WINE} --model sklearn.ensemble:Forrest",
        "sklearn.ensemble:Forrest: cannot be imported: ",
        "has no attribute 'Forrest'",
    ),
    Bad(
        f"{WINE} --model nowhere_at_all:Forest",
        "nowhere_at_all:Forest: cannot be imported: No module named 'nowhere_at_all'",
    ),
    Bad(f"{WINE} --model broken:f", "broken:f: cannot be imported: invalid syntax (broken.py, line 1)"),
    Bad(f"{WINE} --model mine:number", "expected an estimator with fit and get_params, got an object of type int; "),
    Bad(f"{WINE} --model mine:NoFit", "expected an estimator with fit and get_params, got an object of type NoFit; "),
    Bad(
        f"{WINE} --model mine:NeedsArguments", "mine:NeedsArguments: ", "missing 1 required positional argument: 'size'"
    ),
    Bad(f"{WINE} --model mine:Mute", "Mute has neither predict_proba, decision_function nor predict"),
    Bad(
        "audit --data fine.csv --label label --model mine:Wrong",
        "rows must be probabilities: ",
        "apply softmax to logits, and divide rounded ones by the sum of their row",
    ),
    Bad("audit --data fine.csv --label label --model mine:Short", "Short gave 3 answers for 60 points"),
    Bad("audit --data fine.csv --label label --model mine:Breaks", "Breaks gives no numbers for 60 points: no answer"),
    Bad("audit --data fine.csv --label label --model mine:Lost", "Lost answers with NaN or infinite values"),
    Bad(
        f"{WINE} {TREE} {TREE}", "two models have the same name; names: DecisionTreeClassifier, DecisionTreeClassifier"
    ),
    # one trained model
    Bad("audit model --predict mine:flat", "--predict needs --members FILE and --others FILE"),
    Bad(f"{WINE} --members fine.csv", "audit has no --members; use leakbound audit model --members FILE --others FILE"),
    Bad(f"audit model --dataset wine --predict mine:flat {SIDES}", "audit model has no --dataset; use --members FILE"),
    Bad(
        "audit fine.csv",
        "fine.csv is no plan (.toml); data are given by --data, a trained model to leakbound audit model",
    ),
    Bad(f"audit model gone.skops {SIDES}", "gone.skops: no such file"),
    Bad("audit model gone.skops", "gone.skops needs --members FILE and --others FILE"),
    Bad(f"audit model fine.csv {SIDES}", "fine.csv is no trained model (.skops, .onnx, "),
    Bad(f"audit model gone.skops --predict mine:flat {SIDES}", "give ONE trained model: a file"),
    Bad(f"audit model --predict mine:flat {SIDES} --data fine.csv", "--data has the records of --probabilities; "),
    Bad("audit scores fine.csv", "fine.csv: no column 'member'; columns: "),
    Bad("audit scores fine.csv --seed 3", "No such option: --seed"),
    Bad("audit scores fine.csv --attack lira", "No such option: --attack"),
    Bad("audit model --probabilities fine.csv", "fine.csv: no column 'member'; columns: "),
    Bad(
        "audit model --probabilities fine.csv --n-models 4",
        "--probabilities are a model's answers: they take no --n-models",
    ),
    Bad("audit --trust mine.Model", "No such option: --trust"),
    Bad(
        f"audit model --predict mine:number {SIDES}",
        "expected a fitted model or a function from features to probabilities, got a int",
    ),
    Bad(
        f"audit model --predict mine:logits {SIDES}",
        "rows must be probabilities: ",
        "divide rounded ones by the sum of their row",
    ),
    Bad(f"audit model --predict mine:short {SIDES}", "mine:short gave 3 answers for 120 points"),
    Bad(f"audit model --predict mine:nans {SIDES}", "probabilities have NaN or infinite values"),
    Bad(
        f"audit model --predict mine:text {SIDES}",
        "mine:text answers 'no' where the labels are as '0'; it must answer with the labels of the data",
    ),
    Bad(f"audit model --predict mine:nothing {SIDES}", "mine:nothing gave 1 answers for 120 points"),
    Bad(f"audit model --predict mine:raises {SIDES}", "mine:raises gives no numbers for 120 points: 'age'"),
    Bad(
        "audit model --predict mine:flat --members fine.csv --others narrow.csv --label label",
        "members and others have different columns",
    ),
    Bad(
        "audit model --predict mine:flat --members fine.csv --others words.csv --label label",
        "mine:flat gives 2 probabilities a point, and the labels cannot be matched",
    ),
    # signals from elsewhere
    Bad("audit signals missing.npz", "missing.npz: no such file"),
    Bad(
        "audit signals unknown.npz",
        "unknown.npz: unknown array 'los' (did you mean 'loss'?); known: member, is_target",
    ),
    Bad("audit signals shape.npz", "signal 'loss' has shape (8, 5); its axes are (M, N) with (M, N) = (8, 20)"),
    Bad("audit signals nans.npz", "signal 'loss' has NaN or infinite values"),
    Bad("audit signals large.npz", "signal 'loss' has NaN or infinite values"),
    Bad("audit signals logits.npz", "signal 'logits' is not taken", "apply log_softmax to raw logits"),
    Bad(
        "audit signals raw.npz",
        "signal 'log_prob' is not normalised",
        "apply log_softmax over the classes to raw logits",
    ),
    Bad("audit signals unlabelled.npz", "signal 'log_prob' needs labels (N,): the class index of each point"),
    Bad("audit signals mislabelled.npz", "labels must be class indices from 0 to 1, ", "got 2 to 2"),
    Bad("audit signals other_loss.npz", "signal 'loss' disagrees with log_prob and labels"),
    Bad("audit signals complex.npz", "complex.npz: loss must hold numbers, got complex128"),
    Bad("audit signals twos.npz", "twos.npz: member must hold truth values, or 0 and 1"),
    Bad(
        "audit signals alone.npz",
        "alone.npz: no signals in addition to member; known: loss, log_odds, correct, log_prob",
    ),
    Bad("audit signals no_member.npz", "no_member.npz: no array 'member' (M, N); arrays: loss"),
    Bad("audit signals deep.npz", "deep.npz: member must have shape (M, N), got (2, 3, 4)"),
    Bad("audit signals all_in.npz", "all_in.npz: there is no target point, or each one is in all models or in none"),
    Bad("audit signals is_target_point.npz", "is_target_point has shape (3,); allowed: (20,) or (8, 20)"),
    Bad("audit signals targets.npz", "n_targets must be from 1 to the 8 models, got 99"),
    Bad("audit signals half_targets.npz", "half_targets.npz: n_targets must be a whole number, got 2.5"),
    Bad(
        "audit signals nans.npz --predict mine:flat",
        "audit signals has no --predict; use leakbound audit model --predict module:function",
    ),
    Bad("audit signals nans.npz --n-models 8", "No such option: --n-models"),
    # places
    Bad(f"{WINE} --store taken", "the store taken is a file; give a folder"),
    Bad(f"{WINE} --out taken", "--out taken: taken is a file; give a folder"),
    Bad(f"{WINE} --out taken/deeper", "--out taken/deeper: taken is a file; give a folder"),
    Bad("init taken", "taken exists already; choose another name"),
    Bad("store size missing", "missing: no such store"),
    Bad("store clear taken", "taken: no such store"),
    Bad("compare missing.json missing.json", "missing.json: No such file or directory"),
    Bad("compare empty.json empty.json", "empty.json is not a leakbound report of schema 1"),
    Bad("compare cut.json cut.json", "cut.json is not JSON: "),
    Bad("compare hollow.json hollow.json", "hollow.json is not a whole report: the key 'sha256' is missing"),
    *(Bad(*row) for row in PROTECTIONS),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder with every file of the table."""
    made = tmp_path_factory.mktemp("bad")
    for name, write in (FILES | PROTECTION_FILES).items():
        write(made / name)
    return made


@pytest.fixture
def stand(folder: Path, monkeypatch: pytest.MonkeyPatch, as_users_run_it: None) -> Path:
    """The command is called in that folder, whose modules are forgotten afterwards."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("mine", "own"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return folder


def small_promise(words: list[str]) -> list[str]:
    """Try no attack, and sample few pairs, unless the promise says how many."""
    if "--promise" not in words:
        return words
    place = len(words) - words[::-1].index("--promise")
    for name, field in (("file", "games=0"), ("drawn", "games=0"), ("drawn", "fits=200")):
        if words[place].startswith(name) and field.split("=")[0] not in words[place]:
            words[place] += f",{field}"
    return words


def called(command: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The exit code of a command; audits and calibrations are kept small, and write to ``out`` unless told where."""
    words = shlex.split(command)
    if words[0] in ("calibrate", "protect") and "dpsgd" not in words:
        defaults = {"--n-jobs": "1", "--store": str(out.parent / "store")}
        words += [word for flag, value in defaults.items() if flag not in words for word in (flag, value)]
        words = small_promise(words)
    if words[0] == "audit":
        of_a_file = len(words) > 1 and not words[1].startswith("-")
        words += [] if "--n-models" in words or of_a_file else ["--n-models", "2"]
        words += [] if "--n-jobs" in words else ["--n-jobs", "1"]
        words += [] if "--out" in words else ["--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["leakbound", *words])
    with pytest.raises(SystemExit) as left:
        main()
    return left.value.code


@pytest.mark.parametrize("bad", CASES, ids=lambda bad: bad.command)
def test_bad_input_gets_one_line_and_nothing_is_written(bad, stand, tmp_path, monkeypatch, capfd):
    before = {path: path.stat().st_mtime_ns for path in stand.rglob("*")}
    assert called(bad.command, tmp_path / "out", monkeypatch) == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"leakbound: error: {bad.start}")
    assert said.err.removesuffix("\n").endswith(bad.end)
    assert said.err.count("\n") == 1
    assert said.err.isprintable() or said.err[:-1].isprintable()
    assert list(tmp_path.iterdir()) == []
    assert {path: path.stat().st_mtime_ns for path in stand.rglob("*")} == before


def test_the_table_is_long_enough():
    assert len(CASES) >= 50
    assert len({bad.command for bad in CASES}) == len(CASES)
    assert len(PROTECTIONS) >= 30


def test_every_file_of_the_table_is_used():
    words = " ".join(bad.command for bad in CASES)
    unused = {name for name in FILES | PROTECTION_FILES if name not in words and Path(name).stem + ":" not in words}
    assert unused == {"two.csv"}


@pytest.mark.slow
@pytest.mark.parametrize("data", ["two.csv", nightly("constant.csv"), nightly("script.csv")])
def test_odd_data_that_make_sense_are_audited(data, stand, tmp_path, monkeypatch):
    changed = {"constant.csv": {"a": 1.0, "b": 1.0}, "script.csv": {"<script>alert(1)</script>": FRAME.a * 2}}
    source = stand / data if data in FILES else tmp_path / data
    if data in changed:
        FRAME.assign(**changed[data]).to_csv(source, index=False)
    out = tmp_path / "out"
    assert called(f"audit --data {source} --label label {TREE} --n-models 16", out, monkeypatch) == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert data in page
    assert "alert(1)</script>" not in page


@pytest.mark.slow
def test_a_label_of_script_is_escaped_wherever_it_stands(stand, tmp_path, monkeypatch, capfd):
    frame = FRAME.rename(columns={"label": "<script>alert(1)</script>"})
    frame.to_csv(tmp_path / "odd.csv", index=False)
    command = f"audit --data {tmp_path / 'odd.csv'} --label '<script>alert(1)</script>' {TREE} --n-models 16"
    assert called(command, tmp_path / "out", monkeypatch) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "alert(1)&lt;/script&gt;" in page
    assert "alert(1)</script>" not in page


def test_an_unexpected_error_is_one_line_too(stand, tmp_path, monkeypatch, capfd):
    def breaks(*_: Any, **__: Any) -> None:
        raise LookupError("lost")

    monkeypatch.setattr("leakbound.auditing.api.run", breaks)
    assert called(WINE, tmp_path / "out", monkeypatch) == 1
    line = "leakbound: error: unexpected LookupError: lost; set LEAKBOUND_TRACEBACK=1 for where, and report it\n"
    assert capfd.readouterr().err == line


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (
            "--data fine.csv --statistic own:changes",
            "(no coupling keeps the promise; |changes failed in every pair of the pilot: )",
        ),
    ],
)
def test_fits_that_fail_are_refused_before_a_draw(command, line, stand, tmp_path, monkeypatch, capfd):
    """These have been fitted: their store is there, and nothing else."""
    before = {path: path.stat().st_mtime_ns for path in stand.rglob("*")}
    assert called(f"protect --promise drawn --eta 0.1 {command} --out {tmp_path}/r", tmp_path / "out", monkeypatch) == 1
    said = capfd.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert re.match(f"leakbound: error: {line}", said.err)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    assert {path: path.stat().st_mtime_ns for path in stand.rglob("*")} == before


@pytest.mark.slow
def test_a_ledger_of_other_data(stand, tmp_path, monkeypatch, capfd):
    ledger = tmp_path / "l.json"
    protect = f"protect --promise drawn --eta 0.1 --ledger {ledger}"
    assert called(f"{protect} --data fine.csv --out {tmp_path}/a", tmp_path / "out", monkeypatch) == 0
    kept = ledger.read_bytes()
    capfd.readouterr()
    for other in ("fine.csv --drop label", "two.csv"):
        assert called(f"{protect} --data {other} --out {tmp_path}/b", tmp_path / "out", monkeypatch) == 1
        assert capfd.readouterr().err.startswith(f"leakbound: error: {ledger} belongs to other data: digest ")
    assert called(f"{protect} --data fine.csv --declare --statistic sum", tmp_path / "out", monkeypatch) == 1
    assert "a query chosen after an output is outside of the joint certificate" in capfd.readouterr().err
    assert ledger.read_bytes() == kept
    assert not (tmp_path / "b").exists()


@pytest.mark.by_day("two.csv")
@pytest.mark.parametrize(
    "words",
    [
        "two.csv",
        pytest.param("constant.csv --promise drawn,scale=0.5", marks=pytest.mark.slow),
        pytest.param("twice.csv", marks=pytest.mark.slow),
        "script.csv",
        nightly("script.csv --statistic quantiles --promise drawn,k=20,scale=20"),
        "constant.csv --statistic covariance --promise drawn,scale=0.5",
        nightly("words.csv --statistic logistic --label label"),
    ],
)
def test_odd_data_that_make_sense_are_protected(words, stand, tmp_path, monkeypatch):
    """Two records, equal ones, ones that do not differ, a column called <script>, a label of two words."""
    made = {
        "constant.csv": FRAME.assign(a=1.0, b=1.0, label=1),
        "twice.csv": FRAME.loc[FRAME.index.repeat(2)],
        "script.csv": FRAME.assign(**{"<script>alert(1)</script>": FRAME.a * 2}),
    }
    name = words.split()[0]
    source = stand / name if name in FILES else tmp_path / name
    if name in made:
        made[name].to_csv(source, index=False)
    command = f"protect --promise drawn --eta 0.3 --data {words.replace(name, str(source))} --out {tmp_path}/r"
    assert called(command, tmp_path / "out", monkeypatch) == 0
    page = (tmp_path / "r/release.html").read_text(encoding="utf-8")
    assert name in page
    assert "alert(1)</script>" not in page
    assert ("alert(1)&lt;/script&gt;" in page) == (name == "script.csv")
