from collections.abc import Iterator

import pytest

from temi_client import TemiClient
from tests.client.service import FakeService, running_service


@pytest.fixture
def service() -> Iterator[FakeService]:
    with running_service() as running:
        yield running


@pytest.fixture
def client(service: FakeService) -> Iterator[TemiClient]:
    with TemiClient(service.url, api_key="a-key-of-sixteen+", retries=0) as connected:
        yield connected
