"""A service with as many images as the workbench must show: rows by SQL, photos shared by them.

All images have the bytes of a few hundred drawings, so that every thumbnail can be shown without
100,000 files.
"""

import hashlib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from sqlalchemy import delete, insert, text, update

from app.core.jobs.requests.map import map_key
from app.core.platform.actor import DEFAULT_TENANT
from app.core.platform.settings import Settings
from app.core.platform.tables import Clustering, Dataset, Job
from app.core.runtime import Runtime
from app.core.storage.keys import blob_key
from benchmarks.editing import prepare
from benchmarks.live import running_service
from benchmarks.scale_rows import LARGE, analyze, clustering_of

DRAWINGS = Path(__file__).parents[1] / "demo" / "clipart.zip"
DATASET, CLUSTERING = LARGE, clustering_of(LARGE)
_MAP_JOB = f"job_{0:026d}"
_SHARE = """
UPDATE images SET sha256 = (SELECT sha256 FROM pool WHERE pool.n = images.position % {count})
"""


@contextmanager
def large_service(folder: Path, images: int, *, merged: int) -> Iterator[str]:
    """The address of a service whose dataset has so many images, with a clustering and a map; its
    clusters 1 and 2 have `merged` images each."""
    (folder / "data").mkdir(parents=True)
    runtime = Runtime(Settings(_env_file=None, data_dir=folder / "data", log_level="error"))
    prepare(f"sqlite:///{folder}/data/temi.db", images, merged)
    _share_photos(runtime)
    _finish_rows(runtime)
    _write_map(runtime, images)
    analyze(runtime.db.engine)
    runtime.db.dispose()
    with running_service(folder) as (url, _):
        yield url


def drawings() -> dict[str, bytes]:
    """The demo's drawings by name."""
    with zipfile.ZipFile(DRAWINGS) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.endswith(".jpg")}


def _share_photos(runtime: Runtime) -> None:
    hashes = []
    for data in drawings().values():
        hashes.append(hashlib.sha256(data).hexdigest())
        runtime.storage.write(blob_key(hashes[-1]), data)
    with runtime.db.engine.begin() as connection:
        connection.execute(text("CREATE TABLE pool (n INTEGER PRIMARY KEY, sha256 TEXT)"))
        rows = [{"n": n, "sha256": sha256} for n, sha256 in enumerate(hashes)]
        connection.execute(text("INSERT INTO pool VALUES (:n, :sha256)"), rows)
        connection.execute(text(_SHARE.format(count=len(hashes))))
        connection.execute(text("DROP TABLE pool"))


def _finish_rows(runtime: Runtime) -> None:
    """The clustering is the dataset's current one; no job waits, and one has made a map."""
    with runtime.db.write() as session:
        session.execute(delete(Job))
        session.execute(
            update(Dataset).where(Dataset.id == DATASET).values(current_clustering_id=CLUSTERING)
        )
        session.execute(update(Clustering).values(dataset_fingerprint="f" * 64))
        session.execute(
            insert(Job).values(
                id=_MAP_JOB, tenant=DEFAULT_TENANT, kind="map", status="succeeded",
                dataset_id=DATASET, config={}, stages=[],
            )
        )  # fmt: skip


def _write_map(runtime: Runtime, images: int) -> None:
    """Two hundred clouds, as a projection of clustered features has them."""
    generator = np.random.default_rng(0)
    centers = generator.uniform(-0.9, 0.9, (200, 2))
    places = centers[generator.integers(0, 200, images)]
    places = (places + generator.normal(0, 0.03, places.shape)).clip(-1, 1).astype(np.float32)
    ids = pa.array([f"img_{n:026d}" for n in range(images)])
    table = pa.table({"image_id": ids, "x": places[:, 0], "y": places[:, 1]})
    key = map_key(_MAP_JOB)
    with runtime.storage.writing(key) as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=65_536)
