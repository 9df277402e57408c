"""Versions and aliases through the client, against the real API."""

from pathlib import Path

import pytest

from temi_client import ApiError, TemiClient
from tests.api.conftest import store_clustering
from tests.client.fake_service import FakeService
from tests.client.live import Live

MODEL = "cats-dogs"


@pytest.fixture(autouse=True)
def _three_versions(live: Live, live_client: TemiClient) -> None:
    dataset = next(live_client.datasets())
    for one_in in (2, 4):
        store_clustering(live.runtime, dataset.id, one_in=one_in)


def test_alias_changes_and_history(live_client: TemiClient) -> None:
    for version in (1, 2, 3):
        assert live_client.set_alias(MODEL, "live", version).aliases["live"] == version
    assert live_client.rollback_alias(MODEL, "live", idempotency_key="k").aliases["live"] == 2
    assert live_client.rollback_alias(MODEL, "live", idempotency_key="k").aliases["live"] == 2
    assert live_client.rollback_alias(MODEL, "live").aliases["live"] == 1
    with pytest.raises(ApiError) as refused:
        live_client.rollback_alias(MODEL, "live")
    assert refused.value.code == "nothing_to_roll_back"
    found = list(live_client.alias_history(MODEL, "live"))
    assert [(move.kind, move.before, move.version) for move in found] == [
        ("rollback", 2, 1),
        ("rollback", 3, 2),
        ("set", 2, 3),
        ("set", 1, 2),
        ("set", None, 1),
    ]


def test_versions_are_compared(live_client: TemiClient) -> None:
    found = live_client.compare_versions(MODEL, 1, 3)
    assert (found.left, found.right, found.assignments.images) == (1, 3, 4)
    assert found.assignments.same_cluster == 0.75
    (move,) = found.assignments.movements
    assert (move.left_label, move.right_label, move.images) == ("cluster 0", "cluster 1", 1)
    assert found.configuration == []
    named = live_client.compare_versions(MODEL, 1, 3, dataset_id=found.assignments.dataset_id)
    assert named == found


def test_versions_are_deleted(live_client: TemiClient) -> None:
    live_client.delete_version(MODEL, 3)
    assert live_client.model(MODEL).latest_version == 2
    live_client.delete_model(MODEL)
    with pytest.raises(ApiError) as refused:
        live_client.model(MODEL)
    assert refused.value.status == 404


def test_export_and_import(live_client: TemiClient, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    saved = live_client.export_version(
        MODEL, 2, tmp_path, progress=lambda done, total: seen.append((done, total))
    )
    assert saved == tmp_path / "cats-dogs-2.temi"
    assert seen[-1] == (saved.stat().st_size,) * 2
    seen.clear()
    imported = live_client.import_version(
        saved, name="copy", progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (saved.stat().st_size,) * 2
    original = live_client.model_version(MODEL, 2)
    assert imported.files["model.safetensors"] == original.files["model.safetensors"]
    assert imported == live_client.model_version("copy", 1)
    again = live_client.import_version(saved, idempotency_key="k")
    assert live_client.import_version(saved, idempotency_key="k") == again
    assert (again.name, again.version) == (MODEL, 4)


def test_export_to_a_named_file(live_client: TemiClient, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "mine.temi"
    assert live_client.export_version(MODEL, 1, target) == target
    with pytest.raises(ApiError) as refused:
        live_client.export_version(MODEL, 9, tmp_path / "none.temi")
    assert refused.value.status == 404
    assert not (tmp_path / "none.temi").exists()


def test_an_import_sends_its_length(
    client: TemiClient, service: FakeService, tmp_path: Path
) -> None:
    file = tmp_path / "m.temi"
    file.write_bytes(b"x" * 10)
    with pytest.raises(ApiError):
        client.import_version(file, name="m")
    (request,) = service.requests
    assert (request.method, request.path, request.query) == (
        "POST",
        "/v1/models:import",
        {"name": ["m"]},
    )
    assert request.headers["content-length"] == "10"
    assert request.headers["content-type"] == "application/zip"
    assert request.headers["idempotency-key"]
