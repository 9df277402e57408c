"""`:search` by a text, with a CLIP model of random weights: from the weights file to the images."""

from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from fastapi.testclient import TestClient
from safetensors.torch import save_file

from app.core.datasets.features import open_features, to_hashes
from app.core.platform.settings import Settings
from app.core.platform.tables import Clustering, Dataset
from app.core.runtime import Runtime
from temi.backbones.text import load_text_encoder
from tests.api.conftest import upload, work_on
from tests.conftest import MakeClient
from tests.images import png_bytes

_MODEL = "ViT-S-32-alt"
_BACKBONE = f"open_clip:{_MODEL}/mine"


@pytest.fixture
def weights_dir(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    save_file(open_clip.create_model(_MODEL).state_dict(), tmp_path / f"{_MODEL}-mine.safetensors")
    return tmp_path


@pytest.fixture
def clip_settings(settings: Settings, weights_dir: Path) -> Settings:
    return settings.model_copy(update={"weights_dir": weights_dir, "torch_threads": 1})


def test_images_by_a_text(make_client: MakeClient, clip_settings: Settings) -> None:
    runtime, client = Runtime(clip_settings), make_client(clip_settings)
    colors = ("red", "green", "blue", "white", "black", "orange")
    job = upload(client, {f"{color}.png": png_bytes(color, (40, 40)) for color in colors})
    work_on(runtime, job["id"])
    dataset_id = job["dataset_id"]
    settings = {"n_clusters": 2, "n_heads": 1, "steps": 5, "backbone": _BACKBONE}
    cluster = client.post("/v1/jobs", json={"dataset_id": dataset_id, **settings}).json()
    work_on(runtime, cluster["id"])
    result = client.get(f"/v1/jobs/{cluster['id']}").json()["result"]
    assert result["backbone"] == _BACKBONE
    version = client.get(f"/v1/models/{result['model']['name']}/versions/1").json()
    assert version["has_text_encoder"] is True
    answer = client.post(f"/v1/datasets/{dataset_id}:search", json={"text": "a red car"})
    assert answer.status_code == 200, answer.text
    found = {one["name"]: one["similarity"] for one in answer.json()["data"]}
    assert found == _expected(client, runtime, dataset_id, clip_settings)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    runtime.db.dispose()


def _expected(
    client: TestClient, runtime: Runtime, dataset_id: str, settings: Settings
) -> dict[str, object]:
    """The cosines of the stored features with the text, one by one."""
    encoder = load_text_encoder(_BACKBONE, weights_dir=settings.weights_dir, device="cpu")
    (text,) = encoder.embed(["a red car"]).astype(float)
    with runtime.db.read() as session:
        current = session.get_one(Dataset, dataset_id).current_clustering_id
        folder = session.get_one(Clustering, current).embedding_folder
    stored = open_features(runtime.storage, folder)
    cosines: dict[str, object] = {}
    for image in client.get(f"/v1/datasets/{dataset_id}/images").json()["data"]:
        (row,) = stored.rows_of(to_hashes([image["sha256"]]))
        vector = stored.features[row].astype(float)
        cosine = vector @ text / np.linalg.norm(vector) / np.linalg.norm(text)
        cosines[image["name"]] = pytest.approx(cosine, abs=2e-6)
    return cosines
