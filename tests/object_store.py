"""An S3-compatible server on this machine, as a cloud's is met: over HTTP, and with its moods."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from xml.etree import ElementTree

import httpx
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

KEY_ID = "test-key-id"
SECRET = "test-secret-8c41f0"
_XML = "{http://s3.amazonaws.com/doc/2006-03-01/}"

Fault = tuple[int, str]
"""A status and the store's name for what is wrong."""
Mood = Callable[[str, str], Fault | None]
"""What the store answers to a method and path with query; None: as it should."""


def well(method: str, path: str) -> None:
    """The mood of a store without faults."""
    del method, path


@dataclass
class ObjectStore:
    """The server. `mood` may be changed at any time; `requests` are those that came so far.
    Only `KEY_ID` is let in."""

    mood: Mood = well
    requests: list[str] = field(default_factory=list)

    def __enter__(self) -> ObjectStore:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._real = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        # What another server of this process held.
        self._call("POST", "/moto-api/reset")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def environment(self) -> dict[str, str]:
        """How a client is told of it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket."""
        self._call("PUT", f"/{name}")

    def put(self, path: str, data: bytes) -> None:
        """Make an object, as someone else does."""
        self._call("PUT", f"/{path}", data)

    def get(self, path: str) -> bytes:
        """The bytes of an object."""
        return self._call("GET", f"/{path}").content

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """The objects of a bucket; markers of folders are none."""
        found = self._call("GET", f"/{bucket}?list-type=2&max-keys=10000&prefix={prefix}")
        keys = [each.text or "" for each in self._root(found).iter(f"{_XML}Key")]
        return [key for key in keys if not key.endswith("/")]

    def unfinished(self, bucket: str) -> int:
        """Uploads in parts that were begun and neither finished nor ended."""
        found = self._call("GET", f"/{bucket}?uploads")
        return sum(1 for _ in self._root(found).iter(f"{_XML}Upload"))

    def _call(self, method: str, path: str, data: bytes | None = None) -> httpx.Response:
        # Not through the mood: this is someone else.
        key = f"AWS4-HMAC-SHA256 Credential={KEY_ID}/20260101/us-east-1/s3/aws4_request"
        headers = {"x-test": "yes", "Authorization": key}
        answer = httpx.request(method, self.url + path, content=data, headers=headers)
        answer.raise_for_status()
        return answer

    def _root(self, answer: httpx.Response) -> Any:
        return ElementTree.fromstring(answer.content)  # noqa: S314 (our own server's)

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        query = environ.get("QUERY_STRING", "")
        path = environ["PATH_INFO"] + (f"?{query}" if query else "")
        fault = None
        if "HTTP_X_TEST" not in environ:
            method = environ["REQUEST_METHOD"]
            self.requests.append(f"{method} {path}")
            known = f"Credential={KEY_ID}/" in environ.get("HTTP_AUTHORIZATION", "")
            fault = self.mood(method, path) if known else (403, "InvalidAccessKeyId")
        if fault is None:
            return self._real(environ, start)  # type: ignore[no-any-return]
        status, code = fault
        start(f"{status} Fault", [("Content-Type", "application/xml")])
        # What was sent has to be read, or the client sees a reset.
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        said = f"<Error><Code>{code}</Code><Message>a fault of the test</Message></Error>"
        return [said.encode()]
