"""A zip in the layout of Hugging Face's imagefolder, with a dataset card."""

import json
import tempfile
import zipfile
from typing import IO, Any

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.archive import add_file, add_image, add_text, open_archive
from app.core.exports.names import (
    UniqueNames,
    clean_text,
    image_stem_and_suffix,
    unique_labels,
)
from app.core.exports.rows import to_json
from app.core.exports.source import ExportSource

_FOLDER_IMAGES = 1_000
_TYPES = {
    "cluster_id": "int64",
    "probability": "float64",
    "true_label": "string",
    "attributes": "string",
    "image_id": "string",
    "name": "string",
    "sha256": "string",
}


def write(source: ExportSource, file: IO[bytes]) -> None:
    labels = unique_labels(source.clusters)
    with tempfile.TemporaryFile(dir=source.scratch) as lines, open_archive(file) as archive:
        _write_images(source, archive, labels, lines)
        add_file(archive, "train/metadata.jsonl", lines)
        add_text(archive, "README.md", _card(source, list(labels.values())))


def _write_images(
    source: ExportSource, archive: zipfile.ZipFile, labels: dict[int, str], lines: IO[bytes]
) -> None:
    names = UniqueNames()
    for number, row in enumerate(source.rows()):
        if number % _FOLDER_IMAGES == 0:
            names = UniqueNames()
        folder = f"images/{number // _FOLDER_IMAGES:05d}"
        path = f"{folder}/{names.give(*image_stem_and_suffix(row.name, row.format))}"
        with source.open_image(row) as image:
            add_image(archive, f"train/{path}", image, row.bytes)
        lines.write(f"{to_json(_entry(row, path, labels))}\n".encode())


def _entry(row: LabeledImage, path: str, labels: dict[int, str]) -> dict[str, Any]:
    return {
        "file_name": path,
        "label": None if row.cluster_id is None else labels[row.cluster_id],
        **{name: getattr(row, name) for name in _TYPES},
        "attributes": to_json(row.attributes),  # keys differ between images
    }


def _card(source: ExportSource, labels: list[str]) -> str:
    """The dataset card. Its header is YAML; JSON is valid YAML for cleaned names."""
    names = {str(number): label for number, label in enumerate(labels)}
    features = [
        {"name": "image", "dtype": "image"},
        {"name": "label", "dtype": {"class_label": {"names": names}}},
        *({"name": name, "dtype": dtype} for name, dtype in _TYPES.items()),
    ]
    title = clean_text(source.dataset_name) or "images"
    header = {
        "pretty_name": title,
        "task_categories": ["image-classification"],
        "dataset_info": {"features": features},
    }
    facts = "\n".join(f"- {name}: `{value}`" for name, value in source.facts.items())
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items())
    return "---\n" + "\n".join(lines) + f"\n---\n\n# {title}\n\n{facts}\n"
