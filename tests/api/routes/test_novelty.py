"""`none of these`: images unlike those of the training get no cluster, if that is asked for."""

import numpy as np
import pytest
from fastapi.testclient import TestClient

from tests.api.conftest import Json, MakeClustering
from tests.images import ZIP
from tests.model_files import DIM

URL = "/v1/models/cats-dogs:predict"


@pytest.fixture(autouse=True)
def _version(dataset: Json, make_clustering: MakeClustering) -> None:
    make_clustering(dataset["id"], novelty=True)


def _rows() -> list[list[float]]:
    """The first is like the training, the second is not."""
    rows = np.random.default_rng(5).normal(size=(2, DIM))
    rows[0, 0] += 100
    return [[float(value) for value in row] for row in rows]


def _predict(client: TestClient, **params: float) -> list[Json]:
    answer = client.post(URL, json={"embeddings": _rows()}, params=params)
    assert answer.status_code == 200, answer.text
    data: list[Json] = answer.json()["data"]
    return data


def test_without_a_rate_every_image_has_a_cluster(client: TestClient) -> None:
    known, novel = _predict(client)
    assert known["novelty"] < 1
    assert novel["novelty"] == 1
    assert None not in (known["cluster_id"], novel["cluster_id"])


def test_novel_images_are_none_of_these(client: TestClient) -> None:
    plain = _predict(client)
    known, novel = _predict(client, false_alarm_rate=1e-6)
    assert (known["cluster_id"], known["label"]) == (plain[0]["cluster_id"], plain[0]["label"])
    assert (novel["cluster_id"], novel["label"]) == (None, "none of these")
    assert novel["top_k"] == plain[1]["top_k"]  # what it would have been
    assert novel["error"] is None


def test_the_inference_protocol(client: TestClient) -> None:
    tensor = {"name": "embeddings", "datatype": "FP32", "shape": [2, DIM], "data": _rows()}
    body = {"inputs": [tensor], "parameters": {"false_alarm_rate": 1e-6}}
    answer = client.post("/v2/models/cats-dogs/infer", json=body)
    assert answer.status_code == 200, answer.text
    found = {output["name"]: output["data"] for output in answer.json()["outputs"]}
    plain = _predict(client)
    assert found["cluster_id"] == [plain[0]["cluster_id"], -1]
    assert found["label"] == [plain[0]["label"], "none of these"]
    assert found["novelty"] == pytest.approx([one["novelty"] for one in plain])
    assert found["error"] == ["", ""]


def test_a_version_without_the_score_cannot_abstain(
    client: TestClient, dataset: Json, make_clustering: MakeClustering
) -> None:
    make_clustering(dataset["id"], model="old")
    body, params = {"embeddings": _rows()}, {"false_alarm_rate": 0.01}
    answer = client.post("/v1/models/old:predict", json=body, params=params)
    assert answer.status_code == 422
    assert "old 1 has no novelty score; train a new version" in answer.json()["detail"]
    assert client.post("/v1/models/old:predict", json=body).json()["data"][0]["novelty"] is None
    job = {"kind": "predict", "model": "old", "dataset_id": dataset["id"], **params}
    assert client.post("/v1/jobs", json=job).status_code == 422


@pytest.mark.parametrize("rate", [0, 1, -0.1, "nan", "x"])
def test_impossible_rates_are_refused(client: TestClient, rate: object) -> None:
    answer = client.post(URL, json={"embeddings": _rows()}, params={"false_alarm_rate": str(rate)})
    assert answer.status_code == 422
    assert "false_alarm_rate" in answer.json()["detail"]


def test_an_imported_version_keeps_its_score(client: TestClient) -> None:
    file = client.get("/v1/models/cats-dogs/versions/1/file").content
    params = {"name": "copy"}
    assert client.post("/v1/models:import", content=file, headers=ZIP, params=params).is_success
    found = client.post("/v1/models/copy:predict", json={"embeddings": _rows()}).json()["data"]
    assert [one["novelty"] for one in found] == [one["novelty"] for one in _predict(client)]
