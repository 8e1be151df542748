"""Policies: files, the one that is built in, mappings, and errors of one line."""

from __future__ import annotations

import pytest

from leakbound.plans.audits import AuditPlan
from leakbound.plans.plan import read
from leakbound.plans.policies import PolicyPlan, policy_of, ready_text


def test_a_file_a_mapping_and_a_name_are_policies(tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text(ready_text("research"), encoding="utf-8")
    assert policy_of(file) == policy_of(str(file)) == policy_of("research")
    content = {"limits": ["auc=0.6"], "signs": ["me"], "then": {"ask": "Call."}}
    policy = policy_of(content)
    assert (policy.parsed_limits[0].limit, policy.signs, policy.then.ask) == (0.6, ("me",), "Call.")
    assert policy_of(policy) is policy


def test_limits_may_be_a_table_or_a_single_one(tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text('[limits]\naccuracy = 0.6\n"tpr@0.01" = 0.05\n', encoding="utf-8")
    assert policy_of(file).limits == ("accuracy=0.6", "tpr@0.01=0.05")
    assert policy_of({"limits": "auc=0.6"}).limits == ("auc=0.6",)
    with pytest.raises(ValueError, match=r"accuracy is a fraction: 60 is out of range; did you mean 0.6"):
        policy_of({"limits": {"accuracy": 60}})


def test_a_plan_holds_the_whole_policy_and_no_path(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('limits = ["auc=0.6"]', encoding="utf-8")
    plan = read(AuditPlan, {"policy": str(file)}, "audit")
    assert isinstance(plan.policy, PolicyPlan)
    assert str(tmp_path) not in str(plan.model_dump())
    assert policy_of(plan.model_dump()["policy"]) == plan.policy


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("nowhere.toml", "nowhere.toml: no such policy file; ready policies: research"),
        ({}, 'policy: a policy needs limits on the attacks, as limits = ["accuracy=0.6", "tpr@0.01=0.05"]'),
        ({"limits": ["epsilon=3"]}, "limits takes QUANTITY"),
        ({"limits": ["most_exposed=0.6"]}, "quantities: accuracy, advantage, auc, tpr, tpr_these_models"),
        ({"limit": ["auc=0.6"]}, "unknown key 'limit' (did you mean 'limits'?)"),
        ({"limits": ["auc=0.6"], "structure": {"smallest_leave": 3}}, "did you mean 'smallest_leaf'"),
        ({"limits": ["auc=0.6"], "structure": {"smallest_leaf": 0}}, "greater than or equal to 1"),
        ({"limits": ["auc=0.6"], "confidence": 95}, "did you mean 0.95"),
        (7, "a policy is a file, the name research or a mapping, got a int"),
    ],
)
def test_what_is_wrong_is_one_line(policy, message):
    with pytest.raises(ValueError) as error:
        policy_of(policy)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_audit_of_an_attribute_takes_none():
    with pytest.raises(ValueError, match="an audit of an attribute takes none"):
        read(AuditPlan, {"policy": "research", "game": "attribute,column=sex"}, "audit")


def test_there_is_no_other_ready_policy():
    with pytest.raises(ValueError, match="there is no ready policy 'x'; ready policies: research"):
        ready_text("x")
