"""`temi clusterings review` against the real API."""

import json
from pathlib import Path

import pytest

from temi_client import Clustering
from tests.cli.conftest import Temi, as_json
from tests.client.live import Live

REVIEW = ("clusterings", "review")


@pytest.fixture
def clustering(live: Live) -> Clustering:
    with live.client() as client:
        return next(client.clusterings())


def test_a_review_by_commands(temi: Temi, clustering: Clustering, tmp_path: Path) -> None:
    at = clustering.id
    before = temi(*REVIEW, "report", at)
    assert "by the model" in before.stdout
    assert "if the model's probabilities are right" in " ".join(before.stderr.split())
    asked = as_json(temi(*REVIEW, "queue", at, "--labeler", "anna", "--json"))
    assert len(asked) == 4
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps([{**one, "answer": "yes"} for one in asked[:2]]))
    assert "Stored 2 answers" in temi(*REVIEW, "answer", at, "--file", answers).stderr
    answers.write_text("\n".join(json.dumps({**one, "answer": "no"}) for one in asked[2:3]))
    assert "Stored 1 answers" in temi(*REVIEW, "answer", at, "--file", answers).stderr
    last, cluster = asked[3]["image_id"], asked[3]["cluster_id"]
    which = ("--cluster", cluster, "--answer", "which", "--belongs-to", 2)
    moved = as_json(temi(*REVIEW, "answer", at, last, *which, "--sample", "--json"))
    assert (moved["revision"], moved["stored"]) == (2, [last])
    refused = temi(*REVIEW, "answer", at, last, "--cluster", cluster, "--answer", "yes")
    assert f"Not stored: {last} is in cluster 2 now" in " ".join(refused.stderr.split())
    listed = as_json(temi(*REVIEW, "answers", at, "--json"))
    assert sorted(row["answer"] for row in listed) == ["no", "which", "yes", "yes"]
    assert "Withdrew" in temi(*REVIEW, "withdraw", at, last).stderr
    report = as_json(temi(*REVIEW, "report", at, "--min-purity", 0.9, "--json"))
    assert report["reviewed_images"] == 3


def test_bad_answers(temi: Temi, clustering: Clustering, tmp_path: Path) -> None:
    at = clustering.id
    assert "Pass IMAGES with --cluster" in temi(*REVIEW, "answer", at, exit_code=2).stderr
    answers = tmp_path / "answers.json"
    answers.write_text('{"image_id": "img_1", "cluster_id": 0, "answer": "perhaps"}')
    bad = temi(*REVIEW, "answer", at, "--file", answers, exit_code=2)
    assert "Answer 1 cannot be read" in " ".join(bad.stderr.split())
