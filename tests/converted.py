"""The converted backbones that services of tests share: each would spend seconds on its own."""

import tempfile
from pathlib import Path
from typing import Any

# Kept between runs: a graph is found by its weights and the versions of the packages.
CONVERTED: dict[str, Any] = {"onnx_dir": Path(tempfile.gettempdir()) / "temi-tests-onnx"}
