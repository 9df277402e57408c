"""Clusters with the same label are one class, with the same number and split in every format."""

import csv
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
import yaml

from app.core.exports.classes import Classes
from app.core.exports.formats import FORMATS, FormatName
from tests.core.exports.sources import row, source_of, with_file

# Not in the order of the alphabet; 2 and 5 have the label of 1, with other spaces.
CLUSTERS = {0: "zebras", 1: "cats", 2: "cats", 4: "", 5: " cats\t", 7: "Cats"}
NAMES = ["zebras", "cats", "cluster 4", "Cats"]
Labels = dict[str, tuple[str, str]]  # by image: class and split
Found = tuple[list[str], Labels]  # classes in order


def test_the_order_is_that_of_the_first_cluster() -> None:
    classes = Classes.of(dict(reversed(CLUSTERS.items())))
    assert list(classes.names) == NAMES
    assert classes.ids == {0: 0, 1: 1, 2: 1, 4: 2, 5: 1, 7: 3}
    assert classes.folders() == ["zebras", "cats", "cluster 4", "Cats (2)"]


def _rows(table: list[dict[str, str]]) -> Found:
    order = {int(item["class_id"]): item["label"] for item in table}
    names = [order[number] for number in sorted(order)]
    return names, {Path(item["name"]).name: (item["label"], item["split"]) for item in table}


def _csv(data: bytes) -> Found:
    return _rows(list(csv.DictReader(io.StringIO(data.decode()))))


def _jsonl(data: bytes) -> Found:
    return _rows([json.loads(line) for line in data.splitlines()])


def _parquet(data: bytes) -> Found:
    return _rows(pq.read_table(io.BytesIO(data)).to_pylist())


def _coco(data: bytes, names: str = "temi_name") -> Found:
    found = json.loads(data)
    categories = {item["id"]: item["name"] for item in found["categories"]}
    images = {item["id"]: item for item in found["images"]}
    labels = {
        Path(images[item["image_id"]][names]).name: (
            categories[item["category_id"]],
            images[item["image_id"]]["split"],
        )
        for item in found["annotations"]
    }
    return [categories[number] for number in sorted(categories)], labels


def _coco_images(data: bytes) -> Found:
    archive = zipfile.ZipFile(io.BytesIO(data))
    names, labels = _coco(archive.read("train/labels.json"), "file_name")
    others, validation = _coco(archive.read("validation/labels.json"), "file_name")
    assert names == others
    assert {split for _, split in labels.values()} == {"train"}
    assert {split for _, split in validation.values()} == {"validation"}
    return names, labels | validation


def _label_studio(data: bytes) -> Found:
    archive = zipfile.ZipFile(io.BytesIO(data))
    choices = ElementTree.fromstring(archive.read("labeling_config.xml")).iter("Choice")
    labels = {}
    for task in json.loads(archive.read("tasks.json")):
        (label,) = task["predictions"][0]["result"][0]["value"]["choices"]
        labels[Path(task["data"]["name"]).name] = (label, task["data"]["split"])
    return [choice.get("value", "") for choice in choices], labels


def _cvat(data: bytes) -> Found:
    archive = zipfile.ZipFile(io.BytesIO(data))
    root = ElementTree.fromstring(archive.read("annotations.xml"))
    names = [str(label.findtext("name")) for label in root.iter("label")]
    labels = {}
    for image in root.iter("image"):
        (tag,) = image.findall("tag")
        labels[image.get("name", "")] = (tag.get("label", ""), image.get("subset", ""))
    return names, labels


def _folders(data: bytes) -> Found:
    archive = zipfile.ZipFile(io.BytesIO(data))
    folders = archive.read("classes.txt").decode().splitlines()
    classes = dict(zip(folders, NAMES, strict=True))
    splits = {"train": "train", "val": "validation", "validation": "validation"}
    labels = {}
    for path in map(Path, archive.namelist()):
        if len(path.parts) > 1:
            split, folder, name = path.parts
            labels[name] = (classes[folder], splits[split])
    return [name.replace("Cats (2)", "Cats") for name in folders], labels


def _hugging_face(data: bytes) -> Found:
    archive = zipfile.ZipFile(io.BytesIO(data))
    header = yaml.safe_load(archive.read("README.md").decode().split("---\n")[1])
    names = header["dataset_info"]["features"][1]["dtype"]["class_label"]["names"]
    labels = {}
    for split in ("train", "validation"):
        for line in archive.read(f"{split}/metadata.jsonl").splitlines():
            entry = json.loads(line)
            labels[Path(entry["name"]).name] = (entry["label"], split)
    return list(names.values()), labels


READERS: dict[FormatName, Callable[[bytes], Found]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "coco": _coco,
    "coco_images": _coco_images,
    "label_studio": _label_studio,
    "cvat": _cvat,
    "image_folder": _folders,
    "yolo": _folders,
    "huggingface": _hugging_face,
}


def test_every_format_has_a_reader() -> None:
    assert list(READERS) == list(FORMATS)


@pytest.mark.parametrize("format_", FORMATS)
def test_classes_and_splits_are_the_same(tmp_path: Path, format_: FormatName) -> None:
    clusters = list(CLUSTERS)
    rows = [
        with_file(tmp_path, row(n, cluster_id=clusters[n % len(clusters)]), (n, 0, 0))
        for n in range(36)
    ]
    source = source_of(tmp_path, rows, CLUSTERS, validation_fraction=0.3)
    out = io.BytesIO()
    FORMATS[format_].write(source, out)
    names, labels = READERS[format_](out.getvalue())
    assert names == NAMES
    assert labels == {
        Path(item.name).name: (source.classes.name_of(item.cluster_id), source.split_of(item))
        for item in rows
    }
    assert sum(split == "validation" for _, split in labels.values()) == 5 + 2 + 2 + 2
