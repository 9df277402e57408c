"""The Open Inference Protocol gives the labels of /v1."""

import json
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.core.platform.tables import Embedding
from app.core.platform.version import package_version
from app.core.runtime import Runtime
from tests.api import oip_bodies as bodies
from tests.api.conftest import COLORS, Json, store_clustering
from tests.api.test_metrics import figures
from tests.conftest import MakeClient, MakeSettings
from tests.images import jpeg_bytes, png_bytes
from tests.keys import bearer, make_key
from tests.model_files import DIM
from tests.waiting import wait_until

_URL = "/v2/models/colors"
_FILES = [jpeg_bytes(color, (32, 32)) for color in COLORS.values()]
_ALL = [
    *("cluster_id", "label", "probability", "probabilities"),
    *("error", "raw_probability", "novelty"),
]


@pytest.fixture
def client(trained: Json) -> TestClient:
    """Waits until the model is loaded: on a busy machine that takes longer than a request."""
    found: TestClient = trained["client"]
    assert _ready(found, "colors").status_code == 200
    return found


def _ready(client: TestClient, name: str) -> Any:
    """The response when the model has finished loading."""

    def answer() -> Any:
        found = client.get(f"/v2/models/{name}/ready")
        if found.status_code != 503 or found.json()["code"] != "model_loading":
            return found
        assert int(found.headers["Retry-After"]) >= 1
        assert found.json()["error"]
        return None

    return wait_until(answer, f"{name} is loaded")


def _infer(client: TestClient, url: str = _URL, **request: Any) -> Json:
    answer = client.post(f"{url}/infer", **request)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert bodies.HEADER not in answer.headers
    body: Json = answer.json()
    return body


def _predicted(client: TestClient, files: list[bytes]) -> list[Json]:
    """The response of /v1."""
    answer = client.post(
        "/v1/models/colors:predict",
        files=[("files", (str(number), file)) for number, file in enumerate(files)],
        params={"probabilities": "true"},
    )
    found: list[Json] = answer.json()["data"]
    return found


def _assert_same(found: dict[str, Any], predicted: list[Json]) -> None:
    assert list(found) == _ALL
    assert found["cluster_id"] == [one["cluster_id"] for one in predicted]
    assert found["label"] == [one["label"] for one in predicted]
    for name in ("probability", "probabilities", "raw_probability"):
        expected = [one[name] for one in predicted]
        np.testing.assert_allclose(np.array(found[name], float), expected, atol=1e-6)
    assert found["error"] == [""] * len(predicted)


def test_server_metadata_and_health(client: TestClient) -> None:
    about = client.get("/v2").json()
    assert about == {
        "name": "temi",
        "version": package_version(),
        "extensions": ["binary_tensor_data"],
    }
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True, "error": None}


def test_an_unready_server_reports_the_reason(
    make_client: MakeClient, make_settings: MakeSettings
) -> None:
    client = make_client(make_settings(broker_url="redis://127.0.0.1:1/0"))
    answer = client.get("/v2/health/ready")
    assert (answer.status_code, answer.json()["ready"]) == (503, False)
    assert answer.json()["error"].startswith("broker: ")
    assert client.get("/v2/health/live").status_code == 200


def test_a_models_tensors(client: TestClient) -> None:
    client.put("/v1/models/colors/aliases/live", json={"version": 1})
    about = client.get(_URL).json()
    assert (about["name"], about["versions"], about["platform"]) == ("colors", ["1"], "temi")
    assert about["inputs"] == [
        {"name": "images", "datatype": "BYTES", "shape": [-1]},
        {"name": "embeddings", "datatype": "FP32", "shape": [-1, DIM]},
    ]
    shapes = {output["name"]: (output["datatype"], output["shape"]) for output in about["outputs"]}
    assert shapes == {
        "cluster_id": ("INT64", [-1]),
        "label": ("BYTES", [-1]),
        "probability": ("FP32", [-1]),
        "probabilities": ("FP32", [-1, 3]),
        "error": ("BYTES", [-1]),
        "raw_probability": ("FP32", [-1]),
        "novelty": ("FP32", [-1]),
    }
    assert about["parameters"] == {
        "version": "1",
        "backbone": "efficientnet_lite0",
        "feature_dim": DIM,
        "n_clusters": 3,
        "labels": ["cluster 0", "cluster 1", "cluster 2"],
    }
    for other in ("colors@live", "colors@latest", "colors%40live", "colors/versions/1"):
        assert client.get(f"/v2/models/{other}").json() == about


def test_images_in_json(client: TestClient) -> None:
    body = _infer(client, json={"id": "é 7", "inputs": [bodies.images(*_FILES)]})
    assert (body["model_name"], body["model_version"], body["id"]) == ("colors", "1", "é 7")
    found = bodies.outputs(body)
    _assert_same(found, _predicted(client, _FILES))
    assert len(set(found["cluster_id"])) == 3
    assert "id" not in _infer(client, json={"inputs": [bodies.images(_FILES[0])]})


def test_images_in_binary(client: TestClient) -> None:
    request = bodies.binary_images(*_FILES, id="8", parameters={"binary_data_output": True})
    answer = client.post(f"{_URL}/infer", **request)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/octet-stream"
    header = answer.headers[bodies.HEADER]
    assert json.loads(answer.content[: int(header)])["id"] == "8"
    _assert_same(bodies.binary_outputs(answer.content, header), _predicted(client, _FILES))


def test_binary_in_and_json_out(client: TestClient) -> None:
    found = bodies.outputs(_infer(client, **bodies.binary_images(*_FILES)))
    _assert_same(found, _predicted(client, _FILES))


@pytest.mark.parametrize("form", ["rows", "flat", "binary"])
def test_embeddings(client: TestClient, trained: Json, form: str) -> None:
    runtime: Runtime = trained["runtime"]
    with runtime.db.read() as session:
        folder = session.scalars(select(Embedding.folder)).first()
    features = np.load(runtime.storage.path(f"{folder}/features.npy"))[:5].astype(np.float32)
    tensor = bodies.embeddings(features)
    if form == "binary":
        data = features.tobytes()
        request = bodies.binary({"inputs": [bodies.binary_input(tensor, len(data))]}, data)
    else:
        data = features.tolist() if form == "rows" else features.ravel().tolist()
        request = {"json": {"inputs": [{**tensor, "data": data}]}}
    expected = client.post(
        "/v1/models/colors:predict",
        json={"embeddings": features.tolist()},
        params={"probabilities": "true"},
    ).json()["data"]
    _assert_same(bodies.outputs(_infer(client, **request)), expected)


def test_only_the_requested_outputs(client: TestClient) -> None:
    wanted = [{"name": "probability"}, {"name": "label"}]
    body = _infer(client, json={"inputs": [bodies.images(_FILES[0])], "outputs": wanted})
    assert [output["name"] for output in body["outputs"]] == ["probability", "label"]


def test_json_and_binary_outputs_in_one_response(client: TestClient) -> None:
    wanted = [
        {"name": "label", "parameters": {"binary_data": False}},
        {"name": "cluster_id"},
        {"name": "probability", "parameters": {"binary_data": True}},
    ]
    request = {"inputs": [bodies.images(_FILES[0])], "outputs": wanted}
    answer = client.post(f"{_URL}/infer", json=request)
    head = json.loads(answer.content[: int(answer.headers[bodies.HEADER])])
    assert ["data" in output for output in head["outputs"]] == [True, True, False]
    assert len(answer.content) == int(answer.headers[bodies.HEADER]) + 4


def test_by_alias_and_by_version(client: TestClient) -> None:
    client.put("/v1/models/colors/aliases/live", json={"version": 1})
    request = {"inputs": [bodies.images(*_FILES)]}
    plain = _infer(client, json=request)
    for other in ("colors@live", "colors@latest", "colors/versions/1"):
        assert _infer(client, f"/v2/models/{other}", json=request) == plain


def test_a_bad_image_among_good_ones(client: TestClient) -> None:
    good = png_bytes("red", (32, 32))
    request = {"inputs": [bodies.images(good, b"no image", b"<svg/>", good)]}
    found = bodies.outputs(_infer(client, json=request))
    first, bad, svg, last = found["cluster_id"]
    assert first == last >= 0
    assert (bad, svg) == (-1, -1)
    assert found["label"][1:3] == ["", ""]
    assert found["probability"][1:3] == [0, 0]
    assert found["probabilities"][1] == [0, 0, 0]
    assert [text.partition(":")[0] for text in found["error"]] == [
        "",
        "image_undecodable",
        "unsupported_format",
        "",
    ]


def test_only_bad_images(client: TestClient) -> None:
    answer = client.post(f"{_URL}/infer", json={"inputs": [bodies.images(b"x", b"")]})
    assert answer.status_code == 400
    assert "image_undecodable" in answer.json()["error"]


def test_the_readiness_of_a_model_loads_it(client: TestClient, trained: Json) -> None:
    store_clustering(trained["runtime"], trained["job"]["dataset_id"], model="fresh")
    answer = _ready(client, "fresh")
    assert (answer.status_code, answer.json()) == (200, {"name": "fresh", "ready": True})
    assert _ready(client, "fresh/versions/1").status_code == 200
    version = client.get("/v1/models/fresh/versions/1").json()
    loaded = client.app.state.serving.loaded()  # type: ignore[attr-defined]
    assert f"models/{version['job_id']}" in [one.model.folder for one in loaded]


def test_a_model_that_cannot_be_loaded_reports_the_reason(
    client: TestClient, trained: Json
) -> None:
    runtime: Runtime = trained["runtime"]
    store_clustering(runtime, trained["job"]["dataset_id"], model="broken")
    job_id = client.get("/v1/models/broken/versions/1").json()["job_id"]
    runtime.storage.write(f"models/{job_id}/model.safetensors", b"changed")
    answer = _ready(client, "broken")
    assert (answer.status_code, answer.json()["code"]) == (503, "model_integrity")
    assert answer.json()["error"] == answer.json()["detail"]
    answer = client.post("/v2/models/broken/infer", json={"inputs": [bodies.images(_FILES[0])]})
    assert (answer.status_code, answer.json()["code"]) == (503, "model_integrity")
    assert answer.headers["Retry-After"]


def test_predictions_are_counted(client: TestClient) -> None:
    before = figures(client)
    _infer(client, json={"inputs": [bodies.images(*_FILES)]})
    client.post(f"{_URL}/infer", content=b"no JSON", headers=bodies.BYTES)
    after = figures(client)

    def more(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert more("temi_predict_requests_total{outcome=answered}") == 1
    assert more("temi_predict_images_total{outcome=answered}") == 3
    assert more("temi_predict_requests_total{outcome=failed}") == 1


def test_a_full_queue_gives_429(client: TestClient) -> None:
    admission = client.app.state.serving.admission  # type: ignore[attr-defined]
    request = {"inputs": [bodies.images(*_FILES)]}
    with admission.reserve() as reservation:
        reservation.add(images=admission.max_images - 2)
        answer = client.post(f"{_URL}/infer", json=request)
        assert (answer.status_code, answer.json()["code"]) == (429, "queue_full")
        assert int(answer.headers["Retry-After"]) >= 1
        assert answer.json()["error"]
    assert (admission.images, admission.bytes) == (0, 0)
    _infer(client, json=request)


def test_the_timeout_is_enforced(client: TestClient) -> None:
    request = {"inputs": [bodies.images(*_FILES)], "parameters": {"timeout": 1}}  # microseconds
    answer = client.post(f"{_URL}/infer", json=request)
    assert (answer.status_code, answer.json()["code"]) == (429, "deadline_exceeded")


@pytest.mark.parametrize("path", ["", "/versions/1", "/ready", "/versions/1/ready"])
def test_a_name_with_a_zero_byte(any_client: TestClient, path: str) -> None:
    answer = any_client.get(f"/v2/models/a%00b{path}")
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]


def test_keys_and_scopes(any_client: TestClient, any_runtime: Runtime) -> None:
    reader = bearer(make_key(any_runtime, scopes=["read", "write"])[1])
    caller = bearer(make_key(any_runtime, scopes=["predict"])[1])
    for path in ("/v2", "/v2/health/live", "/v2/health/ready"):
        assert any_client.get(path).status_code == 200
    for method, path in (("GET", ""), ("GET", "/ready"), ("POST", "/infer")):
        statuses = [
            any_client.request(method, f"{_URL}{path}", headers=headers)
            for headers in ({}, reader, caller)
        ]
        assert [answer.status_code for answer in statuses] == [401, 403, 404]
        assert all(answer.json()["error"] for answer in statuses)
        assert statuses[0].headers["WWW-Authenticate"] == 'Bearer realm="temi"'
