"""Storages of both kinds."""

from collections.abc import Callable, Iterator

import pytest

from app.core.platform.settings import Settings
from app.core.storage import Storage, open_storage
from tests.buckets import new_bucket
from tests.conftest import MakeSettings
from tests.core.storage.proxy import Proxy, run_proxy

MakeStorage = Callable[..., Storage]


@pytest.fixture(params=["local", "s3"])
def any_storage_settings(request: pytest.FixtureRequest, make_settings: MakeSettings) -> Settings:
    if request.param == "local":
        return make_settings()
    return make_settings(**new_bucket(request.getfixturevalue("s3_url")))


@pytest.fixture
def storage(any_storage_settings: Settings) -> Storage:
    """Once for each kind."""
    return open_storage(any_storage_settings)


@pytest.fixture
def proxy(s3_url: str) -> Iterator[Proxy]:
    with run_proxy(s3_url) as found:
        yield found


@pytest.fixture
def s3_settings(proxy: Proxy, make_settings: MakeSettings) -> Settings:
    """A bucket behind the proxy."""
    return make_settings(**new_bucket(proxy.url), s3_part_bytes=5 * 1024 * 1024)


@pytest.fixture
def s3(s3_settings: Settings, proxy: Proxy) -> Storage:
    proxy.requests.clear()
    return open_storage(s3_settings)
