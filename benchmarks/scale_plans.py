"""Records the SQL statements of the service and their query plans.

The statements are not copied here: those of the API and the workers are intercepted and run
again with EXPLAIN.
"""

import base64
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import Engine, Result, event

from app.core.clusterings.revisions import iterate_pages, open_revision
from app.core.clusterings.rows import get_clustering
from app.core.jobs.lifecycle import claim_next
from app.core.jobs.notifications import due_for_notification
from app.core.jobs.queue_stats import read_queue_stats
from app.core.platform.actor import DEFAULT_TENANT
from app.core.runtime import Runtime
from app.core.storage.deletion.owners import BLOB_KIND
from app.core.storage.keys import blob_key
from benchmarks.scale_rows import LARGE, SMALL, clustering_of

LARGE_TABLES = ("images", "assignments", "jobs")


@dataclass
class Query:
    """A statement with its parameters, and its query plan."""

    statement: str
    parameters: Any
    seconds: float = 0.0
    plan: Any = None
    lines: list[str] = field(default_factory=list)  # the plan as text

    @property
    def scans(self) -> list[str]:
        """Large tables that are scanned sequentially."""
        if isinstance(self.plan, list):
            return [line for line in self.plan if _is_scan(line)]
        return [
            f"{node['Node Type']} on {node['Relation Name']}"
            for node in _nodes(self.plan["Plan"])
            if node["Node Type"].endswith("Seq Scan") and node["Relation Name"] in LARGE_TABLES
        ]

    @property
    def rows_read(self) -> int:
        """Rows read of large tables, including discarded ones; SQLite does not report them."""
        if isinstance(self.plan, list):
            return 0
        return sum(
            round(
                (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            )
            for node in _nodes(self.plan["Plan"])
            if node.get("Relation Name") in LARGE_TABLES
        )

    @property
    def indexes(self) -> set[str]:
        if isinstance(self.plan, list):
            found = (re.search(r"USING (?:COVERING )?INDEX (\w+)", line) for line in self.plan)
            return {match[1] for match in found if match}
        return {node["Index Name"] for node in _nodes(self.plan["Plan"]) if "Index Name" in node}


@dataclass
class Case:
    """An action of a user or a worker."""

    name: str
    act: Callable[[TestClient, Runtime], None]
    max_rows: int | None = 2_000  # of large tables; None: it counts all rows
    sorts: bool = False  # True: it sorts a few rows that it has found before
    queries: list[Query] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def problems(self) -> list[str]:
        """The reasons why it would become slow with the size of the tables."""
        if self.max_rows is None:
            return []
        found = [f"{self.name}: {scan}" for query in self.queries for scan in query.scans]
        for query in self.queries:
            if not self.sorts and _sorts_all(query.plan):
                found.append(f"{self.name}: sorts all it finds")
            if query.rows_read > self.max_rows:
                found.append(f"{self.name}: reads {query.rows_read} rows")
        return found


def cases(images: int) -> list[Case]:
    large, small = (f"/v1/clusterings/{clustering_of(name)}" for name in (LARGE, SMALL))
    middle, last = images * 9 // 20, images * 9 // 10 - 50
    found = []
    for place, position in (("first", -1), ("middle", middle), ("last", last)):
        after = {} if position < 0 else {"cursor": _cursor(str(position))}
        at_image = {} if position < 0 else {"cursor": _cursor(f"img_{position:026d}")}
        found += [
            Case(f"images, {place} page", _get(f"/v1/datasets/{LARGE}/images", **after)),
            Case(
                f"assignments, {place} page",
                _get(f"{large}/assignments", **at_image),
            ),
        ]
    found += [
        Case("assignments of a small dataset", _get(f"{small}/assignments")),
        Case("assignments of a cluster", _get(f"{large}/assignments", cluster_id=8)),
        Case(
            "assignments of a cluster that another has, too",
            _get(
                f"{large}/assignments", cluster_id=8, other=clustering_of(LARGE), other_cluster_id=8
            ),
        ),
        Case("assignments taken out", _get(f"{small}/assignments", excluded=True)),
        Case("assignments in use", _get(f"{large}/assignments", excluded=False)),
    ]
    found += [
        Case(
            f"images of a cluster, {sort}",
            _get(f"{large}/clusters/0/images", sort=sort),
        )
        for sort in ("representative", "borderline", "outlier")
    ]
    tie = _cursor(f"1.0 img_{images // 100:026d}")
    found += [
        Case(
            "images of a cluster, among ties",
            _get(f"{large}/clusters/0/images", cursor=tie),
        ),
        Case("clusters with examples", _get(f"{large}/clusters", examples=9), 10_000),
        Case("jobs", _get("/v1/jobs")),
        Case("jobs of a kind", _get("/v1/jobs", kind="map")),
        Case("jobs that failed", _get("/v1/jobs", status="failed")),
        Case("jobs that wait", _get("/v1/jobs", status="queued")),
        Case("jobs of a dataset", _get("/v1/jobs", dataset_id=SMALL)),
        Case(
            "jobs of a dataset that failed",
            _get("/v1/jobs", dataset_id=SMALL, status="failed"),
            sorts=True,
        ),
        Case("duplicates", _get(f"/v1/datasets/{LARGE}/duplicates")),
        Case("an image", _get(f"/v1/images/img_{images // 3:026d}")),
        Case("a dataset", _get(f"/v1/datasets/{LARGE}")),
        Case("a worker claims a job", lambda _, runtime: _claim(runtime), sorts=True),
        Case(
            "a worker looks for what is due",
            lambda _, runtime: _due_notifications(runtime),
            sorts=True,
        ),
        Case("the collector asks for 500 hashes", lambda _, runtime: _blobs(runtime)),
        Case("figures of all jobs", lambda _, runtime: _queue_stats(runtime), None),
        Case("a page of an export", lambda _, runtime: _export(runtime), 10_000, sorts=True),
    ]
    return found


def run_and_explain(runtime: Runtime, client: TestClient, case: Case) -> None:
    """Run the action twice, time the second run, and explain every statement."""
    case.act(client, runtime)
    started = time.perf_counter()
    case.act(client, runtime)
    case.seconds = time.perf_counter() - started
    with recorded_queries() as queries:
        case.act(client, runtime)
    unique = {query.statement: query for query in queries}
    case.queries = [q for q in unique.values() if any(name in q.statement for name in LARGE_TABLES)]
    for query in case.queries:
        explain(runtime.db.engine, query)


@contextmanager
def recorded_queries() -> Iterator[list[Query]]:
    queries: list[Query] = []

    def record(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "UPDATE", "WITH")):
            queries.append(Query(statement, parameters))

    event.listen(Engine, "before_cursor_execute", record)
    try:
        yield queries
    finally:
        event.remove(Engine, "before_cursor_execute", record)


def explain(engine: Engine, query: Query) -> None:
    with engine.connect() as connection:

        def run(command: str) -> Result[Any]:
            return connection.exec_driver_sql(f"{command} {query.statement}", query.parameters)

        if engine.name == "sqlite":
            query.plan = query.lines = list(run("EXPLAIN QUERY PLAN").scalars(3))
        else:
            (query.plan,) = run("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)").scalar_one()
            query.seconds = query.plan["Execution Time"] / 1000
            connection.rollback()  # EXPLAIN ANALYZE has executed the statement
            query.lines = list(run("EXPLAIN (ANALYZE, BUFFERS)").scalars())
        connection.rollback()


def summary(query: Query) -> str:
    """Summarize the plan: each step with its index, rows and buffers."""
    if isinstance(query.plan, list):
        return "; ".join(query.plan)
    steps = []
    for node in _nodes(query.plan["Plan"]):
        if "Relation Name" in node:
            over = f" by {node['Index Name']}" if "Index Name" in node else ""
            rows = round(node["Actual Rows"] * node["Actual Loops"])
            steps.append(f"{node['Node Type']} on {node['Relation Name']}{over} ({rows} rows)")
    plan = query.plan["Plan"]
    buffers = plan.get("Shared Hit Blocks", 0) + plan.get("Shared Read Blocks", 0)
    return "; ".join(dict.fromkeys(steps)) + f"; {buffers} buffers"


def full_plans(case: Case) -> str:
    """Return the complete plans of a case as Markdown."""
    plans = ("\n".join(["```", *map(_shorten_lists, query.lines), "```"]) for query in case.queries)
    return "\n\n".join([f"## {case.name[:1].upper()}{case.name[1:]}", *plans]) + "\n"


def _shorten_lists(line: str) -> str:
    """Leave all but the first value of a long list out."""

    def shorten(found: re.Match[str]) -> str:
        values = found[1].split(",")
        return f"{{{values[0]}, and {len(values) - 1} more}}" if len(values) > 5 else found[0]

    return re.sub(r"\{([^{}]*)\}", shorten, line)


def _get(path: str, **query: Any) -> Callable[[TestClient, Runtime], None]:
    def act(client: TestClient, _runtime: Runtime) -> None:
        response = client.get(path, params=query)
        assert response.status_code == 200, response.text

    return act


class _Rollback(Exception):
    pass


def _claim(runtime: Runtime) -> None:
    _rolled_back(runtime, lambda session: claim_next(session, worker="w", lease_seconds=9))


def _due_notifications(runtime: Runtime) -> None:
    _rolled_back(runtime, due_for_notification)


def _rolled_back(runtime: Runtime, act: Callable[[Any], object]) -> None:
    try:
        with runtime.db.write() as session:
            assert act(session)
            raise _Rollback
    except _Rollback:
        pass


def _blobs(runtime: Runtime) -> None:
    with runtime.db.read() as session:
        BLOB_KIND.owned(session, [blob_key(f"{number:064x}") for number in range(500)])


def _export(runtime: Runtime) -> None:
    with runtime.db.read() as session:
        clustering = get_clustering(session, DEFAULT_TENANT, clustering_of(LARGE))
        view = open_revision(session, clustering)
    next(iterate_pages(runtime.db, view))


def _queue_stats(runtime: Runtime) -> None:
    with runtime.db.read() as session:
        read_queue_stats(session)


def _cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _is_scan(line: str) -> bool:
    found = re.match(r"SCAN (\w+)", line)
    return bool(found and re.sub(r"_\d+$", "", found[1]) in LARGE_TABLES)


def _sorts_all(plan: Any) -> bool:
    """For SQLite; for PostgreSQL the number of rows read is checked instead."""
    return isinstance(plan, list) and "USE TEMP B-TREE FOR ORDER BY" in plan
