"""Exact and IVF search on a GPU with FAISS; not yet tested on a machine with a GPU."""

from collections.abc import Iterator
from typing import Any

import faiss

from temi.neighbors.rows import Floats, Ids

_QUERY_ROWS = 65_536
# FAISS copies the base vectors to the GPU in parts of this size.
_BASE_BYTES = 1 << 30


def gpu_count() -> int:
    """Return the number of GPUs; 0 if FAISS was built without GPU support."""
    return int(getattr(faiss, "get_num_gpus", lambda: 0)())


def knn_on_gpu(queries: Floats, base: Floats, count: int) -> Iterator[tuple[slice, Floats, Ids]]:
    """Yield scores and ids of the ``count`` most similar rows of ``base``, by slice of queries."""
    resources = faiss.StandardGpuResources()
    for start in range(0, len(queries), _QUERY_ROWS):
        rows = slice(start, min(start + _QUERY_ROWS, len(queries)))
        scores, ids = faiss.knn_gpu(
            resources,
            queries[rows],
            base,
            count,
            metric=faiss.METRIC_INNER_PRODUCT,
            vectorsMemoryLimit=_BASE_BYTES,
        )
        yield rows, scores, ids


def search_ivf(
    centroids: Floats, rows: Floats, n_probes: int, count: int, *, on_gpu: bool = True
) -> Iterator[tuple[slice, Ids]]:
    """Yield the ``count`` most similar rows in each row's ``n_probes`` nearest cells, padded with
    -1, by slice of rows.

    Tests pass ``on_gpu=False`` to search the same index on the CPU.
    """
    quantizer = faiss.IndexFlatIP(centroids.shape[1])
    quantizer.add(centroids)
    metric = faiss.METRIC_INNER_PRODUCT
    index: Any = faiss.IndexIVFFlat(quantizer, centroids.shape[1], len(centroids), metric)
    if on_gpu:
        resources = faiss.StandardGpuResources()
        index = faiss.index_cpu_to_gpu(resources, 0, index)
    index.nprobe = n_probes
    index.add(rows)
    for start in range(0, len(rows), _QUERY_ROWS):
        part = slice(start, min(start + _QUERY_ROWS, len(rows)))
        yield part, index.search(rows[part], count)[1]
