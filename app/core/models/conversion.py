"""Loads models in a process that predicts. A backbone is converted to ONNX by a process of its own:
the one that predicts could not unload torch again."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import structlog

from app.core.models.extractors import converted_backbones, uses_converted
from app.core.models.files import LoadedVersion, ModelFiles, load_model
from app.core.platform.processes import die_with_parent
from app.core.platform.settings import Settings

if TYPE_CHECKING:
    from temi.backbones.extractor import FeatureExtractor

log = structlog.get_logger()


def load_served_model(
    files: ModelFiles, settings: Settings, *, known: "Iterable[FeatureExtractor]" = ()
) -> LoadedVersion:
    """Like `load_model`; loads torch only on a GPU, or if ONNX cannot express the backbone."""
    shared = any(extractor.weights_hash == files.weights_sha256 for extractor in known)
    if not shared and uses_converted(settings, files.precision):
        converted = converted_backbones(settings)
        if not converted.has(files.extractor, files.weights_sha256):
            _convert(files, settings)
    return load_model(files, settings, known=known)


def _convert(files: ModelFiles, settings: Settings) -> None:
    """If it fails, `load_model` meets the same error and raises it."""
    ended = subprocess.run(
        [sys.executable, "-m", __name__, str(os.getpid())],
        input=pickle.dumps((files, settings)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if ended.returncode != 0:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        log.warning("backbone_not_converted", backbone=files.backbone, reason=lines[-1:])


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    load_model(*pickle.load(sys.stdin.buffer))  # noqa: S301 - our own process
