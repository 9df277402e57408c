"""Instances on each database."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.core.runtime import Runtime
from tests.buckets import new_bucket
from tests.core.backup.instances import MakeInstance, open_instance


@pytest.fixture
def make_instance(
    tmp_path: Path, sqlite_template: Path, request: pytest.FixtureRequest
) -> Iterator[MakeInstance]:
    """An instance of this name on `sqlite` or `postgresql`, with its files in a `folder` or a
    `bucket`, with all tables and no rows."""
    with ExitStack() as stack:

        def make(name: str, database: str, storage: str = "folder") -> Runtime:
            url = request.getfixturevalue("postgres_url") if database == "postgresql" else None
            bucket = new_bucket(request.getfixturevalue("s3_url")) if storage == "bucket" else {}
            runtime = open_instance(tmp_path / name, sqlite_template, url, **bucket)
            stack.callback(runtime.db.dispose)
            return runtime

        yield make
