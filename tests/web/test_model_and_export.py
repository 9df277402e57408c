"""What comes of a clustering: a model that labels new photos, and files for other programs."""

import csv
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from temi_client import TemiClient
from tests.built_page import WEB
from tests.web.browser import Visits
from tests.web.conftest import Made

_NEW = WEB.parent / "demo" / "held_back.zip"


@pytest.fixture(scope="module")
def new_photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("new")
    with zipfile.ZipFile(_NEW) as archive:
        names = [name for name in archive.namelist() if name.endswith(".jpg")][:2]
        return [Path(archive.extract(name, folder)) for name in names]


def test_new_photos_are_predicted(
    visits: Visits, api: TemiClient, made: Made, new_photos: list[Path]
) -> None:
    page = visits.open(f"#/models/{made.model}")
    page.locator("input[type=file]").set_input_files(new_photos)
    results = page.get_by_role("list", name="Predictions").get_by_role("article")
    expect(results).to_have_count(2)
    expected = api.predict(made.model, new_photos).data
    for path, prediction in zip(new_photos, expected, strict=True):
        assert prediction.label is not None
        result = results.filter(has_text=path.name)
        expect(result.locator("strong")).to_have_text(prediction.label)
        expect(result.get_by_text("Nearest photos of the training")).to_be_visible()


def test_foreign_photos_are_refused(visits: Visits, made: Made, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (128, 128, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    page = visits.open(f"#/models/{made.model}")
    page.get_by_label("Refuse foreign photos").select_option("0.01")
    page.locator("input[type=file]").set_input_files(tmp_path / "noise.png")
    expect(page.get_by_role("article", name="noise.png").locator("strong")).to_have_text(
        "none of these"
    )
    page.get_by_text("The same from a program").click()
    expect(page.get_by_label("Call", exact=True)).to_contain_text("false_alarm_rate=0.01")


def test_a_file_that_is_no_photo_has_a_reason(visits: Visits, made: Made, tmp_path: Path) -> None:
    (tmp_path / "notes.jpg").write_text("no photo")
    page = visits.open(f"#/models/{made.model}")
    page.locator("input[type=file]").set_input_files(tmp_path / "notes.jpg")
    expect(page.get_by_role("article", name="notes.jpg")).to_contain_text("image")


def test_the_call_of_a_program_is_shown(visits: Visits, made: Made) -> None:
    page = visits.open(f"#/models/{made.model}")
    page.get_by_text("The same from a program").click()
    expect(page.get_by_label("Call", exact=True)).to_contain_text(
        f"/v1/models/{made.model}:predict"
    )
    page.get_by_role("button", name="Python").click()
    expect(page.get_by_label("Call", exact=True)).to_contain_text("import httpx")


def test_the_page_says_how_far_a_model_can_be_trusted(visits: Visits, made: Made) -> None:
    page = visits.open(f"#/models/{made.model}")
    trust = page.get_by_role("region", name="Trust")
    expect(trust).to_contain_text("No photo of its groups is reviewed yet")
    expect(trust.get_by_role("button", name="Calibrate by reviews")).to_be_disabled()
    expect(trust).to_contain_text("Too few photos for a verdict")
    trust.get_by_role("link", name="Review its groups").click()
    expect(page.get_by_role("heading", name="Does this photo belong to")).to_be_visible()


def test_a_version_is_as_sure_as_its_groups(visits: Visits, api: TemiClient, made: Made) -> None:
    page = visits.open(f"#/models/{made.model}")
    expect(page).to_have_title(f"{made.model} · Model · TEMI")
    mean = api.clustering(made.clustering_id).metrics["mean_probability"]
    expect(page.get_by_role("region", name="Versions")).to_contain_text(
        f"Confidence{100 * mean:.1f} %"
    )


def test_an_alias_is_moved(visits: Visits, api: TemiClient, made: Made) -> None:
    page = visits.open(f"#/models/{made.model}")
    page.get_by_label("Name of the alias").fill("production")
    page.get_by_role("button", name="Add the alias").click()
    expect(page.get_by_label("Version of production")).to_be_visible()
    assert api.model(made.model).aliases["production"] == 1
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Version of production")).to_be_hidden()
    assert "production" not in api.model(made.model).aliases


def test_an_export_has_what_was_counted(visits: Visits, api: TemiClient, edited: Made) -> None:
    renamed = api.get_cluster(edited.clustering_id, 0)
    api.rename_cluster(edited.clustering_id, 0, "Birds")
    page = visits.open(edited.view("/export"))
    page.get_by_role("radio", name="Named groups (1)").check()
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Export {renamed.size} photos").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == renamed.size
    assert {row["label"] for row in rows} == {"Birds"}
    table = page.get_by_role("region", name="Earlier exports").get_by_role("row")
    expect(table.filter(has_text=download.value.suggested_filename)).to_be_visible()
