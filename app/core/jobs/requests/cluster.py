"""The request for a clustering."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import ConfigDict, Field
from sqlalchemy.orm import Session

from app.core.jobs.kinds import COUNT_STAGE, KINDS
from app.core.jobs.lifecycle import create_job
from app.core.jobs.limits import training_memory
from app.core.jobs.requests import base
from app.core.jobs.requests.learning import find_source, source_backbone
from app.core.jobs.requests.training import (
    check_neighbor_count,
    check_steps,
    config_settings,
    count_training_images,
    resolve_training,
)
from app.core.models.backbones import check_usable_backbone
from app.core.models.names import check_name, slug
from app.core.platform.errors import InvalidRequest
from app.core.platform.settings import Settings
from app.core.platform.tables import Dataset, Job
from temi.backbones.catalog import DEFAULT_BACKBONE
from temi.config import AUTO_CLUSTERS, MAX_AUTO_CLUSTERS, TrainConfig


class ClusterCreate(base.JobCreateBase):
    """Cluster the images of a dataset and register the model."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"kind": "cluster", "dataset_id": base.EXAMPLE_DATASET_ID, "n_clusters": 8}
            ]
        }
    )

    kind: Literal["cluster"] = "cluster"
    dataset_id: base.DatasetId
    n_clusters: base.ClusterCountOrAuto = Field(
        default="auto",
        description="Number of clusters. `auto` finds it: numbers up to "
        f"{MAX_AUTO_CLUSTERS} are compared by how stable their clusters are, and the clustering's "
        "`metrics.count` has the figures of each and up to three plausible numbers. With "
        "`learn_from`, `auto` is the number of its clusters that have images, and no less is "
        "allowed.",
    )
    learn_from: str | None = Field(
        default=None,
        max_length=40,
        description="A clustering of the same dataset that people have reviewed or edited. The new "
        "one continues its clusters and their names and learns from what people said until now: "
        "answers of reviews, moves, exclusions, merges and splits, all of which it keeps. "
        "`metrics.learning` counts them. The defaults of `backbone`, `precision` and `model_name` "
        "are those of its model.",
        examples=["cl_01k9z3m4q5r6s7t8v9w0x1y2z3"],
    )
    model_name: base.ModelName = None
    backbone: base.Backbone = DEFAULT_BACKBONE
    precision: base.Precision = "float32"
    exclude_duplicates: base.ExcludedDuplicates = "none"
    recipe: Literal["default", "paper"] = Field(
        default="default",
        description="`paper` trains as in the paper (50 heads, 200 epochs) and takes many times "
        "as long.",
    )
    objective: base.Objective = None
    select: base.Select = None
    n_heads: base.HeadCount = None
    n_neighbors: base.NeighborCount = None
    beta: base.Beta = None
    steps: base.Steps = None
    epochs: base.Epochs = None
    seed: base.Seed = 0

    def check(self, settings: Settings) -> None:
        check_usable_backbone(self.backbone, settings)

    def create(self, session: Session, tenant: str) -> Job:
        dataset = base.get_ready_dataset(session, tenant, self.dataset_id)
        if self.learn_from is not None:
            return self._create_learning(session, tenant, dataset, self.learn_from)
        return self._create(session, tenant, dataset, slug(dataset.name))

    def _create_learning(
        self, session: Session, tenant: str, dataset: Dataset, learn_from: str
    ) -> Job:
        source = find_source(session, tenant, dataset, learn_from)
        wanted = None if self.n_clusters == AUTO_CLUSTERS else int(self.n_clusters)
        changes: dict[str, Any] = {"n_clusters": source.n_clusters(wanted)}
        like = source_backbone(session, tenant, source)
        if like is not None:
            changes |= dict(zip(("backbone", "precision"), like, strict=True))
        given = {name: getattr(self, name) for name in self.model_fields_set - {"n_clusters"}}
        request = self.model_copy(update=changes | given)
        if request.select == "lowest_loss" or request.recipe == "paper":
            field = "select" if request.select == "lowest_loss" else "recipe"
            raise InvalidRequest.field(field, "must not be set together with learn_from")
        name = source.clustering.model_name
        return request._create(session, tenant, dataset, name, source.as_config())

    def _create(
        self,
        session: Session,
        tenant: str,
        dataset: Dataset,
        default_name: str,
        learn_from: dict[str, Any] | None = None,
    ) -> Job:
        name = check_name(self.model_name) if self.model_name else default_name
        n_images = count_training_images(session, dataset, self.exclude_duplicates)
        auto = self.n_clusters == AUTO_CLUSTERS
        # The checks and the memory of `auto` are those of the most clusters that it may find.
        most = min(MAX_AUTO_CLUSTERS, n_images) if auto else self.n_clusters
        largest = self._train_config(most, n_images)
        config = {
            "model_name": name,
            "backbone": self.backbone,
            "precision": self.precision,
            "exclude_duplicates": self.exclude_duplicates,
            "train": self._open_config() if auto else largest,
            **({"learn_from": learn_from} if learn_from else {}),
        }
        return create_job(
            session,
            tenant=tenant,
            kind=self.kind,
            dataset=dataset,
            config=config,
            request=self,
            memory_bytes=training_memory([largest], n_images, self.backbone),
            stages=_with_count(KINDS[self.kind].stages) if auto else None,
        )

    def _train_config(self, n_clusters: int | str, n_images: int) -> dict[str, Any]:
        check_neighbor_count(self.n_neighbors, n_images)
        given = config_settings(self, TrainConfig) | {"n_clusters": n_clusters}
        train = resolve_training(self.recipe, given, n_images)
        check_steps(train["steps"], self.epochs)
        return train

    def _open_config(self) -> dict[str, Any]:
        """The settings that were given; the stage `count` chooses the others."""
        given = config_settings(self, TrainConfig)
        return given | {"n_clusters": None, "recipe": self.recipe}


def _with_count(stages: Sequence[str]) -> list[str]:
    embed, *others = stages
    return [embed, COUNT_STAGE, *others]


def close_config(
    session: Session, job: Job, n_clusters: int, exclude_duplicates: str
) -> dict[str, Any]:
    """Returns the configuration of a job with `auto` whose number of clusters was found."""
    dataset = session.get_one(Dataset, job.dataset_id)
    n_images = count_training_images(session, dataset, exclude_duplicates)
    given = job.config["train"] | {"n_clusters": n_clusters}
    return job.config | {"train": resolve_training(given.pop("recipe"), given, n_images)}
