from pathlib import Path
from typing import Any

import open_clip
import pytest
import timm
import torch
from huggingface_hub import constants

from temi.backbones.catalog import check_backbone, list_backbones, parse_name
from temi.backbones.embedded import EMBEDDED_BACKBONES
from temi.backbones.load import load_backbone, open_clip_options
from temi.backbones.named import NAMED_BACKBONES
from temi.errors import WeightsUnavailable

OF_THE_PAPER = {
    *("dino_resnet50", "dino_vits16", "dino_vitb16", "msn_vits16", "msn_vitb16", "msn_vitl16"),
    *("mocov3_vits16", "mocov3_vitb16", "mae_vitb16", "mae_vitl16", "mae_vith14"),
    *("clip_rn50", "clip_vitb16", "clip_vitl14"),
    *("resnet50", "convnext_small", "convnext_base", "convnext_large"),
    *("vit_small_patch16_224", "vit_base_patch16_224", "vit_large_patch16_224"),
}

# Embedding, blocks, attention heads and patch, as the projects' papers give them.
TRANSFORMERS = {
    "dino_vits16": (384, 12, 6, 16),
    "dino_vitb16": (768, 12, 12, 16),
    "msn_vits16": (384, 12, 6, 16),
    "msn_vitb16": (768, 12, 12, 16),
    "msn_vitl16": (1024, 24, 16, 16),
    "mocov3_vits16": (384, 12, 12, 16),
    "mocov3_vitb16": (768, 12, 12, 16),
    "mae_vitb16": (768, 12, 12, 16),
    "mae_vitl16": (1024, 24, 16, 16),
    "mae_vith14": (1280, 32, 16, 14),
    "vit_small_patch16_224": (384, 12, 6, 16),
    "vit_base_patch16_224": (768, 12, 12, 16),
    "vit_large_patch16_224": (1024, 24, 16, 16),
    "dinov2_vits14": (384, 12, 6, 14),
    "dinov2_vitb14": (768, 12, 12, 14),
    "dinov2_vitl14": (1024, 24, 16, 14),
    "dinov3_vits16": (384, 12, 6, 16),
    "dinov3_vitb16": (768, 12, 12, 16),
}
_built: dict[str, Any] = {}


def on_no_device(name: str) -> Any:
    """Create the architecture without memory for its weights; several names share one."""
    named = NAMED_BACKBONES[name]
    model = named.model.partition(".")[0]
    key = f"{model} {named.options}"
    if key not in _built:
        with torch.device("meta"):
            _built[key] = timm.create_model(model, num_classes=0, **named.options).eval()
    return _built[key]


def test_the_names_of_the_paper_and_newer_families_exist() -> None:
    families = {name.partition("_")[0] for name in NAMED_BACKBONES}

    assert NAMED_BACKBONES.keys() >= OF_THE_PAPER
    assert {"dinov2", "dinov3", "siglip"} <= families


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers(name: str) -> None:
    module = on_no_device(name)
    patch = module.patch_embed.proj.kernel_size[0]
    heads = module.blocks[0].attn.num_heads

    assert (module.embed_dim, len(module.blocks), heads, patch) == TRANSFORMERS[name]
    assert module.num_features == NAMED_BACKBONES[name].dim
    assert module.global_pool == "token"  # the CLS token ...
    assert isinstance(module.norm, torch.nn.LayerNorm)  # ... after the last norm
    assert isinstance(module.fc_norm, torch.nn.Identity)


@pytest.mark.parametrize(
    "name", ["dino_resnet50", "resnet50", "convnext_small", "convnext_base", "convnext_large"]
)
def test_convolutional_networks(name: str) -> None:
    assert on_no_device(name).num_features == NAMED_BACKBONES[name].dim


@pytest.mark.parametrize("name", ["mae_vith14", "dinov2_vitl14", "dinov3_vitb16"])
def test_features_of_an_image(name: str) -> None:
    image = torch.empty(1, 3, 224, 224, device="meta")

    assert on_no_device(name)(image).shape == (1, NAMED_BACKBONES[name].dim)


@pytest.mark.parametrize("name", [n for n, b in NAMED_BACKBONES.items() if b.pretrained])
def test_image_towers(name: str) -> None:
    named = NAMED_BACKBONES[name]
    with torch.device("meta"):
        model: Any = open_clip.create_model(
            named.model, device="meta", **open_clip_options(parse_name(name))
        )
        features = model.visual.eval()(torch.empty(1, 3, 224, 224))
    activations = {type(module).__name__ for module in model.visual.modules()}
    mean = open_clip.get_model_preprocess_cfg(model)["mean"]

    assert features.shape == (1, named.dim)
    assert ("QuickGELU" in activations) == (name in ("clip_vitb16", "clip_vitl14"))
    assert mean[0] == pytest.approx(0.5 if name.startswith("siglip") else 0.4815, abs=1e-4)


@pytest.mark.parametrize("name", [n for n, b in NAMED_BACKBONES.items() if b.hosted])
def test_the_library_offers_the_weights(name: str) -> None:
    named = NAMED_BACKBONES[name]

    if named.library == "timm":
        assert named.model in timm.list_pretrained(named.model.partition(".")[0])
    else:
        tags = open_clip.list_pretrained_tags_by_model(named.model)
        assert named.pretrained in tags
        hub = open_clip.get_pretrained_cfg(named.model, named.pretrained or "")["hf_hub"]
        assert named.publisher.startswith(hub.rstrip("/") + " ")


def test_weights_that_are_only_available_as_a_file(tmp_path: Path) -> None:
    advice = rf"public file vits16_800ep\.pth\.tar of MSN .* {tmp_path} as msn_vits16\.pth\.tar"

    with pytest.raises(WeightsUnavailable, match=advice):
        check_backbone("msn_vits16", tmp_path)
    with pytest.raises(WeightsUnavailable, match=advice):
        load_backbone("msn_vits16", weights_dir=tmp_path)
    (tmp_path / "vit_small_patch16_224.pth").touch()  # somebody else's ViT-S/16
    with pytest.raises(WeightsUnavailable, match=advice):
        check_backbone("msn_vits16", tmp_path)
    (tmp_path / "msn_vits16.pth.tar").touch()
    check_backbone("msn_vits16", tmp_path)


@pytest.mark.parametrize("suffix", [".safetensors", ".pth", ".pt", ".bin", ".pth.tar"])
def test_suffixes(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"mae_vitl16{suffix}"
    file.touch()

    assert parse_name("mae_vitl16").local_file(tmp_path) == file


def test_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "dino_resnet50.pth").touch()
    listed = {info.name: info for info in list_backbones(tmp_path)}

    assert listed.keys() == {*EMBEDDED_BACKBONES, *NAMED_BACKBONES}
    for name, named in NAMED_BACKBONES.items():
        assert listed[name].dim == named.dim
        assert listed[name].source == (named.library if named.hosted else "file")
        assert listed[name].available == (named.hosted or name == "dino_resnet50")
        assert (listed[name].hint is None) == (name == "dino_resnet50")
        assert named.public_file in (listed[name].hint or named.public_file)
