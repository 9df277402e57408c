"""Commands whose modules are imported when they are used: `temi --help` imports none of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command, get_group


@dataclass(frozen=True)
class LazyCommand:
    """A group (`module:app`) or a single command (`module:function`) of this package."""

    location: str
    panel: str
    help: str  # the same as that of the loaded command

    def load(self, name: str) -> Any:
        module, _, attribute = self.location.partition(":")
        found = getattr(import_module(f"app.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            command: Any = get_group(found)
            command.name = name
            return command
        single = typer.Typer(add_completion=False)
        single.command(name)(found)
        return get_command(single)

    def summary(self, name: str) -> Any:
        """Returns a command that has only what the list of all commands shows."""
        return TyperCommand(name, help=self.help, rich_help_panel=self.panel)


class LazyCommands(Mapping[str, Any]):
    """The `commands` of a group; each is loaded on first access."""

    def __init__(self, entries: Mapping[str, LazyCommand]) -> None:
        self._entries = entries
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._entries[name].load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def summaries(self) -> dict[str, Any]:
        return {name: entry.summary(name) for name, entry in self._entries.items()}
