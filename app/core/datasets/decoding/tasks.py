"""The tasks of a decoder, and their results."""

from dataclasses import asdict
from typing import Any

from app.core.datasets.decoding.headers import DecodeLimits
from app.core.datasets.images import cut_square, inspect_image, make_thumbnail
from app.core.platform.errors import ImageRejected
from temi.backbones.cropping import CentralSquare

TaskResult = tuple[dict[str, Any], bytes | memoryview]
"""Metadata, and the bytes of the result."""


def run_task(request: dict[str, Any], data: bytes, limits: DecodeLimits) -> TaskResult:
    """Runs a task; for a refused image the metadata are `code` and `detail`."""
    try:
        return _run(request, data, limits)
    except ImageRejected as error:
        return {"code": error.code, "detail": error.detail}, b""


def _run(request: dict[str, Any], data: bytes, limits: DecodeLimits) -> TaskResult:
    match request["task"]:
        case "inspect":
            return asdict(inspect_image(data, limits=limits)), b""
        case "inspect_all":
            return {"facts": _inspect_all(data, request["sizes"], limits)}, b""
        case "square":
            square = cut_square(data, CentralSquare(**request["square"]), limits=limits)
            return {"side": square.shape[0]}, square.reshape(-1).data
        case "thumbnail":
            return {}, make_thumbnail(data, request["size"], limits=limits)
        case unknown:
            raise ValueError(f"unknown task {unknown!r}")


def _inspect_all(
    data: bytes, sizes: list[int], limits: DecodeLimits
) -> list[dict[str, Any] | None]:
    """The facts of images that follow each other in `data`; None for one that is refused."""
    facts: list[dict[str, Any] | None] = []
    at = 0
    for size in sizes:
        try:
            facts.append(vars(inspect_image(data[at : at + size], limits=limits)))
        except ImageRejected:
            facts.append(None)
        at += size
    return facts
