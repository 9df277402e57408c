from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from app.core.datasets import features
from app.core.datasets.features import index_key
from app.core.platform.errors import Conflict
from app.core.platform.tables import Dataset, Embedding, JobLog
from app.core.runtime import Runtime
from tests.buckets import new_bucket
from tests.conftest import MakeSettings
from tests.worker.conftest import Claimed
from tests.worker.tiny import (
    DIM,
    CountingBackbone,
    add_dataset,
    add_job,
    append,
    picture,
    remove,
    tiny_backbone,
)
from worker.stages import embedding
from worker.stages import sharded_stage as sharding
from worker.stages.artifacts import save_array
from worker.stages.embedding import EmbeddingFiles, embed_dataset

PICTURES = [picture(n) for n in range(10)]
Embed = Callable[..., tuple[EmbeddingFiles, int]]


@pytest.fixture
def embed(claimed: Claimed) -> Embed:
    """Embeds a dataset; returns the files and the number of embedded images."""

    def run(
        runtime: Runtime, dataset_id: str, backbone: CountingBackbone | None = None
    ) -> tuple[EmbeddingFiles, int]:
        backbone = backbone or tiny_backbone()
        before = backbone.images
        context = claimed(runtime, add_job(runtime, dataset_id).id)
        files = EmbeddingFiles.of(context, backbone)
        embed_dataset(context, backbone, files)
        return files, backbone.images - before

    return run


def test_features_are_in_the_order_of_the_dataset(any_runtime: Runtime, embed: Embed) -> None:
    one, _ = embed(any_runtime, add_dataset(any_runtime, PICTURES))
    other, _ = embed(any_runtime, add_dataset(any_runtime, PICTURES[::-1]))

    assert one.features().shape == (10, DIM)
    np.testing.assert_allclose(one.features(), other.features()[::-1], atol=1e-6)


def test_features_of_images_in_a_bucket(
    make_settings: MakeSettings, s3_url: str, embed: Embed
) -> None:
    folder, bucket = Runtime(make_settings()), Runtime(make_settings(**new_bucket(s3_url)))
    one, _ = embed(folder, add_dataset(folder, PICTURES))
    other, forwarded = embed(bucket, add_dataset(bucket, PICTURES))
    assert forwarded == 10
    np.testing.assert_array_equal(one.features(), other.features())
    for runtime in (folder, bucket):
        runtime.db.dispose()


def test_only_appended_images_are_embedded(any_runtime: Runtime, embed: Embed) -> None:
    dataset_id = add_dataset(any_runtime, PICTURES)
    assert embed(any_runtime, dataset_id)[1] == 10
    new = [picture(n) for n in (50, 51, 52)]
    append(any_runtime, dataset_id, new)

    files, forwarded = embed(any_runtime, dataset_id)

    assert forwarded == 3
    scratch, forwarded = embed(any_runtime, add_dataset(any_runtime, [*PICTURES, *new][::-1]))
    assert forwarded == 13
    np.testing.assert_allclose(files.features(), scratch.features()[::-1], atol=1e-6)
    with any_runtime.db.read() as session:
        lines = session.scalars(select(JobLog.message).order_by(JobLog.at, JobLog.number)).all()
    assert "3 of 13 images will be embedded; 10 are known." in lines


def test_deleted_images_need_no_embedding(any_runtime: Runtime, embed: Embed) -> None:
    dataset_id = add_dataset(any_runtime, PICTURES)
    before, _ = embed(any_runtime, dataset_id)
    remove(any_runtime, dataset_id, [0, 4, 9])

    files, forwarded = embed(any_runtime, dataset_id)

    assert forwarded == 0
    kept = [1, 2, 3, 5, 6, 7, 8]
    np.testing.assert_array_equal(files.features(), before.features()[kept])
    np.testing.assert_array_equal(files.hashes(), before.hashes()[kept])


def test_copies_are_embedded_once(runtime: Runtime, embed: Embed) -> None:
    files, forwarded = embed(runtime, add_dataset(runtime, [*PICTURES[:3], *PICTURES[1:4]]))

    assert forwarded == 4
    np.testing.assert_array_equal(files.features()[[1, 2]], files.features()[[3, 4]])


def test_another_backbone_shares_nothing(runtime: Runtime, embed: Embed) -> None:
    dataset_id = add_dataset(runtime, PICTURES)
    one, _ = embed(runtime, dataset_id)
    other, forwarded = embed(runtime, dataset_id, tiny_backbone(seed=1))

    assert forwarded == 10
    assert one.folder != other.folder


def test_every_dataset_lists_its_embeddings_once(any_runtime: Runtime, embed: Embed) -> None:
    datasets = [add_dataset(any_runtime, PICTURES) for _ in range(2)]
    forwarded = [embed(any_runtime, dataset_id)[1] for dataset_id in datasets * 2]

    assert forwarded == [10, 0, 0, 0]
    with any_runtime.db.read() as session:
        rows = session.scalars(select(Embedding)).all()
    assert {row.dataset_id for row in rows} == set(datasets)
    assert len({(row.folder, row.rows) for row in rows}) == 1


def test_a_crash_costs_no_more_than_a_shard(
    make_settings: MakeSettings, embed: Embed, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime(make_settings(embed_shard=4))
    dataset_id = add_dataset(runtime, PICTURES)
    saved: list[str] = []

    def crash(storage: Any, key: str, array: Any) -> None:
        if "shard" in key:
            if saved:
                raise KeyboardInterrupt
            saved.append(key)
        save_array(storage, key, array)

    monkeypatch.setattr(sharding, "save_array", crash)
    with pytest.raises(KeyboardInterrupt):
        embed(runtime, dataset_id)
    monkeypatch.undo()

    files, forwarded = embed(runtime, dataset_id)

    assert forwarded == 6
    undisturbed, _ = embed(runtime, add_dataset(runtime, PICTURES[::-1]))
    np.testing.assert_allclose(files.features(), undisturbed.features()[::-1], atol=1e-6)
    assert not list((runtime.settings.blob_dir / files.folder).glob("shard-*"))
    runtime.db.dispose()


def test_a_superseded_job_uses_the_features_of_the_first(
    runtime: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other job deletes the shards between this job's last shard and its join."""
    dataset_id, backbone = add_dataset(runtime, PICTURES), tiny_backbone()
    contexts = [claimed(runtime, add_job(runtime, dataset_id).id) for _ in range(2)]
    files = EmbeddingFiles.of(contexts[0], backbone)
    join = embedding.join_features

    def overtaken(*given: Any) -> None:
        monkeypatch.undo()
        embed_dataset(contexts[1], backbone, files)
        join(*given)

    monkeypatch.setattr(embedding, "join_features", overtaken)
    embed_dataset(contexts[0], backbone, files)

    assert files.features().shape == (10, DIM)


def test_a_changed_dataset_fails_the_job(runtime: Runtime, claimed: Claimed) -> None:
    dataset_id, backbone = add_dataset(runtime, PICTURES), tiny_backbone()
    context = claimed(runtime, add_job(runtime, dataset_id).id)
    remove(runtime, dataset_id, [3])

    with pytest.raises(Conflict):
        embed_dataset(context, backbone, EmbeddingFiles.of(context, backbone))


def test_tenants_share_no_features(any_runtime: Runtime, embed: Embed) -> None:
    """Existing features would reveal that another tenant has the same images."""
    ours, theirs = (add_dataset(any_runtime, PICTURES) for _ in range(2))
    embed(any_runtime, ours)
    assert embed(any_runtime, ours)[1] == 0
    with any_runtime.db.write() as session:
        session.get_one(Dataset, theirs).tenant = "another"
    assert embed(any_runtime, theirs)[1] == 10


def test_many_features_get_an_index(
    any_runtime: Runtime, embed: Embed, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset_id = add_dataset(any_runtime, PICTURES)
    files, _ = embed(any_runtime, dataset_id)
    assert not any_runtime.storage.exists(index_key(files.folder))
    for module in (embedding, features):
        monkeypatch.setattr(module, "INDEX_ROWS", 9)
    assert embed(any_runtime, dataset_id)[1] == 0  # also where a crash came between the two
    stored = features.open_features(any_runtime.storage, files.folder)
    assert stored.index is not None
    assert stored.nearest(stored.features[4], 10).rows.tolist() == list(range(10))
