from typing import Any

import pytest

from app.core.jobs.requests.sweep import SweepCreate
from app.core.platform.errors import InvalidRequest
from app.core.platform.settings import Settings
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from temi.analysis.sweep import train_model
from tests.worker.conftest import Claimed
from tests.worker.job_steps import LABELS, PICTURES, create, curve, result_of
from tests.worker.tiny import add_dataset
from worker.jobs import sweep
from worker.jobs.sweep import run_sweep

pytestmark = pytest.mark.usefixtures("tiny")


def request_of(dataset_id: str, **changes: Any) -> SweepCreate:
    given: dict[str, Any] = {"backbone": "efficientnet_lite0", "seed": 0, "n_heads": 2, "steps": 40}
    given["precision"] = "float32"
    return SweepCreate(kind="sweep", dataset_id=dataset_id, **(given | changes))


def sweep_job(runtime: Runtime, dataset_id: str, **changes: Any) -> Job:
    return create(runtime, request_of(dataset_id, **changes))


def test_betas_are_compared(any_runtime: Runtime, claimed: Claimed) -> None:
    dataset_id = add_dataset(any_runtime, PICTURES, LABELS)
    job = sweep_job(
        any_runtime, dataset_id, parameter="beta", values=[0.7, 0.51, 0.7], n_clusters=3
    )

    run_sweep(claimed(any_runtime, job.id))

    result = result_of(any_runtime, job)
    assert result["parameter"] == "beta"
    assert [point["beta"] for point in result["points"]] == [0.51, 0.7]
    for point in result["points"]:
        assert set(point) == {
            "beta",
            "occupancy_entropy",
            "conditional_entropy",
            "mean_probability",
            "size_kl",
            "loss",
            "accuracy",
            "clustering_id",
            "model",
        }
    assert result["suggested"] in (None, 0.51, 0.7)
    assert curve(any_runtime, job) == {1: result["points"][0], 2: result["points"][1]}


def test_numbers_of_clusters_are_compared(runtime: Runtime, claimed: Claimed) -> None:
    dataset_id = add_dataset(runtime, PICTURES)
    job = sweep_job(runtime, dataset_id, parameter="n_clusters", values=[3, 9], steps=120)

    run_sweep(claimed(runtime, job.id))

    result = result_of(runtime, job)
    assert [point["n_clusters"] for point in result["points"]] == [3, 9]
    assert [point["accuracy"] for point in result["points"]] == [None, None]
    assert result["suggested"] == 3


def test_finished_values_survive_a_crash(
    runtime: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset_id = add_dataset(runtime, PICTURES)
    job = sweep_job(runtime, dataset_id, parameter="n_clusters", values=[2, 3, 4])
    context = claimed(runtime, job.id)
    trained: list[int | str] = []

    def crash(*args: Any, **options: Any) -> Any:
        if len(trained) == 2:
            trained.append("crash")
            raise KeyboardInterrupt
        trained.append(args[2].n_clusters)
        return train_model(*args, **options)

    monkeypatch.setattr(sweep, "train_model", crash)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(context)
    run_sweep(context)

    assert trained == [2, 3, "crash", 4]
    assert len(result_of(runtime, job)["points"]) == 3


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"parameter": "beta"}, "n_clusters"),
        ({"parameter": "beta", "n_clusters": 3, "beta": 0.6}, "beta"),
        ({"parameter": "n_clusters", "n_clusters": 3}, "n_clusters"),
        ({"parameter": "beta", "n_clusters": 3, "values": [0.5]}, "values"),
        ({"parameter": "beta", "n_clusters": 3, "values": [0.6, 1.1]}, "values"),
        ({"parameter": "beta", "n_clusters": 3, "values": [float("nan")]}, "values"),
        ({"parameter": "beta", "n_clusters": 31}, "n_clusters"),
        ({"parameter": "n_clusters", "values": [2.5]}, "values"),
        ({"parameter": "n_clusters", "values": [1.0]}, "values"),
        ({"parameter": "n_clusters", "values": [31.0]}, "values"),
        ({"parameter": "n_clusters", "values": [float("inf")]}, "values"),
        ({"parameter": "n_clusters", "n_neighbors": 30}, "n_neighbors"),
    ],
)
def test_invalid_settings_are_refused_by_name(
    runtime: Runtime, settings: Settings, changes: dict[str, Any], field: str
) -> None:
    request = request_of(add_dataset(runtime, PICTURES), **changes)

    def ask() -> None:
        request.check(settings)
        create(runtime, request)

    with pytest.raises(InvalidRequest) as refused:
        ask()
    assert refused.value.errors[0].field == field


def test_grids_fit_the_dataset(runtime: Runtime) -> None:
    dataset_id = add_dataset(runtime, PICTURES)
    sizes = sweep_job(runtime, dataset_id, parameter="n_clusters")
    betas = sweep_job(runtime, dataset_id, parameter="beta", n_clusters=3)
    assert sizes.config["values"] == [2, 3, 5]
    assert len(betas.config["values"]) == 10
