"""Calibrations over HTTP: fitted to reviews, listed, drawn, and used by predictions."""

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.core.models import calibrations
from app.core.runtime import Runtime
from tests.api.conftest import Json, MakeClustering
from tests.images import ZIP
from tests.model_files import DIM
from tests.reviews import add_reviews

URL = "/v1/models/cats-dogs/versions/1"


@pytest.fixture
def clustering_id(
    dataset: Json, make_clustering: MakeClustering, monkeypatch: pytest.MonkeyPatch
) -> str:
    monkeypatch.setattr(calibrations, "MIN_REVIEWS", 4)
    return make_clustering(dataset["id"])


def _predict(client: TestClient) -> Json:
    rows = np.random.default_rng(0).normal(size=(3, DIM)).tolist()
    answer = client.post(
        "/v1/models/cats-dogs:predict",
        json={"embeddings": rows},
        params={"probabilities": True, "top_k": 3},
    )
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def test_predictions_use_the_calibration(
    client: TestClient, runtime: Runtime, clustering_id: str
) -> None:
    before = _predict(client)["data"]
    assert all(one["probability"] == one["raw_probability"] for one in before)
    add_reviews(runtime, clustering_id, lambda _: False)
    answer = client.post(f"{URL}/calibrations")
    assert answer.status_code == 201, answer.text
    fitted = answer.json()
    assert (fitted["number"], fitted["reviews"], fitted["created_by"]) == (1, 4, None)
    after = _predict(client)["data"]
    for old, new in zip(before, after, strict=True):
        assert new["cluster_id"] == old["cluster_id"]
        assert new["raw_probability"] == old["raw_probability"]
        assert new["probability"] < old["probability"]
        assert new["probability"] == new["top_k"][0]["probability"] == max(new["probabilities"])
        ranks = [[one["cluster_id"] for one in found["top_k"]] for found in (old, new)]
        assert ranks[0] == ranks[1]
    tensors = _infer(client)
    assert tensors["probability"] == pytest.approx([one["probability"] for one in after], abs=1e-6)
    raw = [one["raw_probability"] for one in after]
    assert tensors["raw_probability"] == pytest.approx(raw, abs=1e-6)


def _infer(client: TestClient) -> dict[str, list[float]]:
    rows = np.random.default_rng(0).normal(size=(3, DIM))
    tensor = {"name": "embeddings", "datatype": "FP32", "shape": [3, DIM]}
    body = {"inputs": [tensor | {"data": rows.ravel().tolist()}]}
    answer = client.post("/v2/models/cats-dogs/infer", json=body)
    assert answer.status_code == 200, answer.text
    return {output["name"]: output["data"] for output in answer.json()["outputs"]}


def test_the_history_and_the_reliability(
    client: TestClient, runtime: Runtime, clustering_id: str
) -> None:
    current = client.get(f"{URL}/calibration").json()
    assert current == {
        "slope": 1.0,
        "intercept": 0.0,
        "source": "training",
        "number": None,
        "reliability": None,
    }
    assert client.get(f"{URL}/calibrations").json()["data"] == []
    assert client.get(f"{URL}/plots/reliability").status_code == 404
    add_reviews(runtime, clustering_id, lambda rank: rank < 2)
    for _ in range(2):
        client.post(f"{URL}/calibrations")
    listed = client.get(f"{URL}/calibrations").json()["data"]
    assert [row["number"] for row in listed] == [2, 1]
    current = client.get(f"{URL}/calibration").json()
    assert (current["source"], current["number"]) == ("reviews", 2)
    assert current["slope"] == listed[0]["slope"]
    assert current["reliability"]["images"] == 4
    assert sum(one["images"] for one in current["reliability"]["bins"]) == 4


def test_the_reliability_diagram(client: TestClient, runtime: Runtime, clustering_id: str) -> None:
    add_reviews(runtime, clustering_id, lambda rank: rank < 2)
    drawn = client.get(f"{URL}/plots/reliability")
    assert drawn.headers["content-type"] == "image/png"
    assert drawn.content.startswith(b"\x89PNG")
    again = {"If-None-Match": drawn.headers["etag"]}
    assert client.get(f"{URL}/plots/reliability", headers=again).status_code == 304
    client.post(f"{URL}/calibrations")
    assert client.get(f"{URL}/plots/reliability", headers=again).status_code == 200
    vector = client.get(f"{URL}/plots/reliability", params={"format": "svg"})
    assert "<svg" in vector.text


@pytest.mark.usefixtures("clustering_id")
def test_what_is_refused(client: TestClient) -> None:
    answer = client.post(f"{URL}/calibrations")
    assert (answer.status_code, answer.json()["code"]) == (409, "too_few_reviews")
    assert "has 0 reviewed images" in answer.json()["detail"]
    for path in ("calibration", "calibrations", "plots/reliability"):
        assert client.get(f"/v1/models/cats-dogs/versions/9/{path}").status_code == 404
        assert client.get(f"/v1/models/none/versions/1/{path}").status_code == 404
    assert client.get(f"{URL}/plots/other").status_code == 422


def test_an_exported_version_keeps_its_calibration(
    client: TestClient, runtime: Runtime, clustering_id: str
) -> None:
    add_reviews(runtime, clustering_id, lambda _: False)
    fitted = client.post(f"{URL}/calibrations").json()
    file = client.get(f"{URL}/file").content
    answer = client.post("/v1/models:import", content=file, headers=ZIP, params={"name": "copy"})
    assert answer.status_code == 201, answer.text
    current = client.get("/v1/models/copy/versions/1/calibration").json()
    assert current["source"] == "training"
    assert (current["slope"], current["intercept"]) == (fitted["slope"], fitted["intercept"])
