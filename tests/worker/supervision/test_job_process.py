"""The process of a job logs every error as lines of the log."""

import json
import os
import subprocess
import sys

from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from tests.images import jpeg_bytes, zip_of
from tests.worker.conftest import AddIngest
from worker.supervision.processes import OUTAGE_EXIT_CODE

_CHILD = """
import multiprocessing, os, sys
from app.core.platform.settings import Settings
from worker.supervision.job_process import main
_, theirs = multiprocessing.Pipe(duplex=False)
main(Settings(log_format="json"), sys.argv[1], 1, theirs, os.getppid())
"""


def _run(settings: Settings, job_id: str, **variables: str) -> tuple[int, list[dict[str, object]]]:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, job_id],
        env=os.environ | {"TEMI_DATA_DIR": str(settings.data_dir)} | variables,
        capture_output=True,
        text=True,
    )
    return done.returncode, [json.loads(line) for line in done.stderr.splitlines()]


def test_an_uncaught_exception(settings: Settings) -> None:
    code, lines = _run(settings, "job_none")
    assert code == 1
    (line,) = lines
    assert (line["event"], line["level"]) == ("uncaught_exception", "critical")
    assert (line["job_id"], line["fence"]) == ("job_none", 1)
    assert "NoResultFound" in str(line["exception"])


def test_a_bug_in_a_stage(runtime: Runtime, settings: Settings, add_ingest: AddIngest) -> None:
    job = add_ingest(runtime, zip_of({"a.jpg": jpeg_bytes()}))
    runtime.storage.delete(job.config["source"]["key"])
    code, lines = _run(settings, job.id)
    assert code == 0  # the supervisor got the error and ends the job
    (line,) = [line for line in lines if line["event"] == "job_failed"]
    assert (line["job_id"], line["kind"]) == (job.id, "ingest")
    assert "FileNotFoundError" in str(line["exception"])


def test_an_unavailable_storage_is_an_outage(
    runtime: Runtime, settings: Settings, add_ingest: AddIngest
) -> None:
    job = add_ingest(runtime, zip_of({"a.jpg": jpeg_bytes()}))
    bucket = {"TEMI_STORAGE_URL": "s3://none", "TEMI_S3_ENDPOINT": "http://127.0.0.1:9"}
    key = {"TEMI_S3_ACCESS_KEY": "a", "TEMI_S3_SECRET_KEY": "b"}
    code, lines = _run(settings, job.id, **bucket, **key)
    assert code == OUTAGE_EXIT_CODE  # the supervisor queues the job again
    assert [line["event"] for line in lines if line["level"] != "info"] == ["storage_unavailable"]
