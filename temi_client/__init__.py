"""A typed client of the TEMI service, based on httpx and pydantic."""

from temi_client.client import TemiClient
from temi_client.downloads import Progress
from temi_client.errors import (
    ApiError,
    CorruptDownload,
    JobFailed,
    ServiceUnreachable,
    TemiClientError,
    UploadInterrupted,
)
from temi_client.models.access import AuditEntry, CreatedKey, Key
from temi_client.models.base import Readiness
from temi_client.models.clusterings import (
    Assignment,
    Cluster,
    Clustering,
    Export,
    Operation,
    OperationWarning,
    RankedImage,
    Statistics,
)
from temi_client.models.datasets import (
    CurrentClusteringChange,
    Dataset,
    DatasetIssue,
    Duplicate,
    Image,
    ImageLabel,
    LabelRow,
    Upload,
    UploadLimits,
)
from temi_client.models.jobs import CurvePoint, Job, JobKind, JobStatus, LogLine
from temi_client.models.predictions import LoadedModel, Prediction, Predictions
from temi_client.models.registry import AliasChange, Comparison, Model, ModelVersion
from temi_client.models.workers import Worker
from temi_client.resources.clusterings import ImageOrder, PlotName
from temi_client.resources.datasets import DuplicateKind, LabelFormat
from temi_client.resources.jobs import ExportFormat, SweepParameter
from temi_client.resources.uploads import LabelsFrom, Source

__all__ = [
    "AliasChange",
    "ApiError",
    "Assignment",
    "AuditEntry",
    "Cluster",
    "Clustering",
    "Comparison",
    "CorruptDownload",
    "CreatedKey",
    "CurrentClusteringChange",
    "CurvePoint",
    "Dataset",
    "DatasetIssue",
    "Duplicate",
    "DuplicateKind",
    "Export",
    "ExportFormat",
    "Image",
    "ImageLabel",
    "ImageOrder",
    "Job",
    "JobFailed",
    "JobKind",
    "JobStatus",
    "Key",
    "LabelFormat",
    "LabelRow",
    "LabelsFrom",
    "LoadedModel",
    "LogLine",
    "Model",
    "ModelVersion",
    "Operation",
    "OperationWarning",
    "PlotName",
    "Prediction",
    "Predictions",
    "Progress",
    "RankedImage",
    "Readiness",
    "ServiceUnreachable",
    "Source",
    "Statistics",
    "SweepParameter",
    "TemiClient",
    "TemiClientError",
    "Upload",
    "UploadInterrupted",
    "UploadLimits",
    "Worker",
]
