"""Pydantic's validation errors as `InvalidRequest`: the only place that translates them."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from app.api import schemas
from app.core.jobs.kinds import KINDS
from app.core.platform.errors import FieldError, InvalidRequest

_MAX_ERRORS = 20  # listed in one response
_KINDS = {*KINDS, *get_args(schemas.OperationKind)}
# Pydantic puts the tag of the chosen schema into the location, below the field of the union.
_UNION_TAGS: dict[tuple[str, ...], set[str]] = {
    (): _KINDS,
    ("source",): set(get_args(schemas.SourceType)),
}
Schema = TypeVar("Schema", bound=BaseModel)


def parse_json(
    schema: type[Schema], body: bytes, *, not_json: InvalidRequest | None = None
) -> Schema:
    """Parses the body; raises InvalidRequest, or `not_json` for a body that is not JSON at all."""
    try:
        return schema.model_validate_json(body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        if not_json is not None and found[0]["type"] == "json_invalid":
            raise not_json from error
        raise invalid_request(found) from error


def parse_query(schema: type[Schema], query: Mapping[str, str]) -> Schema:
    try:
        return schema.model_validate(dict(query))
    except ValidationError as error:
        raise invalid_request(error.errors(include_url=False, include_input=False)) from error


def invalid_request(errors: Iterable[Mapping[str, Any]]) -> InvalidRequest:
    """One error with an entry for each field that pydantic rejected."""
    fields = [
        FieldError(_field_of(error), _message_of(error)) for error in islice(errors, _MAX_ERRORS)
    ]
    detail = "; ".join(f"{e.field}: {e.message}" if e.field else e.message for e in fields)
    return InvalidRequest(detail, errors=fields)


def check_json_values(body: bytes | bytearray, limit: int, field: str | None = None) -> None:
    """Raises InvalidRequest if the JSON has more values than the limit.

    Called before parsing: as Python objects, values take far more memory than as text.
    """
    if body.count(b",") > limit:
        message = f"has more than {limit:,} values"
        if field is None:
            raise InvalidRequest(f"The JSON {message}.")
        raise InvalidRequest.field(field, message)


def _message_of(error: Mapping[str, Any]) -> str:
    """Without pydantic's words before a message of our own."""
    return str(error["msg"]).removeprefix("Value error, ")


def _field_of(error: Mapping[str, Any]) -> str:
    """The field's path as the client wrote it: without the tags of unions."""
    path = tuple(str(part) for part in error["loc"])
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return ".".join((*path, _discriminator(error)))
    for parent, tags in _UNION_TAGS.items():
        depth = len(parent)
        if path[:depth] == parent and path[depth : depth + 1] and path[depth] in tags:
            path = path[:depth] + path[depth + 1 :]
    return ".".join(path)


def _discriminator(error: Mapping[str, Any]) -> str:
    """The field that chooses the schema; a union with a function as discriminator has `kind`."""
    name = str(error.get("ctx", {}).get("discriminator", ""))
    return name.strip("'") if name.startswith("'") else "kind"
