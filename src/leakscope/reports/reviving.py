"""Numbers that JSON cannot write, read again where the schema has a number, and nowhere else.

Infinities are written as the strings "inf" and "-inf". A title, a model or a column may have the same name, so it is
the schema that says whether a string is one of them: its definition ``number`` allows both, a text does not become one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.reports.schema import whole

INFINITIES = {"inf": math.inf, "-inf": -math.inf}
_BRANCHES = ("anyOf", "oneOf", "allOf")
Schema = Mapping[str, Any]


def revived(content: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the strings "inf" and "-inf" of a report into numbers where the schema has a number.

    Parameters
    ----------
    content : mapping
        As JSON has it.

    Returns
    -------
    dict

    Examples
    --------
    >>> at = {"claim": "inf", "word": "refuted", "allowed": "inf", "measured": 2.0}
    >>> curve = {"name": "inf", "verdict": at}
    >>> revived({"about": {"kind": "audit", "title": "inf"}, "curves": [curve]})["curves"][0]["verdict"]["allowed"]
    inf
    """
    about = content.get("about")
    kind = about.get("kind") if isinstance(about, Mapping) else None
    definitions = whole()["$defs"]
    parts = dict(whole()["properties"])
    parts["about"] = definitions.get(f"about_{kind}", {})
    parts["records"] = definitions["ranking" if kind == "bound" else "records"]
    return {name: _revived(value, parts.get(name, {})) for name, value in content.items()}


def _revived(value: Any, *schemas: Schema) -> Any:
    """A value, read by the schemas that may be its own."""
    allowed = [leaf for each in schemas for leaf in _branches(each)]
    if isinstance(value, Mapping):
        return {name: _revived(item, *_of_field(name, allowed)) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = [each["items"] for each in allowed if isinstance(each.get("items"), Mapping)]
        return [_revived(item, *items) for item in value]
    if isinstance(value, str) and value in INFINITIES and _is_number(value, allowed):
        return INFINITIES[value]
    return value


def _branches(part: Schema) -> list[Schema]:
    """The alternatives of a schema, references followed."""
    if "$ref" in part:
        return _branches(whole()["$defs"][part["$ref"].rsplit("/", 1)[1]])
    branches = [branch for word in _BRANCHES for each in part.get(word, ()) for branch in _branches(each)]
    return [part, *branches]


def _of_field(name: str, allowed: Sequence[Schema]) -> list[Schema]:
    """The schemas of a field of an object."""
    found: list[Schema] = []
    for each in allowed:
        named = [each.get("properties", {}).get(name)]
        named += [part for pattern, part in each.get("patternProperties", {}).items() if re.search(pattern, name)]
        named = [part for part in named if part is not None] or [each.get("additionalProperties")]
        found += [part for part in named if isinstance(part, Mapping)]
    return found


def _is_number(value: str, allowed: Sequence[Schema]) -> bool:
    """Whether the schema lists this string beside numbers; where any text may stand, it is a text."""
    types = [kind for each in allowed for kind in _types(each)]
    return "string" not in types and any(value in each.get("enum", ()) for each in allowed)


def _types(part: Schema) -> list[str]:
    kinds = part.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)
