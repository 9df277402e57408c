"""Every setting of the service, read once from `TEMI_...` variables and `.env`."""

import os
from functools import lru_cache
from pathlib import Path

from pydantic_settings import SettingsConfigDict

from app.core.platform.settings.http import HttpSettings
from app.core.platform.settings.ingest import IngestSettings
from app.core.platform.settings.jobs import JobSettings
from app.core.platform.settings.serving import ServingSettings
from app.core.platform.settings.storage import StorageSettings
from app.core.platform.settings.types import GiB, KiB, MiB

__all__ = ["GiB", "KiB", "MiB", "Settings", "get_settings"]


# The bases are listed from last to first: pydantic collects their fields in this order.
class Settings(ServingSettings, JobSettings, IngestSettings, HttpSettings, StorageSettings):
    """The defaults run everything on one machine with no other server."""

    model_config = SettingsConfigDict(
        env_prefix="TEMI_", env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
    )

    @property
    def converted_dir(self) -> Path:
        return self.onnx_dir or self.data_dir / "onnx"

    @property
    def predict_threads(self) -> int:
        """The API processes share the cores."""
        return max(1, self.threads // self.api_workers)


@lru_cache
def get_settings() -> Settings:
    """Values that no variable sets are read from files in `TEMI_SECRETS_DIR` (`temi_api_key`)."""
    folder = Path(os.environ.get("TEMI_SECRETS_DIR", "/run/secrets"))
    return Settings(_secrets_dir=folder) if folder.is_dir() else Settings()
