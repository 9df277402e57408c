"""Opens a backbone for features on a CPU; loads torch only for one that is not converted yet."""

import logging
from pathlib import Path

from temi.backbones.auto import AUTO, choose_backbone
from temi.backbones.catalog import parse_name
from temi.backbones.converted import ConvertedBackbones, file_sha256
from temi.backbones.extractor import FeatureExtractor

_log = logging.getLogger(__name__)


def open_backbone(
    name: str, *, weights_dir: Path | None, converted: ConvertedBackbones
) -> FeatureExtractor:
    """Return the features of ``load_backbone(name, device="cpu")``, bit for bit.

    A backbone that was not converted is loaded with torch, and its graph is stored. Raises
    UnknownBackbone or WeightsUnavailable.
    """
    if name == AUTO:
        choice = choose_backbone(weights_dir, has_gpu=False)
        _log.info(choice.reason)
        name = choice.name
    file = parse_name(name).weights_file(weights_dir)
    before = None if file is None else file_sha256(file)
    known = None if before is None else converted.hash_of_file(name, before)
    if known is not None and (found := converted.load(name, known)) is not None:
        return found
    from temi.backbones.load import load_backbone

    backbone = load_backbone(name, weights_dir=weights_dir, device="cpu")
    converted.add(backbone)
    if file is not None and before == file_sha256(file):  # else it was replaced meanwhile
        converted.note_file(name, before, backbone.weights_hash)
    return backbone
