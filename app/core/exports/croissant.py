"""Croissant 1.0 metadata of the Hugging Face layout: files, record sets and their fields."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.core.exports.names import clean_text, safe_name
from app.core.exports.source import ExportSource
from app.core.exports.splits import SplitName

_CR = "http://mlcommons.org/croissant/"
_PROPERTIES = (
    *("citeAs", "column", "extract", "field", "fileProperty", "fileObject", "fileSet", "format"),
    *("equivalentProperty", "includes", "isLiveDataset", "jsonPath", "key", "md5"),
    *("parentField", "path", "recordSet", "references", "regex", "repeated", "replace"),
    *("samplingRate", "separator", "source", "subField", "transform"),
)
# The standard context: readers warn about any other.
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{name: f"cr:{name}" for name in _PROPERTIES},
    "conformsTo": "dct:conformsTo",
    "cr": _CR,
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": f"{_CR}RAI/",
    "sc": "https://schema.org/",
}
_DATA_TYPES = {"int64": "sc:Integer", "float64": "sc:Float", "string": "sc:Text"}


@dataclass(frozen=True)
class SplitFiles:
    sha256: str  # of the metadata file
    media_types: list[str]  # of the images


def metadata(
    source: ExportSource, files: Mapping[SplitName, SplitFiles], types: Mapping[str, str]
) -> str:
    """JSON-LD. `types` are the columns of the metadata files."""
    title = clean_text(source.dataset_name) or "images"
    facts = ", ".join(f"{name} {value}" for name, value in source.facts.items())
    document = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": f"{_CR}1.0",
        "name": safe_name(title, "images").replace(" ", "_"),
        "description": f"Images of {title} with the labels of their clusters ({facts}).",
        "datePublished": datetime.fromtimestamp(source.created_at, UTC).date().isoformat(),
        "version": f"{source.revision}.0.0",
        "distribution": [
            item for split, found in files.items() for item in _distribution(split, found)
        ],
        "recordSet": [_record_set(split, types) for split in files],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _distribution(split: str, files: SplitFiles) -> list[dict[str, Any]]:
    return [
        {
            "@type": "cr:FileObject",
            "@id": f"{split}-metadata",
            "name": f"{split}-metadata",
            "contentUrl": f"{split}/metadata.jsonl",
            "encodingFormat": "application/jsonlines",
            "sha256": files.sha256,
        },
        {
            "@type": "cr:FileSet",
            "@id": f"{split}-images",
            "name": f"{split}-images",
            "encodingFormat": files.media_types,
            "includes": f"{split}/images/*/*",
        },
    ]


def _record_set(split: str, types: Mapping[str, str]) -> dict[str, Any]:
    columns = {"label": "sc:Text", **{name: _DATA_TYPES[dtype] for name, dtype in types.items()}}
    images = {"fileSet": {"@id": f"{split}-images"}}
    path = {"extract": {"fileProperty": "fullpath"}, "transform": {"regex": f"^{split}/(.*)$"}}
    # Joins an image with its line: readers transform the source of a field, not its reference.
    file_name = _field(split, "file_name", "sc:Text", images | path)
    file_name["references"] = _column(split, "file_name")
    content = images | {"extract": {"fileProperty": "content"}}
    return {
        "@type": "cr:RecordSet",
        "@id": split,
        "name": split,
        "key": {"@id": f"{split}/image_id"},
        "field": [
            file_name,
            _field(split, "image", "sc:ImageObject", content),
            *(_field(split, name, dtype, _column(split, name)) for name, dtype in columns.items()),
        ],
    }


def _field(split: str, name: str, data_type: str, source: dict[str, Any]) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{split}/{name}",
        "name": name,
        "dataType": [data_type, "cr:Label"] if name == "label" else data_type,
        "source": source,
    }


def _column(split: str, name: str) -> dict[str, Any]:
    return {"fileObject": {"@id": f"{split}-metadata"}, "extract": {"column": name}}
