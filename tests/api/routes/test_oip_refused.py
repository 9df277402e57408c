"""Invalid requests of the Open Inference Protocol get an error that names the problem, before a
model is loaded."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from tests.api import oip_bodies as bodies
from tests.api.conftest import Json, store_clustering
from tests.conftest import running_api
from tests.images import png_bytes
from tests.model_files import DIM

_URL = "/v2/models/cats-dogs/infer"
_PNG = png_bytes()
_IMAGES = bodies.images(_PNG)
_FEATURES = bodies.embeddings(np.zeros((2, DIM), np.float32))
_PACKED = bodies.packed(_PNG)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, ingested: Path) -> Settings:
    folder = tmp_path_factory.mktemp("refusing")
    shutil.copytree(ingested, folder, dirs_exist_ok=True)
    return Settings(
        _env_file=None,
        data_dir=folder,
        max_predict_files=4,
        max_predict_features=5,
        max_predict_bytes=2_000_000,
    )


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[TestClient]:
    """Shared by all tests: no request changes data."""
    runtime = Runtime(settings)
    with running_api(settings) as running:
        store_clustering(runtime, running.get("/v1/datasets").json()["data"][0]["id"])
        yield running
    runtime.db.dispose()


def _refused(client: TestClient, **request: Any) -> Json:
    answer = client.post(_URL, **request)
    assert answer.status_code == 400, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    body: Json = answer.json()
    assert (body["status"], body["code"]) == (400, "invalid_request")
    assert body["error"] == body["detail"] != ""
    return body


def _changed(tensor: Json, **members: Any) -> Json:
    return {"inputs": [{**tensor, **members}]}


def _numbers(number: Any) -> Json:
    return _changed(_FEATURES, data=[0.5] * (2 * DIM - 1) + [number])


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({}, "inputs"),
        ([], "object"),
        ({"inputs": []}, "inputs"),
        ({"inputs": [_IMAGES, _FEATURES]}, "inputs"),
        ({"inputs": [_IMAGES, _IMAGES]}, "inputs"),
        (_changed(_IMAGES, name="pictures"), "inputs.0.name"),
        (_changed(_IMAGES, datatype="FP32"), "BYTES"),
        (_changed(_IMAGES, datatype="UINT8"), "inputs.0.datatype"),
        (_changed(_IMAGES, shape=[1, 1]), "[n]"),
        (_changed(_IMAGES, shape=[]), "[n]"),
        (_changed(_IMAGES, shape=[0], data=[]), "1 to 4"),
        (_changed(_IMAGES, shape=[5], data=_IMAGES["data"] * 5), "1 to 4"),
        (_changed(_IMAGES, shape=[2]), "1 elements"),
        (_changed(_IMAGES, shape=[-1]), "inputs.0.shape.0"),
        (_changed(_IMAGES, shape=[2**62]), "1 to 4"),
        (_changed(_IMAGES, shape=[2**64]), "inputs.0.shape.0"),
        (_changed(_IMAGES, shape=["x"]), "inputs.0.shape.0"),
        (_changed(_IMAGES, shape=1), "inputs.0.shape"),
        (_changed(_IMAGES, data=["not base64!"]), "inputs.images.0"),
        (_changed(_IMAGES, data=["YQ"]), "inputs.images.0"),
        (_changed(_IMAGES, data=["é"]), "inputs.images.0"),
        (_changed(_IMAGES, data=[7]), "inputs.images.0"),
        (_changed(_IMAGES, data=[["YQ=="]]), "inputs.images.0"),
        (_changed(_IMAGES, data="YQ=="), "inputs.0.data"),
        (_changed(_IMAGES, data=None), "either data or binary_data_size"),
        (_changed(_FEATURES, datatype="FP64"), "inputs.0.datatype"),
        (_changed(_FEATURES, datatype="BYTES"), "FP32"),
        (_changed(_FEATURES, shape=[2, DIM + 1]), str(DIM)),
        (_changed(_FEATURES, shape=[2 * DIM]), str(DIM)),
        (_changed(_FEATURES, shape=[3, DIM]), "its shape needs"),
        (_changed(_FEATURES, shape=[6, DIM]), "1 to 5"),
        (_changed(_FEATURES, shape=[2**40, DIM]), "1 to 5"),
        (_changed(_FEATURES, data=[[0.0] * DIM, [0.0] * (DIM - 1)]), "list of"),
        (_changed(_FEATURES, data=[[0.0] * DIM, 0.0]), "list of"),
        (_changed(_FEATURES, data=[[[0.0]] * DIM] * 2), "numbers only"),
        (_numbers("1"), "numbers only"),
        (_numbers(True), "numbers only"),
        (_numbers(None), "numbers only"),
        (_numbers(1e300), "finite"),
        (_numbers(10**400), "too large"),
        ({"inputs": [_IMAGES], "outputs": [{"name": "logits"}]}, "outputs.0.name"),
        (
            {
                "inputs": [_IMAGES],
                "outputs": [{"name": "label", "parameters": {"classification": 2}}],
            },
            "classification",
        ),
        ({"inputs": [_IMAGES], "parameters": {"timeout": -1}}, "parameters.timeout"),
        ({"inputs": [_IMAGES], "id": "x" * 1001}, "id"),
        ({"inputs": [_IMAGES], "id": 7}, "id"),
    ],
)
def test_invalid_json_requests(client: TestClient, body: Any, part: str) -> None:
    assert part in _refused(client, json=body)["error"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xd8\xff",
        b'{"inputs": [',
        b"[" * 100_000,
        b'{"id": "\\ud800", "inputs": []}',
        b'{"inputs": [' + b"0," * 900_000 + b"0]}",
        json.dumps(_changed(_FEATURES)).replace("0.0", "NaN", 1).encode(),
        json.dumps(_changed(_FEATURES)).replace("0.0", "-Infinity", 1).encode(),
    ],
    ids=["empty", "a picture", "half", "deep", "surrogate", "many", "nan", "infinite"],
)
def test_bodies_that_are_not_requests(client: TestClient, content: bytes) -> None:
    _refused(client, content=content, headers={"Content-Type": "application/json"})


def _announce(size: Any) -> Json:
    return {"inputs": [bodies.binary_input(_IMAGES, size)]}


@pytest.mark.parametrize("size", [-1, True, 1.5, "7", 2**70, 0, len(_PACKED) - 1, len(_PACKED) + 1])
def test_a_wrong_size_of_binary_data(client: TestClient, size: Any) -> None:
    _refused(client, **bodies.binary(_announce(size), _PACKED))


@pytest.mark.parametrize("header", ["-1", "x", "", "1.5", "99999", "9" * 30, "0", "3", "²"])
def test_a_wrong_length_of_the_json(client: TestClient, header: str) -> None:
    request = bodies.binary(_announce(len(_PACKED)), _PACKED)
    request["headers"] = bodies.BYTES | {bodies.HEADER: header.encode("latin-1")}
    _refused(client, **request)


def test_binary_data_without_the_header(client: TestClient) -> None:
    request = bodies.binary(_announce(len(_PACKED)), _PACKED)
    _refused(client, content=request["content"], headers=bodies.BYTES)
    body = _refused(client, json=_announce(len(_PACKED)))
    assert bodies.HEADER in body["error"]


@pytest.mark.parametrize(
    ("shape", "tail"),
    [
        ([1], _PACKED + b"\0"),
        ([1], _PACKED + _PACKED),
        ([2], _PACKED),
        ([1], b"\0\0"),
        ([1], b"\xff\xff\xff\xff" + _PNG),
        ([4], b""),
    ],
    ids=["a byte more", "one more", "one less", "half a size", "a large size", "nothing"],
)
def test_binary_elements_of_a_wrong_length(
    client: TestClient, shape: list[int], tail: bytes
) -> None:
    tensor = bodies.binary_input({**_IMAGES, "shape": shape}, len(tail))
    _refused(client, **bodies.binary({"inputs": [tensor]}, tail))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_binary_numbers_that_are_not_finite(client: TestClient, value: float) -> None:
    tail = np.full((2, DIM), value, np.float32).tobytes()
    request = bodies.binary({"inputs": [bodies.binary_input(_FEATURES, len(tail))]}, tail)
    assert "finite" in _refused(client, **request)["error"]


def test_binary_numbers_of_another_width(client: TestClient) -> None:
    tail = np.zeros((2, DIM), np.float64).tobytes()
    request = bodies.binary({"inputs": [bodies.binary_input(_FEATURES, len(tail))]}, tail)
    assert f"{2 * DIM * 4:,}" in _refused(client, **request)["error"]


def test_other_errors_have_both_error_and_detail(client: TestClient) -> None:
    body = {"inputs": [_IMAGES]}
    for path, status, code in (
        ("/v2/models/none/infer", 404, "not_found"),
        ("/v2/models/cats-dogs@none/infer", 404, "not_found"),
        ("/v2/models/cats-dogs/versions/2/infer", 404, "not_found"),
        ("/v2/models/cats-dogs/versions/one/infer", 404, "not_found"),
        ("/v2/models/cats-dogs@latest/versions/1/infer", 404, "not_found"),
        (f"/v2/models/{'x' * 171}/infer", 400, "invalid_request"),
        ("/v2/models/cats-dogs/explain", 404, "not_found"),
    ):
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), path
        assert answer.json()["error"] == answer.json()["detail"]
    answer = client.get(_URL)
    assert (answer.status_code, answer.json()["error"]) == (
        405,
        "GET is not possible here, only POST.",
    )
    for path in ("none", "none/ready", "none/versions/1", "cats-dogs/versions/9/ready"):
        answer = client.get(f"/v2/models/{path}")
        assert (answer.status_code, bool(answer.json()["error"])) == (404, True), path


def test_a_body_that_is_too_large(client: TestClient, settings: Settings) -> None:
    answer = client.post(_URL, content=bytes(settings.max_predict_bytes + 1), headers=bodies.BYTES)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert answer.json()["error"]
    # a large one is looked at
    _refused(client, content=bytes(settings.max_predict_bytes), headers=bodies.BYTES)


def test_a_compressed_body(client: TestClient) -> None:
    answer = client.post(
        _URL, content=b"\x1f\x8b", headers=bodies.BYTES | {"Content-Encoding": "gzip"}
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert answer.json()["error"]
