"""Requests for jobs, one schema a kind. What is left out is chosen for the size of the dataset."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from app.core.jobs.requests.cluster import MOST_STEPS
from temi.backbones.catalog import DEFAULT_BACKBONE

_DATASET = "ds_01k9z3m4q5r6s7t8v9w0x1y2z3"

DatasetId = Annotated[str, Field(max_length=40, examples=[_DATASET])]
ModelReference = Annotated[
    str,
    Field(
        max_length=170,
        description="`name`, its latest version; `name@alias`; or `name/versions/N`.",
        examples=["animals@production"],
    ),
]
ModelName = Annotated[
    str | None, Field(description="Name in the model registry; by default after the dataset.")
]
Backbone = Annotated[
    str,
    Field(
        max_length=300,
        description="`efficientnet_lite0`, another short name such as `dino_vitb16`, `timm:NAME` "
        "or `open_clip:NAME/PRETRAINED`.",
    ),
]
Precision = Annotated[
    Literal["float32", "bfloat16"],
    Field(
        description="Numbers of the matrix products, in the backbone and in training. `float32` "
        "gives the same features on every machine. `bfloat16` is faster on hardware that has it "
        "and moves single features by percents; the job and its model then say so."
    ),
]
Duplicates = Annotated[
    Literal["none", "exact", "near"],
    Field(
        description="Duplicates to leave out of training; they are assigned to clusters all the "
        "same. `near` leaves out exact ones, too."
    ),
]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Heads = Annotated[int | None, Field(ge=1, le=200, description="Heads trained side by side.")]
NeighborCount = Annotated[
    int | None, Field(ge=1, le=1000, description="Nearest neighbors an image is paired with.")
]
Beta = Annotated[
    float | None, Field(gt=0.5, le=1.0, description="Lower uses the clusters more evenly.")
]
Objective = Annotated[
    Literal["temi", "wpmi", "pmi", "scan"] | None,
    Field(description="`temi` unless said otherwise; the others are to compare with."),
]
Steps = Annotated[int | None, Field(ge=1, le=MOST_STEPS)]
Epochs = Annotated[
    int | None, Field(ge=1, le=100_000, description="Another way to say `steps`; not both.")
]


class JobRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    priority: int = Field(
        default=0, ge=-100, le=100, description="Higher runs sooner, among one's own."
    )
    webhook_url: str | None = Field(
        default=None,
        max_length=2000,
        description="Told, signed, when the job ends. Its host must be allowed by the server.",
    )


class ClusterCreate(JobRequest):
    """Find groups in a dataset and register a model of them."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"dataset_id": _DATASET, "n_clusters": 8}]}
    )

    kind: Literal["cluster"] = "cluster"
    dataset_id: DatasetId
    n_clusters: int = Field(ge=2, le=25_000, description="How many groups to look for.")
    model_name: ModelName = None
    backbone: Backbone = DEFAULT_BACKBONE
    precision: Precision = "float32"
    exclude_duplicates: Duplicates = "none"
    recipe: Literal["default", "paper"] = Field(
        default="default",
        description="`paper` trains as the paper does: 50 heads, 200 epochs, many times the time.",
    )
    objective: Objective = None
    n_heads: Heads = None
    n_neighbors: NeighborCount = None
    beta: Beta = None
    steps: Steps = None
    epochs: Epochs = None
    seed: Seed = 0


class SweepCreate(JobRequest):
    """Train over several values of one setting and compare; nothing is registered."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"kind": "sweep", "dataset_id": _DATASET, "parameter": "beta", "n_clusters": 8},
                {
                    "kind": "sweep",
                    "dataset_id": _DATASET,
                    "parameter": "n_clusters",
                    "values": [4, 8, 16],
                },
            ]
        }
    )

    kind: Literal["sweep"]
    dataset_id: DatasetId
    parameter: Literal["beta", "n_clusters"] = "beta"
    values: list[float] | None = Field(
        default=None, min_length=1, max_length=20, description="By default a grid."
    )
    n_clusters: int | None = Field(
        default=None, ge=2, le=25_000, description="Needed where `beta` is swept."
    )
    backbone: Backbone = DEFAULT_BACKBONE
    precision: Precision = "float32"
    exclude_duplicates: Duplicates = "none"
    objective: Objective = None
    n_heads: Heads = None
    n_neighbors: NeighborCount = None
    beta: Beta = None
    steps: Steps = None
    seed: Seed = 0


class FinetuneCreate(JobRequest):
    """Train a model's backbone together with its heads on real images; registers a new version."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"kind": "finetune", "model": "animals", "epochs": 2}]}
    )

    kind: Literal["finetune"]
    model: ModelReference
    dataset_id: DatasetId | None = Field(
        default=None, description="By default the one that the model was trained on."
    )
    model_name: ModelName = None
    steps: Steps = None
    epochs: Epochs = None
    backbone_learning_rate: float = Field(default=1e-5, gt=0, le=1)
    head_learning_rate: float = Field(default=1e-4, gt=0, le=1)
    seed: Seed = 0


class PredictCreate(JobRequest):
    """Assign all images of a dataset to the clusters of a model; makes a clustering."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"kind": "predict", "model": "animals", "dataset_id": _DATASET}]
        }
    )

    kind: Literal["predict"]
    model: ModelReference
    dataset_id: DatasetId


class MapCreate(JobRequest):
    """Lay all images of a dataset out in two dimensions: what looks alike lies close together."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"kind": "map", "dataset_id": _DATASET}]}
    )

    kind: Literal["map"]
    dataset_id: DatasetId
    backbone: Backbone = DEFAULT_BACKBONE
    precision: Precision = "float32"
    perplexity: float = Field(
        default=30.0, ge=2, le=200, description="About how many neighbors an image keeps close."
    )
    seed: Seed = 0


class ExportCreate(JobRequest):
    """Write a clustering to a file for another program."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "export",
                    "clustering_id": "cl_01k9z3m4q5r6s7t8v9w0x1y2z3",
                    "format": "parquet",
                    "min_probability": 0.5,
                }
            ]
        }
    )

    kind: Literal["export"]
    clustering_id: str = Field(max_length=40)
    format: Literal[
        "csv", "jsonl", "parquet", "coco", "label_studio", "image_folder", "huggingface"
    ]
    revision: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="By default the current one."
    )
    cluster_ids: list[Annotated[int, Field(ge=0, lt=2**31)]] | None = Field(
        default=None, min_length=1, max_length=25_000, description="By default all."
    )
    min_probability: float | None = Field(default=None, ge=0, le=1)
    include_excluded: bool = Field(
        default=False, description="Images that were taken out of the clustering, too."
    )


def _kind(value: Any) -> str:
    """`cluster` if not said: it is what most jobs are."""
    kind = value.get("kind", "cluster") if isinstance(value, dict) else getattr(value, "kind", "")
    return str(kind)


JobCreate = Annotated[
    Annotated[ClusterCreate, Tag("cluster")]
    | Annotated[SweepCreate, Tag("sweep")]
    | Annotated[FinetuneCreate, Tag("finetune")]
    | Annotated[PredictCreate, Tag("predict")]
    | Annotated[MapCreate, Tag("map")]
    | Annotated[ExportCreate, Tag("export")],
    Discriminator(_kind),
]
