"""Counts of predictions say whether images are still like those of the training."""

import numpy as np
import pytest

from app.core.models import registry
from app.core.models.deletion import delete_version
from app.core.models.drift import Bucket, Drift, add_counts, read_drift, stability_index, tenth
from app.core.platform.tables import Model, ModelVersion, PredictionCount
from app.core.runtime import Runtime
from tests.api.conftest import store_clustering
from tests.core.conftest import MakeDataset


@pytest.fixture
def version(any_runtime: Runtime, make_dataset: MakeDataset) -> ModelVersion:
    store_clustering(any_runtime, make_dataset([f"{i:064x}" for i in range(40)]).id)
    with any_runtime.db.read() as session:
        return registry.resolve(session, "t", "cats-dogs")[1]


def _add(runtime: Runtime, version: ModelVersion, counts: dict[Bucket, int]) -> None:
    with runtime.db.write() as session:
        add_counts(session, version.model_id, version.version, counts)


def _read(runtime: Runtime, version: ModelVersion, days: int = 30) -> Drift:
    with runtime.db.read() as session:
        return read_drift(session, version, days)


def _novelty(counts: list[int]) -> dict[Bucket, int]:
    return {("novelty", bucket): images for bucket, images in enumerate(counts)}


def test_counts_add_up(any_runtime: Runtime, version: ModelVersion) -> None:
    for _ in range(2):
        counts = {("cluster", 0): 3, ("cluster", 1): 1, ("probability", 9): 4, ("novelty", 9): 2}
        _add(any_runtime, version, counts)
    found = _read(any_runtime, version)
    assert found.images == 8
    assert [(share.cluster_id, share.images, share.trained) for share in found.clusters] == [
        *((0, 6, 20), (1, 2, 20), (2, 0, 0)),
    ]
    (day,) = found.days
    assert (day.images, day.novel) == (8, 4)
    assert found.verdict == "too_few"


def test_older_days_are_left_out(any_runtime: Runtime, version: ModelVersion) -> None:
    _add(any_runtime, version, {("probability", 5): 4})
    with any_runtime.db.write() as session:
        today = session.query(PredictionCount).one().day
        session.add(
            PredictionCount(
                model_id=version.model_id,
                version=1,
                day=today - 7,
                kind="probability",
                bucket=1,
                images=9,
            )
        )
    assert [day.images for day in _read(any_runtime, version).days] == [9, 4]
    assert [day.images for day in _read(any_runtime, version, days=7).days] == [4]


@pytest.mark.parametrize(
    ("novelty", "verdict"),
    [
        ([9] * 10, "too_few"),
        ([100] * 10, "same"),
        ([90, 95, 105, 110, 100, 100, 95, 105, 100, 100], "same"),
        ([30, 50, 70, 80, 90, 100, 110, 130, 160, 180], "shifted"),
        ([0, 0, 0, 0, 0, 0, 0, 0, 100, 900], "changed"),
        ([1000, 0, 0, 0, 0, 0, 0, 0, 0, 0], "same"),  # the training images themselves
    ],
)
def test_the_verdict(
    any_runtime: Runtime, version: ModelVersion, novelty: list[int], verdict: str
) -> None:
    _add(any_runtime, version, _novelty(novelty))
    found = _read(any_runtime, version)
    assert found.novelty == novelty
    assert found.verdict == verdict
    assert found.summary


def test_clusters_that_come_more_often_shift(any_runtime: Runtime, version: ModelVersion) -> None:
    _add(any_runtime, version, {("cluster", 0): 200, ("cluster", 1): 200})
    even = _read(any_runtime, version).cluster_shift
    _add(any_runtime, version, {("cluster", 0): 2000})
    uneven = _read(any_runtime, version).cluster_shift
    assert even is not None
    assert uneven is not None
    assert even < 0.1 < 0.5 < uneven


def test_a_version_without_predictions(any_runtime: Runtime, version: ModelVersion) -> None:
    found = _read(any_runtime, version)
    assert (found.images, found.novelty_shift, found.verdict) == (0, None, "too_few")


def test_a_deleted_version_has_no_counts(any_runtime: Runtime, version: ModelVersion) -> None:
    _add(any_runtime, version, {("cluster", 0): 1})
    with any_runtime.db.write() as session:
        delete_version(session, "t", "cats-dogs", 1)
    _add(any_runtime, version, {("cluster", 0): 1})
    with any_runtime.db.read() as session:
        assert session.query(PredictionCount).count() == 0
        assert session.query(Model).count() == 1


def test_the_stability_index() -> None:
    assert stability_index([5, 5], [50, 50]) == pytest.approx(0, abs=1e-6)
    shares = np.array([0.2, 0.8]), np.array([0.5, 0.5])
    expected = ((shares[0] - shares[1]) * np.log(shares[0] / shares[1])).sum()
    assert stability_index([20_000, 80_000], [50_000, 50_000]) == pytest.approx(expected, rel=1e-3)


def test_tenths() -> None:
    assert [tenth(value) for value in (0.0, 0.0999, 0.1, 0.95, 1.0)] == [0, 0, 1, 9, 9]
