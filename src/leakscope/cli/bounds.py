"""``leakscope bound``: a command for each row of the table of bounds, its options the fields of its plan."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from pydantic.fields import FieldInfo

from leakscope.bounds import BOUNDS, Bound
from leakscope.cli.writing import OUT, command_line, emit, refuse_file, write
from leakscope.plans.bounds import BOUND_PLANS
from leakscope.plans.plan import PagePlan

OF_THE_RUN = (
    ("out", Path | None, typer.Option("--out", help=f"Folder of report.json and report.html. [{OUT}, of data]"), None),
    ("records", bool, typer.Option("--records/--no-records", help="Show single records on the page."), True),
    ("as_json", bool, typer.Option("--json", help="Print the report's JSON and nothing else."), False),
)

app = typer.Typer(help="What a theorem allows any attacker, whoever he is.", rich_markup_mode=None)


def _command(row: Bound, plan: type[PagePlan]) -> Callable[..., None]:
    """The command of a bound."""

    def run(**given: Any) -> None:
        out, records, as_json = (given.pop(name) for name, *_ in OF_THE_RUN)
        words = {name: value for name, value in given.items() if value is not None and value != []}
        started = time.time()
        folder = Path(OUT) if out is None and "data" in words else out
        if folder is not None:
            refuse_file(folder)
        report = import_module("leakscope.bounding").bound(row.name, command=command_line(), **words)
        if folder is not None:
            write(report, folder, records, started)
        emit(report, folder, as_json)

    parameters = [*_options(plan), *_run_options()]
    run.__doc__ = f"{row.summary}\n\n{row.source}"
    run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _options(plan: type[PagePlan]) -> Iterator[inspect.Parameter]:
    """An option for each field of a plan; what is not given is left to the plan."""
    for name, field in plan.model_fields.items():
        option = typer.Option(f"--{name.replace('_', '-')}", help=_help(field))
        yield _keyword(name, Annotated[_kind(field), option], None)


def _run_options() -> Iterator[inspect.Parameter]:
    """Options that say what to write and to print."""
    for name, kind, option, default in OF_THE_RUN:
        yield _keyword(name, Annotated[kind, option], default)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _help(field: FieldInfo) -> str:
    text = field.description or ""
    default = "" if field.is_required() or field.default in (None, "", ()) else f" [{_shown(field.default)}]"
    return text[0].upper() + text[1:] + "." + default


def _shown(value: Any) -> str:
    return ", ".join(f"{each:g}" for each in value) if isinstance(value, tuple) else str(value)


def _kind(field: FieldInfo) -> Any:
    """The type that the command line reads: numbers as numbers, words as text for the plan to judge."""
    kinds = {field.annotation, *get_args(field.annotation)}
    kind = next((each for each in (float, int) if each in kinds), str)
    return list[kind] | None if Ellipsis in kinds else kind | None


for row in BOUNDS.values():
    app.command(row.name)(_command(row, BOUND_PLANS[row.name]))
