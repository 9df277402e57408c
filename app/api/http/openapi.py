"""The OpenAPI document: what FastAPI derives from the routes, and what it leaves out."""

import json
import re
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.api.http.openapi_bodies import BINARY, SCHEMAS, body_schemas

Json = dict[str, Any]

CONTACT = {"name": "The maintainers of the TEMI service"}
LICENSE = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
SERVERS: list[Json] = [{"url": "/", "description": "The service that sent this document"}]
TAGS: list[Json] = [
    {"name": "datasets", "description": "Collections of images, their issues and their labels."},
    {"name": "images", "description": "Single images: metadata, bytes, thumbnails and labels."},
    {"name": "jobs", "description": "Long work: start it, follow it, cancel it, repeat it."},
    {"name": "clusterings", "description": "Clusters of a dataset, and edits of them."},
    {"name": "models", "description": "Model versions, their aliases, and predictions."},
    {"name": "exports", "description": "Files of labels for other programs."},
    {"name": "uploads", "description": "Resumable uploads by the tus protocol, version 1.0."},
    {"name": "workers", "description": "The processes that run the jobs."},
    {"name": "access", "description": "API keys and the audit log."},
    {
        "name": "inference protocol",
        "description": "The Open Inference Protocol, version 2, for clients of KServe and Triton.",
    },
    {
        "name": "label studio",
        "description": "Models as machine learning backends of Label Studio; the key may be the "
        "password of Basic authentication here.",
    },
    {"name": "system", "description": "Version and limits, liveness, readiness and metrics."},
]
_PAGE = re.compile(r"\bPage_([A-Za-z]+)_(?=\")")
_UNIONS = {
    "/v1/jobs": "JobCreate",
    "/v1/clusterings/{clustering_id}/operations": "OperationCreate",
}
# A parameter means the same wherever its name occurs; a route may describe it itself.
_PARAMETERS: dict[str, tuple[str, Any]] = {
    "alias": ("The name of an alias.", "production"),
    "cluster_id": ("The number of a cluster in its clustering.", 0),
    "clustering_id": ("The id of a clustering.", "cl_01k9z3m4q5r6s7t8v9w0x1y2z3"),
    "dataset_id": ("The id of a dataset.", "ds_01k9z3m4q5r6s7t8v9w0x1y2z3"),
    "export_id": ("The id of an export.", "exp_01k9z3m4q5r6s7t8v9w0x1y2z3"),
    "image_id": ("The id of an image.", "img_01k9z3m4q5r6s7t8v9w0x1y2z3"),
    "job_id": ("The id of a job.", "job_01k9z3m4q5r6s7t8v9w0x1y2z3"),
    "key_id": ("The id of an API key.", "key_01k9z3m4q5r6s7t8v9w0x1y2z3"),
    "upload_id": ("The id of an upload.", "up_01k9z3m4q5r6s7t8v9w0x1y2z3"),
    "version": ("The number of a version.", 1),
    "name": ("A name for people; it need not be unique.", "Holiday"),
    "status": ("Only those with this status.", "running"),
    "columns": ("Images in a row.", 6),
    "format": ("The format of the picture.", "png"),
    "min_probability": ("Only images with at least this probability.", 0.9),
    "Last-Event-ID": ("The id of the last event that you have got.", "17"),
    "upload-metadata": (
        "Names, each with a value in base64, as in tus.",
        "filename cGhvdG9zLnppcA==",
    ),
    "if-none-match": ("An earlier `ETag`: the response is 304 if it is still the same.", None),
}
_WAIT = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
# Headers of every response with this status.
_HEADERS: dict[str, Json] = {
    "202": {
        "Location": {"description": "The job.", "schema": {"type": "string"}},
        "Retry-After": {
            "description": "Seconds until the next look.",
            "schema": {"type": "integer"},
        },
    },
    "401": {
        "WWW-Authenticate": {
            "description": "`Bearer`, with `error` if a key was sent.",
            "schema": {"type": "string"},
        }
    },
    "429": {"Retry-After": _WAIT},
    "503": {"Retry-After": _WAIT},
}


class DocumentedApi(FastAPI):
    """FastAPI with a document that other tools accept: linters, and generators of clients."""

    def openapi(self) -> Json:
        if self.openapi_schema is None:
            # Pydantic names a generic schema such as `Page_Job_`.
            text = _PAGE.sub(r"\1Page", json.dumps(super().openapi()))
            self.openapi_schema = _complete(json.loads(text))
        return self.openapi_schema


def operation_id(route: APIRoute) -> str:
    """The name of the function: generated clients call their methods so."""
    return route.name


def _complete(document: Json) -> Json:
    document["components"]["schemas"] |= body_schemas()
    _name_unions(document)
    for method, operation in _operations(document):
        operation.setdefault("security", [])  # public
        for parameter in operation.get("parameters", ()):
            _describe(parameter)
        for status, response in operation["responses"].items():
            _complete_response(status, response)
            if method == "head":
                response.pop("content", None)
    return document


def _operations(document: Json) -> Iterator[tuple[str, Json]]:
    for path in document["paths"].values():
        yield from path.items()


def _describe(parameter: Json) -> None:
    if "description" in parameter or parameter["name"] not in _PARAMETERS:
        return
    parameter["description"], example = _PARAMETERS[parameter["name"]]
    if example is not None:
        parameter["example"] = example


def _complete_response(status: str, response: Json) -> None:
    if status in _HEADERS:
        response.setdefault("headers", {}).update(_HEADERS[status])
    for media_type, content in response.get("content", {}).items():
        if "itemSchema" in content:  # of OpenAPI 3.2, while the document is 3.1
            del content["itemSchema"]
        if not content:
            content["schema"] = {"type": "string"} if media_type.startswith("text/") else BINARY


def _name_unions(document: Json) -> None:
    """Bodies of one of several kinds become components: generated clients name classes so."""
    schemas = document["components"]["schemas"]
    for path, name in _UNIONS.items():
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        schemas[name] = union = body["schema"] | {"title": name}
        body["schema"] = {"$ref": f"{SCHEMAS}{name}"}
        # Pydantic describes no discriminator that is a function, and OpenAPI wants the property
        # in all schemas, although a job without it is accepted.
        mapping = {}
        for reference in [one["$ref"] for one in union["oneOf"]]:
            schema = schemas[reference.removeprefix(SCHEMAS)]
            mapping[schema["properties"]["kind"]["const"]] = reference
            if "kind" not in schema["required"]:
                schema["required"].insert(0, "kind")
        union["discriminator"] = {"propertyName": "kind", "mapping": mapping}
