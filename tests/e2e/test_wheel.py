"""The wheel has all that the service needs: installed alone, it serves the page and the API."""

import os
import re
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.built_page import build_page
from tests.servers import free_port
from tests.waiting import LONG_SECONDS, end, wait_until

ROOT = Path(__file__).parents[2]
_SOURCES = ("app", "migrations", "temi", "temi_client", "worker")
_FILES = ("LICENSE", "README.md", "pyproject.toml")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, because setuptools writes into the folder of the sources."""
    build_page()
    folder = tmp_path_factory.mktemp("wheel")
    for name in _SOURCES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / "sources" / name, ignore=ignored)
    for name in _FILES:
        shutil.copy(ROOT / name, folder / "sources" / name)
    build = ["wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir"]
    _pip(*build, str(folder), str(folder / "sources"))
    (found,) = folder.glob("temi_service-*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path) -> Path:
    """An environment with the wheel alone; other packages are those of this one."""
    folder = wheel.parent / "venv"
    venv.create(folder, with_pip=False)
    _pip("--python", str(folder / "bin" / "python"), "install", "--no-deps", "--no-index", wheel)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()))
    return folder


def _pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_wheel_has_the_data_files_and_no_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("app/static", "migrations"):
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file()]
        expected = {path.relative_to(ROOT).as_posix() for path in files if path.suffix != ".pyc"}
        assert expected <= names
    assert {name.split("/")[0] for name in names if "dist-info" not in name} == set(_SOURCES)


def test_the_service_runs_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    port = free_port()
    variables = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    variables |= {"TEMI_DATA_DIR": str(tmp_path / "data"), "TEMI_TORCH_THREADS": "1"}
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            [environment / "bin" / "temi", "serve", "--port", str(port)],
            cwd=tmp_path,
            env=variables,
            stdout=log,
            stderr=subprocess.STDOUT,
        ) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=LONG_SECONDS) as client,
    ):
        try:
            wait_until(lambda: process.poll() is not None or _is_ready(client))
            assert process.poll() is None, (tmp_path / "log").read_text()
            page = (ROOT / "app" / "static" / "index.html").read_text(encoding="utf-8")
            assert client.get("/").text == page
            (script,) = re.findall(r'src="./(assets/[^"]+[.]js)"', page)
            assert client.get(f"/{script}").status_code == 200
            assert "swagger" in client.get("/docs").text.lower()
            assert client.get("/v1/datasets").json()["data"] == []  # the tables exist
        finally:
            end(process)
    modules = subprocess.run(
        [environment / "bin" / "python", "-c", "import app, worker; print(app.__file__)"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
    )
    assert modules.stdout.startswith(str(environment)), modules.stderr


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False
