"""Help texts, options that all commands share, and options before the command."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from app.cli import app

# Commands that do not connect to a service.
_LOCAL = {
    *("api", "backbones", "backup", "bench", "db", "demo", "doctor", "gc", "keys", "restore"),
    *("serve", "worker"),
}
# Commands that save a file, delete something, or print lines.
_WITHOUT_JSON = {
    "cluster",
    "contact-sheet",
    "delete",
    "delete-all",
    "download",
    "labels",
    "map",
    "plot",
}
_WITHOUT_JSON |= {"export", "thumbnail", "unalias"}


def commands(group: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, command in getattr(group, "commands", {}).items():
        if getattr(command, "commands", None):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def _options(command: Any) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


ROOT = typer.main.get_command(app)
COMMANDS = dict(commands(ROOT))


def test_all_commands_are_found() -> None:
    assert len(COMMANDS) >= 60


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_is_short(path: tuple[str, ...]) -> None:
    help_text = str(getattr(COMMANDS[path], "help", ""))
    assert help_text.endswith(".")
    assert len(help_text) < 120
    answer = CliRunner().invoke(app, [*path, "--help"])
    assert answer.exit_code == 0
    assert "Usage" in answer.output


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_shared_options(path: tuple[str, ...]) -> None:
    options = _options(COMMANDS[path])
    assert not {"--server", "--api-key"} & options
    if path[0] in _LOCAL:
        return
    saves_or_removes = path[-1] in _WITHOUT_JSON and path[:2] != ("jobs", "start")
    assert "--json" in options or saves_or_removes
    assert ("--yes" in options) == path[-1].startswith("delete")


def test_connection_options_come_before_the_command() -> None:
    assert {"--server", "--api-key"} <= _options(ROOT)
    assert "before the command" in CliRunner().invoke(app, ["--help"]).output
    after = CliRunner().invoke(app, ["datasets", "list", "--server", "http://127.0.0.1:9"])
    assert after.exit_code == 2
    assert "No such option" in after.stderr


def test_a_server_that_is_no_url_is_exit_code_2() -> None:
    answer = CliRunner().invoke(app, ["--server", "http://x:port", "models"])
    assert answer.exit_code == 2
    assert "is not a URL" in answer.stderr


def test_version_comes_from_the_package_metadata() -> None:
    answer = CliRunner().invoke(app, ["--version"])
    assert (answer.exit_code, answer.stdout) == (0, f"temi {version('temi-service')}\n")


@pytest.mark.parametrize(
    "words",
    [
        ["datasets", "create", __file__],
        ["datasets", "labels", "ds_1"],
        ["uploads", "send", __file__],
        ["images", "show", "img_1"],
        ["jobs", "start", "map", "ds_1"],
        ["clusterings", "undo", "cl_1", "--revision", "1"],
        ["exports", "download", "exp_1"],
        ["exports", "create", "cl_1", "-f", "csv"],
    ],
)
def test_no_service_is_exit_code_3_at_once(words: list[str]) -> None:
    answer = CliRunner().invoke(app, words, env={"TEMI_SERVER": "http://127.0.0.1:9"})
    assert answer.exit_code == 3
    assert "temi serve" in answer.stderr
