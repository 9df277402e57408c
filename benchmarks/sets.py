"""Real features to measure quality on: the digits of scikit-learn, the demo's drawings,
and any zip of images with one folder per class."""

import hashlib
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

from temi import embed_files, load_backbone

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif")
CACHE = Path(tempfile.gettempdir()) / "temi-bench"


@dataclass(frozen=True)
class LabeledSet:
    name: str
    features: npt.NDArray[np.float32]
    labels: list[str]

    @property
    def n_clusters(self) -> int:
        return len(set(self.labels))


def digits() -> LabeledSet:
    """1,797 digits of 8 x 8 pixels; the pixels are the features."""
    found = load_digits()
    return LabeledSet(
        "digits", found.data.astype(np.float32), [str(label) for label in found.target]
    )


def images(source: Path, backbone: str = "efficientnet_lite0") -> LabeledSet:
    """Embed a folder or zip with one folder per class; the features are cached."""
    key = hashlib.sha256(f"{source.resolve()}|{source.stat().st_mtime}|{backbone}".encode())
    cached = CACHE / f"{source.stem}-{key.hexdigest()[:12]}.npz"
    if not cached.exists():
        _embed(source, backbone, cached)
    with np.load(cached) as stored:
        return LabeledSet(source.stem, stored["features"], stored["labels"].tolist())


def demo() -> LabeledSet:
    return images(Path(__file__).resolve().parent.parent / "demo" / "clipart.zip")


def _embed(source: Path, backbone: str, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if source.is_file():
            with zipfile.ZipFile(source) as archive:
                archive.extractall(folder)
            source = Path(folder)
        paths = sorted(p for p in source.rglob("*") if p.suffix.lower() in ENDINGS)
        features = np.concatenate(list(embed_files(load_backbone(backbone), paths)))
        target.parent.mkdir(parents=True, exist_ok=True)
        np.savez(target, features=features, labels=[path.parent.name for path in paths])
