"""Commands without a service, or with a fake one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.cli.output import write_labels
from tests.client.fake_service import FakeService, event, job, page, running_service

NO_SERVER = "http://127.0.0.1:9"
run = CliRunner().invoke
MODEL = {
    "name": "pets",
    "latest_version": 2,
    "aliases": {"live": 1},
    "created_at": "2026-01-02T03:04:05Z",
}


@pytest.fixture
def service() -> Iterator[FakeService]:
    with running_service() as running:
        yield running


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["cluster"],
        ["predict"],
        ["backbones"],
        ["bench"],
        ["demo"],
        ["jobs"],
        ["jobs", "watch"],
        ["datasets", "issues"],
        ["models"],
        ["models", "show"],
    ],
)
def test_every_command_has_help(command: list[str]) -> None:
    answer = run(app, [*command, "--help"])
    assert answer.exit_code == 0
    assert "Usage" in answer.output


@pytest.mark.parametrize(
    "command",
    [
        ["cluster", ".", "--clusters", "many"],
        ["cluster", ".", "--clusters", "1"],
        ["cluster", "no-such-folder", "--clusters", "2"],
        ["cluster", __file__, "--clusters", "2", "--local"],
        ["predict", "pets", "no-such-file.jpg"],
        ["predict", "pets", __file__, "--top-k", "0"],
        ["demo", "--images", str(Path(__file__).parent)],
        ["jobs", "no-such-command"],
    ],
)
def test_a_wrong_command_line_is_exit_code_2(command: list[str]) -> None:
    assert run(app, command).exit_code == 2


@pytest.mark.parametrize(
    "command",
    [
        ["cluster", ".", "--clusters", "2"],
        ["predict", "pets", __file__],
        ["models"],
        ["models", "show", "pets"],
        ["jobs", "list"],
        ["jobs", "watch", "job_1"],
        ["jobs", "cancel", "job_1"],
        ["datasets", "list"],
        ["datasets", "issues", "ds_1"],
    ],
)
def test_no_service_is_exit_code_3_with_a_hint(command: list[str]) -> None:
    answer = run(app, command, env={"TEMI_SERVER": NO_SERVER})
    assert answer.exit_code == 3
    assert "temi serve" in answer.stderr
    assert ("--local" in answer.stderr) == (command[0] == "cluster")


def test_lists_are_printed_as_json(service: FakeService) -> None:
    service.answer("GET", "/v1/models", page(MODEL))
    answer = run(app, ["--server", service.url, "models", "--json"])
    assert answer.exit_code == 0
    assert json.loads(answer.stdout)[0]["aliases"] == {"live": 1}


def test_lists_are_printed_as_tables(service: FakeService) -> None:
    service.answer("GET", "/v1/models", page(MODEL))
    service.answer("GET", "/v1/jobs", page(job(), job("failed", id="job_2")))
    assert "live -> 1" in run(app, ["--server", service.url, "models"]).stdout
    jobs = run(app, ["--server", service.url, "jobs", "list"]).stdout
    assert "job_1" in jobs
    assert "job_2" in jobs


def test_an_error_of_the_service_is_exit_code_1(service: FakeService) -> None:
    answer = run(app, ["--server", service.url, "models", "show", "cats"])
    assert answer.exit_code == 1
    assert "not_found" in answer.stderr


def test_watching_shows_plain_lines_without_a_terminal(service: FakeService) -> None:
    states = event(job(), 1) + event(job("succeeded"), 2)
    service.answer("GET", "/v1/jobs/job_1/events", states, content_type="text/event-stream")
    answer = run(app, ["--server", service.url, "jobs", "watch", "job_1"])
    assert answer.exit_code == 0
    assert "train: 3/10 2.0/s ETA 0:04" in answer.stderr


def test_watching_a_job_that_fails_is_exit_code_1(service: FakeService) -> None:
    failed = job("failed", error={"code": "dataset_empty", "detail": "No image in [it]."})
    service.answer(
        "GET", "/v1/jobs/job_1/events", event(failed, 1), content_type="text/event-stream"
    )
    answer = run(app, ["--server", service.url, "jobs", "watch", "job_1"])
    assert answer.exit_code == 1
    assert "No image in [it]." in answer.stderr


def test_predictions_name_unreadable_images(service: FakeService, tmp_path: Path) -> None:
    image = tmp_path / "1.jpg"
    image.write_bytes(b"no image")
    data = [{"image": "1.jpg", "error": {"code": "image_undecodable", "detail": "damaged"}}]
    answered = {"model": {"name": "pets", "version": 1}, "data": data}
    service.answer("POST", "/v1/models/pets:predict", answered)
    service.answer("GET", "/readyz", {"ready": True})
    answer = run(app, ["--server", service.url, "predict", "pets", str(image)])
    assert answer.exit_code == 1
    assert "damaged" in answer.stdout


def test_labels_are_written_atomically(tmp_path: Path) -> None:
    def breaks() -> Iterator[tuple[str, int, float]]:
        yield "a.jpg", 0, 0.5
        raise RuntimeError

    out = tmp_path / "new" / "labels.csv"
    write_labels(out, [("a.jpg", 1, 0.25)])
    with pytest.raises(RuntimeError):
        write_labels(out, breaks())
    assert out.read_text().splitlines() == ["file,cluster,probability", "a.jpg,1,0.2500"]
    assert list(out.parent.iterdir()) == [out]


def test_backbones_are_listed_with_missing_weights() -> None:
    answer = run(app, ["backbones", "--json"])
    assert answer.exit_code == 0
    found = {one["name"]: one for one in json.loads(answer.stdout)}
    assert (found["efficientnet_lite0"]["dim"], found["efficientnet_lite0"]["hint"]) == (1280, None)
    assert found["msn_vitl16"]["dim"] == 1024
    assert "msn_vitl16" in found["msn_vitl16"]["hint"]


def test_bench_prints_json(monkeypatch: pytest.MonkeyPatch) -> None:
    from temi import bench

    figure = bench.Figure(what="train", rate=80.0, unit="GFLOP/s", share=0.6, limit="peak")
    monkeypatch.setattr(bench, "bench", lambda device: iter([figure]))
    assert json.loads(run(app, ["bench", "--json"]).stdout)[0]["share"] == 0.6
    assert "60.0 %" in run(app, ["bench"]).stdout
