"""The Croissant metadata of the Hugging Face layout, checked and read by mlcroissant."""

import io
import json
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.core.exports.hugging_face import write
from tests.core.exports.sources import row, source_of, with_file


@pytest.fixture
def extracted(tmp_path: Path) -> Path:
    rows = [
        with_file(tmp_path, row(n, cluster_id=n % 2, name=f"{n % 3}.png"), (n, 0, 0))
        for n in range(10)
    ]
    out = io.BytesIO()
    write(source_of(tmp_path, rows, validation_fraction=0.4), out)
    zipfile.ZipFile(out).extractall(tmp_path / "extracted")
    return tmp_path / "extracted"


@pytest.fixture
def croissant(extracted: Path) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its libraries
        import mlcroissant

        yield mlcroissant.Dataset(jsonld=extracted / "croissant.json")


def test_the_metadata_is_valid(croissant: Any) -> None:
    issues = croissant.metadata.ctx.issues
    assert list(issues.errors) == []
    unknown = ("citeAs", "license")  # the service does not know them
    assert [text for text in issues.warnings if not any(name in text for name in unknown)] == []
    assert [item.name for item in croissant.metadata.record_sets] == ["train", "validation"]


@pytest.mark.parametrize(("split", "count"), [("train", 6), ("validation", 4)])
def test_the_records_are_read(extracted: Path, croissant: Any, split: str, count: int) -> None:
    lines = (extracted / split / "metadata.jsonl").read_text().splitlines()
    expected = {entry["file_name"]: entry for entry in map(json.loads, lines)}
    records = list(croissant.records(split))
    assert len(records) == len(expected) == count
    for record in records:
        entry = expected[record[f"{split}/file_name"].decode()]
        assert record[f"{split}/label"].decode() == entry["label"]
        assert record[f"{split}/image_id"].decode() == entry["image_id"]
        assert record[f"{split}/probability"] == entry["probability"]
        assert record[f"{split}/image"].convert("RGB").getpixel((0, 0))[0] == int(
            entry["image_id"].removeprefix("img_")
        )
