"""Predict jobs: assign the images of a dataset to the clusters of a registered model."""

from worker.context import JobContext
from worker.stages.abstention import abstain, keep_novel_images
from worker.stages.base import ModelJob, embed, run_stage
from worker.stages.evaluation import EvaluationFiles, evaluate_clustering
from worker.stages.extension import register_extension
from worker.stages.registration import ClusteringResult, register_prediction


def run_predict(context: JobContext) -> None:
    job = ModelJob(context)
    evaluated = EvaluationFiles(job)
    embed(job)

    def evaluate() -> None:
        metrics, assignments = evaluate_clustering(
            context,
            job.embedding.features(),
            job.model,
            clusters=job.clusters,
            calibration=job.calibration,
        )
        evaluated.save(*abstain(job, metrics, assignments))

    run_stage(context, "evaluate", evaluate, done=evaluated.done)
    result = ClusteringResult(
        assignments=evaluated.assignments(),
        metrics=evaluated.metrics(),
        labels=job.clusters.names,
        merges=job.clusters.merges,
        embedding_folder=job.embedding.folder,
    )
    keep_novel_images(job, result.assignments)
    if not register_extension(context, job, result):
        register_prediction(context, job.model_name, job.model_version, result)
