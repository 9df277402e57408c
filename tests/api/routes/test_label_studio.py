"""A model as a machine learning backend of Label Studio, called as Label Studio does."""

import base64
import warnings
from importlib import import_module
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from app.core.platform.tables import Model
from app.core.runtime import Runtime
from tests.api.conftest import Json, MakeClustering
from tests.conftest import MakeClient, MakeSettings
from tests.images import jpeg_bytes
from tests.keys import bearer, make_key

_URL = "/v1/label-studio/cats-dogs"
_LABELS = ("cluster 0", "cluster 1", "cluster 2")
_CHOICES = "".join(f'<Choice value="{label}"/>' for label in _LABELS)
_CONFIG = (
    '<View><Image name="photo" value="$image"/>'
    f'<Choices name="kind" toName="photo">{_CHOICES}</Choices></View>'
)
_DATA = "data:image/jpeg;base64," + base64.b64encode(jpeg_bytes()).decode()


@pytest.fixture
def image_id(client: TestClient, dataset: Json, make_clustering: MakeClustering) -> str:
    """Of an image of a service with the model `cats-dogs`."""
    make_clustering(dataset["id"])
    found: str = client.get(f"/v1/datasets/{dataset['id']}/images").json()["data"][0]["id"]
    return found


def _request(*images: object, config: str = _CONFIG) -> Json:
    """The body that Label Studio sends."""
    tasks = [{"id": i, "data": {"image": image}} for i, image in enumerate(images)]
    return {
        "tasks": tasks,
        "model_version": None,
        "project": "1.1700000000",
        "label_config": config,
        "params": {"login": None, "password": None, "context": None},
    }


def _predict(client: TestClient, *images: object, **options: Any) -> list[Json]:
    answer = client.post(f"{_URL}/predict", json=_request(*images, **options))
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    assert body["model_version"] == "cats-dogs/versions/1"
    results: list[Json] = body["results"]
    assert len(results) == len(images)
    return results


def test_a_project_is_connected(client: TestClient, image_id: str) -> None:
    health = client.get(f"{_URL}/health")
    assert (health.status_code, health.json()["status"]) == (200, "UP")
    body = {
        "project": "1.1700000000",
        "schema": _CONFIG,
        "hostname": "http://localhost:8080",
        "access_token": "a-token",
        "extra_params": None,
    }
    found = client.post(f"{_URL}/setup", json=body)
    assert (found.status_code, found.json()) == (200, {"model_version": "cats-dogs/versions/1"})


def test_a_project_without_choices_is_refused(client: TestClient, image_id: str) -> None:
    answer = client.post(f"{_URL}/setup", json={"schema": "<View/>"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert "Choices" in answer.json()["detail"]


def test_each_kind_of_image_gets_a_choice(client: TestClient, image_id: str) -> None:
    links = (f"/v1/images/{image_id}/content", f"https://temi.example/v1/images/{image_id}/content")
    expected = client.post("/v1/models/cats-dogs:predict", json={"image_ids": [image_id]}).json()[
        "data"
    ][0]
    embedded, *linked = _predict(client, _DATA, *links)
    assert embedded["result"][0]["value"]["choices"][0] in _LABELS
    for found in linked:
        assert found["result"][0]["value"] == {"choices": [expected["label"]]}
        assert found["score"] == expected["probability"]


def test_label_studios_models_accept_the_predictions(client: TestClient, image_id: str) -> None:
    with warnings.catch_warnings():  # deprecations in them
        warnings.simplefilter("ignore")
        sdk: Any = import_module("label_studio_sdk.label_interface")
        objects: Any = import_module("label_studio_sdk.label_interface.objects")
    (found,) = _predict(client, _DATA)
    found.pop("error")
    objects.PredictionValue.model_validate(found)
    assert sdk.LabelInterface(_CONFIG).validate_prediction(found)


_BAD: list[tuple[object, str]] = [
    ("https://example.org/cat.jpg", "url_forbidden"),  # the setting is off
    ("http://127.0.0.1/cat.jpg", "url_forbidden"),
    ("/data/upload/1/cat.jpg", "url_forbidden"),
    ("file:///etc/passwd", "url_forbidden"),
    ("", "url_forbidden"),
    ("data:image/png;base64,???", "image_undecodable"),
    ("data:text/plain,hello", "image_undecodable"),
    ("data:image/png;base64,aGVsbG8=", "image_undecodable"),
    ("/v1/images/img_none/content", "url_unreachable"),
    (None, "no_image"),
    ({"a": 1}, "no_image"),
]


def test_a_task_without_an_image_has_an_error(client: TestClient, image_id: str) -> None:
    *bad, good = _predict(client, *[image for image, _ in _BAD], _DATA)
    assert [one["error"]["code"] for one in bad] == [code for _, code in _BAD]
    assert all((one["result"], one["score"]) == ([], 0.0) for one in bad)
    assert good["result"]


def test_private_addresses_are_never_fetched(
    make_client: MakeClient, make_settings: MakeSettings, image_id: str
) -> None:
    client = make_client(make_settings(source_urls=True))
    for found in _predict(client, "http://127.0.0.1:1/a.jpg", "http://169.254.169.254/a.jpg"):
        assert found["error"]["code"] == "url_forbidden"


def test_a_cluster_without_a_choice_has_no_result(client: TestClient, image_id: str) -> None:
    config = _CONFIG.replace(_CHOICES, '<Choice value="birds"/>')
    (found,) = _predict(client, _DATA, config=config)
    assert (found["result"], found["error"]["code"]) == ([], "no_choice")


def test_other_bodies_are_refused(client: TestClient, image_id: str) -> None:
    headers = {"Content-Type": "application/json"}
    for body in (
        b"",
        b"[]",
        b'{"tasks": []}',
        b'{"tasks": [], "label_config": "<View/>"}',
        b'{"tasks": [{"data": 1}], "label_config": "<View/>"}',
        b'{"tasks": {"a": 1}, "label_config": "<View/>"}',
    ):
        answer = client.post(f"{_URL}/predict", content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), body


def test_too_many_tasks(
    make_client: MakeClient, make_settings: MakeSettings, image_id: str
) -> None:
    client = make_client(make_settings(max_predict_files=2))
    answer = client.post(f"{_URL}/predict", json=_request(*[_DATA] * 3))
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "tasks")


def test_a_missing_model(client: TestClient) -> None:
    for method, path in (("GET", "health"), ("POST", "setup"), ("POST", "predict")):
        answer = client.request(
            method, f"/v1/label-studio/none/{path}", json=_request(_DATA) | {"schema": _CONFIG}
        )
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_the_key_is_the_password_of_basic_authentication(
    client: TestClient, runtime: Runtime, image_id: str
) -> None:
    """Label Studio knows no other authentication."""
    _, key = make_key(runtime, tenant="default", scopes=["predict"])
    _, foreign = make_key(runtime, tenant="other", scopes=["predict"])
    _, reader = make_key(runtime, tenant="default", scopes=["read"])
    _forget_that_no_key_exists(client)
    for sent, status in {key: 200, foreign: 404, reader: 403, "wrong": 401, "": 401}.items():
        assert client.get(f"{_URL}/health", auth=("temi", sent)).status_code == status
    assert client.get(f"{_URL}/health", headers=bearer(key)).status_code == 200
    # Nowhere else: browsers send such passwords to a site on their own.
    assert client.get("/v1/datasets", auth=("temi", reader)).status_code == 401
    (found,) = client.post(
        f"{_URL}/predict", json=_request(f"/v1/images/{image_id}/content"), auth=("temi", key)
    ).json()["results"]
    assert found["result"]


def test_images_of_other_tenants_are_unknown(
    client: TestClient, runtime: Runtime, image_id: str
) -> None:
    _, key = make_key(runtime, tenant="other", scopes=["predict"])
    _forget_that_no_key_exists(client)
    with runtime.db.write() as session:
        session.execute(update(Model).values(tenant="other"))
    body = _request(f"/v1/images/{image_id}/content")
    answer = client.post(f"{_URL}/predict", json=body, headers=bearer(key)).json()
    assert answer["results"][0]["error"]["code"] == "url_unreachable"


def _forget_that_no_key_exists(client: TestClient) -> None:
    """The API looks for the first key only every few seconds."""
    app: Any = client.app
    app.state.access.keys.clear()
