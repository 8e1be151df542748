"""``leakbound bound``: a command for each row of the table of bounds, its options the fields of its plan."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from leakbound.bounds import BOUNDS, Bound
from leakbound.cli.options import AS_JSON, FULL, HELP, PUBLISH, RECORDS, command, grouped, option, options_of, words_of
from leakbound.cli.output import OUT, command_line, emit, refuse_file, write
from leakbound.plans.bounds import BOUND_PLANS
from leakbound.plans.plan import PagePlan

OF_THE_RUN = (
    option("out", Path | None, f"Folder of report.json and report.html. [{OUT}, of data]"),
    RECORDS,
    PUBLISH,
    FULL,
    AS_JSON,
)
app = typer.Typer(
    help="What a theorem allows any attacker.",
    epilog=f"Example: {BOUNDS['dp'].example}",
    context_settings=HELP,
    rich_markup_mode="rich",
)


def _command(row: Bound, plan: type[PagePlan]) -> Callable[..., None]:
    """Make the command of a bound."""
    # of DP-SGD, --records is how many there are: it has no data whose records it could show
    hides_records = "records" not in plan.model_fields and row.publishable
    absent = ([] if hides_records else [RECORDS]) + ([] if row.publishable else [PUBLISH])
    of_the_run = [parameter for parameter in OF_THE_RUN if parameter not in absent]

    def run(out: Path | None, full: bool, as_json: bool, **flags: Any) -> None:
        records = flags.pop("show_records", True)
        publish = flags.pop("publish", False)
        words = words_of(plan, flags)
        started = time.time()
        # a bound of data names records and has a folder; one of parameters is only printed unless --out is given
        folder = Path(OUT) if out is None and "data" in words else out
        if folder is not None:
            refuse_file(folder)
        report = import_module("leakbound.bounding.api").bound(row.name, command=command_line(), **words)
        if folder is not None:
            write(report, folder, records, started, publish)
        emit(report if records and not publish else report.without_records(), folder, as_json, full=full)

    return command(f"{row.summary}\n\n{row.source}", run, grouped([*options_of(plan), *of_the_run], "Theorem"))


for row in BOUNDS.values():
    app.command(row.name, epilog=f"Example: {row.example}")(_command(row, BOUND_PLANS[row.name]))
