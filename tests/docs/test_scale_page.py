"""The costs in docs/scale.md are those that benchmarks/scale_costs.py computes."""

from pathlib import Path

from benchmarks.scale_costs import MACHINES, mine_seconds, stages, table

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


def test_the_page_has_the_tables() -> None:
    assert table() in PAGE.read_text("utf-8")


def test_costs_grow_as_they_are_said_to() -> None:
    assert mine_seconds(1e6) == 412.0
    assert 35 < mine_seconds(1e7) / mine_seconds(1e6) < 45  # 10 to the power of 1.6
    assert 99 < mine_seconds(1e9) / mine_seconds(1e8) < 101  # no more cells
    laptop, gpu, many = MACHINES
    assert stages(1e6, gpu)["embed"] < stages(1e6, laptop)["embed"] / 50
    assert stages(1e8, many)["embed"] * 49 < stages(1e8, gpu)["embed"]
    assert stages(2e6, laptop)["train"] == 2 * stages(1e6, laptop)["train"]
