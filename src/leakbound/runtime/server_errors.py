"""What went wrong on the server of a store, in one line that says what to do and shows no credentials.

The libraries try again what may pass by itself; what arrives here has failed for good. No library of a remote store is
imported: their errors are recognised by the status and code of the server's answer.
"""

from __future__ import annotations

import errno
import os
from typing import Any

_FULL_CODES = {"QuotaExceeded", "XMinioStorageFull", "InsufficientStorage", "507"}
_SECRETS = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN",
    "FSSPEC_S3_KEY", "FSSPEC_S3_SECRET", "FSSPEC_S3_TOKEN",
)  # fmt: skip


def is_conflict(error: BaseException) -> bool:
    """Tell whether two writers have put an object at once, and the server has taken neither put."""
    return _answer(error)[1] == "ConditionalRequestConflict"


def is_missing_bucket(error: BaseException) -> bool:
    """Tell whether the bucket of an object is not there, as opposed to the object."""
    return _answer(error)[1] == "NoSuchBucket" or "bucket does not exist" in str(error)


def reason(error: BaseException) -> str:
    """Say in one line, without any credentials, what went wrong and what to do."""
    status, code = _answer(error)
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT) or status == 507 or code in _FULL_CODES:
        return "no space is left; make room there and run the same command again: what is finished is kept"
    names = {each.__name__ for each in type(error).__mro__}
    without_credentials = names & {"NoCredentialsError", "PartialCredentialsError"}
    if isinstance(error, PermissionError) or status in (401, 403) or without_credentials:
        return "access is denied; check the credentials in the environment, and that they allow to list, read and write"
    if is_missing_bucket(error):
        return "there is no such bucket; create it, or correct the URL"
    if status == 501:
        return "the server does not know such a request; a store needs puts on the condition If-None-Match"
    words = f"{type(error).__name__}: {error}".split("\n")[0]
    for name in _SECRETS:
        secret = os.environ.get(name)
        if secret:
            words = words.replace(secret, f"${name}")
    return f"{words}; what is finished is kept: run the same command again later"


def _answer(error: BaseException | None) -> tuple[int | None, str]:
    """HTTP status and error code of a server's answer: None and an empty text where there was no answer."""
    while error is not None:
        answer: Any = getattr(error, "response", None)  # of botocore
        if isinstance(answer, dict):
            status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
            return status, str(answer.get("Error", {}).get("Code", ""))
        error = error.__cause__
    return None, ""
