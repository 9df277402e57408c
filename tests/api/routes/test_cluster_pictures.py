"""Contact sheets and plots over HTTP."""

import io

import pytest
from fastapi.testclient import TestClient
from PIL import Image
from sqlalchemy import select

from app.core.platform.tables import Clustering, JobCurve
from app.core.platform.tables import Image as ImageRow
from app.core.runtime import Runtime
from tests.api.conftest import Json, MakeClustering

_PLOTS = ("sizes", "probabilities", "confusion", "curves")


@pytest.fixture
def url(dataset: Json, make_clustering: MakeClustering) -> str:
    return f"/v1/clusterings/{make_clustering(dataset['id'])}"


def add_curves(runtime: Runtime, url: str) -> None:
    with runtime.db.write() as session:
        clustering = session.get_one(Clustering, url.rpartition("/")[2])
        assert clustering.job_id is not None
        for step in range(3):
            values: Json = {"losses": [1.0 / (step + 1), None, 2.0]}
            if step != 1:
                values |= {"occupancy_entropy": 1.0, "conditional_entropy": 0.5}
            session.add(JobCurve(job_id=clustering.job_id, step=step, values=values))


def test_a_contact_sheet(client: TestClient, url: str) -> None:
    path = f"{url}/clusters/0/contact-sheet"
    answer = client.get(path)
    assert answer.headers["Content-Type"] == "image/png"
    with Image.open(io.BytesIO(answer.content)) as sheet:
        assert sheet.width > 6 * 144
    narrow = client.get(path, params={"columns": 1, "rows": 1, "borderline_rows": 0})
    with Image.open(io.BytesIO(narrow.content)) as sheet:
        assert sheet.width < 6 * 144
    tag = answer.headers["ETag"]
    again = client.get(path, headers={"If-None-Match": f'"x", {tag}'})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get(path, params={"rows": 2}).headers["ETag"] != tag
    body = {"kind": "rename", "cluster_id": 0, "label": "ねこ"}
    client.post(f"{url}/operations", json=body, headers={"If-Match": '"1"'})
    renamed = client.get(path, headers={"If-None-Match": tag})
    assert (renamed.status_code, renamed.headers["ETag"] != tag) == (200, True)


def test_an_empty_cluster_has_a_sheet(client: TestClient, url: str) -> None:
    assert client.get(f"{url}/clusters/2/contact-sheet").content.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "query", ["rows=0", "rows=11", "columns=13", "borderline_rows=6", "rows=x"]
)
def test_invalid_contact_sheet_parameters(client: TestClient, url: str, query: str) -> None:
    assert client.get(f"{url}/clusters/0/contact-sheet?{query}").status_code == 422


@pytest.mark.parametrize("name", _PLOTS)
def test_plots(client: TestClient, runtime: Runtime, url: str, name: str) -> None:
    add_curves(runtime, url)
    png, svg = (client.get(f"{url}/plots/{name}", params={"format": f}) for f in ("png", "svg"))
    assert png.headers["Content-Type"] == "image/png"
    with Image.open(io.BytesIO(png.content)) as image:
        assert min(image.size) > 200
    assert svg.headers["Content-Type"] == "image/svg+xml"
    assert b"<svg" in svg.content
    assert "default-src 'none'" in svg.headers["Content-Security-Policy"]
    headers = {"If-None-Match": png.headers["ETag"]}
    assert client.get(f"{url}/plots/{name}", headers=headers).status_code == 304
    assert client.get(f"{url}/plots/{name}?format=svg", headers=headers).status_code == 200


def test_unavailable_plots(client: TestClient, runtime: Runtime, url: str) -> None:
    with runtime.db.write() as session:
        for image in session.scalars(select(ImageRow)):
            image.label = None
    for name, reason in (("confusion", "true label"), ("curves", "training curves")):
        answer = client.get(f"{url}/plots/{name}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert reason in answer.json()["detail"]
    assert client.get(f"{url}/plots/other").status_code == 422
    assert client.get(f"{url}/plots/sizes?format=gif").status_code == 422


def test_pictures_of_unknown_resources(client: TestClient, url: str) -> None:
    for path in (
        f"{url}/clusters/9/contact-sheet",
        "/v1/clusterings/cl_none/clusters/0/contact-sheet",
        "/v1/clusterings/cl_none/plots/sizes",
    ):
        assert client.get(path).status_code == 404
