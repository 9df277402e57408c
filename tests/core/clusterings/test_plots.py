"""Plots are drawn without the database, also by several threads at the same time."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.core.clusterings.operations import Exclude, Merge
from app.core.clusterings.plots import load_plot, render
from app.core.clusterings.rows import get_clustering
from app.core.platform.errors import NotFound
from app.core.platform.tables import Image
from app.core.runtime import Runtime
from tests.core.clustering_rows import TENANT, Stored, edit, store


def load(runtime: Runtime, stored: Stored, name: str) -> bytes:
    with runtime.db.read() as session:
        clustering = get_clustering(session, TENANT, stored.clustering_id)
        drawing = load_plot(session, clustering, name)
    return render(drawing, "png")


def test_threads_do_not_disturb_each_other(runtime: Runtime) -> None:
    stored = store(runtime, [0, 0, 1])
    names = ["sizes", "probabilities"]
    alone = {name: load(runtime, stored, name) for name in names}
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda name: load(runtime, stored, name), names * 4))
    assert drawn == [alone[name] for name in names] * 4


def test_a_plot_shows_the_clustering_as_it_is_now(runtime: Runtime) -> None:
    stored = store(runtime, [0, 0, 1])
    before = load(runtime, stored, "sizes")
    edit(runtime, stored, Merge(cluster_ids=[0, 1]))
    assert load(runtime, stored, "sizes") != before


def test_excluded_images_are_not_in_the_confusion_matrix(any_runtime: Runtime) -> None:
    stored = store(any_runtime, [0, 1])
    with any_runtime.db.write() as session:
        session.get_one(Image, stored.images[0]).label = "cat"
    assert load(any_runtime, stored, "confusion").startswith(b"\x89PNG")
    edit(any_runtime, stored, Exclude(image_ids=stored.images[:1]))
    with pytest.raises(NotFound):
        load(any_runtime, stored, "confusion")
