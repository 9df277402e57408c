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


def refuse(api: TemiClient, made: Made, folder: Path, shade: int = 0) -> None:
    """The model refuses cards of one color."""
    kept = api.refused(made.model).images
    paths = [folder / f"{shade}_{number}.png" for number in range(COUNT)]
    for number, path in enumerate(paths):
        Image.new("RGB", (64, 64), (200 + number, 30 + shade, 30 + shade)).save(path)
    api.predict(made.model, paths, false_alarm_rate=0.2)
    wait_until(lambda: api.refused(made.model).images == kept + COUNT)


def test_refused_photos_become_a_group(
    browser: Browser, keeping: tuple[str, TemiClient, Made], tmp_path: Path
) -> None:
    url, api, made = keeping
    visits = Visits(browser, url)
    visits.allow("status of 409")  # the new group has no features yet: no group is similar to it
    page = visits.open(f"#/models/{made.model}")
    card = page.get_by_role("region", name="New kinds of photos")
    expect(card).to_contain_text("No photo is kept.")
    refuse(api, made, tmp_path)
    page.reload()
    card.get_by_role("button", name="Gather now").click()
    expect(card.get_by_role("heading", name=f"{COUNT} similar photos")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("1 new group of similar photos")
    expect(card.get_by_role("img")).to_have_count(COUNT)
    card.get_by_role("button", name="Remove").first.focus()
    page.keyboard.press("Enter")
    expect(card.get_by_role("heading", name=f"{COUNT - 1} similar photos")).to_be_visible()
    expect(card.get_by_role("button", name="Remove").first).to_be_focused()
    field = card.get_by_role("textbox", name="Name of the new group")
    field.focus()
    page.keyboard.type("red cards")
    page.keyboard.press("Enter")
    expect(card.get_by_role("heading", level=3)).to_have_count(0)
    expect(card.get_by_role("heading", name="New kinds of photos")).to_be_focused()
    groups = {group.label: group.size for group in api.clusters(made.clustering_id)}
    assert groups["red cards"] == COUNT - 1
    page.get_by_role("button", name="Open the group").click()
    expect(page.get_by_role("listbox", name="Photos of red cards")).to_be_visible()
    visits.close()


def test_a_dismissed_group_comes_back_by_undo(
    browser: Browser, keeping: tuple[str, TemiClient, Made], tmp_path: Path
) -> None:
    url, api, made = keeping
    refuse(api, made, tmp_path, shade=1)
    api.wait(api.gather(made.model).id)
    visits = Visits(browser, url)
    page = visits.open(f"#/models/{made.model}")
    card = page.get_by_role("region", name="New kinds of photos")
    group = card.get_by_role("heading", level=3)
    card.get_by_role("button", name="Dismiss").click()
    expect(group).to_have_count(0)
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(group).to_have_count(1)
    card.get_by_role("button", name="Dismiss").click()
    page.get_by_role("link", name="Settings").click()
    page.reload()  # what was dismissed is sent when the page is left
    wait_until(lambda: not list(api.proposals(made.model)), "the group is dismissed")
    visits.close()
