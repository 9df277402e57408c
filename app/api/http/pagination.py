"""Lists by page. A page starts after the key of the cursor, so that every page costs the same."""

import base64
import binascii
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from pydantic import BaseModel
from sqlalchemy import ColumnElement, Row, Select, SQLColumnExpression, func, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from app.api.http.dependencies import SessionDep
from app.core.clusterings.rows import Ranking
from app.core.clusterings.similarity import SimilarImages
from app.core.platform.errors import InvalidRequest

_MAX_CURSORS = 100_000  # in one response


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

        def convert_all(rows: Sequence[Row[Any]]) -> list[BaseModel]:
            return [convert(*row[:-1]) for row in rows]

        return self.batch_page(query, key, convert_all, descending=descending)

    def batch_page(
        self,
        query: Select[*tuple[Any, ...]],
        key: InstrumentedAttribute[Any],
        convert_all: Callable[[Sequence[Row[Any]]], Sequence[BaseModel]],
        *,
        descending: bool = False,
    ) -> dict[str, Any]:
        """A page whose rows are converted together. Their last column is the key."""
        if self._after is not None:
            after = _typed(self._after, key)
            query = query.where(key < after if descending else key > after)
        query = query.add_columns(key.label("page_key")).limit(self._limit + 1)
        rows = self._session.execute(query.order_by(key.desc() if descending else key)).all()
        return self._body(rows, lambda row: str(row.page_key), convert_all)

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
        convert_all: Callable[[Sequence[Row[Any]]], Sequence[BaseModel]],
    ) -> dict[str, Any]:
        """`rows` has one more than the page if there is a next page."""
        shown, has_more = rows[: self._limit], len(rows) > self._limit
        return self._answer(convert_all(shown), key(shown[-1]) if has_more else None)

    def _answer(self, data: Sequence[BaseModel], last: str | None) -> dict[str, Any]:
        """`last` is the key of the last row if there is a next page."""
        cursor = None if last is None else _encode_cursor(last)
        if cursor is not None:
            following = self._request.url.include_query_params(cursor=cursor)
            self._response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
        return {"data": data, "next_cursor": cursor, "has_more": cursor is not None}


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
            rows,
            lambda row: ranked_key(row.rank, row.page_key),
            lambda shown: [convert(*row[:-2]) for row in shown],
        )

    def similar_page(
        self,
        query: Select[*tuple[Any, ...]],
        order: SimilarImages,
        key: InstrumentedAttribute[str],
        convert: Callable[..., BaseModel],
    ) -> dict[str, Any]:
        """In an order that was computed; `convert` gets the similarity, too."""
        start = 0 if self._after is None else order.after(*_number_and_id(self._after))
        page = order.at(start, self._limit)
        query = query.where(key.in_([image_id for image_id, _ in page]))
        rows = {row[-1]: row[:-1] for row in self._session.execute(query.add_columns(key))}
        data = [
            convert(*rows[image_id], similarity)
            for image_id, similarity in page
            if image_id in rows  # else it was moved since the order was computed
        ]
        has_more = start + len(page) < len(order)
        last, similarity = page[-1] if page else ("", 0.0)
        return self._answer(data, ranked_key(similarity, last) if has_more else None)


class PageCursors:
    """The cursors of all pages of a list, so that a reader can start at any page."""

    def __init__(
        self,
        session: SessionDep,
        every: Annotated[
            int, Query(ge=1, le=1000, description="Rows per page: the `limit` of the list.")
        ] = 200,
    ) -> None:
        self._session = session
        self.every = every

    def of(
        self, query: Select[*tuple[Any, ...]], key: InstrumentedAttribute[Any]
    ) -> dict[str, Any]:
        """Of the pages of `Listing.page` with the same rows."""
        count, ends = self._page_ends(query, (key,), [key])
        return self.body(count, (str(last) for (last,) in ends))

    def ranked(
        self, query: Select[*tuple[Any, ...]], ranking: Ranking, key: InstrumentedAttribute[str]
    ) -> dict[str, Any]:
        """Of the pages of `RankedListing.ranked_page` with the same rows."""
        count, ends = self._page_ends(query, (ranking.column, key), ranking.order(key))
        return self.body(count, (ranked_key(rank, last) for rank, last in ends))

    def similar(self, order: SimilarImages) -> dict[str, Any]:
        """Of the pages of `RankedListing.similar_page` in the same order."""
        ends = (order.at(end - 1, 1)[0] for end in range(self.every, len(order), self.every))
        return self.body(len(order), (ranked_key(similarity, last) for last, similarity in ends))

    def body(self, count: int, page_ends: Iterable[str]) -> dict[str, Any]:
        """`page_ends` has the key of the last row of each page but the last one."""
        cursors = [None, *map(_encode_cursor, page_ends)] if count else []
        return {"count": count, "every": self.every, "cursors": cursors}

    def _page_ends(
        self,
        query: Select[*tuple[Any, ...]],
        columns: Sequence[SQLColumnExpression[Any]],
        order: Sequence[SQLColumnExpression[Any]],
    ) -> tuple[int, Sequence[Row[*tuple[Any, ...]]]]:
        """The number of rows, and the last row of each page but the last one."""
        count = self._session.scalar(query.with_only_columns(func.count())) or 0
        least = math.ceil(count / _MAX_CURSORS)
        if self.every < least:
            raise InvalidRequest.field("every", f"must be at least {least} for {count} rows")
        number = func.row_number().over(order_by=order).label("number")
        rows = query.with_only_columns(*columns, number).subquery()
        is_end = (rows.c.number % self.every == 0) & (rows.c.number < count)
        ends = select(*list(rows.c)[:-1]).where(is_end).order_by(rows.c.number)
        return count, self._session.execute(ends).all()


ListingDep = Annotated[Listing, Depends()]
RankedListingDep = Annotated[RankedListing, Depends()]
PageCursorsDep = Annotated[PageCursors, Depends()]


def ranked_key(number: float, image_id: str) -> str:
    """The key of a row in a ranked list, for a cursor."""
    return f"{number!r} {image_id}"


def _follows(after: str, ranking: Ranking, key: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    return ranking.after(key, *_number_and_id(after))


def _number_and_id(after: str) -> tuple[float, str]:
    number, _, last = after.partition(" ")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not last:
        raise _bad_cursor()
    return value, last


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
