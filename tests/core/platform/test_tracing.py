"""Tracing: not imported if off; an error says what to install if packages are missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.platform import tracing
from app.core.platform.settings import Settings
from tests.conftest import MakeSettings

_WITHOUT_PACKAGES = """
import sys
sys.modules["opentelemetry"] = None  # as if it were not installed
from app.cli.main import main
sys.argv = ["temi", *sys.argv[1:]]
main()
"""
_OFF = """
import sys
import worker.main
from app.main import create_app
from fastapi.testclient import TestClient
with TestClient(create_app(), base_url="http://localhost") as client:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    answer = client.get("/v1/datasets", headers={"traceparent": trace})
    assert answer.status_code == 200 and "traceparent" not in answer.headers
ours = ("opentelemetry.sdk.trace", "opentelemetry.exporter")  # Redis' client takes the API itself
print([name for name in sys.modules if name.startswith(ours)])
"""


def _python(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )


def test_without_tracing_nothing_is_imported(settings: Settings) -> None:
    done = _python(_OFF, TEMI_DATA_DIR=str(settings.data_dir))
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


@pytest.mark.parametrize("command", ["serve", "api", "worker"])
def test_tracing_without_the_packages_says_what_to_install(command: str, tmp_path: Path) -> None:
    done = _python(_WITHOUT_PACKAGES, command, TEMI_DATA_DIR=str(tmp_path), TEMI_TRACING="otlp")
    assert done.returncode == 2
    assert "pip install temi-service[tracing]" in " ".join(done.stderr.split())


def test_without_tracing_a_span_does_nothing() -> None:
    with tracing.span("predict.queue", images=3) as span:
        assert span is None
        assert tracing.traceparent() is None


def test_spans_on_the_console(
    make_settings: MakeSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    tracing.start_tracing(make_settings(tracing="console"), "api")
    try:
        with tracing.span("predict.queue", images=3, model=None) as outer:
            assert outer is not None
            trace_id = tracing.trace_id_of(tracing.traceparent())
            with tracing.span("predict.forward"):
                assert tracing.trace_id_of(tracing.traceparent()) == trace_id
    finally:
        tracing.stop_tracing()
    shown = capsys.readouterr().out
    assert '"name": "predict.queue"' in shown
    assert '"images": 3' in shown
    assert shown.count(f'"trace_id": "0x{trace_id}"') == 2
