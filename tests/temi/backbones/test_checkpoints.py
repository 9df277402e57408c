"""Files in the layouts of the public checkpoints give the features of their network."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import timm
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from temi.backbones.checkpoints import LAYOUTS, backbone_state
from temi.backbones.load import IMAGENET_CROP, load_backbone
from temi.backbones.named import NAMED_BACKBONES
from temi.errors import WeightsUnavailable

State = dict[str, Tensor]
HEAD = {"mlp.0.weight": torch.ones(2, 2), "last_layer.weight_v": torch.ones(2)}


def randomize(state: State, seed: int = 0) -> State:
    """Make every tensor different, so that swapped tensors are detected."""
    generator = torch.Generator().manual_seed(seed)

    def noise(key: str, tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        values = torch.randn(tensor.shape, generator=generator) * 0.1
        if key.endswith("running_var"):
            return values.abs() + 1
        return values + 1 if tensor.ndim == 1 and not key.endswith("bias") else values  # scales

    return {key: noise(key, tensor) for key, tensor in state.items()}


@cache
def network(model: str, **options: Any) -> Any:
    module = timm.create_model(model, pretrained=False, num_classes=0, **options)
    module.load_state_dict(randomize(module.state_dict()))
    return module.eval()


def image() -> Tensor:
    return torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(1))


def under(prefix: str, state: State) -> State:
    return {f"{prefix}{key}": value for key, value in state.items()}


def zeros(state: State) -> State:
    return {key: torch.zeros_like(value) for key, value in state.items()}


def dino_full(state: State, wrapper: str = "") -> dict[str, Any]:
    """The content of a training checkpoint, with numpy learning rates and the command line."""
    return {
        "student": under("module.backbone.", zeros(state)) | under("module.head.", HEAD),
        "teacher": under(f"{wrapper}backbone.", state) | under(f"{wrapper}head.", HEAD),
        "optimizer": {"state": {}, "param_groups": [{"lr": np.float64(0.1), "params": [0]}]},
        "args": Namespace(arch="vit_small", patch_size=16, local_crops_scale=(0.05, 0.4)),
        "dino_loss": {"center": torch.zeros(1, 4)},
        "epoch": 100,
    }


def dino_resnet_full(state: State) -> dict[str, Any]:
    return dino_full(state, wrapper="module.")  # with batch norm, the teacher is wrapped as well


def msn(state: State) -> dict[str, Any]:
    projection = {"fc1.weight": torch.ones(2, 2), "bn1.running_mean": torch.ones(2)}
    return {
        "target_encoder": under("module.", state) | under("module.fc.", projection),
        "prototypes": torch.ones(4, 2),
    }


def msn_training(state: State) -> dict[str, Any]:
    return {"encoder": under("module.", zeros(state)), "opt": {}, "epoch": 3} | msn(state)


def moco(state: State) -> dict[str, Any]:
    head = {"head.0.weight": torch.ones(2, 2), "head.1.running_mean": torch.ones(2)}
    encoders = under("module.base_encoder.", zeros(state) | head)
    encoders |= under("module.momentum_encoder.", state | head)
    predictor = {"module.predictor.0.weight": torch.ones(2, 2)}
    return {"epoch": 300, "arch": "vit_small", "state_dict": encoders | predictor}


def moco_linear(state: State) -> dict[str, Any]:
    classifier = {"module.head.weight": torch.ones(2, 2), "module.head.bias": torch.ones(2)}
    best = torch.tensor(73.2)
    return {"best_acc1": best, "state_dict": under("module.", state) | classifier}


def mae_full(state: State) -> dict[str, Any]:
    decoder = {"decoder_embed.weight": torch.ones(2), "decoder_pos_embed": torch.ones(2)}
    return {"model": state | decoder | {"mask_token": torch.ones(1)}}


def dinov2(state: State) -> dict[str, Any]:
    return state | {"mask_token": torch.ones(1, 384)}


@pytest.mark.parametrize(
    ("layout", "write"),
    [
        ("dino", dino_full),
        ("dino", dino_resnet_full),
        ("msn", msn),
        ("msn", msn_training),
        ("mocov3", moco),
        ("mocov3", moco_linear),
        ("mae", mae_full),
        ("dinov2", dinov2),
        *((layout, dict) for layout in LAYOUTS if layout != "open_clip"),
    ],
)
def test_layouts(layout: Any, write: Callable[[State], dict[str, Any]]) -> None:
    state = {"cls_token": torch.ones(1, 1, 2), "blocks.0.norm1.weight": torch.ones(2)}

    assert backbone_state(write(state), layout, origin="file") == state


@pytest.fixture
def small_mae(monkeypatch: pytest.MonkeyPatch) -> None:
    """MAE has no network smaller than ViT-B, so a smaller one in the same layout is tested."""
    small = replace(
        NAMED_BACKBONES["mae_vitb16"], name="mae_vitt16", model="vit_tiny_patch16_224", dim=192
    )
    monkeypatch.setitem(NAMED_BACKBONES, small.name, small)


@pytest.mark.usefixtures("small_mae")
@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("dino_vits16", dino_full),
        ("dino_resnet50", dino_resnet_full),
        ("msn_vits16", msn_training),
        ("mocov3_vits16", moco),
        ("mae_vitt16", mae_full),
        ("dinov2_vits14", dinov2),
    ],
)
def test_features(name: str, write: Callable[[State], dict[str, Any]], tmp_path: Path) -> None:
    named = NAMED_BACKBONES[name]
    source = network(named.model.partition(".")[0], **named.options)
    suffix = ".pth.tar" if named.public_file.endswith(".pth.tar") else ".pth"
    torch.save(write(source.state_dict()), tmp_path / f"{name}{suffix}")

    backbone = load_backbone(name, weights_dir=tmp_path, device="cpu")

    with torch.no_grad():
        features = source.forward_features(image())
        # (B, tokens, D) of a transformer, (B, D, h, w) of a ResNet
        expected = features[:, 0] if features.ndim == 3 else features.mean(dim=(2, 3))
        # The module, not `forward`, which may work in a shorter type.
        torch.testing.assert_close(backbone.module(image()), expected, atol=1e-4, rtol=1e-4)
    assert backbone.dim == named.dim
    assert backbone.preprocessing == IMAGENET_CROP


def test_moco_v3_needs_its_number_of_attention_heads() -> None:
    """With 6 heads the same tensors load without error but give other features."""
    usual, twice = (network("vit_small_patch16_224", **o) for o in ({}, {"num_heads": 12}))

    with torch.no_grad():
        assert not torch.allclose(usual(image()), twice(image()), atol=1e-2)
    assert NAMED_BACKBONES["mocov3_vits16"].options == {"num_heads": 12}


def test_a_path_may_follow_a_short_name(tmp_path: Path) -> None:
    state = network("vit_small_patch16_224").state_dict()
    torch.save(dino_full(state), tmp_path / "mine.pth")
    save_file(state, tmp_path / "dino_vits16.safetensors")

    by_path = load_backbone(f"dino_vits16@{tmp_path / 'mine.pth'}", device="cpu")
    by_folder = load_backbone("dino_vits16", weights_dir=tmp_path, device="cpu")

    assert by_path.weights_hash == by_folder.weights_hash


def clip_tower(model: str) -> tuple[nn.Module, list[str]]:
    """The image encoder, and the tensor names of the text encoder."""
    with torch.device("meta"):
        whole: Any = open_clip.create_model(model, device="meta")
    tower = whole.visual.to_empty(device="cpu").eval()
    tower.load_state_dict(randomize(tower.state_dict()))
    return tower, [key for key in whole.state_dict() if not key.startswith("visual.")]


def test_clip_in_the_layout_of_openai(tmp_path: Path) -> None:
    tower, text = clip_tower("RN50")
    sizes = {"input_resolution": 224, "context_length": 77, "vocab_size": 49408}
    content = under("visual.", dict(tower.state_dict())) | {key: torch.zeros(1) for key in text}
    content |= {key: torch.tensor(value) for key, value in sizes.items()}
    torch.save(content, tmp_path / "clip_rn50.pt")

    backbone = load_backbone("clip_rn50", weights_dir=tmp_path, device="cpu")

    with torch.no_grad():
        torch.testing.assert_close(backbone.module(image()), tower(image()), atol=1e-4, rtol=1e-4)
    assert backbone.dim == 1024
    assert backbone.preprocessing.mean == pytest.approx((122.77, 116.75, 104.09), abs=0.01)


def broken(state: State, kind: str) -> dict[str, Any]:
    if kind == "another project's":
        return moco(state)
    if kind == "missing":
        return msn({key: value for key, value in state.items() if key != "blocks.7.norm1.bias"})
    if kind == "stranger":
        return msn(state | {"blocks.0.extra.weight": torch.ones(1)})
    return msn(state | {"pos_embed": torch.zeros(1, 5, 384)})


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("another project's", "does not fit the msn layout: it holds arch, epoch, state_dict"),
        ("missing", r"does not fit the model: missing blocks\.7\.norm1\.bias"),
        ("stranger", r"does not fit the model: unexpected blocks\.0\.extra\.weight"),
        ("shape", r"pos_embed has shape \(1, 5, 384\), the model expects \(1, 197, 384\)"),
    ],
)
def test_files_that_do_not_fit_are_refused(kind: str, reason: str, tmp_path: Path) -> None:
    state = network("vit_small_patch16_224").state_dict()
    torch.save(broken(state, kind), tmp_path / "msn_vits16.pth.tar")

    with pytest.raises(WeightsUnavailable, match=reason):
        load_backbone("msn_vits16", weights_dir=tmp_path, device="cpu")


def test_unexpected_tensors_beside_the_backbone_are_refused() -> None:
    content = {"teacher": {"backbone.cls_token": torch.ones(1), "surprise.weight": torch.ones(1)}}

    with pytest.raises(WeightsUnavailable, match=r"dino layout: unexpected surprise\.weight"):
        backbone_state(content, "dino", origin="file")


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("content", [{}, {"epoch": 3}, {"state_dict": {}}, {"teacher": 1}])
def test_files_without_weights(layout: Any, content: dict[str, Any]) -> None:
    with pytest.raises(WeightsUnavailable, match="it holds"):
        backbone_state(content, layout, origin="file")
