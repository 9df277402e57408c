"""uvicorn's configuration from our settings, with the limits of `LimitedProtocol`."""

from dataclasses import dataclass
from typing import Any

import uvicorn

from app.core.platform.settings import Settings

APP_MODULE = "app.main"


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """Limits of one process; the settings of the same names have the reasons."""

    max_connections: int
    max_address_connections: int
    max_header_bytes: int
    head_seconds: float
    keep_alive_seconds: float
    stalled_seconds: float

    @classmethod
    def of(cls, settings: Settings) -> "ConnectionLimits":
        return cls(**{name: getattr(settings, name) for name in cls.__dataclass_fields__})


class ServerConfig(uvicorn.Config):
    """Carries the limits to uvicorn's worker processes and to each connection."""

    def __init__(self, app: Any, *, limits: ConnectionLimits, **options: Any) -> None:
        from app.server.protocol import LimitedProtocol

        self.limits = limits
        super().__init__(app, http=LimitedProtocol, ws="none", **options)
        self.timeout_keep_alive = limits.keep_alive_seconds  # type: ignore[assignment]


def make_config(settings: Settings, app: Any = None, **options: Any) -> ServerConfig:
    """For the API with these settings; `app` replaces the application that is imported by name."""
    defaults: dict[str, Any] = {
        "factory": app is None,
        "host": settings.host,
        "port": settings.port,
        "workers": settings.api_workers,
        "access_log": False,
        "log_level": "warning",
        "timeout_graceful_shutdown": settings.drain_seconds,
    }
    return ServerConfig(
        app or f"{APP_MODULE}:create_app",
        limits=ConnectionLimits.of(settings),
        **(defaults | options),
    )
