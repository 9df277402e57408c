import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temi.backbones.catalog import (
    DEFAULT_BACKBONE,
    check_backbone,
    feature_dim,
    list_backbones,
    parse_name,
)
from temi.backbones.embedded import EMBEDDED_BACKBONES
from temi.errors import UnknownBackbone, WeightsUnavailable


def test_importing_the_catalog_does_not_import_torch() -> None:
    code = (
        "import sys, temi, temi.backbones.catalog, temi.errors, temi.config;"
        "temi.list_backbones(); temi.check_backbone('efficientnet_lite0'); temi.TrainConfig;"
        "assert not {'torch', 'timm', 'open_clip'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_embedded_backbones_are_listed_first_and_available() -> None:
    default, larger = list_backbones()[:2]

    assert (default.name, default.source, default.available) == (DEFAULT_BACKBONE, "embedded", True)
    assert (larger.name, larger.source, larger.available) == (
        "efficientnet_lite2",
        "embedded",
        True,
    )
    assert default.hint is larger.hint is None
    assert feature_dim(default.name) == feature_dim(larger.name) == 1280


def test_names_are_parsed() -> None:
    timm = parse_name("timm:vit_small_patch16_224.augreg_in1k")
    clip = parse_name("open_clip:ViT-B-32/openai")
    local = parse_name("open_clip:ViT-B-32@/data/my@weights.pth")

    assert (timm.source, timm.model) == ("timm", "vit_small_patch16_224.augreg_in1k")
    assert (clip.model, clip.pretrained, clip.file_stem) == (
        "ViT-B-32",
        "openai",
        "ViT-B-32-openai",
    )
    assert local.path == Path("/data/my@weights.pth")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "resnet",
        "timm:",
        "timm:../secret",
        "timm:a/b",
        "timm:resnet50@",
        "dino_vitb16@",
        "efficientnet_lite0@/data/weights.pth",
        "torch:resnet50",
        "open_clip:ViT-B-32",
        "open_clip:ViT-B-32/",
        "open_clip:/openai",
        "timm:no_such_model",
        "open_clip:NoSuchModel/openai",
    ],
)
def test_unknown_names(name: str) -> None:
    with pytest.raises(UnknownBackbone):
        check_backbone(name)


def test_weights_that_no_library_offers(tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match=rf"{tmp_path} as ViT-B-32-nonsense\.safetensors"):
        check_backbone("open_clip:ViT-B-32/nonsense", tmp_path)
    with pytest.raises(WeightsUnavailable, match=r"resnet18\.nonsense"):
        check_backbone("timm:resnet18.nonsense")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match="no weights file"):
        check_backbone(f"timm:resnet18@{tmp_path}/gone.pth")


def test_a_file_in_the_weights_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "resnet18.nonsense.pth").touch()

    check_backbone("timm:resnet18.nonsense", tmp_path)


def test_known_names_are_accepted() -> None:
    check_backbone("timm:resnet18")
    check_backbone("timm:resnet18.a1_in1k")
    check_backbone("open_clip:ViT-B-32/openai")


@pytest.mark.parametrize("name", EMBEDDED_BACKBONES)
def test_an_embedded_package_may_be_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = replace(EMBEDDED_BACKBONES[name], package="no_such_package")
    monkeypatch.setitem(EMBEDDED_BACKBONES, name, missing)

    with pytest.raises(WeightsUnavailable, match="install the Python package no-such-package"):
        check_backbone(name)
    listed = {info.name: info for info in list_backbones()}
    assert not listed[name].available
    assert listed[name].hint is not None


@settings(max_examples=50, deadline=None)
@given(st.text())
def test_any_text_is_parsed_or_raises_unknown_backbone(text: str) -> None:
    try:
        parsed = parse_name(text)
    except UnknownBackbone:
        return
    assert "/" not in parsed.file_stem
