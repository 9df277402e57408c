"""The tables. Times are seconds since 1970 by the database's clock."""

from app.core.tables.access import ApiKey, AuditEntry
from app.core.tables.base import Base
from app.core.tables.clusterings import (
    EXCLUDED,
    Assignment,
    AssignmentChange,
    Cluster,
    Clustering,
    ClusteringOperation,
    Export,
)
from app.core.tables.datasets import (
    CondemnedBlob,
    Dataset,
    DatasetIssue,
    Duplicate,
    Embedding,
    Image,
    Upload,
)
from app.core.tables.holds import StorageHold
from app.core.tables.jobs import (
    IdempotencyKey,
    Job,
    JobCurve,
    JobLog,
    TenantTurn,
    WebhookDelivery,
)
from app.core.tables.models import Model, ModelAlias, ModelAliasChange, ModelVersion
from app.core.tables.workers import Shard, Worker

__all__ = [
    "EXCLUDED",
    "ApiKey",
    "Assignment",
    "AssignmentChange",
    "AuditEntry",
    "Base",
    "Cluster",
    "Clustering",
    "ClusteringOperation",
    "CondemnedBlob",
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
    "ModelVersion",
    "Shard",
    "StorageHold",
    "TenantTurn",
    "Upload",
    "WebhookDelivery",
    "Worker",
]
