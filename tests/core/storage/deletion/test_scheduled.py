"""The bytes of deleted images are deleted; those of other images stay."""

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.core.datasets.changes import delete_images, mark_duplicates
from app.core.datasets.rows import create_dataset, get_dataset
from app.core.platform.ids import new_id
from app.core.platform.tables import BlobDeletion, Dataset, Duplicate, Image
from app.core.runtime import Runtime
from app.core.storage import store_blob
from app.core.storage.deletion import collector
from app.core.storage.deletion.owners import BLOB_KIND
from app.core.storage.keys import blob_key, thumbnail_key
from tests.conftest import MakeSettings
from tests.core.storage.deletion.collecting import collected


@pytest.fixture
def without_grace(make_settings: MakeSettings) -> Runtime:
    """A service without a grace period."""
    return Runtime(make_settings(delete_grace_seconds=0))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _add(runtime: Runtime, dataset_id: str, data: bytes) -> str:
    """Like an ingest: bytes first, then the row."""
    store_blob(runtime.storage, _hash(data), data)
    with runtime.db.write() as session:
        dataset = session.get_one(Dataset, dataset_id)
        image = Image(
            id=new_id("img"), dataset_id=dataset_id, position=dataset.end_position, name="x",
            sha256=_hash(data), width=1, height=1, format="PNG", bytes=len(data),
        )  # fmt: skip
        session.add(image)
        dataset.end_position += 1
        dataset.image_count += 1
    return image.id


def _new_dataset(runtime: Runtime) -> str:
    with runtime.db.write() as session:
        return create_dataset(session, tenant="t", name="d").id


def _delete(runtime: Runtime, dataset_id: str, image_id: str) -> None:
    with runtime.db.write() as session:
        delete_images(session, get_dataset(session, "t", dataset_id, lock=True), [image_id])


def _stored(runtime: Runtime) -> set[str]:
    folder = runtime.settings.blob_dir / "sha256"
    return {path.name for path in folder.rglob("*") if path.is_file()}


def _scheduled(runtime: Runtime) -> list[str]:
    with runtime.db.read() as session:
        return list(session.scalars(select(BlobDeletion.sha256)))


@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 1), st.sampled_from([b"a", b"b", b"c"])),
            st.tuples(st.just("delete"), st.integers(0, 20), st.just(b"")),
            st.tuples(st.just("clean"), st.just(0), st.just(b"")),
        ),
        max_size=15,
    )
)
def test_exactly_the_referenced_blobs_are_left(
    without_grace: Runtime, steps: list[tuple[str, int, bytes]]
) -> None:
    with without_grace.db.write() as session:
        session.execute(delete(Dataset))
    datasets = [_new_dataset(without_grace), _new_dataset(without_grace)]
    images: list[tuple[str, str, bytes]] = []
    for kind, number, data in steps:
        if kind == "add":
            images.append((datasets[number], _add(without_grace, datasets[number], data), data))
        elif kind == "delete" and images:
            dataset_id, image_id, _ = images.pop(number % len(images))
            _delete(without_grace, dataset_id, image_id)
        elif kind == "clean":
            without_grace.collector.delete_scheduled_blobs()
            assert _stored(without_grace) >= {_hash(data) for _, _, data in images}
    for dataset_id, image_id, _ in images:
        with without_grace.db.read() as session:
            assert session.get_one(Image, image_id).dataset_id == dataset_id
    without_grace.collector.delete_scheduled_blobs()
    assert _stored(without_grace) == {_hash(data) for _, _, data in images}
    assert _scheduled(without_grace) == []
    for dataset_id, image_id, _ in images:
        _delete(without_grace, dataset_id, image_id)
    without_grace.collector.delete_scheduled_blobs()
    assert _stored(without_grace) == set()


def test_bytes_stay_for_the_grace_period(any_runtime: Runtime) -> None:
    dataset_id = _new_dataset(any_runtime)
    _delete(any_runtime, dataset_id, _add(any_runtime, dataset_id, b"a"))
    assert any_runtime.collector.delete_scheduled_blobs() == 0
    with any_runtime.db.write() as session:
        session.get_one(BlobDeletion, _hash(b"a")).scheduled_at -= 1_000
    assert any_runtime.collector.delete_scheduled_blobs() == 0  # its file is still young
    assert (_stored(any_runtime), _scheduled(any_runtime)) == ({_hash(b"a")}, [_hash(b"a")])
    _age(any_runtime, b"a", 1_000)
    assert any_runtime.collector.delete_scheduled_blobs() == 1
    assert (_stored(any_runtime), _scheduled(any_runtime)) == (set(), [])


def _age(runtime: Runtime, data: bytes, seconds: float) -> Path:
    path = runtime.storage.path(blob_key(_hash(data)))
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_scheduling_again_restarts_the_grace_period(any_runtime: Runtime) -> None:
    dataset_id = _new_dataset(any_runtime)
    ids = [_add(any_runtime, dataset_id, b"a") for _ in range(3)]
    _delete(any_runtime, dataset_id, ids[0])
    with any_runtime.db.write() as session:
        session.get_one(BlobDeletion, _hash(b"a")).scheduled_at -= 1_000
    _delete(any_runtime, dataset_id, ids[1])
    with any_runtime.db.read() as session:
        age = time.time() - session.get_one(BlobDeletion, _hash(b"a")).scheduled_at
    assert age < 100


def test_thumbnails_are_deleted_with_their_image(without_grace: Runtime) -> None:
    dataset_id = _new_dataset(without_grace)
    image_id = _add(without_grace, dataset_id, b"a")
    keys = [thumbnail_key("t", _hash(b"a"), size) for size in (64, 128, 256, 512)]
    for key in keys:
        without_grace.storage.write(key, b"small")
    _delete(without_grace, dataset_id, image_id)
    assert without_grace.collector.delete_scheduled_blobs() == 1
    assert not any(without_grace.storage.exists(key) for key in keys)


def test_storing_the_same_bytes_again_touches_them(runtime: Runtime) -> None:
    store_blob(runtime.storage, _hash(b"a"), b"a")
    path = _age(runtime, b"a", 10_000)
    inode = path.stat().st_ino
    store_blob(runtime.storage, _hash(b"a"), b"a")
    assert path.stat().st_ino == inode  # not written again
    assert time.time() - path.stat().st_mtime < 100


def test_a_blob_that_is_stored_again_during_the_deletion_stays(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime(make_settings(delete_grace_seconds=100))
    dataset_id = _new_dataset(runtime)
    _delete(runtime, dataset_id, _add(runtime, dataset_id, b"a"))
    with runtime.db.write() as session:
        session.get_one(BlobDeletion, _hash(b"a")).scheduled_at -= 1_000
    _age(runtime, b"a", 1_000)

    def ingest_after(session: Session, keys: Sequence[str]) -> set[str]:
        owned = BLOB_KIND.owned(session, keys)
        store_blob(runtime.storage, _hash(b"a"), b"a")
        return owned

    busy = replace(BLOB_KIND, owned=ingest_after)
    monkeypatch.setattr(collector, "BLOB_KIND", busy)
    assert runtime.collector.delete_scheduled_blobs() == 0
    assert runtime.storage.read(blob_key(_hash(b"a"))) == b"a"


def test_bytes_without_a_row_are_collected(any_runtime: Runtime) -> None:
    dataset_id = _new_dataset(any_runtime)
    for data in (b"kept", b"orphan"):
        store_blob(any_runtime.storage, _hash(data), data)
    _add(any_runtime, dataset_id, b"kept")
    assert collected(any_runtime) == {blob_key(_hash(b"orphan"))}
    assert _stored(any_runtime) == {_hash(b"kept")}


def test_duplicates_refer_to_the_oldest_remaining_copy(any_runtime: Runtime) -> None:
    dataset_id = _new_dataset(any_runtime)
    ids = [_add(any_runtime, dataset_id, data) for data in (b"a", b"b", b"a", b"a")]
    with any_runtime.db.write() as session:
        mark_duplicates(session, dataset_id)

    def pairs() -> list[tuple[str, str]]:
        with any_runtime.db.read() as session:
            rows = session.scalars(select(Duplicate).order_by(Duplicate.image_id)).all()
        return [(row.image_id, row.original_id) for row in rows]

    assert pairs() == [(ids[2], ids[0]), (ids[3], ids[0])]
    _delete(any_runtime, dataset_id, ids[0])
    assert pairs() == [(ids[3], ids[2])]
    _delete(any_runtime, dataset_id, ids[3])
    assert pairs() == []
