"""What routes ask for: the runtime, the tenant, a session, a page."""

import base64
import binascii
import hmac
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Query, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from sqlalchemy.orm import Session

from app.core.errors import InvalidRequest, Unauthorized
from app.core.runtime import Runtime

_bearer = HTTPBearer(auto_error=False, description="Needed when the server has an API key.")
_DEFAULT_TENANT = "default"


def get_runtime(request: Request) -> Runtime:
    runtime: Runtime = request.app.state.runtime
    return runtime


RuntimeDep = Annotated[Runtime, Depends(get_runtime)]


def get_tenant(
    runtime: RuntimeDep,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> str:
    key = runtime.settings.api_key
    if key is not None:
        given = credentials.credentials if credentials else ""
        if not hmac.compare_digest(given.encode(), key.get_secret_value().encode()):
            raise Unauthorized("Send the API key as `Authorization: Bearer ...`.")
    return _DEFAULT_TENANT


TenantDep = Annotated[str, Depends(get_tenant)]


def get_session(runtime: RuntimeDep) -> Iterator[Session]:
    with runtime.db.read() as session:
        yield session


SessionDep = Annotated[Session, Depends(get_session)]

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


class PageQuery:
    """`limit` and `cursor` of a list."""

    def __init__(
        self,
        limit: Annotated[int, Query(ge=1, le=1000, description="Rows a page.")] = 100,
        cursor: Annotated[
            str | None,
            Query(max_length=300, description="`next_cursor` of the page before."),
        ] = None,
    ) -> None:
        self.limit = limit
        self.after = _decode_cursor(cursor) if cursor else None

    @property
    def after_number(self) -> int | None:
        """For lists that are ordered by a number."""
        if self.after is None:
            return None
        if not self.after.isdecimal() or len(self.after) > 9:
            raise _bad_cursor()
        return int(self.after)


PageDep = Annotated[PageQuery, Depends()]
Row = TypeVar("Row")
Item = TypeVar("Item", bound=BaseModel)


def paginate(
    request: Request,
    response: Response,
    page: PageQuery,
    rows: Sequence[Row],
    *,
    key: Callable[[Row], str],
    convert: Callable[[Row], Item],
) -> dict[str, Any]:
    """The body of a list and its Link header; `rows` holds one more than the page if there is."""
    shown, has_more = rows[: page.limit], len(rows) > page.limit
    cursor = _encode_cursor(key(shown[-1])) if has_more else None
    if cursor is not None:
        following = request.url.include_query_params(cursor=cursor)
        response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
    return {"data": [convert(row) for row in shown], "next_cursor": cursor, "has_more": has_more}


def _encode_cursor(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def _decode_cursor(cursor: str) -> str:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError):
        text = ""
    if not text or "\x00" in text:
        raise _bad_cursor()
    return text


def _bad_cursor() -> InvalidRequest:
    return InvalidRequest.field("cursor", "is not a next_cursor of this list")
