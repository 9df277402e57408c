"""`temi models` against the real API."""

from pathlib import Path

import pytest

from app.core.models import calibrations
from tests.api.conftest import store_clustering
from tests.cli.conftest import Temi, as_json
from tests.client.live import Live
from tests.reviews import add_reviews


@pytest.fixture
def second(live: Live) -> None:
    """Another version, of two clusters."""
    with live.client() as client:
        dataset = next(client.datasets())
    store_clustering(live.runtime, dataset.id, n_clusters=2)


def test_aliases(temi: Temi) -> None:
    aliases = as_json(temi("models", "alias", "cats-dogs", "production", 1, "--json"))["aliases"]
    assert aliases["production"] == 1
    assert "production" in temi("models", "show", "cats-dogs").stdout
    temi("models", "unalias", "cats-dogs", "production")
    assert "production" not in temi("models").stdout


@pytest.mark.usefixtures("second")
def test_alias_rollback(temi: Temi) -> None:
    for version in (1, 2):
        temi("models", "alias", "cats-dogs", "live", version)
    assert as_json(temi("models", "rollback", "cats-dogs", "live", "--json"))["aliases"] == {
        "latest": 2,
        "live": 1,
    }
    refused = temi("models", "rollback", "cats-dogs", "live", exit_code=1)
    assert "nothing_to_roll_back" in refused.stderr
    moves = as_json(temi("models", "history", "cats-dogs", "live", "--json"))
    assert [move["kind"] for move in moves] == ["rollback", "set", "set"]
    assert "rollback" in temi("models", "history", "cats-dogs", "live").stdout


@pytest.mark.usefixtures("second")
def test_compare_versions(temi: Temi) -> None:
    shown = temi("models", "compare", "cats-dogs", 1, 2).stdout
    assert "cats-dogs: versions 1 and 2 on 4 images" in shown
    assert "100.0 %" in shown
    assert "config.n_clusters" in shown
    assert "Largest movements" not in shown
    found = as_json(temi("models", "compare", "cats-dogs", 1, 2, "--json"))
    assert found["assignments"]["adjusted_rand_index"] == 1.0
    temi("models", "compare", "cats-dogs", 1, 3, exit_code=1)


@pytest.mark.usefixtures("second")
def test_compare_shows_movements(temi: Temi, live: Live) -> None:
    with live.client() as client:
        name = next(client.datasets()).id
    store_clustering(live.runtime, name, one_in=4)
    shown = temi("models", "compare", "cats-dogs", 1, 3).stdout
    assert "Largest movements" in shown
    assert "25.0 %" in shown


def test_calibration(
    temi: Temi, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrations, "MIN_REVIEWS", 4)
    assert "no image of its clusterings is reviewed" in (
        temi("models", "calibration", "cats-dogs", 1).stderr
    )
    assert "too_few_reviews" in temi("models", "calibrate", "cats-dogs", 1, exit_code=1).stderr
    with live.client() as client:
        clustering = next(client.clusterings())
    add_reviews(live.runtime, clustering.id, lambda rank: rank < 2)
    fitted = as_json(temi("models", "calibrate", "cats-dogs", 1, "--json"))
    assert (fitted["number"], fitted["reviews"]) == (1, 4)
    shown = temi("models", "calibration", "cats-dogs", 1)
    assert "50.0%" in shown.stdout or "100.0%" in shown.stdout
    assert "Calibrated by its reviews" in shown.stderr
    drawn = tmp_path / "reliability.svg"
    temi("models", "plot", "cats-dogs", 1, "reliability", "-o", drawn)
    assert "<svg" in drawn.read_text()


def test_drift(temi: Temi) -> None:
    assert "Too few photos for a verdict" in temi("models", "drift", "cats-dogs", 1).stderr
    found = as_json(temi("models", "drift", "cats-dogs", 1, "--days", 7, "--json"))
    assert (found["images"], found["verdict"]) == (0, "too_few")


def test_export_and_import(temi: Temi, tmp_path: Path) -> None:
    assert "Saved" in temi("models", "export", "cats-dogs", 1, "-o", tmp_path).stderr
    file = tmp_path / "cats-dogs-1.temi"
    assert "Registered cats-dogs, version 2" in temi("models", "import", file).stderr
    again = as_json(temi("models", "import", file, "--name", "copy", "--json"))
    assert (again["name"], again["version"], again["clustering_id"]) == ("copy", 1, None)
    assert "imported" in temi("models", "show", "copy").stdout
    file.write_bytes(file.read_bytes()[:-1])
    assert "model_file_invalid" in temi("models", "import", file, exit_code=1).stderr


@pytest.mark.usefixtures("second")
def test_delete_versions(temi: Temi) -> None:
    temi("models", "alias", "cats-dogs", "live", 1)
    refused = temi("models", "delete", "cats-dogs", 1, "--yes", exit_code=1)
    assert "temi models show" in refused.stderr
    temi("models", "delete", "cats-dogs", 2, input="y\n", exit_code=2)  # nothing to ask on
    assert (
        "Deleted version 2 of 2 of model cats-dogs"
        in temi("models", "delete", "cats-dogs", 2, "--yes").stderr
    )
    temi("models", "unalias", "cats-dogs", "live")
    temi("models", "delete", "cats-dogs", "--yes")
    assert as_json(temi("models", "--json")) == []
