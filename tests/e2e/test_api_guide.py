"""The examples of docs/api.md work as they stand, from top to bottom."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.core.platform.processes import kill_with_parent
from tests.waiting import LONG_SECONDS

GUIDE = Path(__file__).parents[2] / "docs" / "api.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def script(language: str) -> str:
    """Returns all code blocks of a language as one program."""
    blocks = [code for name, code in _BLOCK.findall(GUIDE.read_text("utf-8")) if name == language]
    assert blocks, f"the guide has no {language}"
    return "\n".join(blocks)


@pytest.fixture
def folder(tmp_path: Path, shapes_zip: Path, new_drawings: dict[str, Path]) -> Path:
    """A working folder with photos.zip and new.jpg."""
    (tmp_path / "photos.zip").symlink_to(shapes_zip)
    (tmp_path / "new.jpg").symlink_to(new_drawings["circle"])
    return tmp_path


def run(command: list[str], text: str, folder: Path, url: str) -> str:
    done = subprocess.run(
        command,
        input=text,
        cwd=folder,
        env={**os.environ, "TEMI_SERVER": url},
        capture_output=True,
        text=True,
        timeout=5 * LONG_SECONDS,  # a guide of many steps
        preexec_fn=kill_with_parent(),
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_with_curl(service: Any, folder: Path) -> None:
    said = run(["bash", "-euo", "pipefail", "-s"], script("bash"), folder, service.url)
    assert said.splitlines()[0] == "90"
    assert "image_id,name," in said
    assert (folder / "sheet.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder / "sizes.svg").read_bytes()
    assert (folder / "labels.parquet").read_bytes().startswith(b"PAR1")


def test_with_python(service: Any, folder: Path) -> None:
    said = run([sys.executable, "-"], script("python"), folder, service.url)
    assert "ready" in said
