"""Health."""

from pydantic import BaseModel


class Check(BaseModel):
    ok: bool
    detail: str | None = None


class Readiness(BaseModel):
    ready: bool
    checks: dict[str, Check]
