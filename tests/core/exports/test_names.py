from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.exports.names import (
    UniqueNames,
    clean_text,
    image_stem_and_suffix,
    safe_name,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT)
def test_a_safe_name_stays_in_its_folder(text: str) -> None:
    name = safe_name(text, "fallback")
    assert PurePosixPath(name).parts == (name,)
    assert PureWindowsPath(name).parts == (name,)
    assert not PureWindowsPath(name).is_reserved()
    assert not name.startswith(".")
    assert not name.endswith((" ", "."))
    assert 1 <= len(name.encode()) <= 201
    assert clean_text(name) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("../../etc/passwd", "_.._etc_passwd"),
        ("C:\\temp", "C__temp"),
        ("..", "fallback"),
        ("", "fallback"),
        ("con", "_con"),
        ("LPT1.txt", "_LPT1.txt"),
        ("naïve cats ", "naïve cats"),
        ("a\u202eb\nc", "a b c"),
        ("é" * 300, "é" * 100),
    ],
)
def test_safe_names(text: str, name: str) -> None:
    assert safe_name(text, "fallback") == name


@pytest.mark.parametrize(
    ("name", "format_", "expected"),
    [
        ("cats/a.jpg", "JPEG", ("a", ".jpg")),
        ("a.JPEG", "JPEG", ("a", ".jpeg")),
        ("page.html", "PNG", ("page.html", ".png")),
        ("no-ending", "WEBP", ("no-ending", ".webp")),
        ("..\\up\\b.tiff", "TIFF", ("b", ".tiff")),
        ("IMG_1.HEIC", "HEIF", ("IMG_1", ".heic")),
        ("folder/", "GIF", ("image", ".gif")),
        (".png", "PNG", ("image", ".png")),
    ],
)
def test_an_image_has_the_suffix_of_its_format(
    name: str, format_: str, expected: tuple[str, str]
) -> None:
    assert image_stem_and_suffix(name, format_) == expected


@given(st.lists(st.sampled_from(["a", "A", "a (2)", "a (3)", "b"]), max_size=30))
def test_names_are_unique(stems: list[str]) -> None:
    names = UniqueNames()
    given_out = [names.give(stem, ".png") for stem in stems]
    assert len({name.casefold() for name in given_out}) == len(stems)
    assert all(name.startswith(stem) for stem, name in zip(stems, given_out, strict=True))


def test_the_same_name_in_two_folders() -> None:
    names = UniqueNames()
    shown = [names.give("a", folder="x"), names.give("a", folder="y"), names.give("a", folder="x")]
    assert shown == ["a", "a", "a (2)"]
