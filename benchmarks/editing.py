"""Requests of a person who edits a clustering of many images: how long each takes over HTTP.

.venv/bin/python -m benchmarks.editing --images 100000

It fills a SQLite file or a PostgreSQL server, starts `temi serve` on it, and prints the best and
the median of several requests of each kind.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from sqlalchemy import create_engine, text, update

from app.core.clusterings.rows import refresh_clusters
from app.core.platform.db import Database
from app.core.platform.migrations import upgrade
from app.core.platform.tables import Assignment
from benchmarks.live import running_service
from benchmarks.scale_rows import LARGE, analyze, clustering_of, fill
from tests.servers import run_postgres

_REPEATS = 10
_MERGED = 10_000  # images of each of the two clusters that are merged
_CLUSTERING = clustering_of(LARGE)


@contextmanager
def database_url(kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        (folder / "data").mkdir()
        yield f"sqlite:///{folder}/data/temi.db"
        return
    with run_postgres() as server:
        engine = create_engine(f"{server}/postgres", isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text("CREATE DATABASE editing"))
        engine.dispose()
        yield f"{server}/editing"


def prepare(url: str, images: int, merged: int = _MERGED) -> None:
    """Nine tenths of the rows are the large clustering; its clusters 1 and 2 get `merged`."""
    db = Database(url)
    upgrade(db)
    fill(db.engine, -(-images * 10 // 9), 100)
    with db.write() as session:
        for cluster in (1, 2):
            first, last = ((cluster - 1) * merged, cluster * merged)
            is_member = Assignment.image_id.between(f"img_{first:026d}", f"img_{last - 1:026d}")
            session.execute(
                update(Assignment)
                .where(Assignment.clustering_id == _CLUSTERING, is_member)
                .values(cluster_id=cluster)
                .execution_options(synchronize_session=False)
            )
        refresh_clusters(session, _CLUSTERING)
    analyze(db.engine)
    db.dispose()


def measure(client: httpx.Client) -> None:
    clustering = f"/v1/clusterings/{_CLUSTERING}"
    cursors = f"{clustering}/clusters/1/images/cursors?every=200"
    _report("a clustering", _gets(client, clustering))
    tag = {"If-None-Match": client.get(clustering).headers["ETag"]}
    _report("a clustering, not modified", _gets(client, clustering, 500, tag))
    _report("1,000 clusters", _gets(client, f"{clustering}/clusters?limit=1000&examples=0"))
    _report(
        "1,000 clusters with 9 examples",
        _gets(client, f"{clustering}/clusters?limit=1000&examples=9"),
    )
    _report(
        "cursors of the dataset", _gets(client, f"/v1/datasets/{LARGE}/images/cursors?every=200")
    )
    _report("cursors of 10,000 images", _gets(client, cursors))
    _report("cursors of 10,000 images, borderline", _gets(client, f"{cursors}&sort=borderline"))
    _report_edits(client, "merge", {"cluster_ids": [1, 2]})
    _report_edits(client, "exclude", {"selection": {"cluster_id": 1}})
    _report_edits(client, "rename", {"cluster_id": 1, "label": "cats"})


def _gets(
    client: httpx.Client, path: str, count: int = _REPEATS, headers: dict[str, str] | None = None
) -> list[float]:
    client.get(path)
    return [
        _timed(client.build_request("GET", path, headers=headers), client) for _ in range(count)
    ]


def _report_edits(client: httpx.Client, kind: str, arguments: dict[str, object]) -> None:
    bodies: list[dict[str, object]] = [
        {"kind": kind, **arguments},
        {"kind": "undo"},
        {"kind": "redo"},
        {"kind": "undo"},
    ]
    taken: dict[str, list[float]] = {}
    path, headers = f"/v1/clusterings/{_CLUSTERING}/operations", {"If-Match": "*"}
    for _ in range(_REPEATS):
        for body in bodies:
            request = client.build_request("POST", path, json=body, headers=headers)
            taken.setdefault(str(body["kind"]), []).append(_timed(request, client))
    for name, milliseconds in taken.items():
        _report(name if name == kind else f"{name} of {kind}", milliseconds)


def _timed(request: httpx.Request, client: httpx.Client) -> float:
    started = time.perf_counter()
    answer = client.send(request)
    taken = (time.perf_counter() - started) * 1000
    assert answer.status_code in (200, 201, 304), answer.text
    return taken


def _report(name: str, milliseconds: list[float]) -> None:
    best, median = min(milliseconds), statistics.median(milliseconds)
    print(
        f"{name:<40} best {best:7.1f} ms, median {median:7.1f} ms, {1000 / median:6.0f} per second"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="temi-editing-") as folder,
        database_url(chosen.database, Path(folder)) as url,
    ):
        prepare(url, chosen.images)
        with (
            running_service(Path(folder), database_url=url) as (server, _),
            httpx.Client(base_url=server, timeout=60) as client,
        ):
            measure(client)


if __name__ == "__main__":
    main()
