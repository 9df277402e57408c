"""The two searches on a GPU, by faiss. No machine with a GPU has run these functions yet."""

from collections.abc import Iterator
from typing import Any

import faiss

from temi.neighbors.rows import Floats, Ids

_QUERY_ROWS = 65_536
# faiss moves the candidates to the GPU in parts of this size.
_BASE_BYTES = 1 << 30


def gpu_count() -> int:
    """Zero as well where faiss was built without GPUs."""
    return int(getattr(faiss, "get_num_gpus", lambda: 0)())


def nearest_on_gpu(
    queries: Floats, base: Floats, count: int
) -> Iterator[tuple[slice, Floats, Ids]]:
    """The best ``count`` rows of ``base``, for one slice of the queries after the other."""
    resources = faiss.StandardGpuResources()
    for start in range(0, len(queries), _QUERY_ROWS):
        rows = slice(start, min(start + _QUERY_ROWS, len(queries)))
        scores, where = faiss.knn_gpu(
            resources,
            queries[rows],
            base,
            count,
            metric=faiss.METRIC_INNER_PRODUCT,
            vectorsMemoryLimit=_BASE_BYTES,
        )
        yield rows, scores, where


def search_cells(
    centroids: Floats, rows: Floats, probes: int, count: int, *, on_gpu: bool = True
) -> Iterator[tuple[slice, Ids]]:
    """The best ``count`` rows of each row's ``probes`` nearest cells, -1 where there are fewer.

    ``on_gpu`` is for tests: without it the same index answers from the CPU.
    """
    quantizer = faiss.IndexFlatIP(centroids.shape[1])
    quantizer.add(centroids)
    metric = faiss.METRIC_INNER_PRODUCT
    index: Any = faiss.IndexIVFFlat(quantizer, centroids.shape[1], len(centroids), metric)
    if on_gpu:
        resources = faiss.StandardGpuResources()
        index = faiss.index_cpu_to_gpu(resources, 0, index)
    index.nprobe = probes
    index.add(rows)
    for start in range(0, len(rows), _QUERY_ROWS):
        part = slice(start, min(start + _QUERY_ROWS, len(rows)))
        yield part, index.search(rows[part], count)[1]
