"""A zip in the layout of Hugging Face's imagefolder, with a dataset card and Croissant metadata."""

import hashlib
import json
import tempfile
import zipfile
from contextlib import ExitStack
from typing import IO, Any

from app.core.clusterings.revisions import LabeledImage
from app.core.datasets.images import MEDIA_TYPES
from app.core.exports import croissant
from app.core.exports.archive import add_file, add_image, add_text, open_archive
from app.core.exports.names import UniqueNames, clean_text, image_stem_and_suffix
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
    with ExitStack() as stack:
        archive = stack.enter_context(open_archive(file))
        parts = {}
        for split in source.split.names:
            lines = stack.enter_context(tempfile.TemporaryFile(dir=source.scratch))
            parts[split] = _Part(source, archive, split, lines)
        for row in source.rows():
            parts[source.split_of(row) or "train"].add(row)
        files = {split: part.save() for split, part in parts.items()}
        add_text(archive, "README.md", _card(source))
        add_text(archive, "croissant.json", croissant.metadata(source, files, _TYPES))


class _Part:
    """The images of one split, and their metadata."""

    def __init__(
        self, source: ExportSource, archive: zipfile.ZipFile, split: str, lines: IO[bytes]
    ) -> None:
        self._source, self._archive = source, archive
        self._split, self._lines = split, lines
        self._count = 0
        self._formats: set[str] = set()
        self._names = UniqueNames()

    def add(self, row: LabeledImage) -> None:
        if self._count % _FOLDER_IMAGES == 0:
            self._names = UniqueNames()
        folder = f"images/{self._count // _FOLDER_IMAGES:05d}"
        path = f"{folder}/{self._names.give(*image_stem_and_suffix(row.name, row.format))}"
        with self._source.open_image(row) as image:
            add_image(self._archive, f"{self._split}/{path}", image, row.bytes)
        self._lines.write(f"{to_json(_entry(self._source, row, path))}\n".encode())
        self._count += 1
        self._formats.add(row.format)

    def save(self) -> croissant.SplitFiles:
        add_file(self._archive, f"{self._split}/metadata.jsonl", self._lines)
        self._lines.seek(0)
        digest = hashlib.file_digest(self._lines, "sha256")  # type: ignore[arg-type]
        media_types = sorted(MEDIA_TYPES[format_] for format_ in self._formats)
        return croissant.SplitFiles(digest.hexdigest(), media_types)


def _entry(source: ExportSource, row: LabeledImage, path: str) -> dict[str, Any]:
    return {
        "file_name": path,
        "label": source.classes.name_of(row.cluster_id),
        **{name: getattr(row, name) for name in _TYPES},
        "attributes": to_json(row.attributes),  # keys differ between images
    }


def _card(source: ExportSource) -> str:
    """The dataset card. Its header is YAML; JSON is valid YAML for cleaned names."""
    names = {str(number): label for number, label in enumerate(source.classes.names)}
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
