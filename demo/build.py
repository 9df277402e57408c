"""Build clipart.zip and held_back.zip from Debian's `openclipart-png` package.

    apt-get install openclipart-png && python demo/build.py

`selection.csv` names every drawing, its group and the archive it goes to.
"""

from __future__ import annotations

import argparse
import csv
import io
import zipfile
from pathlib import Path

from PIL import Image, ImageChops

SIDE = 144  # longest side in pixels: enough for a 160 px backbone, and 300 of them stay small
MARGIN = 4
JPEG_QUALITY = 85
NEARLY_WHITE = 8  # differences from white below this are antialiasing, not drawing
FIXED_DATE = (2020, 1, 1, 0, 0, 0)  # the same input gives the same bytes on every machine

HERE = Path(__file__).resolve().parent
PACKAGE_ROOT = Path("/usr/share/openclipart/png")


def flatten(source: Path) -> Image.Image:
    """The drawing on white, without its empty border, centered in a square."""
    with Image.open(source) as opened:
        drawing = opened.convert("RGBA")
    page = Image.new("RGBA", drawing.size, "white")
    page.alpha_composite(drawing)
    flat = page.convert("RGB")
    difference = ImageChops.difference(flat, Image.new("RGB", flat.size, "white")).convert("L")
    flat = flat.crop(difference.point([0] * NEARLY_WHITE + [255] * (256 - NEARLY_WHITE)).getbbox())
    flat.thumbnail((SIDE - 2 * MARGIN, SIDE - 2 * MARGIN), Image.Resampling.LANCZOS)
    square = Image.new("RGB", (SIDE, SIDE), "white")
    square.paste(flat, ((SIDE - flat.width) // 2, (SIDE - flat.height) // 2))
    return square


def build(package_root: Path, out: Path) -> None:
    with (HERE / "selection.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    for archive in sorted({row["archive"] for row in rows}):
        with zipfile.ZipFile(out / archive, "w", zipfile.ZIP_STORED) as target:
            for row in rows:
                if row["archive"] != archive:
                    continue
                jpeg = io.BytesIO()
                flatten(package_root / row["source"]).save(
                    jpeg, "JPEG", quality=JPEG_QUALITY, optimize=True
                )
                entry = zipfile.ZipInfo(f"{row['group']}/{row['name']}", FIXED_DATE)
                entry.external_attr = 0o644 << 16
                target.writestr(entry, jpeg.getvalue())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package-root", type=Path, default=PACKAGE_ROOT)
    parser.add_argument("--out", type=Path, default=HERE)
    arguments = parser.parse_args()
    build(arguments.package_root, arguments.out)
