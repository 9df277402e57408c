"""Busy processes run while a command runs, and end with it, also if it fails."""

import sys

import psutil
import pytest

from tests import busy
from tests.waiting import has_ended


def test_they_end_with_the_block() -> None:
    found: list[psutil.Process] = []

    def fail() -> None:
        with busy.busy(2, 600.0) as ids:
            found.extend(psutil.Process(pid) for pid in ids)
            assert not any(map(has_ended, found))
            raise ValueError("a test has failed")

    with pytest.raises(ValueError, match="a test has failed"):
        fail()
    assert len(found) == 2
    assert all(map(has_ended, found))


def test_the_result_of_the_command_is_told() -> None:
    assert busy.main(["--loops", "1", sys.executable, "-c", "raise SystemExit(3)"]) == 3
    assert busy.main(["--loops", "0", sys.executable, "-c", ""]) == 0
