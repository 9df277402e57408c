"""A real browser: /docs works offline, and a page of another site changes nothing."""

import functools
import http.server
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.core.platform.settings import Settings
from tests.http_server import running_server

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(_CHROMIUM is None, reason="no chromium here")
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    # no network but this machine
    *("--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",),
    *("--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom"),
)
# Each way to send a request without a CORS preflight, then a marker of the end.
_ATTACK = """<!doctype html><body><script>
const url = "URL/v1/datasets?name=stolen", zip = new Blob([new Uint8Array([80, 75, 5, 6])]);
const form = new FormData();
form.append("files", new File(["x"], "a.png"));
const send = (body, more = {}) => fetch(url, { method: "POST", mode: "no-cors", body, ...more }).catch(() => 0);
Promise.all([send(zip), send("PK"), send(form), send(new URLSearchParams({ a: 1 })),
  send(zip, { mode: "cors", headers: { "Content-Type": "application/zip" } }),
  fetch("URL/v1/datasets").then((answer) => answer.text()).then(() => document.body.append("READ")).catch(() => 0),
  new Promise((done) => { const image = new Image(); image.onload = image.onerror = done; image.src = "URL/v1/datasets"; }),
]).then(() => document.body.append("all were sent"));
</script>"""  # noqa: E501

Open = Callable[[str], tuple[str, str]]


@pytest.fixture
def open_page(tmp_path: Path) -> Open:
    """Returns the document after its scripts ran, and the console output."""

    def open_(url: str) -> tuple[str, str]:
        assert _CHROMIUM is not None
        done = subprocess.run(
            [_CHROMIUM, *_OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", url],
            capture_output=True,
            text=True,
            timeout=120,
        )
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return done.stdout, "\n".join(console)

    return open_


@pytest.fixture
def foreign_site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Yields a folder and the URL that serves it: another site, by name and port."""
    folder = tmp_path / "site"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://localhost:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_page_of_another_site_changes_nothing(
    settings: Settings, open_page: Open, foreign_site: tuple[Path, str]
) -> None:
    folder, site = foreign_site
    with running_server(settings) as server:
        url = f"http://127.0.0.1:{server.port}"
        (folder / "attack.html").write_text(_ATTACK.replace("URL", url))
        document, _ = open_page(f"{site}/attack.html")
        assert "all were sent" in document
        assert (
            "READ"
            not in document.replace(_ATTACK.replace("URL", url), "").partition("</script>")[2]
        )
        assert b'"data":[]' in server.get("/v1/datasets")


def test_the_description_of_the_api(settings: Settings, open_page: Open) -> None:
    with running_server(settings) as server:
        document, console = open_page(f"http://127.0.0.1:{server.port}/docs")
    assert document.count("opblock-summary-path") >= 50
    assert "Content Security Policy" not in console
