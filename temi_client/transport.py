"""Sends requests: retries with backoff, and errors from problem+json."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from temi_client.errors import ApiError, ServiceUnreachable

# A body is opened for each attempt: a file that was read halfway cannot be sent again.
Body = Callable[[], AbstractContextManager[dict[str, Any]]]

_RETRYABLE_EXCEPTIONS = (httpx.NetworkError, httpx.ConnectTimeout, httpx.RemoteProtocolError)
_RETRYABLE_STATUSES = {429, 503}
_MAX_RETRY_AFTER = 30.0
_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS = 0.25, 8.0
_random_backoff = wait_random_exponential(multiplier=_BACKOFF_SECONDS, max=_MAX_BACKOFF_SECONDS)


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
        """Returns the response if it is a success; retries broken connections, 429 and 503."""

        def attempt() -> httpx.Response:
            with body() as content:
                sent_headers = {**(headers or {}), **content.pop("headers", {})}
                request = self._client.build_request(
                    method, path, params=params, json=json, headers=sent_headers, **content
                )
                return self._request(request, stream=False)

        return self._retrying()(attempt) if retry else attempt()

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        params: dict[str, Any] | None = None,
    ) -> Iterator[httpx.Response]:
        """Yields a successful response with an unread body; retries until the headers arrive."""

        def attempt() -> httpx.Response:
            request = self._client.build_request("GET", path, params=params, headers=headers)
            return self._request(request, stream=True)

        response = self._retrying()(attempt)
        try:
            yield response
        except httpx.TransportError as error:
            raise unreachable(self.base_url, error) from error
        finally:
            response.close()

    def _request(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
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
            retry=retry_if_exception(is_retryable),
            stop=stop_after_attempt(self._retries + 1),
            wait=_retry_delay,
            reraise=True,
        )


class Backoff:
    """Retry policy of long transfers: limits consecutive failures; progress resets the count."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._failures = 0

    def reset(self) -> None:
        self._failures = 0

    def wait_or_raise(self, error: ApiError | ServiceUnreachable) -> None:
        """Sleeps before the next attempt; raises the error after too many failures."""
        self._failures += 1
        if self._failures > self._retries:
            raise error
        time.sleep(self._delay(error))

    def _delay(self, error: ApiError | ServiceUnreachable) -> float:
        requested = _requested_delay(error)
        if requested is not None:
            return requested
        return min(_BACKOFF_SECONDS * 2.0**self._failures, _MAX_BACKOFF_SECONDS)


def unreachable(base_url: str, error: httpx.TransportError) -> ServiceUnreachable:
    return ServiceUnreachable(base_url, str(error) or type(error).__name__)


def api_error(response: httpx.Response) -> ApiError:
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {}  # the response of a proxy
    detail = problem.get("detail") or problem.get("title") or response.text[:300]
    return ApiError(
        status=response.status_code,
        code=str(problem.get("code") or "http_error"),
        detail=str(detail or response.reason_phrase),
        request_id=problem.get("request_id") or response.headers.get("X-Request-ID"),
        errors=[error for error in problem.get("errors") or [] if isinstance(error, dict)],
        retry_after=_retry_after(response),
    )


def is_retryable(error: BaseException) -> bool:
    if isinstance(error, ServiceUnreachable):
        # A read timeout is not retried: the service may still be working on the request.
        return isinstance(error.__cause__, _RETRYABLE_EXCEPTIONS)
    if isinstance(error, ApiError):
        if error.code == "quota_exceeded":  # stays so until data is deleted
            return False
        # An earlier attempt of this call may still be running in the service.
        return error.status in _RETRYABLE_STATUSES or error.code == "idempotency_in_progress"
    return False


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers.get("Retry-After", "")))
    except ValueError:
        return None  # absent, or a date, which the service never sends


def _retry_delay(state: RetryCallState) -> float:
    requested = _requested_delay(state.outcome.exception() if state.outcome else None)
    return _random_backoff(state) if requested is None else requested


def _requested_delay(error: BaseException | None) -> float | None:
    """Returns the Retry-After seconds of the response, at most `_MAX_RETRY_AFTER`."""
    requested = error.retry_after if isinstance(error, ApiError) else None
    return None if requested is None else min(requested, _MAX_RETRY_AFTER)
