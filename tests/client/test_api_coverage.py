"""The client has a method for every route, and the service's lists of values."""

import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest

from temi_client import Answer, ApiError, JobKind, JobStatus, ListedKind, TemiClient
from tests.client.live import FILES, Live, Route
from tests.images import zip_of

_WITHOUT_METHOD = {
    # For operators of the service.
    ("GET", "/livez"),
    ("GET", "/metrics"),
    # Needs an export; test_clusterings has one.
    ("GET", "/v1/exports/{export_id}/content"),
}
# The Open Inference Protocol and Label Studio have clients of their own; see test_oip_triton.
_PROTOCOLS = ("/v2", "/v1/label-studio")
# Methods that call other methods.
_COMPOSED = {"close", "wait", "watch", "base_url"}
Call = Callable[[TemiClient, Path], Any]

CALLS: dict[str, Call] = {
    "ready": lambda c, _: c.ready(),
    # uploads
    "upload_dataset": lambda c, file: c.upload_dataset(file),
    "create_dataset": lambda c, _: c.create_dataset({"type": "folder", "path": "/x"}, name="x"),
    "upload_manifest": lambda c, file: c.upload_manifest(file.with_suffix(".csv")),
    "append_images": lambda c, file: c.append_images("ds_1", file),
    "append_source": lambda c, _: c.append_source("ds_1", {"type": "folder", "path": "/x"}),
    "append_manifest": lambda c, file: c.append_manifest("ds_1", file.with_suffix(".csv")),
    "upload_resumable": lambda c, file: c.upload_resumable(file),
    "upload_limits": lambda c, _: c.upload_limits(),
    "upload_state": lambda c, _: c.upload_state("up_1"),
    "delete_upload": lambda c, _: c.delete_upload("up_1"),
    # datasets
    "datasets": lambda c, _: c.datasets(),
    "dataset": lambda c, _: c.dataset("ds_1"),
    "images": lambda c, _: c.images("ds_1"),
    "image_cursors": lambda c, _: c.image_cursors("ds_1"),
    "issues": lambda c, _: c.issues("ds_1"),
    "duplicates": lambda c, _: c.duplicates("ds_1", kind="exact"),
    "rename_dataset": lambda c, _: c.rename_dataset("ds_1", "x"),
    "delete_dataset": lambda c, _: c.delete_dataset("ds_1"),
    "delete_images": lambda c, _: c.delete_images("ds_1", ["img_1"]),
    "search": lambda c, _: c.search("ds_1", text="a red car"),
    "labels": lambda c, _: c.labels("ds_1"),
    "save_labels": lambda c, file: c.save_labels("ds_1", file.with_name("labels")),
    # images
    "image": lambda c, _: c.image("img_1"),
    "image_content": lambda c, file: c.image_content(_first_image_id(c), file.with_name("image")),
    "thumbnail": lambda c, _: c.thumbnail("img_1"),
    "image_labels": lambda c, _: c.image_labels("img_1"),
    "neighbors": lambda c, _: c.neighbors("img_1"),
    "delete_image": lambda c, _: c.delete_image("img_1"),
    # jobs
    "create_job": lambda c, _: c.create_job(dataset_id="ds_1", n_clusters=2),
    "cluster": lambda c, _: c.cluster("ds_1", 2),
    "sweep": lambda c, _: c.sweep("ds_1", parameter="n_clusters", values=[2, 3]),
    "finetune": lambda c, _: c.finetune("pets", epochs=1),
    "predict_dataset": lambda c, _: c.predict_dataset("pets", "ds_1"),
    "map": lambda c, _: c.map("ds_1", perplexity=5),
    "export": lambda c, _: c.export("cl_1", "csv"),
    "gather": lambda c, _: c.gather("pets"),
    "jobs": lambda c, _: c.jobs(),
    "job": lambda c, _: c.job("job_1"),
    "cancel": lambda c, _: c.cancel("job_1"),
    "retry": lambda c, _: c.retry("job_1"),
    "delete_job": lambda c, _: c.delete_job("job_1"),
    "logs": lambda c, _: c.logs("job_1"),
    "curves": lambda c, _: c.curves("job_1"),
    "job_plot": lambda c, _: c.job_plot("job_1"),
    "download_map": lambda c, file: c.download_map("job_1", file.with_name("map")),
    # clusterings
    "clusterings": lambda c, _: c.clusterings(),
    "set_current_clustering": lambda c, _: c.set_current_clustering("ds_1", "cl_1"),
    "rollback_current_clustering": lambda c, _: c.rollback_current_clustering("ds_1"),
    "current_clustering_history": lambda c, _: c.current_clustering_history("ds_1"),
    "clustering": lambda c, _: c.clustering("cl_1"),
    "delete_clustering": lambda c, _: c.delete_clustering("cl_1"),
    "statistics": lambda c, _: c.statistics("cl_1"),
    "clusters": lambda c, _: c.clusters("cl_1"),
    "get_cluster": lambda c, _: c.get_cluster("cl_1", 0),
    "cluster_images": lambda c, _: c.cluster_images("cl_1", 0),
    "cluster_image_cursors": lambda c, _: c.cluster_image_cursors("cl_1", 0),
    "similar_clusters": lambda c, _: c.similar_clusters("cl_1", 0),
    "name_suggestions": lambda c, _: c.name_suggestions("cl_1"),
    "hierarchy": lambda c, _: c.hierarchy("cl_1", 2),
    "assignments": lambda c, _: c.assignments("cl_1"),
    "contact_sheet": lambda c, _: c.contact_sheet("cl_1", 0),
    "plot": lambda c, _: c.plot("cl_1", "sizes"),
    "operations": lambda c, _: c.operations("cl_1"),
    "rename_cluster": lambda c, _: c.rename_cluster("cl_1", 0, "x", revision=1),
    "merge_clusters": lambda c, _: c.merge_clusters("cl_1", [0, 1], revision=1),
    "split_cluster": lambda c, _: c.split_cluster("cl_1", 0, revision=1),
    "preview_split": lambda c, _: c.preview_split("cl_1", 0),
    "move_images": lambda c, _: c.move_images("cl_1", ["img_1"], cluster_id=0, revision=1),
    "exclude_images": lambda c, _: c.exclude_images("cl_1", ["img_1"], revision=1),
    "undo": lambda c, _: c.undo("cl_1", revision=1),
    "redo": lambda c, _: c.redo("cl_1", revision=1),
    "changes": lambda c, _: c.changes("cl_2", "cl_1"),
    "changed_images": lambda c, _: c.changed_images("cl_2", "cl_1", 0, into=[1]),
    "adopt": lambda c, _: c.adopt("cl_2", "cl_1", revision=1, since_revision=1),
    # review
    "review": lambda c, _: c.review("cl_1"),
    "review_queue": lambda c, _: c.review_queue("cl_1"),
    "review_answers": lambda c, _: c.review_answers("cl_1"),
    "answer_review": lambda c, _: c.answer_review(
        "cl_1", [Answer(image_id="img_1", cluster_id=0, answer="yes")]
    ),
    "withdraw_answer": lambda c, _: c.withdraw_answer("cl_1", "img_1"),
    # exports
    "exports": lambda c, _: c.exports(),
    "get_export": lambda c, _: c.get_export("exp_1"),
    "download_export": lambda c, file: c.download_export("exp_1", file.with_name("export")),
    "delete_export": lambda c, _: c.delete_export("exp_1"),
    # models
    "models": lambda c, _: c.models(),
    "model": lambda c, _: c.model("pets"),
    "model_versions": lambda c, _: c.model_versions("pets"),
    "model_version": lambda c, _: c.model_version("pets", 1),
    "delete_model": lambda c, _: c.delete_model("pets"),
    "delete_version": lambda c, _: c.delete_version("pets", 1),
    "compare_versions": lambda c, _: c.compare_versions("pets", 1, 2),
    "export_version": lambda c, file: c.export_version("pets", 1, file.with_name("model")),
    "import_version": lambda c, file: c.import_version(file),
    "rollback_alias": lambda c, _: c.rollback_alias("pets", "live"),
    "alias_history": lambda c, _: c.alias_history("pets", "live"),
    "calibration": lambda c, _: c.calibration("pets", 1),
    "calibrate": lambda c, _: c.calibrate("pets", 1),
    "calibrations": lambda c, _: c.calibrations("pets", 1),
    "drift": lambda c, _: c.drift("pets", 1),
    "version_plot": lambda c, _: c.version_plot("pets", 1, "reliability"),
    "set_alias": lambda c, _: c.set_alias("pets", "live", 1),
    "delete_alias": lambda c, _: c.delete_alias("pets", "live"),
    "predict": lambda c, file: _predict(c, file),
    "predict_images": lambda c, _: c.predict_images("pets", ["img_1"]),
    "predict_embeddings": lambda c, _: c.predict_embeddings("pets", [[0.0]]),
    "loaded_models": lambda c, _: c.loaded_models(),
    # refused images
    "refused": lambda c, _: c.refused("pets"),
    "delete_all_refused": lambda c, _: c.delete_all_refused("pets"),
    "refused_images": lambda c, _: c.refused_images("pets"),
    "refused_content": lambda c, file: c.refused_content("rfi_1", file.with_name("refused")),
    "refused_thumbnail": lambda c, _: c.refused_thumbnail("rfi_1"),
    "delete_refused": lambda c, _: c.delete_refused("rfi_1"),
    "proposals": lambda c, _: c.proposals("pets"),
    "proposal": lambda c, _: c.proposal("prp_1"),
    "accept_proposal": lambda c, _: c.accept_proposal("prp_1", new_cluster="x"),
    "dismiss_proposal": lambda c, _: c.dismiss_proposal("prp_1"),
    "workers": lambda c, _: c.workers(),
    "system": lambda c, _: c.system(),
    # access; create_key is last, because all requests after it need a key
    "keys": lambda c, _: c.keys(),
    "revoke_key": lambda c, _: c.revoke_key("key_1"),
    "audit": lambda c, _: c.audit(),
    "create_key": lambda c, _: c.create_key("x"),
}


def _predict(client: TemiClient, file: Path) -> None:
    for version in (None, 1):
        with suppress(ApiError):
            client.predict("pets", [file], version=version)


def _first_image_id(client: TemiClient) -> str:
    """Returns an existing image: the download reads its metadata first."""
    (dataset,) = (found for found in client.datasets() if found.image_count)
    return next(client.images(dataset.id)).id


@pytest.fixture
def requested(live: Live, tmp_path: Path) -> dict[str, set[Route]]:
    """The routes that each method requests. Most ids do not exist, but the routes do."""
    file = tmp_path / "photos.zip"
    file.write_bytes(zip_of(FILES))
    file.with_suffix(".csv").write_text("path\na.jpg\n")
    found: dict[str, set[Route]] = {}
    with live.client() as client:
        for name, call in CALLS.items():
            live.routes.clear()
            with suppress(ApiError):
                answer = call(client, file)
                if isinstance(answer, Iterable) and not isinstance(answer, bytes):
                    list(answer)
            found[name] = set(live.routes)
    return found


def test_every_route_has_a_method_and_every_method_a_route(
    live: Live, requested: dict[str, set[Route]]
) -> None:
    offered = {
        (method.upper(), path)
        for path, item in live.openapi()["paths"].items()
        for method in item
        if not path.endswith("/events") and not path.startswith(_PROTOCOLS)
    }
    assert offered - _WITHOUT_METHOD - set().union(*requested.values()) == set()
    unknown = {name for name, routes in requested.items() if not routes <= offered}
    assert unknown == set()
    assert all(requested.values())


def test_every_method_is_called() -> None:
    public = {
        name
        for name, _ in inspect.getmembers(TemiClient)
        if not name.startswith("_") and name not in _COMPOSED
    }
    assert public == set(CALLS)


def test_job_kinds_and_statuses_are_those_of_the_service(live: Live) -> None:
    api = live.openapi()
    jobs = api["paths"]["/v1/jobs"]
    all_schemas = api["components"]["schemas"]
    bodies = all_schemas["JobCreate"]["oneOf"]
    schemas = [all_schemas[one["$ref"].rsplit("/", 1)[-1]] for one in bodies]
    assert [schema["properties"]["kind"]["const"] for schema in schemas] == list(get_args(JobKind))
    listed = {one["name"]: one["schema"] for one in jobs["get"]["parameters"]}
    for name, values in (("kind", ListedKind), ("status", JobStatus)):
        assert set(listed[name]["anyOf"][0]["enum"]) == set(get_args(values))
