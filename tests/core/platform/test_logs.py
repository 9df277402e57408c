"""Lines of the service, of libraries and of uncaught exceptions have one format."""

import json
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import structlog

from app.core.platform import logs
from tests.conftest import MakeSettings

Written = Callable[[], list[dict[str, Any]]]
log = structlog.get_logger()


@pytest.fixture
def written(make_settings: MakeSettings, capsys: pytest.CaptureFixture[str]) -> Iterator[Written]:
    logs.configure_logging(make_settings(log_format="json"))
    yield lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    logs._process_fields.clear()


def test_a_line_of_the_service(written: Written) -> None:
    log.info("job_started", job_id="job_1", path="C:\\new\nline")
    log.debug("not asked for")
    (line,) = written()
    assert (line["event"], line["level"], line["path"]) == ("job_started", "info", "C:\\new\nline")
    assert line["timestamp"].endswith("Z")


def test_lines_of_libraries(written: Written) -> None:
    logging.getLogger("celery.worker").warning("lost %s", "it")
    logging.getLogger("httpx").info("GET https://host/?key=secret")
    for name in ("uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).error("from %s", name)
    assert [(line["event"], line["logger"]) for line in written()] == [
        ("lost it", "celery.worker"),
        ("from uvicorn.error", "uvicorn.error"),
        ("from uvicorn.access", "uvicorn.access"),
    ]


def test_a_library_that_writes_to_the_terminal_is_redirected(written: Written) -> None:
    library = logging.getLogger("library.of.its.own")
    library.addHandler(logging.StreamHandler())
    library.propagate = False
    logs.adopt_libraries()
    library.warning("hello")
    (line,) = written()
    assert (line["event"], line["logger"]) == ("hello", "library.of.its.own")


def test_configuring_twice_logs_once(written: Written, make_settings: MakeSettings) -> None:
    logs.configure_logging(make_settings(log_format="json", log_level="debug"))
    log.debug("asked for")
    logging.getLogger("sqlalchemy").debug("a detail")
    assert [line["event"] for line in written()] == ["asked for"]


def test_an_exception_is_one_line(written: Written) -> None:
    try:
        raise ValueError("bad\nvalue")
    except ValueError:
        log.exception("failed")
        logging.getLogger("library").exception("failed there")
    ours, theirs = written()
    assert "ValueError: bad\nvalue" in ours["exception"]
    assert "ValueError: bad\nvalue" in theirs["exception"]


def test_a_warning_is_a_line(written: Written) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)  # within this block: it ends what was set before it
        warnings.warn("careful", stacklevel=1)
        logging.captureWarnings(False)
    (line,) = written()
    assert "UserWarning: careful" in line["event"]
    assert (line["level"], line["logger"]) == ("warning", "py.warnings")


def test_an_uncaught_exception_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, make_settings: MakeSettings, written: Written
) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    logs.configure_logging(make_settings(log_format="json"))
    thread = threading.Thread(target=lambda: 1 / 0, name="republisher")
    thread.start()
    thread.join()
    (line,) = written()
    assert (line["event"], line["thread"]) == ("uncaught_exception", "republisher")
    assert "ZeroDivisionError" in line["exception"]


def test_fields_of_a_process_are_on_lines_of_all_threads(written: Written) -> None:
    logs.bind_process(job_id="job_1", request_id=None)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(log.info, "from a thread").result()
    logging.getLogger("celery").warning("from a library")
    assert [line["job_id"] for line in written()] == ["job_1", "job_1"]


def test_fields_of_a_block_end_with_it(written: Written) -> None:
    with logs.bound(request_id="r1", tenant=None):
        assert logs.current_request_id() == "r1"
        log.info("within")
    log.info("after")
    within, after = written()
    assert within["request_id"] == "r1"
    assert "tenant" not in within
    assert "request_id" not in after
    assert logs.current_request_id() is None
