"""The snippets of the page on exports run as they stand, on files that an export job made."""

import hashlib
import re
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.exports.formats import FORMATS
from app.core.jobs.lifecycle import claim
from app.core.jobs.requests.export import ExportCreate
from app.core.platform.settings import Settings
from app.core.platform.tables import Clustering, Job
from app.core.runtime import Runtime
from app.core.storage.keys import blob_key
from tests.client.live import running_live
from tests.core.labeled_rows import State, add_images, store_history
from tests.images import png_bytes
from worker.context import JobContext
from worker.jobs.export import run_export

PAGE = Path(__file__).parents[2] / "docs" / "exports.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
CLUSTERS = {0: ("cats", True), 1: ("dogs", True)}


@pytest.fixture
def clustering(runtime: Runtime) -> Clustering:
    data = [png_bytes(color) for color in ("red", "green", "blue", "white")]
    hashes = [hashlib.sha256(item).hexdigest() for item in data]
    for sha256, item in zip(hashes, data, strict=True):
        runtime.storage.write(blob_key(sha256), item)
    size = {"bytes": [len(item) for item in data], "width": 16, "height": 12}
    dataset = add_images(runtime, 4, sha256=hashes, **size)
    states = [State((0, 1, 1, 1), CLUSTERS), State((0, 1, 0, 1), CLUSTERS)]
    return store_history(runtime, dataset.id, states)


@pytest.fixture
def folder(
    runtime: Runtime,
    clustering: Clustering,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """The current folder, with a file of every format."""
    target = tmp_path / "downloads"
    target.mkdir()
    for format_ in FORMATS:
        with runtime.db.write() as session:
            request = ExportCreate(kind="export", clustering_id=clustering.id, format=format_)
            job_id = request.create(session, "default").id
        with runtime.db.write() as session:
            job = claim(session, job_id, worker="test", lease_seconds=60)
        assert job is not None
        run_export(JobContext(runtime, job, job.fence, lambda _progress: None))
        with runtime.db.read() as session:
            assert session.get_one(Job, job_id).status == "succeeded"
        name = job.config["filename"]
        shutil.copy(runtime.storage.path(f"exports/{job_id}/{name}"), target / name)
    monkeypatch.chdir(target)
    return target


@pytest.fixture
def address(settings: Settings) -> Iterator[str]:
    with running_live(settings) as live:
        yield live.url


def snippet(*words: str) -> str:
    (found,) = [str(text) for text in SNIPPETS if all(word in text for word in words)]
    return found


def test_every_snippet_is_run_here() -> None:
    assert len(SNIPPETS) == 8


def test_the_stream(
    clustering: Clustering, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = snippet("httpx").replace("http://127.0.0.1:8000", address)
    exec(text, {"dataset_id": clustering.dataset_id})
    assert re.search(r"cats +0\.875", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("word", "printed"),
    [
        ("read_csv", ""),
        ("read_table", " 4\n"),
        ("json.load(file)", "image 3.png dogs 0.625\n"),
        ("CocoDetection", "4 [0, 0, 16, 12]\n"),
        ("tasks.json", "/content 1.0\n"),
        ("ImageFolder", "['cats', 'dogs'] 4\n"),
    ],
)
def test_files_are_read(
    folder: Path, word: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the libraries that read
        exec(snippet(word), {})
    assert capsys.readouterr().out.endswith(printed)


def test_hugging_face(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    exec(snippet("load_dataset"), {})
    assert capsys.readouterr().out == "['cats', 'dogs'] (16, 12)\n"
