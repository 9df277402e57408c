"""`temi backbones` and what `temi doctor` says of them."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import timm
from huggingface_hub import constants
from safetensors.torch import save
from typer.testing import CliRunner, Result

from app.cli import app
from app.core.platform import hardware
from temi.backbones.embedded import EMBEDDED_BACKBONES
from temi.backbones.load import load_backbone
from tests.fake_hub import running_hub

REPOSITORY = "timm/test_vit.r160_in1k"


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU, and nothing cached."""
    monkeypatch.setattr(hardware, "_GPUS", tmp_path / "no_gpus")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("TEMI_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    monkeypatch.setenv("TEMI_WEIGHTS_DIR", str(folder))
    return folder


def _run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def _fetch(url: str, weights: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: huggingface_hub reads HF_ENDPOINT once."""
    environment = os.environ | {"HF_ENDPOINT": url, "TEMI_WEIGHTS_DIR": str(weights)}
    command = [sys.executable, "-m", "app.cli.main", "backbones", "fetch", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def _doctor() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(_run("doctor", "--json").stdout)
    return [check for check in found if check["name"] in ("backbone", "better one")]


def test_the_list_says_what_auto_chooses(weights: Path) -> None:
    (weights / "dino_vitb16.pth").touch()
    for words in (["backbones"], ["backbones", "list"]):
        answer = _run(*words)
        assert answer.exit_code == 0
        assert "efficientnet_lite2" in answer.stdout
        assert "temi backbones fetch dinov2_vitb14" in answer.stdout
        assert "auto would choose dino_vitb16 here." in answer.stderr


def test_weights_are_fetched_into_the_folder(weights: Path) -> None:
    content = save(timm.create_model("test_vit", pretrained=False).state_dict())
    file = weights / "test_vit.safetensors"
    with running_hub() as hub:
        hub.add(REPOSITORY, "model.safetensors", content)
        first = _fetch(hub.url, weights, "timm:test_vit", "--json")
        again = _fetch(hub.url, weights, "timm:test_vit")

    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout) == {
        "name": "timm:test_vit",
        "path": str(file),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "repository": REPOSITORY,
    }
    assert f"sha256\t{hashlib.sha256(content).hexdigest()}" in again.stdout
    assert "the file was there already" in again.stdout
    assert list(weights.iterdir()) == [file]
    assert load_backbone("timm:test_vit", weights_dir=weights, device="cpu").dim == 64


def test_no_network_is_exit_code_1_with_advice(weights: Path) -> None:
    done = _fetch("http://127.0.0.1:9", weights, "dino_vitb16")

    assert (done.returncode, done.stdout) == (1, "")
    assert "could not be fetched from http://127.0.0.1:9" in done.stderr
    assert "dino_vitbase16_pretrain.pth" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_without_a_repository_is_exit_code_1(weights: Path) -> None:
    answer = _run("backbones", "fetch", "msn_vitb16")
    assert answer.exit_code == 1
    assert "no repository has the weights of msn_vitb16" in answer.stderr
    assert "unknown backbone" in _run("backbones", "fetch", "auto").stderr


def test_fetching_needs_a_folder() -> None:
    answer = _run("backbones", "fetch", "dino_vitb16")
    assert answer.exit_code == 2
    assert "TEMI_WEIGHTS_DIR is not set" in answer.stderr


def test_the_doctor_tells_how_to_get_a_better_one(weights: Path) -> None:
    chosen, best, of_paper = _doctor()

    assert chosen["found"] == (
        "auto chooses efficientnet_lite0 (installed with the service): not in TEMI's paper; "
        "a supervised ResNet-50: ACC 49.8 % on CIFAR-100, 72.6 % on ImageNet in TEMI's paper"
    )
    assert (best["found"], best["hint"]) == (
        "dinov3_vitb16: not in TEMI's paper",
        "temi backbones fetch dinov3_vitb16",
    )
    assert (of_paper["found"], of_paper["hint"]) == (
        "dino_vitb16: ACC 67.1 % on CIFAR-100, 58.4 % on ImageNet in TEMI's paper",
        "temi backbones fetch dino_vitb16",
    )
    assert all(check["ok"] for check in (chosen, best, of_paper))


def test_the_doctor_names_the_folder_to_set() -> None:
    hints = {check["hint"] for check in _doctor()[1:]}
    assert "export TEMI_WEIGHTS_DIR=$PWD/weights; temi backbones fetch dino_vitb16" in hints


def test_the_doctor_with_the_best_one(weights: Path) -> None:
    (weights / "dinov3_vitb16.safetensors").touch()
    (chosen,) = _doctor()
    assert chosen["found"].startswith("auto chooses dinov3_vitb16 (dinov3_vitb16.safetensors in")


def test_the_doctor_without_any_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, embedded in EMBEDDED_BACKBONES.items():
        missing = replace(embedded, package="no_such_package")
        monkeypatch.setitem(EMBEDDED_BACKBONES, name, missing)
    (chosen,) = _doctor()
    assert not chosen["ok"]
    assert "no weights of any backbone" in chosen["found"]
