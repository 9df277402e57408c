"""The job kinds: one table for API, core and worker.

The request model of a kind is in `app/core/jobs/requests/`, the function that runs it is in
`worker/jobs/`; tests check that both cover this table.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from app.core.platform.resources import Resource

COUNT_STAGE = "count"  # after embed, only in a clustering whose number of clusters is to be found

KindName = Literal["ingest", "cluster", "sweep", "finetune", "predict", "map", "export", "gather"]


@dataclass(frozen=True)
class JobKind:
    name: KindName
    resource: Resource  # `gpu` jobs use the CPU on a machine without a GPU
    stages: tuple[str, ...]


KINDS: dict[str, JobKind] = {
    kind.name: kind
    for kind in (
        JobKind("ingest", "cpu", ("ingest",)),
        JobKind("cluster", "gpu", ("embed", "mine", "train", "evaluate", "register")),
        JobKind("sweep", "gpu", ("embed", "mine", "sweep", "register")),
        JobKind("finetune", "gpu", ("embed", "mine", "finetune", "evaluate", "register")),
        JobKind("predict", "gpu", ("embed", "evaluate", "register")),
        JobKind("map", "cpu", ("embed", "mine", "project")),
        JobKind("export", "cpu", ("export",)),
        JobKind("gather", "cpu", ("gather",)),
    )
}


def kinds_for(resources: Collection[str]) -> list[str]:
    """Returns the kinds that a worker with these resources runs."""
    return [kind.name for kind in KINDS.values() if kind.resource in resources]
