"""Sources of images that are not in the request itself."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.schemas.datasets import DatasetName

SourceType = Literal["upload", "folder", "objects", "urls"]
LabelsFrom = Annotated[
    Literal["none", "folder", "manifest"],
    Field(
        description="`folder`: the folder of an image is its label. `manifest`: a manifest.csv or "
        "manifest.jsonl at the root of the source gives labels and metadata. Labels are used for "
        "metrics only."
    ),
]


class UploadSource(BaseModel):
    """A finished resumable upload of an archive. It can be used once."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["upload"]
    upload_id: str = Field(max_length=40, examples=["up_01k9z3m4q5r6s7t8v9w0x1y2z3"])


class FolderSource(BaseModel):
    """A folder on the server, inside of a folder that the settings allow."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["folder"]
    path: str = Field(min_length=1, max_length=4000, examples=["/photos/holiday"])


class ObjectsSource(BaseModel):
    """A prefix in an S3-compatible store, inside of a prefix that the settings allow."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["objects"]
    url: str = Field(min_length=1, max_length=2000, examples=["s3://photos/holiday"])


class UrlsSource(BaseModel):
    """Public URLs, if the settings allow them."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["urls"]
    urls: Annotated[list[Annotated[str, Field(max_length=2000)]], Field(fail_fast=True)] = Field(
        min_length=1, examples=[["https://example.org/cat.jpg"]]
    )


Source = Annotated[
    UploadSource | FolderSource | ObjectsSource | UrlsSource, Field(discriminator="type")
]


class ImagesCreate(BaseModel):
    """Images of a source for a dataset."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"source": {"type": "folder", "path": "/photos/holiday"}}]},
    )

    source: Source
    labels_from: LabelsFrom = "none"
    priority: int = Field(
        default=0, ge=-100, le=100, description="Your jobs with a higher priority run first."
    )
    webhook_url: str | None = Field(
        default=None,
        max_length=2000,
        description="Gets a signed request when the job ends. The server must allow the host.",
    )


class DatasetCreate(ImagesCreate):
    """A new dataset with the images of a source."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "Holiday", "source": {"type": "folder", "path": "/photos"}}]
        }
    )

    name: DatasetName = "untitled"
