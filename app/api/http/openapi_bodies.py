"""OpenAPI descriptions of the bodies that carry images."""

from typing import Any

from pydantic import BaseModel

from app.api import schemas

_BINARY = {"schema": {"type": "string", "format": "binary"}}
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
        "schema": inline_refs(schema.model_json_schema()),
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
            _BINARY,
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
    json_body = {"schema": inline_refs(schemas.PredictBody.model_json_schema())}
    content = {FORM: _form("Images."), "application/json": json_body}
    options = schemas.PredictOptions.model_json_schema()["properties"].items()
    return {
        "parameters": [_parameter(name, dict(schema)) for name, schema in options],
        "requestBody": {"required": True, "content": content},
    }


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
    items = {"type": "string", "format": "binary"}
    properties = {"files": {"type": "array", "items": items, "description": files}}
    return {"schema": {"type": "object", "required": ["files"], "properties": properties}}


def inline_refs(schema: dict[str, Any]) -> dict[str, Any]:
    """Resolves `$ref`: no route declares these models, so the document does not contain them."""
    definitions = schema.get("$defs", {})

    def resolve(node: Any) -> Any:
        if isinstance(node, list):
            return [resolve(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return resolve(definitions[node["$ref"].rpartition("/")[2]])
        dropped = ("$defs", "discriminator")
        return {name: resolve(value) for name, value in node.items() if name not in dropped}

    resolved: dict[str, Any] = resolve(schema)
    return resolved


DATASET_BODY = image_body(schemas.DatasetCreate)
IMAGES_BODY = image_body(schemas.ImagesCreate)
