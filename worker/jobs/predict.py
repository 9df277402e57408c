"""Every image of a dataset to a cluster of a model that is already there."""

import torch

from worker.context import JobContext
from worker.stages.assignment_files import AssignmentFiles
from worker.stages.base import embed, run_stage
from worker.stages.evaluation import evaluate_clustering
from worker.stages.model_job import ModelJob
from worker.stages.registration import Clustered, register_prediction


def run_predict(context: JobContext) -> None:
    torch.set_num_threads(context.runtime.settings.threads)
    job = ModelJob(context)
    found = AssignmentFiles(job)
    embed(job)

    def evaluate() -> None:
        found.save(*evaluate_clustering(context, job.embedding.features(), job.model))

    run_stage(context, "evaluate", evaluate, done=found.done)
    clustered = Clustered(
        placing=found.placing(),
        metrics=found.metrics(),
        labels=job.labels,
        embedding_folder=job.embedding.folder,
    )
    register_prediction(context, job.model_name, job.model_version, clustered)
