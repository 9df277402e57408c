"""Every setting of the service, read once from `TEMI_...` variables and `.env`."""

import base64
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.core.platform.resources import RESOURCES

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB


def _split(value: Any) -> Any:
    """`a, b` of a variable to a list."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Folders = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_split)]


class Settings(BaseSettings):
    """The defaults run everything on one machine with no other server."""

    model_config = SettingsConfigDict(
        env_prefix="TEMI_", env_file=".env", extra="ignore", frozen=True
    )

    data_dir: Path = Field(
        default=Path("data"), description="Folder for database, blobs and artifacts."
    )
    umask: str = Field(
        default="077",
        pattern="^0?[0-7]{3}$",
        description="Permissions, in octal, that files and folders of the service do not get; "
        "`077` keeps them from all other users of the machine, `027` lets the group read.",
    )
    database_url: str = Field(
        default="",
        description="SQLAlchemy address; empty means SQLite in the data folder.",
    )
    database_seconds: float = Field(
        default=60.0, gt=0, description="A statement that takes PostgreSQL longer is given up."
    )
    broker_url: str = Field(
        default="filesystem://",
        description="Celery broker: `filesystem://` (in the data folder) or `redis://...`.",
    )
    storage_url: str = Field(
        default="",
        description="Where images and artifacts are: `s3://bucket/prefix`; empty means the data "
        "folder.",
    )
    s3_endpoint: str = Field(
        default="", description="Address of an S3-compatible store; empty means Amazon's."
    )
    s3_region: str = Field(default="", description="Its region; empty means `AWS_REGION`'s.")
    s3_access_key: SecretStr | None = Field(
        default=None, description="Its key; without one, the usual AWS ways to have one are tried."
    )
    s3_secret_key: SecretStr | None = Field(default=None, description="The secret of that key.")
    s3_part_bytes: int = Field(
        default=16 * MiB, ge=5 * MiB, description="Larger files are sent to S3 in parts of this."
    )
    cache_bytes: int = Field(
        default=20 * GiB, gt=0, description="Disk for copies of files in S3; the least used go."
    )
    upload_dir: Path | None = Field(
        default=None,
        description="Folder in which resumable uploads grow, one for all hosts of the API; "
        "not set: in the data folder.",
    )
    host: str = Field(default="127.0.0.1", description="Address the API binds to.")
    port: int = Field(default=8000, ge=1, le=65535, description="Port the API binds to.")
    allowed_hosts: Names = Field(
        default=(),
        description="Host names, by comma, that the API answers to besides `localhost` and "
        "loopback addresses; `*.example.org` and `*` are understood. Empty: no other as long as "
        "there is no key, any with a key.",
    )
    api_key: SecretStr | None = Field(
        default=None,
        description="A key that may do everything in the tenant `default`; more are made with "
        "`temi keys create`.",
    )
    log_format: str = Field(
        default="console", pattern="^(console|json)$", description="`console` or `json`."
    )
    log_level: str = Field(
        default="info",
        pattern="^(debug|info|warning|error)$",
        description="`debug`, `info`, `warning` or `error`; libraries speak from warnings upwards.",
    )
    metrics_port: int = Field(
        default=0, ge=0, le=65535, description="Port of a worker's `/metrics`; 0 means none."
    )
    metrics_host: str = Field(
        default="127.0.0.1", description="Address that a worker's `/metrics` binds to."
    )
    tracing: str = Field(
        default="off",
        pattern="^(off|otlp|console)$",
        description="Where OpenTelemetry spans go: `otlp` (see `OTEL_EXPORTER_OTLP_ENDPOINT`), "
        "`console` or `off`.",
    )

    device: str = Field(default="auto", description="`auto`, `cpu`, `cuda` or `cuda:N`.")
    torch_threads: int = Field(
        default=0,
        ge=0,
        description="CPU threads to compute with; 0 means one a core. Results do not depend on it.",
    )
    train_processes: int = Field(
        default=0,
        ge=0,
        description="Processes that share the heads of one training; 0 means one a GPU of this "
        "machine, and one without a GPU.",
    )
    weights_dir: Path | None = Field(
        default=None, description="Folder with weight files of further backbones."
    )
    embed_shard: int = Field(
        default=1024, ge=1, description="Images a resumable piece of the embed stage."
    )
    mine_shard: int = Field(
        default=100_000,
        ge=1,
        description="Rows a piece of the mine stage; a collection of no more is not cut.",
    )
    mine_bytes: int = Field(
        default=8 * GiB,
        gt=0,
        description="Memory for the features while neighbors are searched. More are held as "
        "float16, and beyond that all are compared with all. Of all workers alike, so that they "
        "find the same neighbors.",
    )
    checkpoint_seconds: float = Field(
        default=15.0, gt=0, description="Time between training checkpoints."
    )

    max_connections: int = Field(
        default=1000,
        gt=0,
        description="Most connections of one API process; idle ones make room, then 503.",
    )
    max_address_connections: int = Field(
        default=0,
        ge=0,
        description="Most connections of one client address; 0 means no bound, as behind a proxy, "
        "whose address all clients share.",
    )
    max_header_bytes: int = Field(
        default=64 * 1024, ge=1024, description="Longest head of a request; more get 431."
    )
    head_seconds: float = Field(
        default=10.0, gt=0, description="Time for the head of a request to arrive; then 408."
    )
    keep_alive_seconds: float = Field(
        default=15.0, gt=0, description="An idle connection is closed after this time."
    )
    stalled_seconds: float = Field(
        default=60.0,
        gt=0,
        description="A client that reads nothing of its answer for this time is disconnected.",
    )
    body_seconds: float = Field(
        default=30.0,
        gt=0,
        description="Time for a body to arrive, besides what its size gives it; then 408.",
    )
    body_bytes_per_second: int = Field(
        default=8192, gt=0, description="Slowest sender of a large body that is waited for."
    )
    max_json_bytes: int = Field(
        default=1 * MiB,
        gt=0,
        description="Largest body of a request that is neither an upload nor a predict request.",
    )
    max_body_bytes: int = Field(default=64 * GiB, gt=0, description="Largest upload.")
    max_parts: int = Field(default=10_000, gt=0, description="Most files in one multipart upload.")
    max_image_bytes: int = Field(default=100 * MiB, gt=0, description="Largest image file.")
    max_image_pixels: int = Field(
        default=50_000_000, gt=0, description="Most pixels an image may claim in its header."
    )
    decode_seconds: float = Field(
        default=10.0,
        gt=0,
        description="Longest processor time to decode one image; then its process is ended, and "
        "the image is refused. A 50 megapixel photo takes one or two.",
    )
    decode_bytes: int = Field(
        default=300 * MiB,
        ge=16 * MiB,
        description="Most memory to decode one image, beside its file. Enough for 50 megapixels of "
        "JPEG, PNG, TIFF, BMP, GIF or HEIF, 35 of AVIF and 19 of WebP.",
    )
    max_archive_members: int = Field(
        default=5_000_000, gt=0, description="Most members of an archive."
    )
    max_archive_ratio: float = Field(
        default=100.0, gt=1, description="Most bytes out of an archive for each byte in it."
    )
    # A person or a script with a sensible plan stays far below it; each waiting job costs a row.
    max_open_jobs: int = Field(
        default=100,
        ge=1,
        description="Most unfinished jobs of a tenant, waiting and running; more get 429.",
    )
    # A fixed size and no share of this machine's memory: the same request gets the same answer
    # everywhere. 16 heads for 25,000 clusters of a million images stay below it.
    max_job_bytes: int = Field(
        default=16 * GiB,
        gt=0,
        description="Most memory that a job's training may be estimated to take; more get 422. "
        "Not to be set above the memory of the workers.",
    )
    max_archive_name_bytes: int = Field(
        default=64 * KiB,  # what a zip can hold; no file system has paths of more than 4 KiB
        gt=0,
        description="Longest name of a member; a longer one refuses the archive.",
    )
    max_archive_header_bytes: int = Field(
        default=1 * MiB,  # room for the attributes that macOS and SELinux put there
        ge=4 * KiB,
        description="Most bytes of the headers of one member of a tar.",
    )
    max_archive_entry_bytes: int = Field(
        default=4 * KiB,  # the usual entry has about 100
        ge=64,
        description="Most bytes of a zip's directory for each member that it counts, on average.",
    )
    max_archive_window_bytes: int = Field(
        default=128 * MiB,  # `xz -9` takes 65 MiB, `zstd --long` 128 MiB
        ge=8 * MiB,
        description="Most memory for the window of a tar.xz or tar.zst.",
    )
    max_name_bytes: int = Field(
        default=1 * KiB,  # a page of 1,000 rows stays at about a megabyte
        ge=64,
        description="Longest name or label of an image that is kept whole; a longer one is cut.",
    )
    max_attributes_bytes: int = Field(
        default=8 * KiB,  # a page of 1,000 rows stays below ten megabytes
        ge=64,
        description="Most bytes, as JSON, of what a manifest tells of one image besides its label; "
        "more is left out, with a note.",
    )
    ingest_ahead_bytes: int = Field(
        default=64 * MiB,  # beside the member that is being read and the images being decoded
        gt=0,
        description="Bytes of images that an ingest reads ahead of decoding them.",
    )
    max_bad_fraction: float = Field(
        default=0.5, ge=0, le=1, description="Share of bad files above which a dataset fails."
    )
    max_model_bytes: int = Field(
        default=8 * GiB, gt=0, description="Largest model file that may be imported."
    )
    max_predict_files: int = Field(
        default=256, gt=0, description="Most images in one predict request."
    )
    max_predict_bytes: int = Field(
        default=256 * MiB, gt=0, description="Largest body of one predict request."
    )
    max_predict_features: int = Field(
        default=10_000, gt=0, description="Most embeddings in one predict request."
    )
    predict_queue: int = Field(
        default=256, gt=0, description="Images that may wait for a prediction; more get 429."
    )
    predict_queue_bytes: int = Field(
        default=512 * MiB, gt=0, description="Bytes of images that may wait; more get 429."
    )
    predict_arriving_bytes: int = Field(
        default=512 * MiB,
        gt=0,
        description="Bytes of predict requests that are still arriving; more get 429.",
    )
    predict_key_share: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Share of the three bounds above that one key may take while another key "
        "waits.",
    )
    predict_seconds: float = Field(
        default=30.0, gt=0, description="Longest time to answer a predict request; then 429."
    )
    predict_load_seconds: float = Field(
        default=20.0,
        gt=0,
        description="Longest wait of a request for its model to be loaded; then 503.",
    )
    predict_cache_bytes: int = Field(
        default=4 * GiB, gt=0, description="Memory for loaded models; the least used make room."
    )
    predict_idle_seconds: float = Field(
        default=1800.0, gt=0, description="A model that nobody asks for is unloaded after this."
    )
    max_open_downloads: int = Field(
        default=100,
        ge=1,
        description="Downloads that one key, or one address without a key, may have open at once "
        "in a process of the API; more get 429. A browser opens six.",
    )
    max_event_streams: int = Field(
        default=100,
        ge=1,
        description="Event streams that one key, or one address without a key, may have open at "
        "once in a process of the API; more get 429. A page opens three.",
    )
    api_workers: int = Field(
        default=1,
        ge=1,
        description="Processes of the API; each serves models with its share of the cores.",
    )

    drain_seconds: int = Field(
        default=25,
        ge=1,
        description="Time for requests in flight when the API is told to stop.",
    )

    source_folders: Folders = Field(
        default=(), description="Folders, by comma, that datasets may be read from; empty: none."
    )
    source_buckets: Names = Field(
        default=(),
        description="`s3://bucket/prefix`, by comma, that datasets may be read from; empty: none.",
    )
    source_urls: bool = Field(
        default=False, description="Let datasets be read from public web addresses."
    )
    max_urls: int = Field(default=10_000, gt=0, description="Most addresses in one dataset.")
    url_seconds: float = Field(default=30.0, gt=0, description="Longest time to fetch one address.")
    upload_hours: float = Field(
        default=48.0, gt=0, description="A resumable upload is dropped after this time."
    )
    delete_grace_seconds: float = Field(
        default=300.0,
        ge=0,
        description="Time from deleting an image to removing its bytes from the storage.",
    )
    orphan_hours: float = Field(
        default=24.0,
        ge=1,
        description="Files that nothing refers to are removed when they are older than this; "
        "no upload or job leaves more time between a file and its row.",
    )
    webhook_hosts: Names = Field(
        default=(), description="Hosts, by comma, that may be told of finished jobs; empty: none."
    )
    webhook_secret: SecretStr | None = Field(
        default=None,
        description="Signs webhooks (Standard Webhooks): `whsec_` and base64 of 24 to 64 bytes.",
    )

    lease_seconds: float = Field(
        default=60.0, gt=0, description="A job is another worker's after this silence."
    )
    heartbeat_seconds: float = Field(default=10.0, gt=0, description="Longest pause of a worker.")
    self_kill_seconds: float = Field(
        default=42.0,
        gt=0,
        description="A worker that cannot reach the database gives its job up after this time.",
    )
    maintenance_seconds: float = Field(
        default=5.0, gt=0, description="Time between looks for waiting or orphaned jobs."
    )
    max_crashes: int = Field(
        default=3, ge=1, description="Crashes without progress before a job fails."
    )
    # The longest silence of a healthy stage that was measured or estimated at ten million images
    # is some minutes; half an hour leaves room for slow disks and crowded machines.
    stall_seconds: float = Field(
        default=1800.0,
        gt=0,
        description="A job whose work makes no progress for this time is ended as failed, with "
        "the code `stalled`; the worker goes on with other jobs.",
    )
    worker_takes: Names = Field(
        default=RESOURCES,
        description="What a worker takes, by comma: `cpu` (ingest, map, export, shares of mining), "
        "`gpu` (all that trains or embeds; the CPU does it where there is no GPU).",
    )

    @field_validator("api_key")
    @classmethod
    def _key_is_long(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and len(key.get_secret_value()) < 16:
            raise ValueError("must have at least 16 characters")
        return key

    @field_validator("storage_url")
    @classmethod
    def _storage_is_a_bucket(cls, url: str) -> str:
        if url and not re.fullmatch(r"s3://[^/?#]+(/[^/?#]+)*/?", url):
            raise ValueError("must look like s3://bucket/prefix")
        return url

    @field_validator("worker_takes")
    @classmethod
    def _something_is_taken(cls, takes: tuple[str, ...]) -> tuple[str, ...]:
        if not takes or not set(takes) <= set(RESOURCES):
            raise ValueError(f"choose from {', '.join(RESOURCES)}")
        return takes

    @field_validator("webhook_secret")
    @classmethod
    def _secret_can_sign(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is None:
            return None
        text = secret.get_secret_value().removeprefix("whsec_")
        try:
            size = len(base64.b64decode(text + "=" * (-len(text) % 4), validate=True))
        except ValueError:
            size = 0
        if not 24 <= size <= 64:
            raise ValueError("must be `whsec_` and base64 of 24 to 64 bytes")
        return secret

    @model_validator(mode="after")
    def _key_has_its_secret(self) -> "Settings":
        if (self.s3_access_key is None) != (self.s3_secret_key is None):
            raise ValueError("TEMI_S3_ACCESS_KEY and TEMI_S3_SECRET_KEY go together")
        return self

    @model_validator(mode="after")
    def _times_fit(self) -> "Settings":
        if not self.heartbeat_seconds < self.self_kill_seconds < self.lease_seconds:
            raise ValueError(
                "TEMI_HEARTBEAT_SECONDS < TEMI_SELF_KILL_SECONDS < TEMI_LEASE_SECONDS must hold, "
                "or two workers could hold one job"
            )
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
        """What of the storage is on this machine: all of it, or copies."""
        return self.cache_dir if self.storage_url else self.blob_dir

    @property
    def temporary_dir(self) -> Path:
        """On the same disk as the blobs, so that a finished file is renamed into place."""
        return self.local_dir / "tmp"

    @property
    def staging_dir(self) -> Path:
        return self.upload_dir or self.local_dir / "uploads"

    @property
    def broker_dir(self) -> Path:
        return self.data_dir / "broker"

    @property
    def threads(self) -> int:
        return self.torch_threads or os.cpu_count() or 1

    @property
    def predict_threads(self) -> int:
        """The processes of the API share the cores instead of fighting over them."""
        return max(1, self.threads // self.api_workers)

    @property
    def loopback_only(self) -> bool:
        return self.host in {"127.0.0.1", "localhost", "::1"}


@lru_cache
def get_settings() -> Settings:
    """Files of `TEMI_SECRETS_DIR`, such as `temi_api_key`, stand in for variables not set."""
    folder = Path(os.environ.get("TEMI_SECRETS_DIR", "/run/secrets"))
    return Settings(_secrets_dir=folder) if folder.is_dir() else Settings()
