"""The fonts of figures, and text that they can draw: a missing letter would be an empty box.

DejaVu Sans comes with matplotlib: Latin, Greek, Cyrillic, Hebrew, Arabic and symbols. Noto Sans CJK
adds Chinese, Japanese and Korean.
"""

import re
import threading
import unicodedata
from functools import cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

_lock = threading.Lock()  # FreeType's faces are not thread-safe


@cache
def font_paths() -> tuple[Path, ...]:
    """The fonts in the order in which they are tried."""
    import matplotlib

    return (
        Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"),
        Path(str(files("noto_cjk_sans_otc"))) / "NotoSansCJK-Regular.ttc",
    )


@cache
def font_families() -> list[str]:
    """Registers the fonts with matplotlib; returns their names for a `family` argument."""
    from matplotlib.font_manager import fontManager

    for path in font_paths():
        fontManager.addfont(path)
    return [face.family_name for face in _faces()]


@cache
def font_of(letter: str) -> int | None:
    """The number of the first font that has the letter; None if no font has it."""
    with _lock:
        found = (i for i, face in enumerate(_faces()) if face.get_char_index(ord(letter)))
        return next(found, None)


def drawable(text: str) -> str:
    """The text in one line. What no font has is described: `[dog face]`, `[thai text]`."""
    line = "".join(c if c.isprintable() else " " for c in unicodedata.normalize("NFC", text))
    parts = []
    for missing, letters in groupby(line, key=_is_missing):
        part = "".join(letters)
        parts.append(_described(part) if missing else part)
    return re.sub(r"\s+", " ", "".join(parts)).strip()


def _is_missing(letter: str) -> bool:
    return letter != " " and font_of(letter) is None


def _described(letters: str) -> str:
    """Signs by their names; of a script only its name, because single letters tell nothing."""
    words: dict[str, None] = {}
    for letter in letters:
        name = unicodedata.name(letter, f"U+{ord(letter):04X}").lower()
        if unicodedata.category(letter)[0] == "L":
            words[f"[{name.split()[0]} text]"] = None
        elif unicodedata.category(letter)[0] not in "MC":  # marks and joiners have no look
            words[f"[{name}]"] = None
    return "".join(words)


@cache
def _faces() -> list[Any]:
    from matplotlib.ft2font import FT2Font

    return [FT2Font(str(path)) for path in font_paths()]
