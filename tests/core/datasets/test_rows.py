"""Datasets: pages, counts, and the fingerprint that embeddings depend on."""

import pytest
from sqlalchemy import update

from app.core.datasets import rows as datasets
from app.core.jobs.lifecycle import create_job
from app.core.platform.errors import DatasetInUse, NotFound
from app.core.platform.ids import new_id
from app.core.platform.tables import Dataset, DatasetIssue, Image
from app.core.runtime import Runtime
from tests.core.conftest import MakeDataset

_HASHES = [f"{number:064x}" for number in range(7)]


def _fingerprint(runtime: Runtime, dataset: Dataset) -> str:
    with runtime.db.read() as session:
        return datasets.fingerprint(session, dataset.id)


def test_images_are_read_in_pages_in_order(
    any_runtime: Runtime, make_dataset: MakeDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "_PAGE", 3)
    dataset = make_dataset(_HASHES)
    make_dataset(_HASHES[:2])  # another one's images stay out
    with any_runtime.db.read() as session:
        pages = list(datasets.iterate_images(session, dataset.id))
        rest = list(datasets.iterate_images(session, dataset.id, after_position=4))
        assert not list(session)  # a set of millions would fill the session
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [image.sha256 for page in pages for image in page] == _HASHES
    assert [image.sha256 for page in rest for image in page] == _HASHES[5:]


def test_an_empty_dataset_has_no_page(any_runtime: Runtime, make_dataset: MakeDataset) -> None:
    dataset = make_dataset()
    with any_runtime.db.read() as session:
        assert list(datasets.iterate_images(session, dataset.id)) == []
        assert datasets.last_position(session, dataset.id) == -1
        assert datasets.count_rows(session, dataset.id) == (0, 0, 0)


def test_the_fingerprint_is_of_bytes_and_order_only(
    any_runtime: Runtime, make_dataset: MakeDataset
) -> None:
    one, same = make_dataset(_HASHES), make_dataset(_HASHES, names="other")
    assert _fingerprint(any_runtime, one) == _fingerprint(any_runtime, same)
    with any_runtime.db.write() as session:  # gaps in the positions are bad files, not images
        session.execute(
            update(Image)
            .where(Image.dataset_id == same.id)
            .values(position=Image.position + 100, label="x")
        )
    assert _fingerprint(any_runtime, one) == _fingerprint(any_runtime, same)
    others = [_HASHES[::-1], _HASHES[:-1], [*_HASHES, _HASHES[0]], []]
    found = {_fingerprint(any_runtime, make_dataset(hashes)) for hashes in [_HASHES, *others]}
    assert len(found) == 1 + len(others)


def test_the_last_position_is_an_images_or_an_issues(
    any_runtime: Runtime, make_dataset: MakeDataset
) -> None:
    dataset = make_dataset(_HASHES[:3])
    with any_runtime.db.write() as session:
        assert datasets.last_position(session, dataset.id) == 2
        session.add(
            DatasetIssue(
                id=new_id("iss"),
                dataset_id=dataset.id,
                position=9,
                name="bad",
                code="image_undecodable",
                detail="d",
            )
        )
    with any_runtime.db.write() as session:
        assert datasets.last_position(session, dataset.id) == 9
        session.execute(update(Image).where(Image.position == 0).values(label="cat"))
        assert datasets.count_rows(session, dataset.id) == (3, 1, 1)


_ERROR = {"code": "c", "detail": "d"}


def _abandon(runtime: Runtime, dataset: Dataset, end_position: int) -> Dataset:
    with runtime.db.write() as session:
        row = session.get_one(Dataset, dataset.id)
        row.end_position = row.image_count = end_position
        row.status = "ingesting"
        session.flush()
        datasets.abandon_ingest(session, dataset.id, _ERROR)
    with runtime.db.read() as session:
        return datasets.get_dataset(session, "t", dataset.id)


def test_a_failed_first_ingest_leaves_no_image(
    any_runtime: Runtime, make_dataset: MakeDataset
) -> None:
    failed = _abandon(any_runtime, make_dataset(_HASHES), 0)
    assert (failed.status, failed.error) == ("failed", _ERROR)
    with any_runtime.db.read() as session:
        assert datasets.count_rows(session, failed.id)[0] == 0


def test_a_failed_later_ingest_leaves_the_dataset_unchanged(
    any_runtime: Runtime, make_dataset: MakeDataset
) -> None:
    kept = _abandon(any_runtime, make_dataset(_HASHES), 2)
    assert (kept.status, kept.error) == ("ready", None)
    with any_runtime.db.read() as session:
        assert [i.position for page in datasets.iterate_images(session, kept.id) for i in page] == [
            0,
            1,
        ]


def test_a_dataset_that_a_job_works_on_is_in_use(
    any_runtime: Runtime, make_dataset: MakeDataset
) -> None:
    dataset = make_dataset(_HASHES)
    with any_runtime.db.write() as session:
        datasets.check_unused(session, dataset)
        create_job(session, tenant="t", kind="cluster", dataset=dataset, config={})
        with pytest.raises(DatasetInUse):
            datasets.check_unused(session, dataset)


def test_another_tenants_dataset_and_image_are_not_found(
    any_runtime: Runtime, make_dataset: MakeDataset
) -> None:
    dataset = make_dataset(_HASHES[:1], tenant="other")
    with any_runtime.db.read() as session:
        image = next(datasets.iterate_images(session, dataset.id))[0]
        assert datasets.get_image(session, "other", image.id).id == image.id
        with pytest.raises(NotFound):
            datasets.get_dataset(session, "t", dataset.id)
        with pytest.raises(NotFound):
            datasets.get_image(session, "t", image.id)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("cats/a.png", "cats"),
        ("train/cats/a.png", "cats"),
        ("a.png", None),
        ("cats\\a.png", "cats"),
        ("ねこ/a.png", "ねこ"),
    ],
)
def test_the_folder_is_the_label(name: str, label: str | None) -> None:
    assert datasets.folder_label(name) == label
