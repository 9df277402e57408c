"""Refused images from a predict job to a new group: kept, gathered, decided upon, learned."""

from collections.abc import Iterator

import numpy as np
import pytest
from sqlalchemy import func, select

from app.core.clusterings.operations import Undo, apply_operation
from app.core.gathering.decisions import Target, accept_proposal, dismiss_proposal
from app.core.gathering.keeping import GATHER_IMAGES
from app.core.jobs.finished import retry_job
from app.core.jobs.requests.gather import GatherCreate
from app.core.jobs.requests.predict import PredictCreate
from app.core.platform.errors import DatasetInUse, InvalidRequest, ProposalDecided
from app.core.platform.settings import Settings
from app.core.platform.tables import (
    EXCLUDED,
    Assignment,
    Cluster,
    Clustering,
    ClusteringOperation,
    Dataset,
    Image,
    Job,
    Proposal,
    RefusedImage,
    WebhookDelivery,
)
from app.core.runtime import Runtime
from tests.conftest import _runtime
from tests.worker.conftest import Claimed
from tests.worker.job_steps import (
    PICTURES,
    assignments,
    cluster_job,
    clustering_of,
    create,
    reload,
    result_of,
)
from tests.worker.tiny import add_dataset, picture
from worker.jobs.cluster import run_cluster
from worker.jobs.gather import run_gather
from worker.jobs.predict import run_predict

WHITE = [picture(n, (250, 250, 250)) for n in range(12)]
BLACK = [picture(n, (5, 5, 5)) for n in range(8)]
HOOK = "https://hooks.example.com/temi"


@pytest.fixture
def service(any_settings: Settings, tiny: None) -> Iterator[Runtime]:
    """Keeps refused images; once for each database."""
    changes = {"keep_refused": 100, "proposal_webhook_url": HOOK}
    yield from _runtime(any_settings.model_copy(update=changes))


@pytest.fixture
def trained(service: Runtime, claimed: Claimed) -> Clustering:
    """Red, green and blue pictures."""
    job = cluster_job(service, add_dataset(service, PICTURES), model_name="colors")
    run_cluster(claimed(service, job.id))
    return clustering_of(service, job)


def predict(service: Runtime, claimed: Claimed, pictures: list[bytes]) -> Job:
    request = PredictCreate(
        kind="predict",
        model="colors",
        dataset_id=add_dataset(service, pictures),
        false_alarm_rate=0.01,
    )
    job = create(service, request)
    run_predict(claimed(service, job.id))
    return job


def gather(service: Runtime, claimed: Claimed) -> Job:
    """Runs the waiting gather job, or a new one."""
    with service.db.read() as session:
        waiting = session.scalars(select(Job).where(Job.kind == "gather", Job.status == "queued"))
        job = waiting.one_or_none()
    job = job or create(service, GatherCreate(kind="gather", model="colors"))
    run_gather(claimed(service, job.id))
    return job


def refresh(service: Runtime, claimed: Claimed) -> None:
    """Runs the job that follows an accepted proposal."""
    with service.db.read() as session:
        job = session.scalars(
            select(Job).where(Job.kind == "predict", Job.status == "queued")
        ).one()
    run_predict(claimed(service, job.id))


def open_proposals(service: Runtime) -> list[Proposal]:
    """The largest first."""
    with service.db.read() as session:
        query = select(Proposal).where(Proposal.status == "open")
        return list(session.scalars(query.order_by(Proposal.size.desc())))


def kept(service: Runtime) -> int:
    with service.db.read() as session:
        return session.scalar(select(func.count()).select_from(RefusedImage)) or 0


def accept(service: Runtime, proposal: Proposal, target: Target) -> Proposal:
    with service.db.write() as session:
        return accept_proposal(session, "default", proposal.id, target, decided_by="anna")


def dismiss(service: Runtime, proposal: Proposal) -> Proposal:
    with service.db.write() as session:
        return dismiss_proposal(session, "default", proposal.id, decided_by="anna")


def members(service: Runtime, clustering: Clustering, cluster_id: int) -> list[str]:
    """The hashes of the images in a group."""
    query = (
        select(Image.sha256)
        .join(Assignment, Assignment.image_id == Image.id)
        .where(Assignment.clustering_id == clustering.id, Assignment.cluster_id == cluster_id)
    )
    with service.db.read() as session:
        return sorted(session.scalars(query))


@pytest.mark.usefixtures("trained")
def test_refused_images_gather_into_groups(service: Runtime, claimed: Claimed) -> None:
    predict(service, claimed, [*PICTURES[:3], *WHITE, *BLACK])
    assert kept(service) == 20
    job = gather(service, claimed)

    white, black = open_proposals(service)
    assert (white.size, black.size) == (12, 8)
    assert 0.9 < white.tightness <= 1
    result = result_of(service, job)
    assert result["model"] == {"name": "colors", "version": 1}
    assert (result["images"], result["proposals"]) == (20, 2)
    assert sorted(result["new_proposals"]) == sorted([white.id, black.id])
    with service.db.read() as session:
        ranks = session.scalars(
            select(RefusedImage.rank)
            .where(RefusedImage.proposal_id == white.id)
            .order_by(RefusedImage.rank)
        ).all()
        (message,) = session.scalars(select(WebhookDelivery)).all()
    assert ranks == list(range(12))
    assert message.url == HOOK
    assert message.body["type"] == "proposals.created"
    assert {one["id"] for one in message.body["data"]["proposals"]} == {white.id, black.id}


@pytest.mark.usefixtures("trained")
def test_a_job_starts_itself_when_enough_have_come(service: Runtime, claimed: Claimed) -> None:
    def waiting() -> int:
        with service.db.read() as session:
            return session.scalar(select(func.count()).where(Job.kind == "gather")) or 0

    some = [picture(n, (250, 250, 250)) for n in range(GATHER_IMAGES)]
    predict(service, claimed, some[:-1])
    assert waiting() == 0
    predict(service, claimed, some)  # those that are known do not count again
    assert waiting() == 1
    predict(service, claimed, BLACK)
    assert waiting() == 1  # one that waits sees them, too


@pytest.mark.usefixtures("trained")
def test_a_proposal_grows_and_is_announced_once(service: Runtime, claimed: Claimed) -> None:
    predict(service, claimed, WHITE[:6])
    gather(service, claimed)
    (first,) = open_proposals(service)
    predict(service, claimed, WHITE)
    job = gather(service, claimed)
    (grown,) = open_proposals(service)
    assert (grown.id, grown.size) == (first.id, 12)
    assert result_of(service, job)["new_proposals"] == []
    with service.db.read() as session:
        assert session.scalar(select(func.count()).select_from(WebhookDelivery)) == 1


def test_an_accepted_proposal_is_a_group(
    service: Runtime, claimed: Claimed, trained: Clustering
) -> None:
    predict(service, claimed, [*WHITE, *BLACK])
    gather(service, claimed)
    white, black = open_proposals(service)

    accepted = accept(service, white, Target(new_cluster="snow"))
    assert (accepted.status, accepted.clustering_id) == ("accepted", trained.id)
    assert (accepted.size, accepted.decided_by) == (12, "anna")
    again = accept(service, white, Target(new_cluster="snow"))
    assert (again.cluster_id, again.revision) == (accepted.cluster_id, accepted.revision)

    with service.db.read() as session:
        dataset = session.get_one(Dataset, trained.dataset_id)
        clustering = session.get_one(Clustering, trained.id)
        group = session.get_one(Cluster, (trained.id, accepted.cluster_id))
        kinds = session.scalars(
            select(ClusteringOperation.kind)
            .where(ClusteringOperation.clustering_id == trained.id)
            .order_by(ClusteringOperation.revision)
        ).all()
    assert (group.label, group.named, group.size) == ("snow", True, 12)
    assert (dataset.image_count, clustering.image_count) == (42, 42)
    assert kinds == ["extend", "move"]
    assert kept(service) == 8  # the black ones

    with pytest.raises(ProposalDecided):
        accept(service, white, Target(new_cluster="chalk"))
    with pytest.raises(ProposalDecided):
        dismiss(service, white)

    # The next one does not wait for the job that follows the first.
    more = accept(service, black, Target(cluster_id=accepted.cluster_id))
    assert more.cluster_id == accepted.cluster_id
    assert len(members(service, trained, accepted.cluster_id or 0)) == 20
    refresh(service, claimed)
    with service.db.read() as session:
        clustering = session.get_one(Clustering, trained.id)
    assert clustering.revision == more.revision  # it adds features, not a revision
    folder = clustering.embedding_folder
    with service.storage.path(f"{folder}/features.npy").open("rb") as file:
        assert len(np.load(file)) == 50


def test_the_next_training_knows_the_new_group(
    service: Runtime, claimed: Claimed, trained: Clustering
) -> None:
    predict(service, claimed, WHITE)
    gather(service, claimed)
    accepted = accept(service, open_proposals(service)[0], Target(new_cluster="snow"))
    refresh(service, claimed)

    job = cluster_job(
        service,
        trained.dataset_id,
        model_name="colors",
        n_clusters="auto",
        learn_from=trained.id,
    )
    run_cluster(claimed(service, job.id))

    learned = clustering_of(service, job)
    with service.db.read() as session:
        names = session.scalars(
            select(Cluster.label).where(Cluster.clustering_id == learned.id, Cluster.active)
        ).all()
    assert "snow" in names
    before = members(service, trained, accepted.cluster_id or 0)
    assert members(service, learned, accepted.cluster_id or 0) == before
    found = predict(service, claimed, [picture(99, (250, 250, 250))])
    assert [cluster for cluster, _ in assignments(service, found)] != [EXCLUDED]


def test_an_acceptance_can_be_undone(
    service: Runtime, claimed: Claimed, trained: Clustering
) -> None:
    predict(service, claimed, WHITE)
    gather(service, claimed)
    accepted = accept(service, open_proposals(service)[0], Target(new_cluster="snow"))
    with service.db.write() as session:
        apply_operation(session, "default", trained.id, Undo())
    assert members(service, trained, accepted.cluster_id or 0) == []
    assert len(members(service, trained, EXCLUDED)) == 12


@pytest.mark.usefixtures("trained")
def test_a_dismissed_proposal_does_not_come_back(service: Runtime, claimed: Claimed) -> None:
    predict(service, claimed, WHITE)
    gather(service, claimed)
    (proposal,) = open_proposals(service)
    assert dismiss(service, proposal).status == "dismissed"
    assert dismiss(service, proposal).status == "dismissed"
    assert kept(service) == 0
    with pytest.raises(ProposalDecided):
        accept(service, proposal, Target(new_cluster="snow"))

    predict(service, claimed, [picture(n, (248, 248, 248)) for n in range(20, 30)] + BLACK)
    job = gather(service, claimed)
    (black,) = open_proposals(service)
    assert black.size == 8
    assert result_of(service, job)["dismissed_images"] == 10
    assert kept(service) == 8


def test_more_of_an_accepted_kind_is_proposed_for_its_group(
    service: Runtime, claimed: Claimed, trained: Clustering
) -> None:
    predict(service, claimed, WHITE)
    gather(service, claimed)
    accepted = accept(service, open_proposals(service)[0], Target(new_cluster="snow"))
    refresh(service, claimed)
    predict(service, claimed, WHITE)  # they have their group
    assert kept(service) == 0
    predict(service, claimed, [picture(n, (248, 248, 248)) for n in range(20, 30)])
    gather(service, claimed)
    (more,) = open_proposals(service)
    assert more.suggested_cluster_id == accepted.cluster_id
    assert trained.id == accepted.clustering_id


def test_a_dataset_in_use_does_not_change(
    service: Runtime, claimed: Claimed, trained: Clustering
) -> None:
    predict(service, claimed, WHITE)
    gather(service, claimed)
    (proposal,) = open_proposals(service)
    cluster_job(service, trained.dataset_id, model_name="colors")
    with pytest.raises(DatasetInUse):
        accept(service, proposal, Target(new_cluster="snow"))
    assert [one.id for one in open_proposals(service)] == [proposal.id]
    assert kept(service) == 12


@pytest.mark.usefixtures("trained")
def test_an_unknown_group_changes_nothing(service: Runtime, claimed: Claimed) -> None:
    predict(service, claimed, WHITE)
    gather(service, claimed)
    (proposal,) = open_proposals(service)
    with pytest.raises(InvalidRequest, match="there is no cluster 99"):
        accept(service, proposal, Target(cluster_id=99))
    assert (open_proposals(service)[0].size, kept(service)) == (12, 12)


@pytest.mark.usefixtures("trained")
def test_a_decision_during_the_job_counts(service: Runtime, claimed: Claimed) -> None:
    """The job has read the images when a person decides."""
    predict(service, claimed, WHITE)
    gather(service, claimed)
    (proposal,) = open_proposals(service)
    job = create(service, GatherCreate(kind="gather", model="colors"))
    context = claimed(service, job.id)
    send = context.start_progress

    def decide_first(stage: str, total: int, completed: int = 0) -> object:
        dismiss(service, proposal)
        return send(stage, total, completed)

    object.__setattr__(context, "start_progress", decide_first)
    run_gather(context)
    assert open_proposals(service) == []
    assert reload(service, job).status == "succeeded"


@pytest.mark.usefixtures("tiny")
def test_nothing_is_kept_by_default(any_runtime: Runtime, claimed: Claimed) -> None:
    job = cluster_job(any_runtime, add_dataset(any_runtime, PICTURES), model_name="colors")
    run_cluster(claimed(any_runtime, job.id))
    predict(any_runtime, claimed, WHITE)
    assert kept(any_runtime) == 0


def test_a_retry_keeps_each_image_once(
    service: Runtime, claimed: Claimed, trained: Clustering
) -> None:
    job = predict(service, claimed, WHITE)
    with service.db.write() as session:
        session.get_one(Job, job.id).status = "failed"
    with service.db.write() as session:
        retry_job(session, service.storage, "default", job.id)
    run_predict(claimed(service, job.id))
    assert kept(service) == 12
    assert trained.model_name == "colors"
