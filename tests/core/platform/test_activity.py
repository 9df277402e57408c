from collections.abc import Iterator

import pytest

from app.core.platform.activity import listen_to_activity, report_activity, reporting


@pytest.fixture
def reports() -> Iterator[list[int]]:
    calls: list[int] = []
    listen_to_activity(lambda: calls.append(1))
    yield calls
    listen_to_activity(None)


def test_reported_activity_reaches_the_listener(reports: list[int]) -> None:
    report_activity()
    assert len(reports) == 1


def test_every_item_reports_activity(reports: list[int]) -> None:
    items = reporting(range(5))
    assert next(items) == 0
    assert len(reports) == 1
    assert list(items) == [1, 2, 3, 4]
    assert len(reports) == 5


def test_without_a_listener_nothing_happens() -> None:
    report_activity()
    assert list(reporting("ab")) == ["a", "b"]
