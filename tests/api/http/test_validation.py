"""Pydantic errors as InvalidRequest: fields are named as the client wrote them."""

import json
from typing import Any

import pytest

from app.api import schemas
from app.api.http.validation import check_json_values, parse_json, parse_query
from app.core.platform.errors import InvalidRequest


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ({}, "source.type"),
        ({"type": "ftp"}, "source.type"),
        ({"type": "folder"}, "source.path"),
        ({"type": "folder", "path": ""}, "source.path"),
        (7, "source"),
    ],
)
def test_tags_of_unions_are_not_fields(source: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_json(schemas.DatasetCreate, json.dumps({"source": source}).encode())
    assert [error.field for error in caught.value.errors] == [field]
    assert caught.value.detail.startswith(f"{field}: ")


def test_a_body_that_is_not_json() -> None:
    not_json = InvalidRequest.field("files", "send a form")
    with pytest.raises(InvalidRequest, match="Invalid JSON"):
        parse_json(schemas.PredictBody, b"\xff")
    with pytest.raises(InvalidRequest, match="files: send a form"):
        parse_json(schemas.PredictBody, b"\xff", not_json=not_json)


def test_query_parameters() -> None:
    assert parse_query(schemas.PredictOptions, {"top_k": "5"}).top_k == 5
    with pytest.raises(InvalidRequest, match="top_k: "):
        parse_query(schemas.PredictOptions, {"top_k": "0"})


def test_too_many_values() -> None:
    check_json_values(b"[1, 2, 3]", 2)
    with pytest.raises(InvalidRequest, match="The JSON has more than 1 values"):
        check_json_values(b"[1, 2, 3]", 1)
    with pytest.raises(InvalidRequest, match="embeddings: has more than 1 values"):
        check_json_values(b"[1, 2, 3]", 1, "embeddings")
