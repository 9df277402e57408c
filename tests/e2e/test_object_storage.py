"""Hosts that share a database, a broker and a bucket, but no folder."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.buckets import new_bucket
from tests.e2e.conftest import SERVICE_VARIABLES, SHAPES, Service, wait_until_ready
from tests.servers import free_port
from tests.waiting import end


@contextmanager
def _host(command: str, folder: Path, variables: dict[str, str]) -> Iterator[Service]:
    """`temi api` or `temi worker` with a data folder of its own."""
    folder.mkdir()
    log = folder.with_suffix(".log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli.main", command],
            env={**os.environ, **variables, "TEMI_DATA_DIR": str(folder)},
            stdout=out,
            stderr=out,
        )
    try:
        yield Service(process, f"http://127.0.0.1:{variables['TEMI_PORT']}", log)
    finally:
        end(process)


def test_hosts_share_nothing_but_the_bucket(
    tmp_path: Path,
    postgres_url: str,
    redis_url: str,
    s3_url: str,
    shapes_zip: Path,
    new_drawings: dict[str, Path],
) -> None:
    bucket = {f"TEMI_{name.upper()}": value for name, value in new_bucket(s3_url).items()}
    variables = {
        "TEMI_DATABASE_URL": postgres_url,
        "TEMI_BROKER_URL": redis_url,
        "TEMI_PORT": str(free_port()),
        **SERVICE_VARIABLES,
        **bucket,
    }
    with ExitStack() as hosts:
        api = hosts.enter_context(_host("api", tmp_path / "api", variables))
        worker = hosts.enter_context(_host("worker", tmp_path / "worker", variables))
        wait_until_ready(api)
        client: Any = hosts.enter_context(api.client())
        sent = client.upload_dataset(shapes_zip, name="shapes", resumable=True)
        ingest = client.wait(sent.id)
        assert ingest.status == "succeeded", worker.log.read_text()
        job = client.wait(client.cluster(ingest.dataset_id, 3, steps=40).id)
        assert job.status == "succeeded", worker.log.read_text()
        clustering_id = job.result["clustering_id"]
        assert len(list(client.assignments(clustering_id))) == 90
        largest = max(client.clusters(clustering_id), key=lambda cluster: cluster.size)
        client.split_cluster(clustering_id, largest.cluster_id)
        found = client.predict("shapes", [new_drawings[shape] for shape in SHAPES]).data
        assert {prediction.cluster_id for prediction in found} <= {0, 1, 2}
        image = next(iter(client.images(ingest.dataset_id)))
        original = client.image_content(image.id, tmp_path / "original.jpg")
        with zipfile.ZipFile(shapes_zip) as archive:
            assert original.read_bytes() == archive.read(image.name)
        assert client.thumbnail(image.id)
        export = client.wait(client.export(clustering_id, "image_folder").id)
        written = client.download_export(export.result["export_id"], tmp_path / "export.zip")
        with zipfile.ZipFile(written) as archive:
            assert len(set(archive.namelist()) - {"classes.txt"}) == 90
    assert not (tmp_path / "api" / "blobs").exists()
    assert not (tmp_path / "worker" / "blobs").exists()
