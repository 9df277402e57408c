"""The database with many images: the time and the query plan of each query.

.venv/bin/python -m benchmarks.scale_database --images 10000000 --database postgresql

It starts a PostgreSQL server (or creates a SQLite file), fills it, runs the queries of users
and workers, and fails if a query scans a large table sequentially. 10 million
images need about 12 GB of disk and ten minutes.
"""

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi.testclient import TestClient
from sqlalchemy import create_engine, text

from app.core.clusterings.revisions import iterate_pages, open_revision
from app.core.clusterings.rows import get_clustering
from app.core.platform.actor import DEFAULT_TENANT
from app.core.platform.migrations import upgrade
from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from app.main import create_app
from benchmarks.scale_plans import cases, full_plans, run_and_explain, summary
from benchmarks.scale_rows import LARGE, clustering_of, fill
from tests.servers import run_postgres

_EXPORT_PAGES = 250  # of 2,000 images each


@contextmanager
def instance(database: str) -> Iterator[Runtime]:
    with tempfile.TemporaryDirectory(prefix="temi-scale-") as folder:
        settings = Settings(
            _env_file=None, data_dir=Path(folder), log_level="error", database_seconds=7_200
        )
        if database == "sqlite":
            yield Runtime(settings)
            return
        with run_postgres() as server:
            engine = create_engine(f"{server}/postgres", isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                connection.execute(text("CREATE DATABASE scale"))
            engine.dispose()
            yield Runtime(settings.model_copy(update={"database_url": f"{server}/scale"}))


def measure_export(runtime: Runtime) -> float:
    """Return images/s, read as an export reads them."""
    with runtime.db.read() as session:
        clustering = get_clustering(session, DEFAULT_TENANT, clustering_of(LARGE))
        view = open_revision(session, clustering)
    started, count = time.perf_counter(), 0
    for number, page in enumerate(iterate_pages(runtime.db, view)):
        count += len(page)
        if number >= _EXPORT_PAGES:
            break
    return count / (time.perf_counter() - started)


def database_bytes(runtime: Runtime) -> int:
    size = (
        "SELECT pg_database_size(current_database())"
        if runtime.db.engine.name == "postgresql"
        else "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    )
    with runtime.db.engine.connect() as connection:
        return int(connection.scalar(text(size)) or 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10_000_000)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--database", choices=["postgresql", "sqlite"], default="postgresql")
    parser.add_argument("--plans", type=Path, help="write the complete plans to this Markdown file")
    options = parser.parse_args()
    logging.disable(logging.INFO)
    problems: list[str] = []
    plans: list[str] = []
    with instance(options.database) as runtime:
        upgrade(runtime.db)
        started = time.perf_counter()
        fill(runtime.db.engine, options.images, options.jobs)
        print(f"filled in {time.perf_counter() - started:.0f} s", flush=True)
        print(f"{database_bytes(runtime) / options.images:.0f} bytes an image, indexes included\n")
        print("| what | ms | rows read | how |\n|---|---|---|---|", flush=True)
        with TestClient(create_app(runtime.settings)) as client:
            for case in cases(options.images):
                run_and_explain(runtime, client, case)
                problems += case.problems
                plans += [full_plans(case)] if case.queries else []
                rows = sum(query.rows_read for query in case.queries)
                how = "<br>".join(summary(query) for query in case.queries)
                print(f"| {case.name} | {1000 * case.seconds:.1f} | {rows} | {how} |", flush=True)
        print(f"\nexport: {measure_export(runtime):,.0f} images a second")
        runtime.db.dispose()
    if options.plans:
        options.plans.write_text("\n".join(plans), encoding="utf-8")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
