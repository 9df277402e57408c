"""The wall of groups: names, merges, undo, and two people at the same time."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from temi_client import Cluster, TemiClient
from tests.waiting import wait_until
from tests.web.browser import Visits, violations
from tests.web.conftest import Made


def name_field(page: Page, label: str) -> Locator:
    return page.get_by_role("combobox", name=f"Name of {label}", exact=True)


def card(page: Page, label: str) -> Locator:
    return page.get_by_role("gridcell").filter(has=name_field(page, label))


def rename(page: Page, label: str, name: str) -> None:
    name_field(page, label).fill(name)
    name_field(page, label).press("Enter")


def saved(api: TemiClient, made: Made) -> dict[str, Cluster]:
    """Groups with photos, by name."""
    return {cluster.label: cluster for cluster in api.clusters(made.clustering_id) if cluster.size}


def wait_for(api: TemiClient, made: Made, *labels: str) -> dict[str, Cluster]:
    wait_until(
        lambda: set(labels) <= set(saved(api, made)), f"groups {labels} are saved", pause=0.2
    )
    return saved(api, made)


def test_a_group_is_renamed(visits: Visits, api: TemiClient, edited: Made) -> None:
    page = visits.open(edited.view())
    rename(page, "cluster 0", "Birds")
    expect(card(page, "Birds")).to_be_visible()
    expect(page.get_by_text("1 of 6 named")).to_be_visible()
    assert wait_for(api, edited, "Birds")["Birds"].named
    page.reload()
    expect(card(page, "Birds")).to_be_visible()


def test_names_of_any_script_are_shown_as_they_are(
    visits: Visits, api: TemiClient, edited: Made
) -> None:
    page = visits.open(edited.view())
    hostile = "<img src=x onerror=alert(1)>"
    rename(page, "cluster 0", "חתולים")
    rename(page, "cluster 1", hostile)
    wait_for(api, edited, "חתולים", hostile)
    expect(card(page, hostile)).to_be_visible()


def test_the_same_name_asks_whether_to_merge(visits: Visits, api: TemiClient, edited: Made) -> None:
    sizes = {label: cluster.size for label, cluster in saved(api, edited).items()}
    page = visits.open(edited.view())
    rename(page, "cluster 0", "Birds")
    wait_for(api, edited, "Birds")
    rename(page, "cluster 1", "birds")
    dialog = page.get_by_role("dialog", name="Merge with the group of this name?")
    dialog.get_by_role("button", name="Merge", exact=True).click()
    expect(page.get_by_role("gridcell")).to_have_count(5)
    wait_until(lambda: len(saved(api, edited)) == 5, pause=0.2)
    assert saved(api, edited)["Birds"].size == sizes["cluster 0"] + sizes["cluster 1"]


def test_several_groups_are_merged_and_the_merge_undone(
    visits: Visits, api: TemiClient, edited: Made
) -> None:
    before = saved(api, edited)
    page = visits.open(edited.view())
    for label in ("cluster 0", "cluster 2", "cluster 4"):
        card(page, label).locator("img").first.click()
    toolbar = page.get_by_role("toolbar", name="Selected groups")
    total = sum(before[label].size for label in ("cluster 0", "cluster 2", "cluster 4"))
    expect(toolbar).to_contain_text(f"3 groups selected ({total} photos)")
    toolbar.get_by_role("button", name="Merge 3 selected").click()
    dialog = page.get_by_role("dialog", name="Merge 3 groups")
    dialog.get_by_label("Name of the merged group").fill("All of them")
    dialog.get_by_role("button", name=f"Merge 3 groups ({total} photos)").click()
    expect(page.get_by_role("gridcell")).to_have_count(4)
    assert wait_for(api, edited, "All of them")["All of them"].size == total

    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("gridcell")).to_have_count(6)
    wait_until(lambda: saved(api, edited).keys() == before.keys(), pause=0.2)
    page.get_by_role("button", name="Redo").click()
    wait_for(api, edited, "All of them")


def test_order_and_filter_are_in_the_address(visits: Visits, edited: Made) -> None:
    page = visits.open(edited.view())
    page.get_by_label("Filter by name").fill("cluster 3")
    expect(page.get_by_role("gridcell")).to_have_count(1)
    sent = visits.open(page.url.split("/", 3)[3])
    expect(sent.get_by_role("gridcell")).to_have_count(1)
    sent.get_by_label("Filter by name").fill("")
    sent.get_by_label("Order").select_option(label="Similar to a group")
    expect(sent.get_by_role("gridcell").nth(1)).to_contain_text("% similar")


def test_groups_in_sections_are_merged_and_the_merge_undone(
    visits: Visits, api: TemiClient, edited: Made
) -> None:
    page = visits.open(edited.view())
    slider = page.get_by_role("slider", name="Show as groups")
    expect(slider).to_have_value("6")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    headings = page.get_by_role("rowheader")
    expect(headings).to_have_count(3)
    expect(page).to_have_url(re.compile(r"[?&]groups=3$"))
    assert violations(page) == []

    groups = api.hierarchy(edited.clustering_id, 3).groups
    for heading, group in zip(headings.all(), groups, strict=True):
        expect(heading.get_by_role("heading", name=group.label, exact=True)).to_be_visible()
    joined = next(group for group in groups if len(group.cluster_ids) > 1)
    count = len(joined.cluster_ids)
    heading = headings.filter(has=page.get_by_role("heading", name=joined.label, exact=True))
    expect(heading).to_contain_text(f"{count} groups, {joined.size} photos")
    sent = visits.open(page.url.split("/", 3)[3])
    expect(sent.get_by_role("rowheader")).to_have_count(3)

    heading.get_by_text(f"Merge these {count}").click()
    expect(page.get_by_role("gridcell")).to_have_count(7 - count)
    expect(page.get_by_role("grid", name="Groups")).to_be_focused()
    wait_until(lambda: len(saved(api, edited)) == 7 - count, pause=0.2)
    assert saved(api, edited)[joined.label].size == joined.size
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("gridcell")).to_have_count(6)
    wait_until(lambda: len(saved(api, edited)) == 6, pause=0.2)


def test_sections_without_shown_groups_are_left_out(visits: Visits, edited: Made) -> None:
    page = visits.open(edited.view("?groups=4"))
    expect(page.get_by_role("rowheader")).to_have_count(4)
    page.get_by_label("Filter by name").fill("cluster 3")
    expect(page.get_by_role("rowheader")).to_have_count(1)
    expect(page.get_by_role("rowheader")).to_contain_text("1 group,")
    expect(page.get_by_text("Merge these")).to_have_count(0)
    page.get_by_label("Filter by name").fill("")
    page.get_by_role("slider", name="Show as groups").press("End")
    expect(page.get_by_role("rowheader")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("groups="))


def test_another_browser_sees_the_edit(visits: Visits, edited: Made) -> None:
    first, second = visits.open(edited.view()), visits.open(edited.view())
    expect(card(second, "cluster 5")).to_be_visible()
    rename(first, "cluster 5", "Seen by both")
    expect(card(second, "Seen by both")).to_be_visible()


@pytest.mark.parametrize("choice", ["Apply mine again", "Discard mine"])
def test_a_conflict_shows_what_the_other_person_did(
    visits: Visits, api: TemiClient, edited: Made, choice: str
) -> None:
    visits.allow("status of 412")
    first, second = visits.open(edited.view()), visits.open(edited.view())
    expect(card(second, "cluster 1")).to_be_visible()
    # The second browser does not see the edit of the first before its own.
    second.route("**/v1/clusterings/*", lambda route: route.abort())
    visits.allow("ERR_FAILED")
    rename(first, "cluster 1", "Theirs")
    wait_for(api, edited, "Theirs")
    rename(second, "cluster 1", "Mine")
    dialog = second.get_by_role("dialog", name="Another person changed these groups")
    expect(dialog).to_contain_text("Theirs")
    second.unroute("**/v1/clusterings/*")
    dialog.get_by_role("button", name=choice).click()
    kept = "Mine" if choice == "Apply mine again" else "Theirs"
    expect(card(second, kept)).to_be_visible()
    wait_for(api, edited, kept)


def test_independent_edits_of_two_people_are_both_saved(
    visits: Visits, api: TemiClient, edited: Made
) -> None:
    visits.allow("status of 412")
    first, second = visits.open(edited.view()), visits.open(edited.view())
    expect(card(second, "cluster 2")).to_be_visible()
    rename(first, "cluster 1", "One")
    rename(second, "cluster 2", "Two")
    wait_for(api, edited, "One", "Two")


def test_by_keyboard_alone(visits: Visits, api: TemiClient, edited: Made) -> None:
    """Name two groups, merge two others, undo, and open one: no pointer."""
    page = visits.open(edited.view())
    wall = page.get_by_role("grid", name="Groups")
    expect(wall).to_be_focused()
    expect(page.get_by_role("gridcell")).to_have_count(6)
    page.keyboard.press("r")
    page.keyboard.type("First")
    page.keyboard.press("Enter")  # goes to the next name
    page.keyboard.type("Second")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(wall).to_be_focused()
    wait_for(api, edited, "First", "Second")

    page.keyboard.press("End")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    page.keyboard.press("m")
    expect(page.get_by_role("dialog", name="Merge 2 groups")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("gridcell")).to_have_count(5)
    expect(wall).to_be_focused()
    page.keyboard.press("Control+z")
    expect(page.get_by_role("gridcell")).to_have_count(6)
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/groups/\d+"))


def test_the_keys_are_listed(visits: Visits, made: Made) -> None:
    page = visits.open(made.view())
    expect(page.get_by_role("grid", name="Groups")).to_be_focused()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("Merge the selected groups")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
