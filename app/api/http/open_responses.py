"""A bound on the downloads and event streams that a key has open. Both last as long as their
reader takes, and every one holds a connection and a file or a timer."""

from collections.abc import AsyncIterator

from fastapi import Depends, Request

from app.api.http.access import Access


async def hold_download(request: Request) -> AsyncIterator[None]:
    access: Access = request.app.state.access
    with access.downloads.hold(_owner(request)):
        yield


async def hold_event_stream(request: Request) -> AsyncIterator[None]:
    access: Access = request.app.state.access
    with access.event_streams.hold(_owner(request)):
        yield


# Both end when the answer was sent, or its reader has gone.
OneDownload = Depends(hold_download, scope="request")
OneEventStream = Depends(hold_event_stream, scope="request")


def _owner(request: Request) -> str:
    """The key; where none is needed, the address that asks."""
    actor = request.state.actor
    if actor.key_id or actor.key_name:
        return f"key {actor.key_id or actor.key_name}"
    return f"address {request.client.host if request.client else ''}"
