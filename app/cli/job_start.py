"""`temi jobs start`: one command for each kind of job.

Parameters have the names of the request's fields, so that a command passes all of them on.
"""

from typing import Annotated, Any

import typer

from app.cli import references
from app.cli.connection import connect
from app.cli.options import (
    AsJson,
    Backbone,
    Beta,
    ClusteringId,
    Clusters,
    DatasetId,
    Epochs,
    ExcludeDuplicates,
    FalseAlarmRate,
    Format,
    Heads,
    IncludeExcluded,
    LearnFrom,
    MinProbability,
    MinPurity,
    ModelName,
    ModelReference,
    Neighbors,
    Objective,
    OnlyClusters,
    OptionalClusters,
    Precision,
    Priority,
    PurityProof,
    Recipe,
    Revision,
    Seed,
    Select,
    Steps,
    Wait,
    WebhookUrl,
)
from app.cli.progress import report_job
from temi.config import AUTO_CLUSTERS
from temi_client import JobKind, SweepParameter

app = typer.Typer(no_args_is_help=True, help="Start a job.")


def _start(
    kind: JobKind, *, ctx: typer.Context, wait: bool, as_json: bool, **settings: Any
) -> None:
    with connect(ctx) as client:
        report_job(client, client.create_job(kind=kind, **settings), wait, as_json)


@app.command()
def cluster(
    ctx: typer.Context,
    dataset_id: DatasetId,
    n_clusters: Clusters = AUTO_CLUSTERS,
    learn_from: LearnFrom = None,
    model_name: ModelName = None,
    backbone: Backbone = None,
    precision: Precision = None,
    recipe: Recipe = None,
    exclude_duplicates: ExcludeDuplicates = None,
    objective: Objective = None,
    select: Select = None,
    n_heads: Heads = None,
    n_neighbors: Neighbors = None,
    beta: Beta = None,
    steps: Steps = None,
    epochs: Epochs = None,
    seed: Seed = None,
    priority: Priority = None,
    webhook_url: WebhookUrl = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Cluster a dataset and register the model."""
    _start("cluster", **locals())


@app.command()
def sweep(
    ctx: typer.Context,
    dataset_id: DatasetId,
    parameter: Annotated[SweepParameter, typer.Option(help="Setting to vary.")] = "beta",
    values: Annotated[
        list[float] | None,
        typer.Option("--value", help="Value to try; repeatable. Default: a grid."),
    ] = None,
    n_clusters: OptionalClusters = None,
    model_name: ModelName = None,
    backbone: Backbone = None,
    precision: Precision = None,
    exclude_duplicates: ExcludeDuplicates = None,
    objective: Objective = None,
    select: Select = None,
    n_heads: Heads = None,
    n_neighbors: Neighbors = None,
    beta: Beta = None,
    steps: Steps = None,
    seed: Seed = None,
    priority: Priority = None,
    webhook_url: WebhookUrl = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Train with several values of one setting, compare the results and keep the clusterings."""
    _start("sweep", **locals())


@app.command()
def finetune(
    ctx: typer.Context,
    model: ModelReference,
    dataset_id: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            help="Default: the dataset of the model.",
            callback=references.dataset_id,
            autocompletion=references.complete_datasets,
        ),
    ] = None,
    model_name: ModelName = None,
    steps: Steps = None,
    epochs: Epochs = None,
    backbone_learning_rate: Annotated[float | None, typer.Option()] = None,
    head_learning_rate: Annotated[float | None, typer.Option()] = None,
    seed: Seed = None,
    priority: Priority = None,
    webhook_url: WebhookUrl = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Fine-tune the backbone of a model and register a new version."""
    _start("finetune", **locals())


@app.command()
def predict(
    ctx: typer.Context,
    model: ModelReference,
    dataset_id: DatasetId,
    extend: Annotated[
        bool | None,
        typer.Option(
            "--extend/--new",
            help="Add new images to the clustering by this version and keep its edits (default), "
            "or create a new clustering.",
        ),
    ] = None,
    false_alarm_rate: FalseAlarmRate = None,
    priority: Priority = None,
    webhook_url: WebhookUrl = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Assign the images of a dataset to the clusters of a model."""
    _start("predict", **locals())


@app.command("map")
def map_(
    ctx: typer.Context,
    dataset_id: DatasetId,
    backbone: Backbone = None,
    precision: Precision = None,
    perplexity: Annotated[
        float | None, typer.Option(min=2, max=200, help="Perplexity of t-SNE.")
    ] = None,
    seed: Seed = None,
    priority: Priority = None,
    webhook_url: WebhookUrl = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Project all images of a dataset to two dimensions."""
    _start("map", **locals())


@app.command()
def gather(
    ctx: typer.Context,
    model: ModelReference,
    priority: Priority = None,
    webhook_url: WebhookUrl = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Gather the images that a model has refused into proposed groups."""
    _start("gather", **locals())


@app.command()
def export(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    format: Format,
    revision: Revision = None,
    cluster_ids: OnlyClusters = None,
    min_probability: MinProbability = None,
    min_purity: MinPurity = None,
    proof: PurityProof = None,
    include_excluded: IncludeExcluded = None,
    priority: Priority = None,
    webhook_url: WebhookUrl = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Write a clustering to a file; use `temi exports create` to download it as well."""
    _start("export", **locals())
