"""The stream of all labels of a dataset."""

import csv
import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pyarrow as pa
import pytest
import uvicorn
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from app.core.clusterings import revisions
from app.core.platform.settings import Settings
from app.core.platform.tables import EXCLUDED, Clustering
from app.core.runtime import Runtime
from app.main import create_app
from tests.core.labeled_rows import State, add_images, store_history
from tests.waiting import LONG_SECONDS, join, wait_until

CLUSTERS = {0: ("cats", True), 1: ("dogs", True)}
HISTORY = [
    State((0, 1, 0, 1), CLUSTERS),
    State((0, 1, EXCLUDED, 1), CLUSTERS | {0: ("big, cats", True)}),
]
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture
def clustering(any_runtime: Runtime) -> Clustering:
    dataset = add_images(any_runtime, 4, label=["x", None, None, None])
    return store_history(any_runtime, dataset.id, HISTORY)


def url_of(clustering: Clustering) -> str:
    return f"/v1/datasets/{clustering.dataset_id}/labels"


def lines(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_json_lines_by_default(any_client: TestClient, clustering: Clustering) -> None:
    answer = any_client.get(url_of(clustering))
    rows = lines(answer)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["x-clustering"] == clustering.id
    assert answer.headers["x-revision"] == "2"
    assert "content-length" not in answer.headers
    assert rows[0] == {
        "image_id": rows[0]["image_id"],
        "name": "image 0.png",
        "cluster_id": 0,
        "label": "big, cats",
        "probability": 1.0,
        "excluded": False,
        "true_label": "x",
    }
    assert [row["cluster_id"] for row in rows] == [0, 1, None, 1]
    assert rows[2]["excluded"] is True
    assert any_client.get(f"/v1/images/{rows[3]['image_id']}").json()["name"] == "image 3.png"


def test_csv(any_client: TestClient, clustering: Clustering) -> None:
    answer = any_client.get(url_of(clustering), headers={"Accept": "text/csv"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert [row["label"] for row in rows] == ["big, cats", "dogs", "", "dogs"]
    assert [row["excluded"] for row in rows] == ["false", "false", "true", "false"]


def test_arrow(any_client: TestClient, clustering: Clustering) -> None:
    answer = any_client.get(url_of(clustering), headers={"Accept": f"{ARROW}, */*;q=0.1"})
    assert answer.headers["content-type"] == ARROW
    with pa.ipc.open_stream(answer.content) as reader:
        table = reader.read_all()
    assert table["cluster_id"].to_pylist() == [0, 1, None, 1]
    assert table.schema.metadata[b"temi.clustering_id"] == clustering.id.encode()


def test_filters_and_revisions(any_client: TestClient, clustering: Clustering) -> None:
    def clusters(**params: Any) -> list[int | None]:
        answer = any_client.get(url_of(clustering), params=params)
        return [row["cluster_id"] for row in lines(answer)]

    assert clusters(revision=1) == [0, 1, 0, 1]
    assert clusters(cluster_id=1) == [1, 1]
    assert clusters(cluster_id=[0, 1]) == [0, 1, 1]
    assert clusters(min_probability=0.8) == [0, 1]
    assert clusters(clustering_id=clustering.id, revision=2) == [0, 1, None, 1]


def test_the_current_clustering_is_the_default(
    any_client: TestClient, any_runtime: Runtime, clustering: Clustering
) -> None:
    """A newer clustering changes no label until a person chooses it."""
    newer = store_history(any_runtime, clustering.dataset_id, [State((1, 1, 1, 1), CLUSTERS)])
    url = url_of(clustering)
    assert any_client.get(url).headers["x-clustering"] == clustering.id
    other = any_client.get(url, params={"clustering_id": newer.id})
    assert other.headers["x-clustering"] == newer.id
    choice = f"/v1/datasets/{clustering.dataset_id}/current-clustering"
    assert any_client.put(choice, json={"clustering_id": newer.id}).status_code == 200
    assert any_client.get(url).headers["x-clustering"] == newer.id


def test_unknown_resources(
    any_client: TestClient, any_runtime: Runtime, clustering: Clustering
) -> None:
    unsorted = add_images(any_runtime, 1)
    other = f"/v1/datasets/{unsorted.id}/labels"
    nothing = any_client.get(other)
    assert (nothing.status_code, nothing.json()["code"]) == (404, "not_found")
    assert "no labels yet" in nothing.json()["detail"]
    for url, params in (
        (other, {"clustering_id": clustering.id}),
        (url_of(clustering), {"clustering_id": "cl_none"}),
        ("/v1/datasets/ds_none/labels", {}),
    ):
        assert any_client.get(url, params=params).status_code == 404


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"revision": 3}, "revision"),
        ({"revision": 0}, "revision"),
        ({"cluster_id": 7}, "cluster_id"),
        ({"min_probability": 1.5}, "min_probability"),
    ],
)
def test_invalid_parameters(
    any_client: TestClient, clustering: Clustering, params: dict[str, Any], field: str
) -> None:
    answer = any_client.get(url_of(clustering), params=params)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_an_unsupported_media_type(any_client: TestClient, clustering: Clustering) -> None:
    answer = any_client.get(url_of(clustering), headers={"Accept": "application/xml"})
    assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable")
    assert ARROW in answer.json()["detail"]


def test_if_none_match(any_client: TestClient, clustering: Clustering) -> None:
    url = url_of(clustering)
    tag = any_client.get(url).headers["etag"]
    known = {"If-None-Match": tag}
    assert any_client.get(url, headers=known).status_code == 304
    assert any_client.get(url, headers=known, params={"revision": 1}).status_code == 200
    assert any_client.get(url, headers=known | {"Accept": "text/csv"}).status_code == 200
    assert any_client.get(url, headers=known, params={"cluster_id": 0}).status_code == 200


@contextmanager
def served(settings: Settings) -> Iterator[tuple[str, Runtime]]:
    """A real server, whose connections can break."""
    app = create_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive(), "the server has started")
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}", app.state.runtime
    finally:
        server.should_exit = True
        join(thread)


def break_database(runtime: Runtime, after_pages: int) -> None:
    """Makes all later pages fail."""
    seen = 0

    def fail(*args: Any) -> None:
        nonlocal seen
        seen += "assignment_changes" in args[2]
        if seen > after_pages:
            raise OperationalError("SELECT", {}, Exception("server closed the connection"))

    event.listen(runtime.db.engine, "before_cursor_execute", fail)


@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/csv", ARROW])
def test_an_error_in_the_middle_breaks_the_response(
    settings: Settings, runtime: Runtime, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    dataset = add_images(runtime, 4)
    clustering = store_history(runtime, dataset.id, HISTORY)
    pages = revisions.iterate_pages
    monkeypatch.setattr(
        "app.api.routes.dataset_labels.iterate_pages", lambda db, view: pages(db, view, size=1)
    )
    with served(settings) as (address, served_runtime):
        url, headers = f"{address}{url_of(clustering)}", {"Accept": accept}
        asked: dict[str, Any] = {"headers": headers, "timeout": LONG_SECONDS}
        assert httpx.get(url, **asked).status_code == 200
        break_database(served_runtime, after_pages=2)
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(url, **asked)
        late = httpx.get(url, **asked)  # before the first page it can still be told
        assert (late.status_code, late.json()["code"]) == (503, "database_unavailable")
