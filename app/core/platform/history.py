"""The history of a pointer, such as an alias: what a rollback returns to."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def rollback_stack(changes: Iterable[tuple[str, T | None, T | None]]) -> list[T]:
    """Returns the values to roll back to, the next one last.

    Changes are (kind, before, after), oldest first. Every `set` adds the value before it, a
    `rollback` or `delete` removes the values down to its target, and `remove` removes all.
    """
    stack: list[T] = []
    for kind, before, after in changes:
        if kind == "remove":
            stack = []
        elif kind == "set" and before is not None:
            stack.append(before)
        elif kind in ("rollback", "delete"):
            while stack and stack.pop() != after:
                pass
    return stack
