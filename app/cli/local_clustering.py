"""`temi cluster --local`: clusters a folder in this process, without a service."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from app.cli.errors import FAILED, print_error
from app.cli.output import notices, percent, print_table, results, write_labels
from app.cli.progress import StageProgress

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    Features = npt.NDArray[np.float32]

_STEPS_PER_UPDATE = 20
_SHOWN_REJECTS = 20


class FolderImages:
    """The images of a folder, decoded on demand; unreadable files are recorded and skipped."""

    def __init__(self, folder: Path, files: list[Path]) -> None:
        self._folder = folder
        self._files = files
        self.rejected: dict[int, tuple[str, str, str]] = {}  # name, code, detail

    def __len__(self) -> int:
        return len(self._files)

    @property
    def names(self) -> list[str]:
        """Names of the readable images; complete after all were decoded."""
        return [self._name(i) for i in range(len(self)) if i not in self.rejected]

    def readers(self, at_least: int) -> "Iterator[Callable[[], Image.Image]]":
        """Yields a function per image that decodes it, at least as large as the backbone needs."""
        from app.core.datasets.images import decode_image

        def read(path: Path) -> "Image.Image":
            return decode_image(path.read_bytes(), at_least=at_least).image

        return (partial(read, path) for path in self._files)

    def reject(self, position: int, error: Exception) -> None:
        from app.core.platform.errors import ImageRejected

        if isinstance(error, ImageRejected):
            self.rejected[position] = (self._name(position), error.code, error.detail)
        elif isinstance(error, OSError):
            self.rejected[position] = (self._name(position), "file_unreadable", str(error))
        else:
            raise error

    def _name(self, position: int) -> str:
        return self._files[position].relative_to(self._folder).as_posix()


def cluster_folder(folder: Path, backbone: str, settings: Mapping[str, Any], out: Path) -> None:
    """Embeds, mines and trains; writes a CSV file with one row per image."""
    from temi import TemiError, TrainConfig

    images = FolderImages(folder, list_files(folder, out))
    try:
        config = TrainConfig.for_recipe(**settings)
        with StageProgress() as progress:
            features = _embed(backbone, images, progress)
            probabilities = _train(features, config, progress)
    except TemiError as error:
        _list_rejected(images)
        print_error(str(error))
        raise typer.Exit(FAILED) from error
    cluster_ids = probabilities.argmax(1)  # (N,)
    confidence = probabilities.max(1)  # (N,)
    names = images.names
    rows = zip(names, cluster_ids.tolist(), confidence.tolist(), strict=True)
    write_labels(out, rows)
    _print_clusters(config.n_clusters, names, cluster_ids, confidence)
    _list_rejected(images)
    results.print(f"Labels of {len(names)} images written to {out}", markup=False)
    results.print("To name the clusters and label new images, start a service: temi serve")


def list_files(folder: Path, out: Path) -> list[Path]:
    """Returns all files but hidden ones and the output file, in a fixed order."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and path.resolve() != out.resolve()
    ]


def _embed(name: str, images: FolderImages, progress: StageProgress) -> "Features":
    import numpy as np

    from app.core.platform.settings import get_settings
    from temi import TemiError, embed_images, load_backbone

    total = len(images)
    progress.update("load", 0, 0)
    backbone = load_backbone(name, weights_dir=get_settings().weights_dir)
    progress.update("embed", 0, total)
    blocks: list[Features] = []
    readers = images.readers(backbone.preprocessing.decode_side)
    for block in embed_images(backbone, readers, on_error=images.reject):
        blocks.append(block)
        progress.update("embed", sum(map(len, blocks)) + len(images.rejected), total)
    if not blocks:
        raise TemiError(f"no readable image among {total} files")
    return np.concatenate(blocks)  # (N, D)


def _train(features: "Features", config: Any, progress: StageProgress) -> "Features":
    from temi import Trainer, mine_neighbors

    config = config.resolve(len(features))
    neighbors = mine_neighbors(
        features,
        config.n_neighbors,
        progress=lambda done, total: progress.update("mine", done, total),
    )
    trainer = Trainer(features, neighbors.ids, config)
    while not trainer.done:
        trainer.run(_STEPS_PER_UPDATE)
        progress.update("train", trainer.step, trainer.total_steps)
    return trainer.finish().predict_proba(features)  # (N, C)


def _print_clusters(
    n_clusters: int,
    names: list[str],
    cluster_ids: "npt.NDArray[np.int64]",
    confidence: "Features",
) -> None:
    rows = []
    for cluster_id in range(n_clusters):
        members = [int(index) for index in (cluster_ids == cluster_id).nonzero()[0]]
        members.sort(key=lambda index: -float(confidence[index]))
        mean = float(confidence[members].mean()) if members else None
        examples = ", ".join(names[index] for index in members[:3])
        rows.append((cluster_id, len(members), percent(mean), examples))
    print_table("Clusters", [">id", ">images", ">mean prob.", "most representative"], rows)


def _list_rejected(images: FolderImages) -> None:
    if not images.rejected:
        return
    notices.print(f"[yellow]{len(images.rejected)} files were skipped:[/]")
    for name, code, detail in list(images.rejected.values())[:_SHOWN_REJECTS]:
        notices.print(f"  {name}: {detail} ({code})", markup=False, soft_wrap=True)
    if len(images.rejected) > _SHOWN_REJECTS:
        notices.print(f"  and {len(images.rejected) - _SHOWN_REJECTS} more")
