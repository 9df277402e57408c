"""Commands against the real API: output, files and exit codes."""

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.core.jobs.workers import Identity, record_heartbeat
from temi_client import Clustering, Dataset, Image
from tests.cli.conftest import Temi, as_json
from tests.client.fake_service import running_service
from tests.client.live import FILES, Live
from tests.images import jpeg_bytes, zip_of


@pytest.fixture
def dataset(live: Live) -> Dataset:
    with live.client() as client:
        return next(client.datasets())


@pytest.fixture
def images(live: Live, dataset: Dataset) -> list[Image]:
    with live.client() as client:
        return list(client.images(dataset.id))


@pytest.fixture
def clustering(live: Live) -> Clustering:
    with live.client() as client:
        return next(client.clusterings())


def test_datasets(temi: Temi, dataset: Dataset, images: list[Image]) -> None:
    assert dataset.id in temi("datasets", "list").stdout
    assert as_json(temi("datasets", "list", "--json"))[0]["name"] == "Cats & Dogs"
    assert "Cats & Dogs" in temi("datasets", "show", dataset.id).stdout
    assert as_json(temi("datasets", "show", dataset.id, "--json"))["image_count"] == 4
    assert "40 x 20" in temi("datasets", "images", dataset.id).stdout
    assert len(as_json(temi("datasets", "images", dataset.id, "--limit", 2, "--json"))) == 2
    assert "bad/text.jpg" in temi("datasets", "issues", dataset.id).stdout
    assert as_json(temi("datasets", "duplicates", dataset.id, "--json")) == []
    assert "similarity" in temi("datasets", "duplicates", dataset.id, "--kind", "near").stdout
    assert as_json(temi("datasets", "rename", dataset.id, "Pets", "--json"))["name"] == "Pets"
    left = temi("datasets", "delete-images", dataset.id, images[0].id, "--yes", "--json")
    assert as_json(left)["image_count"] == 3


def test_an_archive_becomes_a_dataset(live: Live, temi: Temi, tmp_path: Path) -> None:
    archive = tmp_path / "photos.zip"
    archive.write_bytes(zip_of(FILES))
    with live.working():
        done = as_json(temi("datasets", "create", archive, "--wait", "--json"))
        assert (done["status"], done["result"]["image_count"]) == ("succeeded", 4)
        resumable = temi("datasets", "create", archive, "--resumable", "--name", "x", "--wait")
        assert "4 read" in resumable.stdout
        more = tmp_path / "more.jpg"
        more.write_bytes(jpeg_bytes("pink"))
        added = temi("datasets", "append", done["dataset_id"], more, "--wait", "--json")
    assert as_json(added)["result"]["image_count"] == 1
    assert as_json(temi("datasets", "show", done["dataset_id"], "--json"))["image_count"] == 5


def test_a_dataset_from_sources_of_the_service(temi: Temi, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "1.jpg").write_bytes(jpeg_bytes())
    started = temi("datasets", "create", "--server-folder", tmp_path / "photos", "--json")
    assert as_json(started)["status"] == "queued"
    assert "temi jobs watch" in started.stderr
    manifest = tmp_path / "list.csv"
    manifest.write_text(f"path,label\n{tmp_path}/photos/1.jpg,pink\n")
    assert as_json(temi("datasets", "create", "--manifest", manifest, "--json"))["kind"] == "ingest"
    urls = tmp_path / "urls.txt"
    urls.write_text("http://127.0.0.1/1.jpg\n\n")
    assert "error" in temi("datasets", "create", "--urls-file", urls, exit_code=1).stderr
    refused = temi("datasets", "create", "--s3", "s3://bucket/photos", exit_code=1)
    assert "TEMI_SOURCE_BUCKETS" in refused.stderr
    names = {d["name"] for d in as_json(temi("datasets", "list", "--json"))}
    assert {"photos", "list"} <= names


@pytest.mark.parametrize(
    "words",
    [
        ["datasets", "create"],
        ["datasets", "create", __file__, "--s3", "s3://bucket"],
        ["datasets", "create", str(Path(__file__).parent), "--resumable"],
        ["datasets", "labels", "ds_1", "--format", "arrow"],
        ["clusterings", "merge", "cl_1", "3"],
        ["clusterings", "move", "cl_1", "img_1"],
        ["clusterings", "exclude", "cl_1"],
        ["clusterings", "exclude", "cl_1", "img_1", "--from", "0"],
        ["clusterings", "exclude", "cl_1", "img_1", "--max-probability", "0.5"],
        ["clusterings", "images", "cl_1", "0", "--sort", "best"],
        ["exports", "create", "cl_1", "--format", "docx"],
        ["jobs", "start", "cluster", "ds_1", "-k", "1"],
    ],
)
def test_a_wrong_command_line_is_exit_code_2(words: list[str]) -> None:
    assert CliRunner().invoke(app, words).exit_code == 2


def test_an_upload_is_sent_and_used(temi: Temi, tmp_path: Path) -> None:
    archive = tmp_path / "photos.zip"
    archive.write_bytes(zip_of(FILES))
    upload = as_json(temi("uploads", "send", archive, "--json"))
    assert upload["offset"] == upload["length"] == archive.stat().st_size
    assert upload["id"] in temi("uploads", "show", upload["id"]).stdout
    used = temi("datasets", "create", archive, "--resume", upload["id"], "--json")
    assert as_json(used)["status"] == "queued"
    other = as_json(temi("uploads", "send", archive, "--json"))
    temi("uploads", "delete", other["id"], "--yes")
    temi("uploads", "show", other["id"], exit_code=1)


def test_an_interrupted_upload_prints_how_to_resume(tmp_path: Path) -> None:
    archive = tmp_path / "photos.zip"
    archive.write_bytes(b"not sent anyway")
    arrived = {"Upload-Offset": "0", "Upload-Length": "15"}
    with running_service() as service:
        service.answer("GET", "/readyz", {"ready": True})
        begun = {"Location": "/v1/uploads/up_1"}
        service.answer("POST", "/v1/uploads", b"", status=201, headers=begun)
        service.answer("HEAD", "/v1/uploads/up_1", b"", headers=arrived)
        busy = {"Retry-After": "0"}
        service.answer("PATCH", "/v1/uploads/up_1", b"", status=503, headers=busy)
        words = ["--server", service.url, "datasets", "create", str(archive), "--resumable"]
        answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 3
    assert "--resume up_1" in answer.stderr


def test_labels_of_a_dataset(temi: Temi, dataset: Dataset, tmp_path: Path) -> None:
    lines = temi("datasets", "labels", dataset.id).stdout.splitlines()
    assert [json.loads(line)["cluster_id"] for line in lines] == [0, 1, 0, 1]
    out = tmp_path / "labels.csv"
    temi("datasets", "labels", dataset.id, "-o", out, "--min-probability", 0.7)
    assert out.read_text().startswith("image_id,name,cluster_id")
    assert len(out.read_text().splitlines()) == 3
    temi("datasets", "labels", dataset.id, "-f", "arrow", "-o", tmp_path / "labels")
    assert (tmp_path / "labels").stat().st_size > 0


def test_images(temi: Temi, images: list[Image], tmp_path: Path) -> None:
    first = images[0]
    assert as_json(temi("images", "show", first.id, "--json"))["name"] == "cats/a.jpg"
    assert "cluster 0" in temi("images", "labels", first.id).stdout
    assert "0.985" in temi("images", "neighbors", first.id).stdout
    assert len(as_json(temi("images", "neighbors", first.id, "--limit", 2, "--json"))) == 2
    temi("images", "download", first.id, "-o", tmp_path)
    assert (tmp_path / "a.jpg").read_bytes() == FILES["cats/a.jpg"]
    temi("images", "thumbnail", first.id, "-o", tmp_path / "small.webp", "--size", 64)
    assert (tmp_path / "small.webp").read_bytes()[8:12] == b"WEBP"
    temi("images", "delete", first.id, images[1].id, "--yes")
    assert "not_found" in temi("images", "show", first.id, exit_code=1).stderr


def test_jobs(temi: Temi, dataset: Dataset) -> None:
    started = temi("jobs", "start", "cluster", dataset.id, "-k", 2, "--priority", 5, "--json")
    job = as_json(started)
    assert (job["kind"], job["priority"]) == ("cluster", 5)
    assert job["id"] in temi("jobs", "list", "--status", "queued", "--dataset", dataset.id).stdout
    listed = as_json(temi("jobs", "list", "--kind", "cluster", "--json"))
    assert {one["kind"] for one in listed} == {"cluster"}
    assert as_json(temi("jobs", "show", job["id"], "--json"))["status"] == "queued"
    assert as_json(temi("jobs", "cancel", job["id"], "--json"))["status"] == "cancelled"
    assert "cancelled" in temi("jobs", "watch", job["id"], exit_code=1).stderr
    assert as_json(temi("jobs", "retry", job["id"], "--json"))["status"] == "queued"
    assert "Queued again" in temi("jobs", "logs", job["id"]).stdout
    assert as_json(temi("jobs", "curves", job["id"], "--json")) == []
    temi("jobs", "map", job["id"], "-o", "map.arrow", exit_code=1)
    refused = temi("datasets", "delete", dataset.id, "--yes", exit_code=1)
    assert "temi jobs list" in refused.stderr  # lists the jobs that use it
    temi("jobs", "cancel", job["id"])
    temi("jobs", "delete", job["id"], "--yes")
    temi("jobs", "show", job["id"], exit_code=1)


@pytest.mark.parametrize(
    "words",
    [
        ["sweep", "DATASET", "--parameter", "n_clusters", "--value", "2", "--value", "3"],
        ["map", "DATASET", "--perplexity", "2", "--seed", "1"],
        ["export", "CLUSTERING", "--format", "csv", "--cluster", "0"],
        ["finetune", "no-such-model", "--epochs", "1"],
        ["predict", "no-such-model", "DATASET"],
    ],
)
def test_every_kind_of_job_is_started(
    temi: Temi, dataset: Dataset, clustering: Clustering, words: list[str]
) -> None:
    given = [{"DATASET": dataset.id, "CLUSTERING": clustering.id}.get(w, w) for w in words]
    wrong = "no-such-model" in words
    answer = temi("jobs", "start", *given, "--json", exit_code=1 if wrong else 0)
    if wrong:
        assert "not_found" in answer.stderr
    else:
        assert as_json(answer)["kind"] == words[0]


def test_clusterings(temi: Temi, clustering: Clustering, tmp_path: Path) -> None:
    at = clustering.id
    assert at in temi("clusterings", "list").stdout
    assert as_json(temi("clusterings", "show", at, "--json"))["revision"] == 1
    assert "cluster 1" in temi("clusterings", "clusters", at).stdout
    listed = as_json(temi("clusterings", "clusters", at, "--examples", 1, "--json"))
    assert [len(cluster["examples"]) for cluster in listed] == [1, 1, 0]
    assert as_json(temi("clusterings", "cluster", at, 0, "--json"))["size"] == 2
    ranked = temi("clusterings", "images", at, 0, "--sort", "borderline", "--limit", 1)
    assert "dogs/c.jpg" in ranked.stdout
    one = as_json(temi("clusterings", "images", at, 1, "--limit", 1, "--json"))[0]["image_id"]
    nearest = as_json(temi("clusterings", "images", at, 0, "--similar-to", one, "--json"))
    assert [image["similarity"] for image in nearest] == [0.984808, 0.984808]
    assert "cluster 1" in temi("clusterings", "similar", at, 0).stdout
    joined = temi("clusterings", "hierarchy", at, "--groups", 1)
    assert joined.stdout.splitlines()[1].split("\t") == ["cluster 0", "4", "2", "0, 1"]
    assert f"  temi clusterings merge {at} 0 1 --into 0" in joined.stderr.splitlines()
    apart = temi("clusterings", "hierarchy", at, "--groups", 2)
    assert len(apart.stdout.splitlines()) == 3
    assert "merge" not in apart.stderr
    (cost,) = as_json(temi("clusterings", "hierarchy", at, "--groups", 2, "--json"))["costs"]
    assert cost > 0
    assert len(as_json(temi("clusterings", "assignments", at, "--cluster", 1, "--json"))) == 2
    both = ["--cluster", 1, "--other", at, "--other-cluster"]
    for other_cluster, count in ((1, 2), (0, 0)):
        shown = temi("clusterings", "assignments", at, *both, other_cluster, "--json")
        assert len(as_json(shown)) == count
    assert "empty_clusters" in temi("clusterings", "statistics", at).stdout
    temi("clusterings", "contact-sheet", at, 0, "-o", tmp_path / "sheet.png")
    assert (tmp_path / "sheet.png").read_bytes().startswith(b"\x89PNG")
    temi("clusterings", "plot", at, "sizes", "-o", tmp_path / "sizes.svg")
    assert "<svg" in (tmp_path / "sizes.svg").read_text()
    temi("clusterings", "delete", at, "--yes")
    assert as_json(temi("clusterings", "list", "--json")) == []


def test_the_clusterings_of_a_sweep(
    live: Live, temi: Temi, dataset: Dataset, tmp_path: Path
) -> None:
    words = ["--parameter", "n_clusters", "--value", 2, "--value", 3, "--heads", 2, "--steps", 20]
    with live.working():
        done = temi("jobs", "start", "sweep", dataset.id, *words, "--model-name", "pets", "--wait")
    commands = [line.partition(": temi ")[2] for line in done.stderr.splitlines()]
    seen = [shlex.split(each) for each in commands if each.startswith("clusterings clusters")]
    assert [len(temi(*each).stdout.splitlines()) - 1 for each in seen] == [2, 3]
    temi("jobs", "plot", "@last", "-o", tmp_path / "sweep.svg")
    assert "<svg" in (tmp_path / "sweep.svg").read_text()
    chosen = seen[1][-1]
    used = as_json(temi("datasets", "use", dataset.id, chosen, "--json"))
    assert used["current_clustering_id"] == chosen
    model = as_json(temi("clusterings", "show", chosen, "--json"))["model"]
    assert model["name"] == "pets"


def test_operations(temi: Temi, clustering: Clustering, images: list[Image]) -> None:
    at, (first, second, *_) = clustering.id, [image.id for image in images]
    named = as_json(temi("clusterings", "rename", at, 0, "cats", "--revision", 1, "--json"))
    assert (named["kind"], named["revision"]) == ("rename", 2)
    moved = temi("clusterings", "move", at, first, "--to-new", "new").stderr
    assert "Moved 1 image to cluster 3; revision 3" in moved
    temi("clusterings", "move", at, first, "--to", 0)
    assert "Excluded 1 image" in temi("clusterings", "exclude", at, second).stderr
    assert second in temi("clusterings", "assignments", at, "--excluded").stdout
    merged = temi("clusterings", "merge", at, 0, 1, "--label", "pets").stderr
    assert "Merged 1 into cluster 0 ('pets'), which has 3 images now" in merged
    assert as_json(temi("clusterings", "undo", at, "--json"))["undoes"] == 6
    assert "Did revision 6 again: 1 image moved" in temi("clusterings", "redo", at).stderr
    temi("clusterings", "undo", at)
    temi("clusterings", "split", at, 2, exit_code=1)
    history = temi("clusterings", "operations", at).stdout
    assert "revision 6" in history
    kinds = [row["kind"] for row in as_json(temi("clusterings", "operations", at, "--json"))]
    assert kinds == ["undo", "redo", "undo", "merge", "exclude", "move", "move", "rename"]


def test_a_selection(temi: Temi, clustering: Clustering, images: list[Image]) -> None:
    at, stays = clustering.id, images[0].id
    temi("clusterings", "show", at)
    moved = temi("clusterings", "move", at, "--from", 0, "--except", stays, "--to", 2).stderr
    assert "Moved 1 image to cluster 2" in moved
    words = ("--from", 1, "--max-probability", 1, "--min-probability", 0)
    assert "Excluded 2 images" in temi("clusterings", "exclude", at, *words).stderr
    history = temi("clusterings", "operations", at).stdout
    assert "selection (cluster_id 0, except_images 1), cluster_id 2" in history


def test_exports(live: Live, temi: Temi, clustering: Clustering, tmp_path: Path) -> None:
    out = tmp_path / "labels.parquet"
    with live.working():
        words = ["exports", "create", clustering.id, "--format", "parquet", "-o", out, "--json"]
        export = as_json(temi(*words))
    assert out.stat().st_size == export["bytes"]
    assert export["filename"] in temi("exports", "list").stdout
    assert as_json(temi("exports", "show", export["id"], "--json"))["format"] == "parquet"
    temi("exports", "download", export["id"], "-o", tmp_path)
    assert (tmp_path / export["filename"]).read_bytes() == out.read_bytes()
    temi("exports", "delete", export["id"], "--yes")
    assert as_json(temi("exports", "list", "--json")) == []


def test_a_file_that_cannot_be_written_is_exit_code_1(temi: Temi, images: list[Image]) -> None:
    answer = temi("images", "thumbnail", images[0].id, "-o", "/proc/no/such.webp", exit_code=1)
    assert "error" in answer.stderr


def test_system(temi: Temi) -> None:
    shown = temi("system").stdout
    assert "embedded" in shown
    assert "efficientnet_lite0" in shown
    assert "auto backbone\t" in shown
    assert as_json(temi("system", "--json"))["limits"]["max_image_bytes"] == 100 * 1024**2


def test_workers(live: Live, temi: Temi) -> None:
    who = Identity(
        name="gpu-1:7", host="gpu-1", pid=7, takes=("gpu",), device="a GPU", version="0.1.0"
    )
    with live.runtime.db.write() as session:
        record_heartbeat(session, who, job_id="job_of_another_tenant", stage="embed")
    shown = temi("workers", "list").stdout
    assert "gpu-1:7" in shown
    assert "a job" in shown
    (worker,) = as_json(temi("workers", "list", "--json"))
    assert (worker["takes"], worker["busy"], worker["job_id"]) == (["gpu"], True, None)
