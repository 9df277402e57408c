"""Time and memory of requests by similarity: python -m benchmarks.similarity --images 100000.

The service's own functions on a SQLite database and random features; the process that measures
reads the features in chunks, as the API does.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sqlalchemy import select, update

from app.core.clusterings.rows import get_cluster, get_clustering
from app.core.clusterings.similarity import images_by_similarity, similar_clusters
from app.core.clusterings.training_images import nearest_training_images
from app.core.datasets.neighbors import image_neighbors
from app.core.platform.actor import DEFAULT_TENANT
from app.core.platform.migrations import upgrade
from app.core.platform.settings import Settings
from app.core.platform.tables import Assignment, Clustering, Dataset, Image
from app.core.runtime import Runtime
from benchmarks.scale_rows import LARGE, clustering_of, fill

FOLDER = "embeddings/benchmark"
DIM = 1280
CLUSTER = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100_000)
    images = parser.parse_args().images
    with tempfile.TemporaryDirectory() as folder:
        runtime = Runtime(Settings(_env_file=None, data_dir=Path(folder)))
        upgrade(runtime.db)
        fill(runtime.db.engine, images * 10 // 9, 0)  # nine tenths are the large dataset
        save_features(runtime)
        measure(runtime)
        runtime.db.dispose()


def save_features(runtime: Runtime) -> None:
    with runtime.db.write() as session:
        for table in (Clustering, Dataset):
            assert session.get(table, clustering_of(LARGE) if table is Clustering else LARGE)
        session.execute(update(Clustering).values(embedding_folder=FOLDER))
        session.execute(
            update(Dataset)
            .where(Dataset.id == LARGE)
            .values(current_clustering_id=clustering_of(LARGE))
        )
        hashes = session.scalars(
            select(Image.sha256).where(Image.dataset_id == LARGE).order_by(Image.position)
        ).all()
    random = np.random.default_rng(0)
    with runtime.storage.writing(f"{FOLDER}/features.npy") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (len(hashes), DIM)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(hashes), 10_000):
            size = min(10_000, len(hashes) - start), DIM
            file.write(random.standard_normal(size, dtype=np.float32).tobytes())
    with runtime.storage.writing(f"{FOLDER}/hashes.npy") as file:
        rows = np.frombuffer(bytes.fromhex("".join(hashes)), dtype=np.uint8)
        np.save(file, rows.reshape(-1, 32))


def measure(runtime: Runtime) -> None:
    db, storage, clustering_id = runtime.db, runtime.storage, clustering_of(LARGE)
    with db.read() as session:
        clustering = get_clustering(session, DEFAULT_TENANT, clustering_id)
        cluster = get_cluster(session, clustering, CLUSTER)
        in_cluster = Assignment.clustering_id == clustering_id, Assignment.cluster_id == CLUSTER
        image = session.scalars(select(Assignment.image_id).where(*in_cluster).limit(1)).one()
    vectors = np.random.default_rng(1).standard_normal((64, DIM), dtype=np.float32)
    cases: dict[str, Callable[[], object]] = {
        "neighbors of an image": lambda: image_neighbors(db, storage, DEFAULT_TENANT, image, 24),
        "similar clusters": lambda: similar_clusters(
            db, storage, DEFAULT_TENANT, clustering_id, CLUSTER, 50
        ),
        "images of a cluster by similarity": lambda: images_by_similarity(
            db, storage, DEFAULT_TENANT, cluster, image
        ),
        "5 neighbors of 64 predictions": lambda: nearest_training_images(
            db, storage, clustering_id, vectors, 5
        ),
    }
    for name, act in cases.items():
        before, times = _own_bytes(), []
        for _ in range(3):
            started, computed = time.perf_counter(), time.process_time()
            act()
            times.append((time.perf_counter() - started, time.process_time() - computed))
        (first, first_cpu), (then, then_cpu) = times[0], min(times[1:])
        grown = (_own_bytes() - before) / 1024**2
        print(
            f"{name}: {first:.2f} s first ({first_cpu:.2f} s of CPU time), {then:.2f} s then "
            f"({then_cpu:.2f} s), +{grown:.0f} MiB"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak of the process, with the pages of the mapped file: {peak:.0f} MiB")


def _own_bytes() -> int:
    """Memory of the process without mapped files."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
