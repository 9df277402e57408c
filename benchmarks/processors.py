"""Compares the features of the embedded backbone on other, emulated processors.

Needs `qemu-x86_64` (Debian's package qemu-user).

.venv/bin/python -m benchmarks.processors --images photos.zip
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.embedding import given_photos
from temi.backbones.catalog import DEFAULT_BACKBONE
from temi.backbones.embedding import read_image
from temi.backbones.load import load_backbone
from temi.backbones.onnx import OnnxBackend

# With AVX2 and FMA (since 2013), and without.
PROCESSORS = ("Haswell", "Nehalem")
_SECONDS = 600
_RUN = """
import sys
import numpy as np
import onnxruntime
graph, pixels, out = sys.argv[1:]
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
rows = np.load(pixels)
np.save(out, np.concatenate([session.run(None, {"pixels": row[None]})[0] for row in rows]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, default=Path("demo/clipart.zip"))
    parser.add_argument("--count", type=int, default=4)
    options = parser.parse_args()
    if shutil.which("qemu-x86_64") is None:
        sys.exit("qemu-x86_64 is missing: install Debian's qemu-user")
    with tempfile.TemporaryDirectory() as name:
        compare(Path(name), options.images, options.count)


def compare(folder: Path, source: Path, count: int) -> None:
    backbone = load_backbone(DEFAULT_BACKBONE, device="cpu")
    assert isinstance(backbone.backend, OnnxBackend)
    graph, stored = folder / "backbone.onnx", folder / "pixels.npy"
    graph.write_bytes(backbone.backend.graph)
    pixels = backbone.preprocessing.new_batch(count)
    for row, path in zip(pixels, given_photos(source, folder), strict=False):
        image = read_image(path, at_least=backbone.preprocessing.decode_side)
        backbone.preprocessing.fill(row, image.convert("RGB"))
    np.save(stored, pixels)
    here = backbone.embed(pixels)
    print("| processor | same bits | largest difference, of the largest feature |\n|---|---|---|")
    for processor in PROCESSORS:
        out = folder / f"{processor}.npy"
        command = ["qemu-x86_64", "-cpu", processor, sys.executable, "-c", _RUN]
        files = [str(path) for path in (graph, stored, out)]
        subprocess.run([*command, *files], check=True, capture_output=True, timeout=_SECONDS)
        there = np.load(out)
        difference = float(np.abs(there - here).max() / np.abs(here).max())
        print(f"| {processor} | {np.mean(there == here):.1%} | {difference:.1e} |", flush=True)


if __name__ == "__main__":
    main()
