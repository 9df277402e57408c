"""`temi cluster --local`: clusters images in this process, as the service would, without one."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
import typer

from app.cli.errors import FAILED, print_error
from app.cli.local_images import LocalImages, is_local_source
from app.cli.output import notices, percent, print_table, results, write_labels
from app.cli.progress import StageProgress
from app.cli.tables import describe_count, print_scores
from app.core.models.backbones import choose_usable_backbone
from app.core.platform.errors import ServiceError
from app.core.platform.settings import Settings, get_settings
from temi import TemiError, TrainConfig, Trainer, embed_images, load_backbone, mine_neighbors
from temi.analysis.cluster_count import estimate_cluster_count
from temi.backbones.auto import AUTO
from temi.calibration import fit_without_labels
from temi.config import AUTO_CLUSTERS

if TYPE_CHECKING:
    from temi_client import LabelsFrom

_STEPS_PER_UPDATE = 20
_SHOWN_REJECTS = 20

Features = npt.NDArray[np.float32]
Neighbors = npt.NDArray[np.integer]


def cluster_images(
    source: Path,
    name: str,
    backbone: str,
    settings: Mapping[str, Any],
    labels_from: "LabelsFrom",
    out: Path,
) -> None:
    """Embeds, mines and trains; writes a CSV file with one row per image."""
    if not is_local_source(source):
        message = f"{source} is neither a folder nor a zip or tar archive."
        raise typer.BadParameter(message, param_hint="FOLDER")
    images: LocalImages | None = None
    try:
        images = LocalImages(source, get_settings(), labels_from, leave_out=out)
        _check(settings)
        torch.set_num_threads(get_settings().threads)
        with StageProgress() as progress:
            features = _embed(backbone, images, get_settings(), progress)
            config = TrainConfig.for_recipe(**_count(features, settings, progress))
            trainer, neighbors = _train(features, config, get_settings(), progress)
    except (TemiError, ServiceError) as error:
        if images is not None:
            _list_rejected(images)
        print_error(str(error))
        raise typer.Exit(FAILED) from error
    probabilities = trainer.finish().predict_proba(features)  # (N, C)
    _report(name, images, features, neighbors, probabilities, config, out)
    if not trainer.settled:
        notices.print(
            f"[yellow]Not settled:[/] the assignments still changed when training ended after "
            f"{trainer.step:,} steps. More steps may give better clusters: "
            f"--steps {2 * trainer.step}"
        )


def _report(
    name: str,
    images: LocalImages,
    features: Features,
    neighbors: Neighbors,
    probabilities: Features,
    config: TrainConfig,
    out: Path,
) -> None:
    cluster_ids = probabilities.argmax(1)  # (N,)
    highest = probabilities.max(1)  # (N,)
    confidence = fit_without_labels(highest, cluster_ids, neighbors).apply(highest)
    members = images.readable
    names = [member.name for member in members]
    rows = zip(names, cluster_ids.tolist(), confidence.tolist(), strict=True)
    write_labels(out, rows)
    _print_clusters(name, config.n_clusters, names, cluster_ids, confidence)
    _print_scores([member.label for member in members], features, cluster_ids, config)
    _list_rejected(images)
    results.print(f"Labels of {len(names):,} images written to {out}", markup=False)
    results.print("To name the clusters and label new images, start a service: temi serve")


def _embed(name: str, images: LocalImages, settings: Settings, progress: StageProgress) -> Features:
    progress.update("load", 0, 0)
    if name == AUTO:
        choice = choose_usable_backbone(settings)
        notices.print(choice.reason, markup=False, soft_wrap=True)
        name = choice.name
    backbone = load_backbone(name, weights_dir=settings.weights_dir, device=settings.device)
    progress.update("embed", 0, images.total)
    blocks: list[Features] = []
    readers = images.readers(backbone.preprocessing.square)
    for block in embed_images(backbone, readers, threads=settings.threads, on_error=images.reject):
        blocks.append(block)
        progress.update("embed", sum(map(len, blocks)) + len(images.rejected), images.total)
    if not blocks:
        raise TemiError(f"no readable image among {len(images.rejected):,} files")
    return np.concatenate(blocks)  # (N, D)


def _check(settings: Mapping[str, Any]) -> None:
    """Refuses wrong settings before the images are read."""
    auto = settings["n_clusters"] == AUTO_CLUSTERS
    TrainConfig.for_recipe(**{**settings, **({"n_clusters": 2} if auto else {})})


def _count(
    features: Features, settings: Mapping[str, Any], progress: StageProgress
) -> Mapping[str, Any]:
    """Finds the number of clusters if it is `auto`."""
    if settings["n_clusters"] != AUTO_CLUSTERS:
        return settings
    estimate = estimate_cluster_count(
        features,
        seed=settings["seed"],
        progress=lambda done, total: progress.update("count", done, total),
    )
    notices.print(describe_count(estimate.as_dict()), markup=False, soft_wrap=True)
    return {**settings, "n_clusters": estimate.best}


def _train(
    features: Features, config: TrainConfig, settings: Settings, progress: StageProgress
) -> tuple[Trainer, Neighbors]:
    """Returns the trained heads and the neighbors of each image."""
    config = config.resolve(len(features))
    assert config.n_neighbors is not None  # resolved
    neighbors = mine_neighbors(
        features,
        config.n_neighbors,
        memory_bytes=settings.mine_bytes,
        progress=lambda done, total: progress.update("mine", done, total),
    )
    trainer = Trainer(features, neighbors.ids, config, device=settings.device)
    while not trainer.done:
        trainer.run(_STEPS_PER_UPDATE)
        progress.update("train", trainer.step, trainer.total_steps)
    return trainer, neighbors.ids


def _print_clusters(
    title: str,
    n_clusters: int,
    names: list[str],
    cluster_ids: npt.NDArray[np.int64],
    confidence: npt.NDArray[np.float64],
) -> None:
    rows = []
    for cluster_id in range(n_clusters):
        members = [int(index) for index in (cluster_ids == cluster_id).nonzero()[0]]
        members.sort(key=lambda index: -float(confidence[index]))
        mean = float(confidence[members].mean()) if members else None
        examples = ", ".join(names[index] for index in members[:3])
        rows.append((cluster_id, len(members), percent(mean), examples))
    columns = [">id", ">images", ">mean prob.", "most representative"]
    print_table(f"Clusters of {title}", columns, rows, titled=True)


def _print_scores(
    labels: list[str | None],
    features: Features,
    cluster_ids: npt.NDArray[np.int64],
    config: TrainConfig,
) -> None:
    if not any(labels):
        return
    from temi.analysis.kmeans import kmeans
    from temi.analysis.metrics import evaluate

    baseline = kmeans(features, config.n_clusters, seed=config.seed)
    found = {"temi": evaluate(labels, cluster_ids), "kmeans": evaluate(labels, baseline)}
    print_scores({method: scores.as_dict() for method, scores in found.items()})


def _list_rejected(images: LocalImages) -> None:
    if not images.rejected:
        return
    notices.print(f"[yellow]{len(images.rejected)} files were skipped:[/]")
    for name, code, detail in list(images.rejected.values())[:_SHOWN_REJECTS]:
        notices.print(f"  {name}: {detail} ({code})", markup=False, soft_wrap=True)
    if len(images.rejected) > _SHOWN_REJECTS:
        notices.print(f"  and {len(images.rejected) - _SHOWN_REJECTS} more")
