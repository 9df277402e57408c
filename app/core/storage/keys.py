"""Keys of the storage: every prefix, and every key that is built or parsed."""

import hashlib
import re

BLOBS = "sha256"
THUMBNAILS = "thumbnails"
EMBEDDINGS = "embeddings"
JOBS = "jobs"
MODELS = "models"
EXPORTS = "exports"
UPLOADS = "uploads"
LISTINGS = "listings"
HEALTH_PROBE = "health/probe"

_BLOB = re.compile(BLOBS + r"/[0-9a-f]{2}/([0-9a-f]{64})")


def blob_key(sha256: str) -> str:
    """The bytes of an image; images with the same bytes share them."""
    return f"{BLOBS}/{sha256[:2]}/{sha256}"


def blob_hash(key: str) -> str | None:
    """The SHA-256 that the bytes under this key must have; None for other keys."""
    found = _BLOB.fullmatch(key)
    return found[1] if found else None


def thumbnail_folder(sha256: str) -> str:
    """The thumbnails of all tenants; deleted together with the bytes of the image."""
    return f"{THUMBNAILS}/{sha256[:2]}/{sha256}"


def thumbnail_key(tenant: str, sha256: str, size: int) -> str:
    """Per tenant: the latency of shared ones would reveal that another tenant has the image."""
    owner = hashlib.sha256(tenant.encode()).hexdigest()[:16]
    return f"{thumbnail_folder(sha256)}/{owner}-{size}.webp"


def embedding_folder(content_hash: str) -> str:
    return f"{EMBEDDINGS}/{content_hash}"


def job_folder(job_id: str) -> str:
    return f"{JOBS}/{job_id}"


def model_folder(owner_id: str, number: int | None = None) -> str:
    """The owner is the job that trained the model, or its import. `number` is for a job that
    trains several models."""
    return f"{MODELS}/{owner_id}" if number is None else f"{MODELS}/{owner_id}-{number}"


def export_key(job_id: str, filename: str) -> str:
    return f"{EXPORTS}/{job_id}/{filename}"


def upload_key(upload_id: str) -> str:
    return f"{UPLOADS}/{upload_id}"


def listing_key(job_id: str) -> str:
    return f"{LISTINGS}/{job_id}.jsonl"


def prefix_of(key: str) -> str:
    """One of the prefixes above, if the key is valid."""
    return key.split("/", 1)[0]


def id_of(key: str) -> str:
    """The job, import, upload or content hash that a key or folder belongs to."""
    return key.split("/")[1].partition("-")[0]  # without the number of a model


def name_of(key: str) -> str:
    """The last part of a key."""
    return key.rsplit("/", 1)[1]


def parent_of(key: str, parts: int) -> str:
    """The first `parts` parts of a key."""
    return "/".join(key.split("/")[:parts])
