"""Lists in the order of a number that several rows may share."""

import math
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends
from pydantic import BaseModel
from sqlalchemy import ColumnElement, Select
from sqlalchemy.orm import InstrumentedAttribute

from app.api.http.dependencies import Listing, bad_cursor
from app.core.clusterings.rows import Ranking


class RankedListing(Listing):
    """A page starts after the number and the id of the last row of the page before."""

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


def _follows(after: str, ranking: Ranking, key: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    number, _, last = after.partition(" ")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not last:
        raise bad_cursor()
    return ranking.after(key, value, last)


RankedListingDep = Annotated[RankedListing, Depends()]
