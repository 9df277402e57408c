"""A model hub on this machine, with the addresses and headers that huggingface_hub needs."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_FILE = re.compile(r"/(?P<repository>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>[^?]+)")
_MODEL = re.compile(r"/api/models/(?P<repository>[^/]+/[^/]+)")


class FakeHub:
    """Its files by repository and name; `requests` are those that it got."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.gated: set[str] = set()
        self.damaged = False  # sends other bytes than it announces
        self.truncated = False  # closes the connection in the middle of a file
        self.requests: list[tuple[str, str]] = []
        self.url = ""

    def add(self, repository: str, file: str, content: bytes) -> None:
        self.files.setdefault(repository, {})[file] = content


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        self.hub.requests.append((self.command, self.path))
        if file := _FILE.fullmatch(self.path):
            self._answer_file(file["repository"], file["revision"], file["file"], with_body)
        elif (model := _MODEL.match(self.path)) and model["repository"] in self.hub.files:
            names = [{"rfilename": name} for name in self.hub.files[model["repository"]]]
            described = {"id": model["repository"], "sha": COMMIT, "siblings": names}
            self._send(200, json.dumps(described).encode(), with_body=with_body)
        else:
            self._send(404, b"", with_body=with_body)

    def _answer_file(self, repository: str, revision: str, file: str, with_body: bool) -> None:
        if repository not in self.hub.files:
            return self._send(404, b"", {"X-Error-Code": "RepoNotFound"}, with_body=with_body)
        if repository in self.hub.gated:
            return self._send(403, b"", {"X-Error-Code": "GatedRepo"}, with_body=with_body)
        if revision not in ("main", COMMIT):
            return self._send(404, b"", {"X-Error-Code": "RevisionNotFound"}, with_body=with_body)
        headers = {"X-Repo-Commit": COMMIT}
        if file not in self.hub.files[repository]:
            headers["X-Error-Code"] = "EntryNotFound"
            return self._send(404, b"", headers, with_body=with_body)
        content = self.hub.files[repository][file]
        headers["ETag"] = f'"{hashlib.sha256(content).hexdigest()}"'
        if self.hub.damaged:
            content = bytes(len(content))
        return self._send(200, content, headers, with_body=with_body)

    def _send(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, *, with_body: bool
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if not with_body:
            return
        if self.hub.truncated:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        else:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def running_hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
