"""The Dockerfile names what exists, and its two targets differ in what they should."""

import re
import subprocess
import tomllib
from pathlib import Path

from app.core.platform.settings import Settings

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def test_copies_what_exists_and_is_let_through() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copies = re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
    assert len(copies) > 5
    for line in copies:
        for source in line.split()[:-1]:
            assert (ROOT / source).exists()
            top = source.split("/")[0]
            assert f"!{top}" in ignored or f"!{top}/" in ignored


def test_stages_are_built_on_stages() -> None:
    known: list[str] = []
    for base, name in re.findall(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.MULTILINE):
        assert base in ("${PYTHON_IMAGE}", "${NODE_IMAGE}") or base in known
        known.append(name)
    assert set(re.findall(r"--from=(\S+)", DOCKERFILE)) <= set(known)
    assert known[-1] == "cpu"  # what is built if nobody says


def test_the_page_is_built_in_the_image() -> None:
    """The context has no built page, which might be an old one."""
    assert "app/static/" in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "COPY --from=page /src/app/static app/static" in DOCKERFILE


def test_settings_exist_and_user_is_not_root() -> None:
    settings = {f"TEMI_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"TEMI_[A-Z_]+(?==)", DOCKERFILE)) <= settings
    assert re.search(r"^USER 10001$", DOCKERFILE, re.MULTILINE)


def test_the_image_without_a_gpu_has_the_smaller_faiss(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("\n".join(project["dependencies"]) + "\n")
    (command,) = re.findall(r"^RUN (sed .*requirements\.txt) \\$", DOCKERFILE, re.MULTILINE)

    subprocess.run(command, shell=True, check=True, cwd=tmp_path)

    changed = requirements.read_text().splitlines()
    assert [line for line in changed if line.startswith("faiss")] == ["faiss-cpu>=1.13"]
    assert len(changed) == len(project["dependencies"]) - 1
    pinned = (ROOT / "constraints.txt").read_text("utf-8")
    assert re.search(r"^faiss-cpu==", pinned, re.MULTILINE)
