"""What an error says of an old word is a field that is there."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

import leakbound as ls
from leakbound.plans import AuditPlan, promises, read
from leakbound.plans.moved import OF_PROTECTIONS


@pytest.mark.parametrize("word", OF_PROTECTIONS)
def test_every_promise_that_has_the_field_is_named(word: str) -> None:
    keyword = OF_PROTECTIONS[word].keyword
    named = re.findall(r"\b(Anyone|File|Drawn)\((\w+)=", keyword)
    for name, field in named:
        assert field in {each.name for each in fields(getattr(promises, name))}
    if word in ("noise", "games", "confidence", "noise_scale"):
        assert [name for name, _ in named] == ["File", "Drawn"]


@pytest.mark.parametrize(
    ("word", "says"), [("cluster", "unknown key 'cluster'"), ("n_canaries", "n_canaries is now n of")]
)
def test_a_key_that_is_nowhere_now_is_unknown(word: str, says: str) -> None:
    """It was once said to be "now" nothing at all."""
    with pytest.raises(ValueError, match=f"^plan.toml: {says}"):
        read(AuditPlan, {word: 3}, "plan.toml")


def test_the_old_word_of_a_promise_says_what_is_retired() -> None:
    with pytest.raises(TypeError, match=r"^protect takes no design; use promise=.*; per-instance is retired$"):
        ls.protect("mean", [[1.0], [2.0]], eta=0.05, design="per-instance")  # pyright: ignore[reportCallIssue]
