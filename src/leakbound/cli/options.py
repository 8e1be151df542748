"""Options of a command from the fields of its plan: TOML keys, keywords and flags are one list of words."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import is_dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from leakbound.plans.choices import flag_of
from leakbound.plans.plan import OneText, Plan, columns, named_lists, settings

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


class Spelling(NamedTuple):
    """Where a flag differs from its field: the flag, and its help; empty where the field says it."""

    flag: str = ""
    help: str = ""


HELP_ALL = "leakbound.help_all"  # key of a context's meta: whether every option is listed
ORDER = "leakbound.order"  # key of a context's meta: the keywords of the options as they were typed
CONTEXT = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


class _Brief:
    """A command whose ``--help`` lists the options that most people need, and whose ``--help-all`` lists all."""

    params: list[Any]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help: of a few options without panels, or of all in theirs."""
        shown = copy(self)
        parameters: list[Any] = [copy(parameter) for parameter in self.params]
        for parameter in parameters:
            if ctx.meta.get(HELP_ALL):
                parameter.hidden = False
            else:
                parameter.rich_help_panel = None
        shown.params = parameters
        super(_Brief, shown).format_help(ctx, formatter)  # pyright: ignore[reportAttributeAccessIssue] -- of the command


class BriefCommand(_Brief, TyperCommand):
    """A command with a short help."""


class BriefGroup(_Brief, TyperGroup):
    """A command with commands of its own, and a short help."""


class OrderedCommand(BriefCommand):
    """A command that knows in which order its options were typed: ``--model A --set a=1 --model B --set a=2``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line, and keep the keyword of each option in the order of the line."""
        _, _, parameters = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[ORDER] = tuple(parameter.name for parameter in parameters)
        return super().parse_args(ctx, args)


PANELS = {  # of the help of all commands, in its order
    "Data": (
        "plan", "dataset", "data", "label", "group", "drop", "drop_missing", "id", "slices", "members", "others",
        "reference", "infer", "references_are", "column", "round", "separator", "decimal", "encoding",
    ),
    "Model": (
        "model", "set_", "n_models", "until", "predict", "weights", "probabilities", "unpickle_trusted", "trust",
        "classes", "queries", "vary",
    ),
    "Training": (
        "train", "dpsgd", "noise_multiplier", "sample_rate", "steps", "epochs", "batch_size", "records", "batches",
    ),
    "Statistic": ("statistic", "by", "levels", "set", "merge", "non_negative"),
    "Promise": ("eta", "promise", "range", "budget", "insecure_seed"),
    "Game": ("game", "adjacency", "sampling", "prior", "k"),
    "Attack and comparison": ("attacks", "fpr", "confidence", "seed", "signals", "compare"),
    "Claim": ("claim", "policy", "accept_shift"),
    "Output": (
        "title", "unit", "date", "author", "out", "rules", "ledger", "another_promise", "allow_known_people",
        "known_ledgers", "declare", "show_records", "publish", "pdf", "full", "as_json",
    ),
    "Execution": (
        "store", "depends_on", "n_jobs", "from_store", "partial", "download", "allow_modules", "dry_run",
    ),
}  # fmt: skip
OF_COLUMNS = ("drop",)  # flags of names, with commas between them or repeated, as --by is
HELP = {"help_option_names": ["-h", "--help"]}  # of every command
AS_THE_FIELDS: Mapping[str, Spelling] = MappingProxyType({})


def options_of(
    plan: type[Plan], skip: Collection[str] = (), spelt: Mapping[str, Spelling] = AS_THE_FIELDS
) -> list[inspect.Parameter]:
    """Make an option for each field of a plan; what is not given is left to the plan.

    A number is read as a number, a word as text for the plan to judge. A field of several values, or of a mapping
    (``NAME=VALUE``), is an option that may be repeated. A truth value is a flag without a value, ``--no-`` where it
    is true unless given. The help is the field's description with its default.

    >>> from leakbound.plans import BOUND_PLANS
    >>> [parameter.name for parameter in options_of(BOUND_PLANS["gap"], skip=("title", "unit", "date", "fpr"))]
    ['gap', 'low', 'high', 'prior']
    """
    for name in (*skip, *spelt):
        if name not in plan.model_fields:
            raise ValueError(f"{plan.__name__} has no field {name!r}; fields: {', '.join(plan.model_fields)}")
    options = []
    for name, field in plan.model_fields.items():
        if name not in skip:
            own = spelt.get(name, Spelling())
            flag = own.flag or _flag(name, field)
            options.append(option(name, _kind(field), own.help or _help(field), flag=flag))
    return options


def option(name: str, kind: Any, text: str, default: Any = None, flag: str = "") -> inspect.Parameter:
    """Make an option that is no field of a plan: what to write, where to run."""
    info = typer.Option(flag or f"--{name.replace('_', '-')}", help=_without_markup(text))
    return _keyword(name, Annotated[kind, info], default)


def argument(name: str, kind: Any, text: str) -> inspect.Parameter:
    """Make an optional positional argument."""
    return _keyword(name, Annotated[kind | None, typer.Argument(help=_without_markup(text))], None)


def grouped(parameters: Sequence[inspect.Parameter], rest: str) -> list[inspect.Parameter]:
    """Order the options of a command by `PANELS`; those that are in none of them come first, in a panel of their own.

    >>> options = [option("out", str, "Where."), option("noise_std", float, "What.")]
    >>> [parameter.name for parameter in grouped(options, "Theorem")]
    ['noise_std', 'out']
    """
    by_name: dict[str, inspect.Parameter] = {}
    for parameter in parameters:
        if parameter.name in by_name:
            raise ValueError(f"a command has two options with the keyword {parameter.name!r}; each needs its own")
        by_name[parameter.name] = parameter
    in_panels = [name for names in PANELS.values() for name in names]
    ordered = [
        _changed(parameter, rich_help_panel=rest) for name, parameter in by_name.items() if name not in in_panels
    ]
    for panel, names in PANELS.items():
        ordered += [_changed(by_name[name], rich_help_panel=panel) for name in names if name in by_name]
    return ordered


def _changed(parameter: inspect.Parameter, **attributes: Any) -> inspect.Parameter:
    """Change how the help shows an option; an argument, and the context of a command, stay as they are."""
    kind, *metadata = get_args(parameter.annotation) or (parameter.annotation,)
    if not metadata or not isinstance(metadata[0], OptionInfo):
        return parameter
    info = copy(metadata[0])  # an option may be shared by several commands
    for name, value in attributes.items():
        setattr(info, name, value)
    return parameter.replace(annotation=Annotated[kind, info])


def _without_markup(text: str) -> str:
    """Brackets as they are: Rich reads ``[word]`` as a style."""
    return re.sub(r"\[(?=[a-z#/@])", r"\\[", text)


def _help_all(context: typer.Context, is_asked: bool) -> None:
    """Print the help with all options, and leave."""
    if is_asked:
        context.meta[HELP_ALL] = True
        print(context.get_help())
        raise typer.Exit


def brief(parameters: Sequence[inspect.Parameter], shown: Collection[str]) -> list[inspect.Parameter]:
    """Hide the options that few people need from ``--help``, and add ``--help-all``, which lists them."""
    names = {parameter.name for parameter in parameters}
    for name in shown:
        if name not in names:
            raise ValueError(f"no option {name!r} to show; options: {', '.join(sorted(names))}")
    every = typer.Option("--help-all", help="List all options.", callback=_help_all, is_eager=True)
    return [
        *(each if each.name in shown else _changed(each, hidden=True) for each in parameters),
        _keyword("help_all", Annotated[bool, every], False),
    ]


def command(
    doc: str, run: Callable[..., None], parameters: Sequence[inspect.Parameter], name: str = ""
) -> Callable[..., None]:
    """Make a function with these parameters and this help, as ``typer.Typer.command`` reads it.

    >>> greet = command("Say hello.", lambda name: print(f"hello {name}"), [option("name", str, "Whom.")])
    >>> greet(name="Ada")
    hello Ada
    """

    def function(**keywords: Any) -> None:
        keywords.pop("help_all", None)
        run(**keywords)

    # typer reads name, help, parameters and types from the function itself
    function.__name__ = name or run.__name__
    function.__doc__ = doc
    function.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return function


def words_of(plan: type[Plan], given: Mapping[str, Any]) -> dict[str, Any]:
    """Translate what was typed to fields of the plan: without what was not given, and ``NAME=VALUE`` as a mapping.

    >>> from leakbound.plans.audits import ModelPlan
    >>> words_of(ModelPlan, {"spec": "a:B", "name": None, "set": ["depth=3", "kind=gini"]})
    {'spec': 'a:B', 'set': {'depth': 3, 'kind': 'gini'}}
    """
    words = {name: value for name, value in given.items() if value is not None and value != []}
    for name in words.keys() & plan.model_fields.keys():
        if get_origin(plan.model_fields[name].annotation) is dict:
            flag = f"--{name.replace('_', '-')}"
            value_type = get_args(plan.model_fields[name].annotation)[1]
            read = named_lists if get_origin(value_type) is tuple else settings
            words[name] = _joined((read(text, flag) for text in words[name]), flag)
        elif name in OF_COLUMNS:
            words[name] = list(columns(words[name]))
    return words


def _joined(mappings: Iterable[Mapping[str, Any]], flag: str) -> dict[str, Any]:
    """Join what several flags say; one name twice is an error, for one of the two would be forgotten."""
    joined: dict[str, Any] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            if key in joined:
                raise ValueError(f"{flag} {key}= is given twice; give it once, several values with commas between them")
            joined[key] = value
    return joined


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _flag(name: str, field: FieldInfo) -> str:
    flag = name.replace("_", "-")
    return f"--{flag}/--no-{flag}" if field.default is True else f"--{flag}"


def _help(field: FieldInfo) -> str:
    text = field.description or ""
    has_default = not field.is_required() and field.default not in (None, "", (), {})
    default = _shown(field.default) if has_default else ""
    return text[:1].upper() + text[1:] + "." + (f" [{default}]" if default else "")


def _shown(value: Any) -> str:
    """Show a default in brackets; that of a flag is not shown."""
    if isinstance(value, bool):
        return ""
    if is_dataclass(value):
        return flag_of(value)
    if isinstance(value, tuple):
        return ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value)
    return str(value)


def _kind(field: FieldInfo) -> Any:
    """Return the type that the command line reads: numbers as numbers, words as text for the plan to check."""
    if get_origin(field.annotation) is dict:
        return list[str] | None
    if any(isinstance(each, OneText) for each in field.metadata):
        return str | None
    kinds = {field.annotation, *get_args(field.annotation)}
    # float before int: a field that takes both is read as the wider one
    kind = next((number for number in (bool, float, int) if number in kinds), str)
    if Ellipsis in kinds:  # tuple[X, ...]: an option that may be repeated
        return list[kind] | None
    return kind | None


RECORDS = option(  # its keyword is no word of a plan: "records" is a field of DP-SGD, their number
    "show_records",
    bool,
    "Show single records in report.json and on the page.",
    True,
    "--records/--no-records",
)
AS_JSON = option("as_json", bool, "Print the report's JSON alone.", False, "--json")
FULL = option("full", bool, "Print all that the page says, not the answer alone.", False)
PUBLISH = option(
    "publish",
    bool,
    "For others to read: without single records, files with your usual permissions.",
    False,
    "--publish",
)
ALLOW = option(
    "allow_modules",
    str | None,
    "Modules of which a plan may import and call what it names, as lightgbm,my_package; of scikit-learn its models "
    "need no leave, and import paths in flags need none.",
)


@contextmanager
def leave_of(allow_modules: str | None, flags: Mapping[str, Any]) -> Iterator[None]:
    """Let a command import what its user names: in flags, which are found in this folder, or by --allow-modules."""
    import_module("leakbound.releases.user_modules").look_in(os.getcwd())
    typed: list[str] = []
    for value in flags.values():
        typed += [str(part) for part in (value if isinstance(value, list | tuple) else [value])]
    with import_module("leakbound.releases.specs").only_from(allow_modules, typed):
        yield
