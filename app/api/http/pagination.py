"""Lists by page. A page starts after the key of the cursor, so that every page costs the same."""

import base64
import binascii
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from pydantic import BaseModel
from sqlalchemy import ColumnElement, Row, Select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from app.api.http.dependencies import SessionDep
from app.core.clusterings.rows import Ranking
from app.core.platform.errors import InvalidRequest


class Listing:
    """The page that a request asks for by `limit` and `cursor`."""

    def __init__(
        self,
        request: Request,
        response: Response,
        session: SessionDep,
        limit: Annotated[int, Query(ge=1, le=1000, description="Rows per page.")] = 100,
        cursor: Annotated[
            str | None,
            Query(max_length=300, description="`next_cursor` of the previous page."),
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
        """Returns the body of a page and sets its Link header. `key` orders the rows and is
        unique."""
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

        The group is a range: with `=` PostgreSQL may walk an index of `key` alone, through all
        groups.
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
        """`rows` has one more than the page if there is a next page."""
        shown, has_more = rows[: self._limit], len(rows) > self._limit
        cursor = _encode_cursor(key(shown[-1])) if has_more else None
        if cursor is not None:
            following = self._request.url.include_query_params(cursor=cursor)
            self._response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
        return {"data": [convert(r) for r in shown], "next_cursor": cursor, "has_more": has_more}


class RankedListing(Listing):
    """In the order of a number that several rows may have; the id decides between those."""

    def ranked_page(
        self,
        query: Select[*tuple[Any, ...]],
        ranking: Ranking,
        key: InstrumentedAttribute[str],
        convert: Callable[..., BaseModel],
    ) -> dict[str, Any]:
        if self._after is not None:
            query = query.where(_follows(self._after, ranking, key))
        query = query.add_columns(ranking.column.label("rank"), key.label("page_key"))
        query = query.order_by(*ranking.order(key)).limit(self._limit + 1)
        rows = self._session.execute(query).all()
        return self._body(
            rows, lambda row: f"{row.rank!r} {row.page_key}", lambda row: convert(*row[:-2])
        )


ListingDep = Annotated[Listing, Depends()]
RankedListingDep = Annotated[RankedListing, Depends()]


def _follows(after: str, ranking: Ranking, key: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    number, _, last = after.partition(" ")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not last:
        raise _bad_cursor()
    return ranking.after(key, value, last)


def _typed(after: str, key: InstrumentedAttribute[Any]) -> str | int:
    if key.type.python_type is str:
        return after
    if not after.isdecimal() or len(after) > 9:
        raise _bad_cursor()
    return int(after)


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
    return InvalidRequest.field("cursor", "is not a `next_cursor` of this list")
