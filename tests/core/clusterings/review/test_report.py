"""The report: purity, finished labels, and what is left to do."""

import pytest

from app.core.clusterings.operations import Rename
from app.core.clusterings.review.report import pure_clusters
from app.core.clusterings.rows import get_clustering
from app.core.platform.tables import EXCLUDED
from tests.core.clustering_rows import TENANT, edit
from tests.core.clusterings.review.conftest import Reviewing

DRAWN = [image for image in range(120) if image // 3 % 2]  # of all probabilities


def test_before_any_answer_it_says_that_it_believes_the_model(reviewing: Reviewing) -> None:
    report = reviewing.report(min_purity=0.9)
    assert (report.images, report.reviewed_images, report.finished_images) == (120, 0, 0)
    row = report.clusters[0]
    assert (row.basis, row.lower, row.meets) == ("probabilities", None, False)
    assert row.purity == pytest.approx(0.65, abs=0.02)  # the mean probability
    assert report.clusters[3].purity is None  # empty
    assert report.forecast.basis == "probabilities"
    assert "or better, if the model's probabilities are right." in report.forecast.summary


def test_wrong_images_count_until_they_are_moved(reviewing: Reviewing) -> None:
    reviewing.say_all((image, 0, None if image < 12 else 0) for image in range(0, 120, 3))
    row = reviewing.report().clusters[0]
    assert (row.size, row.reviewed, row.wrong, row.sampled) == (40, 40, 4, 40)
    assert row.purity == pytest.approx(0.9)
    assert (row.lower, row.upper) == (row.purity, row.purity)
    assert not row.meets
    reviewing.say_all((image, 0, EXCLUDED) for image in range(0, 12, 3))
    row = reviewing.report().clusters[0]
    assert (row.size, row.wrong, row.purity, row.meets) == (36, 0, 1.0, True)


def test_confirmed_images_of_other_clusters_are_finished(reviewing: Reviewing) -> None:
    reviewing.say(0, 0, 0)
    reviewing.say(3, 0, None)
    reviewing.say(1, 1, EXCLUDED)
    report = reviewing.report()
    assert report.finished_images == 2
    assert report.reviewed_images == 2  # of those in clusters


def test_the_forecast_names_groups_and_photos(reviewing: Reviewing) -> None:
    edit(reviewing.runtime, reviewing.stored, Rename(cluster_id=0, label="cats"))
    reviewing.say_all((image, image % 3, image % 3) for image in DRAWN)
    report = reviewing.report()
    assert report.forecast.basis == "answers"
    assert 0 < report.forecast.answers <= 60
    assert report.forecast.clusters_to_name == 2
    assert report.forecast.share == pytest.approx(1, abs=0.01)
    answers = report.forecast.answers
    assert report.forecast.summary == (
        f"Name 2 groups, review {answers} photos: 100% of the collection at 95% purity or better."
    )
    less = reviewing.report(min_purity=0.8)
    assert less.forecast.answers < answers


def test_mixed_clusters_are_left_out_of_the_forecast(reviewing: Reviewing) -> None:
    mixed = [(image, image % 3, None if image % 12 == 3 else image % 3) for image in DRAWN]
    reviewing.say_all(mixed)
    forecast = reviewing.report().forecast
    assert forecast.clusters_left == 1
    assert forecast.share < 0.8
    assert forecast.summary.endswith("1 group needs an answer about nearly every photo.")


def test_pure_clusters_are_those_whose_lower_bound_reaches_the_purity(
    reviewing: Reviewing,
) -> None:
    some = [image for image in range(0, 120, 3) if image % 8]
    reviewing.say_all((image, 0, 0) for image in some)
    reviewing.say_all(((image + 1, 1, 1) for image in some), sample=False)  # chosen, not drawn
    with reviewing.runtime.db.read() as session:
        clustering = get_clustering(session, TENANT, reviewing.id)
        assert pure_clusters(session, clustering, 0.95) == [0]
        assert pure_clusters(session, clustering, 0.999) == []
