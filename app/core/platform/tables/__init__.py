"""The tables. Times are seconds since 1970 by the database's clock."""

from app.core.platform.tables.access import ApiKey, AuditEntry
from app.core.platform.tables.base import Base
from app.core.platform.tables.clusterings import (
    ABSENT,
    CARRIED,
    EXCLUDED,
    Assignment,
    AssignmentChange,
    Cluster,
    Clustering,
    ClusteringOperation,
    CurrentClusteringChange,
    Export,
    Review,
)
from app.core.platform.tables.datasets import (
    Dataset,
    DatasetIssue,
    Duplicate,
    Embedding,
    Image,
    SkippedFiles,
    Upload,
)
from app.core.platform.tables.jobs import (
    FINAL,
    OPEN,
    IdempotencyKey,
    Job,
    JobCurve,
    JobLog,
    TenantTurn,
    WebhookDelivery,
)
from app.core.platform.tables.models import (
    Model,
    ModelAlias,
    ModelAliasChange,
    ModelCalibration,
    ModelVersion,
    PredictionCount,
)
from app.core.platform.tables.refusals import Proposal, RefusedImage
from app.core.platform.tables.storage import BlobDeletion, RetentionLock
from app.core.platform.tables.workers import Shard, Worker

__all__ = [
    "ABSENT",
    "CARRIED",
    "EXCLUDED",
    "FINAL",
    "OPEN",
    "ApiKey",
    "Assignment",
    "AssignmentChange",
    "AuditEntry",
    "Base",
    "BlobDeletion",
    "Cluster",
    "Clustering",
    "ClusteringOperation",
    "CurrentClusteringChange",
    "Dataset",
    "DatasetIssue",
    "Duplicate",
    "Embedding",
    "Export",
    "IdempotencyKey",
    "Image",
    "Job",
    "JobCurve",
    "JobLog",
    "Model",
    "ModelAlias",
    "ModelAliasChange",
    "ModelCalibration",
    "ModelVersion",
    "PredictionCount",
    "Proposal",
    "RefusedImage",
    "RetentionLock",
    "Review",
    "Shard",
    "SkippedFiles",
    "TenantTurn",
    "Upload",
    "WebhookDelivery",
    "Worker",
]
