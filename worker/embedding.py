"""Images of a dataset to one array of features, in shards that survive a crash."""

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np
from PIL import Image as PillowImage

from app.core.datasets import iterate_images
from app.core.images import decode_image
from app.core.storage import LocalStorage, blob_key
from app.core.tables import Dataset
from temi.backbones import Backbone
from temi.embed import embed_images
from worker.artefacts import join_arrays, save_array
from worker.context import JobContext, Meter


def embed_dataset(context: JobContext, backbone: Backbone, folder: str, features_key: str) -> None:
    storage, size = context.runtime.storage, context.runtime.settings.embed_shard
    with context.runtime.db.read() as session:
        count = session.get_one(Dataset, context.job.dataset_id).image_count
    keys = [f"{folder}/shard-{size}-{start // size:06d}.npy" for start in range(0, count, size)]
    missing = {number for number, key in enumerate(keys) if not storage.exists(key)}
    done = sum(min(size, count - n * size) for n in range(len(keys)) if n not in missing)
    meter = context.meter("embed", total=count, completed=done)
    for number, hashes in _shards(context, size):
        if number in missing:
            save_array(storage, keys[number], _embed(context, backbone, hashes, meter))
            meter.checkpoint()
    join_shards(storage, features_key, keys, count)


def join_shards(storage: LocalStorage, features_key: str, keys: list[str], count: int) -> None:
    """The features out of all shards, which are then dropped."""
    try:
        join_arrays(storage, features_key, keys, count)
    except FileNotFoundError:
        # Another job on the same images was first: it drops shards only after it has joined them.
        if not storage.exists(features_key):
            raise
    for key in keys:
        storage.delete(key)


def _shards(context: JobContext, size: int) -> Iterator[tuple[int, list[str]]]:
    """Numbered groups of image hashes, in the order of the dataset."""
    hashes = _hashes(context)
    number = 0
    while shard := list(islice(hashes, size)):
        yield number, shard
        number += 1


def _hashes(context: JobContext) -> Iterator[str]:
    with context.runtime.db.read() as session:
        for page in iterate_images(session, context.job.dataset_id):
            yield from [image.sha256 for image in page]


def _embed(
    context: JobContext, backbone: Backbone, hashes: list[str], meter: Meter
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    settings, storage = context.runtime.settings, context.runtime.storage

    def load(sha256: str) -> PillowImage.Image:
        return decode_image(
            storage.read(blob_key(sha256)),
            max_pixels=settings.max_image_pixels,
            at_least=backbone.preprocessing.decode_side,
        ).image

    images = (partial(load, sha256) for sha256 in hashes)
    batches = []
    for batch in embed_images(backbone, images, threads=settings.threads):
        batches.append(batch)
        meter.advance(len(batch))
    return np.concatenate(batches)
