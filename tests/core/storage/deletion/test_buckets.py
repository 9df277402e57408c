"""Deletion works in a bucket as in a folder."""

import hashlib
import time

import pytest

from app.core.datasets.changes import delete_images
from app.core.datasets.rows import create_dataset, get_dataset
from app.core.platform.ids import new_id
from app.core.platform.tables import Image
from app.core.runtime import Runtime
from app.core.storage import store_blob
from app.core.storage.deletion.cleanup import schedule_deletion
from app.core.storage.keys import blob_key, thumbnail_folder, thumbnail_key
from tests.buckets import any_storage
from tests.conftest import MakeSettings
from tests.core.storage.deletion.collecting import collected

_HASH = hashlib.sha256(b"image").hexdigest()


@any_storage
def test_files_without_an_owner_are_collected(runtime: Runtime) -> None:
    lost = {blob_key(_HASH), "uploads/up_x", "listings/job_x.jsonl"}
    small = thumbnail_key("t", _HASH, 64)
    for key in (*lost, small, "models/x/model.safetensors", "models/x/manifest.json"):
        runtime.storage.write(key, b"image")
    assert collected(runtime) == lost | {thumbnail_folder(_HASH), "models/x"}
    assert list(runtime.storage.list("")) == []


@any_storage
def test_the_bytes_of_a_deleted_image_are_deleted(make_settings: MakeSettings) -> None:
    runtime = Runtime(make_settings(delete_grace_seconds=0))
    store_blob(runtime.storage, _HASH, b"image")
    runtime.storage.write(thumbnail_key("t", _HASH, 64), b"small")
    with runtime.db.write() as session:
        dataset = create_dataset(session, tenant="t", name="d")
        image = Image(
            id=new_id("img"), dataset_id=dataset.id, position=0, name="x", sha256=_HASH,
            width=1, height=1, format="PNG", bytes=5,
        )  # fmt: skip
        session.add(image)
        dataset.end_position = dataset.image_count = 1
        session.flush()
        schedule_deletion(session, Image.id == image.id)
    time.sleep(1.1)  # times have whole seconds
    assert runtime.collector.delete_scheduled_blobs() == 0  # an image still has these bytes
    assert runtime.storage.read(blob_key(_HASH)) == b"image"
    with runtime.db.write() as session:
        delete_images(session, get_dataset(session, "t", dataset.id, lock=True), [image.id])
    assert runtime.collector.delete_scheduled_blobs() == 1
    with pytest.raises(FileNotFoundError):
        runtime.storage.read(blob_key(_HASH))
    assert not runtime.storage.exists(thumbnail_key("t", _HASH, 64))
    runtime.db.dispose()
