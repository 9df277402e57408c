import io
import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

from app.core.exports.label_studio import write
from tests.core.exports.sources import excluded, row, source_of

CLUSTERS = {0: "cats", 1: 'a "<b>" & \u0007c', 2: "cats"}


@pytest.fixture(scope="module")
def sdk() -> Any:
    """Label Studio's own models; they raise deprecation warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from label_studio_sdk import label_interface
        from label_studio_sdk.label_interface import objects
    assert label_interface.objects is objects
    return label_interface


def written(folder: Path) -> tuple[Any, str]:
    rows = [
        row(0, probability=0.75, attributes={"camera": "x"}),
        row(1, cluster_id=1),
        row(2, cluster_id=2),
        excluded(3),
    ]
    out = io.BytesIO()
    write(source_of(folder, rows, CLUSTERS), out)
    archive = zipfile.ZipFile(out)
    assert archive.namelist() == ["tasks.json", "labeling_config.xml"]
    return json.loads(archive.read("tasks.json")), archive.read("labeling_config.xml").decode()


def test_label_studios_models_accept_the_export(tmp_path: Path, sdk: Any) -> None:
    tasks, config = written(tmp_path)
    interface = sdk.LabelInterface(config)
    interface.validate()
    for task in tasks:
        sdk.objects.TaskValue.model_validate(task)
        assert interface.validate_task({"data": task["data"]})
        for prediction in task["predictions"]:
            sdk.objects.PredictionValue.model_validate(prediction)
            assert interface.validate_prediction(prediction)
    choices = interface.get_control("cluster").labels
    assert choices == ["cats", 'a "<b>" & c']


def test_tasks(tmp_path: Path) -> None:
    tasks, _ = written(tmp_path)
    assert tasks[0]["data"] == {
        "image": "/v1/images/img_0/content",
        "image_id": "img_0",
        "name": "photos/0.png",
        "true_label": None,
        "split": "train",
        "attributes": {"camera": "x"},
    }
    prediction = tasks[0]["predictions"][0]
    assert (prediction["model_version"], prediction["score"]) == ("pets/versions/2", 0.75)
    assert prediction["result"][0]["value"] == {"choices": ["cats"]}
    assert tasks[3]["predictions"] == []


def test_label_studios_models_refuse_a_wrong_choice(tmp_path: Path, sdk: Any) -> None:
    tasks, config = written(tmp_path)
    prediction = tasks[0]["predictions"][0]
    prediction["result"][0]["value"] = {"choices": ["birds"]}
    assert not sdk.LabelInterface(config).validate_prediction(prediction)


def test_links_begin_with_the_address_of_the_service(tmp_path: Path) -> None:
    out = io.BytesIO()
    write(source_of(tmp_path, [row(0)], url_base="https://temi.example.org"), out)
    (task,) = json.loads(zipfile.ZipFile(out).read("tasks.json"))
    assert task["data"]["image"] == "https://temi.example.org/v1/images/img_0/content"
