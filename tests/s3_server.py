"""A server of S3 on this machine, by moto, that can be told to fail: for tests of stores at URLs.

As a script it serves until its standard input is closed. It answers one request at a time: moto looks and writes in two
steps, and a conditional put must be one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from urllib.request import Request, urlopen

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONTROL, FILL = "/-/control", "/-/fill"
SECRET = "a-secret-that-no-message-may-show"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIA-that-no-message-may-show",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
BUCKET = "bucket"


class Server:
    """The server, seen from a test."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self._asked("PUT", f"/{BUCKET}")

    def _asked(self, method: str, path: str, data: bytes = b"") -> bytes:
        headers = {"Authorization": "AWS4-HMAC-SHA256 Credential=x/20200101/us-east-1/s3/aws4_request"}
        with urlopen(Request(self.endpoint + path, data=data, method=method, headers=headers)) as answer:
            return answer.read()

    def tell(self, **words: Any) -> dict[str, Any]:
        """Change what the server does; everything that is not told is as usual. Returns its number of requests so far.

        ``refuse`` the next n requests with ``status`` and ``code``; ``lose`` the answers of the next n puts; answer
        each request after ``slow`` seconds; ``ignore_conditions`` of puts.
        """
        query = "&".join(f"{name}={value}" for name, value in words.items())
        return json.loads(self._asked("POST", f"{CONTROL}?{query}"))

    def fill(self, folder: str, names: Sequence[str], content: bytes) -> None:
        """Make many objects of the same content in one request, below a folder of the bucket."""
        told = json.dumps({"names": [f"{folder}/{name}" for name in names], "content": content.hex()})
        self._asked("POST", FILL, told.encode())


@pytest.fixture(scope="session")
def s3_process() -> Iterator[Server]:
    """One server for all tests of a process."""
    environment = os.environ | ENVIRONMENT
    with subprocess.Popen(
        [sys.executable, __file__],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Server(int(process.stdout.readline()))
        process.stdin.close()


@pytest.fixture
def s3(s3_process: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The server as usual, and an environment in which s3fs finds it."""
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": s3_process.endpoint}.items():
        monkeypatch.setenv(name, value)
    s3_process.tell()
    yield s3_process
    s3_process.tell()


class Failing:
    """An application of moto that fails when it is told to."""

    def __init__(self, inner: Any, backend: Any) -> None:
        self.inner = inner
        self.backend = backend
        self.told: dict[str, str] = {}
        self.n_requests = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"] == CONTROL:
            self.told = dict(parse_qsl(environ["QUERY_STRING"]))
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps({"n_requests": self.n_requests}).encode()]
        if environ["PATH_INFO"] == FILL:
            told = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            for name in told["names"]:
                self.backend.put_object(BUCKET, name, bytes.fromhex(told["content"]))
            start_response("200 OK", [])
            return []
        self.n_requests += 1
        time.sleep(float(self.told.get("slow", 0)))
        if self._is_counted("refuse"):
            return self._refused(environ, start_response)
        if "ignore_conditions" in self.told:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        if environ["REQUEST_METHOD"] == "PUT" and self._is_counted("lose"):
            list(self.inner(environ, lambda *_: None))  # it is done, but the client never hears of it
            start_response("503 Lost", [("Content-Length", "0")])
            return []
        return self.inner(environ, start_response)

    def _is_counted(self, what: str) -> bool:
        left = int(self.told.get(what, 0))
        self.told[what] = str(left - 1)
        return left > 0

    def _refused(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        code = self.told.get("code", "SlowDown")
        start_response(f"{self.told.get('status', '503')} Refused", [("Content-Type", "application/xml")])
        if environ["REQUEST_METHOD"] == "HEAD":
            return []
        return [f"<Error><Code>{code}</Code><Message>told to, {SECRET}</Message></Error>".encode()]


def serve() -> None:
    """Print the port, then serve until standard input is closed."""
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from moto.s3.models import s3_backends
    from werkzeug.serving import make_server

    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    application = Failing(DomainDispatcherApplication(create_backend_app), backend)
    server = make_server("127.0.0.1", 0, application, threaded=False, request_handler=MotoRequestHandler)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    serve()
