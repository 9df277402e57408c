"""The converted backbones that all tests share: each service would spend seconds on its own."""

import tempfile
from pathlib import Path

# Kept between runs: a graph is found by its weights and the versions of the packages.
CONVERTED = {"TEMI_ONNX_DIR": str(Path(tempfile.gettempdir()) / "temi-tests-onnx")}
