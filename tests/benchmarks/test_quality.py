"""The comparison of TEMI with its rivals."""

import numpy as np
import pytest

from benchmarks import quality
from benchmarks.conditions import CONDITIONS, make_trial
from benchmarks.methods import METHODS, replace_neighbors
from benchmarks.sets import LabeledSet


def groups(of_each: int = 40) -> LabeledSet:
    generator = np.random.default_rng(0)
    numbers = np.repeat(np.arange(4), of_each)
    features = 5 * generator.standard_normal((4, 16))[numbers]
    features += generator.standard_normal(features.shape)
    return LabeledSet("groups", features.astype(np.float32), [f"class {n}" for n in numbers])


def test_new_images_are_not_trained_on() -> None:
    trial = make_trial("new", groups(), seed=1)
    assert len(trial.measured) == 32
    assert sorted([*trial.trained, *trial.measured]) == list(range(160))


def test_few_images() -> None:
    trial = make_trial("few", groups(of_each=100), seed=1)
    assert len(set(trial.trained)) == 300
    assert trial.measured is trial.trained


def test_uneven_classes_differ_tenfold() -> None:
    data = groups()
    kept = make_trial("uneven", data, seed=1).trained
    sizes = sorted(np.unique([data.labels[row] for row in kept], return_counts=True)[1])
    assert (sizes[0], sizes[-1]) == (4, 40)


def test_a_fifth_of_the_neighbors_is_replaced() -> None:
    neighbors = np.full((1000, 20), -1)
    replaced = replace_neighbors(neighbors, seed=0)
    assert np.mean(replaced >= 0) == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_separate_groups_are_found_in_every_condition(condition: str) -> None:
    for method in quality.COMPARED:
        # the training prefers equal sizes
        least = 75 if (method, condition) == ("TEMI", "uneven") else 95
        assert quality.measure(groups(), method, 1, condition)["ACC"] > least


def test_every_method_is_measured_on_all_images_and_some_on_others() -> None:
    planned = quality.plan([groups()], 1, METHODS, ("all", "new"))
    assert {one.method for one in planned if one.condition == "all"} == set(METHODS)
    assert {one.method for one in planned if one.condition == "new"} == set(quality.COMPARED)
    assert set(quality.QUICK + quality.DEFAULT) <= set(METHODS)


def test_the_table_has_the_best_method_first() -> None:
    row = {"condition": "all", "seeds": 2, "images": 5, "seconds": 1.5, "ACC deviation": 0.25}
    rows = [
        {**row, "set": "a", "method": "worse", "ACC": 50.0},
        {**row, "set": "a", "method": "better", "ACC": 60.0},
        {**row, "set": "b", "method": "better", "ACC": 70.0, "ACC deviation": None},
    ]
    assert quality.table(rows, "all").splitlines() == [
        "| method | a | b | mean | seconds |",
        "|---|---|---|---|---|",
        "| better | 60.0 ± 0.2 | 70.0 | 65.0 | 1.5 |",
        "| worse | 50.0 ± 0.2 |  | 50.0 | 1.5 |",
    ]
