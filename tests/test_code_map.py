"""The counts of ``benchmarks.code_map``, on small packages whose numbers are counted by hand."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from benchmarks.code_map import (
    CodeMap,
    Style,
    code_map,
    definitions_of,
    main,
    public_functions,
    read_modules,
    takes_any_keyword,
)

REPOSITORY = Path(__file__).parents[1]


def measure(root: Path, files: dict[str, str]) -> CodeMap:
    """Write a package below ``root`` and measure it; an empty ``__init__.py`` is added where none is given."""
    package = root / "src" / "leakbound"
    for name, source in {"__init__.py": "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return code_map(root)


def style(root: Path, source: str) -> Style:
    """Measure a package whose only other file is an empty ``__init__.py``."""
    return measure(root, {"alone.py": source}).style


# ---------------------------------------------------------------------------------------------------------------------
# Rooms, arrows, cycles


def test_folders_and_loose_modules_are_rooms(tmp_path):
    layout = measure(
        tmp_path,
        {
            "loose.py": "",
            "attacks/__init__.py": "",
            "attacks/lira.py": "",
            "papers/one/figure.py": "",  # papers itself holds no file
            "report/page.css": "not Python",
        },
    ).layout
    assert layout.n_files == 5
    assert layout.n_folders == 2  # attacks, papers.one
    assert layout.n_loose_modules == 2  # __init__ of the package, loose
    assert layout.n_arrows == 0
    assert layout.cycles == []


@pytest.mark.parametrize(
    "statement",
    [
        "import leakbound.b.inner",
        "import leakbound.b.inner as inner",
        "from leakbound.b import inner",
        "from leakbound.b.inner import name",
        "from leakbound import b",
        "from .. import b",
        "from ..b import inner",
        "from ..b.inner import name",
        "def load():\n    from leakbound.b import inner\n    return inner",
        "try:\n    from leakbound.b import inner\nexcept ImportError:\n    pass",
        "from importlib import import_module\ninner = import_module('leakbound.b.inner')",
        "import importlib\nHOME = 'leakbound.b'\ninner = importlib.import_module(f'{HOME}.inner')",
    ],
)
def test_every_way_to_import_is_an_arrow(tmp_path, statement):
    layout = measure(tmp_path, {"a/user.py": statement, "b/__init__.py": "", "b/inner.py": ""}).layout
    assert layout.n_arrows == 1
    assert layout.n_arrows_without_type_checking == 1


@pytest.mark.parametrize(
    "statement",
    [
        "from leakbound.a import other",
        "from . import other",
        "from .other import name",
        "import numpy",
        "import leakbounds.b",
        "def load(name):\n    return import_module(name)",
    ],
)
def test_the_own_room_and_other_packages_are_no_arrows(tmp_path, statement):
    layout = measure(tmp_path, {"a/user.py": statement, "a/other.py": "", "b/__init__.py": ""}).layout
    assert layout.n_arrows == 0


def test_a_relative_import_in_an_init_starts_at_its_own_folder(tmp_path):
    layout = measure(tmp_path, {"a/__init__.py": "from .b import name", "a/b/__init__.py": "", "b.py": ""}).layout
    assert layout.n_arrows == 1  # a -> a.b
    assert layout.n_folders == 2


def test_arrows_are_counted_once_for_a_pair_and_once_for_each_direction(tmp_path):
    layout = measure(
        tmp_path,
        {
            "a/one.py": "from leakbound.b import two",
            "a/more.py": "from leakbound.b import two\nimport leakbound.b.two",
            "b/two.py": "import leakbound.a.one",
        },
    ).layout
    assert layout.n_arrows == 2


def test_a_name_of_the_package_itself_leads_to_its_init(tmp_path):
    layout = measure(tmp_path, {"a.py": "import leakbound\nfrom leakbound import audit"}).layout
    assert layout.n_arrows == 1  # a -> __init__


TYPE_CHECKING = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakbound.{0} import name
else:
    from leakbound.{1} import name
"""


def test_imports_for_type_checkers_are_told_apart(tmp_path):
    layout = measure(
        tmp_path,
        {
            "a.py": TYPE_CHECKING.format("b", "c"),
            "b.py": "import leakbound.a",
            "c.py": "",
        },
    ).layout
    assert layout.n_arrows == 3  # a -> b, a -> c, b -> a
    assert layout.n_arrows_without_type_checking == 2  # a -> c, b -> a
    assert layout.cycles == [["a", "b"]]
    assert layout.cycles_without_type_checking == []


def test_the_test_may_be_an_attribute_of_typing(tmp_path):
    source = "import typing\nif typing.TYPE_CHECKING:\n    import leakbound.b"
    layout = measure(tmp_path, {"a.py": source, "b.py": ""}).layout
    assert (layout.n_arrows, layout.n_arrows_without_type_checking) == (1, 0)


def test_cycles_are_strongly_connected_components(tmp_path):
    layout = measure(
        tmp_path,
        {
            # a -> b -> c -> a, and c -> d -> e -> d; f leads into a cycle and is on none.
            "a.py": "import leakbound.b.one",
            "b/one.py": "import leakbound.c",
            "c.py": "def later():\n    import leakbound.a\n    import leakbound.d",
            "d.py": "import leakbound.e",
            "e.py": "import leakbound.d",
            "f.py": "import leakbound.a",
        },
    ).layout
    assert layout.n_arrows == 7
    assert layout.cycles == [["a", "b", "c"], ["d", "e"]]
    assert layout.cycles_without_type_checking == layout.cycles


def test_paths_in_text_have_their_own_number(tmp_path):
    source = '''"""An import path in prose, "leakbound.d:name", is none in a table."""

HOME = "leakbound.b"
TABLE = {
    "literal": "leakbound.b.inner:name",
    "with a constant": f"{HOME}.inner:other",
    "of the own room": "leakbound.a:name",
    "elsewhere": "sklearn.svm:SVC",
    "a sentence": "see leakbound.b.inner:name",
}
MORE = [f"leakbound.c:{name}" for name in ("one", "two")]
UNKNOWN = "leakbound:version"
'''
    files = {"a.py": source, "b/inner.py": "", "c.py": "", "d.py": ""}
    layout = measure(tmp_path, files).layout
    assert layout.n_paths_in_text == 5  # literal, with a constant, own room, MORE, UNKNOWN
    assert layout.n_arrows_of_text_alone == 3  # a -> b, a -> c, a -> __init__
    assert layout.n_arrows == 0

    layout = measure(tmp_path, files | {"a.py": source + "import leakbound.b.inner\n"}).layout
    assert layout.n_arrows_of_text_alone == 2  # a -> b is an import now
    assert layout.n_arrows == 1


# ---------------------------------------------------------------------------------------------------------------------
# The files of a plan


def test_plan_files(tmp_path):
    measured = measure(
        tmp_path,
        {
            "attribute.py": "def run(setting):\n    return setting.plan",
            "base.py": "class AuditPlan: ...",
            "docs.py": '"""AuditPlan in a docstring, and in a text."""\nNAME = "AuditPlan"',
            "fields.py": "class Setting:\n    plan: AuditPlan | None = None",
            "imports.py": "from leakbound.base import AuditPlan",
            "other.py": "def run(plan: BoundPlan):\n    return plan",
            "quoted.py": "def run(plan: 'list[AuditPlan]'): ...",
            "qualified.py": "def run(plan: base.AuditPlan): ...",
        },
    )
    expected = ["attribute.py", "base.py", "fields.py", "imports.py", "qualified.py", "quoted.py"]
    assert measured.plan_files == expected


def test_an_attribute_of_that_name_counts_only_where_some_class_annotates_it(tmp_path):
    measured = measure(tmp_path, {"a.py": "def run(setting):\n    return setting.plan"})
    assert measured.plan_files == []

    field = "class Setting:\n    def __init__(self, plan):\n        self.plan: AuditPlan = plan"
    measured = measure(tmp_path, {"b.py": field})
    assert measured.plan_files == ["a.py", "b.py"]


# ---------------------------------------------------------------------------------------------------------------------
# Lines


LINES = '''"""A docstring

of three lines."""

import math  # a comment that trails


class Circle:
    """One line."""

    # A comment alone.
    radius = 1

    def area(self):
        """Two
        lines."""
        text = """a text of

        three lines, one blank"""
        return (
            math.pi
            * self.radius**2  # noqa: SIM000
        )


def nothing(): "a docstring beside code"
'''


def test_docstrings_comments_and_blank_lines_are_no_code(tmp_path):
    measured = style(tmp_path, LINES)
    assert measured.n_lines == 26
    # import, class, radius, def, two of the text, four of the return, def
    assert measured.n_code_lines == 11
    assert measured.n_comment_lines == 1
    assert measured.comment_line_fraction == pytest.approx(1 / 26)
    assert measured.n_trailing_comments == 2
    assert measured.comment_to_code_ratio == pytest.approx(3 / 11)


def test_a_hash_in_a_text_is_no_comment(tmp_path):
    measured = style(tmp_path, 'COLOUR = "#fff"\nTEXT = """\n# noqa\n"""\n')
    assert measured.n_comment_lines == measured.n_trailing_comments == measured.n_noqa == 0
    assert measured.n_code_lines == 4


def test_comments_that_silence_a_tool(tmp_path):
    source = (
        "a = 1  # noqa\n"
        "b = 2  # noqa: E501\n"
        "c = 3  #pyright:ignore\n"
        "d = 4  # pyright: ignore[reportCallIssue] -- for a reason\n"
        "e = 5  # noqa: E501  # pyright: ignore\n"
        "f = 6  # about noqa\n"
        "# pyright: basic\n"
    )
    measured = style(tmp_path, source)
    assert measured.n_noqa == 3
    assert measured.n_pyright_ignore == 3


# ---------------------------------------------------------------------------------------------------------------------
# Functions


FUNCTIONS = '''
@decorated
@twice
def decorated_function():
    """Not code."""
    # not code
    first = 1

    return first


def outer():
    async def inner(): return 1

    return inner


class Owner:
    @property
    def documented(self):
        """The docstring does not count."""
        return 1

    def split(self):
        return (
            1
        )

    def only_docstring(self):
        """Nothing else."""


lambda_function = lambda: 1
'''


def test_functions_and_their_lengths(tmp_path):
    measured = style(tmp_path, FUNCTIONS)
    # decorated_function 3, outer 3, inner 1, documented 2, split 4, only_docstring 1
    assert measured.n_functions == 6
    assert measured.mean_function_length == pytest.approx(14 / 6)
    assert measured.median_function_length == 2.5
    assert measured.one_line_function_fraction == pytest.approx(2 / 6)  # inner, documented


def test_a_package_without_functions(tmp_path):
    measured = measure(tmp_path, {}).style
    assert measured.n_lines == measured.n_functions == 0
    assert measured.mean_function_length == measured.median_function_length == 0
    assert measured.one_line_function_fraction == measured.comment_line_fraction == 0


# ---------------------------------------------------------------------------------------------------------------------
# Expressions


def test_comprehensions(tmp_path):
    source = "a = [x for x in y]\nb = {x for x in y}\nc = {x: 1 for x in y}\nd = sum(x for z in y for x in z)\n"
    assert style(tmp_path, source).n_comprehensions == 4
    assert style(tmp_path, "a = [[x for x in z] for z in y]\nfor x in y: print(x)\n").n_comprehensions == 2


@pytest.mark.parametrize(
    ("expression", "n_conditionals", "n_nested"),
    [
        ("a if b else c", 1, 0),
        ("a if b else c if d else e", 2, 1),
        ("(a if b else c) if d else e", 2, 1),
        ("a if (b if c else d) else e", 2, 1),
        ("(a if b else c) if (d if e else f) else (g if h else i)", 4, 3),
        ("a if b else c if d else e if f else g", 3, 2),
        ("a if b else -(c if d else e)", 2, 1),
        ("f(a if b else c) if d else e", 2, 1),
        ("[a if b else c, d if e else f]", 2, 0),
    ],
)
def test_conditional_expressions(tmp_path, expression, n_conditionals, n_nested):
    measured = style(tmp_path, f"value = {expression}\nif value:\n    pass\n")
    assert measured.n_conditionals == n_conditionals
    assert measured.n_nested_conditionals == n_nested


def test_uses_of_any(tmp_path):
    source = '''"""Any in a docstring."""
import typing
from typing import Any

def function(a: Any, b: dict[str, Any], c: typing.Any) -> "Any":  # the quoted one is a text
    return any([a, b, c, "Any", np.Any])
'''
    assert style(tmp_path, source).n_any == 3


# ---------------------------------------------------------------------------------------------------------------------
# Functions that take any keyword


OPEN = "def {0}(**options: Any): ...\n"


def test_only_keywords_of_any_type_make_a_function_open(tmp_path):
    source = (
        "def by_name(**options: Any): ...\n"
        "def by_attribute(*, option=1, **options: typing.Any): ...\n"
        "def closed(option: Any): ...\n"
        "def typed(**options: int): ...\n"
        "def bare(**options): ...\n"
        "def outer():\n"
        "    def inner(**options: Any): ...\n"
    )
    measured = style(tmp_path, source)
    assert measured.n_open_functions == 3
    assert measured.public_open_functions == []


INIT = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakbound import attacks, loose
    from leakbound.auditing import audit
    from leakbound.report import Report

__all__ = ["Report", "attacks", "audit", "here", "loose"]

def here(**options: Any): ...
def not_exported(**options: Any): ...
"""
REPORT = """
from leakbound.base import Base

class Report(Base):
    def __init__(self, **options: Any): ...
    def page(self, **options: Any): ...
    def _as(self, **options: Any): ...

class Other:
    def page(self, **options: Any): ...
"""


def test_public_functions_that_take_any_keyword(tmp_path):
    measured = measure(
        tmp_path,
        {
            "__init__.py": INIT,
            "auditing.py": "from leakbound.carried import audit\n" + OPEN.format("helper"),
            "carried.py": OPEN.format("audit") + OPEN.format("helper"),
            "report.py": REPORT,
            "base.py": "class Base:\n    def inherited(self, **options: Any): ...\n",
            # a folder with __all__: its names alone; a module without: all but the underscored
            "attacks/__init__.py": "from leakbound.attacks.lira import lira\n__all__ = ['lira']\n"
            + OPEN.format("mast"),
            "attacks/lira.py": OPEN.format("lira") + OPEN.format("helper"),
            "loose.py": "from leakbound.carried import helper\n" + OPEN.format("told") + OPEN.format("_hidden"),
        },
    ).style
    assert measured.public_open_functions == [
        "leakbound.attacks.lira:lira",
        "leakbound.base:Base.inherited",
        "leakbound.carried:audit",
        "leakbound.loose:told",
        "leakbound.report:Report.__init__",
        "leakbound.report:Report.page",
        "leakbound:here",
    ]
    # here, not_exported; auditing.helper; audit, helper; three of Report, one of Other; inherited; mast; lira, helper;
    # told, _hidden
    assert measured.n_open_functions == 15


# ---------------------------------------------------------------------------------------------------------------------
# The command


def test_the_table_lists_cycles_and_plan_files(tmp_path, capsys):
    measure(tmp_path, {"a.py": "import leakbound.b", "b.py": "import leakbound.a\nclass AuditPlan: ...\n"})
    assert main([str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    cycle = lines.index("      2 rooms: a, b")
    assert lines[cycle - 1].split() == ["cycles", "between", "rooms", "1"]
    plan = lines.index("      b.py")
    assert lines[plan - 1].split() == ["files", "that", "handle", "an", "AuditPlan", "1"]


def test_the_table_has_the_lines_of_each_folder(tmp_path, capsys):
    """Of a file of three lines of code, one of a docstring and one of a comment; and of one of a single line."""
    measure(tmp_path, {"a/b/c.py": '"""Doc."""\n# why\nx = 1\n\ny = (\n    2)\n', "d.py": "x = 1\n"})
    assert main([str(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    first = lines.index(["a", "3"])
    assert lines[first + 1] == ["d", "1"]


def test_json_holds_the_same_numbers(tmp_path, capsys):
    measured = measure(tmp_path, {"a.py": "import leakbound.b", "b.py": "import leakbound.a\n"})
    assert main([str(tmp_path), "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written["layout"]["cycles"] == [["a", "b"]]
    assert written["layout"]["n_arrows"] == 2
    assert written["style"]["n_code_lines"] == measured.style.n_code_lines == 2
    assert written["plan_files"] == []


def test_a_folder_without_the_package_is_an_error(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main([str(tmp_path)])
    assert stop.value.code == 2
    assert "is no package" in capsys.readouterr().err


@pytest.mark.slow
def test_public_calls_name_every_keyword():
    """Imports between folders are tested in tests/test_layers.py."""
    modules = read_modules(REPOSITORY / "src" / "leakbound")
    public = public_functions(modules)
    nodes = {(name, path): node for name, module in modules.items() for path, node in definitions_of(module.tree)}
    functions = {name: nodes[name] for name in public if isinstance(nodes[name], ast.FunctionDef)}
    assert len(functions) > 100
    # the keywords of each bound are fields of its plan, which its docstring lists
    assert [name for name, node in functions.items() if takes_any_keyword(node)] == [
        ("leakbound.bounding.api", "bound")
    ]


@pytest.mark.nightly
@pytest.mark.nightly
def test_the_repository_is_measured():
    """No cycle between the folders of the package, and public calls name every keyword."""
    measured = code_map(REPOSITORY)
    assert measured.layout.cycles_of_whole_folders == []
    assert measured.style.public_open_functions == []
    n_files = len(list((REPOSITORY / "src" / "leakbound").rglob("*.py")))
    assert measured.layout.n_files == n_files
    assert measured.plan_files, "the class AuditPlan has another name now: change it in benchmarks/code_map.py"
    assert 0 < measured.style.n_code_lines < measured.style.n_lines


def test_a_folder_and_its_subfolder_are_one_whole(tmp_path):
    layout = measure(
        tmp_path,
        {
            "a/one.py": "import leakbound.a.inner.two",
            "a/inner/two.py": "import leakbound.a.one\nimport leakbound.b",
            "b.py": "",
        },
    ).layout
    assert layout.cycles_without_type_checking == [["a", "a.inner"]]
    assert layout.cycles_of_whole_folders == []
