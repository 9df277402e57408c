"""What the command imports, and how it ends."""

import json
import os
import subprocess
import sys

import pytest

from tests.cli.test_help import COMMANDS
from tests.client.live import Live

_HEAVY = ("torch", "sqlalchemy", "fastapi", "numpy", "PIL", "sklearn", "celery")
_CHECK = """
import sys
from app.cli.main import main
sys.argv = ["temi", *{words}]
try:
    main()
except SystemExit:
    pass
print("\\nloaded", [name for name in {names} if name in sys.modules])
"""


def _loaded(words: list[str], names: tuple[str, ...]) -> str:
    code = _CHECK.format(words=words, names=names)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_help_loads_no_command() -> None:
    light = (*_HEAVY, "temi_client", "httpx", "pydantic", "app.cli.datasets", "app.core")
    assert _loaded(["--help"], light) == "loaded []"


@pytest.mark.parametrize(
    "words",
    [
        ["datasets", "list"],
        ["datasets", "create", __file__],
        ["jobs", "start", "cluster", "ds_1", "--clusters", "2", "--wait"],
        ["clusterings", "rename", "cl_1", "0", "cats", "--revision", "1"],
        ["exports", "create", "cl_1", "--format", "csv"],
        ["cluster", ".", "--clusters", "2"],
        ["predict", "pets", __file__],
        ["models"],
        ["images", "show", "img_1"],
        ["workers", "list"],
        ["audit"],
    ],
)
def test_remote_commands_load_nothing_of_the_service(words: list[str]) -> None:
    assert _loaded(["--server", "127.0.0.1:9", *words], _HEAVY) == "loaded []"


def test_the_list_of_commands_shows_the_help_of_each() -> None:
    from app.cli import COMMANDS as ENTRIES
    from tests.cli.test_help import ROOT

    assert set(ROOT.commands) == {path[0] for path in COMMANDS}  # type: ignore[attr-defined]
    for name, entry in ENTRIES.items():
        assert ROOT.commands[name].help == entry.help  # type: ignore[attr-defined]


def test_a_server_without_a_scheme(live: Live) -> None:
    words = ["--server", live.url.removeprefix("http://"), "datasets", "list", "--json"]
    command = [sys.executable, "-m", "app.cli.main", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[0]["name"] == "Cats & Dogs"


@pytest.mark.parametrize("words", ["--help", "datasets list", "datasets list --json"])
def test_output_that_is_no_longer_read_ends_the_command_silently(live: Live, words: str) -> None:
    """As `temi ... | head` does; the pipe is closed before the command writes."""
    command = [sys.executable, "-m", "app.cli.main", "--server", live.url, *words.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_an_invalid_setting_is_named_with_its_value_unless_it_is_a_secret() -> None:
    wrong = {"TEMI_WORKER_TAKES": "tpu", "TEMI_API_KEY": "too-short"}
    done = subprocess.run(
        [sys.executable, "-m", "app.cli.main", "worker"],
        env={**os.environ, **wrong},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "TEMI_WORKER_TAKES is 'tpu': must be some of cpu, gpu" in done.stderr
    assert "TEMI_API_KEY: must have at least 16 characters" in done.stderr
    assert "too-short" not in done.stderr
    assert "Traceback" not in done.stderr
