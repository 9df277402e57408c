"""Operations on a clustering over HTTP: revisions, errors, repetition."""

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from app.api.routes.operations import parse_revisions
from app.core.platform.errors import InvalidRequest, RevisionRequired
from app.core.platform.tables import Clustering
from app.core.runtime import Runtime
from tests.api.conftest import Json, store_clustering, upload, work_on
from tests.images import png_bytes
from tests.keys import bearer, make_key


@pytest.fixture
def url(any_client: TestClient, any_runtime: Runtime) -> str:
    """A clustering of six images, which are in clusters 0 and 1 in turn; cluster 2 is empty."""
    job = upload(any_client, {f"{i}.png": png_bytes((i, i, i)) for i in range(6)})
    work_on(any_runtime, job["id"])
    return f"/v1/clusterings/{store_clustering(any_runtime, job['dataset_id'])}"


def edit(client: TestClient, url: str, body: Any, revision: int = 1, **headers: str) -> Response:
    headers = {"If-Match": f'"{revision}"', **headers}
    answer: Response = client.post(f"{url}/operations", json=body, headers=headers)
    return answer


def images(client: TestClient, url: str) -> list[str]:
    rows: list[Json] = client.get(f"{url}/assignments").json()["data"]
    return [row["image_id"] for row in rows]


def places(client: TestClient, url: str) -> list[int | None]:
    rows: list[Json] = client.get(f"{url}/assignments").json()["data"]
    return [row["cluster_id"] for row in rows]


def labels(client: TestClient, url: str) -> dict[int, str]:
    rows: list[Json] = client.get(f"{url}/clusters").json()["data"]
    return {row["cluster_id"]: row["label"] for row in rows}


def test_a_sequence_of_operations(any_client: TestClient, url: str) -> None:
    ids = images(any_client, url)
    assert any_client.get(url).headers["ETag"] == '"1"'
    steps: list[Json] = [
        {"kind": "rename", "cluster_id": 0, "label": "  Katzen ねこ  "},
        {"kind": "move", "image_ids": ids[:2], "new_cluster": "dogs"},
        {"kind": "merge", "cluster_ids": [0, 1]},
        {"kind": "exclude", "image_ids": [ids[5]]},
        {"kind": "undo"},
    ]
    for number, body in enumerate(steps, start=1):
        answer = edit(any_client, url, body, number)
        assert answer.status_code == 201, answer.text
        assert (answer.json()["kind"], answer.json()["revision"]) == (body["kind"], number + 1)
        assert answer.headers["ETag"] == f'"{number + 1}"'
    assert any_client.get(url).headers["ETag"] == '"6"'
    assert any_client.get(url).json()["revision"] == 6
    assert places(any_client, url) == [3, 3, 0, 0, 0, 0]
    assert labels(any_client, url) == {0: "Katzen ねこ", 2: "cluster 2", 3: "dogs"}
    done = any_client.get(f"{url}/operations").json()["data"]
    assert [(o["revision"], o["kind"], o["moved"]) for o in done] == [
        (6, "undo", 1),
        (5, "exclude", 1),
        (4, "merge", 2),
        (3, "move", 2),
        (2, "rename", 0),
    ]
    assert (done[0]["undoes"], done[1]["undone_by"]) == (5, 6)
    assert done[3]["new_cluster_ids"] == [3]
    assert done[2]["arguments"] == {"cluster_ids": [0, 1], "into": 0, "label": None}


def use_features(runtime: Runtime, url: str, folder: str) -> None:
    with runtime.db.write() as session:
        session.get_one(Clustering, url.rpartition("/")[2]).embedding_folder = folder


def test_a_split(any_client: TestClient, any_runtime: Runtime, url: str) -> None:
    use_features(any_runtime, url, "embeddings/deleted")
    body = {"kind": "split", "cluster_id": 0, "parts": 2, "seed": 3}
    answer = edit(any_client, url, body)
    assert (answer.status_code, answer.json()["code"]) == (409, "features_missing")

    hashes = {
        row["id"]: row["sha256"]
        for row in any_client.get(
            f"/v1/datasets/{any_client.get(url).json()['dataset_id']}/images"
        ).json()["data"]
    }
    rows = [list(bytes.fromhex(hashes[image_id])) for image_id in images(any_client, url)]
    features = np.eye(4, dtype=np.float32)[[0, 1, 0, 1, 2, 1]]
    for name, array in (("features", features), ("hashes", np.array(rows, dtype=np.uint8))):
        with any_runtime.storage.writing(f"embeddings/x/{name}.npy") as file:
            np.save(file, array)
    use_features(any_runtime, url, "embeddings/x")

    options = {"parts": 2, "seed": 3}
    preview = any_client.post(f"{url}/clusters/0:preview-split", json=options)
    assert (preview.status_code, preview.json()["revision"]) == (200, 1)
    parts = preview.json()["parts"]
    assert [(part["part"], part["size"]) for part in parts] == [(0, 2), (1, 1)]
    assert [example["name"] for example in parts[1]["examples"]] == ["4.png"]
    answer = edit(any_client, url, body, 1, **{"Idempotency-Key": "s"})
    assert (answer.status_code, answer.json()["new_cluster_ids"]) == (201, [3])
    assert places(any_client, url) == [0, 1, 0, 1, 3, 1]
    again = edit(any_client, url, body, 1, **{"Idempotency-Key": "s"})
    assert (again.status_code, again.json()) == (201, answer.json())
    assert edit(any_client, url, body).json()["code"] == "revision_stale"
    answer = edit(any_client, url, body | {"parts": 3}, 2)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "parts")


def test_refused_previews(any_client: TestClient, any_runtime: Runtime, url: str) -> None:
    use_features(any_runtime, url, "embeddings/deleted")

    def preview(cluster: Any, body: Any) -> tuple[int, str]:
        answer = any_client.post(f"{url}/clusters/{cluster}:preview-split", json=body)
        return answer.status_code, answer.json()["code"]

    assert preview(0, {}) == (409, "features_missing")
    assert preview(7, {}) == (404, "not_found")
    assert preview(0, {"parts": 4}) == (422, "invalid_request")  # of 3 images
    senseless: list[Any] = [{"parts": 1}, {"parts": 101}, {"seed": -1}, {"more": 1}, []]
    for body in senseless:
        assert preview(0, body) == (422, "invalid_request")


def test_excluded_images(any_client: TestClient, url: str) -> None:
    ids = images(any_client, url)
    edit(any_client, url, {"kind": "exclude", "image_ids": ids[:2]})
    rows = any_client.get(f"{url}/assignments").json()["data"]
    assert [(r["cluster_id"], r["label"], r["excluded"]) for r in rows[:3]] == [
        (None, None, True),
        (None, None, True),
        (0, "cluster 0", False),
    ]
    for excluded, expected in (("true", ids[:2]), ("false", ids[2:])):
        found = any_client.get(f"{url}/assignments", params={"excluded": excluded}).json()["data"]
        assert [row["image_id"] for row in found] == expected
    both = any_client.get(f"{url}/assignments", params={"excluded": "true", "cluster_id": 0})
    assert both.json()["data"] == []
    edit(any_client, url, {"kind": "move", "image_ids": ids[:1], "cluster_id": 2}, 2)
    assert places(any_client, url)[:3] == [2, None, 0]


def test_a_selection(any_client: TestClient, url: str) -> None:
    ids = images(any_client, url)
    selection: Json = {"cluster_id": 0, "except_image_ids": [ids[2]]}
    answer = edit(any_client, url, {"kind": "move", "selection": selection, "cluster_id": 2})
    assert (answer.status_code, answer.json()["moved"]) == (201, 2)
    assert answer.json()["arguments"]["selection"]["except_images"] == 1
    assert places(any_client, url) == [2, 1, 0, 1, 2, 1]

    selection = {"cluster_id": 1, "max_probability": 0.7}  # 0.82, 0.66 and 0.5
    answer = edit(any_client, url, {"kind": "exclude", "selection": selection}, 2)
    assert (answer.status_code, answer.json()["moved"]) == (201, 2)
    assert places(any_client, url) == [2, 1, 0, None, 2, None]


_SENSELESS: list[tuple[Any, str | None]] = [
    ({"kind": "rename", "cluster_id": 9, "label": "x"}, "cluster_id"),
    ({"kind": "rename", "cluster_id": -1, "label": "x"}, "cluster_id"),
    ({"kind": "rename", "cluster_id": 0, "label": "   "}, "label"),
    ({"kind": "rename", "cluster_id": 0, "label": "x" * 201}, "label"),
    ({"kind": "rename", "cluster_id": 0, "label": "a\x00b"}, "label"),
    ({"kind": "rename", "cluster_id": 0, "label": "x", "more": 1}, "more"),
    ({"kind": "merge", "cluster_ids": [0]}, "cluster_ids"),
    ({"kind": "merge", "cluster_ids": [0, 0]}, "cluster_ids"),
    ({"kind": "merge", "cluster_ids": [0, 1], "into": 2}, "into"),
    ({"kind": "split", "cluster_id": 0, "parts": 1}, "parts"),
    ({"kind": "split", "cluster_id": 0, "parts": 101}, "parts"),
    ({"kind": "split", "cluster_id": 0, "parts": 4}, "parts"),
    ({"kind": "split", "cluster_id": 7}, "cluster_id"),
    ({"kind": "split", "cluster_id": 0, "leave": []}, "leave"),
    ({"kind": "split", "cluster_id": 0, "leave": [-1]}, "leave.0"),
    ({"kind": "move", "image_ids": ["img_1"]}, ""),
    ({"kind": "move", "image_ids": ["i"], "cluster_id": 0, "new_cluster": "x"}, ""),
    ({"kind": "move", "image_ids": [], "cluster_id": 0}, "image_ids"),
    ({"kind": "move", "image_ids": ["img_1"], "cluster_id": 0}, "image_ids"),
    ({"kind": "exclude", "image_ids": ["img_1"] * 10_001}, "image_ids"),
    ({"kind": "exclude", "image_ids": ["img_\x00"]}, None),
    ({"kind": "exclude"}, ""),
    ({"kind": "exclude", "image_ids": ["img_1"], "selection": {"cluster_id": 0}}, ""),
    ({"kind": "exclude", "selection": {}}, "selection.cluster_id"),
    ({"kind": "exclude", "selection": {"cluster_id": -1}}, "selection.cluster_id"),
    ({"kind": "exclude", "selection": {"cluster_id": 9}}, "selection.cluster_id"),
    (
        {"kind": "exclude", "selection": {"cluster_id": 0, "min_probability": 2}},
        "selection.min_probability",
    ),
    (
        {"kind": "exclude", "selection": {"cluster_id": 0, "except_image_ids": ["i"] * 10_001}},
        "selection.except_image_ids",
    ),
    (
        {"kind": "exclude", "selection": {"cluster_id": 0, "except_image_ids": ["\x00"]}},
        None,
    ),
    ({"kind": "paint"}, "kind"),
    ({}, "kind"),
    ([], ""),
]


def test_invalid_operations(any_client: TestClient, url: str) -> None:
    for body, field in _SENSELESS:
        answer = edit(any_client, url, body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), body
        if field is not None:
            assert answer.json()["errors"][0]["field"] == field, body
    assert any_client.get(url).json()["revision"] == 1


def test_nothing_to_undo(any_client: TestClient, url: str) -> None:
    answer = edit(any_client, url, {"kind": "undo"})
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_to_undo")


def test_undo_and_redo(any_client: TestClient, url: str) -> None:
    def possible() -> tuple[int | None, int | None]:
        found = any_client.get(url).json()
        (listed,) = any_client.get("/v1/clusterings").json()["data"]
        assert listed == found
        return found["undo"], found["redo"]

    merge = {"kind": "merge", "cluster_ids": [0, 1]}
    steps: list[tuple[Json, tuple[int | None, int | None]]] = [
        (_RENAME, (2, None)),
        (merge, (3, None)),
        ({"kind": "undo"}, (2, 3)),
        ({"kind": "undo"}, (None, 2)),
        ({"kind": "redo"}, (2, 3)),
        ({"kind": "redo"}, (3, None)),
    ]
    assert possible() == (None, None)
    for revision, (body, expected) in enumerate(steps, start=1):
        assert edit(any_client, url, body, revision).status_code == 201
        assert possible() == expected, revision
    assert places(any_client, url) == [0] * 6
    assert labels(any_client, url)[0] == "x"
    newest = any_client.get(f"{url}/operations").json()["data"][0]
    assert (newest["kind"], newest["undoes"], newest["moved"]) == ("redo", 4, 3)
    assert newest["arguments"] == {"revision": 3}
    answer = edit(any_client, url, {"kind": "redo"}, 7)
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_to_redo")


_RENAME = {"kind": "rename", "cluster_id": 0, "label": "x"}


def test_if_match_is_required(any_client: TestClient, url: str) -> None:
    answer = any_client.post(f"{url}/operations", json=_RENAME)
    assert (answer.status_code, answer.json()["code"]) == (428, "revision_required")


def test_if_match_formats(any_client: TestClient, url: str) -> None:
    stale = ['"2"', '"0", "2"', '"x"', '"' + "9" * 30 + '"']
    senseless = ["1", '"1', "", '"1" "2"']
    current = ['"1"', 'W/"2"', '"0", W/"3" ,"7"', "*"]
    for status, forms in ((412, stale), (422, senseless), (201, current)):
        for if_match in forms:
            headers = {"If-Match": if_match}
            answer = any_client.post(f"{url}/operations", json=_RENAME, headers=headers)
            assert answer.status_code == status, (if_match, answer.text)
            assert status != 412 or answer.json()["code"] == "revision_stale"


def test_revisions_of_a_header() -> None:
    assert parse_revisions('"3"') == frozenset({3})
    assert parse_revisions('W/"3", "12","x"') == frozenset({3, 12})
    assert parse_revisions(" * ") is None
    with pytest.raises(RevisionRequired):
        parse_revisions(None)
    with pytest.raises(InvalidRequest):
        parse_revisions('"3",')


def test_a_repeated_operation_happens_once(any_client: TestClient, url: str) -> None:
    key = {"Idempotency-Key": "one"}
    first = edit(any_client, url, _RENAME, 1, **key)
    again = edit(any_client, url, _RENAME, 1, **key)
    later = edit(any_client, url, _RENAME, 2, **key)  # the sender has looked in between
    assert first.json() == again.json() == later.json()
    assert {a.headers["ETag"] for a in (first, again, later)} == {'"2"'}
    assert any_client.get(url).json()["revision"] == 2
    other = edit(any_client, url, _RENAME | {"label": "y"}, 2, **key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


def test_an_unknown_clustering(any_client: TestClient) -> None:
    for body in (_RENAME, {"kind": "split", "cluster_id": 0}, {"kind": "undo"}):
        answer = edit(any_client, "/v1/clusterings/cl_none", body)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert any_client.get("/v1/clusterings/cl_none/operations").status_code == 404


def test_operations_are_paginated(any_client: TestClient, url: str) -> None:
    for revision in range(1, 4):
        edit(any_client, url, _RENAME, revision)
    page = any_client.get(f"{url}/operations?limit=2").json()
    assert [o["revision"] for o in page["data"]] == [4, 3]
    params = {"cursor": page["next_cursor"]}
    page = any_client.get(f"{url}/operations", params=params).json()
    assert [o["revision"] for o in page["data"]] == [2]


@pytest.fixture
def anna(any_client: TestClient, any_runtime: Runtime) -> None:
    """All requests have a key of this name."""
    _, text = make_key(any_runtime, name="anna", scopes=["read", "write"])
    any_client.headers |= bearer(text)


@pytest.mark.usefixtures("anna")
def test_an_operation_has_the_name_of_its_key(any_client: TestClient, url: str) -> None:
    body = {"kind": "rename", "cluster_id": 0, "label": "cats"}
    assert edit(any_client, url, body).json()["created_by"] == "anna"
    (done,) = any_client.get(f"{url}/operations").json()["data"]
    assert done["created_by"] == "anna"


def test_a_name_in_use_gives_a_warning(any_client: TestClient, url: str) -> None:
    """An export has one class for both."""
    body = {"kind": "rename", "cluster_id": 0, "label": "cats"}
    assert edit(any_client, url, body).json()["warnings"] == []
    (warning,) = edit(any_client, url, body | {"cluster_id": 2}, 2).json()["warnings"]
    assert (warning["code"], warning["cluster_ids"]) == ("name_in_use", [0, 2])
    assert "Clusters 0, 2 have the name 'cats'" in warning["detail"]
    merge = {"kind": "merge", "cluster_ids": [0, 2]}
    assert edit(any_client, url, merge, 3).json()["warnings"] == []


def test_the_number_of_clusters_is_that_of_the_active_ones(
    any_client: TestClient, url: str
) -> None:
    def count() -> int:
        return int(any_client.get(url).json()["n_clusters"])

    assert count() == 3
    edit(any_client, url, {"kind": "merge", "cluster_ids": [0, 1]})
    assert count() == 2
    ids = images(any_client, url)
    edit(any_client, url, {"kind": "move", "image_ids": ids[:1], "new_cluster": "x"}, 2)
    assert count() == 3
    for revision in (3, 4):
        edit(any_client, url, {"kind": "undo"}, revision)
    assert count() == 3
    again = {"kind": "move", "image_ids": ids[:1], "new_cluster": "y"}
    assert edit(any_client, url, again, 5).json()["new_cluster_ids"] == [4]  # never reused
