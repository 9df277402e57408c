"""The text encoder of CLIP models, with random weights in the public layout."""

from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from safetensors.torch import save_file

from temi.backbones.catalog import has_text_encoder
from temi.backbones.load import load_backbone
from temi.backbones.text import load_text_encoder
from temi.errors import TemiError, WeightsUnavailable

_MODEL = "ViT-S-32-alt"
_TEXTS = ["a red car", "a cat", *(f"photo {number}" for number in range(70))]


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    return open_clip.create_model(_MODEL).eval()


@pytest.fixture(scope="module")
def weights_dir(tmp_path_factory: pytest.TempPathFactory, model: Any) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    save_file(model.state_dict(), folder / f"{_MODEL}-mine.safetensors")
    return folder


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_texts_are_in_the_space_of_the_images(
    tmp_path: Path, model: Any, weights_dir: Path, suffix: str
) -> None:
    folder = weights_dir
    if suffix == ".pth":  # as open_clip's training saves it
        folder = tmp_path
        state = {f"module.{name}": tensor for name, tensor in model.state_dict().items()}
        torch.save({"epoch": 3, "state_dict": state}, folder / f"{_MODEL}-mine.pth")
    name = f"open_clip:{_MODEL}/mine"
    encoder = load_text_encoder(name, weights_dir=folder, device="cpu")
    backbone = load_backbone(name, weights_dir=folder, device="cpu")
    assert encoder.weights_hash == backbone.weights_hash
    vectors = encoder.embed(_TEXTS)
    assert vectors.shape == (len(_TEXTS), backbone.dim)
    with torch.inference_mode():
        tokens = open_clip.get_tokenizer(_MODEL)(_TEXTS)
        expected = model.encode_text(tokens, normalize=True).numpy()
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_backbones_without_a_text_encoder(tmp_path: Path, model: Any) -> None:
    assert has_text_encoder("clip_vitb16")
    assert has_text_encoder("siglip2_vitb16")
    assert has_text_encoder(f"open_clip:{_MODEL}/mine")
    assert not has_text_encoder("efficientnet_lite0")
    assert not has_text_encoder("dinov2_vitb14")
    assert not has_text_encoder("no such backbone")
    with pytest.raises(TemiError, match="has no text encoder"):
        load_text_encoder("efficientnet_lite0")
    images = {k: v for k, v in model.state_dict().items() if k.startswith("visual.")}
    save_file(images, tmp_path / f"{_MODEL}-mine.safetensors")
    with pytest.raises(WeightsUnavailable, match="missing"):
        load_text_encoder(f"open_clip:{_MODEL}/mine", weights_dir=tmp_path)
