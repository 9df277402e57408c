"""The OpenAPI document."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

_PROBLEM = {"$ref": "#/components/schemas/Problem"}
Operation = tuple[str, str, dict[str, Any]]


@pytest.fixture
def operations(client: TestClient) -> list[Operation]:
    return list(_operations(client.get("/openapi.json").json()))


def _operations(document: dict[str, Any]) -> Iterator[Operation]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def test_every_operation_has_a_summary_and_a_name(operations: list[Operation]) -> None:
    assert len(operations) >= 50
    for method, path, operation in operations:
        assert operation.get("summary"), (method, path)
        assert operation["tags"]
    names = [operation["operationId"] for _, _, operation in operations]
    assert len(set(names)) == len(names)


def test_every_error_is_a_problem(operations: list[Operation]) -> None:
    for method, path, operation in operations:
        if not path.startswith("/v1/"):
            continue
        errors = {s: r for s, r in operation["responses"].items() if s.startswith(("4", "5"))}
        assert {"401", "403", "422", "429"} <= set(errors), (method, path)
        assert operation["security"] == [{"HTTPBearer": []}], (method, path)
        if "{" in path:
            assert "404" in errors, (method, path)
        for status, response in errors.items():
            content = response["content"]["application/problem+json"]
            assert content["schema"] == _PROBLEM, (method, path, status)


def test_only_problems_are_documented_as_errors(client: TestClient) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert "HTTPValidationError" not in schemas
    assert set(schemas["Problem"]["required"]) >= {"type", "title", "status", "detail", "code"}


def test_long_work_is_described_as_accepted(operations: list[Operation]) -> None:
    found = {(m, p): set(o["responses"]) for m, p, o in operations}
    for key in (
        ("post", "/v1/datasets"),
        ("post", "/v1/jobs"),
        ("post", "/v1/jobs/{job_id}:cancel"),
    ):
        assert "202" in found[key]
        assert "200" not in found[key]


def test_lists_take_a_limit_and_a_cursor(operations: list[Operation]) -> None:
    lists = [
        {parameter["name"] for parameter in operation.get("parameters", [])}
        for _, _, operation in operations
        if operation["summary"].startswith("List ")
    ]
    assert len(lists) >= 16
    assert all({"limit", "cursor"} <= names for names in lists)
