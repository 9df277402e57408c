"""Every page, light and dark: axe finds nothing, and it fits a narrow screen."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from temi_client import TemiClient
from tests.web.browser import Visits, violations
from tests.web.conftest import Made

_NARROW = {"width": 390, "height": 844}
# The content scrolls in itself, so that the document does not show it.
_OVERFLOW = """() => Math.max(...[document.documentElement, document.getElementById("main")]
  .map((part) => part.scrollWidth - part.clientWidth))"""
Scheme = Literal["light", "dark"]


@dataclass(frozen=True)
class View:
    """An address, and a role and name that show that it is complete."""

    path: str
    role: str
    name: str

    def address(self, made: Made) -> str:
        return "#" + self.path.format(
            clustering=f"/clusterings/{made.clustering_id}",
            dataset=f"/datasets/{made.dataset_id}",
            job=made.job_id,
            model=made.model,
        )


VIEWS = {
    "home": View("/", "heading", "Datasets"),
    "dataset": View("{dataset}", "option", "jpg"),
    "duplicates": View("{dataset}?tab=duplicates", "heading", "drawings"),
    "problems": View("{dataset}?tab=problems", "heading", "drawings"),
    "clusterings": View("{dataset}?tab=clusterings", "link", "6 groups"),
    "new clustering": View("{dataset}?new=1", "dialog", ""),
    "job": View("/jobs/{job}", "link", "Open the groups"),
    "groups": View("{clustering}", "gridcell", ""),
    "groups in sections": View("{clustering}?groups=3", "rowheader", ""),
    "group": View("{clustering}/groups/0", "option", "jpg"),
    "excluded": View("{clustering}/excluded", "heading", "xcluded"),
    "compare": View("{clustering}/compare?a=0&b=1", "option", "jpg"),
    "review": View("{clustering}/review", "heading", "Does this photo belong to"),
    "search": View("{clustering}/search", "heading", "Search"),
    "changes": View("{clustering}/changes", "button", "Adopt"),
    "map": View("{clustering}/map", "application", "Map of"),
    "history": View("{clustering}/history", "heading", "History"),
    "export": View("{clustering}/export", "button", "Export"),
    "model": View("/models/{model}", "heading", "Try it"),
    "settings": View("/settings", "heading", "Workers"),
    "unknown": View("/nowhere", "heading", ""),
}


@pytest.fixture(scope="module")
def complete(api: TemiClient, made: Made) -> Iterator[Made]:
    """With a map, a change in the history, and another clustering to compare with."""
    api.wait(api.map(made.dataset_id).id)
    other = api.wait(api.predict_dataset(made.model, made.dataset_id, extend=False).id).result
    assert other is not None
    api.rename_cluster(made.clustering_id, 5, "A name")
    yield made
    api.undo(made.clustering_id)
    api.delete_clustering(other["clustering_id"])


def open_view(visits: Visits, made: Made, name: str, **options: object) -> Page:
    view = VIEWS[name]
    page = visits.open(view.address(made), **options)
    expect(page.get_by_role(view.role, name=re.compile(view.name)).first).to_be_visible()  # type: ignore[arg-type]
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing(visits: Visits, complete: Made, name: str, scheme: Scheme) -> None:
    page = open_view(visits, complete, name, color_scheme=scheme)
    assert violations(page) == []


@pytest.mark.parametrize("name", VIEWS)
def test_it_fits_a_narrow_screen(visits: Visits, complete: Made, name: str) -> None:
    page = open_view(visits, complete, name, viewport=_NARROW)
    assert page.evaluate(_OVERFLOW) == 0
    assert violations(page) == []
