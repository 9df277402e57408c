"""What routes ask for: the runtime, the actor, a session, a list."""

import base64
import binascii
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response
from pydantic import BaseModel
from sqlalchemy import Row, Select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.core.platform.actor import Actor
from app.core.platform.errors import InvalidRequest
from app.core.runtime import Runtime
from app.core.serving import Serving
from app.core.serving.references import References


# These wait for nothing, and without `async` each would cost a trip to another thread.
async def get_runtime(request: Request) -> Runtime:
    runtime: Runtime = request.app.state.runtime
    return runtime


RuntimeDep = Annotated[Runtime, Depends(get_runtime)]


async def get_serving(request: Request) -> Serving:
    serving: Serving = request.app.state.serving
    return serving


ServingDep = Annotated[Serving, Depends(get_serving)]


async def get_references(request: Request) -> References:
    references: References = request.app.state.references
    return references


ReferencesDep = Annotated[References, Depends(get_references)]


async def get_actor(request: Request) -> Actor:
    """Whom the door let in."""
    actor: Actor = request.state.actor
    return actor


ActorDep = Annotated[Actor, Depends(get_actor)]


async def get_tenant(actor: ActorDep) -> str:
    return actor.tenant


TenantDep = Annotated[str, Depends(get_tenant)]


def get_session(runtime: RuntimeDep) -> Iterator[Session]:
    with runtime.db.read() as session:
        yield session


# Closed before the answer is sent: a slow reader would else keep a connection from all others.
SessionDep = Annotated[Session, Depends(get_session, scope="function")]

IdempotencyKeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Any text of yours. Sent again with the same body, it gives the same answer "
        "instead of a second dataset or job.",
    ),
]


class Listing:
    """A list, page by page: starts after the cursor's key, so every page costs the same."""

    def __init__(
        self,
        request: Request,
        response: Response,
        session: SessionDep,
        limit: Annotated[int, Query(ge=1, le=1000, description="Rows a page.")] = 100,
        cursor: Annotated[
            str | None,
            Query(max_length=300, description="`next_cursor` of the page before."),
        ] = None,
    ) -> None:
        self._request = request
        self._response = response
        self._session = session
        self._limit = limit
        self._after = _decode_cursor(cursor) if cursor else None

    def page(
        self,
        query: Select[*tuple[Any, ...]],
        key: InstrumentedAttribute[Any],
        convert: Callable[..., BaseModel],
        *,
        descending: bool = False,
    ) -> dict[str, Any]:
        """The body of a page, and its Link header. `key` orders the rows and is unique in them."""
        if self._after is not None:
            after = _typed(self._after, key)
            query = query.where(key < after if descending else key > after)
        query = query.add_columns(key.label("page_key")).limit(self._limit + 1)
        rows = self._session.execute(query.order_by(key.desc() if descending else key)).all()
        return self._body(rows, lambda row: str(row.page_key), lambda row: convert(*row[:-1]))

    def page_within(
        self,
        query: Select[*tuple[Any, ...]],
        group: InstrumentedAttribute[str],
        name: str,
        key: InstrumentedAttribute[str],
        convert: Callable[..., BaseModel],
    ) -> dict[str, Any]:
        """A page of the rows of one group, where an index of both columns gives the order.

        Said as a range: with `=` PostgreSQL may walk an index of `key` alone, through all groups.
        """
        query = query.where(group <= name).order_by(group)
        if self._after is None:
            query = query.where(group >= name)
        else:
            query = query.where(tuple_(group, key) > tuple_(name, self._after))
            self._after = None
        return self.page(query, key, convert)

    def _body(
        self,
        rows: Sequence[Row[Any]],
        key: Callable[[Row[Any]], str],
        convert: Callable[[Row[Any]], BaseModel],
    ) -> dict[str, Any]:
        """`rows` has one more than the page if there is a next one."""
        shown, has_more = rows[: self._limit], len(rows) > self._limit
        cursor = _encode_cursor(key(shown[-1])) if has_more else None
        if cursor is not None:
            following = self._request.url.include_query_params(cursor=cursor)
            self._response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
        return {"data": [convert(r) for r in shown], "next_cursor": cursor, "has_more": has_more}


ListingDep = Annotated[Listing, Depends()]


def _typed(after: str, key: InstrumentedAttribute[Any]) -> str | int:
    if key.type.python_type is str:
        return after
    if not after.isdecimal() or len(after) > 9:
        raise bad_cursor()
    return int(after)


def _encode_cursor(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def _decode_cursor(cursor: str) -> str:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError):
        text = ""
    if not text or "\x00" in text:
        raise bad_cursor()
    return text


def bad_cursor() -> InvalidRequest:
    return InvalidRequest.field("cursor", "is not a next_cursor of this list")
