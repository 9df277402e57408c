import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.core.exports import hugging_face
from tests.core.exports.sources import excluded, row, source_of, with_file

CLUSTERS = {0: "cats", 1: 'big: "dogs" \N{DOG FACE}', 5: "cats"}


@pytest.fixture
def extracted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hugging_face, "_FOLDER_IMAGES", 2)
    rows = [
        with_file(tmp_path, row(0, name="trip/a.jpg", attributes={"year": 2020}), "red"),
        with_file(tmp_path, row(1, name="a.png", cluster_id=1, true_label="x"), "blue"),
        with_file(tmp_path, row(2, name=".hidden", cluster_id=5), "white"),
        with_file(tmp_path, excluded(3), "black"),
    ]
    out = io.BytesIO()
    hugging_face.write(source_of(tmp_path, rows, CLUSTERS), out)
    target = tmp_path / "extracted"
    zipfile.ZipFile(out).extractall(target)
    return target


@pytest.fixture
def load_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    import datasets

    datasets.disable_progress_bars()
    return lambda *args, **options: datasets.load_dataset(
        *args, cache_dir=str(tmp_path / "cache"), **options
    )


def test_the_layout(extracted: Path) -> None:
    lines = (extracted / "train" / "metadata.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert [entry["file_name"] for entry in entries] == [
        "images/00000/a.jpg.png",
        "images/00000/a.png",
        "images/00001/hidden.png",
        "images/00001/3.png",
    ]
    assert all((extracted / "train" / entry["file_name"]).is_file() for entry in entries)
    assert [entry["label"] for entry in entries] == [
        "cats",
        'big: "dogs" \N{DOG FACE}',
        "cats",
        None,
    ]
    assert json.loads(entries[0]["attributes"]) == {"year": 2020}
    header = yaml.safe_load((extracted / "README.md").read_text().split("---\n")[1])
    label = header["dataset_info"]["features"][1]
    assert list(label["dtype"]["class_label"]["names"].values()) == [
        "cats",
        'big: "dogs" \N{DOG FACE}',
    ]


def test_imagefolder_reads_the_export(extracted: Path, load_dataset: Any) -> None:
    data = load_dataset("imagefolder", data_dir=str(extracted), split="train")
    assert data["label"][:2] == ["cats", 'big: "dogs" \N{DOG FACE}']
    assert data["cluster_id"][:] == [0, 1, 5, None]
    assert data["true_label"][:] == [None, "x", None, None]
    assert data["probability"][0] == 0.5
    assert data[1]["image"].convert("RGB").getpixel((0, 0)) == (0, 0, 255)


def test_the_card_names_the_classes(extracted: Path, load_dataset: Any) -> None:
    from datasets import ClassLabel
    from huggingface_hub import DatasetCard

    card = DatasetCard.load(extracted / "README.md")
    features = {feature["name"]: feature for feature in card.data["dataset_info"]["features"]}
    names = list(features["label"]["dtype"]["class_label"]["names"].values())
    data = load_dataset(str(extracted), split="train")  # the folder itself is a dataset, too
    assert set(data.column_names) == set(features)
    data = data.cast_column("label", ClassLabel(names=names))
    assert data["label"][:] == [0, 1, 0, None]
    assert data[2]["image"].convert("RGB").getpixel((0, 0)) == (255, 255, 255)
