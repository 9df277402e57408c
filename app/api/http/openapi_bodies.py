"""OpenAPI descriptions of the bodies that carry images."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.api import schemas
from app.api.http.errors import InferenceProblem, Problem

BINARY = {"type": "string", "format": "binary"}
_FILE = {"schema": BINARY}
SCHEMAS = "#/components/schemas/"
# No route declares these models as a parameter: FastAPI would parse the body itself.
_BODIES = (
    schemas.DatasetCreate,
    schemas.ImagesCreate,
    schemas.PredictBody,
    schemas.SearchBody,
    schemas.InferRequest,
    schemas.LabelStudioTasks,
    Problem,
    InferenceProblem,
)
_CSV = "path,label,camera\n/photos/1.jpg,cat,X100\ns3://photos/2.jpg,dog,\n"
_JSON_LINES = '{"path": "/photos/1.jpg", "label": "cat", "camera": "X100"}\n'
_LINES = {"schema": {"type": "string"}, "example": _JSON_LINES}
FORM = "multipart/form-data"
_EXAMPLES: dict[str, dict[str, Any]] = {
    "upload": {"type": "upload", "upload_id": "up_01k9z3m4q5r6s7t8v9w0x1y2z3"},
    "folder": {"type": "folder", "path": "/photos/holiday"},
    "objects": {"type": "objects", "url": "s3://photos/holiday"},
    "urls": {"type": "urls", "urls": ["https://example.org/cat.jpg"]},
}


def image_body(schema: type[BaseModel]) -> dict[str, Any]:
    """Returns a route's `openapi_extra`; `schema` is the schema of the JSON body."""
    json_body = {
        "schema": body_ref(schema),
        "examples": {
            name: {"summary": f"From: {name}", "value": {"source": source}}
            for name, source in _EXAMPLES.items()
        },
    }
    content = {
        **dict.fromkeys(
            [
                *("application/zip", "application/x-tar", "application/gzip", "application/zstd"),
                "application/octet-stream",  # an archive of unknown type
            ],
            _FILE,
        ),
        FORM: _form("Images, or exactly one archive."),
        "application/json": json_body,
        "text/csv": {"schema": {"type": "string"}, "example": _CSV},
        **dict.fromkeys(
            ["application/x-ndjson", "application/ndjson", "application/jsonl"], _LINES
        ),
    }
    return {"requestBody": {"required": True, "content": content}}


def predict_body() -> dict[str, Any]:
    """Returns the `openapi_extra` of `:predict`: a form or JSON, and options in the query."""
    json_body = {"schema": body_ref(schemas.PredictBody)}
    content = {FORM: _form("Images."), "application/json": json_body}
    options = schemas.PredictOptions.model_json_schema()["properties"].items()
    return {
        "parameters": [_parameter(name, dict(schema)) for name, schema in options],
        "requestBody": {"required": True, "content": content},
    }


def _search_body() -> dict[str, Any]:
    json_body = {"schema": body_ref(schemas.SearchBody)}
    content = {FORM: _form("One photo."), "application/json": json_body}
    return {"requestBody": {"required": True, "content": content}}


def _parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    description = schema.pop("description")
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": description,
        "schema": schema,
    }


def _form(files: str) -> dict[str, Any]:
    properties = {"files": {"type": "array", "items": BINARY, "description": files}}
    return {"schema": {"type": "object", "required": ["files"], "properties": properties}}


def body_ref(schema: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"{SCHEMAS}{schema.__name__}"}


def body_schemas() -> dict[str, Any]:
    """The components that `body_ref` refers to."""
    template = f"{SCHEMAS}{{model}}"
    _, found = models_json_schema([(b, "validation") for b in _BODIES], ref_template=template)
    definitions: dict[str, Any] = found["$defs"]
    return definitions


DATASET_BODY = image_body(schemas.DatasetCreate)
SEARCH_BODY = _search_body()
IMAGES_BODY = image_body(schemas.ImagesCreate)
