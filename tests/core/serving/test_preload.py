"""A new API process loads the models in use before it is ready."""

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from app.core.platform.clock import db_now
from app.core.platform.tables import ModelVersion
from app.core.runtime import Runtime
from tests.api.conftest import Json
from tests.conftest import MakeClient
from tests.images import png_bytes
from tests.waiting import wait_until

_IMAGE = {"files": ("a.png", png_bytes("red"))}


@pytest.fixture
def runtime(trained: Json) -> Runtime:
    found: Runtime = trained["runtime"]
    return found


@pytest.fixture
def start_another(make_client: MakeClient, runtime: Runtime) -> Callable[[], TestClient]:
    return lambda: make_client(runtime.settings)


def _served_at(runtime: Runtime) -> float | None:
    with runtime.db.read() as session:
        return session.scalar(select(ModelVersion.served_at))


def _set_served(runtime: Runtime, seconds_ago: float) -> None:
    with runtime.db.write() as session:
        session.execute(update(ModelVersion).values(served_at=db_now() - seconds_ago))


def _loaded(api: TestClient) -> list[str]:
    return [loaded["model"]["name"] for loaded in api.get("/v1/serving").json()["data"]]


def test_a_prediction_records_the_version_as_served(trained: Json, runtime: Runtime) -> None:
    assert _served_at(runtime) is None
    answer = trained["client"].post("/v1/models/colors:predict", files=_IMAGE)
    assert answer.status_code == 200
    wait_until(lambda: _served_at(runtime))


def test_a_new_process_is_ready_after_loading_the_models_in_use(
    runtime: Runtime, start_another: Callable[[], TestClient]
) -> None:
    _set_served(runtime, 60.0)
    api = start_another()
    first = api.get("/readyz")
    assert first.status_code == 503
    assert first.json()["checks"]["models"]["detail"] == "loading colors/versions/1"
    wait_until(lambda: api.get("/readyz").json()["ready"])
    assert _loaded(api) == ["colors"]
    process = api.app.state.serving._running.process  # type: ignore[attr-defined]
    assert api.post("/v1/models/colors:predict", files=_IMAGE).status_code == 200
    assert api.app.state.serving._running.process is process  # type: ignore[attr-defined]


def test_models_that_are_not_in_use_are_not_loaded(
    runtime: Runtime, start_another: Callable[[], TestClient]
) -> None:
    _set_served(runtime, runtime.settings.predict_idle_seconds + 60)
    api = start_another()
    assert api.get("/readyz").json()["ready"]
    assert _loaded(api) == []


def test_a_damaged_model_does_not_block_readiness(
    runtime: Runtime, start_another: Callable[[], TestClient]
) -> None:
    _set_served(runtime, 60.0)
    with runtime.db.read() as session:
        folder = session.scalars(select(ModelVersion.folder)).one()
    path = runtime.storage.path(f"{folder}/model.safetensors")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    try:
        api = start_another()
        wait_until(lambda: api.get("/readyz").json()["ready"])
        answer = api.post("/v1/models/colors:predict", files=_IMAGE)
        assert answer.json()["code"] == "model_integrity"
    finally:
        path.write_bytes(whole)
