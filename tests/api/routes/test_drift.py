"""Predictions are counted, and the counts are read as drift."""

import numpy as np
import pytest
from fastapi.testclient import TestClient

from tests.api.conftest import Json, MakeClustering
from tests.model_files import DIM
from tests.waiting import wait_until

URL = "/v1/models/cats-dogs/versions/1"


@pytest.fixture(autouse=True)
def _version(
    dataset: Json, make_clustering: MakeClustering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.core.serving.counting._WRITE_SECONDS", 0.05)
    make_clustering(dataset["id"], novelty=True)


def _drift(client: TestClient) -> Json:
    answer = client.get(f"{URL}/drift")
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def test_predictions_of_both_protocols_are_counted(client: TestClient) -> None:
    assert _drift(client)["images"] == 0
    rows = np.random.default_rng(0).normal(size=(120, DIM)).tolist()
    client.post("/v1/models/cats-dogs:predict", json={"embeddings": rows})
    tensor = {"name": "embeddings", "datatype": "FP32", "shape": [1, DIM], "data": rows[0]}
    client.post("/v2/models/cats-dogs/infer", json={"inputs": [tensor]})
    wait_until(lambda: _drift(client)["images"] == 121)
    found = _drift(client)
    assert found["novelty"] == [0] * 9 + [121]
    assert found["verdict"] == "changed"
    assert "no longer what the model was trained on" in found["summary"]
    assert sum(found["probability"]) == sum(c["images"] for c in found["clusters"]) == 121
    (day,) = found["days"]
    assert (day["images"], day["novel"]) == (121, 121)
    assert 'temi_predict_novelty_bucket{le="1.0"}' in client.get("/metrics").text


def test_the_plot(client: TestClient) -> None:
    drawn = client.get(f"{URL}/plots/drift")
    assert drawn.content.startswith(b"\x89PNG")
    again = {"If-None-Match": drawn.headers["etag"]}
    assert client.get(f"{URL}/plots/drift", headers=again).status_code == 304


def test_what_is_refused(client: TestClient) -> None:
    assert client.get(f"{URL}/drift", params={"days": 0}).status_code == 422
    assert client.get(f"{URL}/drift", params={"days": 367}).status_code == 422
    assert client.get("/v1/models/cats-dogs/versions/2/drift").status_code == 404
