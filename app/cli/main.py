"""Entry point of the `temi` console script; also `python -m app.cli.main`."""

import sys

from rich.console import Console

from app.cli import app
from app.cli.error_group import BROKEN_PIPE, discard_output


def main() -> None:
    # Tables and help texts, which rich prints, would end with status 1.
    Console.on_broken_pipe = _on_broken_pipe  # type: ignore[method-assign]
    try:
        try:
            app(prog_name="temi")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _end()


def _on_broken_pipe(self: Console) -> None:  # noqa: ARG001
    _end()


def _end() -> None:
    discard_output()
    sys.exit(BROKEN_PIPE)


if __name__ == "__main__":
    main()
