"""One group: photos are moved, excluded, split off, opened large and compared."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from temi_client import TemiClient
from tests.waiting import wait_until
from tests.web.browser import Visits
from tests.web.conftest import Made


def photos(page: Page) -> Locator:
    return page.get_by_role("listbox", name=re.compile("^Photos of")).get_by_role("option")


def open_group(visits: Visits, made: Made, cluster_id: int = 0, query: str = "") -> Page:
    page = visits.open(made.view(f"/groups/{cluster_id}{query}"))
    expect(photos(page).first).to_be_enabled()  # it is disabled while it is read
    return page


def sizes(api: TemiClient, made: Made) -> dict[str, int]:
    return {c.label: c.size for c in api.clusters(made.clustering_id) if c.size}


def wait_for_sizes(api: TemiClient, made: Made, **wanted: int) -> None:
    expected = {label.replace("_", " "): size for label, size in wanted.items()}
    wait_until(
        lambda: expected.items() <= sizes(api, made).items(),
        f"the groups have the sizes {expected}",
        pause=0.2,
        details=lambda: str(sizes(api, made)),
    )


@pytest.fixture
def before(api: TemiClient, made: Made) -> dict[str, int]:
    return sizes(api, made)


def test_selected_photos_are_moved_and_the_move_undone(
    visits: Visits, api: TemiClient, edited: Made, before: dict[str, int]
) -> None:
    page = open_group(visits, edited)
    photos(page).nth(0).click()
    photos(page).nth(2).click(modifiers=["Shift"])
    page.get_by_role("button", name=re.compile("^Move 3 selected")).click()
    dialog = page.get_by_role("dialog", name="Move 3 selected to")
    dialog.get_by_label("Name of the group").fill("cluster 3")
    dialog.get_by_label("Name of the group").press("Enter")
    there, here = before["cluster 3"] + 3, before["cluster 0"] - 3
    wait_for_sizes(api, edited, cluster_3=there, cluster_0=here)
    expect(photos(page)).to_have_count(here)
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(photos(page)).to_have_count(before["cluster 0"])
    wait_for_sizes(api, edited, cluster_3=before["cluster 3"])


def test_all_photos_of_a_group_are_moved_by_one_request(
    visits: Visits, api: TemiClient, edited: Made, before: dict[str, int]
) -> None:
    page = open_group(visits, edited)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    count = before["cluster 0"]
    page.get_by_role("button", name=f"Select all {count}").click()
    page.get_by_role("button", name=re.compile(f"^Move all {count}")).click()
    dialog = page.get_by_role("dialog", name=f"Move all {count} to")
    dialog.get_by_label("Name of the group").fill("cluster 1")
    dialog.get_by_label("Name of the group").press("Enter")
    wait_for_sizes(api, edited, cluster_1=before["cluster 1"] + count)
    assert sent.count("POST") == 1


def test_a_new_group_and_excluded_photos_by_keyboard(
    visits: Visits, api: TemiClient, edited: Made
) -> None:
    largest = max(api.clusters(edited.clustering_id), key=lambda cluster: cluster.size)
    page = open_group(visits, edited, largest.cluster_id)
    name, size = largest.label.replace(" ", "_"), largest.size
    expect(page.get_by_role("listbox", name=re.compile("^Photos of"))).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("n")
    page.get_by_role("dialog", name="New group from 2 selected").get_by_label("Name").fill("Odd")
    page.keyboard.press("Enter")
    wait_for_sizes(api, edited, **{"Odd": 2, name: size - 2})
    expect(page.get_by_role("listbox", name=re.compile("^Photos of"))).to_be_focused()
    page.keyboard.press("x")  # without a selection: the active photo
    wait_for_sizes(api, edited, **{name: size - 3})
    page.keyboard.press("Control+z")
    wait_for_sizes(api, edited, **{name: size - 2})


def test_a_group_is_split_by_looking_inside(
    visits: Visits, api: TemiClient, edited: Made, before: dict[str, int]
) -> None:
    page = open_group(visits, edited)
    page.get_by_role("button", name=re.compile("^Split")).click()
    dialog = page.get_by_role("dialog", name="Split “cluster 0”")
    dialog.get_by_label("Parts").fill("3")
    expect(dialog.get_by_role("checkbox")).to_have_count(3)
    assert sizes(api, edited) == before  # only shown
    dialog.get_by_role("checkbox").nth(2).uncheck()
    button = dialog.get_by_role("button", name=re.compile(r"^Move \d+ photos? to 1 new group"))
    leaving = int(re.findall(r"\d+", button.inner_text())[0])
    button.click()
    expect(photos(page)).to_have_count(before["cluster 0"] - leaving)
    wait_until(lambda: len(sizes(api, edited)) == len(before) + 1, pause=0.2)
    assert sizes(api, edited)["cluster 0 (2)"] == leaving


def test_photos_are_selected_with_a_rectangle(visits: Visits, edited: Made) -> None:
    page = open_group(visits, edited)
    first, last = photos(page).nth(0).bounding_box(), photos(page).nth(2).bounding_box()
    assert first is not None
    assert last is not None
    page.mouse.move(first["x"] + 10, first["y"] + 10)
    page.mouse.down()
    page.mouse.move(last["x"] + 40, last["y"] + 40, steps=5)
    page.mouse.up()
    expect(page.get_by_role("toolbar", name="Selected photos")).to_contain_text("3 selected")


def test_a_photo_opens_large_and_its_address_too(visits: Visits, made: Made) -> None:
    page = open_group(visits, made)
    photos(page).first.dblclick()
    viewer = page.get_by_role("dialog", name=re.compile("^Photo"))
    expect(viewer.get_by_role("img").last).to_be_visible()
    expect(page).to_have_url(re.compile("image=img_"))
    sent = visits.open(page.url.split("/", 3)[3])
    expect(sent.get_by_role("dialog", name=re.compile("^Photo"))).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page).not_to_have_url(sent.url)
    page.keyboard.press("Escape")
    expect(viewer).to_be_hidden()


def test_photos_by_similarity_to_one(visits: Visits, made: Made) -> None:
    page = open_group(visits, made)
    source = photos(page).nth(3).locator("img").get_attribute("src")
    assert source is not None
    photos(page).nth(3).click()
    page.keyboard.press("y")
    expect(page).to_have_url(re.compile("sort=similar"))
    expect(photos(page).first.locator("img")).to_have_attribute("src", source)


def test_the_next_group_is_shown_in_the_same_order(visits: Visits, made: Made) -> None:
    page = open_group(visits, made, query="?sort=outlier&size=200")
    step = page.get_by_role("link", name=re.compile("^(Next|Previous) group$")).first
    shown = page.url
    step.click()
    expect(page).not_to_have_url(shown)
    expect(page).to_have_url(re.compile("sort=outlier&size=200"))
    expect(page.get_by_label("Order", exact=True)).to_have_value("outlier")


def test_two_groups_are_compared_and_merged(
    visits: Visits, api: TemiClient, edited: Made, before: dict[str, int]
) -> None:
    page = visits.open(edited.view("/compare?a=0&b=1"))
    expect(page.get_by_role("heading", name="Are these the same?")).to_be_visible()
    expect(page.get_by_role("listbox")).to_have_count(2)
    for shown in page.get_by_role("listbox").all():  # a request for a merged group would be refused
        expect(shown.get_by_role("option").first).to_be_visible()
    page.get_by_role("button", name=re.compile("^Yes, merge")).click()
    total = before["cluster 0"] + before["cluster 1"]
    wait_until(lambda: total in sizes(api, edited).values(), pause=0.2)


def test_the_history_says_who_did_what(visits: Visits, api: TemiClient, edited: Made) -> None:
    api.rename_cluster(edited.clustering_id, 0, "Birds")
    page = visits.open(edited.view("/history"))
    expect(page.get_by_role("row").filter(has_text="Birds").first).to_be_visible()


def test_a_group_that_is_gone_says_so(visits: Visits, made: Made) -> None:
    visits.allow("status of 404")
    page = visits.open(made.view("/groups/999"))
    expect(page.get_by_text("This group is not there any more")).to_be_visible()
