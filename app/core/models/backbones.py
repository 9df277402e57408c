"""Checks the name and the weights of a backbone, and chooses one for `auto`."""

from pathlib import Path

from app.core.models import hub
from app.core.platform.errors import InvalidRequest
from app.core.platform.hardware import computes_on_gpu
from app.core.platform.settings import Settings
from temi.backbones.auto import BackboneChoice, choose_backbone
from temi.backbones.catalog import check_backbone, parse_name
from temi.backbones.hub import cache_folder, hub_address
from temi.errors import UnknownBackbone, WeightsUnavailable


def choose_usable_backbone(settings: Settings) -> BackboneChoice:
    """Chooses by the weights and the device of this machine: those of workers on other machines are
    not known here. Does not load torch."""
    try:
        return choose_backbone(settings.weights_dir, has_gpu=computes_on_gpu(settings))
    except WeightsUnavailable as error:
        raise InvalidRequest.field("backbone", str(error)) from error


def auto_backbone_name(settings: Settings) -> str | None:
    """Returns what `auto` means now; None if there are no weights at all."""
    try:
        return choose_usable_backbone(settings).name
    except InvalidRequest:
        return None


def check_usable_backbone(name: str, settings: Settings) -> None:
    """Raises InvalidRequest for a backbone that a job could not load. Does not load torch."""
    check_backbone_name(name, settings.weights_dir)
    if settings.has_local_workers:
        _check_download(name, settings.weights_dir)


def check_backbone_name(name: str, weights_dir: Path | None) -> None:
    """Raises InvalidRequest for an unknown backbone, or one whose weights no library offers. The
    first model without a short name takes seconds."""
    if "@" in name:  # a path would let a client read the server's disk
        raise InvalidRequest.field(
            "backbone", "must not have a path; put the file into the server's TEMI_WEIGHTS_DIR"
        )
    try:
        check_backbone(name, weights_dir)
    except (UnknownBackbone, WeightsUnavailable) as error:
        raise InvalidRequest.field("backbone", str(error)) from error


def _check_download(name: str, weights_dir: Path | None) -> None:
    """Raises InvalidRequest for weights that are not on this machine and cannot be downloaded.
    Workers on other machines may have other files and networks: theirs are not known here."""
    parsed = parse_name(name)
    if parsed.find_weights(weights_dir) or hub.is_reachable():
        return
    raise InvalidRequest.field(
        "backbone",
        f"the weights of {name} are neither in TEMI_WEIGHTS_DIR ({weights_dir or 'not set'}) nor "
        f"in the cache {cache_folder()}, and this machine cannot reach {hub_address()} to "
        f"download them; {parsed.advice(weights_dir)}",
    )
