"""Annotations are executed: the first calls in each process, and the first objects of a dataclass."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from jaxtyping import Float, TypeCheckError

from tests import typecheck
from tests.typecheck import from_the_first_call, from_the_first_object

if TYPE_CHECKING:
    from somewhere import Unknown  # pyright: ignore[reportMissingImports]

Array = np.ndarray


def named(name: str, factor: float = 1.0) -> int:
    return len(name) if factor == 1 else 0.5  # pyright: ignore[reportReturnType]


def total(x: Float[Array, "n k"], y: Float[Array, " n"]) -> Float[Array, " k"]:
    return (x * y[:, None]).sum(axis=0 if len(y) < 5 else 1)


def rows(x: Float[Array, "n k"]) -> Iterator[Float[Array, " k"]]:
    yield from x


def totals(x: Float[Array, "n k"]) -> list[Float[Array, " k"]]:
    """Calls for other sizes of the same names."""
    return [total(x[:2], np.ones(2)), total(x[:, :1], np.ones(len(x))), *from_the_first_call(rows)(x.T)][:1]


def unknown(x: Unknown, name: str) -> str:
    return name


@dataclass
class Pair:
    x: Float[Array, " n"]
    y: Float[Array, " n"]
    name: str = ""


PLAIN = np.ones((3, 2))


@pytest.mark.parametrize(
    ("function", "right", "wrong"),
    [
        (named, ("a",), (1,)),
        (named, ("a", 1), ("a", "1")),  # an int is a float
        (named, ("a",), ("a", 2.0)),  # the result is none
        (total, (PLAIN, np.ones(3)), (PLAIN, np.ones(4))),
        (total, (PLAIN, np.ones(3)), (np.ones((6, 2)), np.ones(6))),  # the result has another length
        (total, (PLAIN, np.ones(3)), (np.ones((3, 2), dtype=int), np.ones(3))),
        (rows, (PLAIN,), (PLAIN[0],)),
        (totals, (np.ones((4, 3)),), (np.ones(3),)),
        (unknown, (1, "a"), (1, 2)),
    ],
)
def test_what_annotations_rule_out_is_an_error(
    function: Callable[..., Any], right: tuple[Any, ...], wrong: tuple[Any, ...]
) -> None:
    checked = from_the_first_call(function)
    checked(*right)
    with pytest.raises(TypeCheckError):
        checked(*wrong)


def test_objects_of_dataclasses_are_checked() -> None:
    made = from_the_first_object(Pair)
    made(np.ones(2), np.ones(2))
    with pytest.raises(TypeCheckError):
        made(np.ones(2), np.ones(3))


def test_the_first_calls_of_a_process_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typecheck, "CALLS", 2)
    checked = from_the_first_call(unknown)
    for _ in range(2):
        with pytest.raises(TypeCheckError):
            checked(1, 2)
    assert checked(1, 2) == 2


@pytest.mark.usefixtures("as_users_run_it")
def test_no_call_is_checked_on_request() -> None:
    assert from_the_first_call(unknown)(1, 2) == 2


@pytest.mark.slow
def test_private_functions_are_checked_where_all_are(tmp_path: Path) -> None:
    """Processes of their own, as functions are chosen on import; the second does not take what the first compiled."""
    (tmp_path / "some_module.py").write_text(
        "def public(x: int) -> int:\n    return x\n\n\ndef _private(x: int) -> int:\n    return x\n"
    )
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPATH"] = os.pathsep.join((str(tmp_path), str(Path(__file__).parents[1])))
    for which, checked in (("first", ["public"]), ("all", ["public", "_private"])):
        script = (
            "import jaxtyping, tests.typecheck\n"
            f"jaxtyping.install_import_hook('some_module', 'tests.typecheck.{which}_executed')\n"
            "import some_module\n"
            "for name in ('public', '_private'):\n"
            "    try:\n"
            "        getattr(some_module, name)('text')\n"
            "    except jaxtyping.TypeCheckError:\n"
            "        print(name)\n"
        )
        environment["LEAKBOUND_CHECK_ANNOTATIONS"] = which
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == checked
