"""The base of all job requests, and the fields that several kinds share."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from sqlalchemy.orm import Session

from app.core.datasets.rows import get_dataset
from app.core.platform.errors import DatasetNotReady
from app.core.platform.settings import Settings
from app.core.platform.tables import Dataset, Job
from temi import config as training

MAX_CLUSTERS = 25_000
MAX_STEPS = 1_000_000  # twice the paper's longest run, 200 epochs of ImageNet
EXAMPLE_DATASET_ID = "ds_01k9z3m4q5r6s7t8v9w0x1y2z3"

DatasetId = Annotated[str, Field(max_length=40, examples=[EXAMPLE_DATASET_ID])]
ModelReference = Annotated[
    str,
    Field(
        max_length=170,
        description="`name` (its latest version), `name@alias` or `name/versions/N`.",
        examples=["animals@production"],
    ),
]
ModelName = Annotated[
    str | None,
    Field(description="Name in the model registry. By default derived from the dataset's name."),
]
Backbone = Annotated[
    str,
    Field(
        max_length=300,
        description="`efficientnet_lite0`, another short name such as `dino_vitb16`, `timm:NAME` "
        "or `open_clip:NAME/PRETRAINED`. `auto` is the best one whose weights are on the machine "
        "of the API (`auto_backbone` of `GET /v1/system`): the job's `config` and `result` and its "
        "model have the name of the chosen one, never `auto`.",
    ),
]
Precision = Annotated[
    training.Precision,
    Field(
        description="Number format of the matrix products, in the backbone and in training. "
        "`float32` gives the same features on every machine. `bfloat16` is faster on hardware "
        "that supports it and changes single features by percents; the job and its model record "
        "which one was used."
    ),
]
ExcludedDuplicates = Annotated[
    Literal["none", "exact", "near"],
    Field(
        description="Duplicates to leave out of training; they are still assigned to clusters. "
        "`near` also leaves out exact ones."
    ),
]
ClusterCount = Annotated[int, Field(ge=2, le=MAX_CLUSTERS)]


def _check_cluster_count(value: object) -> object:
    if value == training.AUTO_CLUSTERS:
        return value
    if isinstance(value, int | float) and 2 <= value <= MAX_CLUSTERS and value == int(value):
        return int(value)
    raise ValueError(f"must be a whole number from 2 to {MAX_CLUSTERS:,}, or `auto`")


# Validated as one: the errors of a union name its members, not the field.
ClusterCountOrAuto = Annotated[
    int | Literal["auto"],
    PlainValidator(_check_cluster_count),
    # An enum: generated clients refuse numbers if the other type is a constant.
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 2, "maximum": MAX_CLUSTERS},
                {"type": "string", "enum": [training.AUTO_CLUSTERS]},
            ]
        }
    ),
]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
HeadCount = Annotated[
    int | None, Field(ge=1, le=200, description="Number of heads, trained in parallel.")
]
NeighborCount = Annotated[
    int | None,
    Field(ge=1, le=1000, description="Number of nearest neighbors to pair an image with."),
]
Beta = Annotated[
    float | None,
    Field(gt=0.5, le=1.0, description="A lower value gives clusters of more equal size."),
]
Objective = Annotated[
    training.ObjectiveName | None,
    Field(description="Training objective. By default `temi`; the others are for comparison."),
]
Select = Annotated[
    training.Selection | None,
    Field(
        description="How the trained heads become one model: `consensus` joins all of them, "
        "`lowest_loss` takes the best one, as in the paper. By default `consensus`, for more than "
        "1,000 clusters `lowest_loss`."
    ),
]
Steps = Annotated[int | None, Field(ge=1, le=MAX_STEPS)]
Epochs = Annotated[
    int | None, Field(ge=1, le=100_000, description="An alternative to `steps`; give only one.")
]


class JobCreateBase(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    priority: int = Field(
        default=0,
        ge=-100,
        le=100,
        description="Jobs with a higher priority run first, among the jobs of the same tenant.",
    )
    webhook_url: str | None = Field(
        default=None,
        max_length=2000,
        description="Receives a signed request when the job ends. The server must allow its host "
        "(`TEMI_WEBHOOK_HOSTS`).",
    )

    def check(self, settings: Settings) -> None:
        """Checks what needs no database. May take seconds."""

    def create(self, session: Session, tenant: str) -> Job:
        """Adds the job's row. Every open setting is decided, so the row says what will run."""
        raise NotImplementedError


def get_ready_dataset(session: Session, tenant: str, dataset_id: str) -> Dataset:
    """Returns the dataset, locked: its images do not change while a job is added."""
    dataset = get_dataset(session, tenant, dataset_id, lock=True)
    if dataset.status == "ingesting":
        raise DatasetNotReady("The dataset is still being ingested; wait for its ingest job.")
    if dataset.status != "ready":
        raise DatasetNotReady("The ingest of the dataset failed; see its error and issues.")
    return dataset
