"""Exact nearest neighbors by cosine similarity, block against block."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import normalize

from temi.device import resolve_device
from temi.errors import InvalidConfig, TemiError

# Columns scored at once: 4096 x 16384 similarities in float32 are 256 MB.
_BASE_ROWS = 16384


def mine_neighbors(
    features: npt.NDArray[np.floating],
    k: int,
    *,
    block_rows: int = 4096,
    progress: Callable[[int, int], None] | None = None,
    device: str = "auto",
) -> npt.NDArray[np.int64]:
    """The ``k`` most similar rows of every row, nearest first: (N, k).

    A row is left out of its own list by its id, never by its rank: an exact duplicate is as
    similar to the row as the row itself. ``k`` is clipped to N - 1. ``features`` may be a
    memory map; only one block of queries and one block of candidates are held at a time.
    """
    if k < 1:
        raise InvalidConfig("n_neighbors", "must be at least 1")
    if features.ndim != 2:
        raise TemiError(f"features must have shape (N, D), not {features.shape}")
    n = features.shape[0]
    k = min(k, max(n - 1, 0))
    target = resolve_device(device)
    found = np.empty((n, k), dtype=np.int64)
    if k == 0:
        return found
    for start in range(0, n, block_rows):
        stop = min(start + block_rows, n)
        queries = _unit_rows(features, start, stop, target)
        found[start:stop] = _nearest(queries, start, features, k).cpu().numpy()
        if progress is not None:
            progress(stop, n)
    return found


def _nearest(queries: Tensor, first_id: int, features: npt.NDArray[np.floating], k: int) -> Tensor:
    """Best ``k`` ids for each query, kept up to date while the candidate blocks go by."""
    n = features.shape[0]
    best = torch.full((len(queries), 0), -torch.inf, device=queries.device)
    ids = torch.empty((len(queries), 0), dtype=torch.int64, device=queries.device)
    for start in range(0, n, _BASE_ROWS):
        stop = min(start + _BASE_ROWS, n)
        scores = queries @ _unit_rows(features, start, stop, queries.device).T
        _hide_self(scores, first_id, start)
        top, where = scores.topk(min(k, stop - start), dim=1)
        best, ids = torch.cat([best, top], dim=1), torch.cat([ids, where + start], dim=1)
        best, order = best.topk(min(k, best.shape[1]), dim=1)
        ids = ids.gather(1, order)
    return ids


def _hide_self(scores: Tensor, first_query: int, first_base: int) -> None:
    low = max(first_query, first_base)
    high = min(first_query + scores.shape[0], first_base + scores.shape[1])
    shared = torch.arange(low, max(low, high), device=scores.device)
    scores[shared - first_query, shared - first_base] = -torch.inf


def _unit_rows(
    features: npt.NDArray[np.floating], start: int, stop: int, device: torch.device
) -> Tensor:
    rows = torch.from_numpy(np.array(features[start:stop], dtype=np.float32)).to(device)
    if not bool(torch.isfinite(rows).all()):
        raise TemiError("features contain NaN or infinity")
    return normalize(rows, dim=1)
