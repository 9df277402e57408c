"""The service is restarted, the network is lost, a key is needed: the page goes on by itself."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from temi_client import TemiClient
from tests.e2e.conftest import Service, running, wait_until_ready
from tests.waiting import wait_for_ends, wait_until
from tests.web.browser import Visits, violations
from tests.web.conftest import Made, write_drawings

_KEY = "a-key-of-the-tests-that-is-long-enough"
_LOST = "The service does not answer"


def rename(page: Page, label: str, name: str) -> None:
    field = page.get_by_role("combobox", name=f"Name of {label}", exact=True)
    field.fill(name)
    field.press("Enter")


def wait_for_name(api: TemiClient, made: Made, name: str) -> None:
    def saved() -> bool:
        return name in {cluster.label for cluster in api.clusters(made.clustering_id)}

    wait_until(saved, f"{name} is saved", pause=0.2)


@contextmanager
def api_down(service: Service) -> Iterator[None]:
    """The API is dead; its supervisor, which would start it again, is stopped."""
    supervisor, api = psutil.Process(service.process.pid), service.api()
    supervisor.suspend()
    try:
        api.kill()
        wait_for_ends([api])
        yield
    finally:
        supervisor.resume()
        wait_until_ready(service)


def test_an_edit_during_a_restart_of_the_api_is_saved(
    visits: Visits, service: Service, api: TemiClient, edited: Made
) -> None:
    visits.allow("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")
    visits.allow("ERR_CONTENT_LENGTH_MISMATCH", "ERR_INCOMPLETE_CHUNKED_ENCODING")
    page = visits.open(edited.view())
    expect(page.get_by_role("gridcell")).to_have_count(6)
    with api_down(service):
        expect(page.get_by_role("alert").filter(has_text=_LOST)).to_be_visible()
        rename(page, "cluster 0", "While it was down")
        expect(page.get_by_role("combobox", name="Name of While it was down")).to_be_visible()
        expect(page.get_by_text("Saving 1 change")).to_be_visible()
    expect(page.get_by_text("Saving 1 change")).to_be_hidden()
    expect(page.get_by_role("alert").filter(has_text=_LOST)).to_be_hidden()
    wait_for_name(api, edited, "While it was down")


def test_an_edit_survives_a_reload(visits: Visits, api: TemiClient, edited: Made) -> None:
    visits.allow("ERR_FAILED")
    page = visits.open(edited.view())
    operations = re.compile("/operations$")
    page.route(operations, lambda route: route.abort())
    rename(page, "cluster 1", "Kept by the browser")
    expect(page.get_by_text("Saving 1 change")).to_be_visible()
    page.unroute(operations)
    page.reload()
    wait_for_name(api, edited, "Kept by the browser")


def test_an_edit_without_a_network_is_saved_later(
    visits: Visits, api: TemiClient, edited: Made
) -> None:
    visits.allow("ERR_INTERNET_DISCONNECTED")
    page = visits.open(edited.view())
    expect(page.get_by_role("gridcell")).to_have_count(6)
    page.context.set_offline(True)
    rename(page, "cluster 2", "Without a network")
    expect(page.get_by_role("alert").filter(has_text=_LOST)).to_be_visible()
    page.context.set_offline(False)
    wait_for_name(api, edited, "Without a network")
    expect(page.get_by_role("alert").filter(has_text=_LOST)).to_be_hidden()


@pytest.fixture
def with_key(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visits]:
    with running(tmp_path_factory.mktemp("key") / "data", TEMI_API_KEY=_KEY) as service:
        visits = Visits(browser, service.url)
        yield visits
        visits.close()


def test_a_key_is_asked_for(with_key: Visits, tmp_path: Path) -> None:
    with_key.allow("status of 401")
    page = with_key.open()
    dialog = page.get_by_role("dialog", name="This service needs an API key")
    expect(dialog).to_be_visible()
    assert violations(page) == []
    dialog.get_by_label("API key").fill("not-the-key")
    dialog.get_by_role("button", name="Use this key").click()
    expect(dialog).to_contain_text("The key of this tab was refused")
    dialog.get_by_label("API key").fill(_KEY)
    dialog.get_by_role("button", name="Use this key").click()
    expect(page.get_by_role("heading", name="Sort your photos into groups")).to_be_visible()
    expect(dialog).to_be_hidden()

    # Uploads, job events and pictures carry the key, too.
    write_drawings(tmp_path / "private", classes=1, of_each=4)
    page.get_by_label("Folder", exact=True).set_input_files(tmp_path / "private")
    page.get_by_role("button", name="Only upload").click()
    page.get_by_role("link", name="private", exact=True).first.click()
    photo = page.get_by_role("option").locator("img").first
    expect(photo).to_have_js_property("complete", True)
    wait_until(lambda: photo.evaluate("image => image.naturalWidth") > 0, "it is shown", pause=0.1)
