"""What the documentation names exists: files, make targets, commands, settings."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from app.cli import app
from app.core.platform.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_MAKE = re.compile(r"(?:^\s*|`)make ([a-z][a-z-]*)", re.MULTILINE)
_COMMAND = re.compile(r"(?:^\s*|`)temi ([a-z]+)(?: ([a-z]+(?:-[a-z]+)*))?", re.MULTILINE)
_VARIABLE = re.compile(r"TEMI_[A-Z][A-Z_]*[A-Z]")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def test_first_screen_has_the_two_commands() -> None:
    first = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40])
    assert {"demo", "test"} <= set(_MAKE.findall(first))


@every_page
def test_links_resolve(page: Path) -> None:
    links = [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if ":" not in link]
    missing = [link for link in links if not (page.parent / link.partition("#")[0]).exists()]
    assert missing == []


@every_page
def test_make_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    assert set(_MAKE.findall(page.read_text(encoding="utf-8"))) <= targets


@every_page
def test_variables_are_settings(page: Path) -> None:
    read_elsewhere = {"TEMI_SERVER", "TEMI_SECRETS_DIR"}
    known = {f"TEMI_{name.upper()}" for name in Settings.model_fields} | read_elsewhere
    assert set(_VARIABLE.findall(page.read_text(encoding="utf-8"))) <= known


@every_page
def test_commands_exist(page: Path) -> None:
    commands: dict[str, Any] = vars(typer.main.get_command(app))["commands"]
    for name, below in _COMMAND.findall(page.read_text(encoding="utf-8")):
        assert name in commands, f"there is no `temi {name}`"
        children = vars(commands[name]).get("commands")
        if below and children:
            assert below in children, f"there is no `temi {name} {below}`"
