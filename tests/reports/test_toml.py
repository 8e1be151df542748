import tomllib

from hypothesis import given
from hypothesis import strategies as st

from leakbound.reports.toml import toml

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LEAVES = TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_a_reader_of_toml_gets_the_plan_back(plan):
    assert tomllib.loads(toml(plan)) == plan


def test_tables_stand_after_values_and_nothing_stands_for_none():
    plan = {"model": [{"spec": "a:B", "set": {"n": 1}}, {"spec": "c:D"}], "seed": 0, "data": None}
    assert toml(plan).splitlines() == [
        "seed = 0",
        "",
        "[[model]]",
        'spec = "a:B"',
        "",
        "[model.set]",
        "n = 1",
        "",
        "[[model]]",
        'spec = "c:D"',
    ]
