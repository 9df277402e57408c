from collections.abc import Iterator

import pytest

from temi_client import TemiClient
from tests.client.fake_service import FakeService, running_service
from tests.client.live import Live, collection, live

__all__ = ["collection", "live"]


@pytest.fixture
def service() -> Iterator[FakeService]:
    with running_service() as running:
        yield running


@pytest.fixture
def client(service: FakeService) -> Iterator[TemiClient]:
    with TemiClient(service.url, api_key="a-key-of-sixteen+", retries=0) as connected:
        yield connected


@pytest.fixture
def live_client(live: Live) -> Iterator[TemiClient]:
    with live.client() as connected:
        yield connected
