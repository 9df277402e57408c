"""Pictures of a clustering: contact sheets of its clusters, and plots."""

from fastapi import APIRouter

from app.api.errors import responses

router = APIRouter(
    prefix="/v1/clusterings", tags=["clusterings"], responses=responses(401, 422, 503)
)
