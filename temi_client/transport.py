"""Sending one request: retries, and errors from problem+json."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from temi_client.errors import ApiError, ServiceUnreachable

# A body is opened anew for every attempt: a file that was read halfway cannot be sent again.
Body = Callable[[], AbstractContextManager[dict[str, Any]]]

_BROKEN = (httpx.NetworkError, httpx.ConnectTimeout, httpx.RemoteProtocolError)
_BUSY = {429, 503}
_MAX_WAIT = 30.0
_backoff = wait_random_exponential(multiplier=0.25, max=8.0)


class Transport:
    def __init__(self, client: httpx.Client, retries: int) -> None:
        self._client = client
        self._retries = retries

    @property
    def base_url(self) -> str:
        return str(self._client.base_url).rstrip("/")

    @property
    def retries(self) -> int:
        return self._retries

    def send(
        self,
        method: str,
        path: str,
        *,
        body: Body = lambda: nullcontext({}),
        headers: dict[str, str] | None = None,
        params: dict[str, Any] | None = None,
        json: Any = None,
        retry: bool = True,
    ) -> httpx.Response:
        """The answer, if it is a good one; broken connections and a busy service are retried."""

        def attempt() -> httpx.Response:
            with body() as content:
                sent_headers = {**(headers or {}), **content.pop("headers", {})}
                request = self._client.build_request(
                    method, path, params=params, json=json, headers=sent_headers, **content
                )
                return self._answer(request, stream=False)

        return self._retrying()(attempt) if retry else attempt()

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        params: dict[str, Any] | None = None,
    ) -> Iterator[httpx.Response]:
        """A good answer whose body is still to be read; only its beginning is retried."""

        def attempt() -> httpx.Response:
            request = self._client.build_request("GET", path, params=params, headers=headers)
            return self._answer(request, stream=True)

        response = self._retrying()(attempt)
        try:
            yield response
        except httpx.TransportError as error:
            raise unreachable(self.base_url, error) from error
        finally:
            response.close()

    def _answer(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        try:
            response = self._client.send(request, stream=stream)
            if not response.is_success:
                response.read()
        except httpx.TransportError as error:
            raise unreachable(self.base_url, error) from error
        if not response.is_success:
            raise api_error(response)
        return response

    def _retrying(self) -> Retrying:
        return Retrying(
            retry=retry_if_exception(worth_retrying),
            stop=stop_after_attempt(self._retries + 1),
            wait=_wait,
            reraise=True,
        )


class Patience:
    """For long transfers: failures in a row are counted, progress makes them forgotten."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._failures = 0

    def progressed(self) -> None:
        self._failures = 0

    def wait_or_raise(self, error: ApiError | ServiceUnreachable) -> None:
        """Wait a moment before the next try, or give up with the error."""
        self._failures += 1
        if self._failures > self._retries:
            raise error
        time.sleep(self._pause(error))

    def _pause(self, error: ApiError | ServiceUnreachable) -> float:
        asked = error.retry_after if isinstance(error, ApiError) else None
        return min(0.25 * 2**self._failures, 8.0) if asked is None else min(asked, _MAX_WAIT)


def unreachable(base_url: str, error: httpx.TransportError) -> ServiceUnreachable:
    return ServiceUnreachable(base_url, str(error) or type(error).__name__)


def api_error(response: httpx.Response) -> ApiError:
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {}  # a proxy in between answers in its own words
    detail = problem.get("detail") or problem.get("title") or response.text[:300]
    return ApiError(
        status=response.status_code,
        code=str(problem.get("code") or "http_error"),
        detail=str(detail or response.reason_phrase),
        request_id=problem.get("request_id") or response.headers.get("X-Request-ID"),
        errors=[error for error in problem.get("errors") or [] if isinstance(error, dict)],
        retry_after=_retry_after(response),
    )


def worth_retrying(error: BaseException) -> bool:
    if isinstance(error, ServiceUnreachable):
        # A slow answer is not asked for again: the service may be busy with it.
        return isinstance(error.__cause__, _BROKEN)
    if isinstance(error, ApiError):
        if error.code == "quota_exceeded":  # somebody has to delete something first
            return False
        # An earlier attempt of this call may still be running on the other side.
        return error.status in _BUSY or error.code == "idempotency_in_progress"
    return False


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers.get("Retry-After", "")))
    except ValueError:
        return None  # absent, or a date, which our service never sends


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, ApiError) else None
    return min(asked, _MAX_WAIT) if asked is not None else _backoff(state)
