"""Draws text of any language on a picture; each letter in the first font that has it."""

from collections.abc import Iterator
from functools import cache
from itertools import groupby

from PIL import ImageDraw, ImageFont, features

from temi.analysis.fonts import drawable, font_of, font_paths


def draw_text(
    draw: ImageDraw.ImageDraw, start: tuple[float, float], text: str, size: int, color: str
) -> None:
    """Draws one line from the left end of its baseline on."""
    left, baseline = start
    for run, font in _runs(drawable(text), size):
        draw.text((left, baseline), run, color, font, anchor="ls", direction=_direction())
        left += font.getlength(run, direction=_direction())


def fitted(text: str, size: int, room: float) -> str:
    """The text in one line, cut at its end to the width."""
    line = drawable(text)
    if _width(line, size) <= room:
        return line
    fits, too_long = 0, len(line)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if _width(line[:middle].rstrip() + "…", size) <= room:
            fits = middle
        else:
            too_long = middle
    return line[:fits].rstrip() + "…"


def _width(line: str, size: int) -> float:
    return sum(font.getlength(run, direction=_direction()) for run, font in _runs(line, size))


def _runs(line: str, size: int) -> Iterator[tuple[str, ImageFont.FreeTypeFont]]:
    """Parts of a line with the font of each."""
    for number, letters in groupby(line, key=lambda letter: font_of(letter) or 0):
        yield "".join(letters), _font(number, size)


@cache
def _direction() -> str | None:
    """Of a line: the number before an Arabic name stays at the left. None without Raqm, a library
    that Pillow's packages contain."""
    return "ltr" if features.check("raqm") else None


@cache
def _font(number: int, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(font_paths()[number]), size)
