"""Reports: their contents, and the pages, texts and charts that are made from them."""

from leakbound.reports.report import (
    DIGEST,
    SCHEMA,
    Curve,
    Observation,
    Report,
    Table,
    Verdict,
    Word,
    claims_page,
    claims_table,
    digest_of,
    make_folder,
    plain,
    write,
)

__all__ = (
    "DIGEST",
    "SCHEMA",
    "Curve",
    "Observation",
    "Report",
    "Table",
    "Verdict",
    "Word",
    "claims_page",
    "claims_table",
    "digest_of",
    "make_folder",
    "plain",
    "write",
)
