"""Two tenants; one owns a resource of each kind."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.core.gathering.features import encode_features
from app.core.jobs.lifecycle import claim, finish
from app.core.jobs.requests.map import map_key
from app.core.platform.ids import new_id
from app.core.platform.tables import Image, ModelVersion, Proposal, RefusedImage
from app.core.runtime import Runtime
from tests.api.conftest import add_sweep_points, store_clustering, upload, work_on
from tests.images import jpeg_bytes, png_bytes
from tests.keys import bearer, make_key
from tests.model_files import DIM

SECRET = "aardvark"  # in every name that the owner gives
TUS = {"Tus-Resumable": "1.0.0"}
FULL = ["read", "write", "predict", "admin"]
_PHOTOS = {"a.jpg": jpeg_bytes("red"), "b.png": png_bytes("green"), "c.jpg": jpeg_bytes("blue")}


@dataclass(frozen=True)
class Tenant:
    """A client with a key that has all scopes."""

    client: TestClient
    headers: dict[str, str]
    # What it owns, by the name of the path parameter that takes it.
    owned: dict[str, Any] = field(default_factory=dict)

    def send(self, method: str, path: str, **request: Any) -> Any:
        headers = {**request.pop("headers", {}), **self.headers}
        return self.client.request(method, path, headers=headers, **request)

    def done(self, method: str, path: str, **request: Any) -> Any:
        answer = self.send(method, path, **request)
        assert answer.is_success, answer.text
        return answer


def make_tenant(client: TestClient, runtime: Runtime, name: str) -> Tenant:
    key_id, text = make_key(runtime, tenant=name, name=f"{name}'s key", scopes=FULL)
    return Tenant(client, bearer(text), {"key_id": key_id})


def make_owner(client: TestClient, runtime: Runtime, name: str) -> Tenant:
    """A new path parameter needs a line here."""
    owner = make_tenant(client, runtime, name)
    job = _ingest(owner, runtime)
    dataset = job["dataset_id"]
    clustering = store_clustering(runtime, dataset, model=SECRET)
    other_clustering = store_clustering(runtime, dataset, model=f"{SECRET}-2")
    _end_jobs(owner, runtime)
    rename = {"kind": "rename", "cluster_id": 0, "label": f"{SECRET} one"}
    path = f"/v1/clusterings/{clustering}/operations"
    owner.done("POST", path, json=rename, headers={"If-Match": "*"})
    owner.done("PUT", f"/v1/models/{SECRET}/aliases/live", json={"version": 1})
    export = {"kind": "export", "clustering_id": clustering, "format": "csv"}
    exported = owner.done("POST", "/v1/jobs", json=export).json()["id"]
    work_on(runtime, exported)
    sent = owner.done("POST", "/v1/uploads", headers={**TUS, "Upload-Length": "10"})
    owner.owned.update(
        dataset_id=dataset,
        image_id=owner.done("GET", f"/v1/datasets/{dataset}/images").json()["data"][0]["id"],
        job_id=job["id"],
        sweep_job_id=_sweep_job(owner, runtime, dataset),
        map_job_id=_map_job(owner, runtime, dataset),
        clustering_id=clustering,
        other_clustering_id=other_clustering,
        cluster_id=0,
        name=SECRET,
        model=SECRET,
        version=1,
        alias="live",
        export_id=owner.done("GET", f"/v1/jobs/{exported}").json()["result"]["export_id"],
        upload_id=sent.headers["Location"].rpartition("/")[2],
        **_refused(runtime, name, clustering, dataset),
    )
    return owner


def _refused(runtime: Runtime, tenant: str, clustering_id: str, dataset_id: str) -> dict[str, str]:
    """A proposal of one image, whose bytes an image of the dataset has."""
    with runtime.db.write() as session:
        version = session.scalars(
            select(ModelVersion).where(ModelVersion.clustering_id == clustering_id)
        ).one()
        image = session.scalars(select(Image).where(Image.dataset_id == dataset_id)).first()
        assert image is not None
        common = {"tenant": tenant, "model_id": version.model_id, "version": version.version}
        proposal = Proposal(id=new_id("prp"), size=1, tightness=1.0, **common)
        shared = ("sha256", "width", "height", "format", "bytes")
        refused = RefusedImage(
            id=new_id("rfi"),
            proposal_id=proposal.id,
            rank=0,
            name=f"{SECRET}.jpg",
            novelty=1.0,
            probability=0.5,
            margin=0.1,
            features=encode_features(np.ones(DIM)),
            **{column: getattr(image, column) for column in shared},
            **common,
        )
        session.add(proposal)
        session.flush()
        session.add(refused)
        return {"proposal_id": proposal.id, "refused_id": refused.id}


def _ingest(owner: Tenant, runtime: Runtime) -> dict[str, Any]:
    owner.client.headers |= owner.headers
    job = upload(owner.client, _PHOTOS, name=f"{SECRET} photos")
    del owner.client.headers["Authorization"]
    work_on(runtime, job["id"])
    return job


def _end_jobs(owner: Tenant, runtime: Runtime) -> None:
    """Ends the job of the stored clustering, which never ran: a queued job blocks changes."""
    for job in owner.done("GET", "/v1/jobs?status=queued").json()["data"]:
        _finish(runtime, job["id"])


def _map_job(owner: Tenant, runtime: Runtime, dataset_id: str) -> str:
    body = {"kind": "map", "dataset_id": dataset_id}
    job_id: str = owner.done("POST", "/v1/jobs", json=body).json()["id"]
    runtime.storage.write(map_key(job_id), b"a map")
    _finish(runtime, job_id)
    return job_id


def _sweep_job(owner: Tenant, runtime: Runtime, dataset_id: str) -> str:
    body = {"kind": "sweep", "dataset_id": dataset_id, "parameter": "n_clusters", "values": [2]}
    job_id: str = owner.done("POST", "/v1/jobs", json=body).json()["id"]
    add_sweep_points(runtime, job_id, [2])
    _finish(runtime, job_id)
    return job_id


def _finish(runtime: Runtime, job_id: str) -> None:
    with runtime.db.write() as session:
        job = claim(session, job_id, worker="test", lease_seconds=60)
        assert job is not None
        finish(session, job_id, job.fence, status="succeeded", result={})
