"""What a report says of the result, without what it says of the run: models from the store, and digests over that."""

from __future__ import annotations

import re

_OF_THE_RUN = (
    r'"sha256": "[0-9a-f]{64}"',
    r',\s*"execution": (null|\{[^}]*\})',
    r"<p>Models: [0-9,]+ came from the store(?: \(written [^)]*\))?, [0-9,]+ were made in this run\.[^<]*</p>\n",
    r"digest <code>[0-9a-f]{16}</code>",
)


def of_the_result(content: str | bytes) -> str:
    """A report's JSON, or its page."""
    text = content if isinstance(content, str) else content.decode()
    for pattern in _OF_THE_RUN:
        text = re.sub(pattern, "", text, count=1)
    return text
