"""File names that are valid on every file system, safe, and unique."""

import re
import unicodedata
from hashlib import blake2b

_FORBIDDEN = re.compile(r'[<>:"/\\|?*]')
_DEVICES = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(10))}
_MAX_BYTES = 200  # of 255, with room for a number
_SUFFIXES = {
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "TIFF": (".tif", ".tiff"),
    "HEIF": (".heic", ".heif"),
}


def clean_text(text: str) -> str:
    """Removes control characters and repeated spaces, which break XML, YAML and terminals."""
    printable = "".join(c if c.isprintable() else " " for c in unicodedata.normalize("NFC", text))
    return " ".join(printable.split())


def safe_name(text: str, fallback: str, max_bytes: int = _MAX_BYTES) -> str:
    """A valid part of a path on any system."""
    name = _FORBIDDEN.sub("_", clean_text(text)).strip(" .")
    name = name.encode()[:max_bytes].decode(errors="ignore").strip(" .")
    if name.partition(".")[0].strip().lower() in _DEVICES:
        name = f"_{name}"
    return name or fallback


def image_stem_and_suffix(name: str, format_: str) -> tuple[str, str]:
    """The file name without folders, and a suffix for its real format."""
    base = re.split(r"[/\\]", name)[-1]
    known = _SUFFIXES.get(format_, (f".{format_.lower()}",))
    stem, dot, ending = base.rpartition(".")
    suffix = f".{ending.lower()}"
    if dot and suffix in known:
        return safe_name(stem, "image"), suffix
    return safe_name(base, "image"), known[0]


class UniqueNames:
    """Makes names unique, ignoring case, as some file systems do."""

    def __init__(self) -> None:
        self._given: dict[int, int] = {}  # hash -> count: smaller than the names

    def give(self, stem: str, suffix: str = "", *, folder: str = "") -> str:
        plain = _hash(folder, f"{stem}{suffix}")
        number = self._given.get(plain, 0) + 1
        name = _numbered(stem, suffix, number)
        while number > 1 and _hash(folder, name) in self._given:
            number += 1
            name = _numbered(stem, suffix, number)
        self._given[plain] = number
        self._given.setdefault(_hash(folder, name), 1)
        return name


def _numbered(stem: str, suffix: str, number: int) -> str:
    return f"{stem}{suffix}" if number == 1 else f"{stem} ({number}){suffix}"


def _hash(folder: str, name: str) -> int:
    normalized = unicodedata.normalize("NFC", f"{folder}/{name}".casefold())
    return int.from_bytes(blake2b(normalized.encode(), digest_size=8).digest())
