"""Exceptions of the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from temi_client.models.jobs import Job


class TemiClientError(Exception):
    """Base class of the client's exceptions."""


class ServiceUnreachable(TemiClientError):
    """The service did not answer, or the connection broke."""

    def __init__(self, base_url: str, reason: str) -> None:
        super().__init__(f"No answer from {base_url}: {reason}")
        self.base_url = base_url
        self.reason = reason


class UploadInterrupted(ServiceUnreachable):
    """A resumable upload was interrupted; continue it with `upload_id`."""

    def __init__(self, base_url: str, reason: str, upload_id: str) -> None:
        super().__init__(base_url, reason)
        self.upload_id = upload_id


class ApiError(TemiClientError):
    """The service answered with an error (application/problem+json)."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        request_id: str | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{detail} ({status} {code})")
        self.status = status
        self.code = code
        self.detail = detail
        self.request_id = request_id
        self.errors = tuple(errors)
        self.retry_after = retry_after


class CorruptDownload(TemiClientError):
    """The downloaded file does not have the announced size or hash; it was deleted."""

    def __init__(self, path: str, expected: str, found: str) -> None:
        super().__init__(
            f"{path} is damaged after the download: its SHA-256 is {found}, expected {expected}"
        )
        self.expected = expected
        self.found = found


class JobFailed(TemiClientError):
    """A job failed or was cancelled; `job.error` has the reason."""

    def __init__(self, job: Job) -> None:
        reason = f": {job.error.detail} ({job.error.code})" if job.error else ""
        super().__init__(f"Job {job.id} {job.status}{reason}")
        self.job = job
