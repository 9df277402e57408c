"""Lists in the order of a number that several rows may share."""

import math
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends
from pydantic import BaseModel
from sqlalchemy import ColumnElement, Select, and_, or_
from sqlalchemy.orm import InstrumentedAttribute

from app.api.deps import Listing, bad_cursor
from app.core.clusterings import Ranking


class RankedListing(Listing):
    """A page starts after the number and the id of the last row of the page before."""

    def ranked_page(
        self,
        query: Select[*tuple[Any, ...]],
        ranking: Ranking,
        key: InstrumentedAttribute[str],
        convert: Callable[..., BaseModel],
    ) -> dict[str, Any]:
        column = ranking.column
        if self._after is not None:
            query = query.where(_follows(self._after, ranking, key))
        order = (column.desc() if ranking.descending else column, key)
        query = query.add_columns(column.label("rank"), key.label("page_key"))
        rows = self._session.execute(query.order_by(*order).limit(self._limit + 1)).all()
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
    column = ranking.column
    beyond = column < value if ranking.descending else column > value
    # said twice for the index: the first part is a range of it, the second breaks the tie
    within = column <= value if ranking.descending else column >= value
    return and_(within, or_(beyond, key > last))


RankedListingDep = Annotated[RankedListing, Depends()]
