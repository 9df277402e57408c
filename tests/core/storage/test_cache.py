"""The cache evicts the least recently used files, never those in use."""

import multiprocessing
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.queues import Queue
from pathlib import Path

import pytest

from app.core.platform.errors import StorageFull
from app.core.storage import cache as module
from app.core.storage import raise_if_full
from app.core.storage.cache import PIN_SECONDS, Cache
from tests.waiting import LONG_SECONDS

_SIZE = 1000
_NUMBERS = 100
_USES = 250  # by each process, 10 ms apart: enough for evictions


def _name(number: int) -> str:
    return f"{number % 256:02x}{number:062x}"


def _data(number: int) -> bytes:
    return bytes([number % 256]) * _SIZE


def _get(cache: Cache, number: int) -> Path:
    return cache.get(_name(number), partial(_write, number))


def _write(number: int, target: Path) -> None:
    target.write_bytes(_data(number))


def _held(folder: Path) -> set[str]:
    return {path.name for path in (folder / "files").rglob("*") if path.is_file()}


def _age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_the_least_recently_used_are_evicted_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=10 * _SIZE)
    for number in range(10):
        _age(_get(cache, number), 10_000 - number)
    _get(cache, 0)  # used again
    _get(cache, 10)
    assert _held(tmp_path) == {_name(0), *map(_name, range(3, 11))}
    assert _get(cache, 3).read_bytes() == _data(3)


def test_a_file_that_was_just_returned_is_not_evicted(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=2 * _SIZE)
    paths = [_get(cache, number) for number in range(5)]
    assert [path.read_bytes() for path in paths] == [_data(number) for number in range(5)]
    for path in paths:
        _age(path, PIN_SECONDS + 1)
    _get(cache, 5)
    assert _name(5) in _held(tmp_path)
    assert len(_held(tmp_path)) == 1


def test_a_file_larger_than_the_limit_can_be_used(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=10)
    assert _get(cache, 1).read_bytes() == _data(1)


def test_an_open_copy_stays_readable(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=1)
    path = _get(cache, 1)
    with path.open("rb") as file:
        _age(path, PIN_SECONDS + 1)
        _get(cache, 2)
        assert not path.exists()
        assert file.read() == _data(1)


def test_a_failed_fetch_leaves_no_file(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=10 * _SIZE)

    def fail_halfway(target: Path) -> None:
        target.write_bytes(b"half")
        raise ConnectionError

    with pytest.raises(ConnectionError):
        cache.get(_name(1), fail_halfway)
    assert _held(tmp_path) == set()
    assert list(cache.temporary_dir.iterdir()) == []
    assert _get(cache, 1).read_bytes() == _data(1)


def test_concurrent_gets_fetch_once(tmp_path: Path) -> None:
    fetched = []

    def fetch(target: Path) -> None:
        fetched.append(target)
        time.sleep(0.2)  # the others wait for this fetch
        target.write_bytes(_data(1))

    caches = [Cache(tmp_path, limit=10 * _SIZE) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda cache: cache.get(_name(1), fetch), caches))
    assert [path.read_bytes() for path in paths] == [_data(1)] * 8
    assert len(fetched) == 1


def test_a_file_that_is_used_during_eviction_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, other = Cache(tmp_path, limit=_SIZE), Cache(tmp_path, limit=100 * _SIZE)
    old = _get(other, 1)
    _age(old, PIN_SECONDS + 1)
    count = cache._entries

    def count_and_use() -> list[tuple[float, int, Path]]:
        found: list[tuple[float, int, Path]] = list(count())
        assert _get(other, 1) == old  # after its age was read, before its eviction
        return found

    monkeypatch.setattr(cache, "_entries", count_and_use)
    _get(cache, 2)
    assert old.read_bytes() == _data(1)


def test_a_full_disk_evicts_and_fetches_again(small_disk: Path) -> None:
    cache = Cache(small_disk, limit=10_000_000)

    def fetch(target: Path) -> None:
        try:
            target.write_bytes(bytes(600_000))
        except OSError as error:
            raise_if_full(error)
            raise

    _age(cache.get(_name(1), fetch), PIN_SECONDS + 1)
    assert cache.get(_name(2), fetch).stat().st_size == 600_000
    with pytest.raises(StorageFull):
        cache.get(_name(3), fetch)  # the other one may be in use
    assert _held(small_disk) == {_name(2)}
    assert list(cache.temporary_dir.iterdir()) == []


def _use_at_random(folder: Path, seed: int, fetched: "Queue[int]") -> None:
    module.PIN_SECONDS = 0.3
    cache, rng, fetches = Cache(folder, limit=5 * _SIZE), random.Random(seed), 0

    def fetch(number: int, target: Path) -> None:
        nonlocal fetches
        fetches += 1
        target.write_bytes(_data(number))

    for _ in range(_USES):
        number, asked = rng.randrange(_NUMBERS), time.time()
        path = cache.get(_name(number), partial(fetch, number))
        try:
            assert path.read_bytes() == _data(number)
        except FileNotFoundError:
            assert time.time() - asked > 0.3  # the machine was busy
        time.sleep(0.01)
    fetched.put(fetches)


def test_processes_share_the_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    fetched: Queue[int] = context.Queue()
    workers = [
        context.Process(target=_use_at_random, args=(tmp_path, seed, fetched)) for seed in range(3)
    ]
    for worker in workers:
        worker.start()
    fetches = sum(fetched.get(timeout=LONG_SECONDS) for _ in workers)
    for worker in workers:
        worker.join(LONG_SECONDS)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert fetches > _NUMBERS  # some were evicted and fetched again
    assert list((tmp_path / "tmp").iterdir()) == []
