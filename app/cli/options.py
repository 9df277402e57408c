"""Options and arguments that several commands share."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from app.cli import references
from temi import config
from temi_client import ExportFormat, LabelsFrom, Proof

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until the job ends.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Maximum number of rows.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
OutFile = Annotated[Path, typer.Option("--out", "-o", dir_okay=False, help="File to write.")]
OutFileOrFolder = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="File or folder to write to; default: this folder."),
]

DatasetId = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="Id, name or @last.",
        callback=references.dataset_id,
        autocompletion=references.complete_datasets,
    ),
]
ImageId = Annotated[str, typer.Argument(metavar="IMAGE")]
ImageIds = Annotated[list[str], typer.Argument(metavar="IMAGES")]
JobId = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="Id or @last.",
        callback=references.job_id,
        autocompletion=references.complete_jobs,
    ),
]
ClusteringId = Annotated[
    str,
    typer.Argument(
        metavar="CLUSTERING",
        help="Id, name of the dataset or model, or @last.",
        callback=references.clustering_id,
        autocompletion=references.complete_clusterings,
    ),
]
ClusterId = Annotated[int, typer.Argument(metavar="CLUSTER", min=0)]
ExportId = Annotated[
    str,
    typer.Argument(metavar="EXPORT", help="Id, file name or @last.", callback=references.export_id),
]
FalseAlarmRate = Annotated[
    float | None,
    typer.Option(
        min=0.0001,
        max=0.9999,
        help="Refuse images unlike the training; this share of known images is refused, too.",
    ),
]
ModelReference = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="NAME, NAME@ALIAS, NAME/versions/N or @last.",
        callback=references.model_name,
        autocompletion=references.complete_models,
    ),
]
Name = Annotated[  # of a model
    str,
    typer.Argument(
        metavar="NAME",
        callback=references.model_name,
        autocompletion=references.complete_models,
    ),
]
Alias = Annotated[str, typer.Argument(metavar="ALIAS")]
VersionNumber = Annotated[int, typer.Argument(metavar="VERSION", min=1)]

OfDataset = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        help="Only of this dataset.",
        callback=references.dataset_id,
        autocompletion=references.complete_datasets,
    ),
]
OfClustering = Annotated[
    str | None,
    typer.Option(
        "--clustering",
        help="Only of this clustering.",
        callback=references.clustering_id,
        autocompletion=references.complete_clusterings,
    ),
]
Revision = Annotated[
    int | None, typer.Option(min=1, help="Revision of the clustering; default: the current one.")
]
MinProbability = Annotated[
    float | None, typer.Option(min=0, max=1, help="Leave out images with a lower probability.")
]
PurityProof = Annotated[
    Proof | None,
    typer.Option(
        "--proof", help="With --min-purity: groups, or the collection as a whole; default: groups."
    ),
]
MinPurity = Annotated[
    float | None,
    typer.Option(min=0.5, max=0.999, help="Only clusters that the review has proven so pure."),
]
OnlyClusters = Annotated[
    list[int] | None, typer.Option("--cluster", min=0, help="Only this cluster; repeatable.")
]
IncludeExcluded = Annotated[
    bool | None, typer.Option("--include-excluded", help="Include excluded images.")
]
Format = Annotated[ExportFormat, typer.Option("--format", "-f", help="Format of the file.")]
LabelsOption = Annotated[
    LabelsFrom,
    typer.Option(
        "--labels-from",
        help="Where true labels are read from, for metrics only: the names of subfolders, or a "
        "manifest.csv or manifest.jsonl at the root.",
    ),
]

# Settings of jobs. None leaves the choice to the service.
Priority = Annotated[
    int | None,
    typer.Option(min=-100, max=100, help="Order among your jobs, highest first; default: 0."),
]
WebhookUrl = Annotated[str | None, typer.Option(help="URL to call when the job ends.")]


def _cluster_count(text: str) -> int | str:
    if text == config.AUTO_CLUSTERS:
        return text
    if not text.isdecimal() or int(text) < 2:
        raise typer.BadParameter(f"{text!r} is neither a number of at least 2 nor `auto`.")
    return int(text)


Clusters = Annotated[
    Any,  # int or `auto`: typer has no unions
    typer.Option(
        "--clusters",
        "-k",
        parser=_cluster_count,
        metavar="NUMBER",
        help="Number of clusters; `auto` finds it.",
    ),
]
LearnFrom = Annotated[
    str | None,
    typer.Option(
        metavar="CLUSTERING",
        help="Reviewed or edited clustering whose groups, names and answers the new one keeps.",
        callback=references.clustering_id,
        autocompletion=references.complete_clusterings,
    ),
]
OptionalClusters = Annotated[
    int | None, typer.Option("--clusters", "-k", min=2, help="Number of clusters.")
]
ModelName = Annotated[
    str | None, typer.Option(help="Name of the model; default: from the dataset's name.")
]
Backbone = Annotated[
    str | None,
    typer.Option(
        help="Model that computes the features; see `temi backbones`. auto: the best one whose "
        "weights are there."
    ),
]
Precision = Annotated[
    config.Precision | None,
    typer.Option(help="Of matrix products; bfloat16 is faster on hardware that supports it."),
]
Recipe = Annotated[
    Literal["default", "paper"] | None,
    typer.Option(help="`paper` trains with the schedule of the paper and takes much longer."),
]
ExcludeDuplicates = Annotated[
    Literal["none", "exact", "near"] | None,
    typer.Option(help="Duplicates to leave out of training."),
]
Objective = Annotated[config.ObjectiveName | None, typer.Option(help="Loss of the heads.")]
Select = Annotated[
    config.Selection | None,
    typer.Option(help="Join all heads into the model, or take the one with the lowest loss."),
]
Heads = Annotated[int | None, typer.Option("--heads", min=1, help="Number of heads to train.")]
Neighbors = Annotated[
    int | None, typer.Option("--neighbors", min=1, help="Nearest neighbors per image.")
]
Beta = Annotated[float | None, typer.Option(help="Lower values give clusters of more equal size.")]
Steps = Annotated[int | None, typer.Option(min=1, help="Number of training steps.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Number of epochs, instead of --steps.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the random numbers.")]


def confirm(question: str, yes: bool) -> None:
    """Asks before a deletion, unless `--yes` was given; exits with 1 if the answer is no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter("There is no terminal to ask on.", param_hint="--yes")
    typer.confirm(question, abort=True, err=True)
