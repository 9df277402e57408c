"""Measures the limits of this machine, and the share of them that each stage reaches.

A rate is the best of several short runs, because other work on the machine can only make a run
slower.
"""

import io
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from PIL import Image

from temi.backbones.base import Backbone
from temi.backbones.catalog import DEFAULT_BACKBONE
from temi.backbones.embedding import default_batch, embed_images, read_image
from temi.backbones.load import load_backbone
from temi.config import TrainConfig
from temi.device import resolve_device
from temi.model import ClusterModel
from temi.neighbors.search import mine_neighbors
from temi.precision import fast_precisions
from temi.training.head_threads import HeadThreadPool
from temi.training.trainer import Trainer

_REPEATS = 3
_PHOTO = (640, 480)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line of the table: a rate, and its share of the limit it is compared with."""

    what: str
    rate: float
    unit: str
    share: float | None = None
    limit: str | None = None


def bench(device: str = "auto") -> Iterator[Figure]:
    """Yield the limits first, then each stage, as soon as it is measured."""
    target = resolve_device(device)
    peaks = yield from _matrix_peaks(target)
    backbone = load_backbone(DEFAULT_BACKBONE, device=device)
    photos = [_photo(seed) for seed in range(8)]
    decode = best_rate(lambda: [_decode(photo, backbone) for photo in photos], len(photos))
    yield Figure(what="JPEG decode, 640 x 480, one core", rate=decode, unit="images/s")
    forward, files = _embedding_rates(backbone, photos)
    yield Figure(what="backbone forward, tensors in memory", rate=forward, unit="images/s")
    yield Figure(
        what="embed, JPEG to features",
        rate=files,
        unit="images/s",
        share=files / forward,
        limit="backbone forward",
    )
    yield _mine(peaks["float32"])
    for dim in (384, 1280):
        yield _train(dim, device, peaks["float32"], "float32")
    yield _predict(backbone.dim, forward)


def best_rate(work: Callable[[], object], amount: float, repeats: int = _REPEATS) -> float:
    """Return the amount per second of the best run, after one run that is not measured."""
    work()
    return amount / min(_seconds(work) for _ in range(repeats))


def matrix_peak(dtype: torch.dtype, device: torch.device, size: int = 2048) -> float:
    """Return the GFLOP/s of a square matrix product."""
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))

    def multiply() -> None:
        torch.mm(a, b)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return best_rate(multiply, 2e-9 * size**3)


def train_gflop(config: TrainConfig, dim: int) -> float:
    """Return the GFLOP of one step: teacher forward, student forward and backward."""
    assert config.batch_size is not None
    hidden, bottleneck = config.head_dims
    # The features need no gradient, which saves a quarter of the first layer.
    row = 3 * dim * hidden + 4 * hidden * bottleneck + 4 * bottleneck * config.n_clusters
    return 2e-9 * 2 * config.batch_size * config.n_heads * row


def train_rate(config: TrainConfig, dim: int, device: str = "auto", steps: int = 2) -> float:
    """Return the GFLOP/s of training on noise, which takes as long as on real features."""
    n = 4 * (config.batch_size or 512)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, dim)).astype(np.float32)
    neighbors = rng.integers(0, n, size=(n, 10))
    trainer = Trainer(features, neighbors, config, device=device)
    return best_rate(lambda: trainer.run(steps), steps * train_gflop(trainer.config, dim))


def _matrix_peaks(device: torch.device) -> Generator[Figure, None, dict[str, float]]:
    peaks = {}
    for dtype in (torch.float32, torch.bfloat16):
        # A CPU without bfloat16 instructions would take minutes for the large product.
        name = str(dtype).removeprefix("torch.")
        slow = name not in fast_precisions(device)
        peaks[name] = matrix_peak(dtype, device, size=256 if slow else 2048)
        yield Figure(what=f"matrix product, {name}", rate=peaks[name], unit="GFLOP/s")
    return peaks


def _embedding_rates(backbone: Backbone, photos: list[bytes]) -> tuple[float, float]:
    """Return the images/s of the forward pass alone and with decoding, measured alternately."""
    images = [partial(_decode, photo, backbone) for photo in photos] * 8
    pixels = backbone.preprocessing.new_batch(len(images))
    for row, image in zip(pixels, images, strict=True):
        backbone.preprocessing.fill(row, image())
    size = default_batch(backbone.device_type)
    batches = [pixels[start : start + size] for start in range(0, len(pixels), size)]
    pool = HeadThreadPool(len(batches), backbone.device)
    ways = (partial(pool.map, backbone.embed, batches), partial(_drain, backbone, images))
    runs = [[best_rate(way, len(pixels), 1) for way in ways] for _ in range(_REPEATS)]
    forward, files = (max(rates) for rates in zip(*runs, strict=True))
    return forward, files


def _drain(backbone: Backbone, images: list[partial[Image.Image]]) -> None:
    for _ in embed_images(backbone, images):
        pass


def _mine(peak: float, n: int = 20_000, dim: int = 384) -> Figure:
    features = np.random.default_rng(0).normal(size=(n, dim)).astype(np.float32)
    work = partial(mine_neighbors, features, 50, method="exact")
    rate = best_rate(work, 2e-9 * n * n * dim, repeats=1)
    return Figure(
        what=f"mine, exact, {n:,} rows of {dim}",
        rate=rate,
        unit="GFLOP/s",
        share=rate / peak,
        limit="matrix product, float32",
    )


def _train(dim: int, device: str, peak: float, dtype: str) -> Figure:
    config = TrainConfig.paper(n_clusters=10)
    rate = train_rate(config, dim, device)
    return Figure(
        what=f"train, 50 heads, 512 pairs, {dim} features",
        rate=rate,
        unit="GFLOP/s",
        share=rate / peak,
        limit=f"matrix product, {dtype}",
    )


def _predict(dim: int, forward: float, n: int = 2000) -> Figure:
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "w1": (dim, 512),
        "b1": (512,),
        "w2": (512, 256),
        "b2": (256,),
        "w3": (256, 100),
    }
    tensors = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    tensors |= {"mean": np.zeros(dim, np.float32), "std": np.ones(dim, np.float32)}
    model = ClusterModel(tensors, temperature=0.1)
    features = rng.normal(size=(n, dim)).astype(np.float32)
    rate = best_rate(lambda: model.predict_proba(features), n)
    return Figure(
        what="predict, head on features (share: its time of the backbone's)",
        rate=rate,
        unit="images/s",
        share=forward / rate,
        limit="backbone forward",
    )


def _photo(seed: int) -> bytes:
    """A JPEG with smooth areas and some noise; pure noise would take far longer to decode."""
    rng = np.random.default_rng(seed)
    soft = rng.integers(0, 256, size=(12, 16, 3), dtype=np.uint8)
    pixels = np.asarray(Image.fromarray(soft).resize(_PHOTO), dtype=np.float32)
    grain = rng.normal(0, 4, size=(*pixels.shape[:2], 1))
    out = io.BytesIO()
    Image.fromarray((pixels + grain).clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=85)
    return out.getvalue()


def _decode(photo: bytes, backbone: Backbone) -> Image.Image:
    return read_image(io.BytesIO(photo), at_least=backbone.preprocessing.decode_side)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
