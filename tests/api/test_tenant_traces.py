"""Tenants with the same file share its bytes and learn nothing about each other."""

import os
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from app.core.storage.keys import blob_key
from app.core.storage.local import LocalStorage
from tests.api.conftest import upload, work_on
from tests.api.tenants import Tenant, make_tenant
from tests.images import jpeg_bytes

_PHOTO = jpeg_bytes("red", (40, 20))
_LONG_AGO = 1_000_000_000.0


def own_image(client: TestClient, runtime: Runtime, name: str) -> tuple[Tenant, dict[str, Any]]:
    tenant = make_tenant(client, runtime, name)
    client.headers.update(tenant.headers)
    job = upload(client, {"a.jpg": _PHOTO})
    work_on(runtime, job["id"])
    listed = tenant.done("GET", f"/v1/datasets/{job['dataset_id']}/images").json()["data"]
    return tenant, listed[0]


@pytest.fixture
def two(client: TestClient, runtime: Runtime) -> list[tuple[Tenant, dict[str, Any]]]:
    """Tenants that have uploaded the same file, one after the other."""
    return [own_image(client, runtime, name) for name in ("first", "second")]


def blob(runtime: Runtime, image: dict[str, Any]) -> os.PathLike[str]:
    assert isinstance(runtime.storage, LocalStorage)
    return runtime.storage.resolve(blob_key(image["sha256"]))


def thumbnails(runtime: Runtime) -> set[str]:
    return {file.key for file in runtime.storage.list("thumbnails")}


def test_last_modified_is_not_the_time_of_the_shared_file(
    runtime: Runtime, two: list[tuple[Tenant, dict[str, Any]]]
) -> None:
    tenant, image = two[1]
    path = f"/v1/images/{image['id']}/content"
    before = tenant.done("GET", path).headers
    os.utime(blob(runtime, image), (_LONG_AGO, _LONG_AGO))  # as if another had sent it long ago
    after = tenant.done("GET", path).headers
    told = ("last-modified", "etag", "cache-control", "content-length")
    assert [before[name] for name in told] == [after[name] for name in told]
    assert parsedate_to_datetime(after["last-modified"]).timestamp() > _LONG_AGO


def test_last_modified_is_the_creation_time_of_the_tenants_image(
    runtime: Runtime, two: list[tuple[Tenant, dict[str, Any]]]
) -> None:
    times = []
    for tenant, image in two:
        headers = tenant.done("GET", f"/v1/images/{image['id']}/content").headers
        times.append(parsedate_to_datetime(headers["last-modified"]))
        dataset = tenant.done("GET", f"/v1/datasets/{image['dataset_id']}").json()
        assert dataset["created_at"][:10] == times[-1].date().isoformat()
    assert times[0] <= times[1]


def test_a_download_resumes_with_if_range(
    two: list[tuple[Tenant, dict[str, Any]]],
) -> None:
    tenant, image = two[0]
    path = f"/v1/images/{image['id']}/content"
    told = tenant.done("GET", path).headers["last-modified"]
    part = tenant.done("GET", path, headers={"Range": "bytes=2-5", "If-Range": told})
    assert (part.status_code, part.content) == (206, _PHOTO[2:6])


def test_each_tenant_has_its_own_thumbnail(
    runtime: Runtime, two: list[tuple[Tenant, dict[str, Any]]]
) -> None:
    """A shared thumbnail would show by its response time that another tenant has the file."""
    (first, mine), (second, theirs) = two
    one = first.done("GET", f"/v1/images/{mine['id']}/thumbnail", params={"size": "64"})
    made = thumbnails(runtime)
    assert len(made) == 1
    other = second.done("GET", f"/v1/images/{theirs['id']}/thumbnail", params={"size": "64"})
    assert other.content == one.content
    assert len(thumbnails(runtime)) == 2
    assert made < thumbnails(runtime)


def test_a_thumbnail_of_another_tenant_is_never_served(
    runtime: Runtime, two: list[tuple[Tenant, dict[str, Any]]]
) -> None:
    (first, mine), (second, theirs) = two
    first.done("GET", f"/v1/images/{mine['id']}/thumbnail", params={"size": "64"})
    (key,) = thumbnails(runtime)
    runtime.storage.write(key, b"marked")
    answer = second.done("GET", f"/v1/images/{theirs['id']}/thumbnail", params={"size": "64"})
    assert answer.content != b"marked"


def test_image_responses_do_not_depend_on_the_first_tenant(
    two: list[tuple[Tenant, dict[str, Any]]],
) -> None:
    own = {"id", "dataset_id"}
    entries = [tenant.done("GET", f"/v1/images/{image['id']}").json() for tenant, image in two]
    first, second = ({k: v for k, v in entry.items() if k not in own} for entry in entries)
    assert first == second
