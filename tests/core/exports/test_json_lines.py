import io
import json
from pathlib import Path

from app.core.exports.text import write_json_lines
from tests.core.exports.sources import excluded, row, source_of


def test_a_line_for_each_image(tmp_path: Path) -> None:
    odd = "line\u2028end\x85 \N{CAT}\n"
    rows = [row(0, name=odd, attributes={"taken": {"year": 2020}}), row(1), excluded(2)]
    out = io.BytesIO()
    write_json_lines(source_of(tmp_path, rows), out)
    lines = out.getvalue().decode().splitlines()  # takes more than line feeds for ends
    found = [json.loads(line) for line in lines]
    assert len(found) == 3
    assert found[0] == {
        "image_id": "img_0",
        "name": odd,
        "cluster_id": 0,
        "label": "cats",
        "probability": 0.5,
        "excluded": False,
        "true_label": None,
        "class_id": 0,
        "split": "train",
        "sha256": "0" * 64,
        "width": 16,
        "height": 12,
        "format": "PNG",
        "bytes": 10,
        "attributes": {"taken": {"year": 2020}},
    }
    assert (found[2]["cluster_id"], found[2]["label"], found[2]["excluded"]) == (None, None, True)


def test_no_images(tmp_path: Path) -> None:
    out = io.BytesIO()
    write_json_lines(source_of(tmp_path, []), out)
    assert out.getvalue() == b""
