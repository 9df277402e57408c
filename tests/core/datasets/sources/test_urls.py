"""URLs: only public addresses, with limits of time and size."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

import pytest

from app.core.datasets.sources import urls
from app.core.datasets.sources.urls import Address, Fetcher, check_url, is_public
from app.core.platform.errors import ImageRejected, ImageTooLarge, UrlForbidden, UrlUnreachable
from tests.waiting import LONG_SECONDS


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append(self.path)  # type: ignore[attr-defined]
        match self.path.split("?"):
            case ["/ok"]:
                self._answer(200, b"image")
            case ["/to", place]:
                self._answer(302, b"", Location=place)
            case ["/again"]:
                self._answer(301, b"", Location="/again")
            case ["/nowhere"]:
                self._answer(307, b"")
            case ["/slow"]:
                self.send_response(200)
                self.end_headers()
                while True:  # until the client disconnects
                    self.wfile.write(b"x")
                    time.sleep(0.05)
            case _:
                self._answer(404, b"no")

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass

    def handle(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            super().handle()


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as running:
        running.seen = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def base(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def _is_this(address: Address) -> bool:
    """Allows the addresses of the test servers."""
    return str(address) == "127.0.0.1"


def _fetcher(
    *,
    max_bytes: int = 100,
    seconds: float = LONG_SECONDS,
    allowed: Callable[[Address], bool] = _is_this,
) -> Fetcher:
    return Fetcher(max_bytes=max_bytes, seconds=seconds, allowed=allowed)


def test_an_image_is_fetched_also_by_redirect(base: str) -> None:
    assert _fetcher().fetch(f"{base}/ok") == b"image"
    assert _fetcher().fetch(f"{base}/to?/ok") == b"image"
    assert _fetcher().fetch(f"{base}/to?{base}/ok") == b"image"


@pytest.mark.parametrize("path", ["/missing", "/again", "/nowhere"])
def test_bad_responses(base: str, path: str) -> None:
    with pytest.raises(UrlUnreachable):
        _fetcher().fetch(base + path)


def test_an_unreachable_host() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        with pytest.raises(UrlUnreachable, match="cannot be fetched"):
            _fetcher().fetch(f"http://127.0.0.1:{probe.getsockname()[1]}/")
    with pytest.raises(UrlUnreachable, match="cannot be resolved"):
        _fetcher().fetch("http://no-such-host.invalid/")


def test_too_large_and_too_slow(base: str) -> None:
    with pytest.raises(ImageTooLarge):
        _fetcher(max_bytes=4).fetch(f"{base}/ok")
    with pytest.raises(UrlUnreachable, match="longer than"):
        _fetcher(seconds=0.3, max_bytes=10**9).fetch(f"{base}/slow")


def test_no_connection_is_made_to_a_private_address(base: str, server: ThreadingHTTPServer) -> None:
    port = server.server_port
    hosts = ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]")
    for host in hosts:
        with pytest.raises(UrlForbidden) as caught:
            Fetcher(max_bytes=100, seconds=LONG_SECONDS).fetch(f"http://{host}:{port}/ok")
        assert isinstance(caught.value, ImageRejected)  # only this URL is refused
    assert server.seen == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("place", ["http://127.0.0.2/", "file:///etc/passwd", "http://[::1]/"])
def test_a_redirect_is_checked_like_the_first_address(base: str, place: str) -> None:
    with pytest.raises(UrlForbidden):
        _fetcher().fetch(f"{base}/to?{place}")


def test_the_connection_uses_the_checked_address(
    monkeypatch: pytest.MonkeyPatch, server: ThreadingHTTPServer
) -> None:
    """A DNS server that answers differently the second time has no effect."""
    answers, real = ["127.0.0.1", "127.0.0.2"], socket.getaddrinfo

    def rebinding(host: str, port: int, *rest: Any, **options: Any) -> Any:
        asked = answers.pop(0) if host == "rebind.test" else host
        return real(asked, port, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    url = f"http://rebind.test:{server.server_port}/ok"
    assert _fetcher().fetch(url) == b"image"
    with pytest.raises(UrlForbidden):
        _fetcher().fetch(url)
    assert server.seen == ["/ok"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
        *(
            "100.100.100.200",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
        ),
        *("::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:10.0.0.1"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:1::1", "2001:db8::1"),
        *("fec0::1", "feff::1", "168.63.129.16", "::ffff:168.63.129.16", "0.1.2.3", "100.64.0.1"),
        *("2002:a83f:8110::1", "64:ff9b::a83f:8110", "64:ff9b:1::808:808", "::127.0.0.1"),
        *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "2606:4700::5efe:10.0.0.1", "::ffff:0:10.0.0.1"),
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.org/a", "file:///etc/passwd", "example.org/a", "http://", "http:///a"),
        *("http://127.0.0.1/a", "http://[::1]/a", "http://169.254.169.254/latest", "http://[1/"),
        *(
            "http://me:secret@example.org/a",
            "http://example.org:99999/",
            "http://e.org/" + "x" * 2000,
        ),
    ],
)
def test_urls_that_are_refused_without_dns(url: str) -> None:
    with pytest.raises(UrlForbidden):
        check_url(url, enabled=True)


@pytest.mark.parametrize("url", ["http://１２７.0.0.1/a", "http://①⑦②.16.0.1/a", "http://\u2100x/"])
def test_unicode_hosts_are_checked_in_ascii(url: str) -> None:
    with pytest.raises(UrlForbidden):
        check_url(url, enabled=True)


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://bücher.example/a", "http://xn--bcher-kva.example/a"),
        ("https://例え.テスト:8443/写真.png?q=é#ü", "https://xn--r8jz45g.xn--zckzah:8443/"),
        ("http://[2606:4700::1111]/ü", "http://[2606:4700::1111]/%C3%BC"),
        ("http://example.org/a%20b?x=%2F", "http://example.org/a%20b?x=%2F"),
    ],
)
def test_unicode_urls(url: str, sent: str) -> None:
    assert urls.wire_url(url).startswith(sent)
    assert urls.wire_url(url).isascii()


def test_a_unicode_host_is_fetched(
    server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = socket.getaddrinfo, []

    def resolve(host: str, port: int, *rest: Any, **options: Any) -> Any:
        asked.append(host)
        return real("127.0.0.1", port, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    url = f"http://bücher.example:{server.server_port}/to?/é"
    with pytest.raises(UrlUnreachable, match="404"):
        _fetcher().fetch(url)
    assert asked[0] == "xn--bcher-kva.example"
    assert server.seen == ["/to?/%C3%A9", "/%C3%A9"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("host", ["a..example", "é" * 80, "\u200b", "x" * 70 + ".example"])
def test_an_invalid_host_is_one_bad_file(host: str) -> None:
    with pytest.raises(ImageRejected):
        _fetcher().fetch(f"http://{host}/a.png")


def test_urls_are_off_by_default() -> None:
    check_url("https://example.org/a.jpg", enabled=True)
    with pytest.raises(UrlForbidden, match="TEMI_SOURCE_URLS"):
        check_url("https://example.org/a.jpg", enabled=False)
    assert urls.is_url("HTTPS://example.org")
