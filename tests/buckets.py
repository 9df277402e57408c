"""New buckets in an S3-compatible store, for tests."""

from typing import Any
from uuid import uuid4

import pytest

REGION = "us-east-1"

any_storage = pytest.mark.parametrize("storage_settings", ["folder", "bucket"], indirect=True)
"""Once for each kind of storage."""


def s3_client(url: str) -> Any:
    """A client that is independent of the service."""
    import boto3  # takes as long to load as everything else together

    return boto3.client(
        "s3",
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


def new_bucket(url: str) -> dict[str, Any]:
    """The settings of a storage in a new bucket."""
    name = f"bucket-{uuid4().hex}"
    client = s3_client(url)
    client.create_bucket(Bucket=name)
    client.close()
    return {
        "storage_url": f"s3://{name}/temi",
        "s3_endpoint": url,
        "s3_region": REGION,
        "s3_access_key": "test",
        "s3_secret_key": "test",
    }
