"""What a report says of itself, from a mapping with the fields that a test cares for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leakbound.reports import plain
from leakbound.reports.about import AnyAbout, AttributeAbout, AuditAbout, BoundAbout, ProtectedAbout

KINDS = {"audit": AuditAbout, "attribute": AttributeAbout, "bound": BoundAbout, "protected": ProtectedAbout}
COMMON: Mapping[str, Any] = {
    "leakbound": "0.1.0", "title": "", "unit": "record", "date": "", "seed": 0, "confidence": 0.95, "command": "",
    "plan": {}, "versions": {}, "notes": (),
}  # fmt: skip
USUAL: Mapping[str, Mapping[str, Any]] = {
    "audit": {"fpr": (0.01,), "attacks": {}, "execution": None},
    "attribute": {"attacks": {}, "execution": None},
    "bound": {"bound": "", "subject": "", "question": "", "fpr": (0.01,), "data": None}
    | {"theorem": {"title": "", "source": "", "summary": ""}},
    "protected": {"fpr": (0.01,)},
}


def about(**words: Any) -> AnyAbout:
    """The fields that are given, and usual ones for the others."""
    kind = words["kind"]
    return KINDS[kind].model_validate(plain({**COMMON, **USUAL[kind], **words}))


def changed(before: AnyAbout, **words: Any) -> AnyAbout:
    """The same with other fields, checked."""
    return type(before).model_validate(plain({**before.model_dump(), **words}))
