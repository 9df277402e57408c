"""The columns of a table of labels, and how a row is written down as text."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from app.core.revisions import LabelledImage

LABELS = ("image_id", "name", "cluster_id", "label", "probability", "excluded", "true_label")
IMAGES = (*LABELS, "sha256", "width", "height", "format", "bytes", "attributes")


def values(row: LabelledImage, columns: tuple[str, ...]) -> list[Any]:
    return [getattr(row, name) for name in columns]


def to_json(value: Any) -> str:
    """In ASCII: some readers take more than a line feed for the end of a line."""
    return json.dumps(value, separators=(",", ":"))


def json_array(items: Iterable[Any]) -> Iterator[bytes]:
    """One array, an item a line, without ever holding it whole."""
    separator = "[\n"
    for item in items:
        yield f"{separator}{to_json(item)}".encode()
        separator = ",\n"
    yield b"[]" if separator == "[\n" else b"\n]"
