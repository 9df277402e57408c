"""Deletions ask on a terminal, and need `--yes` without one."""

import os
import pty
import subprocess
import sys

import pytest

from temi_client import Dataset
from tests.cli.conftest import Temi, as_json
from tests.client.live import Live


@pytest.fixture
def dataset(live: Live) -> Dataset:
    with live.client() as client:
        return next(client.datasets())


def _on_a_terminal(live: Live, words: list[str], answer: bytes) -> tuple[int, str]:
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    command = [sys.executable, "-m", "app.cli.main", "--server", live.url, *words]
    try:
        done = subprocess.run(command, stdin=theirs, capture_output=True, text=True, check=False)
    finally:
        os.close(ours)
        os.close(theirs)
    return done.returncode, done.stderr


def test_a_terminal_is_asked_with_name_and_count(live: Live, temi: Temi, dataset: Dataset) -> None:
    words = ["datasets", "delete", dataset.id]
    code, question = _on_a_terminal(live, words, b"n\n")
    assert code == 1
    assert "Delete dataset Cats & Dogs with 4 images" in question
    assert "[y/N]" in question
    assert dataset.id in temi("datasets", "list").stdout
    assert _on_a_terminal(live, words, b"y\n")[0] == 0
    assert as_json(temi("datasets", "list", "--json")) == []


def test_without_a_terminal_nothing_is_deleted(live: Live, temi: Temi, dataset: Dataset) -> None:
    refused = temi("datasets", "delete", dataset.id, input="y\n", exit_code=2)
    assert "--yes" in refused.stderr
    assert dataset.id in temi("datasets", "list").stdout
    done = temi("datasets", "delete", dataset.id, "--yes")
    assert f"Deleted dataset Cats & Dogs with 4 images ({dataset.id})" in done.stderr
