"""The photos of a clustering in a random order, with what people know of them.

The order is that of a hash of the images: it is the same for everyone, needs no state, and no model
knows it. Photos that people placed by hand without an answer are no part of the proof, and neither
are those whose answers the training has learned from: the sample could not tell about the others.
"""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.review.bands import Recent, ReviewState, read_edges
from app.core.clusterings.review.collection import Ordered
from app.core.clusterings.review.queries import Lineage, placed_by_hand
from app.core.platform.tables import CARRIED, EXCLUDED, Assignment, Clustering, Image, Review

_FETCH_ROWS = 10_000
Bools = npt.NDArray[np.bool_]


class Order(NamedTuple):
    """All photos in random order; answers and edits do not change it."""

    ids: npt.NDArray[np.bytes_]
    by_id: npt.NDArray[np.int64]  # positions in the order of the ids
    probabilities: npt.NDArray[np.float32]
    bands: npt.NDArray[np.uint8]

    def positions(self, ids: list[str]) -> npt.NDArray[np.int64]:
        """Of those that there are."""
        wanted = np.array(ids, dtype=self.ids.dtype)
        sorted_ids = self.ids[self.by_id]
        place = np.minimum(np.searchsorted(sorted_ids, wanted), max(len(sorted_ids) - 1, 0))
        if not len(sorted_ids):
            return np.empty(0, np.int64)
        return np.asarray(self.by_id[place[sorted_ids[place] == wanted]], np.int64)


@dataclass(frozen=True, kw_only=True)
class Collection:
    order: Order
    inside: npt.NDArray[np.int64]  # positions of the photos to prove
    photos: Ordered
    images: int  # of the clustering
    excluded: int
    left: int  # photos that are finished only if people answer about them

    @property
    def unseen(self) -> npt.NDArray[np.int64]:
        """Positions in the order."""
        return self.inside[~self.photos.seen]


_orders: Recent[Order] = Recent()


def read_collection(session: Session, state: ReviewState) -> Collection:
    clustering = state.clustering
    key = (clustering.id, clustering.image_count)
    order = _orders.get(key, lambda: _read_order(session, clustering))
    known = _read_known(session, clustering, order, state.lineage)
    by_hand = _read_placed_by_hand(session, clustering, order) & ~known.seen
    inside = np.flatnonzero(~(known.carried | by_hand))
    bands, seen = order.bands[inside], known.seen[inside]
    n_bands = len(state.edges) + 1
    doubt = np.bincount(bands, 1 - order.probabilities[inside], n_bands)
    photos = Ordered(
        bands=bands,
        seen=seen,
        wrong=known.wrong[inside],
        doubts=doubt / np.maximum(np.bincount(bands, minlength=n_bands), 1),
        confirmed=known.confirmed,
    )
    unseen = int((~seen).sum())
    left = len(order.ids) - state.excluded - known.confirmed - unseen
    return Collection(
        order=order,
        inside=inside,
        photos=photos,
        images=len(order.ids),
        excluded=state.excluded,
        left=max(left, 0),
    )


def _read_order(session: Session, clustering: Clustering) -> Order:
    edges = read_edges(session, clustering)
    rows = session.execute(
        select(Assignment.image_id, Image.sha256, Assignment.probability)
        .join(Image, Image.id == Assignment.image_id)
        .where(Assignment.clustering_id == clustering.id)
        .execution_options(yield_per=_FETCH_ROWS)
    )
    ids, keys, probabilities = [], [], []
    for image_id, sha256, probability in rows:
        ids.append(image_id.encode())
        keys.append(hashlib.blake2b(sha256.encode(), digest_size=8).digest())
        probabilities.append(probability)
    names = np.array(ids, dtype="S") if ids else np.empty(0, "S1")
    order = np.lexsort((names, np.frombuffer(b"".join(keys), dtype=">u8")))
    names, sure = names[order], np.array(probabilities, np.float64)[order]
    # In double precision: an image has the same band here, in SQL and in an export.
    bands = np.searchsorted(np.array(edges), sure, side="right").astype(np.uint8)
    return Order(names, np.argsort(names), sure.astype(np.float32), bands)


class _Known(NamedTuple):
    seen: Bools
    wrong: Bools
    carried: Bools  # answered before the training
    confirmed: int


def _read_known(session: Session, clustering: Clustering, order: Order, lineage: Lineage) -> _Known:
    rows = session.execute(
        select(
            Review.image_id,
            Review.cluster_id,
            Review.belongs_to,
            Assignment.cluster_id,
            Review.stratum,
        )
        .join(
            Assignment,
            (Assignment.clustering_id == Review.clustering_id)
            & (Assignment.image_id == Review.image_id),
        )
        .where(Review.clustering_id == clustering.id)
        .execution_options(yield_per=_FETCH_ROWS)
    )
    seen, wrong, carried, confirmed = [], [], [], 0
    for image_id, raw_asked, raw_said, current, stratum in rows:
        asked = lineage.now(raw_asked)
        said = None if raw_said is None else lineage.now(raw_said)
        confirmed += said == current != EXCLUDED
        if stratum == CARRIED:
            carried.append(image_id)
        elif said != asked:
            wrong.append(image_id)
        elif current == asked:  # a right one that was moved since is asked about again
            seen.append(image_id)
    flags = [_flags(order, ids) for ids in (seen + wrong, wrong, carried)]
    return _Known(flags[0], flags[1], flags[2], confirmed)


def _read_placed_by_hand(session: Session, clustering: Clustering, order: Order) -> Bools:
    """Placed or excluded by hand."""
    excluded = select(Assignment.image_id).where(
        Assignment.clustering_id == clustering.id, Assignment.cluster_id == EXCLUDED
    )
    ids = [*session.scalars(excluded), *session.scalars(placed_by_hand(clustering.id))]
    return _flags(order, ids)


def _flags(order: Order, ids: list[str]) -> Bools:
    found = np.zeros(len(order.ids), bool)
    if ids:
        found[order.positions(ids)] = True
    return found


def band_start(edges: list[float], band: int) -> float:
    """The lowest probability of a band."""
    return edges[band - 1] if band else 0.0
