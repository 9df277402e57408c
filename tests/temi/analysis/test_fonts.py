import pytest

from temi.analysis.fonts import drawable, font_families, font_of


@pytest.mark.parametrize(
    ("letter", "number"),
    [("a", 0), ("ą", 0), ("ж", 0), ("ع", 0), ("猫", 1), ("ね", 1), ("고", 1), ("🐶", None)],
)
def test_the_font_of_a_letter(letter: str, number: int | None) -> None:
    assert font_of(letter) == number


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cats & dogs", "cats & dogs"),
        ("猫と犬, 고양이, кошка", "猫と犬, 고양이, кошка"),
        ("my 🐶!", "my [dog face]!"),
        ("🐶🐶", "[dog face]"),
        ("แมว 2", "[thai text] 2"),
        ("👨\u200d👩", "[man] [woman]"),
        ("a\nb\t c\x7f", "a b c"),
        ("\U000fffff", ""),  # a private letter is not printable
        ("", ""),
    ],
)
def test_what_no_font_has_is_described(text: str, shown: str) -> None:
    assert drawable(text) == shown


def test_matplotlib_knows_the_fonts() -> None:
    assert font_families() == ["DejaVu Sans", "Noto Sans CJK JP"]
