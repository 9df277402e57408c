"""The embed stage: the features of a dataset; known features are copied from other embeddings.

An embedding is a folder with `hashes.npy`, the sha256 of every image in the order of the dataset,
and `features.npy`, the features of the same rows. New images are embedded in shards, which survive
a crash. A large embedding has `index.faiss`, too, by which it is searched, and that of a backbone
with a classifier of ImageNet has `classifier.safetensors`, by which clusters are named.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sqlalchemy import select

from app.core.datasets.embeddings import add_embedding, earlier_folders
from app.core.datasets.features import INDEX_ROWS, classifier_key, index_key
from app.core.jobs.kinds import KINDS
from app.core.jobs.shards import ShardSpec
from app.core.platform.activity import report_activity
from app.core.platform.actor import DEFAULT_TENANT
from app.core.platform.errors import Conflict
from app.core.platform.tables import Image
from app.core.storage import Storage
from app.core.storage.keys import blob_key, embedding_folder
from temi.backbones.cropping import CentralSquare
from temi.backbones.embedding import embed_images
from temi.backbones.extractor import FeatureExtractor
from temi.backbones.preprocessing import Square
from worker.context import JobContext, ProgressReporter
from worker.stages.artifacts import content_key, gather_rows, load_array, save_array
from worker.stages.embedding_reuse import EmbeddingPlan, Hashes, plan_reuse
from worker.stages.prefetch import prefetch
from worker.stages.sharded_stage import Advance, ShardedStage

# Raise it when the same images and model give other features than before.
_FEATURES_VERSION = 4
_MAX_EARLIER = 8  # embeddings to search for known images
_FETCH_ROWS = 10_000


@dataclass(frozen=True)
class EmbeddingFiles:
    """Jobs of a tenant on the same images and model share a folder.

    Tenants share none: features that already exist would reveal another tenant's images.
    """

    storage: Storage
    tenant: str
    fingerprint: str | None
    backbone_key: str

    @classmethod
    def of(cls, context: JobContext, backbone: FeatureExtractor) -> "EmbeddingFiles":
        key = content_key(
            _FEATURES_VERSION,
            backbone.name,
            backbone.weights_hash,
            backbone.preprocessing.as_dict(),
            backbone.precision,
        )
        job = context.job
        return cls(context.runtime.storage, job.tenant, job.dataset_fingerprint, key)

    @cached_property
    def folder(self) -> str:
        owner = [] if self.tenant == DEFAULT_TENANT else [self.tenant]
        return embedding_folder(content_key(self.backbone_key, self.fingerprint, *owner))

    @property
    def features_key(self) -> str:
        return f"{self.folder}/features.npy"

    @property
    def hashes_key(self) -> str:
        return f"{self.folder}/hashes.npy"

    @property
    def done(self) -> bool:
        return self.storage.exists(self.features_key)

    def features(self) -> npt.NDArray[np.float32]:
        return load_array(self.storage, self.features_key)

    def hashes(self) -> Hashes:
        return load_array(self.storage, self.hashes_key)


def embed_dataset(
    context: JobContext, backbone: FeatureExtractor, files: EmbeddingFiles, stage: str = "embed"
) -> None:
    """Writes the files unless they exist, and registers them for the dataset."""
    hashes = files.hashes() if files.done else dataset_hashes(context)
    _register(context, files, len(hashes))
    if not files.done:
        _embed(context, backbone, files, hashes, stage)
    index_features(context, files)
    save_classifier(backbone, files)


def _embed(
    context: JobContext,
    backbone: FeatureExtractor,
    files: EmbeddingFiles,
    hashes: Hashes,
    stage: str,
) -> None:
    save_array(files.storage, files.hashes_key, hashes)
    size = context.runtime.settings.embed_shard
    with context.computing():
        plan = plan_reuse(files.storage, files.folder, hashes, _earlier(context, files), size)
    count, new = len(hashes), sum(len(shard) for shard in plan.shards.values())
    context.log(f"{new:,} of {count:,} images will be embedded; {plan.reused:,} are known.")
    progress = context.start_progress(stage, total=count, completed=count - new)
    _embed_shards(context, backbone, files, plan, progress)
    join_features(files.storage, files.features_key, plan)


def index_features(context: JobContext, files: EmbeddingFiles) -> None:
    """Builds the search index of many features unless it exists."""
    features, key = files.features(), index_key(files.folder)
    if len(features) <= INDEX_ROWS or files.storage.exists(key):
        return
    from temi.neighbors.index import build_index  # loads faiss

    with context.computing(), files.storage.writing(key) as file:
        build_index(features, Path(file.name))


def save_classifier(backbone: FeatureExtractor, files: EmbeddingFiles) -> None:
    """Saves the classifier of the backbone, if it has one, for names of clusters."""
    key = classifier_key(files.folder)
    if not files.storage.exists(key) and (found := backbone.load_classifier()) is not None:
        files.storage.write(key, found.to_bytes())


def _embed_shards(
    context: JobContext,
    backbone: FeatureExtractor,
    files: EmbeddingFiles,
    plan: EmbeddingPlan,
    progress: ProgressReporter,
) -> None:
    if not plan.shards:
        return
    new = np.concatenate(list(plan.shards.values()))
    name = content_key(list(plan.shards))
    hashes_key = f"{files.folder}/new-{name}.npy"
    if len(plan.shards) > 1:
        save_array(files.storage, hashes_key, new)
    starts = np.cumsum([0, *(len(shard) for shard in plan.shards.values())]).tolist()
    stage = ShardedStage(
        context=context,
        stage=progress.stage,
        plan_key=f"{files.folder}/plan-{name}.json",
        plan={
            "task": "embed",
            "folder": files.folder,
            "hashes": hashes_key,
            "device": backbone.device_type,
            "backend": backbone.backend.name,
        },
        shards=[
            ShardSpec(key, start, len(shard))
            for (key, shard), start in zip(plan.shards.items(), starts, strict=False)
        ],
        needs=KINDS[context.job.kind].resource,
    )
    # Another job on the same images may finish first.
    compute = EmbedShard(context, backbone, new)
    stage.run(compute, progress, superseded=lambda: files.done)
    files.storage.delete(hashes_key)


@dataclass(frozen=True)
class EmbedShard:
    """Computes the features of a shard."""

    context: JobContext
    backbone: FeatureExtractor
    hashes: Hashes  # of all images to embed

    def __call__(self, shard: ShardSpec, advance: Advance) -> npt.NDArray[np.float32]:
        square = self.backbone.preprocessing.square
        threads = self.context.runtime.settings.threads
        rows = self.hashes[shard.first : shard.first + shard.rows]
        images = read_ahead(self.context, (row.tobytes() for row in rows), square)
        batches = []
        for batch in embed_images(self.backbone, images, threads=threads):
            batches.append(batch)
            advance(len(batch))
        return np.concatenate(batches)


def join_features(storage: Storage, features_key: str, plan: EmbeddingPlan) -> None:
    """Writes the features from all sources of the plan, then deletes the shards."""
    try:
        gather_rows(storage, features_key, plan.sources, plan.source, plan.row)
    except FileNotFoundError:
        # Another job on the same images was first: it deletes shards only after joining them.
        if not storage.exists(features_key):
            raise
    for key in plan.shards:
        storage.delete(key)


def dataset_hashes(context: JobContext) -> Hashes:
    """Returns the sha256 of every image, in the order of the dataset: (N, 32)."""
    statement = select(Image.sha256).where(Image.dataset_id == context.job.dataset_id)
    digest = bytearray()
    with context.runtime.db.read() as session:
        rows = session.scalars(
            statement.order_by(Image.position).execution_options(yield_per=_FETCH_ROWS)
        )
        for page in rows.partitions():
            digest += bytes.fromhex("".join(page))
            report_activity()
    fingerprint = context.job.dataset_fingerprint
    if fingerprint is not None and hashlib.sha256(digest).hexdigest() != fingerprint:
        raise Conflict(
            "The dataset's images have changed since the job was created; create a new job."
        )
    return np.frombuffer(digest, dtype=np.uint8).reshape(-1, 32)


def read_ahead(
    context: JobContext, hashes: Iterable[bytes], square: CentralSquare
) -> Iterator[Callable[[], Square]]:
    """Yields functions that decode the square of each image that a backbone sees.

    From a storage server, the next images are read ahead.
    """
    waits = context.runtime.storage.reads_at_once
    if waits == 1:
        return (partial(_read_square, context, sha256, square) for sha256 in hashes)
    contents = prefetch(partial(_read, context), hashes, threads=waits)
    return (partial(context.runtime.decoders.cut_square, data, square) for data in contents)


def _read_square(context: JobContext, sha256: bytes, square: CentralSquare) -> Square:
    return context.runtime.decoders.cut_square(_read(context, sha256), square)


def _read(context: JobContext, sha256: bytes) -> bytes:
    return context.runtime.storage.read(blob_key(sha256.hex()))


def _register(context: JobContext, files: EmbeddingFiles, rows: int) -> None:
    with context.transaction() as session:
        add_embedding(
            session,
            dataset_id=context.job.dataset_id,
            backbone_key=files.backbone_key,
            fingerprint=files.fingerprint or "",
            folder=files.folder,
            rows=rows,
        )


def _earlier(context: JobContext, files: EmbeddingFiles) -> Sequence[str]:
    with context.runtime.db.read() as session:
        return earlier_folders(
            session,
            context.job.dataset_id,
            files.backbone_key,
            exclude=files.folder,
            limit=_MAX_EARLIER,
        )
