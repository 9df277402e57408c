"""What changed since an earlier clustering: approved and rejected by key, then adopted."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from temi_client import TemiClient
from tests.waiting import wait_until
from tests.web.browser import Visits
from tests.web.conftest import Made


@pytest.fixture
def other(api: TemiClient, made: Made) -> Iterator[str]:
    """A new clustering of the dataset; two of its groups are one."""
    result = api.wait(api.predict_dataset(made.model, made.dataset_id, extend=False).id).result
    assert result is not None
    clustering_id = str(result["clustering_id"])
    api.merge_clusters(clustering_id, [0, 1], into=0)
    yield clustering_id
    api.set_current_clustering(made.dataset_id, made.clustering_id)
    api.delete_clustering(clustering_id)


def test_a_merge_is_rejected_by_key_and_the_rest_adopted(
    edited: Made, other: str, visits: Visits, api: TemiClient
) -> None:
    """The page is closed before the clustering that it shows is deleted: see the order above."""
    for number in (0, 1, 2):
        api.rename_cluster(edited.clustering_id, number, f"name {number}")
    sizes = {c.label: c.size for c in api.clusters(edited.clustering_id) if c.named}
    page = visits.open(f"#/datasets/{edited.dataset_id}?tab=clusterings")
    page.get_by_role("link", name="What changed").click()
    expect(page.get_by_role("button", name="Merged 2")).to_be_visible()
    cards = page.get_by_role("article")
    expect(cards.first.get_by_role("img").first).to_be_visible()  # the photos that stayed
    for _ in range(2):
        page.keyboard.press("n")
    expect(cards.nth(1).get_by_role("button", name="Reject")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.get_by_role("button", name="Adopt").click()
    expect(page).to_have_url(re.compile(f"#/clusterings/{other}$"))
    assert {c.label: c.size for c in api.clusters(other) if c.named} == sizes
    assert api.dataset(edited.dataset_id).current_clustering_id == other
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    wait_until(
        lambda: not any(c.named for c in api.clusters(other)), "no name is taken over", pause=0.2
    )
