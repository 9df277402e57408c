"""Near duplicates: images that look almost like an earlier one, found among its neighbors."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sqlalchemy import delete, insert, select

from app.core.platform.activity import report_activity, reporting
from app.core.platform.tables import Dataset, Duplicate, Image
from temi.standardize import chunks, unit_rows
from worker.context import JobContext
from worker.stages.embedding_reuse import Hashes, as_keys

Ids = npt.NDArray[np.int64]

# Of 425 drawings, EfficientNet-Lite puts no two different ones above 0.91, road signs and flags
# that share a frame or their colors. Copies as JPEG (quality 90) or at twice the size all stay
# above 0.97; at three quarters of the size 94 % are above 0.95, at quality 50 three in four.
# In the middle: a wrong "duplicate" takes an image out of training, a missed one costs little.
NEAR_COSINE = 0.95
DUPLICATE_NEIGHBORS = 10  # enough to find the copies of an image
_FETCH_ROWS = 10_000


@dataclass(frozen=True, kw_only=True)
class NearDuplicates:
    """Rows that are near duplicates of an earlier row: arrays of (M,), in ascending order."""

    row: Ids
    original: Ids
    similarity: npt.NDArray[np.float32]


def first_rows(hashes: Hashes) -> Ids:
    """Returns for every row the first row with the same bytes: (N,)."""
    _, first, place = np.unique(as_keys(hashes), return_index=True, return_inverse=True)
    return np.asarray(first[place], dtype=np.int64)


def find_near(
    features: npt.NDArray[np.float32],
    neighbors: npt.NDArray[np.integer],
    rows: Ids | None,
    first: Ids,
) -> NearDuplicates:
    """Finds the connected components of pairs with a cosine of `NEAR_COSINE` or more.

    ``neighbors`` are those of ``rows``, by default of all; ``first`` is of all. Exact duplicates
    connect components but are not returned.
    """
    ones, others = _near_pairs(features, neighbors, rows)
    all_rows = np.arange(len(features))
    ones, others = np.concatenate([ones, all_rows]), np.concatenate([others, first])
    graph = coo_array((np.ones(len(ones), dtype=bool), (ones, others)), shape=(len(features),) * 2)
    _, group = connected_components(graph, directed=False)
    _, leader = np.unique(group, return_index=True)  # the first row of each group
    original = leader[group]
    row = np.flatnonzero((original != all_rows) & (first == all_rows))
    similarity = np.empty(len(row), dtype=np.float32)
    for part in chunks(len(row)):
        similarity[part] = _cosines(features, row[part], original[row[part]])
    return NearDuplicates(row=row, original=original[row], similarity=similarity)


def save_near(context: JobContext, near: NearDuplicates) -> None:
    """Replaces the near duplicates of the dataset in the database."""
    ids = _ids_of(context, np.union1d(near.row, near.original))
    columns = zip(near.row, near.original, near.similarity, strict=True)
    values = [
        {
            "image_id": ids[int(row)],
            "kind": "near",
            "dataset_id": context.job.dataset_id,
            "original_id": ids[int(original)],
            "similarity": round(float(similarity), 6),
        }
        for row, original, similarity in columns
    ]
    with context.transaction() as session:
        # The lock orders two jobs that replace the duplicates of one dataset.
        session.get_one(Dataset, context.job.dataset_id, with_for_update=True)
        session.execute(
            delete(Duplicate).where(
                Duplicate.dataset_id == context.job.dataset_id, Duplicate.kind == "near"
            )
        )
        for part in chunks(len(values)):
            session.execute(insert(Duplicate), values[part])
            report_activity()
    if values:
        context.log(f"Near duplicates found: {len(values):,}.")


def _near_pairs(
    features: npt.NDArray[np.float32], neighbors: npt.NDArray[np.integer], rows: Ids | None
) -> tuple[Ids, Ids]:
    """Returns pairs above the threshold. Neighbors are sorted, so most rows need only one."""
    ones: list[Ids] = []
    others: list[Ids] = []
    for part in chunks(len(neighbors)):
        block = np.asarray(neighbors[part])
        left = np.arange(part.start, part.stop)
        for column in range(min(DUPLICATE_NEIGHBORS, block.shape[1])):
            other = block[left - part.start, column].astype(np.int64)
            pair = (left, other) if rows is None else (rows[left], rows[other])
            alike = _cosines(features, *pair) >= NEAR_COSINE
            ones.append(pair[0][alike])
            others.append(pair[1][alike])
            left = left[alike]
            if len(left) == 0:
                break
    nothing = np.empty(0, dtype=np.int64)
    return np.concatenate([nothing, *ones]), np.concatenate([nothing, *others])


def _cosines(features: npt.NDArray[np.float32], ones: Ids, others: Ids) -> npt.NDArray[np.float32]:
    cosines: npt.NDArray[np.float32] = np.einsum(
        "nd,nd->n", unit_rows(features[ones]), unit_rows(features[others])
    )
    return np.clip(cosines, -1.0, 1.0)


def _ids_of(context: JobContext, rows: Ids) -> dict[int, str]:
    """Returns the ids of the images in these rows of the dataset."""
    statement = select(Image.id).where(Image.dataset_id == context.job.dataset_id)
    found: dict[int, str] = {}
    wanted = set(rows.tolist())
    if not wanted:
        return found
    with context.runtime.db.read() as session:
        ids = session.scalars(
            statement.order_by(Image.position).execution_options(yield_per=_FETCH_ROWS)
        )
        for row, image_id in enumerate(reporting(ids)):
            if row in wanted:
                found[row] = image_id
    return found
