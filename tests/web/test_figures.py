"""What keeps the workbench fast with large sets, in counts. Times: benchmarks/workbench.py."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Request, Route, expect

from benchmarks.workbench_pages import pages_of_photos, script_bytes, scroll_through
from benchmarks.workbench_rows import CLUSTERING, DATASET, large_service
from temi_client import TemiClient
from tests.built_page import build_page
from tests.waiting import wait_until
from tests.web.browser import Visits

_IMAGES = 3_000
_MERGED = 1_000
_PAGE = 200  # photos of a request


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service with a large dataset."""
    build_page()
    folder = tmp_path_factory.mktemp("large") / "service"
    with large_service(folder, _IMAGES, merged=_MERGED) as url:
        yield url


@pytest.fixture
def large_visits(browser: Browser, large: str) -> Iterator[Visits]:
    visits = Visits(browser, large)
    yield visits
    visits.close()


def test_scrolling_a_whole_dataset_keeps_the_page_small(large_visits: Visits) -> None:
    page = large_visits.open(f"#/datasets/{DATASET}")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    expect(page.get_by_role("option").locator("img").first).to_be_visible()
    seen = scroll_through(page, screens=2)
    expect(page.locator(f'[aria-posinset="{_IMAGES}"] img')).to_be_visible()
    assert seen.nodes < 2_000
    pages = pages_of_photos(asked)
    assert len(set(pages)) == len(pages)  # none is read twice
    assert len(pages) <= _IMAGES // _PAGE
    assert len(asked) <= len(pages) + _IMAGES + 20  # a thumbnail for each photo


def test_a_merge_is_shown_before_the_service_answers(large_visits: Visits, large: str) -> None:
    with TemiClient(large) as client:
        sizes = sorted((cluster.size for cluster in client.clusters(CLUSTERING)), reverse=True)
    large_visits.allow("status of 409")  # these rows have no features: no group is similar
    page = large_visits.open(f"#/clusterings/{CLUSTERING}")
    cards = page.get_by_role("gridcell")
    for place in (0, 1):  # the largest are first
        cards.nth(place).locator(".photos").click()
    page.get_by_role("button", name="Merge 2 selected").click()
    confirm = page.get_by_role("button", name=re.compile("^Merge 2 groups"))
    expect(confirm).to_be_enabled()
    page.wait_for_load_state("networkidle")
    sent: list[Request] = []
    held: list[Route] = []
    page.on("request", lambda request: sent.append(request))
    page.route("**/operations", lambda route: held.append(route))
    confirm.click()
    total = f"{sizes[0] + sizes[1]:,} photos"
    expect(cards.first).to_contain_text(total)
    wait_until(lambda: held, "the merge is sent", pause=0.1)
    with page.expect_response("**/operations"):
        held[0].continue_()
    expect(cards.first).to_contain_text(total)
    edits = [request for request in sent if request.method == "POST"]
    assert len(edits) == 1
    body = edits[0].post_data or ""
    assert '"merge"' in body
    assert len(body) < 500  # groups, no photos
    assert not [request for request in sent if "/images?" in request.url]


def test_the_scripts_are_small() -> None:
    build_page()
    without_map, of_map = script_bytes()
    assert without_map < 250_000
    assert of_map > 0
    assert without_map + of_map < 400_000
