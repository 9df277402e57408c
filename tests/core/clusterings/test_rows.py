"""Rows of clusterings: sizes, and the order of images."""

import pytest
from sqlalchemy import event, func, select

from app.core.clusterings import rows as clusterings
from app.core.clusterings.rows import Assigned, add_assignments, add_clusters, refresh_clusters
from app.core.datasets.rows import iterate_images
from app.core.platform.errors import NotFound
from app.core.platform.ids import new_id
from app.core.platform.tables import Assignment, Cluster, Clustering, Dataset
from app.core.runtime import Runtime
from tests.core.clustering_rows import store
from tests.core.conftest import MakeDataset

_SURE = [0.5, 0.9, 0.7]


@pytest.fixture
def clustering_id(any_runtime: Runtime, make_dataset: MakeDataset) -> str:
    """Three images: two in cluster 0, one in cluster 1, none in cluster 2."""
    dataset = make_dataset(["00" * 32, "11" * 32, "22" * 32])
    with any_runtime.db.write() as session:
        clustering = Clustering(
            id=new_id("cl"),
            tenant="t",
            dataset_id=session.get_one(Dataset, dataset.id).id,
            model_name="m",
            model_version=1,
            n_clusters=3,
            image_count=3,
            metrics={},
        )
        session.add(clustering)
        session.flush()
        ids = [i.id for page in iterate_images(session, dataset.id) for i in page]
        rows = (
            Assigned(image_id, int(row == 2), _SURE[row], 0.1, 0.2)
            for row, image_id in enumerate(ids)
        )
        add_clusters(session, clustering.id, range(3))
        add_assignments(session, clustering.id, rows)
        refresh_clusters(session, clustering.id)
    return clustering.id


def test_a_clustering_is_stored_whole(any_runtime: Runtime, clustering_id: str) -> None:
    with any_runtime.db.read() as session:
        assert clusterings.get_clustering(session, "t", clustering_id).n_clusters == 3
        rows = session.scalars(select(Cluster).order_by(Cluster.cluster_id)).all()
        assert [(row.label, row.size) for row in rows] == [
            ("cluster 0", 2),
            ("cluster 1", 1),
            ("cluster 2", 0),
        ]
        assert [row.mean_probability for row in rows] == [pytest.approx(0.7), 0.7, None]
        assert session.scalar(select(func.count()).select_from(Assignment)) == 3
        with pytest.raises(NotFound):
            clusterings.get_clustering(session, "other", clustering_id)


def test_the_ranked_images_come_first(any_runtime: Runtime, clustering_id: str) -> None:
    with any_runtime.db.read() as session:
        found = clusterings.ranked_images(session, clustering_id, 0)
        assert [(image.name, a.probability) for a, image in found] == [
            ("image 1", 0.9),
            ("image 0", 0.5),
        ]
        assert len(clusterings.ranked_images(session, clustering_id, 0, limit=1)) == 1
        assert clusterings.ranked_images(session, clustering_id, 2) == []


def test_examples_of_many_clusters(any_runtime: Runtime) -> None:
    """They are those that each cluster has by itself, in a few statements."""
    stored = store(any_runtime, [n * n % 7 for n in range(60)], n_clusters=7)
    statements: list[str] = []
    event.listen(
        any_runtime.db.engine,
        "before_cursor_execute",
        lambda _connection, _cursor, statement, *_: statements.append(statement),
    )
    with any_runtime.db.read() as session:
        found = clusterings.examples(session, stored.clustering_id, range(7), 5)
        assert sum("SELECT" in statement for statement in statements) == 2
        for number in range(7):
            ranked = clusterings.ranked_images(session, stored.clustering_id, number, limit=5)
            expected = [(image.id, image.name, row.probability) for row, image in ranked]
            assert found[number] == expected
        assert found[3] == []  # not a square
        none = clusterings.examples(session, stored.clustering_id, [0, 1], 0)
        assert none == {0: [], 1: []}
