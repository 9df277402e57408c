"""Two people who edit one clustering: no edit overwrites what its author has not seen."""

import json
import stat
from pathlib import Path

import pytest

from app.core.access.keys import create_key
from temi_client import ApiError, Clustering
from tests.cli.conftest import Temi
from tests.client.live import Live
from tests.waiting import wait_until


@pytest.fixture
def clustering(live: Live) -> Clustering:
    with live.client() as client:
        return next(client.clusterings())


def _another_person_renames(live: Live, clustering: Clustering, label: str) -> None:
    with live.client() as client:
        client.rename_cluster(clustering.id, 1, label)


def test_an_edit_needs_a_look_at_the_clustering(temi: Temi, clustering: Clustering) -> None:
    refused = temi("clusterings", "rename", clustering.id, 0, "cats", exit_code=2)
    assert f"temi clusterings clusters {clustering.id}" in " ".join(refused.stderr.split())
    temi("clusterings", "clusters", clustering.id)
    renamed = temi("clusterings", "rename", clustering.id, 0, "cats")
    assert "Cluster 0 is now 'cats'; revision 2" in renamed.stderr
    temi("clusterings", "rename", clustering.id, 0, "dogs")  # after one's own edit


@pytest.mark.parametrize(
    "look", ["show", "clusters", "operations", "cluster", "images", "assignments"]
)
def test_every_look_counts(temi: Temi, clustering: Clustering, look: str) -> None:
    cluster = ["0"] if look in ("cluster", "images") else []
    temi("clusterings", look, clustering.id, *cluster)
    temi("clusterings", "rename", clustering.id, 0, "cats")


def test_a_conflict_shows_what_has_changed(temi: Temi, live: Live, clustering: Clustering) -> None:
    temi("clusterings", "clusters", clustering.id)
    _another_person_renames(live, clustering, "birds")
    words = ("clusterings", "merge", clustering.id, 0, 1, "--label", "my pets")
    refused = temi(*words, exit_code=1)
    assert "is at revision 2, and you saw 1" in refused.stderr
    assert "revision 2: rename cluster_id 1, label birds" in refused.stderr
    again = f"temi clusterings merge {clustering.id} 0 1 --label 'my pets'"
    assert f"Then run it again: {again}\n" in refused.stderr
    with live.client() as client:
        assert client.clustering(clustering.id).revision == 2
    temi(*words)  # the user has seen the change


def test_a_look_at_a_part_does_not_hide_a_conflict(
    temi: Temi, live: Live, clustering: Clustering
) -> None:
    temi("clusterings", "clusters", clustering.id)
    _another_person_renames(live, clustering, "birds")
    temi("clusterings", "images", clustering.id, 0)
    temi("clusterings", "undo", clustering.id, exit_code=1)


def test_a_given_revision_counts(temi: Temi, live: Live, clustering: Clustering) -> None:
    _another_person_renames(live, clustering, "birds")
    refused = temi("clusterings", "undo", clustering.id, "--revision", 1, exit_code=1)
    assert f"Then run it again: temi clusterings undo {clustering.id}\n" in refused.stderr
    temi("clusterings", "undo", clustering.id, "--revision", 2)


def _needs_a_key(live: Live) -> bool:
    with live.client() as client:
        try:
            next(client.clusterings())
        except ApiError:
            return True
        return False


def test_a_conflict_names_the_other_person(live: Live, temi: Temi, clustering: Clustering) -> None:
    temi("clusterings", "clusters", clustering.id)
    with live.runtime.db.write() as session:
        scopes = ["read", "write"]
        _, anna = create_key(session, tenant="default", name="anna", scopes=scopes)
        _, ben = create_key(session, tenant="default", name="ben", scopes=scopes)
    wait_until(lambda: _needs_a_key(live), "the service knows that there are keys")
    with live.client(api_key=anna) as client:
        client.rename_cluster(clustering.id, 1, "birds")
    words = ("clusterings", "rename", clustering.id, 1, "fish")
    refused = temi("--api-key", ben, *words, exit_code=1)
    assert "by anna" in refused.stderr
    assert ben not in refused.stderr
    shown = temi("--api-key", ben, "clusterings", "operations", clustering.id)
    assert "\tanna\t" in shown.stdout


def test_the_state_file(temi: Temi, clustering: Clustering, state_home: Path) -> None:
    temi("clusterings", "show", clustering.id)
    file = state_home / "temi" / "revisions.json"
    assert json.loads(file.read_text()) == {clustering.id: 1}
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]
    assert not stat.S_IMODE(file.stat().st_mode) & 0o111
    file.write_text("damaged")
    temi("clusterings", "rename", clustering.id, 0, "cats", exit_code=2)
    temi("clusterings", "show", clustering.id)
    temi("clusterings", "rename", clustering.id, 0, "cats")
