"""The prediction process loads a backbone that another process has converted."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from app.core.models import conversion
from app.core.models.conversion import load_served_model
from app.core.models.extractors import converted_backbones
from app.core.models.files import ModelFiles, load_model
from app.core.platform.errors import ModelIntegrity
from app.core.runtime import Runtime
from temi.backbones.base import Backbone
from temi.backbones.converted import ConvertedBackbone
from tests.model_files import small_files, small_manifest, write_files
from tests.worker.tiny import tiny_backbone

FOLDER = "models/job_1"

pytestmark = pytest.mark.usefixtures("own_conversions")


def registered(runtime: Runtime, **changes: object) -> ModelFiles:
    manifest = small_manifest(3, **changes)
    return ModelFiles.of(
        FOLDER, write_files(runtime.storage, FOLDER, small_files(manifest)), manifest
    )


def test_another_process_converts_the_backbone(runtime: Runtime) -> None:
    files = registered(runtime)

    backbone, _, _ = load_served_model(files, runtime.settings)
    again, _, _ = load_served_model(files, runtime.settings, known=[backbone])

    assert isinstance(backbone, ConvertedBackbone)
    assert again is backbone
    assert converted_backbones(runtime.settings).has(files.backbone, files.weights_sha256)


def test_a_damaged_graph_is_converted_again(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone = tiny_backbone()
    files = registered(runtime, backbone="tiny", weights_sha256=backbone.weights_hash)
    converted = converted_backbones(runtime.settings)
    converted.add(backbone)
    (graph,) = runtime.settings.converted_dir.glob("*.onnx")
    graph.write_bytes(graph.read_bytes()[::-1])
    monkeypatch.setattr(conversion, "_convert", lambda *_: converted.add(backbone))

    found, _, _ = load_served_model(files, runtime.settings)

    pixels = np.zeros((1, 8, 8, 3), np.uint8)
    np.testing.assert_array_equal(found.embed(pixels), backbone.embed(pixels))


def test_a_damaged_file_is_refused_with_and_without_a_graph(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone = tiny_backbone()
    files = registered(runtime, backbone="tiny", weights_sha256=backbone.weights_hash)
    runtime.storage.write(f"{FOLDER}/model.safetensors", b"damaged")

    with pytest.raises(ModelIntegrity, match=r"model\.safetensors"):
        load_served_model(files, runtime.settings)
    converted_backbones(runtime.settings).add(backbone)
    with pytest.raises(ModelIntegrity, match=r"model\.safetensors"):
        load_served_model(files, runtime.settings)


def test_bfloat16_is_computed_by_torch(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    files = registered(runtime, backbone="tiny", weights_sha256=tiny_backbone().weights_hash)
    files = ModelFiles(**{**vars(files), "precision": "bfloat16"})
    monkeypatch.setattr("app.core.models.files._load_backbone", lambda *_: tiny_backbone())

    backbone, _, _ = load_model(files, runtime.settings)

    assert isinstance(backbone, Backbone)
    assert not runtime.settings.converted_dir.exists()


def test_the_prediction_process_does_not_load_torch(runtime: Runtime) -> None:
    backbone = tiny_backbone()
    files = registered(runtime, backbone="tiny", weights_sha256=backbone.weights_hash)
    converted_backbones(runtime.settings).add(backbone)
    code = """
import pickle, sys
import app.core.serving.process
from app.core.models.conversion import load_served_model

backbone, *_ = load_served_model(*pickle.load(sys.stdin.buffer))
backbone.embed(backbone.preprocessing.new_batch(2), 2)
large = (
    *("torch", "timm", "sklearn", "celery", "fastapi", "matplotlib", "pyarrow"),
    *("sqlalchemy", "psycopg"),
)
assert not [name for name in large if name in sys.modules]
"""
    given = pickle.dumps((files, runtime.settings))
    subprocess.run([sys.executable, "-c", code], input=given, check=True)
