"""Turns every error into RFC 9457 problem+json. The only place that maps errors to statuses."""

import re
import sqlite3
from http import HTTPStatus
from typing import Any, Literal

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy.exc import DataError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.routing import Match

from app.api.http.validation import invalid_request
from app.core.platform import errors as core

log = structlog.get_logger()

STATUS: dict[type[core.ServiceError], int] = {
    core.Unauthorized: 401,
    core.Forbidden: 403,
    core.NotFound: 404,
    core.NotAcceptable: 406,
    core.BodyTimeout: 408,
    core.Conflict: 409,
    core.RevisionStale: 412,
    core.TusVersion: 412,
    core.BodyTooLarge: 413,
    core.TooManyParts: 413,
    core.UnsupportedFormat: 415,
    core.UnsupportedMediaType: 415,
    core.InvalidRequest: 422,
    core.ImageRejected: 422,
    core.ArchiveRejected: 422,
    core.HostNotAllowed: 421,
    core.UploadLocked: 423,
    core.RevisionRequired: 428,
    core.QueueFull: 429,
    core.RateLimited: 429,
    core.QuotaExceeded: 429,
    core.TooManyJobs: 429,
    core.ChecksumMismatch: 460,  # defined by the tus protocol
    core.ModelIntegrity: 503,
    core.ModelLoading: 503,
    core.PredictorUnavailable: 503,
    core.StorageUnavailable: 503,
    core.StorageCorrupt: 503,
    core.StorageFull: 507,
}
_METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
_OIP = re.compile(r"/v2(/|$)")  # the paths of the Open Inference Protocol
_RETRY_AFTER = {429: "2", 503: "5"}
# The server itself sends it, before any route: the one error of a route that needs nothing else.
HEAD_TOO_LARGE: dict[int | str, dict[str, Any]] = {
    431: {"description": "The headers are too long", "content": {"text/plain": {}}}
}


class ProblemField(BaseModel):
    field: str = Field(examples=["n_clusters"])
    message: str


class Problem(BaseModel):
    """An error by RFC 9457. `code` is stable and meant for programs."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Unprocessable Content"])
    status: int = Field(examples=[422])
    detail: str
    instance: str = Field(examples=["/v1/jobs"])
    code: str = Field(examples=["invalid_request"])
    errors: list[ProblemField] = []
    request_id: str | None = None


class InferenceProblem(Problem):
    """A problem with the `error` field of the Open Inference Protocol."""

    error: str = Field(description="The same as `detail`.")


def responses(
    *statuses: int | Literal["default"], model: type[Problem] = Problem
) -> dict[int | str, dict[str, Any]]:
    """A route's OpenAPI entry: these statuses return a problem.

    Without the key `model`, for which FastAPI would prepare a serializer per route and status: 600.
    """
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    content = {"application/problem+json": {"schema": schema}}
    return {status: {"description": _phrase(status), "content": content} for status in statuses}


def status_of(error: core.ServiceError) -> int:
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def problem(
    request: Request,
    status: int,
    code: str,
    detail: str,
    errors: list[ProblemField] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    request_id: str | None = getattr(request.state, "request_id", None)
    is_oip = _OIP.match(request.url.path) is not None
    if is_oip and status == 422:
        status = 400  # as the protocol requires
    body = Problem(
        type="about:blank",
        title=_phrase(status),
        status=status,
        detail=detail,
        instance=request.url.path,
        code=code,
        errors=errors or [],
        request_id=request_id,
    )
    headers = dict(headers or {})
    if request_id is not None:  # an unexpected error is handled outside of our middleware
        headers["X-Request-ID"] = request_id
    if status in _RETRY_AFTER:
        headers.setdefault("Retry-After", _RETRY_AFTER[status])
    if status == 408:  # the rest of the body is not read
        headers["Connection"] = "close"
    if status == 401:
        headers["WWW-Authenticate"] = _challenge(code)
    content = body.model_dump() | ({"error": detail} if is_oip else {})
    return JSONResponse(content, status, headers=headers, media_type="application/problem+json")


def _challenge(code: str) -> str:
    """By RFC 6750: an error only if a key was sent."""
    wrong = ', error="invalid_token"' if code == core.InvalidApiKey.code else ""
    return f'Bearer realm="temi"{wrong}'


def problem_of(request: Request, error: core.ServiceError) -> JSONResponse:
    fields = [ProblemField(field=e.field, message=e.message) for e in error.errors]
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    return problem(request, status_of(error), error.code, error.detail, fields, headers)


def database_problem(request: Request, error: SQLAlchemyError) -> JSONResponse:
    cause = getattr(error, "orig", error)
    log.error("database_unavailable", reason=str(cause))
    if getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return problem(request, 507, core.StorageFull.code, "The disk of the database is full.")
    detail = "The database cannot be reached; try again in a moment."
    return problem(request, 503, "database_unavailable", detail)


def _allowed_methods(request: Request) -> list[str]:
    """Asks all routes: the first one whose path fits knows only its own method."""
    return [
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.router.routes
        )
    ]


def _phrase(status: int | Literal["default"]) -> str:
    if status == "default":
        return "Any other error"
    return "Checksum Mismatch" if status == 460 else HTTPStatus(status).phrase


def install_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(core.ServiceError)
    async def _service_error(request: Request, error: core.ServiceError) -> JSONResponse:
        return problem_of(request, error)

    @app.exception_handler(RequestValidationError)
    async def _validation(request: Request, error: RequestValidationError) -> JSONResponse:
        # The first part of a location says whether it is in the body, the query or a header.
        found = ({**item, "loc": item["loc"][1:]} for item in error.errors())
        return problem_of(request, invalid_request(found))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        if error.status_code == 204:  # not an error
            return Response(status_code=204)
        if error.status_code == 400:  # FastAPI's status for a body that is not text
            return problem(request, 422, "invalid_request", "The body is not valid JSON.")
        code = HTTPStatus(error.status_code).name.lower()
        headers, detail = dict(error.headers or {}), str(error.detail)
        if error.status_code == 405:
            headers["Allow"] = allowed = ", ".join(_allowed_methods(request))
            detail = f"{request.method} is not possible here, only {allowed}."
        return problem(request, error.status_code, code, detail, headers=headers)

    @app.exception_handler(DataError)
    async def _not_storable(request: Request, _error: DataError) -> JSONResponse:
        detail = "A value cannot be stored, such as a text with a zero byte."
        return problem(request, 422, "invalid_request", detail)

    @app.exception_handler(InterfaceError)
    @app.exception_handler(OperationalError)
    @app.exception_handler(PoolTimeout)  # all connections wait for a database that does not respond
    async def _database(request: Request, error: SQLAlchemyError) -> JSONResponse:
        return database_problem(request, error)

    @app.exception_handler(Exception)
    async def _unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("unexpected_error", exc_info=error, path=request.url.path)
        return problem(
            request,
            500,
            "internal_error",
            "Internal error; see the log of the service.",
        )
