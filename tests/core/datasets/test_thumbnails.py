"""Thumbnails: concurrent requests create them once."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.core.datasets.decoding.pool import DecoderPool
from app.core.datasets.thumbnails import get_thumbnail
from app.core.platform.errors import ImageRejected
from app.core.platform.single_flight import SingleFlight
from app.core.runtime import Runtime
from app.core.storage.keys import blob_key
from tests.images import jpeg_bytes


def _store(runtime: Runtime, data: bytes) -> str:
    sha256 = hashlib.sha256(data).hexdigest()
    runtime.storage.write(blob_key(sha256), data)
    return sha256


def test_concurrent_requests_share_one_thumbnail(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = _store(runtime, jpeg_bytes(size=(300, 200)))
    make, made = DecoderPool.make_thumbnail, []

    def counted(pool: DecoderPool, data: bytes, size: int) -> bytes:
        made.append(size)
        return make(pool, data, size)

    monkeypatch.setattr(DecoderPool, "make_thumbnail", counted)
    together = threading.Barrier(40)

    def ask(_number: int) -> bytes:
        together.wait(60)
        return get_thumbnail(runtime.storage, runtime.decoders, "default", sha256, 64)

    with ThreadPoolExecutor(40) as threads:
        found = set(threads.map(ask, range(40)))
    assert len(found) == 1
    assert made == [64]


def test_an_error_reaches_all_and_the_next_call_retries(runtime: Runtime) -> None:
    sha256 = _store(runtime, jpeg_bytes(size=(300, 200))[:500])
    for _ in range(2):
        with pytest.raises(ImageRejected):
            get_thumbnail(runtime.storage, runtime.decoders, "default", sha256, 64)


def test_different_keys_do_not_wait_for_each_other() -> None:
    flights, both = SingleFlight[int](), threading.Barrier(2)
    with ThreadPoolExecutor(2) as threads:
        found = threads.map(lambda n: flights.run(str(n), lambda: both.wait(60) * 0 + n), range(2))
        assert list(found) == [0, 1]
