"""Names and `@last` instead of ids, and the completion of names in a shell."""

import os
import subprocess
import sys

import pytest
import typer

from app.cli import app
from temi_client import Clustering, Dataset
from tests.api.conftest import store_clustering
from tests.cli.conftest import Temi, as_json
from tests.client.live import Live

NAME = "Cats & Dogs"


@pytest.fixture
def dataset(live: Live) -> Dataset:
    with live.client() as client:
        return next(client.datasets())


@pytest.fixture
def clustering(live: Live) -> Clustering:
    with live.client() as client:
        return next(client.clusterings())


@pytest.mark.parametrize("reference", [NAME, "@last"])
def test_a_dataset_by_name(temi: Temi, dataset: Dataset, reference: str) -> None:
    assert as_json(temi("datasets", "show", reference, "--json"))["id"] == dataset.id
    started = as_json(temi("jobs", "start", "cluster", reference, "--clusters", 2, "--json"))
    assert started["dataset_id"] == dataset.id
    listed = as_json(temi("jobs", "list", "--dataset", reference, "--json"))
    assert listed[0]["id"] == started["id"]
    assert as_json(temi("jobs", "show", "@last", "--json"))["id"] == started["id"]


@pytest.mark.parametrize("reference", [NAME, "cats-dogs", "@last"])
def test_a_clustering_by_the_name_of_its_dataset_or_model(
    temi: Temi, clustering: Clustering, reference: str
) -> None:
    assert as_json(temi("clusterings", "show", reference, "--json"))["id"] == clustering.id


def test_a_model_by_name(temi: Temi) -> None:
    assert "imported" not in temi("models", "show", "@last").stdout
    assert as_json(temi("models", "show", "@last", "--json"))[0]["name"] == "cats-dogs"


def test_an_ambiguous_name_lists_the_candidates(temi: Temi, live: Live, dataset: Dataset) -> None:
    """The name of a dataset is not ambiguous: it means the current clustering."""
    other = store_clustering(live.runtime, dataset.id, model="cats-dogs")
    with live.client() as client:
        (second, first) = client.clusterings()
    assert as_json(temi("clusterings", "show", NAME, "--json"))["id"] == first.id
    refused = temi("clusterings", "show", "cats-dogs", exit_code=2)
    for found in (first, second):
        assert found.id in refused.stderr
        assert f"{found.created_at:%Y-%m-%d %H:%M}" in refused.stderr
    assert "4 images" in refused.stderr
    assert as_json(temi("clusterings", "show", "@last", "--json"))["id"] == other


def test_an_unknown_name(temi: Temi) -> None:
    refused = temi("datasets", "show", "birds", exit_code=2)
    assert "There is no dataset 'birds'" in refused.stderr
    assert "temi datasets list" in refused.stderr
    assert "There is no export yet" in temi("exports", "show", "@last", exit_code=2).stderr


def _completions(server: str, words: str) -> tuple[str, str]:
    environment = {
        **os.environ,
        "_TEMI_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "TEMI_SERVER": server,
    }
    command = [sys.executable, "-m", "app.cli.main"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def test_completion(temi: Temi, live: Live, dataset: Dataset, clustering: Clustering) -> None:
    # A name that needs quotes is offered as an id.
    assert _completions(live.url, "temi datasets show ")[0].split() == [dataset.id]
    temi("datasets", "rename", dataset.id, "pets")
    assert _completions(live.url, "temi datasets show p")[0].split() == ["pets"]
    assert _completions(live.url, "temi jobs list --dataset ")[0].split() == ["pets"]
    assert _completions(live.url, "temi clusterings undo cl_")[0].split() == [clustering.id]
    assert _completions(live.url, "temi predict ")[0].split() == ["cats-dogs"]


def test_completion_is_silent_without_a_service() -> None:
    printed, errors = _completions("http://127.0.0.1:9", "temi datasets show ")
    assert (printed.strip(), errors) == ("", "")


def test_every_argument_that_takes_an_id_takes_a_name() -> None:
    from tests.cli.test_help import COMMANDS

    named = {"DATASET", "CLUSTERING", "JOB", "EXPORT", "MODEL"}
    for path, command in COMMANDS.items():
        for parameter in getattr(command, "params", []):
            if parameter.metavar in named:
                assert parameter.callback is not None, path
    assert isinstance(app, typer.Typer)
