from collections import Counter
from hashlib import sha256

import pytest

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.classes import Classes
from app.core.exports.splits import Split, make_split
from tests.core.exports.sources import excluded, row

CLASSES = Classes.of({0: "cats", 1: "dogs", 2: "cats"})


def rows_of(*clusters: int) -> list[LabeledImage]:
    return [
        row(n, cluster_id=cluster, sha256=sha256(str(n).encode()).hexdigest())
        for n, cluster in enumerate(clusters)
    ]


def sides(split: Split, rows: list[LabeledImage]) -> list[str | None]:
    return [split.of(item, CLASSES.id_of(item.cluster_id)) for item in rows]


def test_each_class_has_its_share() -> None:
    rows = rows_of(*[0] * 60, *[1] * 20, *[2] * 40)
    counts = Counter(
        zip(
            (CLASSES.id_of(item.cluster_id) for item in rows),
            sides(make_split(rows, CLASSES, 0.25, seed=0), rows),
            strict=True,
        )
    )
    assert counts == {
        **{(0, "validation"): 25, (0, "train"): 75},
        **{(1, "validation"): 5, (1, "train"): 15},
    }


@pytest.mark.parametrize(("images", "expected"), [(1, 0), (2, 1), (3, 1)])
def test_a_small_class_keeps_one_image_for_training(images: int, expected: int) -> None:
    rows = rows_of(*[0] * images)
    for fraction in (0.01, 0.34):
        found = sides(make_split(rows, CLASSES, fraction, seed=0), rows)
        assert found.count("validation") == expected
    assert "train" in sides(make_split(rows, CLASSES, 0.9, seed=0), rows)


def test_the_split_depends_on_the_seed_and_the_images_only() -> None:
    rows = rows_of(*[0, 1] * 50)
    first = sides(make_split(rows, CLASSES, 0.3, seed=1), rows)
    again = sides(make_split(rows[::-1], CLASSES, 0.3, seed=1), rows)
    other = sides(make_split(rows, CLASSES, 0.3, seed=2), rows)
    assert first == again
    assert first != other


def test_the_same_bytes_are_on_the_same_side() -> None:
    rows = rows_of(*[0] * 20)
    twice = [item._replace(sha256=rows[n // 2].sha256) for n, item in enumerate(rows)]
    found = sides(make_split(twice, CLASSES, 0.3, seed=0), twice)
    assert found[::2] == found[1::2]
    assert "validation" in found


def test_without_a_fraction_all_is_for_training() -> None:
    rows = [*rows_of(0, 1), excluded(7)]
    split = make_split(rows, CLASSES, 0, seed=0)
    assert (sides(split, rows), split.names) == (["train", "train", None], ("train",))


def test_no_images() -> None:
    assert make_split([], CLASSES, 0.5, seed=0).names == ("train", "validation")
