"""Checks the name of a backbone."""

from pathlib import Path

from app.core.platform.errors import InvalidRequest
from temi.backbones.catalog import check_backbone
from temi.errors import UnknownBackbone, WeightsUnavailable


def check_backbone_name(name: str, weights_dir: Path | None) -> None:
    """Raises InvalidRequest for a backbone that cannot be used; timm or open_clip take seconds."""
    if "@" in name:  # a path would let a client read the server's disk
        raise InvalidRequest.field(
            "backbone", "must not have a path; put the file into the server's TEMI_WEIGHTS_DIR"
        )
    try:
        check_backbone(name, weights_dir)
    except (UnknownBackbone, WeightsUnavailable) as error:
        raise InvalidRequest.field("backbone", str(error)) from error
