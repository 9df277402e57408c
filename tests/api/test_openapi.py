"""The OpenAPI document.

`make clients` lints it with Spectral and Redocly, too, where npm is available; most rules here are
those that it once broke.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from app.api.http.auth import SECURITY_SCHEME

# They show nothing of the collections.
_PUBLIC = {"/livez", "/readyz", "/metrics", "/v2", "/v2/health/live", "/v2/health/ready"}
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_PROBLEM = {"$ref": "#/components/schemas/Problem"}
Operation = tuple[str, str, dict[str, Any]]


@pytest.fixture
def document(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


@pytest.fixture
def operations(document: dict[str, Any]) -> list[Operation]:
    return list(_operations(document))


def _operations(document: dict[str, Any]) -> Iterator[Operation]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    """Every object of the document."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list):
            yield from _nodes(child)


def _examples(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Every example with its schema: of parameters and bodies, and those in schemas."""
    for node in _nodes(document):
        examples = node.get("examples", [])
        if "schema" in node:
            if "example" in node:
                yield node["schema"], node["example"]
            yield from ((node["schema"], one["value"]) for one in dict(examples).values())
        elif isinstance(examples, list):  # else it is a field of this name
            yield from ((node, one) for one in examples)


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    validate(document)
    assert document["openapi"].startswith("3.1.")
    # A keyword of OpenAPI 3.2, which FastAPI writes for event streams.
    assert "itemSchema" not in json.dumps(document)


def test_it_names_license_contact_and_server(document: dict[str, Any]) -> None:
    assert document["info"]["license"]["identifier"] == "Apache-2.0"
    assert document["info"]["contact"]["name"]
    assert document["info"]["description"]
    assert [server["url"] for server in document["servers"]] == ["/"]


def test_every_operation_has_a_summary_a_description_and_a_name(
    operations: list[Operation],
) -> None:
    assert len(operations) >= 50
    for method, path, operation in operations:
        assert method in _METHODS, (method, path)
        assert operation.get("summary"), (method, path)
        assert operation.get("description"), (method, path)
        assert any(status.startswith("2") for status in operation["responses"]), (method, path)
        assert any(status.startswith("4") for status in operation["responses"]), (method, path)
    names = [operation["operationId"] for _, _, operation in operations]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in names), names
    assert {"predict", "create_dataset", "create_job", "stream_job_events"} <= set(names)


def test_every_tag_is_declared_with_a_description(
    document: dict[str, Any], operations: list[Operation]
) -> None:
    used = [tag for _, _, operation in operations for tag in operation["tags"]]
    assert len(used) == len(operations)
    assert set(used) == {tag["name"] for tag in document["tags"] if tag["description"]}


def test_every_operation_needs_a_key_or_is_public(
    document: dict[str, Any], operations: list[Operation]
) -> None:
    scheme = document["components"]["securitySchemes"][SECURITY_SCHEME]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert scheme["description"]
    for method, path, operation in operations:
        expected: list[Any] = [] if path in _PUBLIC else [{SECURITY_SCHEME: []}]
        assert operation["security"] == expected, (method, path)


def test_every_parameter_is_described(operations: list[Operation]) -> None:
    for method, path, operation in operations:
        for parameter in operation.get("parameters", ()):
            described = parameter.get("description") or parameter["schema"].get("description")
            assert described, (method, path, parameter["name"])
        in_path = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
        assert in_path == set(re.findall(r"{(\w+)}", path)), (method, path)


def test_every_example_fits_its_schema(document: dict[str, Any]) -> None:
    found = list(_examples(document))
    for schema, example in found:
        whole = {"components": document["components"], **schema}
        OAS31Validator(whole).validate(example)
    assert len(found) >= 50


def test_every_body_has_a_schema(operations: list[Operation]) -> None:
    for method, path, operation in operations:
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for body in bodies:
            for media_type, content in body.get("content", {}).items():
                assert content.get("schema"), (method, path, media_type)


def test_archives_and_chunks_are_binary(document: dict[str, Any]) -> None:
    for path, method, media_type in (
        ("/v1/datasets", "post", "application/zip"),
        ("/v1/datasets/{dataset_id}/images", "post", "application/x-tar"),
        ("/v1/models:import", "post", "application/zip"),
        ("/v1/uploads", "post", "application/offset+octet-stream"),
        ("/v1/uploads/{upload_id}", "patch", "application/offset+octet-stream"),
    ):
        body = document["paths"][path][method]["requestBody"]["content"][media_type]
        assert body["schema"] == {"type": "string", "format": "binary"}, path


def test_events_are_a_text_stream(document: dict[str, Any]) -> None:
    responses = document["paths"]["/v1/jobs/{job_id}/events"]["get"]["responses"]
    assert responses["200"]["content"] == {"text/event-stream": {"schema": {"type": "string"}}}


def test_no_field_with_a_default_is_required(document: dict[str, Any]) -> None:
    """Except the one that chooses the schema of a job."""
    schemas = document["components"]["schemas"]
    found = {
        (name, field)
        for name, schema in schemas.items()
        for field in schema.get("required", ())
        if "default" in schema["properties"][field]
    }
    assert found == {("ClusterCreate", "kind")}


def test_a_union_says_which_field_chooses(document: dict[str, Any]) -> None:
    unions = [node for node in _nodes(document) if "oneOf" in node]
    assert len(unions) >= 3  # jobs, operations, sources
    for union in unions:
        mapping = union["discriminator"]["mapping"]
        assert set(mapping.values()) == {one["$ref"] for one in union["oneOf"]}
        for reference in mapping.values():
            schema = document["components"]["schemas"][reference.rpartition("/")[2]]
            assert union["discriminator"]["propertyName"] in schema["required"]


def test_every_error_is_a_problem(operations: list[Operation]) -> None:
    for method, path, operation in operations:
        if not path.startswith("/v1/"):
            continue
        errors = {s: r for s, r in operation["responses"].items() if s.startswith(("4", "5"))}
        assert {"401", "403", "422", "429"} <= set(errors), (method, path)
        if "{" in path:
            assert "404" in errors, (method, path)
        for status, response in errors.items():
            if method == "head":
                assert "content" not in response, (method, path, status)
                continue
            content = response["content"]["application/problem+json"]
            assert content["schema"] == _PROBLEM, (method, path, status)


def test_only_problems_are_documented_as_errors(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
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
