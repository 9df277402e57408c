"""The map: made by a click, photos chosen by a lasso and moved to a group."""

import re
from collections.abc import Sequence

import pytest
from playwright.sync_api import Page, expect

from temi_client import TemiClient
from tests.waiting import wait_until
from tests.web.browser import Visits
from tests.web.conftest import Made

_DRAWN = "performance.getEntriesByName('map-drawn').length > 0"
Corner = tuple[float, float]
# From below: the tools stand above.
_EVERYTHING: Sequence[Corner] = [(0.01, 0.99), (0.01, 0.01), (0.99, 0.01), (0.99, 0.99)]


@pytest.fixture(scope="module")
def mapped(api: TemiClient, made: Made) -> Made:
    api.wait(api.map(made.dataset_id).id)
    return made


def open_map(visits: Visits, made: Made, query: str = "") -> Page:
    page = visits.open(made.view(f"/map{query}"))
    wait_until(lambda: page.evaluate(_DRAWN), "the map is drawn", pause=0.1)
    return page


def lasso(page: Page, corners: Sequence[Corner]) -> None:
    """Draws around a part of the map; corners are shares of its width and height."""
    box = page.get_by_role("application").bounding_box()
    assert box is not None
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in [*places[1:], places[0]]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def selected(page: Page) -> int:
    text = page.get_by_role("region", name="Selection").get_by_role("status").inner_text()
    return int(re.findall(r"\d+", text)[0])


def test_a_lasso_makes_a_group(visits: Visits, api: TemiClient, mapped: Made, edited: Made) -> None:
    total = api.dataset(mapped.dataset_id).image_count
    page = open_map(visits, mapped)
    page.get_by_role("button", name="Lasso").click()
    lasso(page, _EVERYTHING)
    expect(page.get_by_role("region", name="Selection")).to_contain_text(f"{total} photos selected")
    first = next(iter(api.clusters(mapped.clustering_id)))
    shares = page.get_by_role("region", name="Selection").get_by_role("listitem")
    expect(shares.filter(has_text=first.label)).to_contain_text(f"{first.size} of {first.size}")

    page.get_by_role("button", name="Subtract").click()
    lasso(page, [(0.01, 0.99), (0.01, 0.01), (0.5, 0.01), (0.5, 0.99)])
    wait_until(lambda: 0 < selected(page) < total, "a part is selected", pause=0.2)
    half = selected(page)
    page.get_by_label("Name of a new group").fill("Right half")
    page.get_by_role("button", name="Make a group").click()

    def made_group() -> bool:
        return ("Right half", half) in {
            (c.label, c.size) for c in api.clusters(mapped.clustering_id)
        }

    wait_until(made_group, "the group is saved", pause=0.2)
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    wait_until(lambda: not made_group(), "the group is gone", pause=0.2)


def test_a_selection_is_opened_as_a_grid(visits: Visits, api: TemiClient, mapped: Made) -> None:
    page = open_map(visits, mapped)
    page.get_by_role("application").focus()
    page.keyboard.press("v")  # all in view
    page.keyboard.press("g")
    count = api.dataset(mapped.dataset_id).image_count
    dialog = page.get_by_role("dialog", name=f"{count} selected photos")
    expect(dialog.get_by_role("option").first).to_be_visible()


def test_a_photo_of_the_map_has_an_address(visits: Visits, mapped: Made) -> None:
    page = open_map(visits, mapped)
    page.get_by_role("application").focus()
    page.keyboard.press("Enter")  # the photo in the middle
    expect(page).to_have_url(re.compile("image=img_"))
    sent = open_map(visits, mapped, "?" + page.url.split("?", 1)[1])
    name = page.get_by_role("region", name="Photo", exact=True).get_by_role("heading").inner_text()
    photo = sent.get_by_role("region", name="Photo", exact=True)
    expect(photo.get_by_role("heading", name=name)).to_be_visible()
    photo.get_by_role("link").click()  # and back, to its group
    expect(sent.get_by_role("dialog", name=f"Photo {name}")).to_be_visible()


def test_colors(visits: Visits, mapped: Made) -> None:
    page = open_map(visits, mapped)
    page.get_by_label("Color").select_option("probability")
    expect(page.get_by_role("heading", name="Probability")).to_be_visible()
    expect(page).to_have_url(re.compile("color=probability"))
