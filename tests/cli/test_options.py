"""Options from the fields of a plan: what the command line reads, what it says, what the plan gets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import typer
from pydantic import Field
from typer.testing import CliRunner

from leakbound.cli import audits, bounds, given, main, options, protects
from leakbound.cli.options import Spelling, argument, command, grouped, option, options_of, words_of
from leakbound.plans import BOUND_PLANS, ProtectionPlan
from leakbound.plans.audits import AuditPlan, TrainedPlan
from leakbound.plans.plan import Plan
from leakbound.plans.promises import File
from leakbound.plans.protects import CalibrationPlan, MultiplierPlan


class Cake(Plan):
    """A plan with a field of each kind."""

    flour: float = Field(description="kilograms")
    eggs: int = Field(default=3, description="number of them")
    kind: Literal["round", "square"] = Field(default="round", description="of the tin")
    icing: str | None = Field(default=None, description="its colour")
    layers: tuple[str, ...] = Field(default=(), description="from below")
    heat: tuple[float, ...] = Field(default=(180.0, 1e-5), description="degrees")
    names: tuple[str, ...] = Field(default=("default",), description="of the guests")
    set: dict[str, Any] = Field(default={}, description="what else")
    fan_on: bool = Field(default=False, description="of the oven")
    sweet: bool = Field(default=True, description="with sugar")


@pytest.fixture
def typed(monkeypatch):
    """What the plan gets for a command line, or the text that is printed in its place."""
    monkeypatch.setenv("COLUMNS", "100")
    got: list[dict[str, Any]] = []

    def run(line: str, **words: Any) -> Any:
        app = typer.Typer(rich_markup_mode="rich", add_completion=False)
        bake = command("Bake a cake.\n\nSlowly.", lambda **given: got.append(words_of(Cake, given)),
                       options_of(Cake, **words), name="bake")  # fmt: skip
        app.command()(bake)
        done = CliRunner().invoke(app, line.split())
        return got.pop() if got else str(done.exception) if isinstance(done.exception, ValueError) else done.output

    return run


def test_what_is_not_typed_is_left_to_the_plan(typed) -> None:
    assert typed("") == {}


def test_numbers_are_numbers_and_words_are_text(typed) -> None:
    got = typed("--flour 1 --eggs 4 --kind oval --icing 7")
    assert got == {"flour": 1.0, "eggs": 4, "kind": "oval", "icing": "7"}
    assert [type(value) for value in got.values()] == [float, int, str, str]


def test_several_values_are_a_repeated_flag(typed) -> None:
    assert typed("--layers a --heat 200 --layers b,c") == {"layers": ["a", "b,c"], "heat": [200.0]}


def test_truth_values_are_flags_without_a_value(typed) -> None:
    assert typed("--fan-on --no-sweet") == {"fan_on": True, "sweet": False}
    assert "No such option" in typed("--no-fan-on")


def test_a_mapping_is_made_of_its_parts(typed) -> None:
    assert typed("--set a=1,b=[1,2] --set c=none") == {"set": {"a": 1, "b": [1, 2], "c": None}}
    assert typed("--set a") == "--set: write NAME=VALUE, got 'a'"


@pytest.mark.parametrize(
    "flags",
    ["--levels sector=care,trade --levels sector=mining", "--set bins=3 --set bins=4", "--merge a=b:c --merge a=d:e"],
)
def test_a_name_that_is_given_twice_is_refused(flags) -> None:
    """The last one would win, and the first be forgotten without a word."""
    words: dict[str, list[str]] = {}
    parts = flags.split()
    for flag, text in zip(parts[::2], parts[1::2], strict=True):
        words.setdefault(flag[2:], []).append(text)
    name = parts[1].partition("=")[0]
    with pytest.raises(ValueError, match=f"^{parts[0]} {name}= is given twice; give it once"):
        words_of(ProtectionPlan, words)


def test_help_is_the_description_with_the_default(typed) -> None:
    lines = [re.sub(r" {2,}", "  ", line.strip("│ ")) for line in typed("--help").splitlines()]
    assert "Bake a cake." in lines
    shown = [line for line in lines if line.startswith("--") and "--help" not in line]
    assert shown == [
        "--flour  <float>  Kilograms.",
        "--eggs  <int>  Number of them. [3]",
        "--kind  <str>  Of the tin. [round]",
        "--icing  <str>  Its colour.",
        "--layers  <list[str]>  From below.",
        "--heat  <list[float]>  Degrees. [180, 1e-05]",
        "--names  <list[str]>  Of the guests. [default]",
        "--set  <list[str]>  What else.",
        "--fan-on  <bool>  Of the oven.",
        "--sweet  --no-sweet  <bool>  With sugar.",
    ]


def test_exceptions_are_declared(typed) -> None:
    words = {"skip": ("set", "flour"), "spelt": {"layers": Spelling("--layer", "One at a time.")}}
    assert typed("--layer a --layer b", **words) == {"layers": ["a", "b"]}
    assert re.search(r"--layer +<list\[str\]>", typed("--help", **words))
    assert "One at a time." in typed("--help", **words)
    assert "No such option" in typed("--flour 1", **words)


@pytest.mark.parametrize("words", [{"skip": ("floor",)}, {"spelt": {"floor": Spelling("--floor")}}])
def test_exceptions_are_fields(words) -> None:
    with pytest.raises(ValueError, match=r"^Cake has no field 'floor'; fields: flour, eggs, "):
        options_of(Cake, **words)


def test_a_command_is_named_and_may_have_options_of_its_own() -> None:
    def run(**given: Any) -> None:
        print(given)

    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command()(command("Run.", run, [argument("file", str, "A file."), option("n_jobs", int, "Workers.", 2)]))
    assert app.registered_commands[0].callback.__name__ == "run"  # pyright: ignore[reportOptionalMemberAccess]
    assert CliRunner().invoke(app, []).output == "{'file': None, 'n_jobs': 2}\n"
    assert CliRunner().invoke(app, ["plan.toml", "--n-jobs", "3"]).output == "{'file': 'plan.toml', 'n_jobs': 3}\n"


PLANS_OF_COMMANDS = {
    "audit": (AuditPlan, audits.OF_THE_RUN),
    "audit model": (TrainedPlan, given.OF_A_TRAINED_MODEL),
    "calibrate": (CalibrationPlan, (*protects.OF_THE_FITS, options.AS_JSON)),
    "calibrate dpsgd": (MultiplierPlan, (options.AS_JSON,)),
    "protect": (ProtectionPlan, (*protects.OF_THE_FITS, options.AS_JSON)),
    **{f"bound {name}": (plan, bounds.OF_THE_RUN) for name, plan in BOUND_PLANS.items()},
}


@pytest.mark.parametrize("name", PLANS_OF_COMMANDS)
def test_no_option_of_the_run_takes_a_field_of_the_plan(name) -> None:
    """What a command takes out for itself never reaches the plan."""
    plan, of_the_run = PLANS_OF_COMMANDS[name]
    assert not {parameter.name for parameter in of_the_run} & set(plan.model_fields)


def commands(app: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command below one, by what is typed."""
    yield name, app
    for word, below in getattr(app, "commands", {}).items():
        yield from commands(below, f"{name} {word}".strip())


EVERY_COMMAND = dict(commands(typer.main.get_command(main.app)))


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_every_flag_and_every_keyword_of_a_command_is_there_once(name) -> None:
    parameters = EVERY_COMMAND[name].params
    flags = [flag for each in parameters for flag in (*each.opts, *each.secondary_opts)]
    assert len(set(flags)) == len(flags)
    assert len({each.name for each in parameters}) == len(parameters)
    if name in PLANS_OF_COMMANDS:
        plan, _ = PLANS_OF_COMMANDS[name]
        by_name = {each.name: each for each in parameters}
        assert set(plan.model_fields) <= set(by_name)


def test_an_option_is_in_one_panel_at_most() -> None:
    names = [name for panel in options.PANELS.values() for name in panel]
    assert len(set(names)) == len(names)
    every = {each.name for command in EVERY_COMMAND.values() for each in command.params}
    assert set(names) <= every


def test_two_options_with_one_keyword_are_refused() -> None:
    twice = [option("out", str, "Where."), option("out", str, "Elsewhere.", flag="--elsewhere")]
    with pytest.raises(ValueError, match="two options with the keyword 'out'"):
        grouped(twice, "Output")


def test_the_plan_of_a_protection_is_read_whole() -> None:
    """Each field is an option, and what is typed makes the plan."""
    parameters = options_of(ProtectionPlan)
    assert [each.name for each in parameters] == list(ProtectionPlan.model_fields)
    typed = dict.fromkeys(ProtectionPlan.model_fields) | {
        "data": "a.csv", "eta": 0.1, "statistic": "table", "by": ["a", '"b, c"'], "set": ["bins=10"], "compare": True,
        "levels": ['a=x,"y, z"', '"b, c"=1,2'], "promise": "file,scale=[0.5, 2]",
    }  # fmt: skip
    plan = ProtectionPlan(**words_of(ProtectionPlan, typed))
    assert plan.levels == {"a": ("x", "y, z"), "b, c": ("1", "2")}
    assert plan.promise == File(scale=(0.5, 2.0))
    assert (plan.by, plan.set, plan.compare, plan.declare) == (("a", "b, c"), {"bins": 10}, True, False)
