"""The content of contact sheets, also for odd clusters."""

import hashlib
import io
from functools import partial

import pytest
from PIL import Image
from sqlalchemy import update

from app.core.clusterings.contact_sheets import (
    ReadThumbnail,
    Section,
    Sheet,
    Tile,
    draw_sheet,
    load_sheet,
)
from app.core.datasets.thumbnails import get_thumbnail
from app.core.platform.tables import Cluster
from app.core.runtime import Runtime
from app.core.storage.keys import blob_key
from tests.core.clustering_rows import Stored, sha256, store
from tests.images import png_bytes

_SIZES = {"rows": 2, "columns": 2, "borderline_rows": 1}


def sheet_of(runtime: Runtime, stored: Stored, cluster_id: int = 0) -> Sheet:
    with runtime.db.read() as session:
        cluster = session.get_one(Cluster, (stored.clustering_id, cluster_id))
        return load_sheet(session, cluster, **_SIZES)


def _thumbnails(runtime: Runtime) -> ReadThumbnail:
    return partial(get_thumbnail, runtime.storage, runtime.decoders, "t")


def test_typical_and_borderline_images(any_runtime: Runtime) -> None:
    stored = store(any_runtime, [0] * 10 + [1])
    sheet = sheet_of(any_runtime, stored)
    assert (sheet.title, sheet.columns) == ("cluster 0", 2)
    assert sheet.subtitle == "cluster 0  ·  10 images  ·  mean probability 0.68"
    typical, doubtful = sheet.sections
    assert [tile.sha256 for tile in typical.tiles] == [sha256(i) for i in range(4)]
    assert [tile.sha256 for tile in doubtful.tiles] == [sha256(9), sha256(8)]
    assert typical.tiles[0].caption == "p 0.95"
    assert typical.tiles[0].name.endswith(".png")
    assert doubtful.tiles[0].caption.startswith("p 0.41  ·  margin ")


def test_no_image_is_shown_twice(any_runtime: Runtime) -> None:
    stored = store(any_runtime, [0] * 5)
    typical, doubtful = sheet_of(any_runtime, stored).sections
    assert (len(typical.tiles), len(doubtful.tiles)) == (4, 1)


def test_an_empty_cluster(any_runtime: Runtime) -> None:
    stored = store(any_runtime, [0], n_clusters=2)
    sheet = sheet_of(any_runtime, stored, 1)
    assert (sheet.subtitle, sheet.sections) == ("cluster 1  ·  no images", [])
    assert draw_sheet(sheet, _thumbnails(any_runtime)).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "label",
    ["ねこ 🐈", "кошка", "قطة", "a\nb\tc\x7f", "\u202eabc\u0301", "W" * 200, "\ud7ff\uffff"],
)
def test_any_name(runtime: Runtime, label: str) -> None:
    stored = store(runtime, [0], n_clusters=1)
    with runtime.db.write() as session:
        session.execute(update(Cluster).values(label=label))
    assert draw_sheet(sheet_of(runtime, stored), _thumbnails(runtime)).startswith(b"\x89PNG")


def test_pictures_are_in_their_places(runtime: Runtime) -> None:
    tiles = []
    for color in ("#ff0000", "#0000ff"):
        data = png_bytes(color, (300, 200))
        tiles.append(Tile(hashlib.sha256(data).hexdigest(), "a.png", "p 1.00"))
        runtime.storage.write(blob_key(tiles[-1].sha256), data)
    damaged = Tile("11" * 32, "b.png", "damaged")
    runtime.storage.write(blob_key(damaged.sha256), b"\x89PNG\r\n\x1a\n damaged")
    sections = [Section("A", [*tiles, damaged, Tile("00" * 32, "c.png", "gone")])]
    sheet = Sheet(title="t", subtitle="s", sections=sections, columns=4)

    with Image.open(io.BytesIO(draw_sheet(sheet, _thumbnails(runtime)))) as opened:
        image = opened.convert("RGB")
    row = [image.getpixel((24 + number * 154 + 72, 24 + 70 + 34 + 72)) for number in range(4)]
    assert row[0][0] > 240 > 20 > row[0][2]  # type: ignore[index]
    assert row[1][2] > 240 > 20 > row[1][0]  # type: ignore[index]
    assert row[2] == row[3] == (243, 244, 246)
