"""`temi jobs start`: one command a kind of job."""

from typing import Annotated, Any, Literal

import typer

from app.cli.connection import connect
from app.cli.options import (
    AsJson,
    ClusteringId,
    DatasetId,
    MinProbability,
    ModelReference,
    Priority,
    Revision,
    Wait,
    WebhookUrl,
)
from app.cli.progress import report_job

app = typer.Typer(no_args_is_help=True, help="Start a job.")

Clusters = Annotated[int, typer.Option("--clusters", "-k", min=2, help="How many groups.")]
ModelName = Annotated[str | None, typer.Option(help="In the registry; else after the dataset.")]
Backbone = Annotated[str | None, typer.Option(help="What turns an image into features.")]
Precision = Annotated[
    Literal["float32", "bfloat16"] | None,
    typer.Option(help="Of matrix products; bfloat16 rounds, and is faster where hardware has it."),
]
Duplicates = Annotated[
    Literal["none", "exact", "near"] | None, typer.Option(help="To leave out of training.")
]
Objective = Annotated[
    Literal["temi", "wpmi", "pmi", "scan"] | None, typer.Option(help="What heads are trained for.")
]
Heads = Annotated[int | None, typer.Option(min=1, help="Heads trained side by side.")]
Neighbors = Annotated[int | None, typer.Option(min=1, help="Neighbors an image is paired with.")]
Beta = Annotated[float | None, typer.Option(help="Lower uses the clusters more evenly.")]
Steps = Annotated[int | None, typer.Option(min=1, help="Training steps; fewer is quicker.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Instead of steps.")]
Seed = Annotated[int | None, typer.Option(min=0)]
Format = Annotated[
    Literal["csv", "jsonl", "parquet", "coco", "label_studio", "image_folder", "huggingface"],
    typer.Option("--format", "-f"),
]
OnlyClusters = Annotated[
    list[int] | None, typer.Option("--cluster", min=0, help="Only it; repeatable.")
]
WithExcluded = Annotated[
    bool, typer.Option("--include-excluded", help="Images that were taken out, too.")
]


def _start(ctx: typer.Context, wait: bool, as_json: bool, kind: str, **settings: Any) -> None:
    with connect(ctx) as client:
        report_job(client, client.create_job(kind=kind, **settings), wait, as_json)


@app.command("cluster")
def cluster(
    ctx: typer.Context,
    dataset_id: DatasetId,
    clusters: Clusters,
    model_name: ModelName = None,
    backbone: Backbone = None,
    precision: Precision = None,
    recipe: Annotated[Literal["default", "paper"] | None, typer.Option()] = None,
    exclude_duplicates: Duplicates = None,
    objective: Objective = None,
    heads: Heads = None,
    neighbors: Neighbors = None,
    beta: Beta = None,
    steps: Steps = None,
    epochs: Epochs = None,
    seed: Seed = None,
    priority: Priority = None,
    webhook_url: WebhookUrl = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Find groups in a dataset and register a model of them."""
    _start(
        *(ctx, wait, as_json, "cluster"),
        dataset_id=dataset_id,
        n_clusters=clusters,
        model_name=model_name,
        backbone=backbone,
        precision=precision,
        recipe=recipe,
        exclude_duplicates=exclude_duplicates,
        objective=objective,
        n_heads=heads,
        n_neighbors=neighbors,
        beta=beta,
        steps=steps,
        epochs=epochs,
        seed=seed,
        priority=priority,
        webhook_url=webhook_url,
    )


@app.command("sweep")
def sweep(
    ctx: typer.Context,
    dataset_id: DatasetId,
    parameter: Annotated[Literal["beta", "n_clusters"], typer.Option(help="To vary.")] = "beta",
    value: Annotated[
        list[float] | None, typer.Option(help="To try; repeatable. By default a grid.")
    ] = None,
    clusters: Annotated[int | None, typer.Option("--clusters", "-k", min=2)] = None,
    backbone: Backbone = None,
    precision: Precision = None,
    exclude_duplicates: Duplicates = None,
    objective: Objective = None,
    heads: Heads = None,
    neighbors: Neighbors = None,
    beta: Beta = None,
    steps: Steps = None,
    seed: Seed = None,
    priority: Priority = None,
    webhook_url: WebhookUrl = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Train over several values of one setting and compare."""
    _start(
        *(ctx, wait, as_json, "sweep"),
        dataset_id=dataset_id,
        parameter=parameter,
        values=value or None,
        n_clusters=clusters,
        backbone=backbone,
        precision=precision,
        exclude_duplicates=exclude_duplicates,
        objective=objective,
        n_heads=heads,
        n_neighbors=neighbors,
        beta=beta,
        steps=steps,
        seed=seed,
        priority=priority,
        webhook_url=webhook_url,
    )


@app.command("finetune")
def finetune(
    ctx: typer.Context,
    model: ModelReference,
    dataset: Annotated[str | None, typer.Option(help="By default the model's own.")] = None,
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
    """Train a model's backbone together with its heads; registers a new version."""
    _start(
        *(ctx, wait, as_json, "finetune"),
        model=model,
        dataset_id=dataset,
        model_name=model_name,
        steps=steps,
        epochs=epochs,
        backbone_learning_rate=backbone_learning_rate,
        head_learning_rate=head_learning_rate,
        seed=seed,
        priority=priority,
        webhook_url=webhook_url,
    )


@app.command("predict")
def predict(
    ctx: typer.Context,
    model: ModelReference,
    dataset_id: DatasetId,
    priority: Priority = None,
    webhook_url: WebhookUrl = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Assign all images of a dataset to the clusters of a model."""
    _start(
        *(ctx, wait, as_json, "predict"),
        model=model,
        dataset_id=dataset_id,
        priority=priority,
        webhook_url=webhook_url,
    )


@app.command("map")
def map_(
    ctx: typer.Context,
    dataset_id: DatasetId,
    backbone: Backbone = None,
    precision: Precision = None,
    perplexity: Annotated[float | None, typer.Option(min=2, max=200)] = None,
    seed: Seed = None,
    priority: Priority = None,
    webhook_url: WebhookUrl = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Lay all images of a dataset out in two dimensions."""
    _start(
        *(ctx, wait, as_json, "map"),
        dataset_id=dataset_id,
        backbone=backbone,
        precision=precision,
        perplexity=perplexity,
        seed=seed,
        priority=priority,
        webhook_url=webhook_url,
    )


@app.command("export")
def export(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    format_: Format,
    revision: Revision = None,
    cluster: OnlyClusters = None,
    min_probability: MinProbability = None,
    include_excluded: WithExcluded = False,
    priority: Priority = None,
    webhook_url: WebhookUrl = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Write a clustering to a file; `temi exports create` downloads it, too."""
    _start(
        *(ctx, wait, as_json, "export"),
        clustering_id=clustering_id,
        format=format_,
        revision=revision,
        cluster_ids=cluster or None,
        min_probability=min_probability,
        include_excluded=include_excluded or None,
        priority=priority,
        webhook_url=webhook_url,
    )
