"""A clustering to edit."""

import pytest

from app.core.runtime import Runtime
from tests.core.clustering_rows import Stored, places, store

# cluster 0 has three images, 1 has two, 2 has one, 3 has none
PLACES = [0, 0, 0, 1, 1, 2]


@pytest.fixture
def stored(any_runtime: Runtime) -> Stored:
    return store(any_runtime, PLACES, n_clusters=4)


def in_order(runtime: Runtime, stored: Stored) -> list[int]:
    where = places(runtime, stored)
    return [where[image_id] for image_id in stored.images]
