"""One picture of a cluster: its most typical images, and those that it nearly lost to others."""

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
_CAPTION, _HEADING, _HEADER = 18, 34, 70  # heights of texts
THUMBNAIL_SIZE = 256  # the size that lists show, so it is likely to be there
_MIN_WIDTH = 520  # room for a title, however few columns there are
_INK, _PALE, _EMPTY, _FRAME = "#1d2430", "#6b7280", "#f3f4f6", "#d9dde3"
ReadThumbnail = Callable[[str, int], bytes]
"""By hash and size."""
_sheets = threading.BoundedSemaphore(2)  # a large one takes some 40 MB


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
    """Everything that is shown, but for the pictures themselves."""

    title: str
    subtitle: str
    sections: list[Section]
    columns: int


def load_sheet(
    session: Session, cluster: Cluster, *, rows: int, columns: int, borderline_rows: int
) -> Sheet:
    """An image is shown once: those at the border are of the ones that are not typical."""
    where = (session, cluster.clustering_id, cluster.cluster_id)
    typical = ranked_images(*where, limit=rows * columns)
    shown = [image.id for _, image in typical]
    doubtful = ranked_images(
        *where, RANKINGS["borderline"], limit=borderline_rows * columns, without=shown
    )
    sections = [
        Section("Most typical", [Tile(i.sha256, f"p {a.probability:.2f}") for a, i in typical]),
        Section("At the border", [Tile(i.sha256, f"margin {a.margin:.2f}") for a, i in doubtful]),
    ]
    mean = cluster.mean_probability
    images = "no images" if not cluster.size else f"{cluster.size:,} images"
    sure = "" if mean is None else f"  ·  mean probability {mean:.2f}"
    return Sheet(
        title=cluster.label,
        subtitle=f"cluster {cluster.cluster_id}  ·  {images}{sure}",
        sections=[section for section in sections if section.tiles],
        columns=columns,
    )


def draw_sheet(sheet: Sheet, read_thumbnail: ReadThumbnail) -> bytes:
    """As PNG. One picture at a time is decoded."""
    with _sheets:
        width = max(_MIN_WIDTH, 2 * _MARGIN + sheet.columns * (_TILE + _GAP) - _GAP)
        canvas = Pillow.new("RGB", (width, _height(sheet)), "white")
        draw = ImageDraw.Draw(canvas)
        room = width - 2 * _MARGIN
        draw.text((_MARGIN, _MARGIN - 6), _fitted(sheet.title, 26, room), _INK, _font(26))
        draw.text((_MARGIN, _MARGIN + 32), _fitted(sheet.subtitle, 15, room), _PALE, _font(15))
        top = _MARGIN + _HEADER
        if not sheet.sections:
            draw.text((_MARGIN, top), "This cluster is empty.", _PALE, _font(18))
        for section in sheet.sections:
            draw.text((_MARGIN, top), section.heading, _INK, _font(18))
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
    draw.rectangle((left, top, left + _TILE - 1, top + _TILE - 1), fill=_EMPTY)
    if picture is not None:
        picture = ImageOps.contain(picture, (_TILE, _TILE), Pillow.Resampling.LANCZOS)
        place = (left + (_TILE - picture.width) // 2, top + (_TILE - picture.height) // 2)
        canvas.paste(picture, place)
    draw.rectangle((left, top, left + _TILE - 1, top + _TILE - 1), outline=_FRAME)
    draw.text((left, top + _TILE + 3), tile.caption, _PALE, _font(12))


def _picture(read_thumbnail: ReadThumbnail, sha256: str) -> Pillow.Image | None:
    """None if its bytes are gone or damaged: the others are worth looking at all the same."""
    try:
        return decode_image(read_thumbnail(sha256, THUMBNAIL_SIZE)).image
    except (ImageRejected, StorageCorrupt, OSError):
        return None


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _fitted(text: str, size: int, room: int) -> str:
    """On one line, and cut where the sheet ends. Letters that the font lacks become boxes."""
    line = "".join(character if character.isprintable() else " " for character in text)
    if _font(size).getlength(line) <= room:
        return line
    while line and _font(size).getlength(line + "…") > room:
        line = line[:-1]
    return line + "…"
