"""Summaries of clusters: everybody counted once, the surest first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from app.core import clusterings
from app.core.clusterings import ClusterSummary, summarize
from app.core.datasets import iterate_images
from app.core.errors import NotFound
from app.core.ids import new_id
from app.core.runtime import Runtime
from app.core.tables import Assignment, Cluster, Clustering, Job
from tests.core.conftest import MakeJob

_cases = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n - 1), st.floats(0, 1, width=32)), max_size=60),
    )
)


@given(_cases)
def test_every_image_is_in_one_cluster(case: tuple[int, list[tuple[int, float]]]) -> None:
    n_clusters, rows = case
    assigned = np.array([cluster for cluster, _ in rows], dtype=np.int32)
    probability = np.array([sure for _, sure in rows], dtype=np.float32)
    summaries = summarize(assigned, probability, n_clusters)
    assert [s.cluster_id for s in summaries] == list(range(n_clusters))
    assert sum(s.size for s in summaries) == len(rows)
    for summary in summaries:
        members = np.flatnonzero(assigned == summary.cluster_id)
        assert summary.size == len(members)
        assert len(summary.examples) == min(8, len(members))
        assert set(summary.examples) <= set(members.tolist())
        if len(members) == 0:
            assert summary.mean_probability is None
        else:
            assert summary.mean_probability == pytest.approx(probability[members].mean())
            shown = probability[summary.examples]
            assert (np.diff(shown) <= 0).all()
            assert np.sort(shown).tolist() == np.sort(probability[members])[-len(shown) :].tolist()


def _store(runtime: Runtime, job: Job, summaries: list[ClusterSummary]) -> str:
    clustering_id = new_id("cl")
    with runtime.db.write() as session:
        ids = [i.id for page in iterate_images(session, job.dataset_id) for i in page]
        session.add(
            Clustering(
                id=clustering_id,
                tenant="t",
                job_id=job.id,
                dataset_id=job.dataset_id,
                model_name="m",
                model_version=1,
                n_clusters=len(summaries),
                image_count=len(ids),
                metrics={},
            )
        )
        session.flush()
        example = {"image_id": ids[0], "name": "image 0", "probability": 0.5}
        clusterings.add_clusters(session, clustering_id, summaries, {0: example})
        rows = ((image_id, np.int32(0), np.float32(0.5)) for image_id in ids)
        clusterings.add_assignments(session, clustering_id, rows)  # type: ignore[arg-type]
    return clustering_id


def test_a_clustering_is_stored_whole(any_runtime: Runtime, make_job: MakeJob) -> None:
    summaries = summarize(np.array([0]), np.array([0.5]), 2)
    clustering_id = _store(any_runtime, make_job(), summaries)
    with any_runtime.db.read() as session:
        assert clusterings.get_clustering(session, "t", clustering_id).n_clusters == 2
        rows = session.scalars(select(Cluster).order_by(Cluster.cluster_id)).all()
        assert [(row.label, row.size) for row in rows] == [("cluster 0", 1), ("cluster 1", 0)]
        assert rows[0].examples[0]["name"] == "image 0"
        assert rows[1].mean_probability is None
        assert session.scalar(select(func.count()).select_from(Assignment)) == 1
        with pytest.raises(NotFound):
            clusterings.get_clustering(session, "other", clustering_id)


def test_assignments_are_written_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusterings, "_INSERT_ROWS", 3)
    rows = [(f"img_{i}", 0, 0.5) for i in range(7)]
    assert [len(chunk) for chunk in clusterings._chunks(rows)] == [3, 3, 1]
