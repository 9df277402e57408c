"""A model that is exported to another service gives identical predictions."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import safetensors.torch
import torch
from fastapi.testclient import TestClient
from PIL import Image

from app.core.models.files import ModelFiles, load_model
from app.core.models.versions import add_version, resolve
from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from temi.backbones.embedding import embed_images
from temi.backbones.load import load_backbone
from temi.finetune import backbone_tensors, with_weights
from tests.api.conftest import COLORS, Json, upload, work_on
from tests.conftest import running_api
from tests.images import ZIP, jpeg_bytes, png_bytes
from tests.model_files import small_files, small_manifest, write_files
from tests.waiting import PATIENT

NEW = [("red", jpeg_bytes("#c03030", (48, 32))), ("odd", png_bytes("#808000", (90, 90)))]


@dataclass(frozen=True)
class Service:
    client: TestClient
    runtime: Runtime

    def files(self, name: str) -> ModelFiles:
        with self.runtime.db.read() as session:
            _, version = resolve(session, "default", name)
        return ModelFiles.of(version.folder, version.files, version.manifest)


def _service(folder: Path, sqlite_template: Path) -> Iterator[Service]:
    (folder / "temi.db").write_bytes(sqlite_template.read_bytes())
    settings = Settings(_env_file=None, data_dir=folder, torch_threads=1, **PATIENT)
    runtime = Runtime(settings)
    with running_api(settings) as client:
        yield Service(client, runtime)
    runtime.db.dispose()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Service]:
    """A service with a model `colors`, and a model `tuned` with its own backbone."""
    for service in _service(tmp_path_factory.mktemp("here"), sqlite_template):
        _train(service)
        _tune(service)
        yield service


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Service]:
    yield from _service(tmp_path_factory.mktemp("there"), sqlite_template)


def _train(service: Service) -> None:
    images = {
        f"{name}/{number}.jpg": jpeg_bytes(color, (32 + number, 32))
        for name, color in COLORS.items()
        for number in range(6)
    }
    job = upload(service.client, images, name="colors")
    work_on(service.runtime, job["id"])
    body = {"dataset_id": job["dataset_id"], "n_clusters": 3, "n_heads": 2, "steps": 40}
    trained = service.client.post("/v1/jobs", json=body).json()
    work_on(service.runtime, trained["id"])
    done = service.client.get(f"/v1/jobs/{trained['id']}").json()
    assert done["status"] == "succeeded", done["error"]
    rename = {"kind": "rename", "cluster_id": 1, "label": "the second"}
    clustering = f"/v1/clusterings/{done['result']['clustering_id']}"
    service.client.post(f"{clustering}/operations", json=rename, headers={"If-Match": '"1"'})


def _tune(service: Service) -> None:
    """Registers a version like a fine-tuning, without the training."""
    start = load_backbone("efficientnet_lite0")
    tensors = backbone_tensors(start)
    tensors = {
        name: tensor * 1.01 if tensor.dtype == torch.float32 else tensor
        for name, tensor in tensors.items()
    }
    manifest = small_manifest(
        3,
        weights_sha256=with_weights(start, tensors).weights_hash,
        finetuned_from={"name": "colors", "version": 1},
        finetune={"steps": 1},
    )
    files = {**small_files(manifest), "backbone.safetensors": safetensors.torch.save(tensors)}
    with service.runtime.db.write() as session:
        add_version(
            session,
            tenant="default",
            name="tuned",
            job_id=None,
            clustering_id=None,
            folder="models/tuned",
            manifest=manifest,
            files=write_files(service.runtime.storage, "models/tuned", files),
        )


def _predict(service: Service, name: str) -> Json:
    answer = service.client.post(
        f"/v1/models/{name}:predict",
        files=[("files", image) for image in NEW],
        params={"probabilities": "true", "top_k": 3},
    )
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    return body


def _probabilities(service: Service, name: str) -> npt.NDArray[np.float32]:
    """Probabilities before they are rounded for a response."""
    backbone, model, _ = load_model(service.files(name), service.runtime.settings)
    pictures = [partial(Image.open, io.BytesIO(data)) for _, data in NEW]
    return model.predict_proba(np.concatenate(list(embed_images(backbone, pictures))))


@pytest.mark.parametrize("name", ["colors", "tuned"])
def test_an_imported_model_gives_identical_probabilities(
    here: Service, there: Service, name: str
) -> None:
    file = here.client.get(f"/v1/models/{name}/versions/1/file")
    assert file.status_code == 200
    imported = there.client.post("/v1/models:import", content=file.content, headers=ZIP)
    assert imported.status_code == 201, imported.text
    assert _predict(there, name) == _predict(here, name)
    ours, theirs = (_probabilities(service, name) for service in (here, there))
    assert ours.tobytes() == theirs.tobytes()
    assert ours.std() > 0


def test_cluster_names_are_exported(here: Service, there: Service) -> None:
    file = here.client.get("/v1/models/colors/versions/1/file").content
    there.client.post("/v1/models:import", content=file, headers=ZIP, params={"name": "named"})
    answer = _predict(there, "named")
    names = {found["label"] for found in answer["data"][0]["top_k"]}
    assert names == {"cluster 0", "the second", "cluster 2"}
    there.client.put("/v1/models/named/aliases/live", json={"version": 1})
    assert _predict(there, "named@live") == answer


@pytest.mark.parametrize("file", ["manifest.json", "model.safetensors", "backbone.safetensors"])
def test_a_damaged_model_is_refused_everywhere(here: Service, file: str) -> None:
    copy = here.client.get("/v1/models/tuned/versions/1/file").content
    name = f"damaged-{file.partition('.')[0]}"
    here.client.post("/v1/models:import", content=copy, headers=ZIP, params={"name": name})
    path = here.runtime.storage.path(f"{here.files(name).folder}/{file}")
    whole, random = path.read_bytes(), np.random.default_rng(0)
    for _ in range(4):
        damaged = bytearray(whole)
        damaged[random.integers(len(damaged))] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        image = {"files": NEW[0]}
        for answer in (
            here.client.post(f"/v1/models/{name}:predict", files=image),
            here.client.put(f"/v1/models/{name}/aliases/live", json={"version": 1}),
            here.client.get(f"/v1/models/{name}/versions/1/file"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (503, "model_integrity")
    path.write_bytes(whole)
    moved = here.client.put(f"/v1/models/{name}/aliases/live", json={"version": 1})
    assert moved.status_code == 200
