"""What all plans have in common: values as in TOML, and one line for what is wrong."""

from __future__ import annotations

import math

import pytest

from leakbound.plans.audits import AuditPlan
from leakbound.plans.plan import columns, constant, read, settings


class TestSettings:
    def test_values_as_in_toml(self):
        made = settings('a=1,b = 2.5,c=true,d=text,e="3",f=None,g=[1]', "--set")
        assert made == {"a": 1, "b": 2.5, "c": True, "d": "text", "e": "3", "f": None, "g": [1]}
        assert type(made["a"]) is int

    def test_a_list_keeps_its_commas(self):
        assert settings("a=[0.25, 0.75],b=[],c=x", "--set") == {"a": [0.25, 0.75], "b": [], "c": "x"}

    def test_a_value_may_hold_an_equals_sign(self):
        assert settings("a=b=c", "--set") == {"a": "b=c"}

    @pytest.mark.parametrize("text", ["a b", "[1", "'"])
    def test_what_is_no_single_toml_value_is_text(self, text):
        assert constant(text) == text

    def test_infinity_is_a_number(self):
        assert constant("inf") == math.inf


class TestColumns:
    @pytest.mark.parametrize(
        ("given", "names"),
        [
            ("a", ("a",)),
            (" a , b ,", ("a", "b")),
            ('"a, b",c', ("a, b", "c")),
            ('c, "a,b"', ("c", "a,b")),
            ('"say ""so"""', ('say "so"',)),
            (['"a,b"', "c,d"], ("a,b", "c", "d")),
            (("a", 7), ("a", "7")),
            ("", ()),
            (None, ()),
        ],
    )
    def test_names_as_in_csv(self, given, names):
        assert columns(given) == names

    @pytest.mark.parametrize("text", ['"a,b', '"a"b,c', "a\nb"])
    def test_what_is_no_line_of_csv(self, text):
        with pytest.raises(ValueError) as caught:
            columns(text)
        assert str(caught.value) == f"write columns as a,b and a name with a comma in double quotes, got {text!r}"


def test_the_source_of_a_plan_is_named():
    with pytest.raises(ValueError, match=r"^the flags: unknown key 'sead' \(did you mean 'seed'\?\)"):
        read(AuditPlan, {"sead": 1}, "the flags")
