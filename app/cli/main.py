"""Entry point of the `temi` console script; also `python -m app.cli.main`."""

from app.cli import app


def main() -> None:
    app(prog_name="temi")


if __name__ == "__main__":
    main()
