"""A report from its file: by the schema, and with the SHA-256 that it carries of its own content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from leakscope.core.untrusted import Refused, json_value
from leakscope.reports.schema import fault, whole

DIGEST = "sha256"  # key of the digest, beside the content that it is of


def digest_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of the content of a report.

    It is that of the JSON of all keys but ``sha256``, with sorted keys, without spaces, every letter outside of ASCII
    written as an escape: ``json.dumps(content, sort_keys=True, separators=(",", ":"))`` in Python.

    Parameters
    ----------
    content : mapping
        The report as a JSON parser gives it.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> from leakscope.reports.reading import digest_of
    >>> digest_of({"a": 1, "sha256": "?"}) == digest_of({"a": 1})
    True
    """
    rest = {key: value for key, value in content.items() if key != DIGEST}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def content_of(path: str | os.PathLike[str], unverified: bool = False) -> dict[str, Any]:
    """The content of a report's file.

    Parameters
    ----------
    path : path
    unverified : bool
        Whether a report is read that was changed since it was written. It must still follow the schema.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        In one line: if the file is no JSON, no report of this schema, or not as it was written.
    OSError
        If it cannot be opened.
    """
    content = json_value(path)
    schema = whole()["properties"]["schema"]["const"]
    if not isinstance(content, dict) or content.get("schema") != schema or isinstance(content["schema"], bool):
        raise Refused(f"{path} is not a leakscope report of schema {schema}")
    try:
        wrong = fault(content)
    except RecursionError:
        wrong = "it is nested too deeply"
    if wrong:
        raise Refused(f"{path} is not a whole report: {wrong}")
    lengths = {len(column) for column in content["records"].values()}
    if len(lengths) > 1:
        raise Refused(f"{path} is not a whole report: records: columns of {min(lengths)} to {max(lengths)} rows")
    if not unverified and digest_of(content) != content[DIGEST]:
        raise Refused(
            f"{path} is not as it was written: its SHA-256 differs from the one that it carries. Read it all the same "
            "with --unverified (unverified=True)"
        )
    return content
