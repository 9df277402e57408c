"""Every route with the ids of another tenant, without a key, and without its scope.

The routes come from the OpenAPI document, so that a new route is tested at once. If it needs an
argument that is not listed here, the test fails and says so.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.api.conftest import store_clustering, upload, work_on
from tests.api.tenants import FULL, SECRET, TUS, Tenant, make_owner, make_tenant
from tests.images import ZIP, png_bytes, zip_of
from tests.keys import bearer, make_key
from tests.promises import Promises

Operation = tuple[str, str]
_OPEN = {"/livez", "/readyz", "/metrics", "/v2", "/v2/health/live", "/v2/health/ready"}
_ADMIN = ("/v1/keys", "/v1/audit")
_PHOTO = {"files": ("new.png", png_bytes("white"))}
_TENSORS = {
    "inputs": [{"name": "image", "datatype": "BYTES", "shape": [1], "data": ["AAAA"]}],
}
# Path parameters that do not mean what they mean elsewhere.
_OTHER_PARAMETERS = {
    "/v1/clusterings/{clustering_id}/plots/{name}": {"name": "sizes"},
    "/v1/jobs/{job_id}/plots/{name}": {"name": "sweep", "job_id": "{sweep_job_id}"},
    "/v1/models/{name}/versions/{version}/plots/{plot}": {"plot": "drift"},
    "/v1/jobs/{job_id}/map": {"job_id": "{map_job_id}"},
}
_SINCE = {"params": {"since": "{other_clustering_id}"}}
# What a request needs besides its path; {image_id} and the like are filled in.
_REQUESTS: dict[Operation, dict[str, Any]] = {
    ("POST", "/v1/datasets"): {
        "json": {"source": {"type": "upload", "upload_id": "{upload_id}"}},
    },
    ("POST", "/v1/datasets/{dataset_id}/images"): {
        "content": zip_of({"a.png": png_bytes("red")}),
        "headers": ZIP,
    },
    ("POST", "/v1/datasets/{dataset_id}/images:delete"): {"json": {"image_ids": ["{image_id}"]}},
    ("POST", "/v1/datasets/{dataset_id}:search"): {"json": {"image_id": "{image_id}"}},
    ("PATCH", "/v1/datasets/{dataset_id}"): {"json": {"name": "taken"}},
    ("PUT", "/v1/datasets/{dataset_id}/current-clustering"): {
        "json": {"clustering_id": "{clustering_id}"}
    },
    ("POST", "/v1/jobs"): {"json": {"dataset_id": "{dataset_id}", "n_clusters": 2}},
    ("POST", "/v1/clusterings/{clustering_id}/operations"): {
        "json": {"kind": "rename", "cluster_id": 0, "label": "taken"},
        "headers": {"If-Match": "*"},
    },
    ("POST", "/v1/clusterings/{clustering_id}/review/answers"): {
        "json": {"answers": [{"image_id": "{image_id}", "cluster_id": 0, "answer": "yes"}]}
    },
    ("POST", "/v1/clusterings/{clustering_id}/clusters/{cluster_id}:preview-split"): {
        "json": {"parts": 2, "seed": 0}
    },
    ("GET", "/v1/clusterings/{clustering_id}/hierarchy"): {"params": {"n_groups": 1}},
    ("GET", "/v1/clusterings/{clustering_id}/changes"): _SINCE,
    ("GET", "/v1/clusterings/{clustering_id}/changes/{cluster_id}/images"): _SINCE,
    ("POST", "/v1/clusterings/{clustering_id}:adopt"): {
        "json": {"since": "{other_clustering_id}", "since_revision": 1},
        "headers": {"If-Match": "*"},
    },
    ("PUT", "/v1/models/{name}/aliases/{alias}"): {"json": {"version": 1}},
    ("GET", "/v1/models/{name}:compare"): {"params": {"left": 1, "right": 1}},
    ("POST", "/v1/models/{name}:predict"): {"files": _PHOTO},
    ("POST", "/v1/models/{name}/versions/{version}:predict"): {"files": _PHOTO},
    ("POST", "/v1/proposals/{proposal_id}:accept"): {"json": {"new_cluster": "taken"}},
    ("POST", "/v1/uploads"): {"headers": {**TUS, "Upload-Length": "5"}},
    ("HEAD", "/v1/uploads/{upload_id}"): {"headers": TUS},
    ("PATCH", "/v1/uploads/{upload_id}"): {
        "headers": {**TUS, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"},
        "content": b"12345",
    },
    ("DELETE", "/v1/uploads/{upload_id}"): {"headers": TUS},
    ("POST", "/v1/keys"): {"json": {"name": "mine", "scopes": ["read"]}},
    ("POST", "/v1/models:import"): {
        "content": zip_of({"manifest.json": b"{}"}),
        "headers": ZIP,
    },
    ("POST", "/v1/label-studio/{model}/setup"): {"json": {"schema": "<View/>"}},
    ("POST", "/v1/label-studio/{model}/predict"): {"json": {"tasks": [], "label_config": ""}},
    ("POST", "/v2/models/{model}/infer"): {"json": _TENSORS},
    ("POST", "/v2/models/{model}/versions/{version}/infer"): {"json": _TENSORS},
}
# Routes without an id in their path, which show only the tenant's own resources.
_OWN = {
    ("OPTIONS", "/v1/uploads"),
    ("POST", "/v1/uploads"),
    ("POST", "/v1/keys"),
    ("POST", "/v1/models:import"),
}
# The owner's model is a row without files: these find that out.
_NEED_FILES = ("/ready", "/file")
_CHANGING = "/v1/system"  # shows the free space of the disk


@pytest.fixture
def owner(any_client: TestClient, any_runtime: Runtime) -> Tenant:
    return make_owner(any_client, any_runtime, "owner")


@pytest.fixture
def other_tenant(any_client: TestClient, any_runtime: Runtime) -> Tenant:
    return make_tenant(any_client, any_runtime, "other")


@pytest.fixture
def operations(any_client: TestClient) -> list[Operation]:
    """All routes that require a key. Deletions last: the others need the resources."""
    paths = any_client.get("/openapi.json").json()["paths"]
    found = [(m.upper(), path) for path in paths if path not in _OPEN for m in paths[path]]
    return sorted(found, key=lambda operation: operation[0] == "DELETE")


def _filled(template: Any, owned: dict[str, Any]) -> Any:
    """Replaces every {name} in the texts of a structure by the id of the owner's resource."""
    if isinstance(template, dict):
        return {name: _filled(value, owned) for name, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, owned) for value in template]
    if not isinstance(template, str):
        return template
    return re.sub(r"\{(\w+)\}", lambda found: str(owned[found[1]]), template)


def _request(operation: Operation, owned: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The path and arguments of a request that is valid for the owner of these ids."""
    path = operation[1]
    other = _filled(_OTHER_PARAMETERS.get(path, {}), owned)
    unknown = set(re.findall(r"\{(\w+)\}", path)) - set(owned) - set(other)
    assert not unknown, f"{operation}: tests/api/tenants.py has no {unknown}"
    return _filled(path, owned | other), _filled(_REQUESTS.get(operation, {}), owned)


def _views(owner: Tenant, operations: list[Operation]) -> Iterator[tuple[Operation, bytes]]:
    """The resources that the owner can read, which shows that the ids are valid."""
    for operation in operations:
        if operation[0] == "GET" and not operation[1].endswith(_NEED_FILES):
            path, request = _request(operation, owner.owned)
            answer = owner.send("GET", path, **request)
            assert answer.status_code == 200, (operation, answer.text)
            if operation[1] != _CHANGING:
                yield operation, answer.content


def test_resources_of_another_tenant_are_not_found(
    owner: Tenant,
    other_tenant: Tenant,
    operations: list[Operation],
    any_runtime: Runtime,
    promises: Promises,
) -> None:
    before = dict(_views(owner, operations))
    assert any(SECRET.encode() in view for view in before.values())
    for operation in operations:
        path, request = _request(operation, owner.owned)
        answer = other_tenant.send(operation[0], path, **request)
        if operation in _OWN or (operation[0] == "GET" and "{" not in operation[1]):
            assert answer.is_success or answer.status_code == 422, (operation, answer.text)
            told = f"{answer.text} {answer.headers}"
            assert SECRET not in told, operation
            for owned in owner.owned.values():
                assert len(str(owned)) < 20 or owned not in told, (operation, owned)
        else:
            assert answer.status_code == 404, (operation, answer.text)
            assert operation[0] == "HEAD" or answer.json()["code"] == "not_found", operation
            assert SECRET not in answer.text.replace(path, "").replace(f"'{SECRET}'", "")
    assert dict(_views(owner, operations)) == before  # and none of it has changed anything
    promises.keep(
        f"tenancy ({any_runtime.db.engine.name})",
        "0 leaks; every route with another tenant's ids",
        f"0 leaks, nothing changed; {len(operations)} operations",
        kept=len(operations) >= 73,  # a leak has ended the walk
    )


def test_every_route_requires_a_key(
    any_client: TestClient, owner: Tenant, operations: list[Operation]
) -> None:
    for operation in operations:
        path, request = _request(operation, owner.owned)
        answer = any_client.request(operation[0], path, **request)
        assert answer.status_code == 401, operation
        nowhere, _ = _request(operation, dict.fromkeys(owner.owned, "none"))
        answer = any_client.request(operation[0], nowhere, **request)
        assert answer.status_code == 401, operation


def _scope(operation: Operation) -> str:
    method, path = operation
    if path.startswith(_ADMIN):
        return "admin"
    if path.endswith(":predict") or path.startswith(("/v2/", "/v1/label-studio/")):
        return "predict"
    reads = method in ("GET", "HEAD") or path.endswith(":search")
    return "read" if reads else "write"


def test_every_route_requires_its_scope(
    any_client: TestClient, any_runtime: Runtime, owner: Tenant, operations: list[Operation]
) -> None:
    lesser = {}
    for scope in FULL:
        left = [one for one in FULL if one not in (scope, "admin")]  # admin includes all
        lesser[scope] = bearer(make_key(any_runtime, tenant="owner", scopes=left)[1])
    for operation in operations:
        path, request = _request(operation, owner.owned)
        headers = {**request.pop("headers", {}), **lesser[_scope(operation)]}
        answer = any_client.request(operation[0], path, headers=headers, **request)
        assert answer.status_code == 403, (operation, answer.text)
        if operation[0] != "HEAD":
            assert f"`{_scope(operation)}`" in answer.json()["detail"], operation


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "cluster", "dataset_id": "{dataset_id}", "n_clusters": 2},
        {"kind": "sweep", "dataset_id": "{dataset_id}", "parameter": "n_clusters"},
        {"kind": "map", "dataset_id": "{dataset_id}"},
        {"kind": "finetune", "model": "{name}"},
        {"kind": "predict", "model": "{name}@live", "dataset_id": "{own_dataset_id}"},
        {"kind": "predict", "model": "{name}/versions/1", "dataset_id": "{own_dataset_id}"},
        {"kind": "predict", "model": "own", "dataset_id": "{dataset_id}"},
        {"kind": "finetune", "model": "own", "dataset_id": "{dataset_id}"},
        {"kind": "export", "clustering_id": "{clustering_id}", "format": "csv"},
    ],
)
def test_jobs_cannot_use_resources_of_another_tenant(
    owner: Tenant, other_owner: Tenant, body: dict[str, Any]
) -> None:
    sent = _filled(body, owner.owned | other_owner.owned)
    answer = other_owner.send("POST", "/v1/jobs", json=sent)
    assert answer.status_code == 404, answer.text
    # the longest: a version's number is also a part of many an id
    real = max((str(v) for v in owner.owned.values() if str(v) in str(sent)), key=len)
    unreal = {name: str(value).replace(real, "none") for name, value in sent.items()}
    unreal |= {name: value for name, value in sent.items() if isinstance(value, int)}
    other = other_owner.send("POST", "/v1/jobs", json=unreal)
    told = answer.json()["detail"].replace(real, "none")
    assert (other.status_code, other.json()["detail"]) == (404, told)  # as if it were not there


@pytest.fixture
def other_owner(other_tenant: Tenant, any_runtime: Runtime) -> Tenant:
    """A tenant that has a dataset, a clustering and a model, too."""
    other_tenant.client.headers |= other_tenant.headers
    job = upload(other_tenant.client, {"x.png": png_bytes("red"), "y.png": png_bytes("blue")})
    del other_tenant.client.headers["Authorization"]
    work_on(any_runtime, job["id"])
    clustering_id = store_clustering(any_runtime, job["dataset_id"], model="own")
    other_tenant.owned.update(own_dataset_id=job["dataset_id"], own_clustering_id=clustering_id)
    return other_tenant


def test_ids_of_another_tenant_in_bodies_and_queries_are_refused(
    owner: Tenant, other_owner: Tenant
) -> None:
    send, theirs, own = other_owner.send, owner.owned, other_owner.owned
    dataset, clustering = own["own_dataset_id"], own["own_clustering_id"]
    foreign = {"image_ids": [theirs["image_id"]]}
    edits, any_revision = f"/v1/clusterings/{clustering}/operations", {"If-Match": "*"}
    move = {"kind": "move", "cluster_id": 0, **foreign}
    for answer in (
        send("POST", f"/v1/datasets/{dataset}/images:delete", json=foreign),
        send("POST", edits, headers=any_revision, json=move),
        send("POST", edits, headers=any_revision, json={"kind": "exclude", **foreign}),
        send("GET", f"/v1/datasets/{dataset}/labels?clustering_id={theirs['clustering_id']}"),
        send(
            "GET",
            f"/v1/clusterings/{clustering}/assignments?other={theirs['clustering_id']}"
            "&other_cluster_id=0",
        ),
        send(
            "GET",
            f"/v1/clusterings/{clustering}/clusters/0/images?sort=similar"
            f"&similar_to={theirs['image_id']}",
        ),
        send("GET", f"/v1/models/own:compare?left=1&right=1&dataset_id={theirs['dataset_id']}"),
    ):
        assert answer.status_code in (404, 409, 422), answer.text
        assert SECRET not in answer.text
    for listed in (
        f"/v1/jobs?dataset_id={theirs['dataset_id']}",
        f"/v1/clusterings?dataset_id={theirs['dataset_id']}",
        f"/v1/exports?clustering_id={theirs['clustering_id']}",
        f"/v1/audit?key_id={theirs['key_id']}",
    ):
        assert send("GET", listed).json()["data"] == [], listed


def test_names_and_idempotency_keys_belong_to_a_tenant(owner: Tenant, other_owner: Tenant) -> None:
    """An Idempotency-Key and the name of a model belong to one tenant."""
    headers, body = {"Idempotency-Key": "same"}, zip_of({"a.png": png_bytes("red")})
    ours = owner.done("POST", "/v1/datasets", content=body, headers=headers | ZIP).json()
    theirs = other_owner.done("POST", "/v1/datasets", content=body, headers=headers | ZIP).json()
    assert ours["dataset_id"] != theirs["dataset_id"]
    assert owner.send("GET", "/v1/models/own").status_code == 404
    assert other_owner.send("GET", "/v1/models/own").status_code == 200
