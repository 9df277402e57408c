import pytest
from PIL import Image, ImageChops, ImageDraw

from app.core.clusterings.drawn_text import draw_text, fitted


def drawn(text: str, size: int = 26) -> Image.Image:
    image = Image.new("L", (400, 50), "white")
    draw_text(ImageDraw.Draw(image), (10, 35), text, size, "black")
    return image


def ink(image: Image.Image) -> tuple[int, int, int, int] | None:
    return ImageChops.invert(image).getbbox()


@pytest.mark.parametrize("text", ["猫犬", "ねこ", "고양", "кш", "قط"])
def test_letters_differ_from_each_other(text: str) -> None:
    """Two missing letters would be the same box."""
    first, second = (drawn(letter) for letter in text[:2])
    assert ink(first) is not None
    assert ImageChops.difference(first, second).getbbox() is not None


def test_runs_of_two_fonts_stand_side_by_side() -> None:
    latin, both = ink(drawn("cat")), ink(drawn("cat猫"))
    assert latin is not None
    assert both is not None
    assert both[0] == latin[0]
    assert both[2] > latin[2] + 15


@pytest.mark.parametrize("text", ["W" * 300, "猫" * 300, "🐶" * 300 + "x" * 300])
def test_a_long_text_is_cut_to_the_width(text: str) -> None:
    line = fitted(text, 26, 300)
    assert line.endswith("…")
    box = ink(drawn(line))
    assert box is not None
    assert 200 < box[2] <= 310


def test_a_short_text_is_whole() -> None:
    assert fitted("cats", 26, 300) == "cats"
