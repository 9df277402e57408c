from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from app.core.jobs.requests.finetune import FinetuneCreate
from app.core.jobs.requests.predict import PredictCreate
from app.core.models import files as model_files
from app.core.models.files import ModelFiles
from app.core.platform.errors import InvalidRequest, ModelIntegrity
from app.core.platform.tables import Job, ModelVersion
from app.core.runtime import Runtime
from temi.finetune import Finetuner
from tests.conftest import MakeSettings
from tests.worker.conftest import Claimed
from tests.worker.job_steps import (
    PICTURES,
    assignments,
    cluster_job,
    clustering_of,
    create,
    curve,
    result_of,
)
from tests.worker.tiny import add_dataset
from worker.jobs.cluster import run_cluster
from worker.jobs.finetune import run_finetune
from worker.jobs.predict import run_predict
from worker.stages import resumable as resume

pytestmark = pytest.mark.usefixtures("tiny")


@pytest.fixture
def runtime(make_settings: MakeSettings) -> Any:
    """Saves a checkpoint at every report."""
    runtime = Runtime(make_settings(checkpoint_seconds=1e-9))
    yield runtime
    runtime.db.dispose()


@pytest.fixture
def trained(runtime: Runtime, claimed: Claimed) -> Job:
    job = cluster_job(runtime, add_dataset(runtime, PICTURES), model_name="colors")
    run_cluster(claimed(runtime, job.id))
    return job


def finetune_job(runtime: Runtime, **changes: Any) -> Job:
    given: dict[str, Any] = {"model": "colors", "steps": 2, "seed": 0}
    given |= {"backbone_learning_rate": 1e-3, "head_learning_rate": 1e-3}
    return create(runtime, FinetuneCreate(kind="finetune", **(given | changes)))


def version_of(runtime: Runtime, job: Job) -> ModelVersion:
    with runtime.db.read() as session:
        return session.scalars(select(ModelVersion).where(ModelVersion.job_id == job.id)).one()


def files_of(version: ModelVersion) -> ModelFiles:
    return ModelFiles.of(version.folder, version.files, version.manifest)


def test_a_new_version_has_its_own_backbone(
    runtime: Runtime, claimed: Claimed, trained: Job
) -> None:
    job = finetune_job(runtime)

    run_finetune(claimed(runtime, job.id))

    result, version = result_of(runtime, job), version_of(runtime, job)
    assert result["model"] == {"name": "colors", "version": 2}
    assert set(version.files) == {
        "model.safetensors",
        "backbone.safetensors",
        "novelty.safetensors",
        "manifest.json",
    }
    assert version.manifest["finetuned_from"] == {"name": "colors", "version": 1}
    assert version.manifest["backbone"] == "tiny"
    first = version_of(runtime, trained)
    assert version.manifest["weights_sha256"] != first.manifest["weights_sha256"]
    assert list(curve(runtime, job)) == [1, 2]
    clusterings = [clustering_of(runtime, one) for one in (trained, job)]
    assert clusterings[0].embedding_folder != clusterings[1].embedding_folder
    assert len(assignments(runtime, job)) == 30


def test_the_version_is_used_like_any_other(
    runtime: Runtime, claimed: Claimed, trained: Job
) -> None:
    """In predict jobs, in the predictor, and in further fine-tuning."""
    tuned = finetune_job(runtime, model_name="better")
    run_finetune(claimed(runtime, tuned.id))
    dataset_id = add_dataset(runtime, PICTURES)
    predict = create(runtime, PredictCreate(kind="predict", model="better", dataset_id=dataset_id))
    run_predict(claimed(runtime, predict.id))
    further = finetune_job(runtime, model="better/versions/1", dataset_id=dataset_id)
    run_finetune(claimed(runtime, further.id))

    assert assignments(runtime, predict) == assignments(runtime, tuned)
    files = files_of(version_of(runtime, tuned))
    backbone, model, detector = model_files.load_model(files, runtime.settings)
    assert detector is not None
    assert backbone.name == "tiny+finetuned"
    assert model.n_clusters == 3
    assert result_of(runtime, further)["model"] == {"name": "better", "version": 2}


@pytest.mark.parametrize("name", ["model.safetensors", "backbone.safetensors"])
def test_a_changed_file_is_not_used(
    runtime: Runtime, claimed: Claimed, trained: Job, name: str
) -> None:
    job = finetune_job(runtime)
    run_finetune(claimed(runtime, job.id))
    version = version_of(runtime, job)
    key = f"{version.folder}/{name}"
    data = bytearray(runtime.storage.read(key))
    data[-5] ^= 1
    runtime.storage.write(key, bytes(data))

    with pytest.raises(ModelIntegrity):
        model_files.load_model(files_of(version), runtime.settings)


def test_a_killed_run_resumes_to_the_same_bits(
    runtime: Runtime, claimed: Claimed, trained: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "_REPORT_SECONDS", 0.0)  # one step per report
    calm, disturbed = (finetune_job(runtime, steps=4) for _ in range(2))
    run_finetune(claimed(runtime, calm.id))
    context = claimed(runtime, disturbed.id)
    run = Finetuner.run
    steps = 0

    def crash(self: Any, n_steps: int) -> Any:
        nonlocal steps
        steps += n_steps
        if steps == 3:
            raise KeyboardInterrupt
        return run(self, n_steps)

    monkeypatch.setattr(Finetuner, "run", crash)
    with pytest.raises(KeyboardInterrupt):
        run_finetune(context)
    run_finetune(context)

    assert steps == 5  # four, and the one of the crash
    ours, theirs = version_of(runtime, calm), version_of(runtime, disturbed)
    for name in ("model.safetensors", "backbone.safetensors"):
        assert ours.files[name] == theirs.files[name]
    assert assignments(runtime, calm) == assignments(runtime, disturbed)
    assert list(curve(runtime, disturbed)) == [1, 2, 3, 4]
    np.testing.assert_array_equal(
        [point["loss"] for point in curve(runtime, calm).values()],
        [point["loss"] for point in curve(runtime, disturbed).values()],
    )


def test_invalid_settings_are_refused_by_name(runtime: Runtime, trained: Job) -> None:
    with pytest.raises(InvalidRequest) as refused:
        finetune_job(runtime, epochs=1)
    assert refused.value.errors[0].field == "epochs"
    with pytest.raises(InvalidRequest) as refused:
        finetune_job(runtime, dataset_id=add_dataset(runtime, PICTURES[:2]))
    assert refused.value.errors[0].field == "n_clusters"
    with pytest.raises(InvalidRequest) as refused:
        finetune_job(runtime, model_name="Not A Name")
    assert refused.value.errors[0].field == "model_name"
