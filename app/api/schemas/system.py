"""Health, and what the service is and allows."""

from typing import Literal

from pydantic import BaseModel, Field

from app.core.platform.settings import Settings


class Check(BaseModel):
    ok: bool
    status: Literal["ok", "warning", "starting", "failed", "unknown"] = Field(
        description="With a `warning` the service is ready. `starting`: it will be ready soon. "
        "`unknown`: cannot be checked because another check has failed."
    )
    detail: str | None = Field(default=None, examples=["nearly full: 0.8 of 50.0 GiB are free"])
    hint: str | None = Field(default=None, description="What to do about it.")
    seconds: float = Field(description="Duration of the check.")


class Readiness(BaseModel):
    ready: bool
    version: str = Field(description="Version of the service.", examples=["0.1.0"])
    checks: dict[str, Check]


class StorageUse(BaseModel):
    used_bytes: int = Field(description="Images and imported models of your tenant.")
    free_bytes: int | None = Field(description="Free space of the disk; null with a bucket.")
    quota_bytes: int | None = Field(description="What your key may store; null without a quota.")


class Limits(BaseModel):
    """Limits that a request can meet; docs/settings.md has the settings."""

    max_upload_bytes: int = Field(description="Size of an upload.")
    max_images_per_dataset: int | None = Field(description="Null: there is no such limit.")
    max_image_bytes: int = Field(description="Size of an image file.")
    max_image_pixels: int
    max_archive_members: int = Field(description="Files in one archive.")
    max_parts: int = Field(description="Files in one form.")
    max_urls: int = Field(description="URLs of one dataset.")
    max_model_bytes: int = Field(description="Size of a model file.")
    max_open_jobs: int = Field(description="Unfinished jobs of your tenant.")
    max_job_bytes: int = Field(description="Estimated memory of a training.")
    max_predict_files: int = Field(description="Images in one predict request.")
    max_predict_bytes: int = Field(description="Body of a predict request.")
    max_predict_features: int = Field(description="Embeddings in one predict request.")

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        named = {name: getattr(settings, name, None) for name in cls.model_fields}
        return cls(**(named | {"max_upload_bytes": settings.max_body_bytes}))


class BackboneState(BaseModel):
    name: str
    available: bool = Field(description="Whether its weights are there or can be downloaded.")


class System(BaseModel):
    version: str = Field(description="Version of the service.", examples=["0.1.0"])
    mode: Literal["embedded", "distributed"] = Field(
        description="`embedded`: all workers run on the machine of the API."
    )
    device: str = Field(
        description="What trains and embeds: the devices of the workers, or the setting if no "
        "worker runs.",
        examples=["cpu"],
    )
    storage: StorageUse
    limits: Limits
    backbones: list[BackboneState] = Field(description="Those with a short name.")
    auto_backbone: str | None = Field(
        description="What a job with the backbone `auto` would use now; null without any weights.",
        examples=["efficientnet_lite0"],
    )
