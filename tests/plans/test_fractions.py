"""A percentage where a fraction is meant is refused with the fraction, in every field of every plan."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import get_args

import numpy as np
import pytest
from pydantic import ValidationError

import leakbound as ls
from leakbound import bounds, metrics, noise, plans
from leakbound.core import games, intervals
from leakbound.plans import audits, limits, protects
from leakbound.plans import bounds as bound_plans
from leakbound.plans.plan import Plan, read

FRACTIONS = {
    "advantage", "budget", "confidence", "delta", "eta", "fnr", "fpr", "prior", "rate", "sample_rate", "accuracy",
    "width",
}  # fmt: skip
OF_NO_RANGE = {
    "epochs",
    "bins", "clip", "epsilon", "gap", "high", "information", "low", "mu", "noise_multiplier", "noise_scale",
    "noise_std", "round", "scale", "weight",
}  # fmt: skip
OF_LIMITS = {"limit"}  # fractions for most quantities: tested by themselves below
CHOICES = {each: {} for each in (ls.HalfSplit, ls.AverageDatum, ls.Canaries)} | {
    ls.PerDatum: {"target": 3},
    ls.Attribute: {"column": "sex"},
    ls.Until: {"quantity": "auc"},
}  # objects with numbers, and what each of them cannot be without


def plan_classes() -> list[type[Plan]]:
    """Every plan of the package, also those of its inner tables."""
    modules = (plans, audits, bound_plans, limits, protects)
    found = {each for module in modules for each in vars(module).values() if inspect.isclass(each)}
    return sorted((each for each in found if issubclass(each, Plan)), key=lambda each: each.__name__)


def holds_floats(annotation: object) -> bool:
    return annotation is float or any(holds_floats(each) for each in get_args(annotation))


def float_fields() -> Iterator[tuple[type[Plan], str]]:
    for kind in plan_classes():
        for name, field in kind.model_fields.items():
            if holds_floats(field.annotation):
                yield kind, name


def float_fields_of_choices() -> Iterator[tuple[type, str]]:
    for kind in CHOICES:
        for name, field in kind.__pydantic_fields__.items():
            if holds_floats(field.annotation):
                yield kind, name


def test_every_float_field_is_known():
    """A new field must say whether it is a fraction."""
    names = {name for _, name in (*float_fields(), *float_fields_of_choices())}
    assert names == FRACTIONS | OF_NO_RANGE | OF_LIMITS
    assert len(list(float_fields())) > 40
    assert len(list(float_fields_of_choices())) == 6


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, name in float_fields_of_choices() if name in FRACTIONS]
)
def test_sixty_is_refused_in_objects_too(kind, name):
    with pytest.raises(ValueError, match=rf"{name} is a fraction: 60 is out of range; did you mean 0\.6\?"):
        kind(**CHOICES[kind], **{name: 60.0})


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, name in float_fields() if name in FRACTIONS])
def test_sixty_is_refused_with_the_fraction_that_was_meant(kind, name):
    """Whatever else the plan lacks: the complaint about this field is there."""
    value = (60.0,) if "tuple" in str(kind.model_fields[name].annotation) else 60.0
    with pytest.raises(ValidationError) as caught:
        kind(**{name: value})
    complaints = {each["loc"]: each["msg"] for each in caught.value.errors()}
    assert f"{name} is a fraction: 60 is out of range; did you mean 0.6?" in complaints[(name,)]


@pytest.mark.parametrize("quantity", sorted({*limits.MEASURED, *limits.PROVED} - {"epsilon", "exposed"}))
def test_every_gate_on_a_fraction(quantity):
    at = "@0.01" if quantity in limits.AT_A_RATE else ""
    with pytest.raises(ValueError, match=r"60 is out of range; did you mean 0\.6\?"):
        limits.Limit.parse(f"{quantity}{at}=60", known=(quantity,))
    with pytest.raises(ValueError, match=r"can never be exceeded"):
        limits.Limit.parse(f"{quantity}{at}=1", known=(quantity,))


SCORES = np.arange(8.0), np.arange(8) % 2 == 0
PUBLIC = [
    (lambda: ls.audit_scores(*SCORES, confidence=60), "confidence"),
    (lambda: ls.audit_scores(*SCORES, fpr=(60,)), "fpr"),
    (lambda: ls.audit_scores(*SCORES, claims="eta=60"), "eta"),
    (lambda: ls.calibrate("mean", np.eye(8), promise="drawn", eta=60), "eta"),
    (lambda: ls.protect("mean", np.eye(8), promise="drawn", eta=60), "eta"),
    (lambda: ls.bound("dp", epsilon=1, prior=60), "prior"),
    (lambda: ls.bound("dp", at_most="accuracy=60"), "accuracy"),
    (lambda: bounds.dp_from_mip(60), "eta"),
    (lambda: bounds.mip_from_dp(1.0, delta=60), "delta"),
    (lambda: bounds.generalisation_bound(0.1, 0.0, 1.0, prior=60), "prior"),
    (lambda: games.half_split(10, 2, population=60), "population"),
    (lambda: intervals.clopper_pearson(1, 2, confidence=60), "confidence"),
    (lambda: intervals.clopper_pearson_lower(1, 2, 60), "alpha"),
    (lambda: metrics.accuracy(ls.Scores("x", SCORES[0][None], SCORES[1][None]), prior=60), "prior"),
    (lambda: noise.dp_laplace_scale(60, 1.0), "eta"),
    (lambda: noise.pairs_needed(60), "eta"),
    (lambda: noise.information_of_eta(60), "eta"),
    (lambda: noise.izzo(1.0, eta=60), "eta"),
    (lambda: ls.dpsgd.DpSgd(sample_rate=60), "sample_rate"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "name"), PUBLIC, ids=[str(number) for number in range(len(PUBLIC))])
def test_keywords_of_python(call, name):
    with pytest.raises(ValueError, match=rf"{name} is a fraction: 60 is out of range; did you mean 0\.6\?"):
        call()


def test_a_promise_that_nothing_refutes_is_none():
    for words in ({"eta": 0.5}, {"accuracy": 1.0}, {"epsilon": 1.0, "delta": 1.0, "adjacency": "add_remove"}):
        with pytest.raises(ValueError, match="must be >= 0"):
            read(audits.ClaimPlan, words, "claim")
