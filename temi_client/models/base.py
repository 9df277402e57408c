"""Base class of responses, and readiness."""

from pydantic import BaseModel, ConfigDict


class ApiModel(BaseModel):
    # A command uses few of the classes: each is built when it is first used. `model` is a field
    # name of the wire format, not pydantic's own.
    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="ignore", protected_namespaces=()
    )


class ErrorInfo(ApiModel):
    code: str
    detail: str


class PageCursors(ApiModel):
    """Where each page of a list starts; the first one starts without a cursor."""

    count: int
    every: int  # rows per page
    cursors: list[str | None]


class Check(ApiModel):
    ok: bool
    status: str | None = None  # ok, warning, starting, failed or unknown
    detail: str | None = None
    hint: str | None = None
    seconds: float | None = None


class Readiness(ApiModel):
    ready: bool
    checks: dict[str, Check] = {}
