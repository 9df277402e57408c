"""Every command says what it does, and takes the same options as the others."""

from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from app.cli import app

# They run here, without a service or with one of their own.
_LOCAL = {
    *("api", "backbones", "backup", "bench", "db", "demo", "doctor", "gc", "keys", "restore"),
    *("serve", "worker"),
}
# They save a file, delete something, or are read line by line.
_WITHOUT_JSON = {"cluster", "contact-sheet", "delete", "download", "labels", "map", "plot"}
_WITHOUT_JSON |= {"export", "thumbnail", "unalias"}


def commands(group: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, command in getattr(group, "commands", {}).items():
        if getattr(command, "commands", None):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_there_are_many() -> None:
    assert len(COMMANDS) >= 60


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_is_short_and_clear(path: tuple[str, ...]) -> None:
    help_text = str(getattr(COMMANDS[path], "help", ""))
    assert help_text.endswith(".")
    assert len(help_text) < 120
    answer = CliRunner().invoke(app, [*path, "--help"])
    assert answer.exit_code == 0
    assert "Usage" in answer.output


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_same_options_everywhere(path: tuple[str, ...]) -> None:
    options = {name for p in COMMANDS[path].params for name in p.opts}  # type: ignore[attr-defined]
    if path[0] in _LOCAL:
        return
    assert {"--server", "--api-key"} <= options
    saves_or_removes = path[-1] in _WITHOUT_JSON and path[:2] != ("jobs", "start")
    assert "--json" in options or saves_or_removes
    assert ("--yes" in options) == path[-1].startswith("delete")


@pytest.mark.parametrize(
    "words",
    [
        ["datasets", "create", __file__],
        ["datasets", "labels", "ds_1"],
        ["uploads", "send", __file__],
        ["images", "show", "img_1"],
        ["jobs", "start", "map", "ds_1"],
        ["clusterings", "undo", "cl_1"],
        ["exports", "download", "exp_1"],
        ["exports", "create", "cl_1", "-f", "csv"],
    ],
)
def test_no_service_is_exit_code_3_at_once(words: list[str]) -> None:
    answer = CliRunner().invoke(app, words, env={"TEMI_SERVER": "http://127.0.0.1:9"})
    assert answer.exit_code == 3
    assert "temi serve" in answer.stderr
