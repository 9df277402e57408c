"""What the service says of itself."""

from fastapi.testclient import TestClient

from app.core.jobs.workers import Identity, record_heartbeat
from app.core.runtime import Runtime
from tests.api.conftest import Json
from tests.conftest import MakeClient, MakeSettings
from tests.keys import bearer, make_key


def test_version_limits_and_backbones(client: TestClient, runtime: Runtime, dataset: Json) -> None:
    found = client.get("/v1/system").json()
    assert found["version"] == client.get("/readyz").json()["version"]
    assert (found["mode"], found["device"]) == ("embedded", runtime.settings.device)
    storage = found["storage"]
    assert (storage["used_bytes"], storage["quota_bytes"]) == (dataset["bytes"], None)
    assert storage["free_bytes"] > 0
    settings, limits = runtime.settings, found["limits"]
    assert limits["max_upload_bytes"] == settings.max_body_bytes
    assert limits["max_image_bytes"] == settings.max_image_bytes
    assert limits["max_images_per_dataset"] is None
    assert None not in (limits[name] for name in limits if name != "max_images_per_dataset")
    assert {"name": "efficientnet_lite0", "available": True} in found["backbones"]


def test_the_devices_of_the_workers_that_train(client: TestClient, runtime: Runtime) -> None:
    with runtime.db.write() as session:
        for name, takes, device in (
            ("a", ("gpu",), "cuda: H100"),
            ("b", ("gpu", "cpu"), "cuda: H100"),
            ("c", ("cpu",), "cpu"),
        ):
            identity = Identity(name=name, host="h", pid=1, takes=takes, device=device, version="0")
            record_heartbeat(session, identity)
    assert client.get("/v1/system").json()["device"] == "cuda: H100"


def test_the_quota_of_a_key(client: TestClient, runtime: Runtime) -> None:
    _, text = make_key(runtime, storage_bytes=1000)
    storage = client.get("/v1/system", headers=bearer(text)).json()["storage"]
    assert (storage["used_bytes"], storage["quota_bytes"]) == (0, 1000)
    assert client.get("/v1/system").status_code == 401


def test_a_service_with_a_broker_is_distributed(
    make_client: MakeClient, make_settings: MakeSettings
) -> None:
    client = make_client(make_settings(broker_url="redis://127.0.0.1:9/0"))
    assert client.get("/v1/system").json()["mode"] == "distributed"
