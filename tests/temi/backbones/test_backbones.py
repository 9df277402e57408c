import zipfile
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from huggingface_hub import constants
from PIL import Image, ImageDraw
from safetensors.torch import save_file

from temi.backbones.base import Backbone
from temi.backbones.embedded import EMBEDDED_BACKBONES
from temi.backbones.load import load_backbone
from temi.backbones.weights import load_by_position, read_content, read_state
from temi.device import resolve_device
from temi.errors import InvalidConfig, UnknownBackbone, WeightsUnavailable

TINY = "test_vit"


@pytest.fixture(scope="module")
def embedded() -> Backbone:
    return load_backbone("efficientnet_lite0", device="cpu")


def tiny_state(num_classes: int = 0, seed: int = 0) -> dict[str, torch.Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = timm.create_model(TINY, pretrained=False, num_classes=num_classes)
    return dict(model.state_dict())


def picture() -> Image.Image:
    return Image.linear_gradient("L").convert("RGB")


def test_embedded_features(embedded: Backbone) -> None:
    batch = torch.stack([embedded.preprocess(picture()), embedded.preprocess(picture().rotate(90))])

    features = embedded.forward(batch)

    assert features.shape == (2, 1280)
    assert features.dtype == torch.float32
    assert embedded.dim == 1280
    assert not torch.allclose(features[0], features[1])
    assert len(embedded.weights_hash) == 64


def test_embedded_features_do_not_depend_on_the_batch(embedded: Backbone) -> None:
    one, two = embedded.preprocess(picture()), embedded.preprocess(picture().rotate(90))

    together = embedded.forward(torch.stack([one, two]))

    torch.testing.assert_close(embedded.forward(two[None])[0], together[1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", EMBEDDED_BACKBONES)
def test_embedded_weights_are_loaded_into_the_right_layers(name: str) -> None:
    package = EMBEDDED_BACKBONES[name]
    model_file = getattr(import_module(package.package), package.file_class)
    given = read_state(Path(model_file.get_model_file_path()))
    own = load_backbone(name, device="cpu").module.state_dict()

    assert torch.equal(own["conv_stem.weight"], given["_conv_stem.weight"])
    assert torch.equal(own["blocks.1.0.conv_pwl.weight"], given["_blocks.1._project_conv.weight"])
    assert torch.equal(own["conv_head.weight"], given["_conv_head.weight"])
    assert torch.equal(own["bn2.running_var"], given["_bn1.running_var"])


def test_the_larger_embedded_backbone() -> None:
    backbone = load_backbone("efficientnet_lite2", device="cpu")

    features = backbone.forward(backbone.preprocess(picture())[None])

    assert (backbone.name, backbone.dim, features.shape) == ("efficientnet_lite2", 1280, (1, 1280))
    assert backbone.preprocessing.as_dict() == {
        "size": 260,
        "resize": 260,
        "interpolation": "bicubic",
        "mean": [127.0] * 3,
        "std": [128.0] * 3,
    }


@pytest.mark.parametrize("name", EMBEDDED_BACKBONES)
def test_embedded_weights_classify_imagenet(name: str) -> None:
    """A network with a tensor in a wrong place would not recognize anything."""
    package = EMBEDDED_BACKBONES[name]
    model_file = getattr(import_module(package.package), package.file_class)
    path = Path(model_file.get_model_file_path())
    model = timm.create_model(package.model, pretrained=False).eval()
    load_by_position(model, read_state(path), origin=path.name)
    disk = Image.new("RGB", (300, 300), "white")
    ImageDraw.Draw(disk).ellipse((50, 50, 250, 250), fill="orange")

    with torch.no_grad():
        batch = load_backbone(name, device="cpu").preprocess(disk)[None]
        logits = model(batch)[0]

    assert logits.argmax() == 722  # a ping-pong ball


def test_positions_are_checked() -> None:
    state = list(tiny_state().items())
    swapped = dict([state[1], state[0], *state[2:]])
    model = timm.create_model(TINY, pretrained=False, num_classes=0)

    with pytest.raises(WeightsUnavailable, match="expected"):
        load_by_position(model, swapped, origin="swapped")
    with pytest.raises(WeightsUnavailable, match="tensors"):
        load_by_position(model, dict(state[1:]), origin="short")


@pytest.mark.parametrize("kind", ["pth", "wrapped", "safetensors", "classifier", "folder"])
def test_timm_from_a_local_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / (f"{TINY}.pth" if kind == "folder" else "mine.pth")
    state = tiny_state(10 if kind == "classifier" else 0)
    if kind == "safetensors":
        path = tmp_path / "mine.safetensors"
        save_file(state, path)
    elif kind == "wrapped":
        torch.save({"state_dict": {f"module.{k}": v for k, v in state.items()}, "epoch": 3}, path)
    else:
        torch.save(state, path)
    name = f"timm:{TINY}" if kind == "folder" else f"timm:{TINY}@{path}"

    backbone = load_backbone(name, weights_dir=tmp_path, device="cpu")

    model = timm.create_model(TINY, pretrained=False, num_classes=0).eval()
    model.load_state_dict(tiny_state(), strict=True)
    batch = backbone.preprocess(picture())[None]
    if kind != "classifier":
        torch.testing.assert_close(backbone.forward(batch), model(batch).detach())
    assert backbone.dim == backbone.forward(batch).shape[1]


def test_the_hash_depends_on_the_weights_and_not_on_the_file(tmp_path: Path) -> None:
    torch.save(tiny_state(), tmp_path / "a.pth")
    save_file(tiny_state(), tmp_path / "b.safetensors")
    torch.save(tiny_state(seed=1), tmp_path / "c.pth")

    first, second, other = (
        load_backbone(f"timm:{TINY}@{tmp_path / name}", device="cpu").weights_hash
        for name in ("a.pth", "b.safetensors", "c.pth")
    )

    assert first == second
    assert first != other


def test_invalid_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.pth").write_text("not weights")
    (tmp_path / "text.safetensors").write_text("not weights")
    torch.save({"a": torch.zeros(1)}, tmp_path / "other.pth")
    torch.save(
        {"cls_token": torch.zeros(1)} | tiny_state() | {"norm.weight": torch.zeros(3)},
        tmp_path / "shape.pth",
    )
    torch.save([1, 2], tmp_path / "list.pth")
    torch.save(timm.create_model(TINY), tmp_path / "pickled.pth")

    reasons = {
        "text.pth": "not a readable",
        "text.safetensors": "not a readable",
        "other.pth": "missing",
        "shape.pth": "has shape",
        "list.pth": "contains no weights",
        "pickled.pth": "not a readable",
        "gone.pth": "no weights file",
    }
    for name, reason in reasons.items():
        with pytest.raises(WeightsUnavailable, match=reason):
            load_backbone(f"timm:{TINY}@{tmp_path / name}")


class Bomb:
    """Creates a file if it is unpickled unsafely."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("place", ["alone", "in the weights", "in the arguments"])
def test_pickled_code_is_never_executed(place: str, tmp_path: Path) -> None:
    bomb = Bomb(tmp_path / "exploded")
    contents: dict[str, Any] = {
        "alone": bomb,
        "in the weights": tiny_state() | {"bomb": bomb},
        "in the arguments": {"model": tiny_state(), "args": Namespace(bomb=bomb)},
    }
    torch.save(contents[place], tmp_path / "bomb.pth")

    with pytest.raises(WeightsUnavailable, match=r"it contains a Python object, (io\.)?open$"):
        load_backbone(f"timm:{TINY}@{tmp_path / 'bomb.pth'}", device="cpu")
    assert not (tmp_path / "exploded").exists()


def test_other_objects_in_training_checkpoints_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "full.pth"
    torch.save({"model": tiny_state(), "args": Namespace(lr=1), "lr": np.float64(0.1)}, path)

    content = read_content(path)

    assert vars(content["args"]) == {}
    assert not isinstance(content["lr"], float)
    assert load_backbone(f"timm:{TINY}@{path}", device="cpu").dim == 64


def test_torchscript_programs_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "program.pt", "w") as archive:
        archive.writestr("program/constants.pkl", b"")

    with pytest.raises(WeightsUnavailable, match="TorchScript"):
        read_content(tmp_path / "program.pt")


def test_open_clip_from_a_local_file(tmp_path: Path) -> None:
    import open_clip

    model = open_clip.create_model("ViT-S-32-alt")
    torch.save(model.state_dict(), tmp_path / "ViT-S-32-alt-mine.pth")

    backbone = load_backbone("open_clip:ViT-S-32-alt/mine", weights_dir=tmp_path, device="cpu")

    batch = backbone.preprocess(picture())[None]
    with torch.no_grad():
        expected = model.eval().encode_image(batch)
    torch.testing.assert_close(backbone.forward(batch), expected)
    assert backbone.dim == 256
    torch.save({"visual.x": torch.zeros(1)}, tmp_path / "bad.pth")
    with pytest.raises(WeightsUnavailable, match="does not fit"):
        load_backbone(f"open_clip:ViT-S-32-alt@{tmp_path / 'bad.pth'}", device="cpu")


def test_the_error_of_a_failed_download_tells_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))

    with pytest.raises(WeightsUnavailable, match=rf"{tmp_path} as {TINY}\.safetensors"):
        load_backbone(f"timm:{TINY}", weights_dir=tmp_path)


def test_unknown_names() -> None:
    with pytest.raises(UnknownBackbone):
        load_backbone("timm:no_such_model")


def test_devices() -> None:
    assert resolve_device("cpu") == torch.device("cpu")
    assert resolve_device("auto").type in ("cpu", "cuda")
    with pytest.raises(InvalidConfig):
        resolve_device("abacus")
    if not torch.cuda.is_available():
        with pytest.raises(InvalidConfig, match="no usable GPU"):
            resolve_device("cuda")
