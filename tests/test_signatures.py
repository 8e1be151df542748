"""Keywords of the public calls, fields of the plans, keys of TOML files and flags of the commands are the same words.

A plan's fields are the keys of its file. Here keywords and flags are compared with them: names, defaults, choices.
What differs is declared, with the reason.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import pydoc
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import typer
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import leakbound as ls
from leakbound import protection
from leakbound.attacks import ATTACKS
from leakbound.auditing import api
from leakbound.bounding.api import bound
from leakbound.bounds import BOUNDS
from leakbound.cli import audits, bounds, given, protects
from leakbound.cli import main as cli
from leakbound.plans import BOUND_PLANS, AuditPlan, CalibrationPlan, ModelPlan, MultiplierPlan, ProtectionPlan
from leakbound.plans.audits import GivenPlan, SyntheticPlan, TrainedPlan
from leakbound.plans.moved import OF_AUDITS
from leakbound.plans.plan import Plan

OF_FILES = {
    "data",
    "dataset",
    "label",
    "drop",
    "drop_missing",
    "separator",
    "decimal",
    "encoding",
}  # a call takes arrays
PAGE = {"title", "unit", "date", "author"}  # fields of one object
OF_A_RELEASE = (OF_FILES | PAGE | {"statistic", "depends_on"}) - {"dataset", "author"}
NAMES = MappingProxyType({"claim": "claims", "group": "groups", "id": "ids"})  # one column of a file, arrays of a call
MOST_KEYWORDS = 20


class Call(NamedTuple):
    """A public call: its keywords are the fields of the plan, but for what is declared."""

    function: Callable[..., Any]
    plan: type[Plan]
    not_keywords: set[str]
    own: set[str]
    renamed: Mapping[str, str] = MappingProxyType({})


CALLS = {
    "audit": Call(
        api.audit,
        AuditPlan,
        # models are objects; what a store depends on is its field
        OF_FILES | PAGE | {"model", "depends_on"},
        {"train", "page", "store", "n_jobs"},
        NAMES,
    ),
    "audit_model": Call(
        api.audit_model,
        TrainedPlan,
        OF_FILES | PAGE | {"depends_on", "n_models"},  # the number of references is a field of `Fitted`
        {"references", "train", "classes", "name", "weights", "page", "store", "n_jobs"},
        NAMES,
    ),
    "audit_signals": Call(
        api.audit_signals,
        GivenPlan,
        OF_FILES | PAGE | {"seed"},
        {"name", "n_jobs", "page"},
        NAMES,
    ),
    "audit_scores": Call(
        api.audit_scores,
        GivenPlan,
        OF_FILES | PAGE | {"attacks", "seed"},
        {"name", "points", "n_jobs", "page", "references_are"},
        NAMES,
    ),
    "audit_synthetic": Call(
        api.audit_synthetic,
        SyntheticPlan,
        (OF_FILES | PAGE) - {"drop"},
        {"reference", "page", "n_jobs"},
        NAMES,
    ),
    "calibrate": Call(
        protection.calibrate,
        CalibrationPlan,
        OF_A_RELEASE | {"by", "levels", "set"},
        {"page", "store", "n_jobs"},
        NAMES,
    ),
    "protect": Call(
        protection.protect,
        ProtectionPlan,
        # `protection.declare` is a call of its own; others are fields of the statistic
        OF_A_RELEASE | {"by", "levels", "set", "merge", "non_negative", "declare"},
        {"page", "store", "n_jobs"},
        NAMES,
    ),
}  # fmt: skip


def keywords_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("name", list(CALLS))
def test_keywords_are_the_fields_of_the_plan(name: str) -> None:
    call = CALLS[name]
    fields = {call.renamed.get(field, field) for field in call.plan.model_fields if field not in call.not_keywords}
    assert set(keywords_of(call.function)) == fields | call.own


@pytest.mark.parametrize("name", [name for name in CALLS if name.startswith("audit")])
def test_a_call_has_few_keywords_and_a_short_help(name: str) -> None:
    assert len(keywords_of(CALLS[name].function)) <= MOST_KEYWORDS
    assert len(pydoc.plain(pydoc.render_doc(CALLS[name].function)).splitlines()) <= 100


def test_an_object_on_the_page_and_a_store_have_the_fields_of_the_plan() -> None:
    assert {field.name for field in dataclasses.fields(ls.Page)} == PAGE <= set(AuditPlan.model_fields)
    assert {field.name for field in dataclasses.fields(ls.Store)} == {"path", "depends_on"}
    for field in dataclasses.fields(ls.Page):
        assert AuditPlan.model_fields[field.name].default == field.default


@pytest.mark.parametrize("word", [word for word, now in OF_AUDITS.items() if now.keyword])
def test_an_old_word_says_what_to_write(word: str) -> None:
    moved = OF_AUDITS[word]
    for call in (ls.audit, ls.audit_model, ls.audit_signals, ls.audit_scores):
        if word not in keywords_of(call):
            with pytest.raises(TypeError, match=f"takes no {word}; use {re.escape(moved.keyword)}"):
                call(**{word: 1})


@pytest.mark.parametrize("name", list(CALLS))
def test_defaults_are_those_of_the_plan(name: str) -> None:
    call = CALLS[name]
    for field, info in call.plan.model_fields.items():
        keyword = keywords_of(call.function).get(call.renamed.get(field, field))
        if keyword is None or field in call.own or info.is_required():
            continue
        default = None if info.default == {} else info.default
        if field == "attacks":
            default = "default"
        assert keyword.default == default, field


@pytest.mark.parametrize("name", list(CALLS))
def test_choices_are_those_of_the_plan(name: str) -> None:
    call = CALLS[name]
    hints, fields = get_type_hints(call.function), get_type_hints(call.plan)
    for field, kind in fields.items():
        if field in hints and field not in call.own and choices_of(kind):
            assert choices_of(hints[field]) == choices_of(kind), field


def choices_of(kind: Any) -> tuple[str, ...]:
    """Of Literal[...] or Literal[...] | None."""
    literals = [each for each in (kind, *get_args(kind)) if get_origin(each) is Literal]
    return get_args(literals[0]) if literals else ()


def test_every_public_call_is_compared() -> None:
    calls = {name for name in ls.__all__ if name.startswith("audit") or name in ("calibrate", "protect")}
    assert calls == set(CALLS)


@pytest.mark.parametrize(
    "function",
    [*(call.function for call in CALLS.values()), api.run, protection.declare, protection.calibrate_file,
     protection.protect_file, protection.declare_file, ls.repeat, ls.signals_of, ls.reproduce],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_every_keyword_is_explained(function: Callable[..., Any]) -> None:
    """In numpydoc's section of parameters, and so in ``help()``."""
    section = (inspect.getdoc(function) or "").partition("Parameters\n----------\n")[2].partition("\n-----")[0]
    explained = {name for line in section.splitlines() if not line.startswith(" ")
                 for name in re.findall(r"\w+", line.partition(" : ")[0])}  # fmt: skip
    assert set(inspect.signature(function).parameters) <= explained


def test_no_public_call_has_more_than_twenty_keywords() -> None:
    public = {name: getattr(ls, name) for name in ls.__all__ if inspect.isfunction(getattr(ls, name))}
    assert "bound" in public
    assert {name for name, function in public.items() if len(keywords_of(function)) > 20} == set()


def test_what_is_declared_has_the_words_of_what_is_released() -> None:
    assert set(keywords_of(protection.declare)) == set(keywords_of(protection.protect)) - {"store", "n_jobs"}


@pytest.mark.parametrize("name", list(BOUND_PLANS))
def test_help_lists_the_keywords_of_each_bound(name: str) -> None:
    text = inspect.getdoc(bound) or ""
    entry = re.split(r"\n    (?=\w)", text.partition(f"\n    {name}\n")[2])[0]
    assert entry
    for field, info in BOUND_PLANS[name].model_fields.items():
        place = text if field in ("title", "unit", "date", "fpr") else entry
        shown = info.is_required() or info.default in (None, "")
        default = "" if shown else f"={info.default!r}".replace("'", '"')
        if "`" in default or (field == "delta" and info.default == 1e-5):
            default = "=1e-5"
        assert f"``{field}{default}``" in place, field


def test_parameters_of_attacks_are_listed() -> None:
    text = " ".join((inspect.getdoc(ls.attacks.Attack.with_parameters) or "").split())
    for attack in ATTACKS.values():
        for name, keyword in keywords_of(attack.function_of_signals()).items():
            shown = f"{name}={keyword.default!r}".replace("'", '"')
            assert re.search(rf"``{re.escape(shown)}`` of [^;.]*\b{attack.name}\b", text), (attack.name, name)


class Command(NamedTuple):
    """A command: its flags are the fields of the plan, but for what is declared."""

    function: Callable[..., Any]
    plan: type[Plan]
    own: frozenset[str] = frozenset()


ON_A_PAGE = {"out", "as_json"}
EVERY_AUDIT = {"context", "help_all", "show_records", "publish", "pdf", "full", "n_jobs"} | ON_A_PAGE
AUDIT_OWN = {
    "plan", "set_", "train", "dpsgd", "slices", "until", "store", "allow_modules", "dry_run", "from_store", "partial",
} | EVERY_AUDIT  # fmt: skip
MODEL_OWN = {
    "file", "predict", "weights", "probabilities", "members", "others", "classes", "unpickle_trusted", "trust", "model",
    "set_", "train", "store", "allow_modules",
} | EVERY_AUDIT  # fmt: skip
OF_ANYONE = {"range", "others"}  # fields of a promise that name columns
FITTED = {"plan", "signals", "allow_modules", "store", "n_jobs", "help_all"} | ON_A_PAGE


def callback_of(app: Any, name: str) -> Callable[..., Any]:
    found = app.registered_callback if name == "" else next(c for c in app.registered_commands if c.name == name)
    return found.callback


# a bound with a field of this name has no data whose records it could show; others have nothing to publish
HIDING = {
    name: set() if "records" in plan.model_fields or not BOUNDS[name].publishable else {"show_records"}
    for name, plan in BOUND_PLANS.items()
}
PUBLISHING = {name: {"publish"} if BOUNDS[name].publishable else set() for name in BOUND_PLANS}
COMMANDS = {
    "audit": Command(audits.audit, AuditPlan, own=frozenset(AUDIT_OWN)),
    "audit model": Command(given.model, TrainedPlan, own=frozenset(MODEL_OWN)),
    "calibrate": Command(
        callback_of(protects.app, ""), CalibrationPlan, own=frozenset(FITTED | OF_ANYONE | {"context", "full"})
    ),
    "calibrate dpsgd": Command(callback_of(protects.app, "dpsgd"), MultiplierPlan, own=frozenset({"full", "as_json"})),
    "protect": Command(protects.protect, ProtectionPlan, own=frozenset(FITTED | OF_ANYONE | {"full"})),
    **{
        f"bound {name}": Command(
            callback_of(bounds.app, name), plan, own=frozenset(PUBLISHING[name] | ON_A_PAGE | HIDING[name] | {"full"})
        )
        for name, plan in BOUND_PLANS.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("name", list(COMMANDS))
def test_flags_are_the_fields_of_the_plan(name: str) -> None:
    command = COMMANDS[name]
    assert set(inspect.signature(command.function).parameters) == (set(command.plan.model_fields) | command.own)


def test_flags_of_scores_and_signals_are_the_fields_of_the_plan() -> None:
    fields = set(GivenPlan.model_fields) - {"seed"}
    of_scores, of_signals = (set(inspect.signature(each).parameters) for each in (given.scores, given.signals))
    assert of_scores == (fields - {"attacks"}) | EVERY_AUDIT | {"file", "references_are"}
    assert of_signals == fields | EVERY_AUDIT | {"file", "sampling"}


@pytest.mark.parametrize("name", ["audit", "audit model", "audit scores", "audit signals", "audit synthetic"])
def test_the_help_is_short_and_all_of_it_is_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    short, whole = (CliRunner().invoke(cli.app, [*name.split(), flag]).output for flag in ("--help", "--help-all"))
    assert len(short.splitlines()) <= 40
    flags = {flag for _, command in all_commands() if command.name == name for each in command.params
             for flag in each.opts if flag.startswith("--")}  # fmt: skip
    assert len(flags) > 25
    assert all(re.search(rf"{flag}\b", whole) for flag in flags)
    assert len(re.findall(r"^│ +(--[a-z-]+)", short, re.MULTILINE)) <= 16


def all_commands() -> list[tuple[str, Any]]:
    """Every command by what is typed, those below others too."""

    def below(name: str, group: Any) -> list[tuple[str, Any]]:
        inner = [each for word, one in getattr(group, "commands", {}).items() for each in below(f"{name} {word}", one)]
        return [(name, group), *inner]

    return below("leakbound", typer.main.get_command(cli.app))


@pytest.mark.parametrize(("name", "command"), all_commands(), ids=[name for name, _ in all_commands()])
def test_help_of_every_command(name: str, command: Any) -> None:
    """By -h and --help alike; the options of what takes many are in named panels, and its example can be read."""
    short, long = (CliRunner().invoke(cli.app, [*name.split()[1:], flag]) for flag in ("-h", "--help"))
    assert (short.exit_code, short.output) == (0, long.output)
    if len(command.params) > 12:
        panels = {each.rich_help_panel for each in command.params if each.name not in ("plan", "file", "help_all")}
        assert None not in panels
        assert len(panels) >= 3
    if name == "leakbound":
        return
    words = shlex.split(command.epilog.removeprefix("Example: "))
    assert words[: len(name.split())] == name.split()
    if name not in ("leakbound bound", "leakbound store"):  # whose example is of a command below it
        command.make_context(name, words[len(name.split()) :])


@pytest.mark.parametrize(("name", "command"), all_commands(), ids=[name for name, _ in all_commands()])
def test_help_fits_80_columns_and_nothing_is_cut(name: str, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    is_brief = any(each.name == "help_all" for each in command.params)
    text = CliRunner().invoke(cli.app, [*name.split()[1:], "--help-all" if is_brief else "--help"]).output
    assert max(map(len, text.splitlines())) <= 80
    assert "\u2026" not in text
    shown = " ".join(re.sub(r"[\u2500-\u257f]", " ", text).split())
    for parameter in command.params:
        flags = [flag for flag in parameter.opts if flag.startswith("--")]
        assert all(flag in shown for flag in flags), flags
    if command.epilog:
        assert " ".join(command.epilog.split()) in shown


def test_the_name_alone_shows_all_commands() -> None:
    left = CliRunner().invoke(cli.app, [])
    assert left.exit_code == 0
    for name, _ in all_commands():
        assert len(name.split()) != 2 or name.split()[1] in left.output
    for panel in ("Measure", "Bound", "Limit"):
        assert panel in left.output


@pytest.mark.slow
def test_a_shell_gets_its_script_of_completion() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m leakbound --show-completion"], capture_output=True, text=True, check=True
    )
    assert "complete" in done.stdout
    assert "_COMPLETE=complete_bash" in done.stdout


@pytest.mark.slow
def test_shells_complete_commands_and_flags() -> None:
    code = "import sys; sys.argv[0] = 'leakbound'; from leakbound.cli.main import main; main()"
    for typed, expected in (("leakbound au", "audit"), ("leakbound audit --n-j", "--n-jobs")):
        words = {"_LEAKBOUND_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
        done = subprocess.run([sys.executable, "-c", code], env=os.environ | words, capture_output=True, text=True)
        assert expected in done.stdout.split()


def test_flags_of_a_model_are_fields_of_its_table() -> None:
    assert {"set", "train", "dpsgd"} <= set(ModelPlan.model_fields)


class TestPaths:
    """Wherever a text names a file, a path does too."""

    def test_plans_take_paths(self) -> None:
        path = Path("folder") / "people.csv"
        assert AuditPlan.model_validate({"data": path}).data == str(path)
        plan = ProtectionPlan.model_validate(
            {"data": path, "promise": "drawn", "eta": 0.1, "ledger": path.with_suffix(".ledger")}
        )
        assert (plan.data, plan.ledger) == (str(path), str(path.with_suffix(".ledger")))
        for name, kind in BOUND_PLANS.items():
            if "data" in kind.model_fields:
                needed = {
                    "by": "age",
                    "column": "age",
                    "clip": 1.0,
                    "scale": 1.0,
                    "noise_scale": 1.0,
                    "statistic": "table",
                }
                words = {word: value for word, value in needed.items() if word in kind.model_fields}
                assert kind.model_validate({**words, "data": path}).model_dump()["data"] == str(path), name

    def test_calls_take_paths(self, tmp_path: Path) -> None:
        rows = np.random.default_rng(0).normal(size=(20, 2))
        np.savez(tmp_path / "rows.npz", x=rows)
        bound_of_a_file = ls.bound("pmp", data=tmp_path / "rows.npz", clip=1.0, scale=1.0)
        assert bound_of_a_file.about.data.records == 20
        released = ls.protect(
            "mean", rows, promise=ls.Drawn(games=0), eta=0.1, n_jobs=1, ledger=tmp_path / "own.ledger"
        )
        assert (released.value.shape, (tmp_path / "own.ledger").is_file()) == ((2,), True)


class TestUnknownWords:
    def test_models_and_jobs_are_numbers_of_them(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The words of other libraries, and of earlier versions, are refused in a line that names ours."""
        data = np.zeros((4, 1)), np.zeros(4)
        with pytest.raises(TypeError, match=r"^audit: unknown keyword 'models' \(did you mean 'n_models'\?\)"):
            ls.audit(DecisionTreeClassifier(), *data, models=4)
        for function in (ls.audit, ls.calibrate, ls.protect):
            with pytest.raises(TypeError, match=r"unknown keyword 'jobs' \(did you mean 'n_jobs'\?\)"):
                function("mean", *data, jobs=1)
        (tmp_path / "plan.toml").write_text("models = 4\n", encoding="utf-8")
        with pytest.raises(ValueError, match=r"unknown key 'models' \(did you mean 'n_models'\?\)"):
            ls.plans.from_toml(tmp_path / "plan.toml")
        for typed, ours in (("audit --models 4", "--n-models"), ("audit --jobs 4", "--n-jobs"),
                            ("calibrate --jobs 4", "--n-jobs"), ("protect --jobs 4", "--n-jobs"),
                            ("reproduce --jobs 4", "--n-jobs")):  # fmt: skip
            assert cli._guarded(partial(cli.app, typed.split(), standalone_mode=False)) == 1
            line = capsys.readouterr().err
            assert line.startswith(f"leakbound: error: No such option: {typed.split()[1]}")
            assert (ours in line, line.count("\n")) == (True, 1)

    @pytest.mark.parametrize("name", [name for name in ls.__all__ if inspect.isfunction(getattr(ls, name))])
    def test_every_public_function_lists_its_keywords(self, name: str) -> None:
        if name == "reproduce":  # papers use the public package alone, so this line is Python's own
            with pytest.raises(
                TypeError, match=r"^reproduce\(\) got an unexpected keyword argument 'no_such_keyword'$"
            ):
                ls.reproduce(no_such_keyword=1)
            return
        first = ("gap",) if name == "bound" else ()
        with pytest.raises((TypeError, ValueError), match=r"no_such_keyword'.*; known: "):
            getattr(ls, name)(*first, no_such_keyword=1)

    def test_the_nearest_keyword_is_named(self) -> None:
        with pytest.raises(TypeError, match=r"^audit: unknown keyword 'atacks' \(did you mean 'attacks'\?\); known: "):
            ls.audit(DecisionTreeClassifier(), np.zeros((4, 1)), np.zeros(4), atacks="all")
        with pytest.raises(ValueError, match=r"^bound gap: unknown key 'prio' \(did you mean 'prior'\?\); known: "):
            ls.bound("gap", gap=0.1, prio=0.3)
        with pytest.raises(TypeError, match=r"^declare: unknown keyword 'etta' \(did you mean 'eta'\?\)"):
            protection.declare("mean", np.zeros((4, 1)), eta=0.1, ledger="l.json", etta=0.2)
