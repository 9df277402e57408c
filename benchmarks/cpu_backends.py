"""Compares ONNX Runtime with OpenVINO, which is not installed with the service, on one core.

python -m pip install --target /tmp/openvino --no-deps openvino openvino-telemetry
PYTHONPATH=.:/tmp/openvino .venv/bin/python -m benchmarks.cpu_backends
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.embedding import given_photos
from temi.backbones.catalog import DEFAULT_BACKBONE
from temi.backbones.embedding import read_image
from temi.backbones.extractor import Features
from temi.backbones.load import load_backbone
from temi.backbones.onnx import OnnxBackend
from temi.backbones.preprocessing import Pixels

_PER_ROUND = 30  # images
Embed = Callable[[Pixels], Features]


def open_vino(graph: bytes, threads: int) -> Embed:
    import openvino  # type: ignore[import-not-found, unused-ignore]

    options = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
    }
    core: Any = openvino.Core()
    compiled = core.compile_model(core.read_model(graph), "CPU", options)
    request = compiled.create_infer_request()

    def embed(pixels: Pixels) -> Features:
        rows = [request.infer({0: row[None]})[compiled.output(0)].copy() for row in pixels]
        return np.concatenate(rows)

    return embed


def compare(graph: bytes, pixels: Pixels, rounds: int) -> None:
    vino, onnx = open_vino(graph, 1), OnnxBackend(graph)
    ours, theirs = onnx.embed(pixels), vino(pixels)
    difference = np.abs(ours - theirs).max() / np.abs(ours).max()
    print(f"largest difference, of the largest feature: {difference:.1e}")
    same = np.mean(open_vino(graph, 2)(pixels) == theirs)
    print(f"OpenVINO, same bits with two threads: {same:.1%}")
    times: dict[str, list[float]] = {"ONNX Runtime": [], "OpenVINO": []}
    for _ in range(rounds):
        for name, embed in (("ONNX Runtime", onnx.embed), ("OpenVINO", vino)):
            started = time.process_time()
            for number in range(_PER_ROUND):
                row = number % len(pixels)
                embed(pixels[row : row + 1])
            times[name].append((time.process_time() - started) / _PER_ROUND * 1e3)
    for name, found in times.items():
        print(f"{name}: {statistics.median(found):.2f} ms of a core per image")
    ratios = [a / b for a, b in zip(*times.values(), strict=True)]
    print(f"ratio, median of {rounds} rounds: {statistics.median(ratios):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, default=Path("demo/clipart.zip"))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    backbone = load_backbone(DEFAULT_BACKBONE, device="cpu")
    assert isinstance(backbone.backend, OnnxBackend)
    pixels = backbone.preprocessing.new_batch(options.count)
    with tempfile.TemporaryDirectory() as folder:
        for row, path in zip(pixels, given_photos(options.images, Path(folder)), strict=False):
            image = read_image(path, at_least=backbone.preprocessing.decode_side)
            backbone.preprocessing.fill(row, image)
    compare(backbone.backend.graph, pixels, options.rounds)


if __name__ == "__main__":
    main()
