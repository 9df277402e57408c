"""What the service answers. Fields that a newer service adds are ignored."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

FINAL_STATUSES = frozenset({"succeeded", "failed", "cancelled"})


class _Answer(BaseModel):
    # `model` is a field name of the wire format, not pydantic's own.
    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())


class ErrorInfo(_Answer):
    code: str
    detail: str


class Dataset(_Answer):
    id: str
    name: str
    status: str
    fingerprint: str | None = None
    image_count: int = 0
    issue_count: int = 0
    labelled_count: int = 0
    bytes: int = 0
    error: ErrorInfo | None = None
    created_at: datetime
    updated_at: datetime | None = None


class Image(_Answer):
    id: str
    dataset_id: str | None = None
    name: str
    sha256: str
    width: int
    height: int
    format: str
    bytes: int
    label: str | None = None
    metadata: dict[str, Any] = {}
    notes: list[str] = []


class DatasetIssue(_Answer):
    id: str
    name: str
    code: str
    detail: str


class Duplicate(_Answer):
    """An image that shows what an earlier one shows."""

    image_id: str
    name: str | None = None
    original_id: str
    original_name: str | None = None
    kind: str
    similarity: float


class Upload(_Answer):
    """A resumable upload: `offset` of its `length` bytes have arrived."""

    id: str
    offset: int
    length: int
    expires_at: datetime | None = None


class UploadLimits(_Answer):
    max_bytes: int
    extensions: list[str]  # of tus 1.0


class JobProgress(_Answer):
    stage: str | None = None
    stages: list[str] = []
    completed: int = 0
    total: int = 0  # 0 while it is not known
    rate: float | None = None  # items a second in this stage
    eta_seconds: float | None = None


class JobCounts(_Answer):
    total: int = 0
    completed: int = 0
    failed: int = 0


class Job(_Answer):
    id: str
    kind: str
    status: str
    dataset_id: str | None = None
    config: dict[str, Any] = {}
    progress: JobProgress = JobProgress()
    counts: JobCounts = JobCounts()
    timings: dict[str, Any] = {}
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    result: dict[str, Any] | None = None
    error: ErrorInfo | None = None

    @property
    def finished(self) -> bool:
        return self.status in FINAL_STATUSES


class LogLine(_Answer):
    number: int
    at: datetime
    level: str
    message: str


class CurvePoint(_Answer):
    step: int
    values: dict[str, Any]


class ModelRef(_Answer):
    name: str
    version: int


class Clustering(_Answer):
    id: str
    job_id: str | None = None  # none once the job was deleted
    dataset_id: str
    model: ModelRef
    n_clusters: int
    image_count: int
    revision: int
    metrics: dict[str, Any] = {}
    created_at: datetime


class Example(_Answer):
    image_id: str
    name: str
    probability: float


class Cluster(_Answer):
    cluster_id: int
    label: str
    size: int
    mean_probability: float | None = None  # none if the cluster is empty
    examples: list[Example] = []


class Assignment(_Answer):
    image_id: str
    name: str
    cluster_id: int | None = None  # none if the image was taken out
    label: str | None = None
    probability: float
    excluded: bool = False


class RankedImage(_Answer):
    """An image of a cluster, and how well it fits."""

    image_id: str
    name: str
    probability: float
    margin: float  # to the second likeliest cluster: small at a border
    distance: float  # to the centre of the cluster


class Histogram(_Answer):
    edges: list[float]  # one more than counts
    counts: list[int]


class Statistics(_Answer):
    """How sure a clustering is, and how even its clusters are."""

    revision: int
    images: int
    excluded_images: int = 0
    clusters: int
    empty_clusters: int = 0
    mean_probability: float | None = None
    median_probability: float | None = None
    probabilities: Histogram
    size_kl: float | None = None
    sizes: list[int] = []
    size_histogram: Histogram


class LabelRow(_Answer):
    """One row of a dataset's labels."""

    image_id: str
    name: str
    cluster_id: int | None = None
    label: str | None = None
    probability: float | None = None
    excluded: bool = False
    true_label: str | None = None


class ImageLabel(_Answer):
    """What one clustering calls an image."""

    clustering_id: str
    dataset_id: str | None = None
    revision: int | None = None
    cluster_id: int | None = None
    label: str | None = None
    probability: float
    excluded: bool = False
    model: ModelRef | None = None


class Operation(_Answer):
    """One step of the people who sort; it made `revision`."""

    revision: int
    kind: str
    arguments: dict[str, Any] = {}
    moved: int = 0  # images
    new_cluster_ids: list[int] = []
    undoes: int | None = None
    undone_by: int | None = None
    created_at: datetime


class Export(_Answer):
    id: str
    job_id: str | None = None
    clustering_id: str
    revision: int
    format: str
    filters: dict[str, Any] = {}
    filename: str
    media_type: str
    image_count: int
    bytes: int
    sha256: str
    created_at: datetime


class Model(_Answer):
    name: str
    latest_version: int
    aliases: dict[str, int] = {}
    created_at: datetime


class ModelVersion(_Answer):
    name: str
    version: int
    clustering_id: str | None = None
    job_id: str | None = None
    files: dict[str, str] = {}
    manifest: dict[str, Any] = {}
    created_at: datetime


class ClusterProbability(_Answer):
    cluster_id: int
    label: str
    probability: float


class Prediction(_Answer):
    image: str
    cluster_id: int | None = None
    label: str | None = None
    probability: float | None = None
    top_k: list[ClusterProbability] = []
    probabilities: list[float] | None = None  # of every cluster, if asked for
    error: ErrorInfo | None = None


class Predictions(_Answer):
    model: ModelRef
    data: list[Prediction]


class Check(_Answer):
    ok: bool
    detail: str | None = None


class Readiness(_Answer):
    ready: bool
    checks: dict[str, Check] = {}
