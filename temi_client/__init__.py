"""A typed client of the TEMI service: httpx and pydantic, no torch."""

from temi_client.client import TemiClient
from temi_client.errors import ApiError, JobFailed, ServiceUnreachable, TemiClientError
from temi_client.models import (
    Assignment,
    Cluster,
    Clustering,
    Dataset,
    DatasetIssue,
    Image,
    Job,
    Model,
    ModelVersion,
    Prediction,
    Predictions,
    Readiness,
)

__all__ = [
    "ApiError",
    "Assignment",
    "Cluster",
    "Clustering",
    "Dataset",
    "DatasetIssue",
    "Image",
    "Job",
    "JobFailed",
    "Model",
    "ModelVersion",
    "Prediction",
    "Predictions",
    "Readiness",
    "ServiceUnreachable",
    "TemiClient",
    "TemiClientError",
]
