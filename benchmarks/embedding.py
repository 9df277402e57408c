"""The rate of embedding JPEG files, compared with the forward pass alone.

.venv/bin/python -m benchmarks.embedding
.venv/bin/python -m benchmarks.embedding --images photos.zip
"""

import argparse
import statistics
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from PIL import Image, ImageDraw

from temi import Backbone, load_backbone
from temi.backbones.embedding import default_batch, embed_files, read_image

SIZES = ((160, 160), (640, 480), (1920, 1080), (4000, 3000))
DISTINCT = 6  # photos per size; decoding a file again takes as long
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif")
Row = dict[str, Any]


def draw_photo(width: int, height: int, seed: int) -> Image.Image:
    """Smooth areas at several scales, sharp-edged shapes and sensor noise."""
    rng = np.random.default_rng(seed)
    pixels = np.full((height, width, 3), 128.0, dtype=np.float32)
    for columns, strength in ((5, 60), (20, 25), (80, 12), (320, 6)):
        small = rng.normal(0, strength, (max(2, columns * height // width), columns, 3))
        for channel in range(3):
            field = Image.fromarray(small[..., channel].astype(np.float32))
            pixels[..., channel] += np.asarray(field.resize((width, height)))
    pixels += rng.normal(0, 2, (height, width, 1)).astype(np.float32)
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(12):
        x, y, r = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(0.02, 0.15) * height
        color = tuple(int(value) for value in rng.integers(0, 256, 3))
        draw.ellipse((x - r, y - r, x + r, y + r), fill=color)
    return image


def write_photos(folder: Path, width: int, height: int) -> list[Path]:
    paths = []
    for seed in range(DISTINCT):
        paths.append(folder / f"{width}x{height}-{seed}.jpg")
        draw_photo(width, height, seed).save(paths[-1], quality=85)
    return paths


def given_photos(source: Path, folder: Path) -> list[Path]:
    """Return the images of a folder, or of a zip, which is unpacked into `folder`."""
    if source.is_file():
        with zipfile.ZipFile(source) as archive:
            archive.extractall(folder)
        source = folder
    return sorted(path for path in source.rglob("*") if path.suffix.lower() in ENDINGS)


class Measurement:
    """One set of files, with all methods that are compared."""

    def __init__(self, backbone: Backbone, paths: list[Path], count: int) -> None:
        self.backbone = backbone
        self.paths = list(islice(cycle(paths), count))
        self.threads = torch.get_num_threads()
        self.pixels = backbone.preprocessing.new_batch(count)
        for row, path in zip(self.pixels, self.paths, strict=True):
            backbone.preprocessing.fill(row, self.scaled(path))

    def ways(self) -> dict[str, Callable[[], object]]:
        return {
            "forward": self.forward,
            "decode, full": lambda: self.decode(self.full),
            "decode, scaled": lambda: self.decode(self.scaled),
            "files to features": self.embed,
        }

    def forward(self) -> None:
        """Run one thread per core, as embedding does."""
        size = default_batch(self.backbone.device_type)
        batches = [self.pixels[start : start + size] for start in range(0, len(self.pixels), size)]
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(self.backbone.embed, batches))

    def decode(self, read: Callable[[Path], Image.Image]) -> None:
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(lambda path: read(path).size, self.paths))  # does not keep the pixels

    def embed(self) -> None:
        for _ in embed_files(self.backbone, self.paths):
            pass

    def scaled(self, path: Path) -> Image.Image:
        return read_image(path, at_least=self.backbone.preprocessing.decode_side)

    def full(self, path: Path) -> Image.Image:
        return read_image(path, at_least=1_000_000)


def measure(backbone: Backbone, name: str, paths: list[Path], count: int, repeats: int) -> Row:
    """Return the median images/s of each method, measured alternately under the same load.

    Other programs disturb rates but hardly the processor time, hence the second ratio.
    """
    ways = Measurement(backbone, paths, count).ways()
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    busy: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, work in ways.items():
            started, used = time.perf_counter(), time.process_time()
            work()
            seconds[way].append(time.perf_counter() - started)
            busy[way].append(time.process_time() - used)
    rates = {way: count / statistics.median(times) for way, times in seconds.items()}
    cpu = {way: min(times) for way, times in busy.items()}
    forward = [way for way in ways if way.startswith("forward")]
    return {
        "images": name,
        "images/s": rates,
        "ratio": rates["files to features"] / max(rates[way] for way in forward),
        "cpu ratio": min(cpu[way] for way in forward) / cpu["files to features"],
    }


def measure_memory(backbone: Backbone, name: str, paths: list[Path], count: int) -> Row:
    """Return the additional peak memory, for some images and for four times as many."""
    process = psutil.Process()
    peaks = []
    for number in (count, count, 4 * count):
        before = peak = process.memory_info().rss
        for _ in embed_files(backbone, islice(cycle(paths), number)):
            peak = max(peak, process.memory_info().rss)
        peaks.append((peak - before) / 1024**2)
    return {"images": name, "first MB": peaks[0], "same again MB": peaks[1], "4x MB": peaks[2]}


def run(source: Path | None = None, count: int = 32, repeats: int = 3) -> Iterator[Row]:
    backbone = load_backbone("efficientnet_lite0")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if source is not None:
            sets = {source.name: given_photos(source, folder)}
        else:
            sets = {f"{w}x{h}": write_photos(folder, w, h) for w, h in SIZES}
        for title, paths in list(sets.items())[-1:]:
            yield measure_memory(backbone, title, paths, count)
        for title, paths in sets.items():
            yield measure(backbone, title, paths, count, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, help="a folder or zip instead of drawn photos")
    parser.add_argument("--count", type=int, default=32, help="images in each measurement")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    for row in run(arguments.images, arguments.count, arguments.repeats):
        rates = row.pop("images/s", {})
        print(", ".join(f"{k} {v if isinstance(v, str) else round(v, 2)}" for k, v in row.items()))
        for way, rate in rates.items():
            print(f"  {way:24} {rate:8.1f} images/s", flush=True)


if __name__ == "__main__":
    main()
