"""Exports."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from app.api.schemas.common import shown_fields
from app.core.platform import tables


class ExportFilters(BaseModel):
    cluster_ids: list[int] | None = Field(description="Null: all clusters.")
    min_probability: float | None
    min_purity: float | None = None
    proof: str | None = Field(default=None, description="With `min_purity`: groups or collection.")
    include_excluded: bool


class Export(BaseModel):
    """A file of labels; download it from `/v1/exports/{id}/content`."""

    id: str = Field(examples=["exp_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    job_id: str | None = Field(description="Null after the job was deleted.")
    clustering_id: str
    revision: int = Field(description="Revision of the clustering.")
    format: str = Field(examples=["parquet"])
    filters: ExportFilters
    filename: str = Field(examples=["holiday-photos-rev3.parquet"])
    media_type: str
    image_count: int
    bytes: int
    sha256: str
    created_at: datetime

    @classmethod
    def of(cls, row: tables.Export) -> "Export":
        fields: dict[str, Any] = shown_fields(cls, row)
        return cls(**fields)
