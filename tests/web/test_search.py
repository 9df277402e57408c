"""Search: a photo is dropped or chosen, what is found becomes a group; names are suggested."""

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from temi_client import TemiClient
from tests.waiting import wait_until
from tests.web.browser import Visits, violations
from tests.web.conftest import Made


def found(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Similar photos").get_by_role("option")


def test_a_chosen_photo_finds_itself_and_becomes_a_group(
    visits: Visits, api: TemiClient, edited: Made, tmp_path: Path
) -> None:
    image = next(api.images(edited.dataset_id))
    file = api.image_content(image.id, tmp_path / "one.jpg")
    page = visits.open(edited.view("/search"))
    expect(page.get_by_text("Words need features of a model")).to_be_visible()
    page.get_by_label("Photo to look for").set_input_files(file)
    expect(found(page).first).to_contain_text("100 % similar")
    assert violations(page) == []
    expected = api.search(edited.dataset_id, file, limit=2).data
    found(page).nth(0).click()
    found(page).nth(1).click(modifiers=["Control"])
    toolbar = page.get_by_role("toolbar", name="Selected photos")
    expect(toolbar).to_contain_text("2 photos selected")
    page.keyboard.press("n")
    page.get_by_role("dialog").get_by_label("Name").fill("Twins")
    page.keyboard.press("Enter")
    wait_until(
        lambda: any(c.label == "Twins" and c.size == 2 for c in api.clusters(edited.clustering_id)),
        pause=0.2,
    )
    labels = {one.image_id: one.label for one in api.labels(edited.dataset_id)}
    assert [labels[one.image_id] for one in expected] == ["Twins", "Twins"]
    expect(found(page).first).to_contain_text("Twins")


def test_more_like_a_photo_of_a_group(visits: Visits, api: TemiClient, edited: Made) -> None:
    page = visits.open(edited.view("/groups/0"))
    page.get_by_role("listbox", name=re.compile("^Photos of")).get_by_role(
        "option"
    ).first.dblclick()
    page.get_by_role("link", name="More like this").click()
    expect(page).to_have_url(re.compile(r"/search\?like=img_"))
    expect(found(page).first).to_be_visible()
    image_id = page.url.rpartition("like=")[2]
    names = [one.name for one in api.search(edited.dataset_id, image_id=image_id, limit=3).data]
    for at, name in enumerate(names):
        expect(found(page).nth(at).get_by_role("img", name=name)).to_be_visible()


def test_one_key_takes_a_suggested_name(visits: Visits, api: TemiClient, edited: Made) -> None:
    best = api.name_suggestions(edited.clustering_id, [0]).data[0].suggestions[0].name
    page = visits.open(edited.view("/groups/0"))
    page.get_by_label("Name of cluster 0").click()
    options = page.get_by_role("listbox", name="Suggested names").get_by_role("option")
    expect(options.first).to_contain_text(best)
    page.keyboard.press("1")
    wait_until(lambda: api.get_cluster(edited.clustering_id, 0).label == best, pause=0.2)
