"""Photos that a model has refused: they gather on its page, and a person decides by keyboard."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from temi_client import TemiClient
from tests.e2e.conftest import running
from tests.waiting import wait_until
from tests.web.browser import Visits
from tests.web.conftest import Made, make_clustering

COUNT = 8


@pytest.fixture(scope="module")
def keeping(
    tmp_path_factory: pytest.TempPathFactory, drawings: Path
) -> Iterator[tuple[str, TemiClient, Made]]:
    """A service that keeps what it refuses, with a model of drawings."""
    folder = tmp_path_factory.mktemp("keeping")
    with (
        running(folder / "data", TEMI_KEEP_REFUSED="100") as service,
        service.client() as api,
    ):
        yield service.url, api, make_clustering(api, drawings)


def test_refused_photos_become_a_group(
    browser: Browser, keeping: tuple[str, TemiClient, Made], tmp_path: Path
) -> None:
    url, api, made = keeping
    paths = [tmp_path / f"{number}.png" for number in range(COUNT)]
    for number, path in enumerate(paths):
        Image.new("RGB", (64, 64), (200 + number, 30, 30)).save(path)
    api.predict(made.model, paths, false_alarm_rate=0.2)
    wait_until(lambda: api.refused(made.model).images == COUNT)

    visits = Visits(browser, url)
    page = visits.open(f"#/models/{made.model}")
    card = page.get_by_role("region", name="New kinds of photos")
    card.get_by_role("button", name="Gather now").click()
    expect(card.get_by_role("heading", name=f"{COUNT} similar photos")).to_be_visible()
    expect(card.get_by_role("img")).to_have_count(COUNT)
    field = card.get_by_role("textbox", name="Name of the new group")
    field.focus()
    page.keyboard.type("red cards")
    page.keyboard.press("Enter")
    expect(card.get_by_role("heading", level=3)).to_have_count(0)
    groups = {group.label: group.size for group in api.clusters(made.clustering_id)}
    assert groups["red cards"] == COUNT
    visits.close()
