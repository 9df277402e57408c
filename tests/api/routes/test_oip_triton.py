"""NVIDIA's Triton client against the service on a real port."""

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import tritonclient.http as triton  # type: ignore[import-untyped]
from fastapi.testclient import TestClient
from sqlalchemy import select
from tritonclient.utils import InferenceServerException  # type: ignore[import-untyped]

from app.core.platform.tables import Embedding
from app.core.runtime import Runtime
from tests.api.conftest import COLORS, Json
from tests.client.live import running_live
from tests.images import jpeg_bytes
from tests.keys import bearer, make_key
from tests.model_files import DIM
from tests.waiting import LONG_SECONDS, wait_until

PAGE = Path(__file__).parents[3] / "docs" / "inference-protocol.md"
_FILES = [jpeg_bytes(color, (32, 32)) for color in COLORS.values()]
_NUMBERS = ("probability", "probabilities")


def _connect(address: str, **options: Any) -> triton.InferenceServerClient:
    return triton.InferenceServerClient(
        address, connection_timeout=LONG_SECONDS, network_timeout=LONG_SECONDS, **options
    )


@pytest.fixture(scope="module")
def address(trained: Json) -> Iterator[str]:
    """A client of a service whose model is loaded."""
    with running_live(trained["runtime"].settings) as live:
        address = urlsplit(live.url).netloc
        with _connect(address) as client:
            wait_until(lambda: client.is_model_ready("colors"), "the model is loaded")
        yield address


@pytest.fixture
def client(address: str) -> Iterator[triton.InferenceServerClient]:
    with _connect(address, concurrency=8) as connected:
        yield connected


@pytest.fixture
def expected(trained: Json) -> list[Json]:
    """The predictions of /v1 for the images."""
    api: TestClient = trained["client"]
    files = [("files", (str(number), file)) for number, file in enumerate(_FILES)]
    answer = api.post("/v1/models/colors:predict", files=files, params={"probabilities": "true"})
    assert answer.status_code == 200, answer.text
    found: list[Json] = answer.json()["data"]
    return found


def _images(binary: bool = True) -> triton.InferInput:
    files = _FILES if binary else [base64.b64encode(file) for file in _FILES]
    tensor = triton.InferInput("images", [len(files)], "BYTES")
    tensor.set_data_from_numpy(np.array(files, dtype=np.object_), binary_data=binary)
    return tensor


def _assert_same(result: triton.InferResult, expected: list[Json]) -> None:
    assert result.as_numpy("cluster_id").dtype == np.int64
    assert result.as_numpy("cluster_id").tolist() == [one["cluster_id"] for one in expected]
    assert _texts(result, "label") == [one["label"] for one in expected]
    assert _texts(result, "error") == [""] * len(expected)
    for name in _NUMBERS:
        found = result.as_numpy(name)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, [one[name] for one in expected], atol=1e-6)


def _texts(result: triton.InferResult, name: str) -> list[str]:
    """Numbers as binary data, texts in JSON."""
    return [t.decode() if isinstance(t, bytes) else t for t in result.as_numpy(name)]


def test_metadata(client: triton.InferenceServerClient) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    assert client.is_model_ready("colors")
    assert client.is_model_ready("colors", "1")
    assert client.is_model_ready("colors@latest")
    assert not client.is_model_ready("colors", "2")
    assert not client.is_model_ready("none")
    about = client.get_model_metadata("colors", "1")
    assert (about["name"], about["versions"]) == ("colors", ["1"])
    assert about["parameters"]["labels"] == ["cluster 0", "cluster 1", "cluster 2"]


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
def test_images(
    client: triton.InferenceServerClient,
    expected: list[Json],
    binary_in: bool,
    binary_out: bool,
) -> None:
    names = ("cluster_id", "label", "error", *_NUMBERS)
    outputs = [triton.InferRequestedOutput(name, binary_data=binary_out) for name in names]
    result = client.infer("colors", [_images(binary_in)], outputs=outputs, request_id="a")
    _assert_same(result, expected)
    assert result.get_response()["id"] == "a"


def test_by_default_and_by_alias_and_version(
    client: triton.InferenceServerClient, expected: list[Json]
) -> None:
    _assert_same(client.infer("colors", [_images()]), expected)
    _assert_same(client.infer("colors@latest", [_images()]), expected)
    _assert_same(client.infer("colors", [_images()], model_version="1"), expected)


@pytest.mark.parametrize("binary", [True, False])
def test_embeddings(client: triton.InferenceServerClient, trained: Json, binary: bool) -> None:
    runtime: Runtime = trained["runtime"]
    with runtime.db.read() as session:
        folder = session.scalars(select(Embedding.folder)).first()
    features = np.load(runtime.storage.path(f"{folder}/features.npy")).astype(np.float32)
    tensor = triton.InferInput("embeddings", [len(features), DIM], "FP32")
    tensor.set_data_from_numpy(features, binary_data=binary)
    found = client.infer("colors", [tensor]).as_numpy("cluster_id").tolist()
    api: TestClient = trained["client"]
    url = f"/v1/clusterings/{trained['job']['result']['clustering_id']}/assignments"
    assert found == [row["cluster_id"] for row in api.get(url).json()["data"]]


def test_concurrent_requests(client: triton.InferenceServerClient, expected: list[Json]) -> None:
    asked: list[Any] = [
        client.async_infer("colors", [_images()], request_id=str(n)) for n in range(24)
    ]
    for number, pending in enumerate(asked):
        result = pending.get_result()
        assert result.get_response()["id"] == str(number)
        _assert_same(result, expected)


def test_the_client_reads_our_errors(client: triton.InferenceServerClient) -> None:
    tensor = triton.InferInput("embeddings", [1, 2], "FP32")
    tensor.set_data_from_numpy(np.zeros((1, 2), np.float32))
    with pytest.raises(InferenceServerException, match=rf"\[400\] .*shape \[n, {DIM}\]"):
        client.infer("colors", [tensor])
    with pytest.raises(InferenceServerException, match=r"\[404\] .*'none'"):
        client.infer("none", [_images()])
    output = triton.InferRequestedOutput("probabilities", class_count=2)
    with pytest.raises(InferenceServerException, match=r"\[400\] .*classification"):
        client.infer("colors", [_images()], outputs=[output])
    with pytest.raises(InferenceServerException, match=r"\[415\] .*gzip"):
        client.infer("colors", [_images()], request_compression_algorithm="gzip")


@pytest.mark.parametrize(("language", "command"), [("sh", ["bash", "-eu"]), ("python", [])])
def test_the_examples_of_the_documentation(
    address: str, expected: list[Json], tmp_path: Path, language: str, command: list[str]
) -> None:
    (code,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    for name, file in zip(("one.jpg", "two.jpg"), _FILES, strict=False):
        (tmp_path / name).write_bytes(file)
    done = subprocess.run(
        command or [sys.executable, "-"],
        input=code.replace("127.0.0.1:8000", address).replace("photos", "colors"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert expected[0]["label"] in done.stdout


def test_with_a_key(runtime: Runtime) -> None:
    headers = bearer(make_key(runtime, scopes=["predict"])[1])
    with (
        running_live(runtime.settings) as live,
        triton.InferenceServerClient(urlsplit(live.url).netloc) as client,
    ):
        assert client.is_server_live()
        with pytest.raises(InferenceServerException, match=r"\[401\]"):
            client.get_model_metadata("none")
        with pytest.raises(InferenceServerException, match=r"\[404\]"):
            client.get_model_metadata("none", headers=headers)
