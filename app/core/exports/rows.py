"""The columns of an export, and their JSON."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from app.core.clusterings.revisions import LabeledImage

LABELS = ("image_id", "name", "cluster_id", "label", "probability", "excluded", "true_label")
IMAGES = (
    *(*LABELS, "class_id", "split"),
    *("sha256", "width", "height", "format", "bytes", "attributes"),
)
Column = Callable[[LabeledImage], Any]
Reader = Callable[[LabeledImage], tuple[Any, ...]]

_encode = json.JSONEncoder(separators=(",", ":")).encode  # created once for millions of rows


def reader(columns: tuple[str, ...], computed: Mapping[str, Column] | None = None) -> Reader:
    """Returns a function that gets the values of the columns of a row."""
    if not computed:
        return attrgetter(*columns)
    getters = [computed.get(name) or attrgetter(name) for name in columns]
    return lambda row: tuple(get(row) for get in getters)


def to_json(value: Any) -> str:
    """JSON in ASCII: some readers split lines at other characters than a line feed."""
    return _encode(value)


def json_array(items: Iterable[Any]) -> Iterator[bytes]:
    """Streams a JSON array with one item per line."""
    separator = "[\n"
    for item in items:
        yield f"{separator}{to_json(item)}".encode()
        separator = ",\n"
    yield b"[]" if separator == "[\n" else b"\n]"
