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
from temi_client.models.base import PageCursors, Readiness
from temi_client.models.clusterings import (
    Assignment,
    Cluster,
    ClusterGroup,
    Clustering,
    Export,
    Hierarchy,
    Operation,
    OperationWarning,
    RankedImage,
    Selection,
    SimilarCluster,
    SimilarClusters,
    SplitPreview,
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
    Neighbor,
    Upload,
    UploadLimits,
)
from temi_client.models.jobs import CurvePoint, Job, JobKind, JobStatus, ListedKind, LogLine
from temi_client.models.predictions import LoadedModel, Prediction, Predictions
from temi_client.models.registry import AliasChange, Comparison, Model, ModelVersion
from temi_client.models.review import (
    Answer,
    AnswerKind,
    ClusterReview,
    RefusedAnswer,
    ReviewAnswer,
    ReviewForecast,
    ReviewQuestion,
    ReviewQueue,
    ReviewReport,
    StoredAnswers,
)
from temi_client.models.system import System
from temi_client.models.workers import Worker
from temi_client.resources.clusterings import ImageOrder, PlotName
from temi_client.resources.datasets import DuplicateKind, LabelFormat
from temi_client.resources.jobs import ExportFormat, JobPlotName, SweepParameter
from temi_client.resources.review import ReviewOrder
from temi_client.resources.uploads import LabelsFrom, Source

__all__ = [
    "AliasChange",
    "Answer",
    "AnswerKind",
    "ApiError",
    "Assignment",
    "AuditEntry",
    "Cluster",
    "ClusterGroup",
    "ClusterReview",
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
    "Hierarchy",
    "Image",
    "ImageLabel",
    "ImageOrder",
    "Job",
    "JobFailed",
    "JobKind",
    "JobPlotName",
    "JobStatus",
    "Key",
    "LabelFormat",
    "LabelRow",
    "LabelsFrom",
    "ListedKind",
    "LoadedModel",
    "LogLine",
    "Model",
    "ModelVersion",
    "Neighbor",
    "Operation",
    "OperationWarning",
    "PageCursors",
    "PlotName",
    "Prediction",
    "Predictions",
    "Progress",
    "RankedImage",
    "Readiness",
    "RefusedAnswer",
    "ReviewAnswer",
    "ReviewForecast",
    "ReviewOrder",
    "ReviewQuestion",
    "ReviewQueue",
    "ReviewReport",
    "Selection",
    "ServiceUnreachable",
    "SimilarCluster",
    "SimilarClusters",
    "Source",
    "SplitPreview",
    "Statistics",
    "StoredAnswers",
    "SweepParameter",
    "System",
    "TemiClient",
    "TemiClientError",
    "Upload",
    "UploadInterrupted",
    "UploadLimits",
    "Worker",
]
