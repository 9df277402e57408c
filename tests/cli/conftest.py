"""Commands against the real API."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from tests.client.live import Live, collection, live

__all__ = ["collection", "live"]

Temi = Callable[..., Result]
# Wide, so that tables are not folded.
_ENVIRONMENT = {"COLUMNS": "300", "TEMI_API_KEY": ""}


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of what the command remembers; of the test, not of the developer."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture
def temi(live: Live, monkeypatch: pytest.MonkeyPatch) -> Temi:
    """Run a command against the service; by default it must succeed."""
    monkeypatch.setattr("app.cli.output.results._width", 300)

    def run(*words: object, exit_code: int = 0, **options: Any) -> Result:
        environment = {**_ENVIRONMENT, "TEMI_SERVER": live.url}
        answer = CliRunner().invoke(app, [str(w) for w in words], env=environment, **options)
        assert answer.exit_code == exit_code, answer.output
        return answer

    return run


def as_json(answer: Result) -> Any:
    return json.loads(answer.stdout)
