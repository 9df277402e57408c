from collections.abc import Iterator

import pytest

from app.core.platform.activity import listen_to_activity, report_activity, reporting


@pytest.fixture
def heard() -> Iterator[list[int]]:
    calls: list[int] = []
    listen_to_activity(lambda: calls.append(1))
    yield calls
    listen_to_activity(None)


def test_reported_activity_reaches_the_listener(heard: list[int]) -> None:
    report_activity()
    assert len(heard) == 1


def test_every_item_reports_activity(heard: list[int]) -> None:
    items = reporting(range(5))
    assert next(items) == 0
    assert len(heard) == 1
    assert list(items) == [1, 2, 3, 4]
    assert len(heard) == 5


def test_without_a_listener_nothing_happens() -> None:
    report_activity()
    assert list(reporting("ab")) == ["a", "b"]
