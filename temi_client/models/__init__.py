"""What the service answers. Fields that a newer service adds are ignored."""

from temi_client.models.access import AuditEntry, CreatedKey, Key
from temi_client.models.base import (
    Check,
    ErrorInfo,
    Readiness,
)
from temi_client.models.clusterings import (
    Assignment,
    Cluster,
    Clustering,
    Example,
    Export,
    Histogram,
    Operation,
    RankedImage,
    Statistics,
)
from temi_client.models.datasets import (
    Dataset,
    DatasetIssue,
    Duplicate,
    Image,
    ImageLabel,
    LabelRow,
    Upload,
    UploadLimits,
)
from temi_client.models.jobs import (
    FINAL_STATUSES,
    CurvePoint,
    Job,
    JobCounts,
    JobProgress,
    LogLine,
)
from temi_client.models.registry import (
    ClusterProbability,
    Model,
    ModelRef,
    ModelVersion,
    Prediction,
    Predictions,
)

__all__ = [
    "FINAL_STATUSES",
    "Assignment",
    "AuditEntry",
    "Check",
    "Cluster",
    "ClusterProbability",
    "Clustering",
    "CreatedKey",
    "CurvePoint",
    "Dataset",
    "DatasetIssue",
    "Duplicate",
    "ErrorInfo",
    "Example",
    "Export",
    "Histogram",
    "Image",
    "ImageLabel",
    "Job",
    "JobCounts",
    "JobProgress",
    "Key",
    "LabelRow",
    "LogLine",
    "Model",
    "ModelRef",
    "ModelVersion",
    "Operation",
    "Prediction",
    "Predictions",
    "RankedImage",
    "Readiness",
    "Statistics",
    "Upload",
    "UploadLimits",
]
