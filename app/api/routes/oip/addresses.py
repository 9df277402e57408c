"""How the protocol's addresses name a model, and which errors they answer with."""

from typing import Annotated, Any

from fastapi import Path

from app.api.http.errors import InferenceProblem, responses

ModelName = Annotated[str, Path(max_length=170, description="`name` or `name@alias`.")]
# A text, as the protocol has it: one that is no number is a version that is not there.
VersionName = Annotated[str, Path(max_length=20, description="A version's number.")]


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's OpenAPI entry: problems with the `error` that the protocol's clients read."""
    return responses(400, 401, 403, 404, 429, 503, *statuses, "default", model=InferenceProblem)


def numbered(model: str, version: str) -> str:
    return f"{model}/versions/{version}"
