"""Real processes and servers under every failure that the service promises to survive.

`make chaos` runs all of it, `make test` a little of each. Every scenario writes what it has
reached as rows of one table (tests/promises.py), which is shown at the end.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.profile import PROFILES, Profile
from tests.chaos.site import Site
from tests.servers import Server, start_postgres, start_redis

_SEED = 20_240
StartSite = Callable[..., Site]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("chaos")
    group.addoption("--chaos", choices=sorted(PROFILES), default="short", help="how much of it")
    group.addoption("--chaos-seed", type=int, default=_SEED, help="who is hit, and when")


def pytest_report_header(config: pytest.Config) -> str:
    """The seed of the random choices, to repeat a run."""
    return f"chaos: {config.getoption('--chaos', default='short')}, seed {_seed(config)}"


def _seed(config: pytest.Config) -> int:
    return int(config.getoption("--chaos-seed", default=_SEED))


@pytest.fixture
def profile(request: pytest.FixtureRequest) -> Profile:
    return PROFILES[request.config.getoption("--chaos", default="short")]


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(f"{_seed(request.config)} {request.node.name}")


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the uploads."""
    return tmp_path_factory.mktemp("archives")


@pytest.fixture
def own_postgres() -> Iterator[Server]:
    """A Redis of its own, for tests that stop it."""
    with start_postgres() as server:
        yield server


@pytest.fixture
def own_redis() -> Iterator[Server]:
    with start_redis() as server:
        yield server


@pytest.fixture
def start_site(tmp_path: Path) -> StartSite:
    return lambda **settings: Site(tmp_path / "site", **settings)


@pytest.fixture(params=["sqlite", "postgresql"])
def start_any_site(request: pytest.FixtureRequest, start_site: StartSite) -> StartSite:
    """Runs the test on SQLite with a folder as broker, and on PostgreSQL with Redis."""
    if request.param == "sqlite":
        return start_site
    servers = {
        "database_url": f"{request.getfixturevalue('own_postgres').url}/postgres",
        "broker_url": request.getfixturevalue("own_redis").url,
    }
    return lambda **settings: start_site(**servers, **settings)


@pytest.fixture
def start_some_site(request: pytest.FixtureRequest, start_any_site: StartSite) -> StartSite:
    """The same, but the short run skips SQLite."""
    if _is_short(request.config) and request.node.callspec.params["start_any_site"] == "sqlite":
        pytest.skip("part of `make chaos`")
    return start_any_site


@pytest.fixture
def only_in_full(request: pytest.FixtureRequest) -> None:
    """For scenarios that smaller tests cover as well."""
    if _is_short(request.config):
        pytest.skip("part of `make chaos`")


def _is_short(config: pytest.Config) -> bool:
    return bool(config.getoption("--chaos", default="short") == "short")
