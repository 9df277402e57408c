"""Every list is paginated on both databases and misses no row."""

import base64
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.http import pagination
from app.core.runtime import Runtime
from tests.api.conftest import store_clustering, upload, work_on
from tests.images import ZIP, png_bytes

_NUMBERED = ("images", "issues", "clusters", "versions")


@pytest.fixture
def lists(any_client: TestClient, any_runtime: Runtime) -> dict[str, str]:
    """The URL of each list, each with five rows."""
    files = {f"{i}.png": png_bytes((i, i, i)) for i in range(5)}
    files |= {f"{i}.jpg": b"bad" for i in range(5)}
    for _ in range(4):
        upload(any_client, files)
    job = upload(any_client, files)
    work_on(any_runtime, job["id"])
    for number in range(4):
        store_clustering(any_runtime, job["dataset_id"], model=f"model-{number}")
    dataset = f"/v1/datasets/{job['dataset_id']}"
    for _ in range(5):
        clustering = store_clustering(any_runtime, job["dataset_id"], n_clusters=5)
    return {
        "datasets": "/v1/datasets",
        "jobs": "/v1/jobs?status=queued",
        "images": f"{dataset}/images",
        "issues": f"{dataset}/issues",
        "clusterings": "/v1/clusterings",
        "clusters": f"/v1/clusterings/{clustering}/clusters",
        "assignments": f"/v1/clusterings/{clustering}/assignments",
        "models": "/v1/models",
        "versions": "/v1/models/cats-dogs/versions",
    }


def _pages(client: TestClient, url: str) -> list[list[Any]]:
    """Follows the Link header like a generic client."""
    pages, following = [], url + ("&" if "?" in url else "?") + "limit=2"
    while following:
        answer = client.get(following)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        pages.append(body["data"])
        link = answer.headers.get("Link", "")
        assert body["has_more"] == bool(link) == (body["next_cursor"] is not None)
        following = link.removeprefix("<").removesuffix('>; rel="next"')
    return pages


def _cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_pages_contain_every_row_once(any_client: TestClient, lists: dict[str, str]) -> None:
    for name, url in lists.items():
        whole = any_client.get(url).json()
        pages = _pages(any_client, url)
        assert [row for page in pages for row in page] == whole["data"], name
        assert (whole["next_cursor"], whole["has_more"]) == (None, False)
        assert all(len(page) == 2 for page in pages[:-1]), name
        assert len(whole["data"]) >= 5, name


@pytest.mark.parametrize("every", [1, 2, 3, 4, 5, 1000])
def test_pages_can_be_read_from_any_cursor(
    any_client: TestClient, lists: dict[str, str], every: int
) -> None:
    cluster = f"{lists['clusters']}/0/images"
    sorts = [f"{cluster}?sort={sort}&" for sort in ("representative", "borderline", "outlier")]
    for url in (f"{lists['images']}?", *sorts):
        whole = any_client.get(url).json()["data"]
        found = any_client.get(url.replace("images?", "images/cursors?") + f"every={every}").json()
        assert (found["count"], found["every"]) == (len(whole), every)
        assert len(found["cursors"]) == -(-len(whole) // every)
        assert found["cursors"][0] is None
        for number, cursor in enumerate(found["cursors"]):
            start = url + (f"cursor={cursor}&" if cursor else "")
            page = any_client.get(f"{start}limit={every}").json()
            assert page["data"] == whole[number * every : (number + 1) * every], url


def test_cursors_of_images_between_which_some_were_deleted(
    any_client: TestClient, any_runtime: Runtime
) -> None:
    job = upload(any_client, {f"{i}.png": png_bytes((i, i, i)) for i in range(5)})
    work_on(any_runtime, job["id"])
    url = f"/v1/datasets/{job['dataset_id']}/images"
    ids = [row["id"] for row in any_client.get(url).json()["data"]]
    body = {"image_ids": [ids[0], ids[2]]}
    assert any_client.post(f"{url}:delete", json=body).status_code == 200
    found = any_client.get(f"{url}/cursors?every=2").json()
    assert (found["count"], len(found["cursors"])) == (3, 2)
    page = any_client.get(f"{url}?cursor={found['cursors'][1]}").json()
    assert [row["id"] for row in page["data"]] == ids[4:]


def test_cursors_of_an_empty_list(any_client: TestClient, lists: dict[str, str]) -> None:
    found = any_client.get(f"{lists['clusters']}/4/images/cursors").json()
    assert found == {"count": 0, "every": 200, "cursors": []}


def test_refused_cursors(
    any_client: TestClient, lists: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{lists['images']}/cursors"
    for every in ("0", "1001", "x"):
        answer = any_client.get(url, params={"every": every})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "every")
    monkeypatch.setattr(pagination, "_MAX_CURSORS", 2)
    answer = any_client.get(url, params={"every": 2})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert "every: must be at least 3 for 5 rows" in answer.json()["detail"]
    assert any_client.get(url, params={"every": 3}).status_code == 200


def test_bad_pages_are_refused(any_client: TestClient, lists: dict[str, str]) -> None:
    for name, url in lists.items():
        url += "&" if "?" in url else "?"
        bad = ["cursor=%21%21", "cursor=_", f"cursor={_cursor(chr(0))}", "cursor=" + "a" * 301]
        bad += ["limit=0", "limit=1001", "limit=x"]
        if name in _NUMBERED:
            bad += [f"cursor={_cursor(text)}" for text in ("abc", "-1", "9" * 10, "²")]
        for query in bad:
            answer = any_client.get(url + query)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), query
            assert answer.json()["errors"][0]["field"] == query.partition("=")[0]


def test_a_cursor_of_another_list_is_no_server_error(
    any_client: TestClient, lists: dict[str, str]
) -> None:
    for url in lists.values():
        for text in ("0", "ds_01", "zzz", "ねこ", "%_'\";--"):
            following = url + ("&" if "?" in url else "?") + "cursor=" + _cursor(text)
            assert any_client.get(following).status_code in (200, 422)


def test_a_zero_byte_anywhere_is_no_server_error(any_client: TestClient) -> None:
    """PostgreSQL cannot query a text with a zero byte."""
    gets = [
        "/v1/datasets/%00",
        "/v1/images/a%00",
        "/v1/jobs/%00",
        "/v1/clusterings/%00",
        "/v1/models/%00",
        "/v1/models/%00/versions/1",
        "/v1/jobs?dataset_id=%00",
        "/v1/clusterings?dataset_id=%00",
    ]
    for path in gets:
        assert any_client.get(path).status_code in (200, 404, 422), path
    body = {"dataset_id": "\x00", "n_clusters": 2}
    assert any_client.post("/v1/jobs", json=body).status_code in (404, 422)
    assert any_client.post("/v1/jobs/%00:cancel").status_code in (404, 422)
    answer = any_client.post(
        "/v1/datasets?name=a%00b", content=b"PK\x05\x06" + bytes(18), headers=ZIP
    )
    assert answer.status_code in (202, 422)
