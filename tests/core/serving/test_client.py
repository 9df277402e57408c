"""The prediction process starts on demand, and again after it died."""

import asyncio
from pathlib import Path

import pytest

from app.core.models.files import ModelFiles
from app.core.platform.errors import PredictorUnavailable, ServiceError
from app.core.platform.settings import Settings
from app.core.serving.client import Serving

_MODEL = ModelFiles(
    folder="models/none",
    hashes=(("model.safetensors", "0" * 64),),
    backbone="none",
    precision="float32",
    weights_sha256="0" * 64,
    temperature=0.1,
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(_env_file=None, data_dir=tmp_path)


def test_a_process_that_cannot_start_fails_the_request(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = Serving(settings)

    def no_more() -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(serving, "_start_process", no_more)
    with pytest.raises(PredictorUnavailable, match="cannot be started"):
        asyncio.run(serving.predict(_MODEL, [b""]))
    assert not serving._pending


def test_a_process_that_dies_repeatedly_fails_the_request(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pending message is sent at most twice."""
    monkeypatch.setattr("app.core.serving.client._RESTART_SECONDS", 0.01)
    serving = Serving(settings)
    started = []
    start = serving._start_process

    def start_and_kill() -> object:
        process, connection = start()
        process.kill()
        started.append(process)
        return process, connection

    monkeypatch.setattr(serving, "_start_process", start_and_kill)
    with pytest.raises(PredictorUnavailable, match="died"):
        asyncio.run(serving.predict(_MODEL, [b""]))
    assert len(started) == 2


def test_a_load_error_reaches_all_requests(settings: Settings) -> None:
    serving = Serving(settings)

    async def ask() -> list[object]:
        try:
            return await asyncio.gather(
                *(serving.predict(_MODEL, [b""]) for _ in range(3)),
                asyncio.shield(serving.load(_MODEL)),
                return_exceptions=True,
            )
        finally:
            serving.close()

    answers = asyncio.run(ask())
    assert len(answers) == 4
    assert all(isinstance(answer, ServiceError) for answer in answers)
