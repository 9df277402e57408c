"""A backbone whose weights are missing is refused before a job is added."""

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from app.core.models import hub
from app.core.models.backbones import check_usable_backbone
from app.core.platform.errors import InvalidRequest
from tests.conftest import MakeSettings

_HOSTED = "dino_vitb16"
_REPOSITORY = "models--timm--vit_base_patch16_224.dino"


@pytest.fixture(autouse=True)
def no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's address refuses connections, and nothing is cached."""
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub, "_known", None)


def test_missing_weights_are_refused(make_settings: MakeSettings, tmp_path: Path) -> None:
    settings = make_settings(weights_dir=tmp_path)
    with pytest.raises(InvalidRequest) as caught:
        check_usable_backbone(_HOSTED, settings)
    detail = caught.value.detail
    assert [error.field for error in caught.value.errors] == ["backbone"]
    for part in (_HOSTED, f"TEMI_WEIGHTS_DIR ({tmp_path})", "hub", "http://127.0.0.1:9"):
        assert part in detail
    assert f"put it into {tmp_path} as dino_vitb16.pth" in detail


def test_the_embedded_weights_need_no_network(make_settings: MakeSettings) -> None:
    check_usable_backbone("efficientnet_lite0", make_settings())


def test_weights_in_the_folder_are_accepted(make_settings: MakeSettings, tmp_path: Path) -> None:
    (tmp_path / "dino_vitb16.pth").write_bytes(b"weights")
    check_usable_backbone(_HOSTED, make_settings(weights_dir=tmp_path))


def test_weights_in_the_cache_are_accepted(make_settings: MakeSettings, tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / _REPOSITORY / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    with pytest.raises(InvalidRequest):
        check_usable_backbone(_HOSTED, make_settings())
    (snapshot / "model.safetensors").write_bytes(b"weights")
    check_usable_backbone(_HOSTED, make_settings())


def test_weights_that_can_be_downloaded_are_accepted(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:  # responds with 501
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        check_usable_backbone(_HOSTED, make_settings())
        thread.join()


def test_workers_on_other_machines_may_have_the_weights(make_settings: MakeSettings) -> None:
    check_usable_backbone(_HOSTED, make_settings(broker_url="redis://127.0.0.1:1/0"))


def test_names_of_libraries_are_checked_without_torch() -> None:
    script = (
        "import sys; from temi.backbones.catalog import check_backbone\n"
        "from temi.errors import UnknownBackbone\n"
        "check_backbone('timm:resnet18'); check_backbone('timm:resnet50.a1_in1k')\n"
        "check_backbone('open_clip:ViT-B-32/openai')\n"
        "try: check_backbone('timm:no_such_model')\n"
        "except UnknownBackbone: print(sorted({'torch', 'timm', 'open_clip'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
