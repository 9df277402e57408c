"""Clients that do not read their responses do not affect others."""

import io
import socket
from contextlib import ExitStack

import httpx
import numpy as np
import pytest
from PIL import Image as Pillow

from app.core.jobs.lifecycle import create_job
from app.core.platform.ids import new_id
from app.core.platform.settings import Settings
from app.core.platform.tables import Dataset, Export, Image
from app.core.runtime import Runtime
from app.core.storage.keys import blob_key
from tests.api.conftest import Json, MakeClustering
from tests.api.routes.test_dataset_labels import served
from tests.conftest import MakeSettings
from tests.waiting import LONG_SECONDS, wait_until

READERS = 20  # of each kind


def _large_image() -> bytes:
    """More bytes than the buffers of a connection."""
    pixels = np.random.default_rng(0).integers(0, 255, (2500, 2500, 3), dtype=np.uint8)
    out = io.BytesIO()
    Pillow.fromarray(pixels).save(out, "BMP")
    return out.getvalue()


@pytest.fixture
def paths(
    client: object, dataset: Json, runtime: Runtime, make_clustering: MakeClustering
) -> list[str]:
    """An image, an export and the events of a job that does not end."""
    clustering_id = make_clustering(dataset["id"])
    data = _large_image()
    with runtime.db.write() as session:
        image = session.query(Image).filter_by(dataset_id=dataset["id"]).first()
        assert image is not None
        runtime.storage.write(blob_key(image.sha256), data)
        job = create_job(
            session,
            tenant="default",
            kind="map",
            dataset=session.get_one(Dataset, dataset["id"]),
            config={},
        )
        export = Export(
            id=new_id("exp"),
            tenant="default",
            clustering_id=clustering_id,
            job_id=job.id,
            format="csv",
            revision=1,
            filename="labels.csv",
            media_type="text/csv",
            image_count=4,
            bytes=len(data),
            sha256="0" * 64,
            filters={"cluster_ids": None, "min_probability": None, "include_excluded": False},
            storage_key=blob_key(image.sha256),
        )
        session.add(export)
    return [
        f"/v1/images/{image.id}/content",
        f"/v1/exports/{export.id}/content",
        f"/v1/jobs/{job.id}/events",
    ]


def _ask(url: str, path: str) -> socket.socket:
    """Reads the first bytes of the response and then stops."""
    host, port = url.removeprefix("http://").split(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(LONG_SECONDS)
    connection.connect((host, int(port)))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return connection


def _status(connection: socket.socket) -> int:
    head = b""
    while b"\r\n" not in head:
        received = connection.recv(64)
        assert received
        head += received
    return int(head.split()[1])


def test_lists_respond_while_many_clients_do_not_read(settings: Settings, paths: list[str]) -> None:
    with served(settings) as (url, _), ExitStack() as open_:
        readers = [open_.enter_context(_ask(url, path)) for path in paths for _ in range(READERS)]
        assert {_status(reader) for reader in readers} == {200}
        for path in ("/v1/datasets", "/v1/jobs", "/v1/exports", "/v1/models"):
            answer = httpx.get(url + path, timeout=LONG_SECONDS)  # the readers read nothing
            assert answer.status_code == 200


@pytest.mark.parametrize(
    ("setting", "number"), [("max_open_downloads", 0), ("max_event_streams", 2)]
)
def test_open_responses_per_key_are_limited(
    make_settings: MakeSettings, paths: list[str], setting: str, number: int
) -> None:
    with served(make_settings(**{setting: 2})) as (url, _), ExitStack() as open_:
        readers = [open_.enter_context(_ask(url, paths[number])) for _ in range(2)]
        assert [_status(reader) for reader in readers] == [200, 200]
        refused = httpx.get(url + paths[number], timeout=LONG_SECONDS)
        assert refused.status_code == 429
        assert refused.json()["code"] == "rate_limited"
        assert int(refused.headers["Retry-After"]) > 0
        assert httpx.get(f"{url}/v1/datasets", timeout=LONG_SECONDS).status_code == 200
        for reader in readers:  # and what was closed counts no longer
            reader.close()
        wait_until(lambda: _status(open_.enter_context(_ask(url, paths[number]))) == 200, pause=0.1)
