"""Small models that load at once, and a collector for the predictor's replies."""

import io
import queue
import threading
import time
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from app.core.models.files import LoadedVersion, ModelFiles
from app.core.serving.messages import FromProcess, PredictResult
from temi.model import ClusterModel
from tests.waiting import LONG_SECONDS
from tests.worker.tiny import DIM, tiny_backbone

if TYPE_CHECKING:
    from temi.backbones.extractor import FeatureExtractor, Features
    from temi.backbones.preprocessing import Pixels

CLUSTERS = 3


def files(name: str, weights: str = "w") -> ModelFiles:
    return ModelFiles(
        folder=name,
        hashes=(),
        backbone="tiny",
        weights_sha256=weights,
        precision="float32",
        temperature=0.1,
    )


def head(seed: int = 0) -> ClusterModel:
    rng = np.random.default_rng(seed)
    shapes = {"w1": (DIM, 16), "b1": (16,), "w2": (16, 8), "b2": (8,), "w3": (8, CLUSTERS)}
    tensors = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    tensors["mean"], tensors["std"] = np.zeros(DIM, np.float32), np.ones(DIM, np.float32)
    return ClusterModel(tensors, temperature=0.1)


class Loader:
    """Replaces the loader: a head by the name of the folder, a backbone by the weights."""

    def __init__(self) -> None:
        self.loads: list[str] = []
        self.backbones = 0
        self.hold = threading.Event()
        self.hold.set()
        self.computing = threading.Event()  # cleared, the backbones wait
        self.computing.set()

    def __call__(self, model: ModelFiles, known: "dict[FeatureExtractor, object]" = {}) -> object:  # noqa: B006
        self.hold.wait(LONG_SECONDS)
        self.loads.append(model.folder)
        if model.folder == "broken":
            raise RuntimeError("no such tensor")
        for backbone in known:
            if backbone.weights_hash == model.weights_sha256:
                return LoadedVersion(backbone, head(len(model.folder)), None)
        self.backbones += 1
        backbone = tiny_backbone(seed=len(model.weights_sha256))
        backbone.weights_hash = model.weights_sha256
        embed = backbone.embed

        def embed_later(pixels: "Pixels", threads: int = 1) -> "Features":
            self.computing.wait(60)
            return embed(pixels, threads)

        backbone.embed = embed_later  # type: ignore[method-assign]
        return LoadedVersion(backbone, head(len(model.folder)), None)


class Replies:
    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[FromProcess] = queue.SimpleQueue()
        self.all: list[FromProcess] = []

    def __call__(self, *messages: FromProcess) -> None:
        for message in messages:
            self._queue.put(message)

    def wait(self, *ids: int, seconds: float = LONG_SECONDS) -> dict[int, FromProcess]:
        """Replies to these, however they turned out."""
        until = time.monotonic() + seconds
        found: dict[int, FromProcess] = {}
        while set(found) != set(ids):
            message = self._queue.get(timeout=max(0.01, until - time.monotonic()))
            self.all.append(message)
            if getattr(message, "id", None) in ids:
                found[message.id] = message  # type: ignore[union-attr]
        return found

    def wait_for(self, kind: type[FromProcess], seconds: float = LONG_SECONDS) -> FromProcess:
        until = time.monotonic() + seconds
        while True:
            message = self._queue.get(timeout=max(0.01, until - time.monotonic()))
            self.all.append(message)
            if isinstance(message, kind):
                return message


def png(seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (12, 12, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def probabilities(message: FromProcess) -> np.ndarray:
    assert isinstance(message, PredictResult), message
    return np.stack([outcome.probabilities for outcome in message.outcomes])  # type: ignore[union-attr]


def expected(data: list[bytes], model: ModelFiles) -> np.ndarray:
    """The probabilities computed one by one, without batching."""
    backbone = tiny_backbone(seed=len(model.weights_sha256))
    pixels = backbone.preprocessing.new_batch(len(data))
    for row, item in enumerate(data):
        backbone.preprocessing.fill(pixels[row], Image.open(io.BytesIO(item)))
    return head(len(model.folder)).predict_proba(backbone.embed(pixels))
