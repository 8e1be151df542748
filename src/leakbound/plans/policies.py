"""A policy: the limits that a model must keep before it is released, who signs, and what is done with the verdict."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from leakbound.files.untrusted import in_one_line, toml_table
from leakbound.plans.limits import Limit
from leakbound.plans.plan import Plan, a_fraction, read

READY = {"research": "research.toml"}  # policies that come with leakbound, by name


class StructurePlan(Plan):
    """Limits on the fitted model itself, without any attack: what output checkers look at."""

    degrees_of_freedom: int | None = Field(
        default=None, description="training records minus parameters of the model: at least this many"
    )
    smallest_leaf: int | None = Field(
        default=None, ge=1, description="training records in each leaf of a tree: at least this many"
    )
    smallest_group: int | None = Field(
        default=None,
        ge=1,
        description="training records that share a leaf in every tree (k-anonymity of leaves): at least this many",
    )
    class_disclosure: bool = Field(
        default=False, description="refuse groups of such records that all have the same label"
    )
    stored_records: bool = Field(
        default=False, description="refuse models that hold training records, such as nearest neighbours"
    )
    then: Literal["ask", "do_not_release"] = Field(
        default="do_not_release", description="the verdict where one of these limits is not kept"
    )


class ExposedPlan(Plan):
    """A limit on how many records are shown to be exposed, whoever they are."""

    most: int = Field(default=0, ge=0, description="records that may be shown to be exposed")
    then: Literal["ask", "do_not_release"] = Field(
        default="do_not_release", description="the verdict where more are exposed"
    )


class ActionPlan(Plan):
    """What is done with each verdict, in the words of the policy's author."""

    release: str = Field(default="", description="if the model may be released")
    ask: str = Field(default="", description="if the audit cannot decide")
    do_not_release: str = Field(default="", description="if the model may not be released")


class PolicyPlan(Plan):
    """A policy for the release of models."""

    title: str = Field(default="", description="the name of the policy")
    limits: tuple[str, ...] = Field(
        default=(),
        description="on the strongest attack, as accuracy=0.6 or tpr@0.01=0.05, or as a table; accuracy at prior 1/2",
    )
    attacks: tuple[str, ...] = Field(
        default=(), description="attacks that must have been run; default: none of the default ones may be left out"
    )
    confidence: Annotated[float, a_fraction(least=0.5, below=True)] = Field(
        default=0.95, description="that none of the verdicts is wrong, over all models of an audit"
    )
    exposed: ExposedPlan | None = Field(default=None, description="a limit on the number of exposed records")
    structure: StructurePlan | None = Field(default=None, description="limits on the fitted model itself")
    signs: tuple[str, ...] = Field(default=(), description="who signs")
    then: ActionPlan = Field(default=ActionPlan(), description="what is done with each verdict")

    @field_validator("limits", mode="before")
    @classmethod
    def _in_other_forms(cls, limits: Any) -> Any:
        """Take a single limit as it is, and a table of limits by their quantities."""
        if isinstance(limits, str):
            return (limits,)
        if isinstance(limits, Mapping):
            return tuple(f"{quantity}={limit}" for quantity, limit in limits.items())
        return limits

    @field_validator("limits")
    @classmethod
    def _limits(cls, limits: tuple[str, ...]) -> tuple[str, ...]:
        for text in limits:
            Limit.parse(text)
        return limits

    @model_validator(mode="after")
    def _limits_anything(self) -> PolicyPlan:
        if not self.limits:
            raise ValueError('a policy needs limits on the attacks, as limits = ["accuracy=0.6", "tpr@0.01=0.05"]')
        if self.exposed is not None and any(text.startswith("exposed") for text in self.limits):
            raise ValueError("exposed is limited twice: leave it out of limits, or leave out the table [exposed]")
        return self

    @property
    def parsed_limits(self) -> tuple[Limit, ...]:
        """The limits on the attacks."""
        limits = tuple(Limit.parse(text) for text in self.limits)
        if self.exposed is not None:
            limits += (Limit(quantity="exposed", limit=self.exposed.most),)
        return limits


@in_one_line
def policy_of(policy: Any) -> PolicyPlan:
    """Read a policy from its file, by the name of one that comes with leakbound, from limits, or from a mapping.

    >>> policy_of("research").structure.smallest_leaf
    10
    >>> policy_of("auc=0.6,tpr@0.01=0.05").limits
    ('auc=0.6', 'tpr@0.01=0.05')
    """
    if isinstance(policy, PolicyPlan):
        return policy
    if isinstance(policy, Mapping):
        return read(PolicyPlan, policy, "policy")
    if not isinstance(policy, str | os.PathLike):
        raise ValueError(f"a policy is a file, the name {_names()} or a mapping, got a {type(policy).__name__}")
    if policy in READY:
        with resources.as_file(resources.files("leakbound.plans").joinpath(READY[str(policy)])) as file:
            return read(PolicyPlan, toml_table(file), str(policy))
    if not Path(policy).is_file() and "=" in str(policy):
        return read(PolicyPlan, {"limits": [text.strip() for text in str(policy).split(",")]}, "policy")
    if not Path(policy).is_file():
        raise ValueError(
            f"{policy}: no such policy file; ready policies: {_names()}; limits alone are written as tpr@0.01=0.05"
        )
    return read(PolicyPlan, toml_table(Path(policy)), Path(policy).name)


def ready_text(name: str) -> str:
    """Return the file of a policy that comes with leakbound, to be edited.

    >>> "smallest_leaf = 10" in ready_text("research")
    True
    """
    if name not in READY:
        raise ValueError(f"there is no ready policy {name!r}; ready policies: {_names()}")
    return resources.files("leakbound.plans").joinpath(READY[name]).read_text(encoding="utf-8")


def _names() -> str:
    return ", ".join(READY)
