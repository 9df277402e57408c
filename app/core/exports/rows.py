"""The columns of a table of labels, and how a row is written down as text."""

import json
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any

from app.core.clusterings.revisions import LabeledImage

LABELS = ("image_id", "name", "cluster_id", "label", "probability", "excluded", "true_label")
IMAGES = (*LABELS, "sha256", "width", "height", "format", "bytes", "attributes")


_encode = json.JSONEncoder(separators=(",", ":")).encode  # made once: millions of rows


def reader(columns: tuple[str, ...]) -> Callable[[LabeledImage], tuple[Any, ...]]:
    """Takes the values of several columns out of a row."""
    return attrgetter(*columns)


def to_json(value: Any) -> str:
    """In ASCII: some readers take more than a line feed for the end of a line."""
    return _encode(value)


def json_array(items: Iterable[Any]) -> Iterator[bytes]:
    """One array, an item a line, without ever holding it whole."""
    separator = "[\n"
    for item in items:
        yield f"{separator}{to_json(item)}".encode()
        separator = ",\n"
    yield b"[]" if separator == "[\n" else b"\n]"
