"""`temi cluster --local`: the library on a folder, without a service."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from app.cli.errors import FAILED
from app.cli.output import notices, percent, print_table, results, write_labels
from app.cli.progress import StageProgress

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    Features = npt.NDArray[np.float32]

_STEPS_A_REPORT = 20
_SHOWN_REJECTS = 20


class FolderImages:
    """The images of a folder, decoded when needed; what cannot be read is noted and passed over."""

    def __init__(self, folder: Path, files: list[Path]) -> None:
        self._folder = folder
        self._files = files
        self.rejected: dict[int, tuple[str, str, str]] = {}  # name, code, detail

    def __len__(self) -> int:
        return len(self._files)

    @property
    def names(self) -> list[str]:
        """Of the images that could be read, once all have been tried."""
        return [self._name(i) for i in range(len(self)) if i not in self.rejected]

    def readers(self, at_least: int) -> "Iterator[Callable[[], Image.Image]]":
        """One function an image, that decodes it no smaller than a backbone needs."""
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
    """Embed, mine, train, and write one row an image."""
    from temi import TemiError, TrainConfig

    images = FolderImages(folder, list_files(folder, out))
    try:
        config = TrainConfig.for_recipe(**settings)
        with StageProgress() as progress:
            features = _embed(backbone, images, progress)
            probabilities = _train(features, config, progress)
    except TemiError as error:
        _list_rejected(images)
        notices.print(f"[red]error[/] {escape(str(error))}")
        raise typer.Exit(FAILED) from error
    found = probabilities.argmax(1)  # (N,)
    sure = probabilities.max(1)
    names = images.names
    rows = zip(names, found.tolist(), sure.tolist(), strict=True)
    write_labels(out, rows)
    _print_groups(config.n_clusters, names, found, sure)
    _list_rejected(images)
    results.print(f"Labels of {len(names)} images are in {out}", markup=False)
    results.print("To name the groups and label new images, start a service: temi serve")


def list_files(folder: Path, out: Path) -> list[Path]:
    """Every file but hidden ones and our own earlier output, in a fixed order."""
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
        raise TemiError("there is no image that can be read")
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
        trainer.run(_STEPS_A_REPORT)
        progress.update("train", trainer.step, trainer.total_steps)
    return trainer.finish().predict_proba(features)  # (N, C)


def _print_groups(
    n_clusters: int, names: list[str], found: "npt.NDArray[np.int64]", sure: "Features"
) -> None:
    rows = []
    for number in range(n_clusters):
        members = [int(index) for index in (found == number).nonzero()[0]]
        members.sort(key=lambda index: -float(sure[index]))
        mean = float(sure[members].mean()) if members else None
        surest = ", ".join(names[index] for index in members[:3])
        rows.append((number, len(members), percent(mean), surest))
    print_table("Clusters", [">id", ">images", ">mean prob.", "surest images"], rows)


def _list_rejected(images: FolderImages) -> None:
    if not images.rejected:
        return
    notices.print(f"[yellow]{len(images.rejected)} files were left out:[/]")
    for name, code, detail in list(images.rejected.values())[:_SHOWN_REJECTS]:
        notices.print(f"  {name}: {detail} ({code})", markup=False, soft_wrap=True)
    if len(images.rejected) > _SHOWN_REJECTS:
        notices.print(f"  and {len(images.rejected) - _SHOWN_REJECTS} more")
