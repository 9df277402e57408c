import io
import json
import zipfile
from pathlib import Path
from xml.etree import ElementTree

from app.core.exports.cvat import write
from tests.core.exports.sources import excluded, row, source_of, with_file

CLUSTERS = {0: "cats", 1: 'a "<b>" & c'}


def test_tags(tmp_path: Path) -> None:
    rows = [
        with_file(tmp_path, row(0, name="trip/a.png", probability=0.75)),
        with_file(tmp_path, row(1, name="home/a.png", cluster_id=1, width=20), "blue"),
        with_file(tmp_path, excluded(2)),
    ]
    out = io.BytesIO()
    write(source_of(tmp_path, rows, CLUSTERS), out)
    archive = zipfile.ZipFile(out)
    assert archive.namelist() == [
        *("images/a.png", "images/a (2).png", "images/2.png", "annotations.xml", "labels.json")
    ]
    root = ElementTree.fromstring(archive.read("annotations.xml"))
    assert (root.tag, root.findtext("version")) == ("annotations", "1.1")
    labels = root.findall("meta/task/labels/label")
    assert [label.findtext("name") for label in labels] == list(CLUSTERS.values())
    assert {label.findtext("type") for label in labels} == {"tag"}
    images = root.findall("image")
    assert [image.get("name") for image in images] == ["a.png", "a (2).png", "2.png"]
    assert [image.get("id") for image in images] == ["0", "1", "2"]
    assert (images[1].get("width"), images[1].get("height")) == ("20", "12")
    assert [image.get("subset") for image in images] == [None, None, None]
    tags = [[tag.get("label") for tag in image.findall("tag")] for image in images]
    assert tags == [["cats"], ['a "<b>" & c'], []]
    attribute = images[0].find("tag/attribute")
    assert attribute is not None
    assert (attribute.get("name"), attribute.text) == ("probability", "0.75")
    specs = json.loads(archive.read("labels.json"))
    assert [(spec["name"], spec["type"]) for spec in specs] == [
        (name, "tag") for name in CLUSTERS.values()
    ]


def test_a_subset_has_its_own_folder(tmp_path: Path) -> None:
    rows = [with_file(tmp_path, row(n), (n, 0, 0)) for n in range(4)]
    out = io.BytesIO()
    write(source_of(tmp_path, rows, validation_fraction=0.25), out)
    archive = zipfile.ZipFile(out)
    images = list(ElementTree.fromstring(archive.read("annotations.xml")).iter("image"))
    assert sorted(str(image.get("subset")) for image in images) == ["train"] * 3 + ["validation"]
    for image in images:
        assert f"images/{image.get('subset')}/{image.get('name')}" in archive.namelist()
