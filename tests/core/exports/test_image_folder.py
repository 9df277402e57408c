import io
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.image_folder import write, write_yolo
from app.core.platform.errors import ImageMissing
from tests.core.exports.sources import CLUSTERS, excluded, row, source_of, with_file


def written(
    folder: Path, rows: list[LabeledImage], clusters: dict[int, str] = CLUSTERS
) -> zipfile.ZipFile:
    out = io.BytesIO()
    write(source_of(folder, rows, clusters), out)
    return zipfile.ZipFile(out)


def test_a_folder_for_each_cluster(tmp_path: Path) -> None:
    rows = [
        with_file(tmp_path, row(0, name="trip/a.png")),
        with_file(tmp_path, row(1, name="home/A.png"), "green"),
        with_file(tmp_path, row(2, cluster_id=1, name="a.png"), "blue"),
        with_file(tmp_path, excluded(3)),
    ]
    archive = written(tmp_path, rows)
    assert archive.namelist() == [
        "cats/a.png",
        "cats/A (2).png",
        "dogs/a.png",
        "_excluded/3.png",
        "classes.txt",
    ]
    assert archive.read("classes.txt") == b"cats\ndogs\n"
    assert archive.testzip() is None
    for member, shown in zip(archive.infolist()[:-1], rows, strict=True):
        assert member.compress_type == zipfile.ZIP_STORED
        assert archive.read(member) == (tmp_path / shown.sha256).read_bytes()


def test_no_name_leaves_the_archive(tmp_path: Path) -> None:
    names = ["../../etc/passwd", "/root/x.png", "C:\\boot.ini", "..", "\0.png", "a/../../b.png"]
    labels = {n: name for n, name in enumerate([*names, "_excluded", "../../etc/passwd"])}
    image = with_file(tmp_path, row())
    rows = [image._replace(name=name, cluster_id=n) for n in labels for name in names]
    target = tmp_path / "out"
    archive = written(tmp_path, rows, labels)
    images = archive.namelist()[:-1]
    for name in images:
        path = (target / name).resolve()
        assert path.is_relative_to(target)
        assert len(Path(name).parts) == 2
    assert len({name.casefold() for name in images}) == len(rows)
    assert "_excluded (2)" in {Path(name).parts[0] for name in images}


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    rows = [with_file(tmp_path, row(n)) for n in range(3)]
    first, second = io.BytesIO(), io.BytesIO()
    write(source_of(tmp_path, rows), first)
    write(source_of(tmp_path, rows), second)
    assert first.getvalue() == second.getvalue()


@pytest.mark.parametrize("change", [{"sha256": "00"}, {"bytes": 5}])
def test_missing_bytes_are_an_error(tmp_path: Path, change: dict[str, object]) -> None:
    shown = with_file(tmp_path, row(7))._replace(**change)  # type: ignore[arg-type]
    with pytest.raises(ImageMissing, match=r"img_7 \(photos/7.png\)"):
        written(tmp_path, [shown])


def test_the_layout_of_yolo(tmp_path: Path) -> None:
    rows = [with_file(tmp_path, row(n, cluster_id=n % 2), (n, 0, 0)) for n in range(10)]
    out = io.BytesIO()
    write_yolo(source_of(tmp_path, [*rows, with_file(tmp_path, excluded(10))]), out)
    names = zipfile.ZipFile(out).namelist()
    assert {name.rsplit("/", 1)[0] for name in names} == {
        *("train/cats", "train/dogs", "_excluded", "classes.txt")
    }
    write_yolo(source_of(tmp_path, rows, validation_fraction=0.4), out := io.BytesIO())
    folders = Counter(name.rsplit("/", 1)[0] for name in zipfile.ZipFile(out).namelist())
    assert folders == {
        **{"train/cats": 3, "train/dogs": 3, "val/cats": 2, "val/dogs": 2},
        "classes.txt": 1,
    }


def test_a_validation_part_has_its_own_folder(tmp_path: Path) -> None:
    rows = [with_file(tmp_path, row(n), (n, 0, 0)) for n in range(5)]
    out = io.BytesIO()
    write(source_of(tmp_path, rows, validation_fraction=0.2), out)
    folders = Counter(Path(name).parent.as_posix() for name in zipfile.ZipFile(out).namelist())
    assert folders == {"train/cats": 4, "validation/cats": 1, ".": 1}
