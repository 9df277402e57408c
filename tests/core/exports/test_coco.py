import io
import json
from pathlib import Path
from typing import Any

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.coco import write
from tests.core.exports.sources import excluded, row, source_of


def written(folder: Path, rows: list[LabeledImage]) -> Any:
    out = io.BytesIO()
    write(source_of(folder, rows), out)
    return json.loads(out.getvalue())


def test_one_annotation_covers_each_image(tmp_path: Path) -> None:
    rows = [excluded(0), row(1), row(2, cluster_id=1, label="dogs", width=40, probability=0.9)]
    found = written(tmp_path, rows)
    assert found["info"]["description"] == "Our: pets"
    assert (found["info"]["clustering_id"], found["info"]["revision"]) == ("cl_1", "3")
    assert found["licenses"] == []
    assert [(c["id"], c["name"]) for c in found["categories"]] == [(0, "cats"), (1, "dogs")]
    assert [(i["id"], i["file_name"], i["temi_image_id"]) for i in found["images"]] == [
        (1, "photos/0.png", "img_0"),
        (2, "photos/1.png", "img_1"),
        (3, "photos/2.png", "img_2"),
    ]
    assert found["images"][1]["coco_url"] == "/v1/images/img_1/content"
    assert [(a["id"], a["image_id"], a["category_id"]) for a in found["annotations"]] == [
        (1, 2, 0),
        (2, 3, 1),
    ]
    last = found["annotations"][1]
    assert last["bbox"] == [0, 0, 40, 12]
    assert (last["area"], last["iscrowd"], last["score"]) == (480, 0, 0.9)


def test_no_images(tmp_path: Path) -> None:
    found = written(tmp_path, [])
    assert (found["images"], found["annotations"]) == ([], [])
