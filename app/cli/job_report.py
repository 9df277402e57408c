"""What came out of a job, in a few lines, and the commands that come next."""

import shlex
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from app.cli.output import format_bytes, format_time, notices, percent, print_fields
from app.cli.seen_revisions import remember_revision
from app.cli.sweep_report import print_sweep, sweep_steps
from app.cli.tables import describe_count
from temi_client import ApiError, Clustering, Dataset, Job, Statistics, TemiClient

Fields = list[tuple[str, object]]
Steps = Iterable[tuple[str, Sequence[object]]]  # what it does, and the words after `temi`


def print_result(client: TemiClient, job: Job) -> None:
    """Prints the result of a job that has succeeded."""
    try:
        _print_result(client, job, job.result or {})
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        notices.print("What came out of the job was deleted since.")


def _print_result(client: TemiClient, job: Job, result: dict[str, Any]) -> None:
    if not result:
        return
    if "clustering_id" in result:
        _print_clustering(client, job, result)
    elif job.kind == "sweep":
        print_sweep(job)
        print_next(sweep_steps(job))
    elif job.kind == "ingest":
        _print_ingest(client, job, result)
    elif job.kind == "map":
        print_fields("Map", [("images", f"{result['image_count']:,}"), ("job", job.id)])
        print_next([("save the points", ["jobs", "map", job.id, "--out", "map.arrow"])])
    elif job.kind == "export":
        _print_export(client, result)


def print_state(job: Job) -> None:
    """Prints a job without its configuration and result."""
    now = job.progress
    fields: Fields = [
        ("kind", job.kind),
        ("status", job.status),
        ("progress", f"{now.stage or '-'} {now.completed:,}/{now.total:,}"),
        ("dataset", job.dataset_id or "-"),
        ("created", format_time(job.created_at)),
        ("started", format_time(job.started_at) or "-"),
        ("finished", format_time(job.finished_at) or "-"),
    ]
    if job.error:
        fields.append(("error", f"{job.error.detail} ({job.error.code})"))
    print_fields(f"Job {job.id}", fields)


def print_next(steps: Steps) -> None:
    for what, words in steps:
        command = shlex.join(["temi", *map(str, words)])
        notices.print(f"To {what}: {command}", markup=False, soft_wrap=True)


def _print_clustering(client: TemiClient, job: Job, result: dict[str, Any]) -> None:
    clustering = client.clustering(result["clustering_id"])
    statistics = client.statistics(clustering.id)
    model = f"{clustering.model.name}, version {clustering.model.version}"
    added, count = result.get("added_images"), clustering.metrics.get("count")
    fields: Fields = [
        (
            "images",
            f"{statistics.images:,}" + ("" if added is None else f", {added:,} of them new"),
        ),
        ("clusters", _sizes(statistics)),
        *([("their number", describe_count(count))] if count else []),
        *_learned(clustering.metrics.get("learning")),
        ("confidence", f"{percent(statistics.mean_probability)} mean probability"),
        *_training(clustering.metrics.get("training") or {}),
        *_scores(clustering.metrics),
        *([("backbone", result["backbone"])] if "backbone" in result else []),
        ("model", model),
        ("clustering", f"{clustering.id} at revision {clustering.revision}"),
    ]
    print_fields(f"Result of {job.id}", fields)
    remember_revision(clustering.id, clustering.revision)
    _warn_if_unsettled(job, clustering)
    dataset = client.dataset(clustering.dataset_id)
    if dataset.current_clustering_id not in (None, clustering.id):
        notices.print(
            f"The labels of {dataset.name} still come from {dataset.current_clustering_id}.",
            markup=False,
            soft_wrap=True,
        )
        print_next([("use this clustering", ["datasets", "use", dataset.id, clustering.id])])
    print_next(
        [
            ("see the clusters", ["clusterings", "clusters", clustering.id]),
            ("name one", ["clusterings", "rename", clustering.id, "CLUSTER", "NAME"]),
            ("label new images", ["predict", clustering.model.name, "FOLDER"]),
            (
                "save the labels",
                ["exports", "create", clustering.id, "--format", "csv", "--out", "labels.csv"],
            ),
        ]
    )


def _sizes(statistics: Statistics) -> str:
    filled = [size for size in statistics.sizes if size]
    empty = f"; {statistics.empty_clusters:,} empty" if statistics.empty_clusters else ""
    if not filled:
        return f"{statistics.clusters:,}{empty}"
    return f"{statistics.clusters:,}, with {filled[-1]:,} to {filled[0]:,} images each{empty}"


def _learned(learning: dict[str, Any] | None) -> Fields:
    """What a training learned from an earlier clustering."""
    if learning is None:
        return []
    images = ("confirmed", "moved", "excluded", "refused")
    said = [f"{learning[name]:,} images {name}" for name in images if learning[name]]
    said += [f"{learning[name]:,} {name}" for name in ("merges", "splits") if learning[name]]
    source = f"{learning['clustering_id']} at revision {learning['revision']}"
    return [("learned from", f"{source}: {', '.join(said) or 'nothing'}")]


def _training(training: dict[str, Any]) -> Fields:
    """How the model was made, and how far its heads agree."""
    agreement = training.get("agreement")
    if agreement is None:
        return []
    return [("heads", f"{percent(agreement)} agreement with their consensus, the model")]


def _scores(metrics: dict[str, Any]) -> Fields:
    scores = metrics.get("temi")
    if not scores or scores.get("accuracy") is None:
        return []
    text = ", ".join(f"{key.upper()} {percent(scores[key])}" for key in ("nmi", "ari"))
    return [("true labels", f"ACC {percent(scores['accuracy'])}, {text}")]


def _warn_if_unsettled(job: Job, clustering: Clustering) -> None:
    training = clustering.metrics.get("training") or {}
    if job.kind != "cluster" or training.get("settled", True):
        return
    steps = int(training["steps"])
    notices.print(
        f"[yellow]Not settled:[/] the assignments still changed when training ended after "
        f"{steps:,} steps. More steps may give better clusters.",
        soft_wrap=True,
    )
    train = job.config.get("train", {})
    again = ["jobs", "start", "cluster", clustering.dataset_id]
    again += ["--clusters", str(train.get("n_clusters", clustering.n_clusters))]
    if backbone := job.config.get("backbone"):
        again += ["--backbone", str(backbone)]
    print_next([("train longer", [*again, "--steps", 2 * steps, "--wait"])])


def _print_ingest(client: TemiClient, job: Job, result: dict[str, Any]) -> None:
    dataset = client.dataset(result["dataset_id"])
    added, unread = result["image_count"], result["issue_count"]
    fields: Fields = [
        ("images", f"{added:,} read; the dataset has {dataset.image_count:,}"),
        *_skipped(result.get("skipped") or {}),
        ("size", format_bytes(dataset.bytes)),
        ("dataset", f"{dataset.id}, named {dataset.name}"),
    ]
    print_fields(f"Result of {job.id}", fields)
    if unread:
        notices.print(f"[yellow]{unread:,} images could not be read.[/]")
        print_next([("list them", ["datasets", "issues", dataset.id])])
    print_next(_steps_after_ingest(client, dataset))


def _skipped(counts: dict[str, int]) -> Fields:
    if not counts:
        return []
    kinds = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
    return [("other files", f"{sum(counts.values()):,} skipped: {kinds}")]


def _steps_after_ingest(client: TemiClient, dataset: Dataset) -> Steps:
    start = ["jobs", "start"]
    if dataset.current_clustering_id is not None:
        model = client.clustering(dataset.current_clustering_id).model
        version = f"{model.name}/versions/{model.version}"
        yield (
            "add the new images to the current clustering",
            [*start, "predict", version, dataset.id, "--wait"],
        )
        return
    yield "cluster it", [*start, "cluster", dataset.id, "--wait"]
    sweep = [*start, "sweep", dataset.id, "--parameter", "n_clusters", "--wait"]
    yield "compare numbers of clusters", sweep


def _print_export(client: TemiClient, result: dict[str, Any]) -> None:
    export = client.get_export(result["export_id"])
    fields: Fields = [
        ("file", f"{export.filename}, {format_bytes(export.bytes)}"),
        ("images", f"{export.image_count:,}"),
        ("clustering", f"{export.clustering_id} at revision {export.revision}"),
    ]
    print_fields(f"Export {export.id}", fields)
    print_next([("download it", ["exports", "download", export.id])])
