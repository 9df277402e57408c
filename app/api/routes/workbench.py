"""The web workbench: the files that `make web` builds from `web/` into `app/static/`."""

import hashlib
import re
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header, HTTPException
from fastapi.responses import FileResponse, HTMLResponse, Response

from app.api.http.negotiation import matches_etag

router = APIRouter(include_in_schema=False)

FOLDER = Path(__file__).parents[2] / "static"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_NOT_BUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>TEMI</title><link rel="icon" href="data:,"></head>
<body>
<h1>The workbench was not built</h1>
<p>The REST API works: see <a href="/docs">its description</a>.</p>
<p>To build the workbench, run <code>make web</code> in the source folder and reload this page.</p>
</body>
</html>
"""
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}
# The build writes these beside the files that get smaller, best first.
_ENCODINGS = {"br": ".br", "gzip": ".gz"}
_HASHED_NAME = "public, max-age=31536000, immutable"

IfNoneMatch = Annotated[str | None, Header()]
AcceptEncoding = Annotated[str, Header()]


@router.get("/")
def page(if_none_match: IfNoneMatch = None) -> Response:
    try:
        text = (FOLDER / "index.html").read_bytes()
    except FileNotFoundError:
        return HTMLResponse(_NOT_BUILT, 503, {"Content-Security-Policy": _POLICY})
    headers = {
        "Content-Security-Policy": _POLICY,
        "Cache-Control": "no-cache",  # it names the files of the newest build
        "ETag": f'"{hashlib.sha256(text).hexdigest()[:32]}"',
    }
    if matches_etag(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return HTMLResponse(text, headers=headers)


@router.get("/favicon.svg")
def icon(accept_encoding: AcceptEncoding = "") -> FileResponse:
    return _file(FOLDER / "favicon.svg", accept_encoding, "public, max-age=86400")


@router.get("/assets/{name}")
def asset(name: str, accept_encoding: AcceptEncoding = "") -> FileResponse:
    if not _NAME.fullmatch(name):
        raise HTTPException(404)
    return _file(FOLDER / "assets" / name, accept_encoding, _HASHED_NAME)


def _file(path: Path, accept_encoding: str, cache: str) -> FileResponse:
    """The file, compressed if the build has done so and the browser reads it."""
    media_type = _MEDIA_TYPES.get(path.suffix)
    if media_type is None or not path.is_file():
        raise HTTPException(404)
    # A worker runs under the policy of its own script's response.
    headers = {
        "Content-Security-Policy": _POLICY,
        "Cache-Control": cache,
        "Vary": "Accept-Encoding",
    }
    for encoding in _accepted(accept_encoding):
        compressed = path.with_name(path.name + _ENCODINGS[encoding])
        if compressed.is_file():
            headers["Content-Encoding"] = encoding
            return FileResponse(compressed, media_type=media_type, headers=headers)
    return FileResponse(path, media_type=media_type, headers=headers)


def _accepted(accept_encoding: str) -> list[str]:
    """The encodings that the header names and does not refuse by `;q=0`."""
    parts = [part.replace(" ", "").lower() for part in accept_encoding.split(",")]
    named = {part.partition(";")[0] for part in parts if not re.search(r";q=0(\.0*)?$", part)}
    return [encoding for encoding in _ENCODINGS if encoding in named]
