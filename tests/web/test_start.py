"""Uploads by a browser: from nothing to groups, bad files, an interrupted upload."""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from temi_client import TemiClient
from tests.e2e.conftest import Service, running
from tests.waiting import wait_until
from tests.web.browser import Visits, violations
from tests.web.conftest import write_drawings


@pytest.fixture(scope="module")
def empty_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("empty") / "data") as found:
        yield found


@pytest.fixture(scope="module")
def datasets(empty_service: Service) -> Iterator[TemiClient]:
    with empty_service.client() as client:
        yield client


@pytest.fixture
def start(browser: Browser, empty_service: Service) -> Iterator[Visits]:
    visits = Visits(browser, empty_service.url)
    yield visits
    visits.close()


def test_from_nothing_to_groups(start: Visits, datasets: TemiClient, tmp_path: Path) -> None:
    write_drawings(tmp_path / "holiday", classes=2, of_each=4)
    page = start.open()
    expect(page.get_by_role("heading", name="Sort your photos into groups")).to_be_visible()
    assert violations(page) == []

    page.get_by_label("Folder", exact=True).set_input_files(tmp_path / "holiday")
    expect(page.get_by_label("Name", exact=True)).to_have_value("holiday")
    page.get_by_role("button", name="Upload and make groups").click()

    page.wait_for_url(re.compile(r"#/jobs/job_"))  # the page follows to the clustering
    (dataset,) = datasets.datasets()
    assert (dataset.name, dataset.image_count) == ("holiday", 8)
    (job,) = (job for job in datasets.jobs() if job.kind == "cluster")
    assert page.url.endswith(job.id)
    assert job.dataset_id == dataset.id
    datasets.wait(job.id)
    # It was not given, and eight photos are too few to find it.
    expect(page.get_by_role("heading", name="Number of groups")).to_be_visible()
    page.get_by_role("link", name="Open the groups").click()
    expect(page.get_by_role("gridcell")).to_have_count(2)


def test_the_uploaded_dataset_is_the_one_that_is_clustered(
    start: Visits, datasets: TemiClient, tmp_path: Path
) -> None:
    """Also if there are others, older and newer ones."""
    archive = tmp_path / "second.zip"
    write_drawings(tmp_path / "files", classes=2, of_each=5)
    with zipfile.ZipFile(archive, "w") as file:
        for path in (tmp_path / "files").rglob("*.jpg"):
            file.write(path, path.relative_to(tmp_path / "files"))
    page = start.open()
    page.get_by_label("Photos or archive").set_input_files(archive)
    page.get_by_label("Name", exact=True).fill("second set")
    page.get_by_label("Number of groups").fill("2")
    page.get_by_role("button", name="Upload and make groups").click()
    page.wait_for_url(re.compile(r"#/jobs/job_"))
    job = datasets.job(page.url.rsplit("/", 1)[1])
    assert job.dataset_id is not None
    dataset = datasets.dataset(job.dataset_id)
    assert (dataset.name, dataset.image_count) == ("second set", 10)
    datasets.cancel(job.id)


def test_files_that_are_no_photos_are_listed_with_reasons(
    start: Visits, datasets: TemiClient, tmp_path: Path
) -> None:
    write_drawings(tmp_path / "mixed", classes=1, of_each=4)
    (tmp_path / "mixed" / "broken.jpg").write_bytes(b"\xff\xd8 not a photo")
    page = start.open()
    page.get_by_label("Folder", exact=True).set_input_files(tmp_path / "mixed")
    page.get_by_role("button", name="Only upload").click()
    page.get_by_role("link", name="1 file not read").click()
    expect(page.get_by_role("row").filter(has_text="broken.jpg")).to_be_visible()


def test_an_upload_without_photos_says_what_is_wrong(start: Visits, tmp_path: Path) -> None:
    start.allow("status of 422")
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 this is no archive")
    page = start.open()
    page.get_by_label("Photos or archive").set_input_files(tmp_path / "bad.zip")
    page.get_by_label("Name", exact=True).fill("bad one")
    page.get_by_role("button", name="Upload and make groups").click()
    card = page.get_by_role("region", name="Uploads").get_by_role("article", name="bad one")
    expect(card.get_by_role("alert")).to_contain_text(re.compile("zip|archive"))
    expect(card.get_by_role("button", name="Try again")).to_be_visible()


def test_an_interrupted_upload_goes_on(start: Visits, datasets: TemiClient, tmp_path: Path) -> None:
    """The network fails after the first bytes; after a reload the same files are chosen again."""
    start.allow("ERR_FAILED", "ERR_INTERNET_DISCONNECTED")
    write_drawings(tmp_path / "resumed", classes=2, of_each=8)
    page = start.open()
    cut = re.compile("/v1/uploads/")
    page.route(
        cut, lambda route: route.abort() if route.request.method == "PATCH" else route.continue_()
    )
    page.get_by_label("Folder", exact=True).set_input_files(tmp_path / "resumed")
    page.get_by_role("button", name="Only upload").click()
    card = page.get_by_role("region", name="Uploads").get_by_role("article", name="resumed")
    expect(card).to_contain_text("The service cannot be reached; trying again")
    page.unroute(cut)
    page.on("dialog", lambda dialog: dialog.accept())  # leave the page although it uploads
    page.reload()
    card = page.get_by_role("region", name="Uploads").get_by_role("article", name="resumed")
    expect(card).to_contain_text("Interrupted")
    page.get_by_label("Folder", exact=True).set_input_files(tmp_path / "resumed")

    def read() -> bool:
        found = [d for d in datasets.datasets() if d.name == "resumed"]
        return bool(found) and (found[0].status, found[0].image_count) == ("ready", 16)

    wait_until(read, "the photos are read", pause=0.3)
    expect(card).to_contain_text("Done.")


def test_photos_are_deleted_and_the_deletion_is_undone(start: Visits, datasets: TemiClient) -> None:
    dataset = next(d for d in datasets.datasets() if d.name == "holiday")
    page = start.open(f"#/datasets/{dataset.id}")
    photos = page.get_by_role("listbox").get_by_role("option")
    photos.first.click()
    page.keyboard.press("Delete")
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    assert datasets.dataset(dataset.id).image_count == dataset.image_count
