"""What goes over the wire. Tables and library types never do."""

from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from app.core import tables
from temi.catalog import DEFAULT_BACKBONE

T = TypeVar("T")
JobStatus = Literal["queued", "running", "cancelling", "cancelled", "succeeded", "failed"]


class Page(BaseModel, Generic[T]):
    data: list[T]
    next_cursor: str | None = Field(description="Ask with it for the next page.")
    has_more: bool


class ErrorInfo(BaseModel):
    code: str
    detail: str


class Dataset(BaseModel):
    id: str = Field(examples=["ds_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    name: str
    status: Literal["ingesting", "ready", "failed"]
    fingerprint: str | None = Field(description="Hash of the images and their order.")
    image_count: int
    issue_count: int = Field(description="Files that could not be used; see the issues list.")
    labelled_count: int
    bytes: int = Field(description="Size of the upload.")
    error: ErrorInfo | None
    created_at: datetime

    @classmethod
    def of(cls, row: tables.Dataset) -> "Dataset":
        return cls(**_fields(cls, row), created_at=to_time(row.created_at))


class Image(BaseModel):
    id: str = Field(examples=["img_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    dataset_id: str
    name: str = Field(description="As it was called in the upload.")
    sha256: str
    width: int
    height: int
    format: str
    bytes: int
    label: str | None = Field(description="A label that came with it; used for metrics only.")
    notes: list[str] = Field(description="What was changed to read it, such as animation left out.")

    @classmethod
    def of(cls, row: tables.Image) -> "Image":
        return cls(**_fields(cls, row))


class DatasetIssue(BaseModel):
    id: str
    name: str
    code: str = Field(examples=["image_undecodable"])
    detail: str

    @classmethod
    def of(cls, row: tables.DatasetIssue) -> "DatasetIssue":
        return cls(**_fields(cls, row))


class JobCreate(BaseModel):
    """A clustering job. What is left out is chosen for the size of the dataset."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"dataset_id": "ds_01k9z3m4q5r6s7t8v9w0x1y2z3", "n_clusters": 8}]
        },
    )

    kind: Literal["cluster"] = "cluster"
    dataset_id: str = Field(max_length=40)
    n_clusters: int = Field(ge=2, le=25_000, description="How many groups to look for.")
    model_name: str | None = Field(
        default=None, description="Name in the model registry; by default after the dataset."
    )
    backbone: str = Field(
        default=DEFAULT_BACKBONE,
        max_length=300,
        description="`efficientnet_lite0`, another short name such as `dino_vitb16`, `timm:NAME` "
        "or `open_clip:NAME/PRETRAINED`.",
    )
    recipe: Literal["default", "paper"] = Field(
        default="default",
        description="`paper` trains as the paper does: 50 heads, 200 epochs, many times the time.",
    )
    objective: Literal["temi", "wpmi", "pmi", "scan"] | None = Field(
        default=None, description="`temi` unless said otherwise; the others are to compare with."
    )
    n_heads: int | None = Field(
        default=None, ge=1, le=200, description="Heads trained side by side."
    )
    n_neighbors: int | None = Field(
        default=None, ge=1, le=1000, description="Nearest neighbours an image is paired with."
    )
    beta: float | None = Field(
        default=None, gt=0.5, le=1.0, description="Lower uses the clusters more evenly."
    )
    steps: int | None = Field(default=None, ge=1, le=1_000_000)
    epochs: int | None = Field(
        default=None, ge=1, le=100_000, description="Another way to say `steps`; not both."
    )
    seed: int = Field(default=0, ge=0, lt=2**31)


class JobProgress(BaseModel):
    stage: str | None
    stages: list[str]
    completed: int
    total: int = Field(description="0 while it is not known.")
    rate: float | None = Field(description="Items a second in this stage.")
    eta_seconds: float | None = Field(description="Until the end of this stage.")


class JobCounts(BaseModel):
    total: int
    completed: int
    failed: int


class Job(BaseModel):
    id: str = Field(examples=["job_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    kind: Literal["ingest", "cluster"]
    status: JobStatus
    dataset_id: str
    config: dict[str, Any] = Field(description="As it was frozen when the job was created.")
    progress: JobProgress
    counts: JobCounts
    timings: dict[str, Any] = Field(description="Seconds of each stage that has ended.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: dict[str, Any] | None
    error: ErrorInfo | None

    @classmethod
    def of(cls, row: tables.Job) -> "Job":
        left = max(0, row.total - row.completed)
        running = row.status == "running" and row.rate and row.total
        return cls(
            **_fields(cls, row),
            progress=JobProgress(
                stage=row.stage,
                stages=row.stages,
                completed=row.completed,
                total=row.total,
                rate=row.rate,
                eta_seconds=round(left / row.rate, 1) if running and row.rate else None,
            ),
            counts=JobCounts(total=row.total, completed=row.completed, failed=row.failed),
            created_at=to_time(row.created_at),
            started_at=to_time(row.started_at) if row.started_at else None,
            finished_at=to_time(row.finished_at) if row.finished_at else None,
        )


class ModelRef(BaseModel):
    name: str
    version: int


class Clustering(BaseModel):
    id: str = Field(examples=["cl_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    job_id: str
    dataset_id: str
    model: ModelRef
    n_clusters: int
    image_count: int
    revision: int
    metrics: dict[str, Any] = Field(
        description="`temi` and `kmeans` compare with labels where the images have some."
    )
    created_at: datetime

    @classmethod
    def of(cls, row: tables.Clustering) -> "Clustering":
        return cls(
            **_fields(cls, row),
            model=ModelRef(name=row.model_name, version=row.model_version),
            created_at=to_time(row.created_at),
        )


class Example(BaseModel):
    image_id: str
    name: str
    probability: float


class Cluster(BaseModel):
    cluster_id: int
    label: str
    size: int
    mean_probability: float | None = Field(description="Null if the cluster is empty.")
    examples: list[Example] = Field(description="Its surest images.")

    @classmethod
    def of(cls, row: tables.Cluster) -> "Cluster":
        return cls(**_fields(cls, row))


class Assignment(BaseModel):
    image_id: str
    name: str
    cluster_id: int
    label: str = Field(description="The cluster's name.")
    probability: float

    @classmethod
    def of(cls, row: tables.Assignment, name: str, label: str) -> "Assignment":
        return cls(**_fields(cls, row), name=name, label=label)


class Model(BaseModel):
    name: str
    latest_version: int
    aliases: dict[str, int]
    created_at: datetime


class ModelVersion(BaseModel):
    name: str
    version: int
    clustering_id: str
    job_id: str
    files: dict[str, str] = Field(description="SHA-256 of each file.")
    manifest: dict[str, Any]
    created_at: datetime

    @classmethod
    def of(cls, name: str, row: tables.ModelVersion) -> "ModelVersion":
        return cls(name=name, **_fields(cls, row), created_at=to_time(row.created_at))


class AliasUpdate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, le=2**31 - 1)


class ClusterProbability(BaseModel):
    cluster_id: int
    label: str
    probability: float


class Prediction(BaseModel):
    image: str = Field(description="The file's name in the request.")
    cluster_id: int | None
    label: str | None
    probability: float | None
    top_k: list[ClusterProbability]
    probabilities: list[float] | None = Field(
        default=None, description="Of every cluster, if asked for."
    )
    error: ErrorInfo | None = Field(description="Why this one image could not be read.")


class Predictions(BaseModel):
    model: ModelRef
    data: list[Prediction]


class Check(BaseModel):
    ok: bool
    detail: str | None = None


class Readiness(BaseModel):
    ready: bool
    checks: dict[str, Check]


def to_time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _fields(schema: type[BaseModel], row: object) -> dict[str, Any]:
    """The columns that the schema shows as they are."""
    shown = set(schema.model_fields) - {"created_at", "started_at", "finished_at"}
    return {name: getattr(row, name) for name in shown if hasattr(row, name)}
