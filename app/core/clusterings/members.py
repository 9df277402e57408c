"""Images of clusters with their hashes, as arrays: lists would take five times the memory."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.datasets.features import HASH, Hashes, to_hashes
from app.core.platform.tables import Assignment, Image

Ids = npt.NDArray[np.bytes_]
_ID = "S40"
_FETCH_ROWS = 10_000


class Members(NamedTuple):
    """In the order of the ids, which is the order of the upload."""

    ids: Ids
    cluster_ids: npt.NDArray[np.int64]
    hashes: Hashes


def read_members(
    session: Session, clustering_id: str, cluster_ids: Collection[int] | None = None
) -> Members:
    """The images of these clusters, or of all; without excluded images."""
    query = select(Assignment.image_id, Assignment.cluster_id, Image.sha256)
    query = query.join(Image, Image.id == Assignment.image_id)
    query = query.where(Assignment.clustering_id == clustering_id)
    if cluster_ids is None:
        query = query.where(Assignment.cluster_id >= 0)
    else:
        query = query.where(Assignment.cluster_id.in_(cluster_ids))
    found = session.execute(
        query.order_by(Assignment.image_id).execution_options(yield_per=_FETCH_ROWS)
    )
    pages = [Members(np.empty(0, _ID), np.empty(0, np.int64), np.empty(0, HASH))]
    for rows in found.partitions():
        ids, numbers, sha256s = zip(*rows, strict=True)
        pages.append(
            Members(np.array(ids, _ID), np.array(numbers, np.int64), to_hashes(list(sha256s)))
        )
    return Members(*(np.concatenate(columns) for columns in zip(*pages, strict=True)))
