import csv
import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from app.core.exports.rows import LABELS
from app.core.exports.text import csv_chunks, write_csv
from tests.core.exports.sources import excluded, row, source_of

# as PostgreSQL stores it: no zero byte, no half of a pair
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def read(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline="")))


@given(st.lists(TEXT, max_size=5))
def test_names_are_read_back_unchanged(names: list[str]) -> None:
    page = [row(number, name=name, label=name) for number, name in enumerate(names)]
    found = read(b"".join(csv_chunks([page], LABELS)))
    assert [(line["name"], line["label"]) for line in found] == [(name, name) for name in names]


def test_the_file(tmp_path: Path) -> None:
    rows = [row(0, attributes={"camera": 'a "b", c'}), row(1, true_label="x"), excluded(2)]
    out = io.BytesIO()
    write_csv(source_of(tmp_path, rows), out)
    lines = out.getvalue().decode().split("\r\n")
    assert lines[0] == (
        "image_id,name,cluster_id,label,probability,excluded,true_label,class_id,split,"
        "sha256,width,height,format,bytes,attributes"
    )
    assert lines[1].endswith(',10,"{""camera"":""a \\""b\\"", c""}"')
    assert lines[2].startswith("img_1,photos/1.png,0,cats,0.5,false,x,")
    assert lines[3].startswith("img_2,photos/2.png,,,0.5,true,,,,")
    assert lines[4:] == [""]


def test_a_formula_is_kept(tmp_path: Path) -> None:
    found = read(b"".join(csv_chunks([[row(name="=1+1.png")]], LABELS)))
    assert found[0]["name"] == "=1+1.png"
