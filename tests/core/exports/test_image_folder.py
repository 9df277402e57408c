import io
import zipfile
from pathlib import Path

import pytest

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.image_folder import write
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
    ]
    assert archive.testzip() is None
    for member, shown in zip(archive.infolist(), rows, strict=True):
        assert member.compress_type == zipfile.ZIP_STORED
        assert archive.read(member) == (tmp_path / shown.sha256).read_bytes()


def test_no_name_leaves_the_archive(tmp_path: Path) -> None:
    names = ["../../etc/passwd", "/root/x.png", "C:\\boot.ini", "..", "\0.png", "a/../../b.png"]
    labels = {n: name for n, name in enumerate([*names, "_excluded", "../../etc/passwd"])}
    image = with_file(tmp_path, row())
    rows = [image._replace(name=name, cluster_id=n) for n in labels for name in names]
    target = tmp_path / "out"
    archive = written(tmp_path, rows, labels)
    for name in archive.namelist():
        path = (target / name).resolve()
        assert path.is_relative_to(target)
        assert len(Path(name).parts) == 2
    assert len({name.casefold() for name in archive.namelist()}) == len(rows)
    assert "_excluded (2)" in {Path(name).parts[0] for name in archive.namelist()}


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
