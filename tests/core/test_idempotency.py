"""Same key and body: the same answer; another body: refused; still running: refused."""

import pytest
from sqlalchemy.exc import IntegrityError

from app.core.errors import IdempotencyInProgress, IdempotencyMismatch
from app.core.idempotency import in_flight, recall, remember
from app.core.runtime import Runtime


def _remember(runtime: Runtime, key: str, request_hash: str, tenant: str = "t") -> None:
    with runtime.db.write() as session:
        remember(session, tenant, key, request_hash, {"id": "job_1", "n": [1, 2.5, None]})


def test_an_answer_is_recalled(any_runtime: Runtime) -> None:
    _remember(any_runtime, "key", "hash")
    with any_runtime.db.read() as session:
        assert recall(session, "t", "key", "hash") == {"id": "job_1", "n": [1, 2.5, None]}
        assert recall(session, "t", "other", "hash") is None
        assert recall(session, "other", "key", "hash") is None
        assert recall(session, "t", None, "hash") is None


def test_another_body_is_refused(any_runtime: Runtime) -> None:
    _remember(any_runtime, "key", "hash")
    with any_runtime.db.read() as session, pytest.raises(IdempotencyMismatch):
        recall(session, "t", "key", "different")


def test_without_a_key_nothing_is_stored(any_runtime: Runtime) -> None:
    with any_runtime.db.write() as session:
        remember(session, "t", None, "hash", {})
        remember(session, "t", None, "hash", {})


def test_the_second_of_two_processes_fails_to_commit(any_runtime: Runtime) -> None:
    _remember(any_runtime, "key", "hash")
    with pytest.raises(IntegrityError):
        _remember(any_runtime, "key", "hash")


def test_a_twin_is_refused_while_the_first_runs() -> None:
    with in_flight("t", "key"):
        with pytest.raises(IdempotencyInProgress), in_flight("t", "key"):
            pass
        with in_flight("t", "other"), in_flight("other", "key"), in_flight("t", None):
            pass
    with in_flight("t", "key"):
        pass


def test_a_failing_request_frees_its_key() -> None:
    with pytest.raises(RuntimeError), in_flight("t", "key"):
        raise RuntimeError
    with in_flight("t", "key"):
        pass
