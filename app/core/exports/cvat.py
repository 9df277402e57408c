"""CVAT for images 1.1: a zip of the images, their tags as XML, and the labels of a new task."""

import tempfile
from collections.abc import Iterator
from typing import IO
from xml.etree.ElementTree import Element, SubElement, tostring

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.archive import add_file, add_image, add_text, open_archive
from app.core.exports.names import UniqueNames, clean_text, image_stem_and_suffix
from app.core.exports.rows import json_array
from app.core.exports.source import ExportSource

_PROBABILITY = "probability"


def write(source: ExportSource, file: IO[bytes]) -> None:
    names = UniqueNames()
    with tempfile.TemporaryFile(dir=source.scratch) as xml, open_archive(file) as archive:
        xml.write(b'<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n')
        xml.write(b"<version>1.1</version>\n" + tostring(_meta(source)) + b"\n")
        for number, row in enumerate(source.rows()):
            name = names.give(*image_stem_and_suffix(row.name, row.format))
            subset = _subset(source, row)
            with source.open_image(row) as image:
                add_image(archive, f"images/{subset}{'/' * bool(subset)}{name}", image, row.bytes)
            found = _image(row, source.classes.name_of(row.cluster_id), number, name, subset)
            xml.write(tostring(found) + b"\n")
        xml.write(b"</annotations>\n")
        add_file(archive, "annotations.xml", xml)
        add_text(archive, "labels.json", b"".join(json_array(_label_specs(source))).decode())


def _meta(source: ExportSource) -> Element:
    meta = Element("meta")
    task = SubElement(meta, "task")
    SubElement(task, "name").text = clean_text(source.dataset_name)
    labels = SubElement(task, "labels")
    for name in source.classes.names:
        label = SubElement(labels, "label")
        SubElement(label, "name").text = name
        SubElement(label, "type").text = "tag"
        attribute = SubElement(SubElement(label, "attributes"), "attribute")
        for key, value in (("name", _PROBABILITY), ("mutable", "False"), ("input_type", "text")):
            SubElement(attribute, key).text = value
    return meta


def _subset(source: ExportSource, row: LabeledImage) -> str:
    """The folder of an image, as in CVAT's exports of projects; none without a validation part."""
    return (source.split_of(row) or "train") if len(source.split.names) > 1 else ""


def _image(row: LabeledImage, label: str | None, number: int, name: str, subset: str) -> Element:
    size = {"width": str(row.width), "height": str(row.height)}
    image = Element("image", {"id": str(number), "name": name, **size})
    if subset:
        image.set("subset", subset)
    if label is not None:
        tag = SubElement(image, "tag", {"label": label, "source": "auto"})
        SubElement(tag, "attribute", {"name": _PROBABILITY}).text = f"{row.probability:.6g}"
    return image


def _label_specs(source: ExportSource) -> Iterator[dict[str, object]]:
    """For the raw editor of labels of a CVAT task."""
    probability = {"name": _PROBABILITY, "mutable": False, "input_type": "text"}
    for name in source.classes.names:
        attributes = [{**probability, "default_value": "", "values": [""]}]
        yield {"name": name, "type": "tag", "attributes": attributes}
