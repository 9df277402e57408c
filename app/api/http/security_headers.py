"""Headers that tell a browser to run nothing of an answer, and to show it in no other page."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# An answer that is opened by itself, such as an image or an SVG, loads and runs nothing.
INERT = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"
_HEADERS = {
    "Content-Security-Policy": INERT,  # pages bring their own
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with `no-referrer` our own page might send a null Origin
    "Cross-Origin-Resource-Policy": "same-origin",  # pages of other sites embed nothing
    "Cross-Origin-Opener-Policy": "same-origin",
}


class SecurityHeaders:
    """On every answer; one that a route has set stays."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)
