"""Takes the screenshots of the workbench in docs/, from a real clustering of the demo's drawings.

python -m tests.web.screenshots
"""

import io
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from PIL import Image
from playwright.sync_api import Browser, Page

from temi_client import Job, TemiClient
from tests.built_page import WEB
from tests.e2e.conftest import running
from tests.waiting import wait_until
from tests.web.browser import Visits, chromium

_ROOT = WEB.parent
_DEMO = _ROOT / "demo"
_TARGET = _ROOT / "docs" / "images" / "workbench"
_MODEL = "drawings"
_TRAINING: dict[str, Any] = {"model_name": _MODEL, "n_heads": 8, "steps": 250}
_UNNAMED = 3  # groups that have no name yet
# Photos below the window are loaded when they are scrolled to.
_SETTLED = """() => [...document.images].every((image) =>
  image.complete || image.getBoundingClientRect().top > innerHeight || !image.checkVisibility())"""
_MAP_DRAWN = "performance.getEntriesByName('map-drawn').length > 0"
Scheme = Literal["light", "dark"]
Act = Callable[[Page], None]


def main() -> None:
    _TARGET.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder) / "data", TEMI_TORCH_THREADS="2") as service,
        service.client() as api,
        chromium() as browser,
    ):
        views = _views(*_make(api), _new_photos(Path(folder)))
        take_all(browser, service.url, views)


def take_all(browser: Browser, url: str, views: dict[str, tuple[str, Act]]) -> None:
    schemes: tuple[Scheme, ...] = ("light", "dark")
    for scheme in schemes:
        for name, (view, act) in views.items():
            _shoot(browser, url, view, act, _TARGET / f"{name}-{scheme}.webp", scheme)


def _make(api: TemiClient) -> tuple[str, Job, Job]:
    """A dataset with two versions of a model, a map and edits; the job of the newer version."""
    archive = _DEMO / "clipart.zip"
    read = api.wait(api.upload_dataset(archive, name="drawings", labels_from="folder").id)
    assert read.dataset_id is not None
    found = api.wait(api.cluster(read.dataset_id, "auto", seed=1, **_TRAINING).id)
    job = api.wait(api.cluster(read.dataset_id, 12, seed=0, **_TRAINING).id)
    api.wait(api.map(read.dataset_id).id)
    api.set_current_clustering(read.dataset_id, _clustering(job))
    api.set_alias(_MODEL, "production", 1)
    _edit(api, _clustering(job))
    return read.dataset_id, job, found


def _views(
    dataset_id: str, job: Job, found: Job, new_photos: list[Path]
) -> dict[str, tuple[str, Act]]:
    """The address of each page, and what is done there before its picture is taken."""
    clustering = f"#/clusterings/{_clustering(job)}"
    group = f"{clustering}/groups/0"
    return {
        "home": ("#/", _nothing),
        "dataset": (f"#/datasets/{dataset_id}", _nothing),
        "clusterings": (f"#/datasets/{dataset_id}?tab=clusterings", _nothing),
        "job": (f"#/jobs/{job.id}", _nothing),
        "count": (f"#/jobs/{found.id}", _nothing),
        "groups": (clustering, _nothing),
        "coarser": (f"{clustering}?groups=4", _nothing),
        "merge": (clustering, lambda page: page.keyboard.press("m")),
        "group": (group, _select),
        "split": (group, _split),
        "photo": (group, _open_photo),
        "excluded": (f"{clustering}/excluded", _nothing),
        "search": (f"{clustering}/search", lambda page: _find(page, new_photos[0])),
        "compare": (f"{clustering}/compare?a=0", _nothing),
        "review": (f"{clustering}/review", _nothing),
        "map": (f"{clustering}/map", _draw_lasso),
        "history": (f"{clustering}/history", _nothing),
        "export": (f"{clustering}/export", _nothing),
        "model": (f"#/models/{_MODEL}", lambda page: _predict(page, new_photos)),
        "settings": ("#/settings", _nothing),
    }


def _clustering(job: Job) -> str:
    assert job.result is not None
    return str(job.result["clustering_id"])


def _edit(api: TemiClient, clustering: str) -> None:
    """Names most groups after the class that most of their drawings have, as a person would."""
    clusters = sorted(api.clusters(clustering), key=lambda cluster: -cluster.size)
    used: Counter[str] = Counter()
    for cluster in clusters[:-_UNNAMED]:
        rows = api.assignments(clustering, cluster.cluster_id)
        (name, _), *_ = Counter(row.name.split("/")[0] for row in rows).most_common(1)
        used[name] += 1
        label = name if used[name] == 1 else f"{name}, other"
        api.rename_cluster(clustering, cluster.cluster_id, label)
    outliers = api.cluster_images(clustering, clusters[0].cluster_id, sort="outlier")
    ids = [row.image_id for row in islice(outliers, 8)]
    api.move_images(clustering, ids[:3], cluster_id=clusters[1].cluster_id)
    api.exclude_images(clustering, ids[3:])


def _new_photos(folder: Path) -> list[Path]:
    with zipfile.ZipFile(_DEMO / "held_back.zip") as archive:
        names = [name for name in archive.namelist() if name.endswith(".jpg")]
        return [Path(archive.extract(name, folder)) for name in names[::8][:4]]


def _nothing(_: Page) -> None:
    pass


def _find(page: Page, photo: Path) -> None:
    page.get_by_label("Photo to look for").set_input_files(photo)
    page.get_by_role("option").first.wait_for()


def _select(page: Page) -> None:
    photos = page.get_by_role("listbox").get_by_role("option")
    photos.nth(1).click()
    photos.nth(4).click(modifiers=["Shift"])


def _split(page: Page) -> None:
    page.keyboard.press("s")
    page.get_by_role("dialog").get_by_role("checkbox").first.wait_for()


def _open_photo(page: Page) -> None:
    page.keyboard.press("Enter")
    page.get_by_role("button", name=re.compile("^Open .* similar$")).nth(7).wait_for()


def _draw_lasso(page: Page) -> None:
    wait_until(lambda: page.evaluate(_MAP_DRAWN), "the map is drawn", pause=0.1)
    page.get_by_role("button", name="Lasso").click()
    box = page.get_by_role("application").bounding_box()
    assert box is not None
    corners = [(0.55, 0.2), (0.85, 0.25), (0.9, 0.6), (0.7, 0.7), (0.5, 0.45), (0.55, 0.2)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=6)
    page.mouse.up()
    page.get_by_role("region", name="Selection").wait_for()


def _predict(page: Page, photos: list[Path]) -> None:
    page.locator("input[type=file]").set_input_files(photos)
    page.get_by_role("list", name="Predictions").wait_for()


def _shoot(browser: Browser, url: str, view: str, act: Act, target: Path, scheme: Scheme) -> None:
    visits = Visits(browser, url)
    page = visits.open(view, color_scheme=scheme)
    _wait_until_settled(page)
    act(page)
    _wait_until_settled(page)
    picture = Image.open(io.BytesIO(page.screenshot(animations="disabled")))
    picture.save(target, "WEBP", quality=80, method=6)
    visits.close()
    print(f"{target.relative_to(_ROOT)} {target.stat().st_size // 1000} kB")


def _wait_until_settled(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    wait_until(lambda: page.evaluate(_SETTLED), "the page is complete", pause=0.1)


if __name__ == "__main__":
    main()
