"""What all plans have in common: values as in TOML, and one line for what is wrong."""

from __future__ import annotations

import math

import pytest

from leakscope.plans.audits import AuditPlan
from leakscope.plans.plan import constant, read, settings


class TestSettings:
    def test_values_as_in_toml(self):
        made = settings('a=1,b = 2.5,c=true,d=text,e="3",f=None,g=[1]', "--set")
        assert made == {"a": 1, "b": 2.5, "c": True, "d": "text", "e": "3", "f": None, "g": [1]}
        assert type(made["a"]) is int

    def test_a_value_may_hold_an_equals_sign(self):
        assert settings("a=b=c", "--set") == {"a": "b=c"}

    @pytest.mark.parametrize("text", ["a b", "[1", "'"])
    def test_what_is_no_single_toml_value_is_text(self, text):
        assert constant(text) == text

    def test_infinity_is_a_number(self):
        assert constant("inf") == math.inf


def test_the_source_of_a_plan_is_named():
    with pytest.raises(ValueError, match=r"^the flags: unknown key 'sead' \(did you mean 'seed'\?\)"):
        read(AuditPlan, {"sead": 1}, "the flags")
