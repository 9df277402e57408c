"""The errors of the service, with stable codes. The API maps each to an HTTP status."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FieldError:
    field: str
    message: str


class ServiceError(Exception):
    """Base of all errors that are shown to users."""

    code = "internal_error"
    retry_after: int | None = None  # seconds

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
    """The request has no API key."""

    code = "unauthorized"


class InvalidApiKey(Unauthorized):
    """The API key is unknown, revoked or expired."""

    code = "invalid_api_key"


class Forbidden(ServiceError):
    code = "forbidden"


class FirstKeyIsLocal(Forbidden):
    """The first key is created on the machine of the service, not by a request."""

    code = "first_key_is_local"


class ForeignOrigin(Forbidden):
    """A browser sent the request for a page of another site."""

    code = "foreign_origin"


class HostNotAllowed(ServiceError):
    """The Host header is not one of TEMI_ALLOWED_HOSTS."""

    code = "host_not_allowed"


class RateLimited(ServiceError):
    code = "rate_limited"

    def __init__(self, detail: str, *, retry_after: int) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class QuotaExceeded(ServiceError):
    code = "quota_exceeded"
    retry_after = 3600  # space is freed only by deleting


class TooManyJobs(ServiceError):
    """The tenant has TEMI_MAX_OPEN_JOBS unfinished jobs."""

    code = "too_many_jobs"
    retry_after = 30  # until a job ends


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


class NothingToRedo(Conflict):
    code = "nothing_to_redo"


class FeaturesMissing(Conflict):
    code = "features_missing"


class ClusteringInUse(Conflict):
    code = "clustering_in_use"


class VersionInUse(Conflict):
    code = "version_in_use"


class NothingToRollBack(Conflict):
    code = "nothing_to_roll_back"


class NotPredicted(Conflict):
    """One of the versions to compare has no predictions for the images."""

    code = "not_predicted"


class TooFewReviews(Conflict):
    """A calibration needs more reviewed images."""

    code = "too_few_reviews"


class ProposalDecided(Conflict):
    """The proposal was accepted elsewhere, or dismissed."""

    code = "proposal_decided"


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
    """The training needs more memory than TEMI_MAX_JOB_BYTES."""

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
    """The body stopped arriving, or arrives too slowly."""

    code = "body_timeout"


class TooManyParts(ServiceError):
    code = "too_many_parts"


class StorageFull(ServiceError):
    code = "storage_full"


class StorageUnavailable(ServiceError):
    """The storage server is unreachable or refuses access."""

    code = "storage_unavailable"


class StorageCorrupt(ServiceError):
    """A stored file does not have its SHA-256."""

    code = "storage_corrupt"


class ImageMissing(ServiceError):
    """The bytes of an image are missing in the storage."""

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
    """The processes of the job keep crashing."""

    code = "worker_crashed"


class LeaseLost(ServiceError):
    """Another worker has claimed the job; writes of this one have no effect."""

    code = "lease_lost"


class RetentionLost(ServiceError):
    """A retention lock has expired."""

    code = "retention_lost"


class BackupInvalid(ServiceError):
    """The backup is damaged, or is not a backup of this service."""

    code = "backup_invalid"


class DatabaseNewer(ServiceError):
    """The tables were upgraded by a later release."""

    code = "database_newer"


class NotEmpty(Conflict):
    """The instance has rows; a backup is restored only into an empty one."""

    code = "not_empty"


class ArchiveRejected(ServiceError):
    """The upload as a whole is refused."""


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
    """One file is refused; the ingest continues with the others."""


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
    """Refuses a whole request, or one URL of many."""

    code = "url_forbidden"


class SourceForbidden(InvalidRequest, ImageRejected):
    """Refuses a whole request, or one file of many."""

    code = "source_forbidden"
