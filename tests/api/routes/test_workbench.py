"""The files of the workbench: which are served, how they are cached and what they may load."""

import gzip
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.api.routes import workbench

_SCRIPT = b"console.log('built');"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built page of three files, as Vite writes them."""
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<html>built</html>")
    (folder / "favicon.svg").write_text("<svg/>")
    (folder / "assets" / "index-B1x_-.js").write_bytes(_SCRIPT)
    (folder / "assets" / "index-B1x_-.js.gz").write_bytes(gzip.compress(_SCRIPT))
    monkeypatch.setattr(workbench, "FOLDER", folder)
    return folder


def test_the_page_allows_files_of_the_service_only(client: TestClient, built: Path) -> None:
    answer = client.get("/")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.text == "<html>built</html>"
    assert answer.headers["Content-Security-Policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


def test_a_browser_asks_again_for_the_page(client: TestClient, built: Path) -> None:
    first = client.get("/")
    assert first.headers["Cache-Control"] == "no-cache"
    same = {"If-None-Match": first.headers["ETag"]}
    assert client.get("/", headers=same).status_code == 304
    (built / "index.html").write_text("<html>built again</html>")
    assert client.get("/", headers=same).text == "<html>built again</html>"


def test_assets_are_cached_for_good(client: TestClient, built: Path) -> None:
    answer = client.get("/assets/index-B1x_-.js", headers={"Accept-Encoding": "identity"})
    assert answer.content == _SCRIPT
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    # a worker has the policy of its own response
    assert "connect-src 'self'" in answer.headers["Content-Security-Policy"]
    icon = client.get("/favicon.svg")
    assert icon.headers["Content-Type"] == "image/svg+xml"
    assert "immutable" not in icon.headers["Cache-Control"]


@pytest.mark.parametrize(
    ("accepts", "sent"),
    [
        ("gzip, deflate, br", "gzip"),
        ("GZIP;q=0.5", "gzip"),
        ("gzip;q=0", None),
        ("gzip; q=0.000", None),
        ("br", None),
        ("", None),
    ],
)
def test_assets_are_compressed(
    client: TestClient, built: Path, accepts: str, sent: str | None
) -> None:
    answer = client.get("/assets/index-B1x_-.js", headers={"Accept-Encoding": accepts})
    assert answer.headers.get("Content-Encoding") == sent
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.content == _SCRIPT


def test_the_smaller_file_is_sent(client: TestClient, built: Path) -> None:
    (built / "assets" / "index-B1x_-.js.br").write_bytes(b"smaller")
    headers = {"Accept-Encoding": "gzip, br"}
    with client.stream("GET", "/assets/index-B1x_-.js", headers=headers) as answer:
        assert answer.headers["Content-Encoding"] == "br"
        assert b"".join(answer.iter_raw()) == b"smaller"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/none.js",
        "/assets/",
        "/assets/..%2findex.html",
        "/assets/%2e%2e%2f%2e%2e%2fmain.py",
        "/assets/..%5cindex.html",
        "/assets/.hidden.js",
        "/assets/index-B1x_-.js.gz",
        "/assets/nul%00.js",
        "/assets/notes.txt",
        "/index.html",
    ],
)
def test_other_files_are_not_served(client: TestClient, built: Path, path: str) -> None:
    (built / "assets" / ".hidden.js").write_text("hidden")
    (built / "assets" / "notes.txt").write_text("notes")
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_service_without_the_page_says_so(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench, "FOLDER", tmp_path / "none")
    answer = client.get("/")
    assert answer.status_code == 503
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "run <code>make web</code>" in answer.text
    assert 'href="/docs"' in answer.text
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    assert client.get("/assets/index.js").status_code == 404
