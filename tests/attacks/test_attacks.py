import pickle
import subprocess
import sys

import pytest

from leakbound.attacks import ATTACKS, DEFAULT, find
from leakbound.core.signals import SCORES, SIGNALS


def test_rows_are_named_and_ask_for_known_signals():
    for name, attack in ATTACKS.items():
        assert attack.name == name
        assert set(attack.signals) <= set(SIGNALS)
        assert attack.source
        assert attack.summary.endswith(".")
    assert set(DEFAULT) <= set(ATTACKS)


def test_find():
    assert tuple(a.name for a in find("default")) == DEFAULT
    assert find("all") == tuple(attack for name, attack in ATTACKS.items() if name not in SCORES)
    assert {attack.name for attack in find("all", ["score"])} >= {"score", "lira", "mast", "rmia", "rmia_offline"}
    assert find("lira") == find(ATTACKS["lira"]) == (ATTACKS["lira"],)
    pooled = ATTACKS["lira"].with_parameters(variance="pooled")
    assert [a.name for a in find(["gap", pooled, "gap", "lira"])] == ["gap", "lira(variance=pooled)", "lira"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("lirra", r"unknown attack 'lirra' \(did you mean 'lira'\?\); known: gap, "),
        (["gap", "zzz"], "unknown attack 'zzz'; known: gap, "),
        ([], "no attack is asked for"),
    ],
)
def test_find_refuses(asked, message):
    with pytest.raises(ValueError, match=message):
        find(asked)


def test_with_parameters_gives_a_new_value():
    attack = ATTACKS["rmia_offline"].with_parameters(gamma=1.5).with_parameters(a=0.5)
    assert attack.name == "rmia_offline(a=0.5, gamma=1.5)"
    assert attack.parameters == {"a": 0.5, "gamma": 1.5}
    assert ATTACKS["rmia_offline"].parameters == {}
    assert pickle.loads(pickle.dumps(attack)) == attack


def test_with_parameters_refuses_unknown_ones():
    with pytest.raises(ValueError, match=r"unknown parameter of lira 'varience' \(did you mean 'variance'\?\)"):
        ATTACKS["lira"].with_parameters(varience="point")
    with pytest.raises(ValueError, match="the attack gap has no parameters, got 'gamma'"):
        ATTACKS["gap"].with_parameters(gamma=2)


@pytest.mark.slow
def test_the_table_imports_no_attack():
    code = (
        "import sys, leakbound.attacks; "
        "print([m for m in sys.modules if m.startswith(('sklearn', 'leakbound.attacks.'))])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
