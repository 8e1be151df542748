"""Check public docstrings by numpydoc: ``python -m docs.docstrings`` lists what is missing, and ends with 1, or 0."""

from __future__ import annotations

import sys

from numpydoc.validate import validate
from pydantic import BaseModel
from tests.test_public import public_things

CHECKS = {
    "GL01", "GL02", "GL05", "GL06", "GL07", "GL08",  # there is one, with known sections in their order
    "SS01", "SS02", "SS03", "SS04", "SS05", "SS06",  # the first line: a sentence, imperative, on one line
    "PR01", "PR02", "PR03", "PR04",  # every parameter, in order, with its type
    "RT01", "RT03", "YD01",  # what is returned
    "EX01",  # an example
}  # fmt: skip
OF_FIELDS = {"PR01", "EX01"}  # the fields of a plan carry their own descriptions, which the command line prints


def checks_of(thing: object) -> set[str]:
    """Return what a docstring must fulfil: less than ``CHECKS`` for a plan and for a protocol."""
    if isinstance(thing, type) and issubclass(thing, BaseModel):
        return CHECKS - OF_FIELDS
    if getattr(thing, "_is_protocol", False):  # made by nobody: it has no parameters
        return CHECKS - {"PR01"}
    return CHECKS


def main() -> int:
    """Print each complaint; return 1 if there is one."""
    things = public_things()
    complaints = [
        f"{name}: {code} {text}"
        for name, thing in things
        for code, text in validate(name)["errors"]
        if code in checks_of(thing)
    ]
    print(*complaints, f"{len(things)} public docstrings, {len(complaints)} complaints", sep="\n")
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
