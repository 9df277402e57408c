"""Contact sheets of a cluster: its most typical images, and those close to other clusters."""

import io
import threading
from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont, ImageOps
from sqlalchemy.orm import Session

from app.core.clusterings.rows import RANKINGS, ranked_images
from app.core.datasets.images import decode_image
from app.core.platform.errors import ImageRejected, StorageCorrupt
from app.core.platform.tables import Cluster

_TILE, _GAP, _MARGIN = 144, 10, 24
_CAPTION, _HEADING, _HEADER = 18, 34, 70  # text heights
THUMBNAIL_SIZE = 256  # the size in lists, so it is likely to exist
_MIN_WIDTH = 520  # room for the title if there are few columns
_TEXT, _MUTED, _BACKGROUND, _BORDER = "#1d2430", "#6b7280", "#f3f4f6", "#d9dde3"
ReadThumbnail = Callable[[str, int], bytes]
"""Reads a thumbnail by hash and size."""
_slots = threading.BoundedSemaphore(2)  # a large sheet takes about 40 MB


@dataclass(frozen=True)
class Tile:
    sha256: str
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
        Section("Most typical", [Tile(i.sha256, f"p {a.probability:.2f}") for a, i in typical]),
        Section("Borderline", [Tile(i.sha256, f"margin {a.margin:.2f}") for a, i in borderline]),
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


def draw_sheet(sheet: Sheet, read_thumbnail: ReadThumbnail) -> bytes:
    """Draws a PNG; decodes one thumbnail at a time."""
    with _slots:
        width = max(_MIN_WIDTH, 2 * _MARGIN + sheet.columns * (_TILE + _GAP) - _GAP)
        canvas = Pillow.new("RGB", (width, _height(sheet)), "white")
        draw = ImageDraw.Draw(canvas)
        room = width - 2 * _MARGIN
        draw.text((_MARGIN, _MARGIN - 6), _fitted(sheet.title, 26, room), _TEXT, _font(26))
        draw.text((_MARGIN, _MARGIN + 32), _fitted(sheet.subtitle, 15, room), _MUTED, _font(15))
        top = _MARGIN + _HEADER
        if not sheet.sections:
            draw.text((_MARGIN, top), "This cluster is empty.", _MUTED, _font(18))
        for section in sheet.sections:
            draw.text((_MARGIN, top), section.heading, _TEXT, _font(18))
            top += _HEADING
            for number, tile in enumerate(section.tiles):
                row, column = divmod(number, sheet.columns)
                corner = (_MARGIN + column * (_TILE + _GAP), top + row * _row_height())
                picture = _picture(read_thumbnail, tile.sha256)
                _draw_tile(canvas, draw, corner, tile, picture)
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
    tile: Tile,
    picture: Pillow.Image | None,
) -> None:
    left, top = corner
    draw.rectangle((left, top, left + _TILE - 1, top + _TILE - 1), fill=_BACKGROUND)
    if picture is not None:
        picture = ImageOps.contain(picture, (_TILE, _TILE), Pillow.Resampling.LANCZOS)
        position = (left + (_TILE - picture.width) // 2, top + (_TILE - picture.height) // 2)
        canvas.paste(picture, position)
    draw.rectangle((left, top, left + _TILE - 1, top + _TILE - 1), outline=_BORDER)
    draw.text((left, top + _TILE + 3), tile.caption, _MUTED, _font(12))


def _picture(read_thumbnail: ReadThumbnail, sha256: str) -> Pillow.Image | None:
    """The thumbnail; None if its bytes are missing or damaged."""
    try:
        return decode_image(read_thumbnail(sha256, THUMBNAIL_SIZE)).image
    except (ImageRejected, StorageCorrupt, OSError):
        return None


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _fitted(text: str, size: int, room: int) -> str:
    """The text on one line, truncated to the width."""
    line = "".join(character if character.isprintable() else " " for character in text)
    if _font(size).getlength(line) <= room:
        return line
    while line and _font(size).getlength(line + "…") > room:
        line = line[:-1]
    return line + "…"
