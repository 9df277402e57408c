"""An HTTP server with scripted responses that records its requests."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


@dataclass
class Response:
    body: Any = None
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut_from: int = 0  # Content-Length to claim; the connection closes before

    def encode(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Route = Callable[[Request], Response]


class FakeService:
    """Routes by (method, path); `requests` holds the received requests, in order."""

    def __init__(self) -> None:
        self.routes: dict[tuple[str, str], Route] = {}
        self.requests: list[Request] = []
        self.url = ""

    def answer(self, method: str, path: str, body: Any, **options: Any) -> None:
        self.routes[method, path] = lambda _: Response(body, **options)

    def handle(self, request: Request) -> Response:
        self.requests.append(request)
        route = self.routes.get((request.method, request.path))
        if route is None:
            problem = {"status": 404, "code": "not_found", "detail": f"No {request.path}"}
            return Response(problem, 404, "application/problem+json")
        return route(request)


@contextmanager
def running_service() -> Iterator[FakeService]:
    service = FakeService()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, parts.path, parse_qs(parts.query), headers, body)
            answer = service.handle(request)
            content = answer.encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(max(len(content), answer.cut_from)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def job(status: str = "running", **fields: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "id": "job_1",
        "kind": "cluster",
        "status": status,
        "dataset_id": "ds_1",
        "config": {},
        "progress": {
            "stage": "train",
            "stages": ["embed", "mine", "train", "evaluate", "register"],
            "completed": 3,
            "total": 10,
            "rate": 2.0,
            "eta_seconds": 3.5,
        },
        "counts": {"total": 10, "completed": 3, "failed": 0},
        "created_at": "2026-01-02T03:04:05Z",
        "started_at": None,
        "finished_at": None,
        "result": None,
        "error": None,
    }
    return base | fields


def page(*items: Any, next_cursor: str | None = None) -> dict[str, Any]:
    return {"data": list(items), "next_cursor": next_cursor, "has_more": next_cursor is not None}


def event(data: dict[str, Any], number: int) -> bytes:
    return f"event: progress\nid: {number}\ndata: {json.dumps(data)}\n\n".encode()
