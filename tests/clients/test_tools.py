"""Linters, and generators that need npm or Java. `make clients` installs and runs them."""

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from app.core.platform.settings import Settings
from app.main import create_app
from tests.client.live import Live
from tests.images import jpeg_bytes

_TYPESCRIPT = Path(__file__).parent / "typescript"
_LABELS = ("cluster 0", "cluster 1", "cluster 2")
# Calls the service with the client of OpenAPI Generator.
_CALLS = """
import json, sys
from pkgutil import walk_packages
from importlib import import_module
import openapi_client as generated

for module in walk_packages(generated.__path__, "openapi_client."):
    import_module(module.name)
url, image = sys.argv[1:]
with generated.ApiClient(generated.Configuration(host=url)) as client:
    datasets, jobs = generated.DatasetsApi(client), generated.JobsApi(client)
    models = generated.ModelsApi(client)
    dataset = datasets.list_datasets(limit=10).data[0]
    body = generated.ClusterCreate(kind="cluster", dataset_id=dataset.id, n_clusters=2)
    job = jobs.create_job(generated.JobCreate(body))
    status = jobs.cancel_job(job.id).status
    answer = models.predict(
        "cats-dogs",
        [("new.jpg", open(image, "rb").read())],
        _content_type="multipart/form-data",  # it would choose JSON
    )
    try:
        jobs.read_job("job_1")
    except generated.ApiException as error:
        code = json.loads(error.body)["code"]
print(json.dumps({"images": dataset.image_count, "kind": job.kind, "status": status,
                  "label": answer.data[0].label, "code": code}))
"""
Npm = Callable[..., Path]


def _run(command: Sequence[object], cwd: Path | None = None) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(autouse=True)
def _only_with_tools(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--install-tools", default=False):
        pytest.skip("needs npm or Java and a network: make clients")


@pytest.fixture
def document(tmp_path: Path) -> Path:
    settings = Settings(_env_file=None, data_dir=tmp_path / "data")
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(create_app(settings).openapi()))
    return file


@pytest.fixture
def npm(tmp_path: Path) -> Npm:
    """Installs packages into a folder of the test; returns the folder of their commands."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path / "npm"

    def install(*packages: str) -> Path:
        folder.mkdir()
        (folder / "package.json").write_text("{}")
        _run(["npm", "install", "--silent", "--no-audit", "--no-fund", *packages], cwd=folder)
        return folder / "node_modules" / ".bin"

    return install


def test_spectral_finds_nothing(npm: Npm, document: Path) -> None:
    commands = npm("@stoplight/spectral-cli")
    rules = document.with_name("spectral.yaml")
    rules.write_text('extends: ["spectral:oas"]\n')
    _run([commands / "spectral", "lint", "--ruleset", rules, "--fail-severity", "hint", document])


def test_redocly_finds_nothing(npm: Npm, document: Path) -> None:
    commands = npm("@redocly/cli")
    rules = document.with_name("redocly.yaml")
    rules.write_text("extends:\n  - recommended\ntelemetry: off\n")
    output = _run([commands / "redocly", "lint", "--config", rules, "--format", "json", document])
    totals = json.loads(output)["totals"]
    assert (totals["errors"], totals["warnings"]) == (0, 0)


def test_openapi_typescript(npm: Npm, document: Path, live: Live) -> None:
    commands = npm("openapi-typescript@7", "openapi-fetch", "typescript@5", "@types/node@20")
    folder = commands.parents[1]
    shutil.copy(_TYPESCRIPT / "calls.ts", folder)
    # Otherwise a request has to contain all fields that have a default.
    generate = [commands / "openapi-typescript", "--default-non-nullable", "false", document]
    _run([*generate, "--output", folder / "api.d.ts"])
    options = ["--strict", "--target", "es2022", "--module", "nodenext", "--outDir", "built"]
    _run([commands / "tsc", *options, "calls.ts"], cwd=folder)
    picture = base64.b64encode(jpeg_bytes()).decode()
    _check(_run(["node", "built/calls.js", live.url, picture], cwd=folder))


def test_openapi_generator(document: Path, live: Live, tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    tool, made = tmp_path / "tool", tmp_path / "made"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tool]
    _run([*install, "openapi-generator-cli"])
    (jar,) = tool.rglob("openapi-generator.jar")
    _run(["java", "-jar", jar, "generate", "-i", document, "-g", "python", "-o", made])
    picture = tmp_path / "new.jpg"
    picture.write_bytes(jpeg_bytes())
    _check(_run([sys.executable, "-c", _CALLS, live.url, picture], cwd=made))


def _check(output: str) -> None:
    found = json.loads(output)
    assert found.pop("label") in _LABELS
    assert found == {
        "images": 4,
        "kind": "cluster",
        "status": "cancelled",
        "code": "not_found",
    }
