"""Wait for a store on another machine: a bounded number of times, and then one line that says what to do.

No library of a remote store is imported here: their errors are recognised by the status of the server's answer, by
errors of Python, and by the names of the libraries' own classes.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")
WAITS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # seconds before each new attempt: a minute in all
# 409: two writers at once, the server asks one of them to try again; 429 and 503: too many requests
_TRANSIENT_STATUS = {408, 409, 425, 429, 500, 502, 503, 504}
_TRANSIENT_CODES = {"SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable", "ConditionalRequestConflict"}
_TRANSIENT_CLASSES = {  # connections that broke, of botocore, aiohttp, requests and urllib3
    "HTTPClientError", "ConnectionError", "ClientConnectionError", "ClientPayloadError", "ResponseParserError",
    "IncompleteRead", "RequestException", "ServerDisconnectedError",
}  # fmt: skip
_FULL_CODES = {"QuotaExceeded", "XMinioStorageFull", "InsufficientStorage", "507"}
_SECRETS = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN",
    "FSSPEC_S3_KEY", "FSSPEC_S3_SECRET", "FSSPEC_S3_TOKEN",
)  # fmt: skip
_TRANSIENT_NUMBERS = {errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ENETUNREACH, errno.EHOSTUNREACH}


class Patience:
    """Do an operation again while its errors may pass.

    >>> answers = [ConnectionError(), "here"]
    >>> def ask():
    ...     answer = answers.pop(0)
    ...     if isinstance(answer, Exception):
    ...         raise answer
    ...     return answer
    >>> patience = Patience(sleep=lambda seconds: None)
    >>> patience(ask), patience.n_retries
    ('here', 1)
    """

    def __init__(self, sleep: Callable[[float], object] = time.sleep, waits: tuple[float, ...] = WAITS) -> None:
        self.sleep = sleep
        self.waits = waits
        self.n_retries = 0
        self._lock = Lock()

    def __call__(self, operation: Callable[[], T]) -> T:
        """Return the result of the operation."""
        for wait in self.waits:
            try:
                return operation()
            except Exception as error:
                if not is_transient(error):
                    raise
            with self._lock:
                self.n_retries += 1
            self.sleep(wait)
        return operation()


def is_transient(error: BaseException) -> bool:
    """Tell whether an error may pass by itself: a lost connection, a server that is busy or fails for a moment."""
    if is_full(error) or is_denied(error):
        return False
    status, code = _answer(error)
    if status is not None or code:
        return status in _TRANSIENT_STATUS or code in _TRANSIENT_CODES
    if isinstance(error, FileExistsError | FileNotFoundError):
        return False
    return any(_is_broken_connection(each) for each in _chain(error))


def is_full(error: BaseException) -> bool:
    """Tell whether there is no space left."""
    status, code = _answer(error)
    number = error.errno if isinstance(error, OSError) else None
    return number in (errno.ENOSPC, errno.EDQUOT) or status == 507 or code in _FULL_CODES


def is_denied(error: BaseException) -> bool:
    """Tell whether credentials are missing, wrong, or allow too little."""
    if isinstance(error, PermissionError) or _answer(error)[0] in (401, 403):
        return True
    names = {each.__name__ for each in type(error).__mro__}
    return bool(names & {"NoCredentialsError", "PartialCredentialsError"})


def is_missing_bucket(error: BaseException) -> bool:
    """Tell whether the bucket of an object is not there, as opposed to the object."""
    return _answer(error)[1] == "NoSuchBucket" or "bucket does not exist" in str(error)


def reason(error: BaseException) -> str:
    """Say in one line, without any credentials, what went wrong and what to do."""
    if is_full(error):
        return "no space is left; make room there and run the same command again: what is finished is kept"
    if is_denied(error):
        return "access is denied; check the credentials in the environment, and that they allow to list, read and write"
    if is_missing_bucket(error):
        return "there is no such bucket; create it, or correct the URL"
    if _answer(error)[0] == 501:
        return "the server does not know such a request; a store needs puts on the condition If-None-Match"
    if is_transient(error):
        return "it does not answer, or is too busy; run the same command again later: what is finished is kept"
    words = f"{type(error).__name__}: {error}".split("\n")[0]
    for name in _SECRETS:
        secret = os.environ.get(name)
        if secret:
            words = words.replace(secret, f"${name}")
    return words


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it was made of."""
    while error is not None:
        yield error
        error = error.__cause__


def _answer(error: BaseException) -> tuple[int | None, str]:
    """HTTP status and error code of a server's answer: None and an empty text where there was no answer."""
    for each in _chain(error):
        answer: Any = getattr(each, "response", None)  # of botocore
        if isinstance(answer, dict):
            status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
            return status, str(answer.get("Error", {}).get("Code", ""))
    return None, ""


def _is_broken_connection(error: BaseException) -> bool:
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    if isinstance(error, OSError) and error.errno in _TRANSIENT_NUMBERS:
        return True
    return any(each.__name__ in _TRANSIENT_CLASSES for each in type(error).__mro__)
