import contextlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.coco import write, write_zip
from tests.core.exports.sources import excluded, row, source_of, with_file


def written(folder: Path, rows: list[LabeledImage], **options: Any) -> Any:
    out = io.BytesIO()
    write(source_of(folder, rows, **options), out)
    return json.loads(out.getvalue())


def test_one_annotation_covers_each_image(tmp_path: Path) -> None:
    rows = [excluded(0), row(1), row(2, cluster_id=1, label="dogs", width=40, probability=0.9)]
    found = written(tmp_path, rows)
    assert found["info"]["description"] == "Our: pets"
    assert (found["info"]["clustering_id"], found["info"]["revision"]) == ("cl_1", "3")
    assert found["licenses"] == []
    assert [(c["id"], c["name"]) for c in found["categories"]] == [(1, "cats"), (2, "dogs")]
    assert [(i["id"], i["file_name"], i["temi_image_id"]) for i in found["images"]] == [
        (1, "photos/0.png", "img_0"),
        (2, "photos/1.png", "img_1"),
        (3, "photos/2.png", "img_2"),
    ]
    assert found["images"][1]["coco_url"] == "/v1/images/img_1/content"
    assert [(a["id"], a["image_id"], a["category_id"]) for a in found["annotations"]] == [
        (1, 2, 1),
        (2, 3, 2),
    ]
    last = found["annotations"][1]
    assert last["bbox"] == [0, 0, 40, 12]
    assert last["segmentation"] == [[0, 0, 40, 0, 40, 12, 0, 12]]
    assert (last["area"], last["iscrowd"], last["score"]) == (480, 0, 0.9)
    assert last["temi_cluster_id"] == 1


def test_no_images(tmp_path: Path) -> None:
    found = written(tmp_path, [])
    assert (found["images"], found["annotations"]) == ([], [])


def test_links_begin_with_the_address_of_the_service(tmp_path: Path) -> None:
    found = written(tmp_path, [row(1)], url_base="https://temi.example.org/x")
    link = "https://temi.example.org/x/v1/images/img_1/content"
    assert found["images"][0]["coco_url"] == link


@pytest.fixture
def extracted(tmp_path: Path) -> Path:
    rows = [
        with_file(tmp_path, row(n, name=f"{n % 2}/same.png", cluster_id=n % 2), (n, 0, 0))
        for n in range(10)
    ]
    out = io.BytesIO()
    write_zip(source_of(tmp_path, rows, validation_fraction=0.4), out)
    zipfile.ZipFile(out).extractall(tmp_path / "extracted")
    return tmp_path / "extracted"


@pytest.mark.parametrize(("split", "count"), [("train", 6), ("validation", 4)])
@pytest.mark.filterwarnings("ignore:__array__ implementation")  # of pycocotools
def test_pycocotools_reads_the_zip(extracted: Path, split: str, count: int) -> None:
    from pycocotools.coco import COCO

    with contextlib.redirect_stdout(io.StringIO()):  # it prints
        coco = COCO(extracted / split / "labels.json")
    assert [c["name"] for c in coco.loadCats(coco.getCatIds())] == ["cats", "dogs"]
    assert len(coco.getImgIds()) == count
    for image in coco.loadImgs(coco.getImgIds()):
        assert (extracted / split / "data" / image["file_name"]).is_file()
        (annotation,) = coco.loadAnns(coco.getAnnIds(imgIds=[image["id"]]))
        assert coco.annToMask(annotation).all()
        assert coco.getAnnIds(catIds=[annotation["category_id"]], areaRng=[1, 10**9])


def test_torchvision_reads_the_zip(extracted: Path) -> None:
    from torchvision.datasets import CocoDetection

    with contextlib.redirect_stdout(io.StringIO()):
        data = CocoDetection(str(extracted / "train/data"), str(extracted / "train/labels.json"))
    assert len(data) == 6
    image, (annotation,) = data[0]
    assert (image.size, annotation["bbox"]) == ((16, 12), [0, 0, 16, 12])
