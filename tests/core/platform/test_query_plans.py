"""Every list, filter, claim and export uses an index: the short form of
benchmarks/scale_database.py, which takes any size."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from app.core.platform.migrations import upgrade
from benchmarks.scale_plans import Case, cases, run_and_explain
from benchmarks.scale_rows import fill
from tests.conftest import running_api
from tests.core.backup.instances import open_instance

IMAGES, JOBS = 50_000, 20_000


@pytest.fixture(scope="module")
def own_postgres_url(postgres_server: str) -> Iterator[str]:
    """A database that is filled once for all tests of this file."""
    engine = create_engine(f"{postgres_server}/postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE plans"))
        yield f"{postgres_server}/plans"
        connection.execute(text("DROP DATABASE plans WITH (FORCE)"))
    engine.dispose()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path
) -> Iterator[dict[str, Case]]:
    """All cases on one database, with their query plans."""
    url = None
    if request.param == "postgresql":
        url = request.getfixturevalue("own_postgres_url")
    runtime = open_instance(tmp_path_factory.mktemp("plans") / "data", sqlite_template, url)
    upgrade(runtime.db)
    fill(runtime.db.engine, IMAGES, JOBS)
    found = cases(IMAGES)
    with running_api(runtime.settings) as client:
        for case in found:
            run_and_explain(runtime, client, case)
    yield {case.name: case for case in found}
    runtime.db.dispose()


def test_no_query_scans_a_large_table(asked: dict[str, Case]) -> None:
    assert [problem for case in asked.values() for problem in case.problems] == []
    assert all(case.queries for name, case in asked.items() if name != "a dataset")


@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("images, middle page", {"ix_images_dataset_id_position"}),
        ("assignments of a cluster", {"ix_assignments_clustering_id_cluster_id_image_id"}),
        ("images of a cluster, representative", {"ix_assignments_by_probability_image_id"}),
        ("images of a cluster, borderline", {"ix_assignments_by_margin"}),
        ("images of a cluster, outlier", {"ix_assignments_by_distance"}),
        ("jobs that failed", {"ix_jobs_tenant_status_id"}),
        ("the collector asks for 500 hashes", {"ix_images_sha256"}),
    ],
)
def test_each_list_has_its_index(asked: dict[str, Case], name: str, indexes: set[str]) -> None:
    used = {index for query in asked[name].queries for index in query.indexes}
    assert indexes <= used
