"""The cache stays within its bytes and drops what was not used for longest."""

import numpy as np
import numpy.typing as npt

from app.core.platform.byte_cache import ByteCache


def test_the_least_recently_used_value_is_dropped() -> None:
    cache = ByteCache[npt.NDArray[np.uint8]](10)
    for name in "abc":
        cache.add(name, np.zeros(4, dtype=np.uint8))
        assert cache.get("a") is not None
    assert [cache.get(name) is None for name in "abc"] == [False, True, False]


def test_a_value_that_does_not_fit_is_not_kept() -> None:
    cache = ByteCache[npt.NDArray[np.uint8]](10)
    cache.add("large", np.zeros(11, dtype=np.uint8))
    assert cache.get("large") is None
