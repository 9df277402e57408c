"""`temi clusterings changes` and `adopt`: names for a new clustering of a dataset."""

import pytest

from tests.api.conftest import store_clustering
from tests.cli.conftest import Temi, as_json
from tests.client.live import Live


@pytest.fixture
def old(live: Live) -> str:
    """The current one, with a name; images 0 and 2 are in it, 1 and 3 in cluster 1."""
    with live.client() as client:
        clustering = next(client.clusterings())
        client.rename_cluster(clustering.id, 0, "cats")
    return clustering.id


@pytest.fixture
def new(live: Live, old: str) -> str:
    """All images are in cluster 0."""
    with live.client() as client:
        dataset_id = client.clustering(old).dataset_id
    return store_clustering(live.runtime, dataset_id, one_in=1)


def test_the_changes_are_shown_before_they_are_adopted(
    temi: Temi, live: Live, old: str, new: str
) -> None:
    refused = temi("clusterings", "adopt", new, exit_code=2)
    assert f"temi clusterings changes {new}" in " ".join(refused.stderr.split())
    shown = temi("clusterings", "changes", new)
    assert "merged with 1" in shown.stdout
    assert f"temi clusterings adopt {new} --since {old}" in shown.stderr
    done = temi("clusterings", "adopt", new, "--reject", 1, "--use", "--alias", "live")
    assert "revision 2" in done.stderr
    with live.client() as client:
        assert next((c.label, c.size) for c in client.clusters(new)) == ("cats", 2)
        dataset = client.dataset(client.clustering(new).dataset_id)
        assert dataset.current_clustering_id == new
        assert client.model("cats-dogs").aliases["live"] == 2
    temi("clusterings", "undo", new)


def test_json_and_bad_arguments(temi: Temi, live: Live, old: str, new: str) -> None:
    found = as_json(temi("clusterings", "changes", new, "--since", old, "--json"))
    assert [group["label"] for group in found["groups"]][:1] == ["cats"]
    twice = ("--approve", 0, "--reject", 0)
    assert "in --approve and in --reject" in temi(
        "clusterings", "adopt", new, *twice, exit_code=2
    ).stderr.replace("\n", " ")
    temi("clusterings", "changes", old, exit_code=2)  # it is the current one itself
    with live.client() as client:
        client.rename_cluster(old, 0, "dogs")
    stale = temi("clusterings", "adopt", new, exit_code=1)
    assert f"The clustering {old} is at revision 3 now" in stale.stderr
    done = temi("clusterings", "changes", new)
    assert "dogs" in done.stdout
    approved = as_json(temi("clusterings", "adopt", new, "--approve", 1, "--json"))
    assert approved["arguments"]["ended"] == [1, 2]
