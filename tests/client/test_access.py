"""Keys and the audit log through the client, on a real service."""

from datetime import UTC, datetime, timedelta

import pytest

from temi_client import ApiError, TemiClient
from tests.client.fake_service import FakeService
from tests.client.live import Live
from tests.keys import make_key


def test_a_key_is_created_used_and_revoked(live: Live) -> None:
    _, boss = make_key(live.runtime, tenant="default", name="boss", scopes=["admin"])
    with live.client() as anyone, pytest.raises(ApiError) as refused:
        list(anyone.datasets())  # after the first key, requests need one
    assert (refused.value.status, refused.value.code) == (401, "unauthorized")
    with live.client(api_key=boss) as admin:
        phone = admin.create_key("phone", scopes=["read"], requests_per_minute=100)
        assert phone.key.startswith("temi_")
        listed = list(admin.keys())
        assert [key.name for key in listed] == ["phone", "boss"]
        with live.client(api_key=phone.key) as reader:
            dataset = next(reader.datasets())
            with pytest.raises(ApiError) as refused:
                reader.rename_dataset(dataset.id, "mine")
            assert (refused.value.status, refused.value.code) == (403, "forbidden")
            admin.revoke_key(phone.id)
            with pytest.raises(ApiError, match="invalid_api_key"):
                list(reader.datasets())


def test_audit_log(live: Live) -> None:
    before = datetime.now(UTC) - timedelta(minutes=1)
    boss_id, boss = make_key(live.runtime, tenant="default", name="boss", scopes=["admin"])
    with live.client(api_key=boss) as admin:
        admin.create_key("phone", scopes=["read"])
        dataset = next(admin.datasets())
        admin.rename_dataset(dataset.id, "new")
        newest, first, *_ = admin.audit(since=before)
        assert (newest.method, newest.path) == ("PATCH", f"/v1/datasets/{dataset.id}")
        assert (newest.key_id, newest.key_name) == (boss_id, "boss")
        assert (first.route, first.key_id) == ("/v1/keys", boss_id)
        assert list(admin.audit(key_id=boss_id)) == [newest, first]
        assert list(admin.audit(since=datetime.now(UTC) + timedelta(days=1))) == []


def test_an_exceeded_quota_is_not_retried(live: Live) -> None:
    _, full = make_key(live.runtime, tenant="default", scopes=["write"], storage_bytes=0)
    with (
        live.client(api_key=full, retries=5) as client,  # each retry would wait half a minute
        pytest.raises(ApiError) as refused,
    ):
        client.create_dataset({"type": "folder", "path": "/x"}, name="x")
    assert (refused.value.status, refused.value.code) == (429, "quota_exceeded")


def test_key_creation_is_not_retried(service: FakeService) -> None:
    service.answer("POST", "/v1/keys", {"code": "x", "detail": "busy"}, status=503)
    with TemiClient(service.url, retries=3) as client, pytest.raises(ApiError):
        client.create_key("x")
    assert len(service.requests) == 1
