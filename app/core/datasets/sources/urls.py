"""Fetches public URLs without giving access to the server's own network (SSRF).

A host name is resolved here, all its addresses are checked, and the connection goes to an address
that was checked, so that a DNS answer that changes in between has no effect.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

import httpcore
import idna

from app.core.platform.errors import ImageTooLarge, UrlForbidden, UrlUnreachable

Address = IPv4Address | IPv6Address
_MAX_REDIRECTS = 5
_MAX_URL = 2_000
_KEPT = "/%:?#[]@!$&'()*+,;=~"  # characters of a URL that are not quoted
_REDIRECTS = (301, 302, 303, 307, 308)
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)  # before the IPv4 address in the lower half
# Missing or incomplete in Python's list of special networks: former 6to4 relays, local NAT64,
# discard-only, IETF protocols with Teredo, documentation, SRv6, former site-local addresses.
_SPECIAL: list[IPv4Network | IPv6Network] = [
    *map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24")),
    *map(IPv6Network, ("64:ff9b:1::/48", "100::/32", "2001::/23", "3fff::/20", "5f00::/16")),
    IPv6Network("fec0::/10"),
    IPv4Network("168.63.129.16/32"),  # the host's services in Azure, though it looks public
]
_DISABLED = "This server does not read images from URLs; TEMI_SOURCE_URLS is off."
_HEADERS = [("User-Agent", "temi-service"), ("Accept", "image/*"), ("Accept-Encoding", "identity")]
_resolving = ThreadPoolExecutor(16, thread_name_prefix="resolve")


def is_url(path: str) -> bool:
    return path.lower().startswith(("http://", "https://"))


def is_public(address: Address) -> bool:
    """Whether an address is public; IPv6 addresses that embed an IPv4 address are unwrapped."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        last = IPv4Address(int(address) & 0xFFFFFFFF)
        if address in _NAT64:
            inner = last
        if inner is not None:
            return is_public(inner)
        if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP and not is_public(last):
            return False
    if any(address in network for network in _SPECIAL):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def check_url(url: str, *, enabled: bool) -> None:
    """Raises UrlForbidden for what can be refused without a DNS query."""
    if not enabled:
        raise UrlForbidden(_DISABLED)
    if len(url) > _MAX_URL:
        raise UrlForbidden(f"The URL has {len(url):,} characters, more than {_MAX_URL:,}.")
    host = _host(wire_url(url))
    if (literal := _literal(host)) is not None and not is_public(literal):
        raise UrlForbidden(f"{host} is not a public address; only public ones are fetched.")


def wire_url(url: str) -> str:
    """The URL in ASCII: host names by IDNA, the rest percent-encoded."""
    host = _host(url)
    if url.isascii():
        return url
    parts = urlsplit(url)
    try:
        encoded = host if host.isascii() else idna.encode(host, uts46=True).decode()
    except idna.IDNAError as error:
        raise UrlForbidden(f"{host[:200]!r} is not a host name: {str(error)[:200]}") from error
    netloc = f"[{encoded}]" if ":" in encoded else encoded
    netloc = netloc if parts.port is None else f"{netloc}:{parts.port}"
    return urlunsplit((parts.scheme, netloc, *(quote(part, _KEPT) for part in parts[2:])))


class Fetcher:
    """Fetches URLs with limits of time and bytes."""

    def __init__(
        self,
        *,
        max_bytes: int,
        seconds: float,
        allowed: Callable[[Address], bool] | None = None,
    ) -> None:
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._allowed = allowed or is_public

    def fetch(self, url: str) -> bytes:
        deadline = time.monotonic() + self._seconds
        url = wire_url(url)
        backend = _CheckedBackend(self._allowed, deadline)
        with httpcore.ConnectionPool(_trusted(), network_backend=backend) as pool:
            for _ in range(_MAX_REDIRECTS + 1):
                found = self._get(pool, url)
                if isinstance(found, bytes):
                    return found
                url = wire_url(urljoin(url, found))
        raise UrlUnreachable(f"The URL redirects more than {_MAX_REDIRECTS} times.")

    def _get(self, pool: httpcore.ConnectionPool, url: str) -> bytes | str:
        """The body, or the URL of a redirect."""
        _host(url)
        try:
            with pool.stream("GET", url, headers=_HEADERS) as response:
                if response.status in _REDIRECTS:
                    return _location(response)
                if response.status != 200:
                    raise UrlUnreachable(f"The server returned status {response.status}.")
                return self._body(response)
        except (httpcore.TimeoutException, FutureTimeout) as error:
            raise UrlUnreachable(f"The URL took longer than {self._seconds:g} seconds.") from error
        except (OSError, httpcore.NetworkError, httpcore.ProtocolError, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise UrlUnreachable(f"The URL cannot be fetched: {reason[:200]}") from error

    def _body(self, response: httpcore.Response) -> bytes:
        data = bytearray()
        for chunk in response.iter_stream():
            data += chunk
            if len(data) > self._max_bytes:
                raise ImageTooLarge(
                    f"Larger than {self._max_bytes:,} bytes (TEMI_MAX_IMAGE_BYTES)."
                )
        return bytes(data)


class _CheckedBackend(httpcore.NetworkBackend):
    """Connects only to allowed addresses; used for one fetch."""

    def __init__(self, allowed: Callable[[Address], bool], deadline: float) -> None:
        self._allowed = allowed
        self._deadline = deadline
        self._real = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline is shorter
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        last: Exception | None = None
        for address in self._checked(host, port):
            try:
                left = _left(self._deadline)
                stream = self._real.connect_tcp(address, port, left, local_address, socket_options)
                return _TimedStream(stream, self._deadline)
            except httpcore.ConnectError as error:
                last = error
        raise last or httpcore.ConnectError("the host name has no address")

    def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.NetworkStream:
        raise UrlForbidden("Only http and https URLs are read.")

    def _checked(self, host: str, port: int) -> list[str]:
        future = _resolving.submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        try:
            found = future.result(_left(self._deadline))
        except (OSError, UnicodeError) as error:
            raise UrlUnreachable(f"The host name {host[:200]} cannot be resolved.") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        for address in addresses:
            if not self._allowed(ip_address(address.partition("%")[0])):
                raise UrlForbidden(
                    f"{host[:200]} is not a public address; only public ones are fetched."
                )
        return addresses


class _TimedStream(httpcore.NetworkStream):
    """Ends the connection at the deadline, however slowly data arrives."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._stream.read(max_bytes, _left(self._deadline))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._stream.write(buffer, _left(self._deadline))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        secured = self._stream.start_tls(ssl_context, server_hostname, _left(self._deadline))
        return _TimedStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the deadline has passed")
    return left


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise UrlForbidden(f"Not a valid URL: {error}") from error
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise UrlForbidden("Only http and https URLs are read.")
    if parts.username is not None or parts.password is not None:
        raise UrlForbidden("A URL must not contain a user name or a password.")
    return host


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _location(response: httpcore.Response) -> str:
    for name, value in response.headers:
        if name.lower() == b"location":
            return value.decode("latin-1")
    raise UrlUnreachable("The URL redirects without a Location header.")


@cache
def _trusted() -> ssl.SSLContext:
    return httpcore.default_ssl_context()
