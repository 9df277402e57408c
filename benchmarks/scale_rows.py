"""Fills a database of any size with SQL: images, assignments, jobs.

Nine tenths of the images are one dataset, the rest another; each has a clustering. Two fifths of
the probabilities are exactly 1, as confident models give them.
"""

from sqlalchemy import Connection, Engine, insert, text
from sqlalchemy.schema import CreateIndex, DropIndex

from app.core.jobs.kinds import KINDS
from app.core.platform.actor import DEFAULT_TENANT
from app.core.platform.tables import Assignment, Cluster, Clustering, Dataset, Image, Job

LARGE, SMALL = "ds_large", "ds_small"
CLUSTERS = 1_000
TENANTS = 20

_NUMBERS = {
    "postgresql": "generate_series({first}, {last}) AS numbers(n)",
    "sqlite": "(WITH RECURSIVE numbers(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers "
    "WHERE n < {last}) SELECT n FROM numbers)",
}
_HASH = {
    "postgresql": "md5(n::text) || md5('b' || n::text)",
    "sqlite": "lower(hex(randomblob(32)))",
}
_ID = {
    "postgresql": "'img_' || lpad(n::text, 26, '0')",
    "sqlite": "'img_' || printf('%026d', n)",
}
_IMAGES = """
INSERT INTO images (id, dataset_id, position, name, sha256, width, height, format, bytes, label,
                    attributes, notes)
SELECT {id}, '{dataset}', n - {first}, 'photos/' || n || '.jpg', {hash}, 640, 480, 'JPEG',
       100000 + n % 50000, CASE WHEN n % 3 = 0 THEN 'label ' || (n % 100) END, '{{}}', '[]'
FROM {numbers}
"""
# The cluster is independent of the order of the images; one in two hundred was removed.
_ASSIGNMENTS = """
INSERT INTO assignments (clustering_id, image_id, cluster_id, probability, margin, distance)
SELECT '{clustering}', {id},
       CASE WHEN n % 199 = 0 THEN -1 ELSE ((n % 1000) * ((n / 1000) % 1000)) % {clusters} END,
       CASE WHEN n % 5 < 2 THEN 1.0 ELSE (n % 99991) / 99991.0 END,
       (n % 99989) / 99989.0, (n % 99971) / 99971.0
FROM {numbers}
"""


def fill(engine: Engine, images: int, jobs: int) -> None:
    """Fill empty tables; indexes are dropped first and created again, which is faster."""
    with engine.begin() as connection:
        _add_owners(connection, images)
        _add_jobs(connection, jobs)
    indexes = [i for table in (Image, Assignment) for i in table.__table__.indexes]  # type: ignore[attr-defined]
    with engine.begin() as connection:
        for index in indexes:
            connection.execute(DropIndex(index))
        for dataset, first, last in _shares(images):
            _insert(connection, _IMAGES, dataset, first, last)
        for dataset, first, last in _shares(images):
            _insert(connection, _ASSIGNMENTS, dataset, first, last)
        for index in indexes:
            connection.execute(CreateIndex(index))
    analyze(engine)


def analyze(engine: Engine) -> None:
    """Update the statistics, as the database does after a while."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE" if engine.name == "sqlite" else "VACUUM ANALYZE"))


def clustering_of(dataset: str) -> str:
    return dataset.replace("ds_", "cl_")


def _shares(images: int) -> list[tuple[str, int, int]]:
    border = images * 9 // 10
    return [(LARGE, 0, border - 1), (SMALL, border, images - 1)]


def _insert(connection: Connection, statement: str, dataset: str, first: int, last: int) -> None:
    name = connection.dialect.name
    connection.exec_driver_sql(
        statement.format(
            id=_ID[name],
            hash=_HASH[name],
            numbers=_NUMBERS[name].format(first=first, last=last),
            dataset=dataset,
            clustering=clustering_of(dataset),
            clusters=CLUSTERS,
            first=first,
        ).replace("%", "%%" if name == "postgresql" else "%")
    )


def _add_owners(connection: Connection, images: int) -> None:
    for number in range(0, TENANTS, 2):
        tenant = f"tenant{number}"
        connection.execute(insert(Dataset).values(id=f"ds_{tenant}", tenant=tenant, name="empty"))
    for dataset, first, last in _shares(images):
        count = last - first + 1
        connection.execute(
            insert(Dataset).values(
                id=dataset, tenant=DEFAULT_TENANT, name=dataset, status="ready",
                fingerprint="f" * 64, end_position=count, image_count=count,
            )
        )  # fmt: skip
        clustering = clustering_of(dataset)
        connection.execute(
            insert(Clustering).values(
                id=clustering, tenant=DEFAULT_TENANT, dataset_id=dataset, model_name="m",
                model_version=1, n_clusters=CLUSTERS, image_count=count, metrics={},
            )
        )  # fmt: skip
        connection.execute(
            insert(Cluster),
            [
                {"clustering_id": clustering, "cluster_id": number, "label": f"c {number}",
                 "size": count // CLUSTERS}
                for number in range(CLUSTERS)
            ],
        )  # fmt: skip


def _add_jobs(connection: Connection, jobs: int) -> None:
    """Most jobs have ended; one in a thousand is queued, one in five thousand is running."""
    kinds = list(KINDS)
    rows = [
        {
            "id": f"job_{number:026d}",
            "tenant": DEFAULT_TENANT if number % 2 else f"tenant{number % TENANTS}",
            "kind": kinds[number % len(kinds)],
            "status": _status(number),
            "dataset_id": _dataset(number),
            "config": {"source": {}},
            "stages": [],
            "priority": number % 3,
            "lease_until": 4e9 if number % 2 else 0.0,
        }
        for number in range(jobs)
    ]
    for start in range(0, len(rows), 10_000):
        connection.execute(insert(Job), rows[start : start + 10_000])


def _dataset(number: int) -> str:
    if number % 2 == 0:
        return f"ds_tenant{number % TENANTS}"
    return SMALL if number % 10 == 1 else LARGE


def _status(number: int) -> str:
    if number % 1_000 == 7:
        return "queued"
    if number % 5_000 == 11:
        return "running"
    return "failed" if number % 50 == 3 else "succeeded"
