"""The review: one photo after the other, answered by keys."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from temi_client import ReviewAnswer, TemiClient
from tests.waiting import wait_until
from tests.web.browser import Visits
from tests.web.conftest import Made


@pytest.fixture
def reviewed(api: TemiClient, edited: Made) -> Iterator[Made]:
    """The clustering for a test that answers: all answers are withdrawn."""
    yield edited
    for answer in list(api.review_answers(edited.clustering_id)):
        api.withdraw_answer(edited.clustering_id, answer.image_id)


def question(page: Page) -> Locator:
    return page.get_by_role("heading", name=re.compile("^Does this photo belong to"))


def shown(page: Page) -> str:
    """The name of the photo that is asked about."""
    return page.locator("figure img").first.get_attribute("alt") or ""


def answers(api: TemiClient, made: Made) -> list[ReviewAnswer]:
    return list(api.review_answers(made.clustering_id))


def test_answers_by_keys_are_stored_and_can_be_taken_back(
    visits: Visits, api: TemiClient, reviewed: Made
) -> None:
    page = visits.open(reviewed.view())
    page.get_by_role("navigation").get_by_role("link", name="Review").click()
    expect(question(page)).to_be_visible()
    names = []
    for key in ("y", "n", "x"):
        names.append(shown(page))
        page.keyboard.press(key)
    wait_until(lambda: len(answers(api, reviewed)) == 3, "three answers are stored", pause=0.2)
    found = {answer.name: answer.answer for answer in answers(api, reviewed)}
    assert found == dict(zip(names, ("yes", "no", "none"), strict=True))
    page.keyboard.press("u")
    expect(page.locator("figure img").first).to_have_attribute("alt", names[2])
    wait_until(lambda: len(answers(api, reviewed)) == 2, "one answer is withdrawn", pause=0.2)
    skipped = shown(page)
    page.keyboard.press("s")
    expect(page.locator("figure img").first).not_to_have_attribute("alt", skipped)


def test_a_photo_is_moved_to_the_group_that_was_chosen(
    visits: Visits, api: TemiClient, reviewed: Made
) -> None:
    page = visits.open(reviewed.view("/review"))
    expect(question(page)).to_be_visible()
    name = shown(page)
    page.keyboard.press("w")
    page.get_by_role("dialog", name="The photo belongs to").get_by_role("option").first.click()
    wait_until(lambda: len(answers(api, reviewed)) == 1, "the answer is stored", pause=0.2)
    (answer,) = answers(api, reviewed)
    assert (answer.name, answer.answer) == (name, "which")
    rows = api.assignments(reviewed.clustering_id, answer.belongs_to)
    assert name in [row.name for row in rows]


def test_the_report_follows_the_answers_and_the_chosen_purity(
    visits: Visits, api: TemiClient, reviewed: Made
) -> None:
    for _ in range(20):
        asked = api.review_queue(reviewed.clustering_id, limit=500, min_purity=0.9).data
        if not asked:
            break
        api.answer_review(reviewed.clustering_id, [one.answered("yes") for one in asked])
    page = visits.open(reviewed.view("/review?purity=0.9"))
    expect(page.get_by_text("Nothing is left to review at 90 % purity.")).to_be_visible()
    table = page.get_by_role("group", name="Purity of the groups")
    filled = sum(row.size > 0 for row in api.review(reviewed.clustering_id).clusters)
    expect(table.get_by_text("done", exact=True)).to_have_count(filled)
    page.get_by_label("Purity to reach").select_option("0.99")
    expect(question(page)).to_be_visible()
    assert "purity=0.99" in page.url
