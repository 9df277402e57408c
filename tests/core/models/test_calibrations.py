"""Versions are calibrated by the reviews of their clusterings."""

import numpy as np
import pytest

from app.core.models import calibrations, registry
from app.core.models.calibrations import (
    add_calibration,
    current_calibration,
    read_reviews,
    reliability,
    select_calibrations,
)
from app.core.models.deletion import delete_version
from app.core.platform.errors import TooFewReviews
from app.core.platform.tables import Clustering, Model, ModelCalibration, ModelVersion
from app.core.runtime import Runtime
from temi.calibration import IDENTITY, Calibration
from tests.api.conftest import store_clustering
from tests.core.conftest import MakeDataset
from tests.reviews import add_reviews

IMAGES = 60


@pytest.fixture
def clustering_id(any_runtime: Runtime, make_dataset: MakeDataset) -> str:
    dataset = make_dataset([f"{i:064x}" for i in range(IMAGES)])
    return store_clustering(any_runtime, dataset.id)


def _version(runtime: Runtime) -> tuple[Model, ModelVersion]:
    with runtime.db.read() as session:
        return registry.resolve(session, "t", "cats-dogs")


def _calibrate(runtime: Runtime) -> ModelCalibration:
    with runtime.db.write() as session:
        return add_calibration(session, *registry.resolve(session, "t", "cats-dogs"), "anna")


def _current(runtime: Runtime) -> Calibration:
    with runtime.db.read() as session:
        return current_calibration(session, registry.resolve(session, "t", "cats-dogs")[1])


def test_the_newest_fit_is_used(any_runtime: Runtime, clustering_id: str) -> None:
    assert _current(any_runtime) == IDENTITY  # the manifest has none
    add_reviews(any_runtime, clustering_id, lambda rank: rank % 2 == 0)
    first = _calibrate(any_runtime)
    assert (first.number, first.reviews, first.created_by) == (1, IMAGES, "anna")
    assert _current(any_runtime) == Calibration(slope=first.slope, intercept=first.intercept)
    assert float(_current(any_runtime).apply(0.7)) == pytest.approx(0.5, abs=0.1)
    assert first.error_after < first.error_before
    second = _calibrate(any_runtime)
    assert (second.number, second.slope) == (2, first.slope)  # the same reviews
    assert second.error_before < first.error_before
    with any_runtime.db.read() as session:
        found = session.scalars(select_calibrations(_version(any_runtime)[1])).all()
    assert {row.number for row in found} == {1, 2}


def test_the_manifest_has_the_calibration_of_the_training(
    any_runtime: Runtime, clustering_id: str
) -> None:
    with any_runtime.db.write() as session:
        _, version = registry.resolve(session, "t", "cats-dogs")
        version.manifest = version.manifest | {"calibration": {"slope": 0.5, "intercept": -0.25}}
    assert _current(any_runtime) == Calibration(slope=0.5, intercept=-0.25)
    add_reviews(any_runtime, clustering_id, lambda _: True)
    assert _calibrate(any_runtime).error_before > 0.2


def test_reviews_are_of_the_raw_probability(any_runtime: Runtime, clustering_id: str) -> None:
    """Of a clustering whose probabilities are calibrated, too."""
    used = Calibration(slope=2.0, intercept=-1.0)
    with any_runtime.db.write() as session:
        row = session.get_one(Clustering, clustering_id)
        row.metrics = row.metrics | {"calibration": {"slope": 2.0, "intercept": -1.0}}
    add_reviews(any_runtime, clustering_id, lambda rank: rank < 10)
    with any_runtime.db.read() as session:
        found = read_reviews(session, *registry.resolve(session, "t", "cats-dogs"))
    stored = np.linspace(0.5, 0.9, IMAGES)
    np.testing.assert_allclose(np.sort(found.probability), used.invert(stored), rtol=1e-9)
    assert found.right.sum() == 10
    assert found.right[np.argsort(-found.probability)[:10]].all()


def test_a_random_sample_is_preferred(
    any_runtime: Runtime, clustering_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images that were chosen for their gain are harder than others."""
    add_reviews(
        any_runtime, clustering_id, lambda rank: rank % 2 == 0, sampled=lambda rank: rank % 2 == 0
    )

    def shares() -> tuple[int, float]:
        with any_runtime.db.read() as session:
            found = read_reviews(session, *registry.resolve(session, "t", "cats-dogs"))
        return len(found.right), float(found.right.mean())

    assert shares() == (IMAGES, 0.5)
    monkeypatch.setattr(calibrations, "_ENOUGH_SAMPLED", IMAGES // 2)
    assert shares() == (IMAGES // 2, 1.0)


def test_reviews_of_other_versions_do_not_count(
    any_runtime: Runtime, clustering_id: str, make_dataset: MakeDataset
) -> None:
    add_reviews(any_runtime, clustering_id, lambda _: True)
    store_clustering(any_runtime, make_dataset(["aa" * 32]).id)  # version 2
    with any_runtime.db.read() as session:
        model, version = registry.resolve(session, "t", "cats-dogs")
        assert version.version == 2
        assert reliability(session, model, version, IDENTITY) is None
        first = registry.get_version(session, model, 1)
        found = reliability(session, model, first, IDENTITY)
    assert found is not None
    assert found.images == IMAGES


def test_few_reviews_are_refused(any_runtime: Runtime, make_dataset: MakeDataset) -> None:
    few = store_clustering(any_runtime, make_dataset(["ab" * 32] * 19).id)
    add_reviews(any_runtime, few, lambda _: True)
    with pytest.raises(TooFewReviews, match="has 19 reviewed images; a calibration needs at least"):
        _calibrate(any_runtime)


def test_calibrations_are_deleted_with_their_version(
    any_runtime: Runtime, clustering_id: str
) -> None:
    add_reviews(any_runtime, clustering_id, lambda _: True)
    _calibrate(any_runtime)
    with any_runtime.db.write() as session:
        delete_version(session, "t", "cats-dogs", 1)
    with any_runtime.db.read() as session:
        assert session.query(ModelCalibration).count() == 0
