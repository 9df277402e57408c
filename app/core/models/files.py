"""Loads a model version from its files, and checks them."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from app.core.models.extractors import converted_backbones, uses_converted
from app.core.platform.errors import ModelIntegrity, StorageCorrupt
from app.core.platform.settings import Settings
from app.core.storage import Storage, open_storage
from temi.backbones.catalog import finetuned_name, has_text_encoder

if TYPE_CHECKING:
    from temi.backbones.base import Backbone
    from temi.backbones.extractor import FeatureExtractor
    from temi.config import Precision
    from temi.model import ClusterModel
    from temi.novelty import NoveltyDetector

MODEL_FILE = "model.safetensors"
BACKBONE_FILE = "backbone.safetensors"  # only in versions whose backbone was fine-tuned
NOVELTY_FILE = "novelty.safetensors"  # not in versions that are older than novelty


class LoadedVersion(NamedTuple):
    backbone: "FeatureExtractor"
    head: "ClusterModel"
    detector: "NoveltyDetector | None"


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """What is needed to load a version; hashable, as the key of loaded models."""

    folder: str
    hashes: tuple[tuple[str, str], ...]  # file name, sha256
    backbone: str
    weights_sha256: str
    precision: "Precision"
    temperature: float

    @property
    def is_finetuned(self) -> bool:
        return any(name == BACKBONE_FILE for name, _ in self.hashes)

    @property
    def has_text_encoder(self) -> bool:
        """Whether texts can be compared with the features; fine-tuning moves those away."""
        return has_text_encoder(self.backbone) and not self.is_finetuned

    @property
    def extractor(self) -> str:
        """The name of the backbone with the weights of this version."""
        return finetuned_name(self.backbone) if self.is_finetuned else self.backbone

    @property
    def has_novelty(self) -> bool:
        return any(name == NOVELTY_FILE for name, _ in self.hashes)

    @classmethod
    def of(cls, folder: str, files: Mapping[str, str], manifest: Mapping[str, Any]) -> "ModelFiles":
        return cls(
            folder=folder,
            hashes=tuple(sorted(files.items())),
            backbone=manifest["backbone"],
            weights_sha256=manifest["weights_sha256"],
            precision=manifest["precision"],
            temperature=manifest["temperature"],
        )


def read_verified(storage: Storage, folder: str, name: str, sha256: str) -> bytes:
    """The bytes of a file; raises ModelIntegrity if they are not those that were registered."""
    try:
        data = storage.read(f"{folder}/{name}")
    except OSError as error:
        raise unreadable(name) from error
    except StorageCorrupt as error:
        raise changed(name) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise changed(name)
    return data


def unreadable(name: str) -> ModelIntegrity:
    return ModelIntegrity(f"The model's file {name} cannot be read.")


def changed(name: str) -> ModelIntegrity:
    return ModelIntegrity(
        f"The model's file {name} was changed (its SHA-256 does not match) and is not served. "
        "Restore it from a backup or run the job again."
    )


def verify_files(storage: Storage, files: ModelFiles) -> dict[str, bytes]:
    """All files of the version, by name; raises ModelIntegrity if a SHA-256 does not match."""
    return {
        name: read_verified(storage, files.folder, name, sha256) for name, sha256 in files.hashes
    }


def load_model(
    files: ModelFiles, settings: Settings, *, known: "Iterable[FeatureExtractor]" = ()
) -> LoadedVersion:
    """Loads backbone, head and novelty detector; checks the SHA-256 of every file.

    A backbone in `known` is reused. Loads torch only on a GPU, or for a backbone that is not
    converted yet.
    """
    import safetensors.numpy

    from temi.model import ClusterModel

    contents = verify_files(open_storage(settings), files)
    model = ClusterModel.from_tensors(
        safetensors.numpy.load(contents[MODEL_FILE]), files.temperature
    )
    detector = _load_detector(contents)
    for extractor in known:
        found = (extractor.name, extractor.weights_hash, extractor.precision)
        if found == (files.extractor, files.weights_sha256, files.precision):
            return LoadedVersion(extractor, model, detector)
    return LoadedVersion(_open_extractor(files, contents, settings), model, detector)


def load_detector(files: ModelFiles, storage: Storage) -> "NoveltyDetector":
    """Loads the novelty detector alone; checks its SHA-256."""
    sha256 = dict(files.hashes)[NOVELTY_FILE]
    contents = {NOVELTY_FILE: read_verified(storage, files.folder, NOVELTY_FILE, sha256)}
    found = _load_detector(contents)
    assert found is not None
    return found


def load_trainable(files: ModelFiles, settings: Settings) -> "Backbone":
    """Loads the version's backbone with torch; checks the SHA-256 of every file."""
    return _load_with_torch(files, verify_files(open_storage(settings), files), settings)


def _open_extractor(
    files: ModelFiles, contents: Mapping[str, bytes], settings: Settings
) -> "FeatureExtractor":
    if not uses_converted(settings, files.precision):
        return _load_with_torch(files, contents, settings)
    converted = converted_backbones(settings)
    found = converted.load(files.extractor, files.weights_sha256)
    if found is not None:
        return found
    backbone = _load_with_torch(files, contents, settings)
    converted.add(backbone)
    return backbone


def _load_with_torch(
    files: ModelFiles, contents: Mapping[str, bytes], settings: Settings
) -> "Backbone":
    backbone = _load_backbone(files, settings)
    if BACKBONE_FILE in contents:
        backbone = _with_weights(backbone, contents[BACKBONE_FILE])
    if backbone.weights_hash != files.weights_sha256:
        raise ModelIntegrity(
            f"The weights of {files.backbone} on this machine are not those that the model was "
            "trained with; put the file that it was trained with into TEMI_WEIGHTS_DIR, or train "
            "again."
        )
    return backbone


def _load_detector(contents: Mapping[str, bytes]) -> "NoveltyDetector | None":
    import safetensors.numpy

    from temi.novelty import NoveltyDetector

    data = contents.get(NOVELTY_FILE)
    return None if data is None else NoveltyDetector(safetensors.numpy.load(data))


def _with_weights(backbone: "Backbone", data: bytes) -> "Backbone":
    import safetensors.torch

    from temi.finetune import with_weights

    return with_weights(backbone, safetensors.torch.load(data))


def _load_backbone(files: ModelFiles, settings: Settings) -> "Backbone":
    from temi.backbones.load import load_backbone

    return load_backbone(
        files.backbone,
        weights_dir=settings.weights_dir,
        device=settings.device,
        precision=files.precision,
    )
