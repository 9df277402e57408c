"""The API server: addresses, access, limits of connections and bodies; logs, metrics, traces."""

import re

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings

from app.core.platform.settings.types import GiB, MiB, Names, UrlBase

# Lower case, without a path; a browser leaves out the default port.
_ORIGIN = re.compile(
    r"(?!http:.*:80$|https:.*:443$)https?://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?"
)


class HttpSettings(BaseSettings):
    host: str = Field(default="127.0.0.1", description="Address the API binds to.")
    port: int = Field(default=8000, ge=1, le=65535, description="Port the API binds to.")
    api_workers: int = Field(
        default=1,
        ge=1,
        description="API processes; each serves models with its share of the cores.",
    )
    drain_seconds: int = Field(
        default=25,
        ge=1,
        description="Time to finish the requests in flight when the API is stopped.",
    )
    allowed_hosts: Names = Field(
        default=(),
        description="Host names, comma-separated, that the API answers to besides `localhost` and "
        "loopback addresses; `*.example.org` and `*` are allowed. If empty: none as long as no "
        "key exists, any with a key.",
    )
    cors_origins: Names = Field(
        default=(),
        description="Origins, comma-separated, such as `https://app.example.org`, whose pages may "
        "read and change data from a browser, by CORS. Keys are needed as elsewhere.",
    )
    api_key: SecretStr | None = Field(
        default=None,
        description="A key with all scopes in the tenant `default`; create others with "
        "`temi keys create`.",
    )
    public_url: UrlBase = Field(
        default="",
        description="Address of the API as users reach it, such as `https://temi.example.org`; "
        "exports begin links to images with it. Set it for the workers.",
    )
    log_format: str = Field(
        default="console", pattern="^(console|json)$", description="`console` or `json`."
    )
    log_level: str = Field(
        default="info",
        pattern="^(debug|info|warning|error)$",
        description="`debug`, `info`, `warning` or `error`; libraries log warnings and errors.",
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
        description="Exporter of OpenTelemetry spans: `otlp` (see `OTEL_EXPORTER_OTLP_ENDPOINT`), "
        "`console` or `off`.",
    )

    max_connections: int = Field(
        default=1000,
        gt=0,
        description="Maximum connections of one API process; idle ones are closed for new ones, "
        "then 503.",
    )
    max_address_connections: int = Field(
        default=0,
        ge=0,
        description="Maximum connections of one client address; 0 means no limit, as behind a "
        "proxy, whose address all clients share.",
    )
    max_header_bytes: int = Field(
        default=64 * 1024, ge=1024, description="Maximum size of request line and headers; 431."
    )
    head_seconds: float = Field(
        default=10.0, gt=0, description="Timeout for request line and headers to arrive; 408."
    )
    keep_alive_seconds: float = Field(
        default=15.0, gt=0, description="An idle connection is closed after this time."
    )
    stalled_seconds: float = Field(
        default=60.0,
        gt=0,
        description="A client that reads nothing of its response for this time is disconnected.",
    )
    body_seconds: float = Field(
        default=30.0,
        gt=0,
        description="Timeout for a body to arrive, plus its size divided by "
        "`TEMI_BODY_BYTES_PER_SECOND`; 408.",
    )
    body_bytes_per_second: int = Field(
        default=8192, gt=0, description="Minimum rate at which a large body must arrive."
    )
    max_json_bytes: int = Field(
        default=1 * MiB,
        gt=0,
        description="Maximum body of a request that is neither an upload nor a predict request.",
    )
    max_body_bytes: int = Field(default=64 * GiB, gt=0, description="Maximum size of an upload.")
    max_parts: int = Field(
        default=10_000, gt=0, description="Maximum number of files in one multipart upload."
    )
    max_open_downloads: int = Field(
        default=100,
        ge=1,
        description="Maximum concurrent downloads of one key, or of one address without a key, "
        "per API process; 429. A browser opens six.",
    )
    max_event_streams: int = Field(
        default=100,
        ge=1,
        description="Maximum concurrent event streams of one key, or of one address without a "
        "key, per API process; 429. A page opens three.",
    )

    @field_validator("api_key")
    @classmethod
    def _check_key_length(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and len(key.get_secret_value()) < 16:
            raise ValueError("must have at least 16 characters")
        return key

    @field_validator("cors_origins")
    @classmethod
    def _check_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if not _ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"{origin!r} is not an origin; write scheme, host and port as a browser sends "
                    "them, such as https://app.example.org or http://localhost:5173"
                )
        return origins

    @property
    def loopback_only(self) -> bool:
        return self.host in {"127.0.0.1", "localhost", "::1"}
