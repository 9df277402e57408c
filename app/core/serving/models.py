"""Models that are ready to answer, as many as fit; those of one backbone share it."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.core.models.files import ModelFiles

if TYPE_CHECKING:
    from temi.backbones.base import Backbone
    from temi.model import ClusterModel

Load = Callable[..., "tuple[Backbone, ClusterModel]"]  # of files, and of backbones that are known


@dataclass(eq=False)
class ServedBackbone:
    """A backbone in memory."""

    backbone: "Backbone"

    @property
    def batch(self) -> int:
        from temi.backbones.embedding import default_batch

        return default_batch(self.backbone.device)

    @property
    def bytes(self) -> int:
        tensors = (*self.backbone.module.parameters(), *self.backbone.module.buffers())
        copies = 1 if self.backbone.backend.name == "torch" else 2
        return copies * sum(t.numel() * t.element_size() for t in tensors)


@dataclass(eq=False)
class ServedModel:
    files: ModelFiles
    home: ServedBackbone
    head: "ClusterModel"
    used_at: float = field(default_factory=time.monotonic)

    @property
    def bytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.head.tensors().values())


class LoadedModels:
    """Whoever holds a model may go on using it when it is out. One thread loads; all else is done
    under a lock of the owner."""

    def __init__(self, load: Load, *, max_bytes: int, idle_seconds: float) -> None:
        self._load = load
        self._max_bytes = max_bytes
        self._idle_seconds = idle_seconds
        self._models: OrderedDict[ModelFiles, ServedModel] = OrderedDict()

    @property
    def bytes(self) -> int:
        homes = {id(model.home): model.home for model in self._models.values()}
        heads = sum(model.bytes for model in self._models.values())
        return heads + sum(home.bytes for home in homes.values())

    def __len__(self) -> int:
        return len(self._models)

    def get(self, files: ModelFiles) -> ServedModel | None:
        model = self._models.get(files)
        if model is not None:
            model.used_at = time.monotonic()
            self._models.move_to_end(files)
        return model

    def load(self, files: ModelFiles) -> ServedModel:
        """Takes seconds, and changes nothing: `keep` does."""
        homes = {model.home.backbone: model.home for model in self._models.values()}
        backbone, head = self._load(files, known=homes)
        home = homes.get(backbone) or ServedBackbone(backbone)
        return ServedModel(files, home, head)

    def keep(self, model: ServedModel) -> None:
        self._models[model.files] = model

    def drop_surplus(self) -> Iterator[ServedModel]:
        """The least recently used ones, until the rest fits; the last one used stays."""
        while len(self._models) > 1 and self.bytes > self._max_bytes:
            yield self._models.popitem(last=False)[1]

    def drop_idle(self) -> Iterator[ServedModel]:
        before = time.monotonic() - self._idle_seconds
        for files, model in list(self._models.items()):
            if model.used_at < before:
                del self._models[files]
                yield model
