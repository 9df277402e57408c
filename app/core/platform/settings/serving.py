"""Limits of predict requests and of loaded models."""

from pydantic import Field, FilePath
from pydantic_settings import BaseSettings

from app.core.platform.settings.types import GiB, MiB


class ServingSettings(BaseSettings):
    max_predict_files: int = Field(
        default=256, gt=0, description="Maximum number of images in one predict request."
    )
    max_predict_bytes: int = Field(
        default=256 * MiB, gt=0, description="Maximum body of a predict request."
    )
    max_predict_features: int = Field(
        default=10_000, gt=0, description="Maximum number of embeddings in one predict request."
    )
    predict_queue: int = Field(
        default=256, gt=0, description="Maximum number of images waiting for a prediction; 429."
    )
    predict_queue_bytes: int = Field(
        default=512 * MiB, gt=0, description="Maximum bytes of images waiting; 429."
    )
    predict_arriving_bytes: int = Field(
        default=512 * MiB,
        gt=0,
        description="Maximum bytes of predict requests that are still arriving; 429.",
    )
    predict_key_share: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Share of the three limits above that one key may use while another key waits.",
    )
    predict_seconds: float = Field(
        default=30.0, gt=0, description="Timeout of a predict request; 429."
    )
    predict_load_seconds: float = Field(
        default=20.0,
        gt=0,
        description="Maximum time that a request waits for its model to load; 503.",
    )
    predict_cache_bytes: int = Field(
        default=4 * GiB,
        gt=0,
        description="Memory for loaded models; the least recently used are unloaded.",
    )
    predict_idle_seconds: float = Field(
        default=1800.0, gt=0, description="A model without requests for this time is unloaded."
    )
    vocabulary_file: FilePath | None = Field(
        default=None,
        description="Words that may name clusters, by comma or line, instead of the built-in ones; "
        "for backbones that were trained on images and texts.",
    )
    keep_refused: int = Field(
        default=0,
        ge=0,
        le=5000,
        description="Number of refused images (`none of these`) to keep per model, with their "
        "bytes and features, so that they gather into proposed groups; the oldest are replaced. "
        "0 keeps none.",
    )
    keep_refused_days: float = Field(
        default=30.0, gt=0, description="Refused images are deleted after this time."
    )
    proposal_webhook_url: str | None = Field(
        default=None,
        description="Receives a signed request when refused images form a new group, for gather "
        "jobs without a `webhook_url`. Its host must be in `TEMI_WEBHOOK_HOSTS`.",
    )
