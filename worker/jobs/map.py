"""Map jobs: project all images of a dataset to two dimensions, as an Arrow file."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.core.jobs.lifecycle import Progress, finish
from app.core.jobs.requests.map import map_key
from app.core.platform.activity import reporting
from temi.analysis.mapping import ITERATIONS, fitting_perplexity, map_rows, neighbors_for
from temi.standardize import chunks
from worker.context import JobContext
from worker.stages.base import embed, run_stage
from worker.stages.mining import PairedJob, mine_pairs
from worker.stages.registration import image_ids

_BATCH_ROWS = 65_536
_SCHEMA = pa.schema([("image_id", pa.string()), ("x", pa.float32()), ("y", pa.float32())])


@dataclass(frozen=True)
class MapJob(PairedJob):
    @property
    def key(self) -> str:
        return map_key(self.context.job.id)

    @cached_property
    def count(self) -> int:
        return len(self.embedding.hashes())

    @property
    def perplexity(self) -> float:
        return fitting_perplexity(self.context.job.config["perplexity"], self.count)

    @property
    def n_neighbors(self) -> int:
        return neighbors_for(self.perplexity, self.count)

    @property
    def n_clusters(self) -> int:
        return 0  # a map has no clusters


def run_map(context: JobContext) -> None:
    job = MapJob(context)
    embed(job)
    mine_pairs(job)
    run_stage(context, "project", lambda: project(job), done=job.storage.exists(job.key))
    result = {
        "image_count": job.count,
        "url": f"/v1/jobs/{context.job.id}/map",
        "backbone": context.job.config["backbone"],
    }
    with context.transaction() as session:
        finish(
            session,
            context.job.id,
            context.fence,
            status="succeeded",
            result=result,
            progress=Progress("project", ITERATIONS, ITERATIONS),
        )


def project(job: MapJob) -> None:
    context, config = job.context, job.context.job.config
    if job.perplexity < config["perplexity"]:
        context.log(
            f"Perplexity {config['perplexity']:g} is too high for {job.count} images; "
            f"{job.perplexity:.3g} is used."
        )
    progress = context.start_progress("project", total=ITERATIONS)
    features, neighbors = job.embedding.features(), job.neighbors.ids()
    with context.computing():  # distances and affinities come before the first iteration
        points = map_rows(
            features,
            neighbors,
            perplexity=job.perplexity,
            seed=config["seed"],
            threads=context.runtime.settings.threads,
            progress=lambda done, _total: progress.advance_to(done),
        )
    _write(job, points)


def _write(job: MapJob, points: npt.NDArray[np.float32]) -> None:
    ids = image_ids(job.context)
    with job.storage.writing(job.key) as file, pa.ipc.new_file(file, _SCHEMA) as writer:
        for rows in reporting(chunks(len(points), _BATCH_ROWS)):
            columns = [pa.array(ids[rows]), pa.array(points[rows, 0]), pa.array(points[rows, 1])]
            writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))
