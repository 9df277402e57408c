"""End to end: upload, cluster, read, predict."""

import base64

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from app.core.serving.client import Serving
from tests.api.conftest import COLORS, Json, store_clustering
from tests.images import ZIP, jpeg_bytes, png_bytes
from tests.trained import EACH
from tests.waiting import wait_until


@pytest.fixture
def client(trained: Json) -> TestClient:
    found: TestClient = trained["client"]
    return found


def _predict(
    client: TestClient, *images: tuple[str, bytes], model: str = "colors", **params: object
) -> Json:
    answer = client.post(
        f"/v1/models/{model}:predict",
        files=[("files", image) for image in images],
        params={name: str(value) for name, value in params.items()},
    )
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    return body


def test_the_job_finished_all_stages(trained: Json) -> None:
    job = trained["job"]
    assert job["status"] == "succeeded", job["error"]
    assert job["result"]["model"] == {"name": "colors", "version": 1}
    assert job["result"]["metrics"]["temi"]["n_labeled"] == 3 * EACH
    assert set(job["timings"]) == {"embed", "mine", "train", "evaluate"}
    stages = [report.stage for report in trained["reports"]]
    assert list(dict.fromkeys(stages)) == ["embed", "mine", "train", "evaluate", "register"]
    assert job["progress"]["completed"] == job["progress"]["total"] == 3 * EACH


def test_the_clustering_contains_every_image(trained: Json, client: TestClient) -> None:
    url = f"/v1/clusterings/{trained['job']['result']['clustering_id']}"
    rows = client.get(f"{url}/assignments").json()["data"]
    clusters = client.get(f"{url}/clusters").json()["data"]
    assert len(rows) == sum(cluster["size"] for cluster in clusters) == 3 * EACH
    by_color = {
        color: {r["cluster_id"] for r in rows if r["name"].startswith(color)} for color in COLORS
    }
    assert all(len(found) == 1 for found in by_color.values())  # plain colors are told apart
    assert len(set.union(*by_color.values())) == 3


def test_new_images_get_labels(trained: Json, client: TestClient) -> None:
    url = f"/v1/clusterings/{trained['job']['result']['clustering_id']}/assignments"
    rows = client.get(url).json()["data"]
    known = {row["name"].partition("/")[0]: row["cluster_id"] for row in rows}
    body = _predict(client, *[(c, jpeg_bytes(v, (32, 32))) for c, v in COLORS.items()], top_k=2)
    assert body["model"] == {"name": "colors", "version": 1}
    for item in body["data"]:
        assert item["cluster_id"] == known[item["image"]]
        assert item["label"] == f"cluster {item['cluster_id']}"
        assert item["error"] is None
        assert item["probabilities"] is None
        assert len(item["top_k"]) == 2
        assert (
            item["top_k"][0]["probability"]
            == item["probability"]
            >= item["top_k"][1]["probability"]
        )


def test_a_bad_image_among_good_ones(client: TestClient) -> None:
    good = png_bytes("red", (32, 32))
    body = _predict(client, ("a", good), ("bad", b"no image"), ("c.svg", b"<svg/>"), ("a", good))
    first, bad, svg, last = body["data"]
    assert [item["image"] for item in body["data"]] == ["a", "bad", "c.svg", "a"]
    assert (bad["cluster_id"], bad["label"], bad["probability"], bad["top_k"]) == (
        None,
        None,
        None,
        [],
    )
    assert (bad["error"]["code"], svg["error"]["code"]) == (
        "image_undecodable",
        "unsupported_format",
    )
    assert first == last
    assert first["error"] is None


def test_only_bad_images(client: TestClient) -> None:
    (item,) = _predict(client, ("bad", b""))["data"]
    assert item["error"]["code"] == "image_undecodable"


def test_all_probabilities_on_request(client: TestClient) -> None:
    (item,) = _predict(client, ("a", png_bytes()), probabilities=True, top_k=100)["data"]
    assert sum(item["probabilities"]) == pytest.approx(1, abs=1e-4)
    assert len(item["top_k"]) == 3
    assert max(item["probabilities"]) == item["probability"]


def test_the_nearest_images_of_the_training(trained: Json, client: TestClient) -> None:
    plain = _predict(client, ("a", jpeg_bytes(COLORS["red"])), ("bad", b""))["data"]
    assert [item["neighbors"] for item in plain] == [None, None]
    images = [("a", jpeg_bytes(COLORS["red"])), ("bad", b""), ("b", jpeg_bytes(COLORS["blue"]))]
    red, bad, blue = _predict(client, *images, neighbors=2)["data"]
    assert {**red, "neighbors": None} == plain[0]
    assert (bad["neighbors"], bad["error"]) == (None, plain[1]["error"])
    for item, color in ((red, "red"), (blue, "blue")):
        assert [one["name"].partition("/")[0] for one in item["neighbors"]] == [color] * 2
        first, second = (one["similarity"] for one in item["neighbors"])
        assert 1 >= first >= second > 0
    assert _predict(client, ("bad", b""), neighbors=2)["data"][0]["neighbors"] is None


def test_a_stored_image_is_its_own_nearest(trained: Json, client: TestClient) -> None:
    dataset = trained["job"]["dataset_id"]
    image = client.get(f"/v1/datasets/{dataset}/images").json()["data"][0]
    url = "/v1/models/colors:predict?neighbors=1"
    (found,) = client.post(url, json={"image_ids": [image["id"]]}).json()["data"]
    assert [one["similarity"] for one in found["neighbors"]] == [1.0]
    listed = client.get(f"/v1/images/{image['id']}/neighbors?limit=1").json()["data"]
    assert listed[0]["similarity"] <= 1.0
    for neighbors in ("-1", "51", "x"):
        wrong = f"/v1/models/colors:predict?neighbors={neighbors}"
        assert client.post(wrong, json={"image_ids": [image["id"]]}).status_code == 422


def test_neighbors_of_embeddings_without_features_of_the_training(
    client: TestClient, trained: Json
) -> None:
    version = client.get("/v1/models/colors/versions/1").json()
    rows = [[1.0] * version["manifest"]["feature_dim"]]
    url = "/v1/models/colors:predict?neighbors=3"
    (found,) = client.post(url, json={"embeddings": rows}).json()["data"]
    assert len(found["neighbors"]) == 3
    too_many = client.post(url, json={"embeddings": rows * 11})
    assert (too_many.status_code, too_many.json()["errors"][0]["field"]) == (422, "neighbors")
    file = client.get("/v1/models/colors/versions/1/file").content
    imported = client.post("/v1/models:import?name=copy", content=file, headers=ZIP)
    assert imported.status_code in (200, 201), imported.text
    (found,) = client.post(url.replace("colors", "copy"), json={"embeddings": rows}).json()["data"]
    assert (found["neighbors"], found["error"]) == (None, None)


def test_by_alias_and_by_version(client: TestClient) -> None:
    client.put("/v1/models/colors/aliases/production", json={"version": 1})
    image = ("a", png_bytes())
    plain = _predict(client, image)
    for model in ("colors@production", "colors@latest", "colors/versions/1"):
        assert _predict(client, image, model=model) == plain


@pytest.mark.parametrize("query", ["top_k=0", "top_k=101", "top_k=x", "probabilities=maybe"])
def test_bad_parameters(client: TestClient, query: str) -> None:
    answer = client.post(f"/v1/models/colors:predict?{query}", files={"files": ("a", b"x")})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_images_must_be_sent_as_a_form(client: TestClient) -> None:
    for version in ("", "/versions/1"):
        url = f"/v1/models/colors{version}:predict"
        as_json = {"Content-Type": "application/json"}
        answer = client.post(url, content=png_bytes(), headers=as_json)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "files")
        answer = client.post(url, content=png_bytes(), headers={"Content-Type": "image/png"})
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_too_many_images(client: TestClient) -> None:
    files = [("files", ("a", b"x")) for _ in range(11)]
    answer = client.post("/v1/models/colors:predict", files=files)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_many_parts")


def test_a_changed_model_file_is_not_served(client: TestClient, trained: Json) -> None:
    """Changes one byte of a copy of the version, which is not loaded yet."""
    runtime: Runtime = trained["runtime"]
    version = client.get("/v1/models/colors/versions/1").json()
    store_clustering(runtime, trained["job"]["dataset_id"], model="changed")
    data = bytearray(runtime.storage.read(f"models/{version['job_id']}/model.safetensors"))
    data[len(data) // 2] ^= 1
    changed = client.get("/v1/models/changed/versions/1").json()
    runtime.storage.write(f"models/{changed['job_id']}/model.safetensors", bytes(data))
    answer = client.post("/v1/models/changed:predict", files={"files": ("a", png_bytes())})
    assert (answer.status_code, answer.json()["code"]) == (503, "model_integrity")
    assert answer.headers["Retry-After"]
    assert _predict(client, ("a", png_bytes()))["data"][0]["error"] is None  # the others go on


def test_a_full_queue_gives_429(client: TestClient) -> None:
    admission = client.app.state.serving.admission  # type: ignore[attr-defined]
    with admission.reserve() as reservation:
        reservation.add(images=admission.max_images)
        answer = client.post("/v1/models/colors:predict", files={"files": ("a", png_bytes())})
        assert (answer.status_code, answer.json()["code"]) == (429, "queue_full")
        assert int(answer.headers["Retry-After"]) >= 1
    assert (admission.images, admission.bytes) == (0, 0)
    _predict(client, ("a", png_bytes()))


def test_a_killed_prediction_process_is_replaced(client: TestClient) -> None:
    serving: Serving = client.app.state.serving  # type: ignore[attr-defined]
    before = _predict(client, ("a", png_bytes()))
    assert serving._running is not None
    serving._running.process.kill()
    serving._running.process.wait()
    assert _predict(client, ("a", png_bytes())) == before


def test_merged_clusters_are_one_in_predictions(trained: Json, client: TestClient) -> None:
    """Their probabilities are added up, and the most probable cluster is chosen afterwards."""
    clustering = f"/v1/clusterings/{trained['job']['result']['clustering_id']}"
    image = ("red", jpeg_bytes(COLORS["red"], (32, 32)))
    (before,) = _predict(client, image, probabilities=True)["data"]
    mixed = sorted(before["top_k"], key=lambda each: each["probability"])
    weak = [each["cluster_id"] for each in mixed[:2]]
    revision = client.get(clustering).headers["ETag"]
    body = {"kind": "merge", "cluster_ids": weak, "label": "others"}
    merged = client.post(f"{clustering}/operations", json=body, headers={"If-Match": revision})
    assert merged.status_code == 201, merged.text
    into = merged.json()["arguments"]["into"]
    try:

        def predicted() -> Json:
            (found,) = _predict(client, image, top_k=3, probabilities=True)["data"]
            return dict(found)

        wait_until(lambda: len(predicted()["top_k"]) == 2)  # references are read once a second
        after = predicted()
        expected = sum(before["probabilities"][number] for number in weak)
        shown = {each["cluster_id"]: each for each in after["top_k"]}
        assert shown[into]["label"] == "others"
        assert shown[into]["probability"] == pytest.approx(expected, abs=3e-6)
        (gone,) = set(weak) - {into}
        assert after["probabilities"][gone] == 0
        assert sum(after["probabilities"]) == pytest.approx(1, abs=1e-5)
        text = base64.b64encode(image[1]).decode()
        tensor: Json = {"name": "images", "datatype": "BYTES", "shape": [1], "data": [text]}
        tensor["parameters"] = {"content_type": "base64"}
        body = {"inputs": [tensor]}
        outputs = client.post("/v2/models/colors/infer", json=body).json()["outputs"]
        found = {each["name"]: each["data"] for each in outputs}
        assert found["cluster_id"] == [after["cluster_id"]]
        assert found["probabilities"] == pytest.approx(after["probabilities"], abs=1e-6)
    finally:
        headers = {"If-Match": "*"}
        client.post(f"{clustering}/operations", json={"kind": "undo"}, headers=headers)
        wait_until(lambda: len(_predict(client, image)["data"][0]["top_k"]) == 3)
