"""What is kept of refused images: how much, how long, for which tenant, and what becomes of it."""

import hashlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select, update

from app.core.access.quota import stored_bytes
from app.core.backup.files import image_keys
from app.core.clusterings.deletion import delete_clustering
from app.core.datasets.changes import delete_images
from app.core.gathering.keeping import Refusal, keep_refused
from app.core.models.deletion import delete_model
from app.core.models.versions import add_version, get_model
from app.core.platform.settings import Settings
from app.core.platform.tables import BlobDeletion, Dataset, Image, RefusedImage
from app.core.runtime import Runtime
from app.core.storage import store_blob
from app.core.storage.deletion.cleanup import delete_expired_refused
from app.core.storage.keys import blob_key
from tests.conftest import _runtime
from tests.core import clustering_rows
from tests.core.clustering_rows import TENANT, Stored

DAY = 24 * 3600.0
LIMIT = 5


@pytest.fixture
def service(any_settings: Settings) -> Iterator[Runtime]:
    yield from _runtime(any_settings.model_copy(update={"keep_refused": LIMIT}))


@pytest.fixture
def stored(service: Runtime) -> Stored:
    """A clustering and the version that made it."""
    found = clustering_rows.store(service, [0, 0, 1])
    with service.db.write() as session:
        add_version(
            session,
            tenant=TENANT,
            name="m",
            job_id=None,
            clustering_id=found.clustering_id,
            folder="models/m",
            manifest={},
            files={},
        )
    return found


def refusal(service: Runtime, number: int, **changes: Any) -> Refusal:
    data = f"image {number}".encode()
    sha256 = hashlib.sha256(data).hexdigest()
    store_blob(service.storage, sha256, data)
    values: dict[str, Any] = {
        "name": f"{number}.jpg",
        "sha256": sha256,
        "width": 1,
        "height": 1,
        "format": "JPEG",
        "bytes": 100,
        "novelty": 1.0,
        "probability": 0.5,
        "margin": 0.1,
        "features": np.ones(4, dtype=np.float32),
    }
    return Refusal(**(values | changes))


def keep(service: Runtime, *refusals: Refusal, quota: int | None = None) -> int:
    with service.db.write() as session:
        return keep_refused(
            session,
            service.settings,
            tenant=TENANT,
            model_id=_model_id(service),
            version=1,
            refusals=refusals,
            quota=quota,
        )


def _model_id(service: Runtime) -> str:
    with service.db.read() as session:
        return get_model(session, TENANT, "m").id


def names(service: Runtime) -> list[str]:
    with service.db.read() as session:
        return list(session.scalars(select(RefusedImage.name).order_by(RefusedImage.id)))


def scheduled(service: Runtime) -> set[str]:
    with service.db.read() as session:
        return set(session.scalars(select(BlobDeletion.sha256)))


@pytest.mark.usefixtures("stored")
def test_the_oldest_are_replaced(service: Runtime) -> None:
    first = [refusal(service, number) for number in range(4)]
    assert keep(service, *first) == 4
    assert keep(service, *(refusal(service, number) for number in range(3, 7))) == 3
    assert names(service) == ["2.jpg", "3.jpg", "4.jpg", "5.jpg", "6.jpg"]
    assert scheduled(service) == {first[0].sha256, first[1].sha256}


@pytest.mark.usefixtures("stored")
def test_a_large_batch_is_cut(service: Runtime) -> None:
    assert keep(service, *(refusal(service, number) for number in range(9))) == LIMIT
    assert names(service) == ["4.jpg", "5.jpg", "6.jpg", "7.jpg", "8.jpg"]


def test_they_count_against_the_quota(service: Runtime, stored: Stored) -> None:
    with service.db.read() as session:
        before = stored_bytes(session, TENANT)
    offered = [refusal(service, number) for number in range(4)]
    assert keep(service, *offered, quota=before + 250) == 2
    with service.db.read() as session:
        assert stored_bytes(session, TENANT) == before + 200
        assert stored_bytes(session, "other") == 0
    # The dataset counts the bytes of its own images.
    assert keep(service, refusal(service, 9, image_id=stored.images[0]), quota=0) == 1


@pytest.mark.usefixtures("stored")
def test_they_expire(service: Runtime) -> None:
    keep(service, *(refusal(service, number) for number in range(3)))
    assert delete_expired_refused(service.db, service.settings) == 0
    with service.db.write() as session:
        old = update(RefusedImage).where(RefusedImage.name != "2.jpg")
        session.execute(old.values(kept_at=time.time() - 31 * DAY))
    assert delete_expired_refused(service.db, service.settings) == 2
    assert names(service) == ["2.jpg"]
    assert len(scheduled(service)) == 2


@pytest.mark.usefixtures("stored")
def test_bytes_of_a_kept_image_are_neither_collected_nor_missing_in_a_backup(
    service: Runtime,
) -> None:
    held, loose = refusal(service, 1), refusal(service, 2)
    keep(service, held)
    key = blob_key(held.sha256)
    later = time.time() + 1000 * DAY
    list(service.collector.collect(now=later))
    assert service.storage.exists(key)
    assert not service.storage.exists(blob_key(loose.sha256))
    with service.db.read() as session:
        assert key in list(image_keys(session))


@pytest.mark.usefixtures("stored")
def test_they_are_deleted_with_the_model(service: Runtime) -> None:
    kept = refusal(service, 1)
    keep(service, kept)
    with service.db.write() as session:
        delete_model(session, TENANT, "m")
    assert names(service) == []
    assert scheduled(service) == {kept.sha256}


def test_they_are_deleted_with_their_image(service: Runtime, stored: Stored) -> None:
    keep(service, refusal(service, 1, image_id=stored.images[0]), refusal(service, 2))
    with service.db.write() as session:
        delete_images(session, session.get_one(Dataset, stored.dataset_id), [stored.images[0]])
    assert names(service) == ["2.jpg"]


def test_an_image_that_has_a_group_is_not_kept(service: Runtime, stored: Stored) -> None:
    with service.db.read() as session:
        placed = session.get_one(Image, stored.images[0]).sha256
    assert keep(service, refusal(service, 1, sha256=placed)) == 0


def test_nothing_is_kept_without_a_group_to_go_to(service: Runtime, stored: Stored) -> None:
    with service.db.write() as session:
        delete_clustering(session, TENANT, stored.clustering_id)
    assert keep(service, refusal(service, 1)) == 0
    with service.db.read() as session:
        assert session.scalar(select(func.count()).select_from(RefusedImage)) == 0
