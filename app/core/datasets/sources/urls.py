"""Public web addresses, fetched so that nobody can reach this server's own network by them.

A name is resolved here, every address it has is checked, and the connection goes to the very
address that was checked: a name that changes its mind in between gains nothing.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
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
_KEPT = "/%:?#[]@!$&'()*+,;=~"  # characters of an address that stay as they are
_REDIRECTS = (301, 302, 303, 307, 308)
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)  # before the IPv4 address in the lower half of an address
# Set aside after Python's own list was made, or only in part on it: former 6to4 relays, local
# NAT64, discard-only, IETF protocols with Teredo, documentation, SRv6, former site-local addresses.
_SPECIAL: list[IPv4Network | IPv6Network] = [
    *map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24")),
    *map(IPv6Network, ("64:ff9b:1::/48", "100::/32", "2001::/23", "3fff::/20", "5f00::/16")),
    IPv6Network("fec0::/10"),
    IPv4Network("168.63.129.16/32"),  # answers for the host in Azure, though it looks public
]
_DISABLED = "This server does not read images from web addresses (TEMI_SOURCE_URLS)."
_HEADERS = [("User-Agent", "temi-service"), ("Accept", "image/*"), ("Accept-Encoding", "identity")]
_resolving = ThreadPoolExecutor(16, thread_name_prefix="resolve")


def is_url(path: str) -> bool:
    return path.lower().startswith(("http://", "https://"))


def is_public(address: Address) -> bool:
    """Reachable by anyone; also through the IPv6 addresses that stand for an IPv4 one."""
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
    """What is known of an address without asking anyone."""
    if not enabled:
        raise UrlForbidden(_DISABLED)
    if len(url) > _MAX_URL:
        raise UrlForbidden(f"An address may have {_MAX_URL:,} characters.")
    host = _host(wire_url(url))
    if (literal := _literal(host)) is not None and not is_public(literal):
        raise UrlForbidden(f"{host} is not a public address.")


def wire_url(url: str) -> str:
    """The address as it is sent: names of hosts by IDNA, all else that is no ASCII as percents."""
    host = _host(url)
    if url.isascii():
        return url
    parts = urlsplit(url)
    try:
        encoded = host if host.isascii() else idna.encode(host, uts46=True).decode()
    except idna.IDNAError as error:
        raise UrlForbidden(f"{host[:200]!r} is no name of a host: {str(error)[:200]}") from error
    place = f"[{encoded}]" if ":" in encoded else encoded
    place = place if parts.port is None else f"{place}:{parts.port}"
    return urlunsplit((parts.scheme, place, *(quote(part, _KEPT) for part in parts[2:])))


class Fetcher:
    """Bounded in time and in real bytes."""

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
        raise UrlUnreachable(f"It leads to more than {_MAX_REDIRECTS} other addresses.")

    def _get(self, pool: httpcore.ConnectionPool, url: str) -> bytes | str:
        """The body, or the address that it leads to."""
        _host(url)
        try:
            with pool.stream("GET", url, headers=_HEADERS) as response:
                if response.status in _REDIRECTS:
                    return _location(response)
                if response.status != 200:
                    raise UrlUnreachable(f"It answers with status {response.status}.")
                return self._body(response)
        except (httpcore.TimeoutException, Late) as error:
            raise UrlUnreachable(f"It takes longer than {self._seconds:g} seconds.") from error
        except (OSError, httpcore.NetworkError, httpcore.ProtocolError, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise UrlUnreachable(f"It cannot be reached: {reason[:200]}") from error

    def _body(self, response: httpcore.Response) -> bytes:
        data = bytearray()
        for chunk in response.iter_stream():
            data += chunk
            if len(data) > self._max_bytes:
                raise ImageTooLarge(f"Larger than {self._max_bytes:,} bytes.")
        return bytes(data)


class _CheckedBackend(httpcore.NetworkBackend):
    """Connects only to addresses that are allowed, and for one fetch only."""

    def __init__(self, allowed: Callable[[Address], bool], deadline: float) -> None:
        self._allowed = allowed
        self._deadline = deadline
        self._real = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - ours is shorter
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
        raise last or httpcore.ConnectError("the name has no address")

    def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.NetworkStream:
        raise UrlForbidden("Only http and https addresses are read.")

    def _checked(self, host: str, port: int) -> list[str]:
        asked = _resolving.submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        try:
            found = asked.result(_left(self._deadline))
        except (OSError, UnicodeError) as error:
            raise UrlUnreachable(f"The name {host[:200]} is not known.") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        for address in addresses:
            if not self._allowed(ip_address(address.partition("%")[0])):
                raise UrlForbidden(f"{host[:200]} is not a public address.")
        return addresses


class _TimedStream(httpcore.NetworkStream):
    """However slowly the other side speaks, the whole talk ends at the deadline."""

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
        raise httpcore.ReadTimeout("out of time")
    return left


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise UrlForbidden(f"Not an address: {error}") from error
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise UrlForbidden("Only http and https addresses are read.")
    if parts.username is not None or parts.password is not None:
        raise UrlForbidden("An address must not hold a user or a password.")
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
    raise UrlUnreachable("It leads to another address but does not name it.")


@cache
def _trusted() -> ssl.SSLContext:
    return httpcore.default_ssl_context()
