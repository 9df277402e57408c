"""What can go wrong, by stable code. The HTTP status of each lives at the border."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FieldError:
    field: str
    message: str


class ServiceError(Exception):
    """Base of every error that a user may see."""

    code = "internal_error"
    retry_after: int | None = None  # seconds, where waiting may help

    def __init__(self, detail: str, *, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)

    def as_dict(self) -> dict[str, object]:
        return {"code": self.code, "detail": self.detail}


class NotFound(ServiceError):
    code = "not_found"


class InvalidRequest(ServiceError):
    code = "invalid_request"

    @classmethod
    def field(cls, field: str, message: str) -> "InvalidRequest":
        return cls(f"{field}: {message}", errors=[FieldError(field, message)])


class Unauthorized(ServiceError):
    code = "unauthorized"


class Forbidden(ServiceError):
    code = "forbidden"


class FirstKeyIsLocal(Forbidden):
    """The first key is made on the machine of the service, never by a request."""

    code = "first_key_is_local"


class ForeignOrigin(Forbidden):
    """A page of another site made a browser send the request."""

    code = "foreign_origin"


class HostNotAllowed(ServiceError):
    """The request names a host that this service does not answer to."""

    code = "host_not_allowed"


class RateLimited(ServiceError):
    code = "rate_limited"

    def __init__(self, detail: str, *, retry_after: int) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class QuotaExceeded(ServiceError):
    code = "quota_exceeded"
    retry_after = 3600  # nothing gets free by itself: somebody has to delete something


class TooManyJobs(ServiceError):
    """The tenant has as many unfinished jobs as it may have."""

    code = "too_many_jobs"
    retry_after = 30  # some job will end; which one and when, its tenant knows best


class Conflict(ServiceError):
    code = "conflict"


class DatasetNotReady(Conflict):
    code = "dataset_not_ready"


class DatasetInUse(Conflict):
    code = "dataset_in_use"


class JobFinished(Conflict):
    code = "job_finished"


class JobUnfinished(Conflict):
    code = "job_unfinished"


class NotRetryable(Conflict):
    code = "not_retryable"


class NothingToUndo(Conflict):
    code = "nothing_to_undo"


class FeaturesMissing(Conflict):
    code = "features_missing"


class ClusteringInUse(Conflict):
    code = "clustering_in_use"


class VersionInUse(Conflict):
    code = "version_in_use"


class NothingToRollBack(Conflict):
    code = "nothing_to_roll_back"


class NotPredicted(Conflict):
    """Two versions cannot be compared on images that one of them has never seen."""

    code = "not_predicted"


class UploadOffset(Conflict):
    code = "upload_offset"


class UploadIncomplete(Conflict):
    code = "upload_incomplete"


class UploadLocked(ServiceError):
    code = "upload_locked"


class ChecksumMismatch(ServiceError):
    code = "checksum_mismatch"


class TusVersion(ServiceError):
    code = "tus_version"


class UnsupportedMediaType(ServiceError):
    code = "unsupported_media_type"


class RevisionRequired(ServiceError):
    code = "revision_required"


class RevisionStale(ServiceError):
    code = "revision_stale"


class NotAcceptable(ServiceError):
    code = "not_acceptable"


class IdempotencyInProgress(Conflict):
    code = "idempotency_in_progress"


class JobTooLarge(InvalidRequest):
    """The training would take more memory than the server allows."""

    code = "job_too_large"


class IdempotencyMismatch(InvalidRequest):
    code = "idempotency_mismatch"


class ManifestInvalid(InvalidRequest):
    code = "manifest_invalid"


class ModelFileInvalid(InvalidRequest):
    code = "model_file_invalid"


class BodyTooLarge(ServiceError):
    code = "body_too_large"


class BodyTimeout(ServiceError):
    """The sender stopped, or sends more slowly than is waited for."""

    code = "body_timeout"


class TooManyParts(ServiceError):
    code = "too_many_parts"


class StorageFull(ServiceError):
    code = "storage_full"


class StorageUnavailable(ServiceError):
    """The server that keeps the files cannot be reached, or does not let us in."""

    code = "storage_unavailable"


class StorageCorrupt(ServiceError):
    """A file is not what was written."""

    code = "storage_corrupt"


class ImageMissing(ServiceError):
    """The bytes of an image are gone from the storage."""

    code = "image_missing"


class QueueFull(ServiceError):
    code = "queue_full"


class DeadlineExceeded(QueueFull):
    code = "deadline_exceeded"


class ModelLoading(ServiceError):
    code = "model_loading"


class ModelIntegrity(ServiceError):
    code = "model_integrity"


class PredictorUnavailable(ServiceError):
    code = "predictor_unavailable"


class WorkerCrashed(ServiceError):
    """Something in the job ends the processes that work on it."""

    code = "worker_crashed"


class LeaseLost(ServiceError):
    """Another worker holds the job now; whatever this one still wants to write is void."""

    code = "lease_lost"


class RetentionLost(ServiceError):
    """Files were to stay for a while, and nobody asked for more time."""

    code = "retention_lost"


class BackupInvalid(ServiceError):
    """The archive is damaged, or was not made by this service."""

    code = "backup_invalid"


class NotEmpty(Conflict):
    """A backup is restored into an instance without any rows."""

    code = "not_empty"


class ArchiveRejected(ServiceError):
    """The upload as a whole cannot be used."""


class ArchiveInvalid(ArchiveRejected):
    code = "archive_invalid"


class ArchiveTooLarge(ArchiveRejected):
    code = "archive_too_large"


class ArchiveUnsafePath(ArchiveRejected):
    code = "archive_unsafe_path"


class DatasetEmpty(ArchiveRejected):
    code = "dataset_empty"


class TooManyBadFiles(ArchiveRejected):
    code = "too_many_bad_files"


class ImageRejected(ServiceError):
    """One file cannot be used; the others go on."""


class ImageUndecodable(ImageRejected):
    code = "image_undecodable"


class ImageTooLarge(ImageRejected):
    code = "image_too_large"


class UnsupportedFormat(ImageRejected):
    code = "unsupported_format"


class SourceUnreadable(ImageRejected):
    code = "source_unreadable"


class UrlUnreachable(ImageRejected):
    code = "url_unreachable"


class UrlForbidden(InvalidRequest, ImageRejected):
    """Of a request as a whole, or of one address among many."""

    code = "url_forbidden"


class SourceForbidden(InvalidRequest, ImageRejected):
    """Of a request as a whole, or of one file among many."""

    code = "source_forbidden"
