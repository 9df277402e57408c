"""`auto`: the best backbone whose weights are on this machine, and never a download."""

import logging
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import constants

from temi.backbones.auto import AUTO, RANKING, better_backbones, choose_backbone
from temi.backbones.catalog import check_backbone, list_backbones, parse_name
from temi.backbones.embedded import EMBEDDED_BACKBONES
from temi.backbones.load import load_backbone
from temi.backbones.named import NAMED_BACKBONES
from temi.errors import UnknownBackbone, WeightsUnavailable

_LARGE = re.compile(r"(ViT|ConvNeXt)-[LH]\b")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub."""
    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    return folder


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    return folder


def _put_into_cache(cache: Path, repository: str, file: str) -> None:
    snapshot = cache / f"models--{repository.replace('/', '--')}" / "snapshots" / "abc"
    snapshot.mkdir(parents=True, exist_ok=True)
    (snapshot / file).write_bytes(b"weights")


def test_the_order_is_that_of_the_paper() -> None:
    names = [ranked.name for ranked in RANKING]
    figures = [ranked.cifar100 for ranked in RANKING if ranked.cifar100 is not None]

    assert figures == sorted(figures, reverse=True)
    assert figures[-1] > 50
    assert names[-2:] == ["efficientnet_lite0", "efficientnet_lite2"]
    assert len(set(names)) == len(names)
    assert set(names) <= {*EMBEDDED_BACKBONES, *NAMED_BACKBONES}


def test_large_models_need_a_gpu() -> None:
    descriptions = {info.name: info.description for info in list_backbones()}

    for ranked in RANKING:
        assert ranked.needs_gpu == bool(_LARGE.match(descriptions[ranked.name])), ranked.name


def test_without_other_weights_it_is_the_default(weights: Path) -> None:
    for folder in (None, weights):
        choice = choose_backbone(folder, has_gpu=False)

        assert (choice.name, choice.too_large) == ("efficientnet_lite0", ())
        assert choice.reason.startswith("The backbone is efficientnet_lite0, the best one whose")
        assert "installed with the service" in choice.reason


def test_the_other_embedded_one_and_none(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = []
    for name in ("efficientnet_lite0", "efficientnet_lite2"):
        chosen.append(choose_backbone(has_gpu=True).name)
        missing = replace(EMBEDDED_BACKBONES[name], package="no_such_package")
        monkeypatch.setitem(EMBEDDED_BACKBONES, name, missing)

    assert chosen == ["efficientnet_lite0", "efficientnet_lite2"]
    with pytest.raises(WeightsUnavailable, match="no weights of any backbone"):
        choose_backbone(has_gpu=True)


def test_a_file_in_the_weights_folder(weights: Path) -> None:
    for name in ("dino_vits16.pth", "msn_vitb16.pth.tar", "mae_vitb16.pth"):
        (weights / name).touch()

    choice = choose_backbone(weights, has_gpu=False)

    assert choice.name == "msn_vitb16"
    assert "msn_vitb16.pth.tar in the weights folder" in choice.reason
    assert str(weights) not in choice.reason  # a client of the service reads it


def test_a_large_model_is_for_a_gpu(weights: Path) -> None:
    for name in ("clip_vitl14.safetensors", "dino_vitb16.pth"):
        (weights / name).touch()

    assert choose_backbone(weights, has_gpu=True).name == "clip_vitl14"
    on_cpu = choose_backbone(weights, has_gpu=False)
    assert (on_cpu.name, on_cpu.too_large) == ("dino_vitb16", ("clip_vitl14",))
    assert on_cpu.reason.endswith("clip_vitl14 would need a GPU.")


def test_weights_in_the_cache_of_the_hub(cache: Path) -> None:
    repository = parse_name("dino_vitb16").hub_repository
    assert repository is not None
    _put_into_cache(cache, repository, "config.json")
    assert choose_backbone(has_gpu=False).name == "efficientnet_lite0"

    _put_into_cache(cache, repository, "model.safetensors")

    choice = choose_backbone(has_gpu=False)
    assert (choice.name, choice.weights) == ("dino_vitb16", "in the cache of the Hugging Face Hub")
    listed = {info.name: info for info in list_backbones()}
    assert listed["dino_vitb16"].hint is None


def test_a_cached_file_belongs_to_one_library(cache: Path) -> None:
    repository = "timm/vit_base_patch16_clip_224.openai"
    _put_into_cache(cache, repository, "model.safetensors")  # timm's
    assert parse_name("clip_vitb16").find_weights(None) is None

    _put_into_cache(cache, repository, "open_clip_model.safetensors")

    assert choose_backbone(has_gpu=False).name == "clip_vitb16"


def test_a_library_that_is_not_installed(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (weights / "clip_vitb16.safetensors").touch()
    monkeypatch.setattr("temi.backbones.catalog.find_spec", lambda name: None)

    assert choose_backbone(weights, has_gpu=False).name == "efficientnet_lite0"


def test_better_ones_can_be_downloaded_and_suit_the_machine() -> None:
    on_cpu = [ranked.name for ranked in better_backbones("efficientnet_lite0", has_gpu=False)]
    on_gpu = [ranked.name for ranked in better_backbones("dino_vitb16", has_gpu=True)]

    assert on_cpu[0] == "dinov3_vitb16"
    assert "dino_vitb16" in on_cpu
    assert not {"msn_vitb16", "clip_vitl14"} & set(on_cpu)  # no download, too large
    assert on_gpu[0] == "dinov2_vitl14"
    assert "dino_vits16" not in on_gpu
    assert better_backbones("dinov3_vitb16", has_gpu=False) == []


def test_figures_of_the_paper() -> None:
    ranked = {one.name: one for one in RANKING}

    figures = "ACC 67.1 % on CIFAR-100, 58.4 % on ImageNet in TEMI's paper"
    assert ranked["dino_vitb16"].figures == figures
    assert ranked["dinov2_vitb14"].figures == "not in TEMI's paper"


def test_the_loaded_backbone_has_the_chosen_name(
    weights: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "temi"):
        backbone = load_backbone(AUTO, weights_dir=weights, device="cpu")

    assert backbone.name == "efficientnet_lite0"
    assert "The backbone is efficientnet_lite0" in caplog.text


def test_it_is_no_name_of_a_model() -> None:
    with pytest.raises(UnknownBackbone):
        check_backbone(AUTO)


def test_choosing_does_not_load_torch() -> None:
    code = (
        "import sys; from temi.backbones.auto import choose_backbone\n"
        "choose_backbone(has_gpu=False)\n"
        "assert not {'torch', 'timm', 'open_clip'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
