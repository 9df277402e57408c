"""The archives in demo/."""

import csv
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

DEMO = Path(__file__).resolve().parents[2] / "demo"


def read(name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(DEMO / name) as archive:
        return {path: archive.read(path) for path in archive.namelist()}


def groups(images: dict[str, bytes]) -> dict[str, int]:
    names = [path.split("/")[0] for path in images]
    return {name: names.count(name) for name in names}


def test_the_archives_are_small() -> None:
    size = sum((DEMO / name).stat().st_size for name in ("clipart.zip", "held_back.zip"))
    assert size <= 2_700_000


def test_group_sizes() -> None:
    training, held_back = groups(read("clipart.zip")), groups(read("held_back.zip"))
    assert len(training) == 10
    assert all(30 <= count <= 70 for count in training.values())
    assert held_back == dict.fromkeys(training, 3)


@pytest.mark.parametrize("name", ["clipart.zip", "held_back.zip"])
def test_every_file_is_an_rgb_image_of_the_stated_size(name: str) -> None:
    for content in read(name).values():
        with Image.open(io.BytesIO(content)) as image:
            assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (144, 144))


def test_drawings_are_unique() -> None:
    training, held_back = read("clipart.zip"), read("held_back.zip")
    everything = [*training.values(), *held_back.values()]
    assert len({hashlib.sha256(content).digest() for content in everything}) == len(everything)
    names = [Path(path).name for path in [*training, *held_back]]
    assert len(set(names)) == len(names)


def test_held_back_drawings_differ_from_the_training_set() -> None:
    def pixels(content: bytes) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        with Image.open(io.BytesIO(content)) as image:
            return np.asarray(image.resize((16, 16)), dtype=np.float32).ravel()

    training = np.stack([pixels(content) for content in read("clipart.zip").values()])
    for path, content in read("held_back.zip").items():
        nearest = np.abs(training - pixels(content)).mean(axis=1).min()
        assert nearest > 8.0, path  # levels of 255; a re-encoded copy is below 2


def test_the_selection_lists_every_file() -> None:
    with (DEMO / "selection.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    for archive in ("clipart.zip", "held_back.zip"):
        listed = {f"{row['group']}/{row['name']}" for row in rows if row["archive"] == archive}
        assert listed == set(read(archive))


def test_the_readme_states_license_and_counts() -> None:
    readme = (DEMO / "README.md").read_text()
    assert "public domain" in readme
    assert "Open Clip Art Library" in readme
    held_back = groups(read("held_back.zip"))
    for name, count in groups(read("clipart.zip")).items():
        assert f"| {name} | {count} | {held_back[name]} |" in readme
