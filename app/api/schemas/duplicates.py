"""Duplicates."""

from typing import Literal

from pydantic import BaseModel, Field

from app.api.schemas.common import shown_fields
from app.core.platform import tables

DuplicateKind = Literal["exact", "near"]


class Duplicate(BaseModel):
    image_id: str
    name: str
    original_id: str = Field(description="The first image of the dataset that shows the same.")
    original_name: str
    kind: DuplicateKind = Field(description="`exact`: the same bytes. `near`: looks the same.")
    similarity: float = Field(description="1 if exact, else the cosine of the two embeddings.")

    @classmethod
    def of(cls, row: tables.Duplicate, name: str, original_name: str) -> "Duplicate":
        return cls(**shown_fields(cls, row), name=name, original_name=original_name)
