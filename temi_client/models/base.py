"""What every answer is."""

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    # `model` is a field name of the wire format, not pydantic's own.
    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())


class ErrorInfo(Answer):
    code: str
    detail: str


class Check(Answer):
    ok: bool
    status: str | None = None  # ok, warning, starting, failed or unknown
    detail: str | None = None
    hint: str | None = None
    seconds: float | None = None


class Readiness(Answer):
    ready: bool
    checks: dict[str, Check] = {}
