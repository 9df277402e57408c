"""A job with the backbone `auto`: the name is decided when the job is created."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from huggingface_hub import constants

from app.core.models import hub
from app.core.platform import hardware
from tests.api.conftest import Json
from tests.conftest import MakeClient, MakeSettings


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU, no network, and nothing cached."""
    monkeypatch.setattr(hardware, "_GPUS", tmp_path / "no_gpus")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(hub, "_known", None)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    for name in ("clip_vitl14.safetensors", "dino_vitb16.pth"):
        (folder / name).touch()
    return folder


def _service(make_client: MakeClient, make_settings: MakeSettings, **changes: Any) -> TestClient:
    return make_client(make_settings(**changes))


def _start(client: TestClient, dataset: Json, **changes: Any) -> Json:
    body = {"dataset_id": dataset["id"], "n_clusters": 2, "backbone": "auto"} | changes
    answer = client.post("/v1/jobs", json={key: body[key] for key in body if body[key] is not None})
    assert answer.status_code == 202, answer.text
    job: Json = answer.json()
    return job


def _log(client: TestClient, job: Json) -> list[str]:
    return [line["message"] for line in client.get(f"/v1/jobs/{job['id']}/logs").json()["data"]]


@pytest.mark.parametrize(
    "changes",
    [{}, {"kind": "sweep"}, {"kind": "map", "n_clusters": None}],
    ids=["cluster", "sweep", "map"],
)
def test_the_configuration_has_the_chosen_name(
    make_client: MakeClient,
    make_settings: MakeSettings,
    dataset: Json,
    weights: Path,
    changes: Json,
) -> None:
    client = _service(make_client, make_settings, weights_dir=weights)

    job = _start(client, dataset, **changes)

    assert job["config"]["backbone"] == "dino_vitb16"
    (line,) = _log(client, job)
    assert line == (
        "The backbone is dino_vitb16, the best one whose weights are on this machine "
        "(dino_vitb16.pth in the weights folder); clip_vitl14 would need a GPU."
    )
    assert client.get("/v1/system").json()["auto_backbone"] == "dino_vitb16"


def test_the_choice_stays_when_better_weights_arrive(
    make_client: MakeClient, make_settings: MakeSettings, dataset: Json, weights: Path
) -> None:
    client = _service(make_client, make_settings, weights_dir=weights)
    job = _start(client, dataset)

    (weights / "dinov2_vitb14.pth").touch()

    assert client.get(f"/v1/jobs/{job['id']}").json()["config"] == job["config"]
    assert _start(client, dataset)["config"]["backbone"] == "dinov2_vitb14"


def test_a_repeated_request_gets_the_first_choice(
    make_client: MakeClient, make_settings: MakeSettings, dataset: Json, weights: Path
) -> None:
    client = _service(make_client, make_settings, weights_dir=weights)
    body = {"dataset_id": dataset["id"], "n_clusters": 2, "backbone": "auto"}
    send: Any = {"json": body, "headers": {"Idempotency-Key": "once"}}
    first = client.post("/v1/jobs", **send).json()

    (weights / "dinov2_vitb14.pth").touch()

    assert client.post("/v1/jobs", **send).json() == first


def test_without_other_weights_it_is_an_embedded_one(
    make_client: MakeClient, make_settings: MakeSettings, dataset: Json
) -> None:
    client = _service(make_client, make_settings)

    assert _start(client, dataset)["config"]["backbone"] == "efficientnet_lite0"
    assert _start(client, dataset, backbone=None)["config"]["backbone"] == "efficientnet_lite0"


def test_a_gpu_of_this_machine(
    make_client: MakeClient,
    make_settings: MakeSettings,
    weights: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "gpus" / "0").mkdir(parents=True)
    (tmp_path / "gpus" / "0" / "information").write_text("Model: NVIDIA L4\n")
    monkeypatch.setattr(hardware, "_GPUS", tmp_path / "gpus")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = {}

    for device in ("auto", "cpu", "cuda:1"):
        client = _service(make_client, make_settings, weights_dir=weights, device=device)
        found[device] = client.get("/v1/system").json()["auto_backbone"]

    assert found == {"auto": "clip_vitl14", "cpu": "dino_vitb16", "cuda:1": "clip_vitl14"}
