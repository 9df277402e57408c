"""Shared by the schemas of all resources."""

from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field

T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    data: list[T]
    next_cursor: str | None = Field(description="The `cursor` of the next page.")
    has_more: bool

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        return f"{params[0].__name__}Page"  # in generated clients


class PageCursors(BaseModel):
    """Where each page of a list starts."""

    count: int = Field(description="Number of rows of the list.")
    every: int = Field(description="Rows per page.")
    cursors: list[str | None] = Field(
        description="The `cursor` of each page; null, for no cursor, is that of the first."
    )


class ErrorInfo(BaseModel):
    code: str
    detail: str


def to_time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def shown_fields(schema: type[BaseModel], row: object) -> dict[str, Any]:
    """The columns that the schema has under the same name; times become datetimes."""
    found: dict[str, Any] = {}
    for name in schema.model_fields:
        if hasattr(row, name):
            value = getattr(row, name)
            is_time = name.endswith("_at") and isinstance(value, float)
            found[name] = to_time(value) if is_time else value
    return found
