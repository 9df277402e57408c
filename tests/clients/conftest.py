import pytest

from tests.client.live import collection, live

__all__ = ["collection", "live"]


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "install and run the tools that need npm or Java: needs a network"
    parser.addoption("--install-tools", action="store_true", help=text)
