"""The body of `POST /v1/jobs`: a request of any kind."""

from typing import Annotated, Any

from pydantic import Discriminator, Tag

from app.core.jobs.requests.cluster import ClusterCreate
from app.core.jobs.requests.export import ExportCreate
from app.core.jobs.requests.finetune import FinetuneCreate
from app.core.jobs.requests.gather import GatherCreate
from app.core.jobs.requests.map import MapCreate
from app.core.jobs.requests.predict import PredictCreate
from app.core.jobs.requests.sweep import SweepCreate


def _kind_of(value: Any) -> str:
    """Returns `cluster` if the body has no kind: most jobs are of this kind."""
    kind = value.get("kind", "cluster") if isinstance(value, dict) else getattr(value, "kind", "")
    return str(kind)


JobCreate = Annotated[
    Annotated[ClusterCreate, Tag("cluster")]
    | Annotated[SweepCreate, Tag("sweep")]
    | Annotated[FinetuneCreate, Tag("finetune")]
    | Annotated[PredictCreate, Tag("predict")]
    | Annotated[MapCreate, Tag("map")]
    | Annotated[ExportCreate, Tag("export")]
    | Annotated[GatherCreate, Tag("gather")],
    Discriminator(_kind_of),
]
