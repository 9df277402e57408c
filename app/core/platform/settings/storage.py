"""Where rows, messages and files are stored, and when files are deleted."""

import re
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from app.core.platform.settings.types import GiB, MiB


class StorageSettings(BaseSettings):
    data_dir: Path = Field(
        default=Path("data"), description="Folder for database, blobs and artifacts."
    )
    umask: str = Field(
        default="077",
        pattern="^0?[0-7]{3}$",
        description="Octal umask of the files and folders that the service creates: with `077` "
        "only its user can read them, with `027` also its group.",
    )
    database_url: str = Field(
        default="", description="SQLAlchemy URL; empty means SQLite in the data folder."
    )
    database_seconds: float = Field(
        default=60.0, gt=0, description="Timeout of a statement in PostgreSQL."
    )
    broker_url: str = Field(
        default="filesystem://",
        description="Celery broker: `filesystem://` (in the data folder) or `redis://...`.",
    )
    storage_url: str = Field(
        default="",
        description="Where images and artifacts are stored: `s3://bucket/prefix`; empty means the "
        "data folder.",
    )
    s3_endpoint: str = Field(
        default="", description="URL of an S3-compatible store; empty means Amazon S3."
    )
    s3_region: str = Field(default="", description="S3 region; empty means `AWS_REGION`.")
    s3_access_key: SecretStr | None = Field(
        default=None,
        description="S3 access key; without it, the standard AWS credential sources are used.",
    )
    s3_secret_key: SecretStr | None = Field(default=None, description="S3 secret key.")
    s3_part_bytes: int = Field(
        default=16 * MiB,
        ge=5 * MiB,
        description="Part size of multipart uploads to S3; smaller files are sent whole.",
    )
    cache_bytes: int = Field(
        default=20 * GiB,
        gt=0,
        description="Disk space for cached files of S3; the least recently used are evicted.",
    )
    upload_dir: Path | None = Field(
        default=None,
        description="Folder for unfinished resumable uploads, shared by all hosts of the API; "
        "if not set, in the data folder.",
    )
    upload_hours: float = Field(
        default=48.0, gt=0, description="A resumable upload expires after this time."
    )
    delete_grace_seconds: float = Field(
        default=300.0,
        ge=0,
        description="Time from deleting an image to deleting its bytes from the storage.",
    )
    orphan_hours: float = Field(
        default=24.0,
        ge=1,
        description="Files that no row refers to are deleted when they are older than this. It "
        "must exceed the time between writing a file and committing its row.",
    )

    @field_validator("storage_url")
    @classmethod
    def _check_storage_url(cls, url: str) -> str:
        if url and not re.fullmatch(r"s3://[^/?#]+(/[^/?#]+)*/?", url):
            raise ValueError("must look like s3://bucket/prefix")
        return url

    @model_validator(mode="after")
    def _check_s3_keys(self) -> Self:
        if (self.s3_access_key is None) != (self.s3_secret_key is None):
            raise ValueError("set both TEMI_S3_ACCESS_KEY and TEMI_S3_SECRET_KEY, or neither")
        return self

    @property
    def sqlalchemy_url(self) -> str:
        if self.database_url:
            return self.database_url
        return f"sqlite:///{self.data_dir.absolute() / 'temi.db'}"

    @property
    def blob_dir(self) -> Path:
        return self.data_dir / "blobs"

    @property
    def cache_dir(self) -> Path:
        return self.data_dir / "cache"

    @property
    def local_dir(self) -> Path:
        """The local part of the storage: all of it, or the cache of a bucket."""
        return self.cache_dir if self.storage_url else self.blob_dir

    @property
    def temporary_dir(self) -> Path:
        """On the same disk as the blobs, so that a finished file is renamed into place."""
        return self.local_dir / "tmp"

    @property
    def staging_dir(self) -> Path:
        return self.upload_dir or self.local_dir / "uploads"

    @property
    def has_local_workers(self) -> bool:
        """Whether all workers run on this machine, as with `temi serve`."""
        return self.broker_url.startswith("filesystem:")

    @property
    def broker_dir(self) -> Path:
        return self.data_dir / "broker"
