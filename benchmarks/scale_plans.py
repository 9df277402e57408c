"""What the service asks the database for, and how the database goes about it.

Questions are not written down here: they are those that the API and the workers send, caught on
their way and asked again with EXPLAIN.
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
from app.core.storage.blobs import _used
from benchmarks.scale_rows import LARGE, SMALL, clustering_of

BIG = ("images", "assignments", "jobs")


@dataclass
class Question:
    """A statement with its values, and what the database said about it."""

    statement: str
    values: Any
    seconds: float = 0.0
    plan: Any = None
    lines: list[str] = field(default_factory=list)  # the plan as people read it

    @property
    def scans(self) -> list[str]:
        """Large tables that are read from one end to the other."""
        if isinstance(self.plan, list):
            return [line for line in self.plan if _is_scan(line)]
        return [
            f"{node['Node Type']} on {node['Relation Name']}"
            for node in _nodes(self.plan["Plan"])
            if node["Node Type"].endswith("Seq Scan") and node["Relation Name"] in BIG
        ]

    @property
    def rows_read(self) -> int:
        """Of large tables, also those that were looked at in vain. SQLite does not tell."""
        if isinstance(self.plan, list):
            return 0
        return sum(
            round(
                (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            )
            for node in _nodes(self.plan["Plan"])
            if node.get("Relation Name") in BIG
        )

    @property
    def indexes(self) -> set[str]:
        if isinstance(self.plan, list):
            found = (re.search(r"USING (?:COVERING )?INDEX (\w+)", line) for line in self.plan)
            return {match[1] for match in found if match}
        return {node["Index Name"] for node in _nodes(self.plan["Plan"]) if "Index Name" in node}


@dataclass
class Case:
    """Something that a user or a worker does."""

    name: str
    act: Callable[[TestClient, Runtime], None]
    most_rows: int | None = 2_000  # of large tables; None: it counts all there are
    sorts: bool = False  # a few rows that it has found before
    questions: list[Question] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def problems(self) -> list[str]:
        """Why it would become slow with the size of the tables."""
        if self.most_rows is None:
            return []
        found = [f"{self.name}: {scan}" for question in self.questions for scan in question.scans]
        for question in self.questions:
            if not self.sorts and _sorts_all(question.plan):
                found.append(f"{self.name}: sorts all it finds")
            if question.rows_read > self.most_rows:
                found.append(f"{self.name}: reads {question.rows_read} rows")
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
        Case("clusters with examples", _get(f"{large}/clusters"), 10_000),
        Case("jobs", _get("/v1/jobs")),
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
        Case("a worker looks for what is due", lambda _, runtime: _hints(runtime), sorts=True),
        Case("the collector asks for 500 hashes", lambda _, runtime: _blobs(runtime)),
        Case("figures of all jobs", lambda _, runtime: _load(runtime), None),
        Case("a page of an export", lambda _, runtime: _export(runtime), 10_000, sorts=True),
    ]
    return found


def ask(runtime: Runtime, client: TestClient, case: Case) -> None:
    """Do it twice, the second time with a watch, and explain every question it leads to."""
    case.act(client, runtime)
    started = time.perf_counter()
    case.act(client, runtime)
    case.seconds = time.perf_counter() - started
    with caught() as questions:
        case.act(client, runtime)
    unique = {question.statement: question for question in questions}
    case.questions = [q for q in unique.values() if any(name in q.statement for name in BIG)]
    for question in case.questions:
        explain(runtime.db.engine, question)


@contextmanager
def caught() -> Iterator[list[Question]]:
    questions: list[Question] = []

    def note(_c: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "UPDATE", "WITH")):
            questions.append(Question(statement, values))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield questions
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def explain(engine: Engine, question: Question) -> None:
    with engine.connect() as connection:

        def said(command: str) -> Result[Any]:
            return connection.exec_driver_sql(f"{command} {question.statement}", question.values)

        if engine.name == "sqlite":
            question.plan = question.lines = list(said("EXPLAIN QUERY PLAN").scalars(3))
        else:
            (question.plan,) = said("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)").scalar_one()
            question.seconds = question.plan["Execution Time"] / 1000
            connection.rollback()  # ANALYZE has really done it
            question.lines = list(said("EXPLAIN (ANALYZE, BUFFERS)").scalars())
        connection.rollback()


def summary(question: Question) -> str:
    """The plan in a few words: each step with its index, rows and buffers."""
    if isinstance(question.plan, list):
        return "; ".join(question.plan)
    steps = []
    for node in _nodes(question.plan["Plan"]):
        if "Relation Name" in node:
            over = f" by {node['Index Name']}" if "Index Name" in node else ""
            rows = round(node["Actual Rows"] * node["Actual Loops"])
            steps.append(f"{node['Node Type']} on {node['Relation Name']}{over} ({rows} rows)")
    plan = question.plan["Plan"]
    buffers = plan.get("Shared Hit Blocks", 0) + plan.get("Shared Read Blocks", 0)
    return "; ".join(dict.fromkeys(steps)) + f"; {buffers} buffers"


def in_full(case: Case) -> str:
    """Every plan of a case as the database tells it, as Markdown."""
    plans = ("\n".join(["```", *question.lines, "```"]) for question in case.questions)
    return "\n\n".join([f"## {case.name[:1].upper()}{case.name[1:]}", *plans]) + "\n"


def _get(path: str, **query: Any) -> Callable[[TestClient, Runtime], None]:
    def act(client: TestClient, _runtime: Runtime) -> None:
        answer = client.get(path, params=query)
        assert answer.status_code == 200, answer.text

    return act


class _Undone(Exception):
    pass


def _claim(runtime: Runtime) -> None:
    _undone(runtime, lambda session: claim_next(session, worker="w", lease_seconds=9))


def _hints(runtime: Runtime) -> None:
    _undone(runtime, due_for_notification)


def _undone(runtime: Runtime, act: Callable[[Any], object]) -> None:
    try:
        with runtime.db.write() as session:
            assert act(session)
            raise _Undone
    except _Undone:
        pass


def _blobs(runtime: Runtime) -> None:
    with runtime.db.read() as session:
        _used(session, [f"{number:064x}" for number in range(500)])


def _export(runtime: Runtime) -> None:
    with runtime.db.read() as session:
        clustering = get_clustering(session, DEFAULT_TENANT, clustering_of(LARGE))
        view = open_revision(session, clustering)
    next(iterate_pages(runtime.db, view))


def _load(runtime: Runtime) -> None:
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
    return bool(found and re.sub(r"_\d+$", "", found[1]) in BIG)


def _sorts_all(plan: Any) -> bool:
    """SQLite says so. PostgreSQL is asked how many rows it has read instead."""
    return isinstance(plan, list) and "USE TEMP B-TREE FOR ORDER BY" in plan
