"""The models in memory, as many as fit. Models of one backbone share it."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from app.core.models.files import LoadedVersion, ModelFiles
from app.core.serving.messages import Predicted

if TYPE_CHECKING:
    from temi.backbones.extractor import FeatureExtractor
    from temi.model import ClusterModel
    from temi.novelty import NoveltyDetector

Load = Callable[..., "LoadedVersion"]  # of files, and backbones to reuse


@dataclass(eq=False)
class SharedBackbone:
    """A backbone in memory, used by one or more models."""

    backbone: "FeatureExtractor"

    @property
    def batch_size(self) -> int:
        from temi.backbones.embedding import default_batch

        return default_batch(self.backbone.device_type)


@dataclass(eq=False)
class ServedModel:
    files: ModelFiles
    shared: SharedBackbone
    head: "ClusterModel"
    detector: "NoveltyDetector | None" = None
    used_at: float = field(default_factory=time.monotonic)

    @property
    def bytes(self) -> int:
        head = sum(tensor.nbytes for tensor in self.head.tensors().values())
        return head + (self.detector.bytes if self.detector else 0)

    def predict(self, features: npt.NDArray[np.float32]) -> list[Predicted]:
        """What the model says about each row (N, D)."""
        probabilities = self.head.predict_proba(features)
        if self.detector is None:
            return [Predicted(row, None) for row in probabilities]
        return list(map(Predicted, probabilities, self.detector.novelty(features).tolist()))


class LoadedModels:
    """A cache of models by least recent use.

    A caller may go on using a model after it was dropped. One thread calls `load`; the owner's
    lock protects everything else.
    """

    def __init__(self, load: Load, *, max_bytes: int, idle_seconds: float) -> None:
        self._load = load
        self._max_bytes = max_bytes
        self._idle_seconds = idle_seconds
        self._models: OrderedDict[ModelFiles, ServedModel] = OrderedDict()

    @property
    def bytes(self) -> int:
        backbones = {id(model.shared): model.shared for model in self._models.values()}
        heads = sum(model.bytes for model in self._models.values())
        return heads + sum(shared.backbone.bytes for shared in backbones.values())

    def __len__(self) -> int:
        return len(self._models)

    def get(self, files: ModelFiles) -> ServedModel | None:
        model = self._models.get(files)
        if model is not None:
            model.used_at = time.monotonic()
            self._models.move_to_end(files)
        return model

    def load(self, files: ModelFiles) -> ServedModel:
        """Loads a model, which takes seconds; `add` puts it into the cache."""
        known = {model.shared.backbone: model.shared for model in self._models.values()}
        backbone, head, detector = self._load(files, known=known)
        shared = known.get(backbone) or SharedBackbone(backbone)
        return ServedModel(files, shared, head, detector)

    def add(self, model: ServedModel) -> None:
        self._models[model.files] = model

    def drop_surplus(self) -> Iterator[ServedModel]:
        """Drops the least recently used models until the rest fits; the last one used stays."""
        while len(self._models) > 1 and self.bytes > self._max_bytes:
            yield self._models.popitem(last=False)[1]

    def drop_idle(self) -> Iterator[ServedModel]:
        before = time.monotonic() - self._idle_seconds
        for files, model in list(self._models.items()):
            if model.used_at < before:
                del self._models[files]
                yield model
