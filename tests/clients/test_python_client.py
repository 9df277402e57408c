"""The client that openapi-python-client generates: every operation can be called."""

import importlib
import inspect
import io
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from app.core.platform.settings import Settings
from app.main import create_app
from tests.client.live import FILES, Live
from tests.images import jpeg_bytes, zip_of
from tests.model_files import DIM
from tests.waiting import LONG_SECONDS

_NAME = "generated_client"
_CONFIG = Path(__file__).parent / "python_client.yaml"
# They take media types that the generator does not know, beside those that it knows.
_PARTLY = ("POST /v1/datasets ", "POST /v1/datasets/{dataset_id}/images ")
_UPLOAD = b"four"
_LABELING = '<View><Image name="i" value="$image"/><Choices name="c" toName="i"/></View>'
_DELETIONS = ("delete_images", "delete_image", "delete_clustering", "delete_dataset")
_EDITS = ("create_operation", "adopt_clustering")
# All others succeed. These name what does not exist, or what the service must refuse.
_REFUSED = {
    "adopt_clustering": 422,  # there is no other clustering
    "append_to_upload": 404,
    "cancel_job": 409,
    "create_job": 409,  # images are being added to the dataset
    "create_key": 403,  # the first key is created on the machine
    "delete_dataset": 409,
    "delete_export": 404,
    "delete_image": 409,
    "delete_images": 409,
    "delete_refused_image": 404,
    "delete_upload": 404,
    "delete_version": 404,  # deleted with its model
    "download_export": 404,
    "dismiss_proposal": 404,
    "download_map": 404,
    "download_refused_image": 404,
    "import_version": 422,
    "accept_proposal": 404,  # no image was refused
    "add_calibration": 409,
    "list_alias_changes": 404,
    "read_changed_images": 422,  # there is no other clustering
    "read_changes": 422,
    "read_job_plot": 404,  # the job is no sweep
    "read_export": 404,
    "read_proposal": 404,
    "read_refused_thumbnail": 404,
    "read_upload": 404,
    "retry_job": 409,
    "revoke_key": 404,
    "rollback_alias": 404,
    "rollback_current_clustering": 409,  # the dataset had no other
}
_MAYBE_UNREADY = ("check_model_ready", "check_version_ready")  # while the model is loaded


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the generated package, importable."""
    folder = tmp_path_factory.mktemp("generated")
    settings = Settings(_env_file=None, data_dir=folder / "data")
    document = folder / "openapi.json"
    document.write_text(json.dumps(create_app(settings).openapi()))
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    command += ["--path", str(document), "--config", str(_CONFIG)]
    done = subprocess.run(
        [*command, "--output-path", str(folder / _NAME)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "output.txt").write_text(done.stdout + done.stderr)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    yield folder
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.split(".")[0] == _NAME]:
        del sys.modules[name]


@pytest.fixture
def operations(generated: Path) -> dict[str, ModuleType]:
    """The module of each operation by the operation's id."""
    api = importlib.import_module(f"{_NAME}.api")
    return {
        name.rpartition(".")[2]: importlib.import_module(name)
        for _, name, is_package in pkgutil.walk_packages(api.__path__, f"{api.__name__}.")
        if not is_package
    }


def _client(live: Live) -> Any:
    client = importlib.import_module(f"{_NAME}.client")
    return client.Client(base_url=live.url, timeout=LONG_SECONDS)


def _file(data: bytes) -> Any:
    types = importlib.import_module(f"{_NAME}.types")
    return types.File(payload=io.BytesIO(data), file_name="file")


def test_only_media_types_of_bodies_are_left_out(generated: Path) -> None:
    lines = (generated / "output.txt").read_text().splitlines()
    warnings = [line for line in lines if line.startswith(("WARNING", "ERROR"))]
    assert all(line.startswith("WARNING parsing ") for line in warnings)
    assert all(any(path in line for path in _PARTLY) for line in warnings), warnings
    assert "Endpoint will not be generated" not in "".join(lines)


def test_it_has_every_operation(operations: dict[str, ModuleType], live: Live) -> None:
    paths = live.openapi()["paths"].values()
    assert set(operations) == {one["operationId"] for path in paths for one in path.values()}


def _known(live: Live) -> dict[str, Any]:
    """Arguments by the names of required parameters."""
    with live.client() as client:
        (dataset,) = client.datasets()
        (clustering,) = client.clusterings()
        return {
            "dataset_id": dataset.id,
            "clustering_id": clustering.id,
            "since": clustering.id,
            "cluster_id": 0,
            "n_groups": 1,
            "image_id": next(client.images(dataset.id)).id,
            "job_id": next(job.id for job in client.jobs() if job.kind == "ingest"),
            "export_id": "exp_1",
            "upload_id": "up_1",
            "key_id": "key_1",
            "proposal_id": "prop_1",
            "refused_id": "ref_1",
            "name": "cats-dogs",
            "model": "cats-dogs",
            "alias": "live",
            "version": 1,
            "left": 1,
            "right": 1,
            "upload_length": len(_UPLOAD),
            "upload_offset": 0,
        }


def _json_body(name: str, known: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The schema and the content of an operation's body."""
    tensor = {"name": "embeddings", "datatype": "FP32", "shape": [1, DIM], "data": [0.5] * DIM}
    task = {"data": {"image": f"/v1/images/{known['image_id']}/content"}}
    bodies: dict[str, tuple[str, dict[str, Any]]] = {
        "adopt_clustering": (
            "AdoptionCreate",
            {"since": known["since"], "since_revision": 1, "decisions": []},
        ),
        "create_job": (
            "ClusterCreate",
            {"kind": "cluster", "dataset_id": known["dataset_id"], "n_clusters": 2},
        ),
        "create_key": ("KeyCreate", {"name": "another", "scopes": ["read"]}),
        "accept_proposal": ("ProposalAccept", {"new_cluster": "birds"}),
        "create_answers": (
            "AnswersCreate",
            {"answers": [{"image_id": known["image_id"], "cluster_id": 0, "answer": "yes"}]},
        ),
        "create_operation": ("RenameCreate", {"kind": "rename", "cluster_id": 0, "label": "cats"}),
        "delete_images": ("ImageDeletion", {"image_ids": [known["image_id"]]}),
        "infer": ("InferRequest", {"inputs": [tensor]}),
        "infer_with_version": ("InferRequest", {"inputs": [tensor]}),
        "predict_label_studio": ("LabelStudioTasks", {"tasks": [task], "label_config": _LABELING}),
        "set_up_label_studio": ("LabelStudioSetup", {"schema": _LABELING}),
        "predict_with_version": ("PredictBody", {"image_ids": [known["image_id"]]}),
        "preview_split": ("SplitPreviewCreate", {"parts": 2, "seed": 0}),
        "rename_dataset": ("DatasetPatch", {"name": "renamed"}),
        "search_dataset": ("SearchBody", {"image_id": known["image_id"]}),
        "set_alias": ("AliasUpdate", {"version": 1}),
        "set_current_clustering": (
            "CurrentClusteringUpdate",
            {"clustering_id": known["clustering_id"]},
        ),
    }
    return bodies.get(name)


def _arguments(name: str, known: dict[str, Any]) -> dict[str, Any]:
    """Arguments of an operation beside the required parameters."""
    models = importlib.import_module(f"{_NAME}.models")
    if (found := _json_body(name, known)) is not None:
        schema, content = found
        body = getattr(models, schema).from_dict(content)
        return {"body": body} | ({"if_match": "*"} if name in _EDITS else {})
    arguments: dict[str, dict[str, Any]] = {
        "append_images": {"body": models.AppendImagesFilesBody(files=[_file(jpeg_bytes())])},
        "create_dataset": {"body": _file(zip_of(FILES))},
        "create_upload": {"body": _file(_UPLOAD), "tus_resumable": "1.0.0"},
        "append_to_upload": {"body": _file(_UPLOAD), "tus_resumable": "1.0.0"},
        "read_upload": {"tus_resumable": "1.0.0"},
        "delete_upload": {"tus_resumable": "1.0.0"},
        "import_version": {"body": _file(b"no model")},
        "predict": {"body": models.PredictFilesBody(files=[_file(jpeg_bytes())])},
        "read_job_plot": {"name": "sweep"},
        "read_version_plot": {"plot": models.ReadVersionPlotPlot("drift")},
        "read_plot": {"name": models.ReadPlotName("sizes")},
    }
    return arguments.get(name, {})


def _call(name: str, operation: ModuleType, client: Any, known: dict[str, Any]) -> Any:
    parameters = inspect.signature(operation.sync_detailed).parameters.values()
    required = [p.name for p in parameters if p.default is inspect.Parameter.empty]
    given = {name: known[name] for name in required if name in known}
    return operation.sync_detailed(client=client, **(given | _arguments(name, known)))


def _order(name: str) -> tuple[bool, int, str]:
    """Deletions last: the others need what they delete."""
    rank = _DELETIONS.index(name) if name in _DELETIONS else -1
    return name.startswith("delete_"), rank, name


def test_every_operation_can_be_called(operations: dict[str, ModuleType], live: Live) -> None:
    known, statuses = _known(live), {}
    with _client(live) as client:
        for name in sorted(operations, key=_order):
            statuses[name] = int(_call(name, operations[name], client, known).status_code)
    refused = {name: code for name, code in statuses.items() if code >= 300}
    assert {refused.pop(name, 503) for name in _MAYBE_UNREADY} == {503}
    assert refused == _REFUSED


def test_from_images_to_predictions(operations: dict[str, ModuleType], live: Live) -> None:
    known = _known(live)

    def call(name: str, **changes: Any) -> Any:
        return _call(name, operations[name], client, known | changes).parsed

    with _client(live) as client:
        job = call("create_dataset")
        live.work(job.id)
        dataset = call("read_dataset", dataset_id=job.dataset_id)
        assert (dataset.status, dataset.image_count) == ("ready", 4)
        assert next(one.id for one in call("list_datasets").data) == dataset.id
        assert len(call("list_images", dataset_id=dataset.id).data) == 4

        clustering = call("create_job", dataset_id=dataset.id)
        assert (clustering.kind, clustering.status) == ("cluster", "queued")
        assert call("cancel_job", job_id=clustering.id).status == "cancelled"

        assert call("create_operation").revision == 2
        labels = [one.label for one in call("list_clusters").data]
        assert labels[0] == "cats"
        (found,) = call("predict").data
        assert found.label in labels
        assert found.top_k[0].probability == found.probability


def test_an_error_is_a_problem(operations: dict[str, ModuleType], live: Live) -> None:
    with _client(live) as client:
        found = operations["read_job"].sync(job_id="job_1", client=client)
    assert (found.status, found.code) == (404, "not_found")
