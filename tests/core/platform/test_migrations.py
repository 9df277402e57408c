"""The migrations and the tables say the same, on both databases, there and back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from app.core.platform.db import Database
from app.core.platform.migrations import downgrade, is_current, upgrade
from app.core.platform.tables import (
    Assignment,
    Base,
    Cluster,
    Clustering,
    Dataset,
    Image,
    Job,
    Model,
)

_JOB = (
    "INSERT INTO jobs (id, tenant, kind, status, dataset_id, config, stages, completed, total, "
    "failed, timings, version, fence, lease_until, crashes, hints, hint_at, created_at) VALUES "
    "('{id}', 't', '{kind}', 'succeeded', 'ds_1', '{{}}', '[]', 0, 0, 0, '{{}}', 1, 0, 0, 0, 0, "
    "0, 1)"
)
_OLD_ROWS = (
    "INSERT INTO datasets (id, tenant, name, status, labels_from, upload_key, image_count, "
    "issue_count, labelled_count, bytes, created_at) VALUES "
    "('ds_1', 't', 'd', 'ready', 'folder', 'uploads/u', 1, 0, 0, 9, 1)",
    "INSERT INTO images (id, dataset_id, position, name, sha256, width, height, format, bytes, "
    "notes) VALUES ('img_1', 'ds_1', 0, 'a', 'aa', 1, 1, 'PNG', 9, '[]')",
    _JOB.format(id="job_1", kind="ingest"),
    _JOB.format(id="job_2", kind="cluster"),
    "INSERT INTO clusterings (id, tenant, job_id, dataset_id, model_name, model_version, "
    "n_clusters, image_count, revision, metrics, created_at) VALUES "
    "('cl_1', 't', 'job_2', 'ds_1', 'm', 1, 1, 1, 1, '{}', 1)",
    "INSERT INTO clusters (clustering_id, cluster_id, label, size, examples) VALUES "
    "('cl_1', 0, 'x', 1, '[]')",
    "INSERT INTO assignments (clustering_id, image_id, cluster_id, probability) VALUES "
    "('cl_1', 'img_1', 0, 0.75)",
)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'empty.db'}"
    else:
        url = request.getfixturevalue("empty_postgres_url")
    db = Database(url)
    yield db
    db.dispose()


def _tables(db: Database) -> set[str]:
    return set(inspect(db.engine).get_table_names())


def _differences(db: Database) -> list[object]:
    with db.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, Base.metadata))


def test_upgrade_gives_the_tables(empty: Database) -> None:
    assert not is_current(empty)
    upgrade(empty)
    assert is_current(empty)
    assert _tables(empty) == set(Base.metadata.tables) | {"alembic_version"}
    assert _differences(empty) == []


def test_upgrading_twice_changes_nothing(empty: Database) -> None:
    upgrade(empty)
    upgrade(empty)
    assert is_current(empty)


def test_there_and_back_and_there_again(empty: Database) -> None:
    upgrade(empty)
    downgrade(empty, "base")
    assert _tables(empty) <= {"alembic_version"}
    assert not is_current(empty)
    upgrade(empty)
    assert _differences(empty) == []


def test_rows_survive_the_second_migration(empty: Database) -> None:
    """SQLite copies tables to alter them: nothing below them may be lost on the way."""
    upgrade(empty, "0001")
    with empty.engine.begin() as connection:
        for statement in _OLD_ROWS:
            connection.execute(text(statement))
    upgrade(empty)
    with empty.read() as session:
        dataset = session.get_one(Dataset, "ds_1")
        assert (dataset.end_position, dataset.image_count) == (1, 1)
        assert session.get_one(Job, "job_1").config["source"]["labels_from"] == "folder"
        assert session.get_one(Image, "img_1").attributes == {}
        clustering = session.get_one(Clustering, "cl_1")
        assert clustering.job_id == "job_2"
        assignment = session.get_one(Assignment, ("cl_1", "img_1"))
        assert (assignment.probability, assignment.margin) == (0.75, 0.75)
        assert session.get_one(Cluster, ("cl_1", 0)).active


def test_numbers_of_versions_go_on_after_the_third_migration(empty: Database) -> None:
    upgrade(empty, "0002")
    with empty.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO models (id, tenant, name, latest_version, created_at) VALUES "
                "('mdl_1', 't', 'm', 3, 1)"
            )
        )
    upgrade(empty)
    with empty.write() as session:
        model = session.get_one(Model, "mdl_1")
        assert (model.last_number, model.latest_version) == (3, 3)
        model.latest_version = None
    downgrade(empty, "0002")
    with empty.engine.connect() as connection:
        assert connection.scalar(text("SELECT latest_version FROM models")) == 0
