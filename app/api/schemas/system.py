"""Health."""

from typing import Literal

from pydantic import BaseModel, Field


class Check(BaseModel):
    ok: bool
    status: Literal["ok", "warning", "starting", "failed", "unknown"] = Field(
        description="A `warning` does not make the service unready. `starting`: it will be, soon. "
        "`unknown`: it cannot be told while something else has failed."
    )
    detail: str | None = Field(default=None, examples=["nearly full: 0.8 of 50.0 GiB are free"])
    hint: str | None = Field(default=None, description="What to do about it.")
    seconds: float = Field(description="How long it took to find out.")


class Readiness(BaseModel):
    ready: bool
    checks: dict[str, Check]
