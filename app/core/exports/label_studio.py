"""Label Studio: a zip of tasks with the clusters as predictions, and the labeling configuration."""

import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any
from xml.etree import ElementTree

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.archive import add_file, add_text, open_archive
from app.core.exports.rows import json_array
from app.core.exports.source import ExportSource

_CONTROL, _OBJECT = "cluster", "image"


def write(source: ExportSource, file: IO[bytes]) -> None:
    with tempfile.TemporaryFile(dir=source.scratch) as tasks, open_archive(file) as archive:
        tasks.writelines(json_array(_tasks(source)))
        add_file(archive, "tasks.json", tasks)
        add_text(archive, "labeling_config.xml", labeling_config(source.classes.names))


def labeling_config(labels: Sequence[str]) -> str:
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, "Image", name=_OBJECT, value="$image")
    attributes = {"name": _CONTROL, "toName": _OBJECT, "choice": "single"}
    choices = ElementTree.SubElement(view, "Choices", attributes)
    for label in labels:
        ElementTree.SubElement(choices, "Choice", value=label)
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode")


def _tasks(source: ExportSource) -> Iterator[dict[str, Any]]:
    for row in source.rows():
        data = {
            "image": source.image_url(row),
            "image_id": row.image_id,
            "name": row.name,
            "true_label": row.true_label,
            "split": source.split_of(row),
            "attributes": row.attributes,
        }
        yield {"data": data, "predictions": _predictions(source, row)}


def _predictions(source: ExportSource, row: LabeledImage) -> list[dict[str, Any]]:
    if row.cluster_id is None:
        return []
    choice = {
        "id": row.image_id,
        "from_name": _CONTROL,
        "to_name": _OBJECT,
        "type": "choices",
        "value": {"choices": [source.classes.name_of(row.cluster_id)]},
        "score": row.probability,
    }
    return [{"model_version": source.model, "score": row.probability, "result": [choice]}]
