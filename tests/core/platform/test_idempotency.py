"""Idempotency keys: the same body gets the same response; another body is refused."""

from typing import Any

import pytest
from sqlalchemy.orm import Session

from app.core.platform.errors import IdempotencyInProgress, IdempotencyMismatch
from app.core.platform.idempotency import answer_once, in_flight
from app.core.runtime import Runtime
from tests.conftest import MakeSettings

ANSWER = {"id": "job_1", "n": [1, 2.5, None]}


def _answer(
    runtime: Runtime, key: str | None, request_hash: str, answer: dict[str, Any], tenant: str = "t"
) -> tuple[dict[str, Any], bool]:
    return answer_once(runtime.db, tenant, key, request_hash, lambda _session: answer)


def test_the_first_response_is_returned_again(any_runtime: Runtime) -> None:
    assert _answer(any_runtime, "key", "hash", ANSWER) == (ANSWER, True)
    assert _answer(any_runtime, "key", "hash", {"id": "never"}) == (ANSWER, False)


def test_another_key_or_tenant_is_another_request(any_runtime: Runtime) -> None:
    _answer(any_runtime, "key", "hash", ANSWER)
    assert _answer(any_runtime, "other", "hash", {"id": "2"}) == ({"id": "2"}, True)
    assert _answer(any_runtime, "key", "hash", {"id": "3"}, tenant="o") == ({"id": "3"}, True)


def test_another_body_is_refused(any_runtime: Runtime) -> None:
    _answer(any_runtime, "key", "hash", ANSWER)
    with pytest.raises(IdempotencyMismatch):
        _answer(any_runtime, "key", "different", ANSWER)


def test_without_a_key_every_request_is_new(any_runtime: Runtime) -> None:
    for _ in range(2):
        assert _answer(any_runtime, None, "hash", ANSWER) == (ANSWER, True)


def test_a_request_that_fails_leaves_no_key(any_runtime: Runtime) -> None:
    def fail(_session: Session) -> dict[str, Any]:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        answer_once(any_runtime.db, "t", "key", "hash", fail)
    assert _answer(any_runtime, "key", "hash", ANSWER) == (ANSWER, True)


def test_the_second_of_two_processes_returns_the_first_response(
    make_settings: MakeSettings, postgres_url: str
) -> None:
    runtime = Runtime(make_settings(database_url=postgres_url))

    def create(_session: Session) -> dict[str, Any]:
        _answer(runtime, "key", "hash", ANSWER)  # the other process, in between
        return {"id": "too late"}

    assert answer_once(runtime.db, "t", "key", "hash", create) == (ANSWER, False)
    runtime.db.dispose()


def test_a_concurrent_request_with_the_same_key_is_refused() -> None:
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
