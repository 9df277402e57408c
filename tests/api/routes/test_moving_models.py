"""Predictions stay correct while aliases move, versions are damaged and processes die."""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.core.models.versions import add_version
from app.core.platform.tables import ModelVersion
from app.core.runtime import Runtime
from app.core.serving import resolver as resolvers
from app.core.serving.client import Serving
from app.core.serving.resolver import ModelResolver
from tests.api.conftest import Json
from tests.images import png_bytes
from tests.waiting import join, wait_until

_URL = "/v1/models/colors@live:predict"
_IMAGE = {"files": ("a.png", png_bytes("red"))}


@pytest.fixture
def runtime(trained: Json) -> Runtime:
    found: Runtime = trained["runtime"]
    return found


@pytest.fixture
def client(trained: Json, runtime: Runtime) -> Iterator[TestClient]:
    """Adds a second version of the same model, with its own files."""
    client: TestClient = trained["client"]
    with runtime.db.write() as session:
        rows = session.scalars(select(ModelVersion).order_by(ModelVersion.version)).all()
        if len(rows) == 1:
            first, folder = rows[0], "models/second"
            blobs = runtime.settings.blob_dir
            shutil.copytree(blobs / first.folder, blobs / folder)
            add_version(
                session,
                tenant="default",
                name="colors",
                job_id=None,
                clustering_id=None,
                folder=folder,
                manifest=first.manifest,
                files=first.files,
            )
    _move(client, 1)
    assert _answered_by(client) == 1
    yield client
    runtime.storage.path("models/second/model.safetensors").write_bytes(
        runtime.storage.read(f"{_folder(runtime, 1)}/model.safetensors")
    )


def _folder(runtime: Runtime, version: int) -> str:
    with runtime.db.read() as session:
        query = select(ModelVersion.folder).where(ModelVersion.version == version)
        return session.scalars(query).one()


def _move(client: TestClient, version: int) -> None:
    answer = client.put("/v1/models/colors/aliases/live", json={"version": version})
    assert answer.status_code == 200, answer.text


def _answered_by(client: TestClient) -> int:
    answer = client.post(_URL, files=_IMAGE)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["model"]["version"])


def _damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_the_next_request_uses_the_moved_alias(client: TestClient) -> None:
    for version in (2, 1, 2):
        _move(client, version)
        assert _answered_by(client) == version
    assert client.post("/v1/models/colors/aliases/live:rollback").status_code == 200
    assert _answered_by(client) == 1


def test_rollback_under_load_fails_no_request(client: TestClient) -> None:
    seen: list[tuple[int, int]] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            answer = client.post(_URL, files=_IMAGE)
            seen.append((answer.status_code, answer.json().get("model", {}).get("version", 0)))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            enough = len(seen) + 4  # every thread has asked since
            _move(client, 2)
            assert client.post("/v1/models/colors/aliases/live:rollback").status_code == 200
            wait_until(lambda enough=enough: len(seen) >= enough, "requests are answered")  # type: ignore[misc]
        wait_until(lambda: {version for _, version in seen} >= {1, 2}, "both versions answer")
    finally:
        stop.set()
        join(*threads)
    assert {status for status, _ in seen} == {200}
    assert {version for _, version in seen} == {1, 2}
    assert len(seen) > 30


def test_an_alias_does_not_move_to_a_damaged_version(client: TestClient, runtime: Runtime) -> None:
    _forget_loaded(client)
    _damage(runtime.storage.path("models/second/model.safetensors"))
    answer = client.put("/v1/models/colors/aliases/live", json={"version": 2})
    assert (answer.status_code, answer.json()["code"]) == (503, "model_integrity")
    assert client.get("/v1/models/colors").json()["aliases"]["live"] == 1
    assert _answered_by(client) == 1
    answer = client.post("/v1/models/colors/versions/2:predict", files=_IMAGE)
    assert (answer.status_code, answer.json()["code"]) == (503, "model_integrity")
    assert _answered_by(client) == 1


def test_a_move_by_another_process_waits_until_the_version_is_loaded(
    client: TestClient, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The move is made in the database, as by another API process."""
    monkeypatch.setattr(resolvers, "_FRESH_SECONDS", 0.05)
    monkeypatch.setattr(resolvers, "_RETRY_SECONDS", 0.2)
    _damage(runtime.storage.path("models/second/model.safetensors"))
    _forget_loaded(client)
    assert _answered_by(client) == 1
    _set_alias_in_database(runtime, 2)
    until = time.monotonic() + 2
    while time.monotonic() < until:
        assert _answered_by(client) == 1  # the damaged one never takes over
        time.sleep(0.05)
    runtime.storage.path("models/second/model.safetensors").write_bytes(
        runtime.storage.read(f"{_folder(runtime, 1)}/model.safetensors")
    )
    wait_until(lambda: _answered_by(client) == 2)


def _forget_loaded(client: TestClient) -> None:
    """Kills the prediction process, so that no model is loaded."""
    serving: Serving = client.app.state.serving  # type: ignore[attr-defined]
    if serving._running is not None:
        serving._running.process.kill()
        serving._running.process.wait()
    wait_until(lambda: not serving.loaded())


def _set_alias_in_database(runtime: Runtime, version: int) -> None:
    from app.core.models.aliases import set_alias
    from app.core.models.versions import get_model

    with runtime.db.write() as session:
        model = get_model(session, "default", "colors")
        set_alias(session, model, "live", version, changed_by=None)


def test_the_resolver_cache_is_bounded(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setattr(resolvers, "_MAX_REFERENCES", 3)
    serving = Serving(runtime.settings)
    resolver = ModelResolver(runtime.db, serving)

    async def look() -> None:
        for reference in ("colors", "colors/versions/1", "colors@latest", "colors/versions/2"):
            await resolver.resolve("default", reference)

    asyncio.run(look())
    assert len(resolver._cache) == 3


def test_a_model_that_loads_slowly_gives_model_loading(client: TestClient) -> None:
    _forget_loaded(client)
    answer = client.post(_URL, files=_IMAGE, params={"deadline_seconds": 0.05})
    assert (answer.status_code, answer.json()["code"]) == (503, "model_loading")
    assert int(answer.headers["Retry-After"]) >= 1
    assert _answered_by(client) == 1


def test_loaded_models_are_listed(client: TestClient) -> None:
    _answered_by(client)
    loaded = client.get("/v1/serving").json()["data"]
    assert {"name": "colors", "version": 1} in [one["model"] for one in loaded]
    assert {one["backend"] for one in loaded} <= {"onnx", "torch"}
