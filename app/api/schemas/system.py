"""Health."""

from typing import Literal

from pydantic import BaseModel, Field


class Check(BaseModel):
    ok: bool
    status: Literal["ok", "warning", "starting", "failed", "unknown"] = Field(
        description="With a `warning` the service is ready. `starting`: it will be ready soon. "
        "`unknown`: cannot be checked because another check has failed."
    )
    detail: str | None = Field(default=None, examples=["nearly full: 0.8 of 50.0 GiB are free"])
    hint: str | None = Field(default=None, description="What to do about it.")
    seconds: float = Field(description="Duration of the check.")


class Readiness(BaseModel):
    ready: bool
    version: str = Field(description="Version of the service.", examples=["0.1.0"])
    checks: dict[str, Check]
