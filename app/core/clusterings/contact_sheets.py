"""Contact sheets of a cluster: its most typical images, and those close to other clusters."""

import io
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from PIL import Image as Pillow
from PIL import ImageDraw, ImageOps
from sqlalchemy.orm import Session

from app.core.clusterings.drawn_text import draw_text, fitted
from app.core.clusterings.rows import RANKINGS, ranked_images
from app.core.datasets.images import decode_image
from app.core.platform.errors import ImageRejected, StorageCorrupt
from app.core.platform.tables import Cluster, Image

_TILE, _GAP, _MARGIN = 144, 10, 24
_CAPTION, _HEADING, _HEADER, _SMALL = 34, 34, 70, 12  # text heights
THUMBNAIL_SIZE = 256  # the size in lists, so it is likely to exist
_MIN_WIDTH = 520  # room for the title if there are few columns
_TEXT, _MUTED, _BACKGROUND, _BORDER = "#1d2430", "#6b7280", "#f3f4f6", "#d9dde3"
ReadThumbnail = Callable[[str, int], bytes]
"""Reads a thumbnail by hash and size."""
_slots = threading.BoundedSemaphore(2)  # a large sheet takes about 40 MB


@dataclass(frozen=True)
class Tile:
    sha256: str
    name: str  # of the image
    caption: str


@dataclass(frozen=True)
class Section:
    heading: str
    tiles: list[Tile]


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """The content of a sheet without the thumbnails."""

    title: str
    subtitle: str
    sections: list[Section]
    columns: int


def load_sheet(
    session: Session, cluster: Cluster, *, rows: int, columns: int, borderline_rows: int
) -> Sheet:
    """Reads the content; the two sections have no image in common."""
    args = (session, cluster.clustering_id, cluster.cluster_id)
    typical = ranked_images(*args, limit=rows * columns)
    typical_ids = [image.id for _, image in typical]
    borderline = ranked_images(
        *args, RANKINGS["borderline"], limit=borderline_rows * columns, exclude=typical_ids
    )
    sections = [
        Section("Most typical", [_tile(image, f"p {a.probability:.2f}") for a, image in typical]),
        Section(
            "Borderline",
            [
                _tile(image, f"p {a.probability:.2f}  ·  margin {a.margin:.2f}")
                for a, image in borderline
            ],
        ),
    ]
    mean = cluster.mean_probability
    images = "no images" if not cluster.size else f"{cluster.size:,} images"
    probability = "" if mean is None else f"  ·  mean probability {mean:.2f}"
    return Sheet(
        title=cluster.label,
        subtitle=f"cluster {cluster.cluster_id}  ·  {images}{probability}",
        sections=[section for section in sections if section.tiles],
        columns=columns,
    )


def _tile(image: Image, caption: str) -> Tile:
    return Tile(image.sha256, PurePosixPath(image.name.replace("\\", "/")).name, caption)


def draw_sheet(sheet: Sheet, read_thumbnail: ReadThumbnail) -> bytes:
    """Draws a PNG; decodes one thumbnail at a time."""
    with _slots:
        width = max(_MIN_WIDTH, 2 * _MARGIN + sheet.columns * (_TILE + _GAP) - _GAP)
        canvas = Pillow.new("RGB", (width, _height(sheet)), "white")
        draw = ImageDraw.Draw(canvas)
        room = width - 2 * _MARGIN
        draw_text(draw, (_MARGIN, _MARGIN + 20), fitted(sheet.title, 26, room), 26, _TEXT)
        draw_text(draw, (_MARGIN, _MARGIN + 46), fitted(sheet.subtitle, 15, room), 15, _MUTED)
        top, shown = _MARGIN + _HEADER, 0
        if not sheet.sections:
            draw_text(draw, (_MARGIN, top + 18), "This cluster is empty.", 18, _MUTED)
        for section in sheet.sections:
            draw_text(draw, (_MARGIN, top + 18), section.heading, 18, _TEXT)
            top += _HEADING
            for number, tile in enumerate(section.tiles):
                row, column = divmod(number, sheet.columns)
                corner = (_MARGIN + column * (_TILE + _GAP), top + row * _row_height())
                picture = _picture(read_thumbnail, tile.sha256)
                shown += 1
                _draw_tile(canvas, draw, corner, (shown, tile), picture)
            top += _rows(section, sheet.columns) * _row_height() + _GAP
        out = io.BytesIO()
        canvas.save(out, "PNG")
        return out.getvalue()


def _height(sheet: Sheet) -> int:
    tiles = sum(_rows(section, sheet.columns) for section in sheet.sections) * _row_height()
    headings = max(1, len(sheet.sections)) * (_HEADING + _GAP)
    return 2 * _MARGIN + _HEADER + headings + tiles - 2 * _GAP


def _rows(section: Section, columns: int) -> int:
    return -(-len(section.tiles) // columns)


def _row_height() -> int:
    return _TILE + _CAPTION + _GAP


def _draw_tile(
    canvas: Pillow.Image,
    draw: ImageDraw.ImageDraw,
    corner: tuple[int, int],
    numbered: tuple[int, Tile],
    picture: Pillow.Image | None,
) -> None:
    (left, top), (number, tile) = corner, numbered
    draw.rectangle((left, top, left + _TILE - 1, top + _TILE - 1), fill=_BACKGROUND)
    if picture is not None:
        picture = ImageOps.contain(picture, (_TILE, _TILE), Pillow.Resampling.LANCZOS)
        position = (left + (_TILE - picture.width) // 2, top + (_TILE - picture.height) // 2)
        canvas.paste(picture, position)
    draw.rectangle((left, top, left + _TILE - 1, top + _TILE - 1), outline=_BORDER)
    name = fitted(f"{number}  {tile.name}", _SMALL, _TILE)
    draw_text(draw, (left, top + _TILE + 15), name, _SMALL, _TEXT)
    draw_text(draw, (left, top + _TILE + 30), tile.caption, _SMALL, _MUTED)


def _picture(read_thumbnail: ReadThumbnail, sha256: str) -> Pillow.Image | None:
    """The thumbnail; None if its bytes are missing or damaged."""
    try:
        return decode_image(read_thumbnail(sha256, THUMBNAIL_SIZE)).image
    except (ImageRejected, StorageCorrupt, OSError):
        return None
